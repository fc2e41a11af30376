/* test_store.c - opening the store: whose it is, where, and in what state */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "coordinator/store/schema.h"
#include "tests/unit/folder.h"
#include "tests/unit/fuse_folder.h"
#include "tests/unit/store_dir.h"
#include "tests/unit/store_rows.h"

static void make_one (void)
{
    hkc_store_close (store_open (dir));
}

static void a_store_is_made_where_there_is_none (void **state)
{
    struct hkc_store *store = store_open (dir);

    (void)state;
    assert_int_equal (strlen (hkc_store_instance (store)), HK_ID_BYTES - 1);
    assert_true (hkc_store_start (store) > 0);
    assert_int_equal (hkc_store_commit_number (store), 0);
    assert_int_equal (hkc_store_next_pid (store), 1);
    assert_string_equal (hkc_store_path (store), at ("hk.db"));
    assert_store_text (store, "");
    hkc_store_close (store);
}

static void its_files_are_its_owners_alone (void **state)
{
    static const char *const files[] = {
        "hk.db", "hk.db-wal", "hk.db-shm", "lock"
    };
    mode_t mask = umask (0); /* whatever the process has */
    struct hkc_store *store = store_open (dir);
    struct hkc_row row = row_alloc (1, 10, 1, 1);

    (void)state;
    store_commit (store, &row, 1);
    umask (mask);
    assert_int_equal (mode_of (dir), 0700);
    for (size_t i = 0; i < sizeof (files) / sizeof (files[0]); i++)
        assert_int_equal (mode_of (at (files[i])), 0600);
    hkc_store_close (store);
}

static void the_instance_stays_and_each_start_is_another (void **state)
{
    struct hkc_store *store = store_open (dir);
    char instance[HK_ID_BYTES];
    uint64_t start = hkc_store_start (store);

    (void)state;
    strcpy (instance, hkc_store_instance (store));
    hkc_store_close (store);
    store = store_open (dir);
    assert_string_equal (hkc_store_instance (store), instance);
    assert_true (hkc_store_start (store) != start);
    assert_int_equal (store_count (store, "start"), 2);
    hkc_store_close (store);
}

static void two_coordinators_cannot_have_it (void **state)
{
    struct hkc_store *store = store_open (dir);

    (void)state;
    assert_refused (EBUSY, "another coordinator has it");
    hkc_store_close (store);
    make_one ();
}

static void folders_of_others_are_refused (void **state)
{
    (void)state;
    make_one ();
    assert_int_equal (chmod (dir, 0750), 0);
    assert_refused (EPERM, "has mode 0750, expected 0700");
    assert_int_equal (chmod (dir, 0700), 0);
    assert_int_equal (chmod (at ("hk.db"), 0640), 0);
    assert_refused (EPERM, "has mode 0640, expected 0600");
    assert_int_equal (chmod (at ("hk.db"), 0600), 0);
    if (geteuid () != 0)
        return; /* nobody else can give files away */
    assert_int_equal (chown (at ("hk.db"), 4711, 0), 0);
    assert_refused (EPERM, "hk.db belongs to uid 4711, this program runs as 0");
    assert_int_equal (chown (dir, 4711, 0), 0);
    assert_refused (EPERM, "state belongs to uid 4711");
}

static void what_is_no_file_is_refused (void **state)
{
    (void)state;
    folder_write (folder, "state", "");
    assert_refused (ENOTDIR, "is no folder");
    assert_int_equal (unlink (dir), 0);
    assert_int_equal (mkdir (dir, 0700), 0);
    assert_int_equal (symlink ("/dev/null", at ("hk.db")), 0);
    assert_refused (ELOOP, "hk.db");
    assert_int_equal (unlink (at ("hk.db")), 0);
    assert_int_equal (mkfifo (at ("hk.db"), 0600), 0);
    assert_refused (EINVAL, "no regular file");
    snprintf (dir, sizeof (dir), "%s/none/state", folder);
    assert_refused (ENOENT, "none/state");
}

static void garbage_is_refused_and_left_as_it_is (void **state)
{
    static const char text[] = "this was never written by SQLite, and is long "
                               "enough to be more than a header of it would be";
    struct stat st;

    (void)state;
    make_one ();
    file_put (at ("hk.db"), text, sizeof (text));
    assert_refused (EUCLEAN, "hk.db is damaged: file is not a database");
    assert_file (at ("hk.db"), text, sizeof (text));
    assert_int_equal (stat (at ("hk.db-wal"), &st), -1);
}

/* Page after page is spoiled: either it belongs to a table that is checked, and
 * the store is refused as it is, or to the history, and it opens.
 */
static void each_damaged_page_is_found_or_does_not_matter (void **state)
{
    size_t size, refused = 0;
    char *good, *bad;

    (void)state;
    make_full ();
    good = file_bytes (at ("hk.db"), &size);
    bad = malloc (size);
    assert_non_null (bad);
    for (size_t page = 0; page < size / 4096; page++) {
        struct hk_error err = { "" };
        struct hkc_store *store;
        memcpy (bad, good, size);
        memset (bad + page * 4096 + (page ? 0 : 100), 0xa5, 64);
        file_put (at ("hk.db"), bad, size);
        if ((store = hkc_store_open (dir, &err))) {
            hkc_store_close (store);
            continue;
        }
        refused++;
        assert_int_equal (errno, EUCLEAN);
        assert_non_null (strstr (err.text, "is damaged: "));
        assert_file (at ("hk.db"), bad, size);
    }
    assert_true (refused >= 10);
    free (good);
    free (bad);
}

static void a_cut_file_is_refused_and_left_as_it_is (void **state)
{
    size_t size;
    char *good;

    (void)state;
    make_full ();
    good = file_bytes (at ("hk.db"), &size);
    file_put (at ("hk.db"), good, size / 2);
    assert_refused (EUCLEAN, "is damaged");
    assert_file (at ("hk.db"), good, size / 2);
    free (good);
}

static void another_program_s_file_is_refused (void **state)
{
    sqlite3 *db;
    size_t size;
    char *bytes;

    (void)state;
    make_one ();
    assert_int_equal (unlink (at ("hk.db")), 0);
    assert_int_equal (sqlite3_open (at ("hk.db"), &db), SQLITE_OK);
    assert_int_equal (
        sqlite3_exec (db, "CREATE TABLE theirs (x)", NULL, NULL, NULL),
        SQLITE_OK);
    sqlite3_close (db);
    assert_int_equal (chmod (at ("hk.db"), 0600), 0);
    bytes = file_bytes (at ("hk.db"), &size);
    assert_refused (EUCLEAN, "is no store of a coordinator");
    assert_file (at ("hk.db"), bytes, size);
    free (bytes);
}

/* ---- where it is: these need a mount namespace, so root ---- */

static bool have_mounts;

static void a_network_file_system_is_refused (void **state)
{
    pid_t child;

    (void)state;
    assert_int_equal (mkdir (dir, 0700), 0);
    if (!have_mounts || (child = fuse_folder_mount (dir)) < 0) {
        print_message ("# no fuse here: %s\n", strerror (errno));
        return;
    }
    assert_refused (EXDEV,
                    "is on a network file system (fuse); a local one "
                    "is needed");
    fuse_folder_unmount (dir, child);
    make_one ();
}

static void a_read_only_file_system_is_refused (void **state)
{
    (void)state;
    make_one ();
    if (!have_mounts) {
        print_message ("# no mounts here\n");
        return;
    }
    assert_int_equal (mount (dir, dir, NULL, MS_BIND, NULL), 0);
    assert_int_equal (
        mount (NULL, dir, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL), 0);
    assert_refused (EROFS, "Read-only file system");
    assert_int_equal (umount2 (dir, MNT_DETACH), 0);
    make_one ();
}

/* How small a disk may be: from none to enough, each is refused with a clear
 * text or works, and what a refused one left does no harm.
 */
static void a_full_disk_is_refused_at_start (void **state)
{
    struct hk_error err = { "" };
    struct hkc_store *store = NULL;
    int refused = 0;

    (void)state;
    assert_int_equal (mkdir (dir, 0700), 0);
    if (!have_mounts
        || mount ("test", dir, "tmpfs", 0, "size=8k,mode=0700") < 0) {
        print_message ("# no tmpfs here: %s\n", strerror (errno));
        return;
    }
    for (int kb = 8; !store && kb <= 4096; kb += 32) {
        char options[64];
        snprintf (options, sizeof (options), "size=%dk", kb);
        assert_int_equal (mount (NULL, dir, NULL, MS_REMOUNT, options), 0);
        if ((store = hkc_store_open (dir, &err)))
            break;
        if (errno != ENOSPC)
            fail_msg ("errno %d: %s", errno, err.text);
        refused++;
    }
    assert_non_null (store);
    assert_true (refused > 2);
    hkc_store_close (store);
    assert_int_equal (umount2 (dir, MNT_DETACH), 0);
}

#define A_TEST(name) \
    cmocka_unit_test_setup_teardown (name, dir_set_up, dir_tear_down)

int main (void)
{
    const struct CMUnitTest tests[] = {
        A_TEST (a_store_is_made_where_there_is_none),
        A_TEST (its_files_are_its_owners_alone),
        A_TEST (the_instance_stays_and_each_start_is_another),
        A_TEST (two_coordinators_cannot_have_it),
        A_TEST (folders_of_others_are_refused),
        A_TEST (what_is_no_file_is_refused),
        A_TEST (garbage_is_refused_and_left_as_it_is),
        A_TEST (each_damaged_page_is_found_or_does_not_matter),
        A_TEST (a_cut_file_is_refused_and_left_as_it_is),
        A_TEST (another_program_s_file_is_refused),
        A_TEST (a_network_file_system_is_refused),
        A_TEST (a_read_only_file_system_is_refused),
        A_TEST (a_full_disk_is_refused_at_start),
    };

    have_mounts = mounts_private () == 0;
    return cmocka_run_group_tests (tests, NULL, NULL);
}

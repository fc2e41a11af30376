/* test_store_disk.c - a disk that is full, fails, or loses its power */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "coordinator/store/schema.h"
#include "tests/unit/faulty_vfs.h"
#include "tests/unit/folder.h"
#include "tests/unit/fuse_folder.h"
#include "tests/unit/store_dir.h"
#include "tests/unit/store_rows.h"

static int set_up (void **state)
{
    faulty_vfs_end ();
    return dir_set_up (state);
}

static struct hkc_store *again (struct hkc_store *store)
{
    hkc_store_close (store);
    return store_open (dir);
}

static struct hkc_row burst[200];

static size_t burst_rows (void)
{
    size_t n = 0;

    for (int i = 0; i < 50; i++) {
        burst[n++] = row_alloc (100 + i, 10 + i, 100 + i, 1);
        burst[n++] = row_state (100 + i, "");
        burst[n++] = row_part (100 + i, 100 + i, "node0");
        burst[n++] = row_history (100 + i, 10 + i, 100 + i, 1, "node0");
    }
    return n;
}

/* Whatever operation fails: the batch leaves no trace, and the same batch goes
 * through as soon as the disk does its work again.
 */
static void fails_anywhere (enum faulty_kind kind, int errnum)
{
    size_t n = burst_rows ();
    long at = 0;
    bool failed;

    do {
        struct hkc_store *store;
        struct hkc_row rows[16];
        struct hk_error err;
        folder_remove (dir);
        store = store_open (dir);
        store_commit (store, rows, all_rows (rows));
        faulty_vfs_fail_at (++at, kind);
        if (store_try (store, burst, n, &err) < 0) {
            failed = faulty_vfs_end ();
            assert_true (failed);
            if (errno != errnum)
                fail_msg ("operation %ld: errno %d: %s", at, errno, err.text);
            assert_int_equal (hkc_store_commit_number (store), 1);
            assert_store_text (store, all_text);
            store_commit (store, burst, n);
        } else
            failed = faulty_vfs_end ();
        assert_int_equal (hkc_store_commit_number (store), 2);
        assert_int_equal (hkc_store_refused (store), 0);
        store = again (store);
        assert_int_equal (store_count (store, "part"), 52);
        assert_int_equal (store_count (store, "history"), 51);
        hkc_store_close (store);
    } while (failed);
    assert_true (at > 10);
}

static void a_batch_that_fails_anywhere_is_tried_again (void **state)
{
    (void)state;
    fails_anywhere (FAULTY_IO, EIO);
    fails_anywhere (FAULTY_FULL, ENOSPC);
    fails_anywhere (FAULTY_READ_ONLY, EROFS);
}

/* What was committed is there after a crash at any operation; the batch that
 * was under way is there whole or not at all.
 */
static void a_crash_anywhere_loses_nothing_that_was_told (void **state)
{
    size_t n = burst_rows ();
    long at = 0;
    bool failed;

    (void)state;
    do {
        struct hkc_store *store;
        struct hkc_row rows[16];
        int rc;
        long parts;
        folder_remove (dir);
        store = store_open (dir);
        store_commit (store, rows, all_rows (rows));
        faulty_vfs_fail_at (++at, FAULTY_CRASH);
        rc = store_try (store, burst, n, NULL);
        hkc_store_close (store);
        failed = faulty_vfs_end ();
        store = store_open (dir);
        parts = store_count (store, "part");
        assert_true (parts == 52 || (rc < 0 && parts == 2));
        assert_int_equal (store_count (store, "history"), parts - 1);
        assert_int_equal (hkc_store_next_pid (store), parts == 52 ? 150 : 3);
        hkc_store_close (store);
    } while (failed);
    assert_true (at > 10);
}

static void a_start_that_fails_anywhere_can_be_tried_again (void **state)
{
    struct hkc_store *store;
    struct hk_error err;
    long at = 0;

    (void)state;
    for (;;) {
        folder_remove (dir);
        at++;
        faulty_vfs_fail_at (at, at % 2 ? FAULTY_IO : FAULTY_CRASH);
        store = hkc_store_open (dir, &err);
        if (!faulty_vfs_end ())
            break; /* there are no more operations */
        hkc_store_close (store);
        store = store_open (dir);
        assert_store_text (store, "");
        assert_true (store_count (store, "start") <= 2);
        hkc_store_close (store);
    }
    assert_true (at > 10);
    assert_non_null (store);
    hkc_store_close (store);
}

/* The same on real file systems. */

static bool have_mounts;

static void a_full_disk_is_waited_out (void **state)
{
    struct hkc_store *store;
    struct hkc_row row;
    struct hk_error err;
    int n = 0;

    (void)state;
    assert_int_equal (mkdir (dir, 0700), 0);
    if (!have_mounts
        || mount ("test", dir, "tmpfs", 0, "size=512k,mode=0700") < 0) {
        print_message ("# no tmpfs here: %s\n", strerror (errno));
        return;
    }
    store = store_open (dir);
    do {
        n++;
        row = row_history (n, n, n, 1, "node0");
    } while (n < 10000 && store_try (store, &row, 1, &err) == 0);
    assert_int_equal (errno, ENOSPC);
    assert_true (n > 10 && n < 10000);
    assert_int_equal (store_count (store, "history"), n - 1);
    assert_int_equal (store_try (store, &row, 1, &err), -1);
    assert_int_equal (mount (NULL, dir, NULL, MS_REMOUNT, "size=8m"), 0);
    store_commit (store, &row, 1);
    assert_int_equal (hkc_store_commit_number (store), n);
    store = again (store);
    assert_int_equal (store_count (store, "history"), n);
    hkc_store_close (store);
    assert_int_equal (umount2 (dir, MNT_DETACH), 0);
}

static void what_the_system_says_is_told (void **state)
{
    struct hkc_store *store = store_open (dir);
    struct rlimit old, none = { 0, 0 };
    struct hkc_row row = row_alloc (11, 10, 1, 1);
    struct hk_error err;
    int rc, errnum;

    (void)state;
    assert_int_equal (getrlimit (RLIMIT_FSIZE, &old), 0);
    none.rlim_max = old.rlim_max;
    signal (SIGXFSZ, SIG_IGN);
    assert_int_equal (setrlimit (RLIMIT_FSIZE, &none), 0);
    rc = store_try (store, &row, 1, &err);
    errnum = errno;
    assert_int_equal (setrlimit (RLIMIT_FSIZE, &old), 0);
    assert_int_equal (rc, -1);
    assert_int_equal (errnum, EFBIG);
    assert_non_null (strstr (err.text, "disk I/O error: File too large"));
    store_commit (store, &row, 1);
    hkc_store_close (store);
}

/* An admin looks with a program of his own, and holds it for a moment. */
static void a_lock_of_another_program_is_waited_out (void **state)
{
    struct hkc_store *store = store_open (dir);
    struct hkc_row row = row_alloc (11, 10, 1, 1);
    struct hk_error err;
    sqlite3 *db;

    (void)state;
    assert_int_equal (sqlite3_open (hkc_store_path (store), &db), SQLITE_OK);
    assert_int_equal (sqlite3_exec (db, "BEGIN IMMEDIATE", NULL, NULL, NULL),
                      SQLITE_OK);
    assert_int_equal (store_try (store, &row, 1, &err), -1);
    assert_int_equal (errno, EBUSY);
    assert_int_equal (sqlite3_exec (db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    store_commit (store, &row, 1);
    sqlite3_close (db);
    hkc_store_close (store);
}

#define A_TEST(name) \
    cmocka_unit_test_setup_teardown (name, set_up, dir_tear_down)

int main (void)
{
    const struct CMUnitTest tests[] = {
        A_TEST (a_batch_that_fails_anywhere_is_tried_again),
        A_TEST (a_crash_anywhere_loses_nothing_that_was_told),
        A_TEST (a_start_that_fails_anywhere_can_be_tried_again),
        A_TEST (a_full_disk_is_waited_out),
        A_TEST (what_the_system_says_is_told),
        A_TEST (a_lock_of_another_program_is_waited_out),
    };

    have_mounts = mounts_private () == 0;
    if (faulty_vfs_install () < 0)
        return 1;
    return cmocka_run_group_tests (tests, NULL, NULL);
}

/* test_trust.c - files that root may act on */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "proto/trust.h"
#include "tests/unit/folder.h"

/* A folder that root alone may write, all the way: /run, not /tmp. What is
 * made in it is root's only if root runs the test; for anyone else each file
 * is refused, and one test says so.
 */
static char folder[64];

static const char *at (const char *name)
{
    static char path[4][4096];
    static int turn;

    turn = (turn + 1) % 4;
    snprintf (path[turn], sizeof (path[turn]), "%s/%s", folder, name);
    return path[turn];
}

static void make_file (const char *name, mode_t mode)
{
    int fd = open (at (name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    assert_true (fd >= 0);
    assert_int_equal (fchmod (fd, mode), 0);
    close (fd);
}

static void make_folder (const char *name, mode_t mode)
{
    assert_int_equal (mkdir (at (name), 0700), 0);
    assert_int_equal (chmod (at (name), mode), 0);
}

static int set_up (void **state)
{
    (void)state;
    return folder_make (folder, sizeof (folder));
}

static int tear_down (void **state)
{
    (void)state;
    return folder_remove (folder);
}

static void assert_trusted (const char *path)
{
    struct hk_error err = { "" };

    if (hk_trust_check (path, &err) < 0)
        fail_msg ("%s", err.text);
}

/* The text names `fault`. */
static void assert_refused (const char *path, int errnum, const char *fault)
{
    struct hk_error err = { "" };

    assert_int_equal (hk_trust_check (path, &err), -1);
    if (errno != errnum || strncmp (err.text, fault, strlen (fault)) != 0)
        fail_msg ("errno %d: '%s', expected %s", errno, err.text, fault);
}

static void files_of_root_are_trusted (void **state)
{
    (void)state;
    make_file ("plain", 0644);
    make_file ("script", 0755);
    make_folder ("sub", 0755);
    make_file ("sub/script", 0700);
    assert_trusted (at ("plain"));
    assert_trusted (at ("script"));
    assert_trusted (at ("sub"));
    assert_trusted (at ("sub/"));
    assert_trusted (at ("sub/script"));
    assert_trusted (at ("sub/.././/sub/script"));
    assert_trusted ("/");
    assert_trusted ("/../..");
}

static void files_that_others_may_write_are_refused (void **state)
{
    char want[5000];

    (void)state;
    make_file ("group", 0664);
    make_file ("world", 0646);
    assert_refused (at ("group"), EPERM, at ("group"));
    assert_refused (at ("world"), EPERM, at ("world"));
    snprintf (want,
              sizeof (want),
              "%s may be written by others than root (mode 0664)",
              at ("group"));
    assert_refused (at ("group"), EPERM, want);
}

static void files_of_others_are_refused (void **state)
{
    char want[5000];

    (void)state;
    make_file ("theirs", 0600);
    assert_int_equal (chown (at ("theirs"), 4711, 0), 0);
    snprintf (want,
              sizeof (want),
              "%s belongs to user id 4711, not to root",
              at ("theirs"));
    assert_refused (at ("theirs"), EPERM, want);
}

static void a_folder_above_counts_too (void **state)
{
    (void)state;
    make_folder ("open", 0777);
    make_folder ("open/in", 0755);
    make_file ("open/in/script", 0755);
    assert_refused (at ("open/in/script"), EPERM, at ("open"));
    make_folder ("sticky", 01777);
    make_file ("sticky/script", 0755);
    assert_refused (at ("sticky/script"), EPERM, at ("sticky"));
    make_folder ("user", 0755);
    make_file ("user/script", 0755);
    assert_int_equal (chown (at ("user"), 4711, 0), 0);
    assert_refused (at ("user/script"), EPERM, at ("user"));
    assert_refused (at ("user/none"), EPERM, at ("user"));
    assert_refused (at ("user/../plain"), EPERM, at ("user"));
}

static void links_are_followed_and_checked (void **state)
{
    (void)state;
    make_file ("target", 0755);
    make_folder ("d1", 0755);
    make_file ("d1/target", 0755);
    make_folder ("d2", 0777);
    make_file ("d2/target", 0755);
    assert_int_equal (symlink ("target", at ("relative")), 0);
    assert_int_equal (symlink ("../target", at ("d1/up")), 0);
    assert_int_equal (symlink (at ("d1/target"), at ("absolute")), 0);
    assert_int_equal (symlink ("d1", at ("folder")), 0);
    assert_int_equal (symlink ("relative", at ("chain")), 0);
    assert_int_equal (symlink ("d2/target", at ("bad")), 0);
    assert_trusted (at ("relative"));
    assert_trusted (at ("d1/up"));
    assert_trusted (at ("absolute"));
    assert_trusted (at ("folder"));
    assert_trusted (at ("folder/"));
    assert_trusted (at ("folder/target"));
    assert_trusted (at ("folder/../target"));
    assert_trusted (at ("chain"));
    assert_refused (at ("bad"), EPERM, at ("d2"));
    assert_refused (at ("relative/"), ENOTDIR, at ("target"));
}

static void a_link_of_another_is_refused (void **state)
{
    (void)state;
    assert_int_equal (symlink ("target", at ("their-link")), 0);
    assert_int_equal (lchown (at ("their-link"), 4711, 0), 0);
    assert_refused (at ("their-link"), EPERM, at ("their-link"));
}

static void links_without_end_are_refused (void **state)
{
    (void)state;
    assert_int_equal (symlink ("ring-b", at ("ring-a")), 0);
    assert_int_equal (symlink ("ring-a", at ("ring-b")), 0);
    assert_refused (at ("ring-a"), ELOOP, at ("ring-"));
}

static void what_is_missing_is_said (void **state)
{
    char path[8192];

    (void)state;
    assert_refused (at ("none"), ENOENT, at ("none"));
    assert_refused (at ("none/x"), ENOENT, at ("none"));
    make_file ("file", 0644);
    assert_refused (at ("file/x"), ENOTDIR, at ("file"));
    assert_int_equal (symlink ("nowhere", at ("dangling")), 0);
    assert_refused (at ("dangling"), ENOENT, at ("nowhere"));
    assert_refused ("relative/path", EINVAL, "relative/path");
    assert_refused ("", EINVAL, "");
    memset (path, 'a', sizeof (path));
    path[0] = '/';
    path[sizeof (path) - 1] = '\0';
    assert_refused (path, ENAMETOOLONG, "/aaa");
}

static void a_file_of_one_that_is_not_root_is_refused (void **state)
{
    char path[4096];
    struct hk_error err;

    (void)state;
    snprintf (path, sizeof (path), "%s", "/tmp/hk-trust-XXXXXX");
    close (mkstemp (path));
    assert_int_equal (hk_trust_check (path, &err), -1);
    assert_int_equal (errno, EPERM);
    unlink (path);
}

int main (void)
{
    const struct CMUnitTest as_root[] = {
        cmocka_unit_test (files_of_root_are_trusted),
        cmocka_unit_test (files_that_others_may_write_are_refused),
        cmocka_unit_test (files_of_others_are_refused),
        cmocka_unit_test (a_folder_above_counts_too),
        cmocka_unit_test (links_are_followed_and_checked),
        cmocka_unit_test (a_link_of_another_is_refused),
        cmocka_unit_test (links_without_end_are_refused),
        cmocka_unit_test (what_is_missing_is_said),
    };
    const struct CMUnitTest as_user[] = {
        cmocka_unit_test (a_file_of_one_that_is_not_root_is_refused),
    };

    if (geteuid () == 0)
        return cmocka_run_group_tests_name (
            "trust", as_root, set_up, tear_down);
    return cmocka_run_group_tests_name ("trust", as_user, NULL, NULL);
}

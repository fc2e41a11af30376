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

static void make_file (const char *name, mode_t mode)
{
    int fd = open (folder_at (name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    assert_true (fd >= 0);
    assert_int_equal (fchmod (fd, mode), 0);
    close (fd);
}

static void make_folder (const char *name, mode_t mode)
{
    assert_int_equal (mkdir (folder_at (name), 0700), 0);
    assert_int_equal (chmod (folder_at (name), mode), 0);
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
    assert_trusted (folder_at ("plain"));
    assert_trusted (folder_at ("script"));
    assert_trusted (folder_at ("sub"));
    assert_trusted (folder_at ("sub/"));
    assert_trusted (folder_at ("sub/script"));
    assert_trusted (folder_at ("sub/.././/sub/script"));
    assert_trusted ("/");
    assert_trusted ("/../..");
}

static void files_that_others_may_write_are_refused (void **state)
{
    char want[5000];

    (void)state;
    make_file ("group", 0664);
    make_file ("world", 0646);
    assert_refused (folder_at ("group"), EPERM, folder_at ("group"));
    assert_refused (folder_at ("world"), EPERM, folder_at ("world"));
    snprintf (want,
              sizeof (want),
              "%s may be written by others than root (mode 0664)",
              folder_at ("group"));
    assert_refused (folder_at ("group"), EPERM, want);
}

static void files_of_others_are_refused (void **state)
{
    char want[5000];

    (void)state;
    make_file ("theirs", 0600);
    assert_int_equal (chown (folder_at ("theirs"), 4711, 0), 0);
    snprintf (want,
              sizeof (want),
              "%s belongs to user id 4711, not to root",
              folder_at ("theirs"));
    assert_refused (folder_at ("theirs"), EPERM, want);
}

static void a_folder_above_counts_too (void **state)
{
    (void)state;
    make_folder ("open", 0777);
    make_folder ("open/in", 0755);
    make_file ("open/in/script", 0755);
    assert_refused (folder_at ("open/in/script"), EPERM, folder_at ("open"));
    make_folder ("sticky", 01777);
    make_file ("sticky/script", 0755);
    assert_refused (folder_at ("sticky/script"), EPERM, folder_at ("sticky"));
    make_folder ("user", 0755);
    make_file ("user/script", 0755);
    assert_int_equal (chown (folder_at ("user"), 4711, 0), 0);
    assert_refused (folder_at ("user/script"), EPERM, folder_at ("user"));
    assert_refused (folder_at ("user/none"), EPERM, folder_at ("user"));
    assert_refused (folder_at ("user/../plain"), EPERM, folder_at ("user"));
}

static void links_are_followed_and_checked (void **state)
{
    (void)state;
    make_file ("target", 0755);
    make_folder ("d1", 0755);
    make_file ("d1/target", 0755);
    make_folder ("d2", 0777);
    make_file ("d2/target", 0755);
    assert_int_equal (symlink ("target", folder_at ("relative")), 0);
    assert_int_equal (symlink ("../target", folder_at ("d1/up")), 0);
    assert_int_equal (symlink (folder_at ("d1/target"), folder_at ("absolute")),
                      0);
    assert_int_equal (symlink ("d1", folder_at ("folder")), 0);
    assert_int_equal (symlink ("relative", folder_at ("chain")), 0);
    assert_int_equal (symlink ("d2/target", folder_at ("bad")), 0);
    assert_trusted (folder_at ("relative"));
    assert_trusted (folder_at ("d1/up"));
    assert_trusted (folder_at ("absolute"));
    assert_trusted (folder_at ("folder"));
    assert_trusted (folder_at ("folder/"));
    assert_trusted (folder_at ("folder/target"));
    assert_trusted (folder_at ("folder/../target"));
    assert_trusted (folder_at ("chain"));
    assert_refused (folder_at ("bad"), EPERM, folder_at ("d2"));
    assert_refused (folder_at ("relative/"), ENOTDIR, folder_at ("target"));
}

static void a_link_of_another_is_refused (void **state)
{
    (void)state;
    assert_int_equal (symlink ("target", folder_at ("their-link")), 0);
    assert_int_equal (lchown (folder_at ("their-link"), 4711, 0), 0);
    assert_refused (folder_at ("their-link"), EPERM, folder_at ("their-link"));
}

static void links_without_end_are_refused (void **state)
{
    (void)state;
    assert_int_equal (symlink ("ring-b", folder_at ("ring-a")), 0);
    assert_int_equal (symlink ("ring-a", folder_at ("ring-b")), 0);
    assert_refused (folder_at ("ring-a"), ELOOP, folder_at ("ring-"));
}

static void what_is_missing_is_said (void **state)
{
    char path[8192];

    (void)state;
    assert_refused (folder_at ("none"), ENOENT, folder_at ("none"));
    assert_refused (folder_at ("none/x"), ENOENT, folder_at ("none"));
    make_file ("file", 0644);
    assert_refused (folder_at ("file/x"), ENOTDIR, folder_at ("file"));
    assert_int_equal (symlink ("nowhere", folder_at ("dangling")), 0);
    assert_refused (folder_at ("dangling"), ENOENT, folder_at ("nowhere"));
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
            "trust", as_root, folder_set_up, folder_tear_down);
    return cmocka_run_group_tests_name ("trust", as_user, NULL, NULL);
}

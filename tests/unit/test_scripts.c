/* test_scripts.c - which scripts a run is made of */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
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

#include "hkd/scripts.h"
#include "proto/limits.h"
#include "tests/unit/folder.h"

/* FOLDER/lib and FOLDER/etc are the node's libexecdir and sysconfdir. */
static struct hk_conf *conf;

static void put (const char *name, const char *text, mode_t mode)
{
    folder_write (test_folder, name, text);
    assert_int_equal (chmod (folder_at (name), mode), 0);
}

static void make_folder (const char *name)
{
    assert_int_equal (mkdir (folder_at (name), 0755), 0);
}

static int set_up (void **state)
{
    struct hk_error err;

    (void)state;
    if (folder_make (test_folder, sizeof (test_folder)) < 0)
        return -1;
    conf = hk_conf_load (folder_at ("none.conf"), 0, &err);
    if (!conf
        || hk_conf_set (conf, "hkd", "libexecdir", folder_at ("lib"), &err) < 0
        || hk_conf_set (conf, "hkd", "sysconfdir", folder_at ("etc"), &err)
               < 0) {
        fprintf (stderr, "%s\n", err.text);
        return -1;
    }
    make_folder ("lib");
    make_folder ("lib/flux");
    make_folder ("etc");
    make_folder ("etc/flux");
    make_folder ("etc/flux/system");
    return 0;
}

static int tear_down (void **state)
{
    (void)state;
    hk_conf_destroy (conf);
    return folder_remove (test_folder);
}

#define PACKAGE "lib/flux/housekeeping.d"
#define SITE "etc/flux/system/housekeeping"

/* Their names with a blank between, a '*' after those for the shell. */
static void assert_scripts (const char *expected)
{
    struct hkd_scripts scripts;
    struct hk_error err;
    char text[4096] = "";

    if (hkd_scripts_find (conf, &conf->policy, 1000, &scripts, &err) < 0)
        fail_msg ("%s", err.text);
    for (size_t i = 0; i < scripts.count; i++) {
        size_t n = strlen (text);
        snprintf (text + n,
                  sizeof (text) - n,
                  "%s%s%s",
                  n ? " " : "",
                  scripts.list[i].name,
                  scripts.list[i].by_shell ? "*" : "");
        assert_string_equal (strrchr (scripts.list[i].path, '/') + 1,
                             scripts.list[i].name);
    }
    assert_string_equal (text, expected);
    hkd_scripts_fini (&scripts);
}

static void assert_refused (const char *path, const char *why)
{
    struct hkd_scripts scripts;
    struct hk_error err;

    if (hkd_scripts_find (conf, &conf->policy, 1000, &scripts, &err) == 0)
        fail_msg ("was not refused");
    if (!strstr (err.text, path) || !strstr (err.text, why))
        fail_msg ("'%s' says neither %s nor %s", err.text, path, why);
}

static void folders_that_are_missing_have_no_scripts (void **state)
{
    (void)state;
    assert_scripts ("");
    make_folder (PACKAGE);
    make_folder (SITE ".d");
    assert_scripts ("");
}

static void those_of_packages_are_first_and_names_are_in_byte_order (
    void **state)
{
    (void)state;
    make_folder (PACKAGE);
    make_folder (SITE ".d");
    put (PACKAGE "/90-last", "#!/bin/sh\n", 0755);
    put (SITE ".d/b", "#!/bin/sh\n", 0755);
    put (SITE ".d/B", "#!/bin/sh\n", 0755);
    put (SITE ".d/10", "#!/bin/sh\n", 0755);
    put (SITE ".d/9", "#!/bin/sh\n", 0755);
    assert_scripts ("90-last 10 9 B b");
}

static void the_sites_one_script_stands_for_its_folder (void **state)
{
    (void)state;
    make_folder (PACKAGE);
    make_folder (SITE ".d");
    put (PACKAGE "/p", "#!/bin/sh\n", 0755);
    put (SITE ".d/d", "#!/bin/sh\n", 0755);
    put (SITE, "#!/bin/sh\n", 0755);
    assert_scripts ("p housekeeping");
    chmod (folder_at (SITE), 0644);
    assert_scripts ("p d");
}

static void what_is_no_executable_file_is_passed_over (void **state)
{
    (void)state;
    make_folder (SITE ".d");
    make_folder (SITE ".d/folder");
    put (SITE ".d/text", "#!/bin/sh\n", 0644);
    put (SITE ".d/.hidden", "#!/bin/sh\n", 0755);
    put (SITE ".d/x", "#!/bin/sh\n", 0700);
    /* nobody runs it: it may as well be anybody's */
    put (SITE ".d/open", "text", 0666);
    assert_scripts ("x");
}

static void the_shell_runs_what_the_kernel_cannot (void **state)
{
    (void)state;
    make_folder (SITE ".d");
    put (SITE ".d/a", "#!/usr/bin/perl\n", 0755);
    put (SITE ".d/b", "\177ELF\1", 0755);
    put (SITE ".d/c", "echo hello\n", 0755);
    put (SITE ".d/d", "", 0755);
    put (SITE ".d/e", "#", 0755);
    assert_scripts ("a b c* d* e*");
}

static void links_are_followed_if_each_step_is_roots (void **state)
{
    (void)state;
    make_folder (SITE ".d");
    make_folder ("opt");
    put ("opt/x", "#!/bin/sh\n", 0755);
    assert_int_equal (symlink (folder_at ("opt/x"), folder_at (SITE ".d/x")),
                      0);
    assert_scripts ("x");
    chmod (folder_at ("opt"), 0777);
    assert_refused (folder_at ("opt"), "may be written by others");
}

static void a_link_that_leads_nowhere_is_refused (void **state)
{
    (void)state;
    make_folder (SITE ".d");
    assert_int_equal (symlink ("/no/where", folder_at (SITE ".d/x")), 0);
    assert_refused (folder_at (SITE ".d/x"), "No such file");
    unlink (folder_at (SITE ".d/x"));
    assert_int_equal (
        symlink (folder_at (SITE ".d/y"), folder_at (SITE ".d/y")), 0);
    assert_refused (folder_at (SITE ".d/y"), "symbolic links");
    unlink (folder_at (SITE ".d/y"));
    assert_int_equal (symlink ("/no/where", folder_at (SITE)), 0);
    assert_refused (folder_at (SITE), "No such file");
}

static void a_folder_that_leads_nowhere_is_not_a_missing_one (void **state)
{
    (void)state;
    assert_int_equal (symlink ("/no/where", folder_at (PACKAGE)), 0);
    assert_refused ("/no", "No such file");
}

static void what_others_may_write_is_refused (void **state)
{
    (void)state;
    make_folder (SITE ".d");
    put (SITE ".d/a", "#!/bin/sh\n", 0755);
    put (SITE ".d/b", "#!/bin/sh\n", 0775);
    assert_refused (folder_at (SITE ".d/b"), "may be written by others");
    chmod (folder_at (SITE ".d/b"), 0755);
    assert_scripts ("a b");
    assert_int_equal (chown (folder_at (SITE ".d/a"), 4711, 0), 0);
    assert_refused (folder_at (SITE ".d/a"), "4711");
    unlink (folder_at (SITE ".d/a"));
    /* also where there is nothing in it yet */
    unlink (folder_at (SITE ".d/b"));
    chmod (folder_at (SITE ".d"), 0775);
    assert_refused (folder_at (SITE ".d"), "may be written by others");
    chmod (folder_at (SITE ".d"), 0755);
    chmod (folder_at ("etc/flux"), 01777);
    assert_refused (folder_at ("etc/flux"), "may be written by others");
}

static void a_file_in_the_place_of_a_folder_is_refused (void **state)
{
    (void)state;
    put (PACKAGE, "#!/bin/sh\n", 0755);
    assert_refused (folder_at (PACKAGE), "Not a directory");
}

static void too_many_are_refused (void **state)
{
    char name[64];

    (void)state;
    make_folder (SITE ".d");
    for (int i = 0; i < HK_SCRIPTS_LIMIT; i++) {
        snprintf (name, sizeof (name), SITE ".d/%04d", i);
        put (name, "#!/bin/sh\n", 0755);
    }
    put (SITE ".d/0000", "#!/bin/sh\n", 0644);
    {
        struct hkd_scripts scripts;
        assert_int_equal (
            hkd_scripts_find (conf, &conf->policy, 1, &scripts, NULL), 0);
        assert_int_equal (scripts.count, HK_SCRIPTS_LIMIT - 1);
        hkd_scripts_fini (&scripts);
    }
    put (SITE ".d/0000", "#!/bin/sh\n", 0755);
    put (SITE ".d/9999", "#!/bin/sh\n", 0755);
    assert_refused (folder_at (SITE ".d/9999"), "too many");
}

static void roots_jobs_are_refused_unless_allowed (void **state)
{
    struct hk_policy policy = conf->policy;
    struct hkd_scripts scripts;
    struct hk_error err;

    (void)state;
    assert_int_equal (hkd_scripts_find (conf, &policy, 0, &scripts, &err), -1);
    assert_int_equal (errno, EPERM);
    assert_non_null (strstr (err.text, "allow-userid-0"));
    policy.allow_userid_0 = true;
    assert_int_equal (hkd_scripts_find (conf, &policy, 0, &scripts, &err), 0);
    hkd_scripts_fini (&scripts);
}

int main (void)
{
#define T(f) cmocka_unit_test_setup_teardown (f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T (folders_that_are_missing_have_no_scripts),
        T (those_of_packages_are_first_and_names_are_in_byte_order),
        T (the_sites_one_script_stands_for_its_folder),
        T (what_is_no_executable_file_is_passed_over),
        T (the_shell_runs_what_the_kernel_cannot),
        T (links_are_followed_if_each_step_is_roots),
        T (a_link_that_leads_nowhere_is_refused),
        T (a_folder_that_leads_nowhere_is_not_a_missing_one),
        T (what_others_may_write_is_refused),
        T (a_file_in_the_place_of_a_folder_is_refused),
        T (too_many_are_refused),
        T (roots_jobs_are_refused_unless_allowed),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}

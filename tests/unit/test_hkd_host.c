/* test_hkd_host.c - who this node is */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "hkd/host.h"
#include "tests/unit/folder.h"

/* The full name of node1 by that text; NULL: there is none. */
static void assert_full (const char *hosts, const char *expected)
{
    char path[4096], full[HK_HOST_NAME_BYTES] = "";
    int rc;

    folder_write (test_folder, "hosts", hosts);
    snprintf (path, sizeof (path), "%s/hosts", test_folder);
    rc = hkd_host_full_name (path, "node1", full);
    assert_int_equal (rc, expected ? 0 : -1);
    if (expected)
        assert_string_equal (full, expected);
}

static void the_full_name_stands_in_the_line_that_names_the_host (void **state)
{
    (void)state;
    assert_full ("127.0.0.1 localhost\n127.0.1.1 node1.site.org node1\n",
                 "node1.site.org");
    assert_full ("10.0.0.1\tnode1\tnode1.a.b other\n", "node1.a.b");
    assert_full ("10.0.0.1 node1 node1.b", "node1.b");
}

static void other_lines_do_not_count (void **state)
{
    (void)state;
    assert_full ("", NULL);
    assert_full ("10.0.0.1 node1\n", NULL);
    assert_full ("10.0.0.1 node10.site.org node10\n", NULL);
    assert_full ("10.0.0.1 node1.site.org\n", NULL);
    assert_full ("# 10.0.0.1 node1.site.org node1\n", NULL);
    assert_full ("10.0.0.1 node1 # node1.site.org\n", NULL);
    assert_full ("node1.site.org node1\n", NULL);
    assert_full ("10.0.0.1 node1. node1\n", NULL);
}

static void no_file_is_no_name (void **state)
{
    char full[HK_HOST_NAME_BYTES];

    (void)state;
    assert_int_equal (hkd_host_full_name ("/nonexistent", "node1", full), -1);
}

static void the_option_goes_before_the_machines_name (void **state)
{
    struct hk_conf *conf = hk_conf_load ("/nonexistent/hk.conf", 0, NULL);
    char machine[HK_HOST_NAME_BYTES];
    struct hkd_host host;
    struct hk_error err;

    (void)state;
    assert_non_null (conf);
    if (hkd_host_read (conf, &host, &err) < 0)
        fail_msg ("%s", err.text);
    assert_int_equal (gethostname (machine, sizeof (machine)), 0);
    machine[strcspn (machine, ".")] = '\0';
    assert_string_equal (host.short_name, machine);
    assert_int_equal (strlen (host.boot_id), 32);
    assert_int_equal (strspn (host.boot_id, "0123456789abcdef"), 32);
    assert_int_equal (hk_conf_set (conf, "hkd", "host", "gpu7.x.y", NULL), 0);
    assert_int_equal (hkd_host_read (conf, &host, &err), 0);
    assert_string_equal (host.name, "gpu7.x.y");
    assert_string_equal (host.short_name, "gpu7");
    hk_conf_destroy (conf);
}

int main (void)
{
#define T(f) \
    cmocka_unit_test_setup_teardown (f, folder_set_up, folder_tear_down)
    const struct CMUnitTest tests[] = {
        T (the_full_name_stands_in_the_line_that_names_the_host),
        T (other_lines_do_not_count),
        T (no_file_is_no_name),
        T (the_option_goes_before_the_machines_name),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}

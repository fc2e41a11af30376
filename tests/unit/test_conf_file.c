/* test_conf_file.c - the files of the configuration */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "proto/text.h"
#include "tests/unit/alloc.h"
#include "tests/unit/cases.h"
#include "tests/unit/conf_cases.h"
#include "tests/unit/folder.h"

/* Texts begin with the file's name, without its folder. */
static void run_invalid (const char *path, const char *text, const char *want)
{
    struct hk_error err = { "" };
    size_t folder_len = (size_t)(strrchr (path, '/') + 1 - path);

    (void)text;
    assert_null (hk_conf_load (path, 0, &err));
    assert_int_equal (errno, EINVAL);
    assert_memory_equal (err.text, path, folder_len);
    case_equal (path, err.text + folder_len, want);
}

static void valid_files_are_read (void **state)
{
    (void)state;
    cases_run ("conf/valid", "conf", "out", conf_assert_changes);
}

static void invalid_files_are_refused_with_file_and_line (void **state)
{
    (void)state;
    cases_run ("conf/invalid", "conf", "err", run_invalid);
}

static void drop_ins_are_read_in_order_and_later_wins (void **state)
{
    struct hk_conf *conf;

    (void)state;
    folder_write (test_folder,
                  "order.conf",
                  "[link]\nnode-port = 1\nclient-port = 2\n"
                  "[housekeeping.gpu]\nhosts = gpu1\n");
    assert_int_equal (mkdir (folder_at ("order.conf.d"), 0755), 0);
    folder_write (
        test_folder, "order.conf.d/10-a.conf", "[link]\nnode-port = 11\n");
    folder_write (test_folder,
                  "order.conf.d/20-b.conf",
                  "[link]\nnode-port = 12\n"
                  "[housekeeping]\ntimeout = 10m\n"
                  "[housekeeping.gpu]\nhosts = gpu2\nkill-grace = 1s\n");
    folder_write (
        test_folder, "order.conf.d/05-c.conf", "[link]\nnode-port = 13\n");
    folder_write (test_folder, "order.conf.d/30.conf.bak", "not read\n");
    folder_write (test_folder, "order.conf.d/.hidden.conf", "not read\n");
    conf = conf_load (folder_at ("order.conf"), 0);
    assert_int_equal (conf->node_port, 12);
    assert_int_equal (conf->client_port, 2);
    conf_assert_value (conf, "housekeeping.gpu", "hosts", "gpu2");
    conf_assert_value (conf, "housekeeping.gpu", "timeout", "10m");
    conf_assert_value (conf, "housekeeping.gpu", "kill-grace", "1s");
    hk_conf_destroy (conf);
    unlink (folder_at ("order.conf"));
    conf = conf_load (folder_at ("order.conf"), 0);
    assert_int_equal (conf->node_port, 12);
    assert_int_equal (conf->client_port, 8766);
    hk_conf_destroy (conf);
}

static void assert_unloadable (const char *path, int flags, const char *end)
{
    struct hk_error err = { "" };
    struct hk_conf *conf = hk_conf_load (path, flags, &err);

    assert_null (conf);
    if (!strstr (err.text, end))
        fail_msg ("'%s', expected %s", err.text, end);
}

static void an_error_in_a_drop_in_names_it (void **state)
{
    (void)state;
    folder_write (test_folder, "bad.conf", "");
    assert_int_equal (mkdir (folder_at ("bad.conf.d"), 0755), 0);
    folder_write (
        test_folder, "bad.conf.d/1.conf", "\n[link]\nnode-port = 0\n");
    assert_unloadable (folder_at ("bad.conf"),
                       0,
                       "bad.conf.d/1.conf:3: [link] node-port: expected "
                       "number from 1 to 65535, got '0'");
}

static void what_cannot_be_read_is_an_error (void **state)
{
    (void)state;
    assert_int_equal (mkdir (folder_at ("folder.conf"), 0755), 0);
    assert_unloadable (folder_at ("folder.conf"), 0, "expected a regular file");
    assert_int_equal (mkfifo (folder_at ("fifo.conf"), 0600), 0);
    assert_unloadable (folder_at ("fifo.conf"), 0, "expected a regular file");
    assert_int_equal (symlink ("nowhere", folder_at ("dangling.conf")), 0);
    assert_unloadable (folder_at ("dangling.conf"), 0, "No such file");
    folder_write (test_folder, "plain.conf", "");
    folder_write (test_folder, "plain.conf.d", "");
    assert_unloadable (folder_at ("plain.conf"), 0, "Not a directory");
}

static void lines_have_a_limit (void **state)
{
    struct hk_text text = { 0 };
    struct hk_conf *conf;
    char *s;

    (void)state;
    hk_text_put (&text, "[coordinator]\n# ");
    for (int i = 0; i < 8186; i++)
        hk_text_put (&text, "x");
    hk_text_put (&text, "\nstate-dir = /x\n");
    s = hk_text_take (&text);
    folder_write (test_folder, "long.conf", s);
    conf = conf_load (folder_at ("long.conf"), 0);
    assert_string_equal (conf->state_dir, "/x");
    hk_conf_destroy (conf);
    free (s);
    hk_text_put (&text, "[coordinator]\n\n# ");
    for (int i = 0; i < 9000; i++)
        hk_text_put (&text, "x");
    s = hk_text_take (&text);
    folder_write (test_folder, "long.conf", s);
    free (s);
    assert_unloadable (folder_at ("long.conf"),
                       0,
                       "long.conf:3: expected a line of less than 8190 bytes");
}

static void a_host_list_may_be_a_thousand_names_long (void **state)
{
    struct hk_text text = { 0 };
    struct hk_conf *conf;
    char *s;

    (void)state;
    hk_text_put (&text, "[coordinator]\nhosts = a0");
    for (int i = 1; i < 1000; i++) {
        hk_text_put (&text, ",a");
        hk_text_put_number (&text, (uint64_t)i * 2, 1);
    }
    s = hk_text_take (&text);
    folder_write (test_folder, "hosts.conf", s);
    free (s);
    conf = conf_load (folder_at ("hosts.conf"), 0);
    assert_int_equal (hk_hostlist_count (conf->hosts), 1000);
    assert_true (hk_conf_covers (conf, "a1998"));
    hk_conf_destroy (conf);
}

static void with_trust_files_must_be_roots (void **state)
{
    struct hk_conf *conf;

    (void)state;
    folder_write (test_folder, "trust.conf", "");
    assert_int_equal (chmod (folder_at ("trust.conf"), 0644), 0);
    if (geteuid () != 0) {
        assert_unloadable (folder_at ("trust.conf"), HK_CONF_TRUST, "");
        return;
    }
    hk_conf_destroy (conf_load (folder_at ("trust.conf"), HK_CONF_TRUST));
    hk_conf_destroy (conf_load (folder_at ("none.conf"), HK_CONF_TRUST));
    assert_int_equal (chmod (folder_at ("trust.conf"), 0664), 0);
    assert_unloadable (
        folder_at ("trust.conf"), HK_CONF_TRUST, "written by others");
    conf = conf_load (folder_at ("trust.conf"), 0);
    hk_conf_destroy (conf);
    assert_int_equal (chmod (folder_at ("trust.conf"), 0644), 0);
    assert_int_equal (mkdir (folder_at ("trust.conf.d"), 0755), 0);
    folder_write (test_folder, "trust.conf.d/a.conf", "");
    assert_int_equal (chmod (folder_at ("trust.conf.d/a.conf"), 0644), 0);
    hk_conf_destroy (conf_load (folder_at ("trust.conf"), HK_CONF_TRUST));
    assert_int_equal (chown (folder_at ("trust.conf.d/a.conf"), 4711, 0), 0);
    assert_unloadable (folder_at ("trust.conf"), HK_CONF_TRUST, "user id 4711");
    assert_int_equal (chown (folder_at ("trust.conf.d/a.conf"), 0, 0), 0);
    assert_int_equal (chmod (folder_at ("trust.conf.d"), 0777), 0);
    assert_unloadable (
        folder_at ("trust.conf"), HK_CONF_TRUST, "written by others");
}

static void each_allocation_may_fail (void **state)
{
    struct hk_conf *conf = NULL;
    struct hk_error err;
    char *value = NULL;
    long n = 0;

    (void)state;
    folder_write (test_folder,
                  "alloc.conf",
                  "[link]\nhead = a,b\nmunge-socket = /x\n"
                  "[coordinator]\nadmin-uids = 1,root\nhosts = a[1-3]\n"
                  "[housekeeping.gpu]\nhosts = gpu[1-3]\ntimeout = 2h\n");
    do {
        assert_null (conf);
        alloc_fail_at (++n);
        conf = hk_conf_load (folder_at ("alloc.conf"), 0, &err);
        if (!conf && errno != ENOMEM)
            fail_msg ("allocation %ld: errno %d: %s", n, errno, err.text);
    } while (alloc_did_fail ());
    assert_true (n > 30);
    n = 0;
    do {
        assert_null (value);
        alloc_fail_at (++n);
        value = hk_conf_get (conf, "link", "head");
        if (!value)
            assert_int_equal (errno, ENOMEM);
    } while (alloc_did_fail ());
    assert_string_equal (value, "a,b");
    free (value);
    hk_conf_destroy (conf);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (valid_files_are_read),
        cmocka_unit_test (invalid_files_are_refused_with_file_and_line),
        cmocka_unit_test (drop_ins_are_read_in_order_and_later_wins),
        cmocka_unit_test (an_error_in_a_drop_in_names_it),
        cmocka_unit_test (what_cannot_be_read_is_an_error),
        cmocka_unit_test (lines_have_a_limit),
        cmocka_unit_test (a_host_list_may_be_a_thousand_names_long),
        cmocka_unit_test (with_trust_files_must_be_roots),
        cmocka_unit_test (each_allocation_may_fail),
    };

    return cmocka_run_group_tests_name (
        "conf-file", tests, folder_set_up, folder_tear_down);
}

/* test_conf.c - the configuration: files, options, classes, example, manual */
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

#include "proto/conf.h"
#include "proto/duration.h"
#include "proto/text.h"
#include "tests/unit/alloc.h"
#include "tests/unit/cases.h"
#include "tests/unit/folder.h"

static char folder[64];

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

static const char *at (const char *name)
{
    static char path[4096];

    snprintf (path, sizeof (path), "%s/%s", folder, name);
    return path;
}

static struct hk_conf *load (const char *path, int flags)
{
    struct hk_error err = { "" };
    struct hk_conf *conf = hk_conf_load (path, flags, &err);

    if (!conf)
        fail_msg ("%s: %s", path, err.text);
    return conf;
}

static struct hk_conf *defaults (void)
{
    return load ("/nonexistent/hk.conf", 0);
}

static void assert_value (const struct hk_conf *conf,
                          const char *section,
                          const char *name,
                          const char *want)
{
    char *value = hk_conf_get (conf, section, name);

    if (!value || strcmp (value, want) != 0)
        fail_msg ("[%s] %s is '%s', expected '%s'",
                  section,
                  name,
                  value ? value : "NULL",
                  want);
    free (value);
}

/* The options that are not as `base` has them, a line each. */
static void put_changes (struct hk_text *text,
                         const struct hk_conf *conf,
                         const struct hk_conf *base,
                         const char *section,
                         const char *base_section)
{
    const struct hk_conf_option *options;
    int count = hk_conf_options (&options);

    for (int i = 0; i < count; i++) {
        char *value;
        char *preset;

        if (strcmp (options[i].section, base_section) != 0)
            continue;
        value = hk_conf_get (conf, section, options[i].name);
        preset = hk_conf_get (base, base_section, options[i].name);
        assert_non_null (value);
        assert_non_null (preset);
        if (strcmp (value, preset) != 0) {
            hk_text_put (text, "[");
            hk_text_put (text, section);
            hk_text_put (text, "] ");
            hk_text_put (text, options[i].name);
            hk_text_put (text, " = ");
            hk_text_put (text, value);
            hk_text_put (text, "\n");
        }
        free (value);
        free (preset);
    }
}

static void put_class (struct hk_text *text,
                       const struct hk_conf *conf,
                       const struct hk_conf_class *class)
{
    char section[128];
    char *hosts;

    snprintf (section, sizeof (section), "housekeeping.%s", class->name);
    hosts = hk_conf_get (conf, section, "hosts");
    hk_text_put (text, "[");
    hk_text_put (text, section);
    hk_text_put (text, "] hosts = ");
    hk_text_put (text, hosts);
    hk_text_put (text, "\n");
    free (hosts);
    put_changes (text, conf, conf, section, "housekeeping");
}

static void run_valid (const char *path, const char *text, const char *want)
{
    static const char *const sections[] = {
        "link", "hkd", "coordinator", "housekeeping"
    };
    struct hk_conf *conf = load (path, 0);
    struct hk_conf *base = defaults ();
    struct hk_text changes = { 0 };
    char *got;

    (void)text;
    for (int i = 0; i < 4; i++)
        put_changes (&changes, conf, base, sections[i], sections[i]);
    for (int i = 0; i < conf->classes_count; i++)
        put_class (&changes, conf, &conf->classes[i]);
    got = hk_text_take (&changes);
    if (got[0])
        got[strlen (got) - 1] = '\0';
    case_equal (path, got, want);
    free (got);
    hk_conf_destroy (conf);
    hk_conf_destroy (base);
}

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
    cases_run ("conf/valid", "conf", "out", run_valid);
}

static void invalid_files_are_refused_with_file_and_line (void **state)
{
    (void)state;
    cases_run ("conf/invalid", "conf", "err", run_invalid);
}

static void no_file_gives_the_defaults (void **state)
{
    struct hk_conf *conf = defaults ();

    (void)state;
    assert_string_equal (hk_hostlist_nth (conf->head, 0), "flux-hk-head");
    assert_string_equal (conf->bind, "*");
    assert_int_equal (conf->node_port, 8765);
    assert_int_equal (conf->client_port, 8766);
    assert_int_equal (conf->key_port, 8767);
    assert_null (conf->munge_socket);
    assert_int_equal (conf->heartbeat_ms, 20000);
    assert_int_equal (conf->reconcile_ms, 60000);
    assert_int_equal (conf->node_connections, 20000);
    assert_int_equal (conf->client_connections, 512);
    assert_null (conf->host);
    assert_null (conf->hosts);
    assert_int_equal (conf->admin_uids_count, 0);
    assert_true (conf->guest_access);
    assert_true (conf->history_keep_ms == INT64_C (90) * 86400000);
    assert_int_equal (conf->policy.release_after_ms, 0);
    assert_int_equal (conf->policy.free_window_ms, 50);
    assert_int_equal (conf->policy.timeout_ms, 3600000);
    assert_int_equal (conf->policy.kill_grace_ms, 30000);
    assert_int_equal (conf->policy.give_up_ms, 300000);
    assert_int_equal (conf->policy.lost_after_ms, 300000);
    assert_int_equal (conf->policy.on_failure, HK_ON_FAILURE_DRAIN);
    assert_int_equal (conf->policy.on_reboot, HK_ON_REBOOT_RERUN);
    assert_int_equal (conf->policy.per_node, HK_PER_NODE_SERIAL);
    assert_int_equal (conf->policy.no_scripts, HK_NO_SCRIPTS_SUCCESS);
    assert_false (conf->policy.exit_on_first_error);
    assert_false (conf->policy.allow_userid_0);
    hk_conf_destroy (conf);
    hk_conf_destroy (NULL);
}

static void each_preset_is_the_default (void **state)
{
    const struct hk_conf_option *options;
    int count = hk_conf_options (&options);
    struct hk_conf *conf = defaults ();
    struct hk_conf *set = defaults ();

    (void)state;
    for (int i = 0; i < count; i++) {
        struct hk_error err = { "" };
        char *value;

        if (!strcmp (options[i].section, "housekeeping.NAME"))
            continue;
        if (hk_conf_set (set,
                         options[i].section,
                         options[i].name,
                         options[i].preset,
                         &err)
            < 0)
            fail_msg ("%s", err.text);
        value = hk_conf_get (conf, options[i].section, options[i].name);
        assert_value (set, options[i].section, options[i].name, value);
        /* what get says can be set again */
        assert_int_equal (
            hk_conf_set (set, options[i].section, options[i].name, value, NULL),
            0);
        free (value);
    }
    hk_conf_destroy (conf);
    hk_conf_destroy (set);
}

static void the_words_are_in_the_order_of_their_enums (void **state)
{
    struct hk_conf *conf = defaults ();

    (void)state;
    hk_conf_set (conf, "housekeeping", "on-failure", "release", NULL);
    hk_conf_set (conf, "housekeeping", "on-reboot", "drain", NULL);
    hk_conf_set (conf, "housekeeping", "per-node", "parallel", NULL);
    hk_conf_set (conf, "housekeeping", "no-scripts", "fail", NULL);
    assert_int_equal (conf->policy.on_failure, HK_ON_FAILURE_RELEASE);
    assert_int_equal (conf->policy.on_reboot, HK_ON_REBOOT_DRAIN);
    assert_int_equal (conf->policy.per_node, HK_PER_NODE_PARALLEL);
    assert_int_equal (conf->policy.no_scripts, HK_NO_SCRIPTS_FAIL);
    hk_conf_set (conf, "housekeeping", "on-failure", "hold", NULL);
    assert_int_equal (conf->policy.on_failure, HK_ON_FAILURE_HOLD);
    hk_conf_destroy (conf);
}

static void a_refused_value_changes_nothing (void **state)
{
    struct hk_conf *conf = defaults ();
    struct hk_error err;

    (void)state;
    assert_int_equal (hk_conf_set (conf, "link", "head", "a,b:1", &err), -1);
    assert_string_equal (err.text,
                         "[link] head: expected host names, IPv4, or IPv6 in "
                         "brackets, at most 16 with commas between, without a "
                         "port, got 'a,b:1'");
    assert_value (conf, "link", "head", "flux-hk-head");
    assert_int_equal (
        hk_conf_set (conf, "coordinator", "admin-uids", "1,x y", NULL), -1);
    assert_value (conf, "coordinator", "admin-uids", "");
    assert_int_equal (hk_conf_set (conf, "coordinator", "hosts", "a[", NULL),
                      -1);
    assert_null (conf->hosts);
    assert_int_equal (hk_conf_set (conf, "link", "none", "1", &err), -1);
    assert_string_equal (err.text, "[link] has no option none");
    assert_int_equal (hk_conf_set (conf, "none", "head", "1", &err), -1);
    assert_int_equal (
        hk_conf_set (conf, "housekeeping.a.b", "timeout", "1", NULL), -1);
    assert_int_equal (conf->classes_count, 0);
    assert_null (hk_conf_get (conf, "link", "none"));
    assert_int_equal (errno, ENOENT);
    assert_null (hk_conf_get (conf, "housekeeping.a", "timeout"));
    hk_conf_destroy (conf);
}

static void a_class_keeps_its_own_and_follows_the_rest (void **state)
{
    struct hk_conf *conf = defaults ();
    struct hk_error err;

    (void)state;
    hk_conf_set (conf, "housekeeping.gpu", "timeout", "2h", NULL);
    assert_int_equal (hk_conf_check (conf, &err), -1);
    assert_string_equal (
        err.text, "[housekeeping.gpu] hosts: expected a host list, got none");
    hk_conf_set (conf, "housekeeping.gpu", "hosts", "gpu[1-4]", NULL);
    hk_conf_set (conf, "housekeeping.big", "hosts", "gpu4,big1", NULL);
    assert_int_equal (hk_conf_check (conf, &err), 0);
    hk_conf_set (conf, "housekeeping", "timeout", "3h", NULL);
    hk_conf_set (conf, "housekeeping", "give-up", "1m", NULL);
    assert_value (conf, "housekeeping.gpu", "timeout", "2h");
    assert_value (conf, "housekeeping.gpu", "give-up", "1m");
    assert_value (conf, "housekeeping.big", "timeout", "3h");
    assert_int_equal (hk_conf_policy (conf, "gpu4")->timeout_ms, 7200000);
    assert_int_equal (hk_conf_policy (conf, "gpu4.site")->timeout_ms, 7200000);
    assert_int_equal (hk_conf_policy (conf, "big1")->give_up_ms, 60000);
    assert_ptr_equal (hk_conf_policy (conf, "other"), &conf->policy);
    hk_conf_destroy (conf);
}

static void hosts_says_where_we_act (void **state)
{
    struct hk_conf *conf = defaults ();

    (void)state;
    assert_true (hk_conf_covers (conf, "any"));
    hk_conf_set (conf, "coordinator", "hosts", "node[1-3]", NULL);
    assert_true (hk_conf_covers (conf, "node3"));
    assert_true (hk_conf_covers (conf, "node3.site"));
    assert_false (hk_conf_covers (conf, "node4"));
    hk_conf_set (conf, "coordinator", "hosts", "", NULL);
    assert_true (hk_conf_covers (conf, "node4"));
    hk_conf_destroy (conf);
}

static void drop_ins_are_read_in_order_and_later_wins (void **state)
{
    struct hk_conf *conf;

    (void)state;
    folder_write (folder,
                  "order.conf",
                  "[link]\nnode-port = 1\nclient-port = 2\n"
                  "[housekeeping.gpu]\nhosts = gpu1\n");
    assert_int_equal (mkdir (at ("order.conf.d"), 0755), 0);
    folder_write (folder, "order.conf.d/10-a.conf", "[link]\nnode-port = 11\n");
    folder_write (folder,
                  "order.conf.d/20-b.conf",
                  "[link]\nnode-port = 12\n"
                  "[housekeeping]\ntimeout = 10m\n"
                  "[housekeeping.gpu]\nhosts = gpu2\nkill-grace = 1s\n");
    folder_write (folder, "order.conf.d/05-c.conf", "[link]\nnode-port = 13\n");
    folder_write (folder, "order.conf.d/30.conf.bak", "not read\n");
    folder_write (folder, "order.conf.d/.hidden.conf", "not read\n");
    conf = load (at ("order.conf"), 0);
    assert_int_equal (conf->node_port, 12);
    assert_int_equal (conf->client_port, 2);
    assert_value (conf, "housekeeping.gpu", "hosts", "gpu2");
    assert_value (conf, "housekeeping.gpu", "timeout", "10m");
    assert_value (conf, "housekeeping.gpu", "kill-grace", "1s");
    hk_conf_destroy (conf);
    unlink (at ("order.conf"));
    conf = load (at ("order.conf"), 0);
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
    folder_write (folder, "bad.conf", "");
    assert_int_equal (mkdir (at ("bad.conf.d"), 0755), 0);
    folder_write (folder, "bad.conf.d/1.conf", "\n[link]\nnode-port = 0\n");
    assert_unloadable (at ("bad.conf"),
                       0,
                       "bad.conf.d/1.conf:3: [link] node-port: expected "
                       "number from 1 to 65535, got '0'");
}

static void what_cannot_be_read_is_an_error (void **state)
{
    (void)state;
    assert_int_equal (mkdir (at ("folder.conf"), 0755), 0);
    assert_unloadable (at ("folder.conf"), 0, "expected a regular file");
    assert_int_equal (mkfifo (at ("fifo.conf"), 0600), 0);
    assert_unloadable (at ("fifo.conf"), 0, "expected a regular file");
    assert_int_equal (symlink ("nowhere", at ("dangling.conf")), 0);
    assert_unloadable (at ("dangling.conf"), 0, "No such file");
    folder_write (folder, "plain.conf", "");
    folder_write (folder, "plain.conf.d", "");
    assert_unloadable (at ("plain.conf"), 0, "Not a directory");
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
    folder_write (folder, "long.conf", s);
    conf = load (at ("long.conf"), 0);
    assert_string_equal (conf->state_dir, "/x");
    hk_conf_destroy (conf);
    free (s);
    hk_text_put (&text, "[coordinator]\n\n# ");
    for (int i = 0; i < 9000; i++)
        hk_text_put (&text, "x");
    s = hk_text_take (&text);
    folder_write (folder, "long.conf", s);
    free (s);
    assert_unloadable (at ("long.conf"),
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
    folder_write (folder, "hosts.conf", s);
    free (s);
    conf = load (at ("hosts.conf"), 0);
    assert_int_equal (hk_hostlist_count (conf->hosts), 1000);
    assert_true (hk_conf_covers (conf, "a1998"));
    hk_conf_destroy (conf);
}

static void with_trust_files_must_be_roots (void **state)
{
    struct hk_conf *conf;

    (void)state;
    folder_write (folder, "trust.conf", "");
    assert_int_equal (chmod (at ("trust.conf"), 0644), 0);
    if (geteuid () != 0) {
        assert_unloadable (at ("trust.conf"), HK_CONF_TRUST, "");
        return;
    }
    hk_conf_destroy (load (at ("trust.conf"), HK_CONF_TRUST));
    hk_conf_destroy (load (at ("none.conf"), HK_CONF_TRUST));
    assert_int_equal (chmod (at ("trust.conf"), 0664), 0);
    assert_unloadable (at ("trust.conf"), HK_CONF_TRUST, "written by others");
    conf = load (at ("trust.conf"), 0);
    hk_conf_destroy (conf);
    assert_int_equal (chmod (at ("trust.conf"), 0644), 0);
    assert_int_equal (mkdir (at ("trust.conf.d"), 0755), 0);
    folder_write (folder, "trust.conf.d/a.conf", "");
    assert_int_equal (chmod (at ("trust.conf.d/a.conf"), 0644), 0);
    hk_conf_destroy (load (at ("trust.conf"), HK_CONF_TRUST));
    assert_int_equal (chown (at ("trust.conf.d/a.conf"), 4711, 0), 0);
    assert_unloadable (at ("trust.conf"), HK_CONF_TRUST, "user id 4711");
    assert_int_equal (chown (at ("trust.conf.d/a.conf"), 0, 0), 0);
    assert_int_equal (chmod (at ("trust.conf.d"), 0777), 0);
    assert_unloadable (at ("trust.conf"), HK_CONF_TRUST, "written by others");
}

static char *read_file (const char *path)
{
    FILE *f = fopen (path, "re");
    char *text = NULL;
    size_t size = 0;

    if (!f)
        fail_msg ("%s: cannot be read", path);
    assert_true (getdelim (&text, &size, EOF, f) > 0);
    fclose (f);
    return text;
}

static void the_example_is_what_is_installed (void **state)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream (&text, &size);
    char *installed = read_file ("systemd/hk.conf");

    (void)state;
    hk_conf_example (f);
    fclose (f);
    assert_string_equal (text, installed);
    free (text);
    free (installed);
}

/* As it is, and with each option's mark taken away. */
static void the_example_gives_the_defaults (void **state)
{
    char *text = read_file ("systemd/hk.conf");

    (void)state;
    run_valid ("systemd/hk.conf", "", "");
    for (char *p = text; (p = strstr (p, "\n#")) != NULL; p++) {
        if (p[2] != ' ' && p[2] != '\n')
            p[1] = ' ';
    }
    folder_write (folder, "example.conf", text);
    run_valid (at ("example.conf"), "", "");
    free (text);
}

/* As scdoc wants it: underlined, with its mark for bold escaped. */
static void put_preset (char *buf, size_t size, const char *preset)
{
    if (preset[0] == '\0')
        snprintf (buf, size, "(empty)");
    else
        snprintf (buf, size, "_%s%s_", preset[0] == '*' ? "\\" : "", preset);
}

/* hk.conf(5) has a "*NAME* = _DEFAULT_" for each, under "## [SECTION]". */
static void assert_in_manual (const char *page,
                              const struct hk_conf_option *option)
{
    char section[64];
    char preset[128];
    char entry[256];
    const char *start;
    const char *end;
    const char *found;

    snprintf (section, sizeof (section), "## [%s]\n", option->section);
    start = strstr (page, section);
    if (!start) {
        fail_msg ("the manual lacks %s", section);
        return;
    }
    end = strstr (start + 1, "\n## ");
    put_preset (preset, sizeof (preset), option->preset);
    snprintf (entry, sizeof (entry), "\n*%s* = %s\n", option->name, preset);
    found = strstr (start, entry);
    if (!found || (end && found > end))
        fail_msg ("%s of the manual lacks %s", section, entry);
}

static void the_manual_has_each_option_and_its_default (void **state)
{
    char *page = read_file ("proto/hk.conf.5.scd");
    const struct hk_conf_option *options;
    int count = hk_conf_options (&options);

    (void)state;
    for (int i = 0; i < count; i++)
        assert_in_manual (page, &options[i]);
    free (page);
}

/* and none that the table has not */
static void the_manual_has_no_other_option (void **state)
{
    char *page = read_file ("proto/hk.conf.5.scd");
    const struct hk_conf_option *options;
    int count = hk_conf_options (&options);
    int entries = 0;

    (void)state;
    for (char *p = page; (p = strstr (p, "\n*")) != NULL; p++) {
        size_t len = strcspn (p + 2, "*");

        if (!strncmp (p + 2 + len, "* = ", 4))
            entries++;
    }
    assert_int_equal (entries, count);
    free (page);
}

static void each_allocation_may_fail (void **state)
{
    struct hk_conf *conf = NULL;
    struct hk_error err;
    char *value = NULL;
    long n = 0;

    (void)state;
    folder_write (folder,
                  "alloc.conf",
                  "[link]\nhead = a,b\nmunge-socket = /x\n"
                  "[coordinator]\nadmin-uids = 1,root\nhosts = a[1-3]\n"
                  "[housekeeping.gpu]\nhosts = gpu[1-3]\ntimeout = 2h\n");
    do {
        assert_null (conf);
        alloc_fail_at (++n);
        conf = hk_conf_load (at ("alloc.conf"), 0, &err);
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
        cmocka_unit_test (no_file_gives_the_defaults),
        cmocka_unit_test (each_preset_is_the_default),
        cmocka_unit_test (the_words_are_in_the_order_of_their_enums),
        cmocka_unit_test (a_refused_value_changes_nothing),
        cmocka_unit_test (a_class_keeps_its_own_and_follows_the_rest),
        cmocka_unit_test (hosts_says_where_we_act),
        cmocka_unit_test (drop_ins_are_read_in_order_and_later_wins),
        cmocka_unit_test (an_error_in_a_drop_in_names_it),
        cmocka_unit_test (what_cannot_be_read_is_an_error),
        cmocka_unit_test (lines_have_a_limit),
        cmocka_unit_test (a_host_list_may_be_a_thousand_names_long),
        cmocka_unit_test (with_trust_files_must_be_roots),
        cmocka_unit_test (the_example_is_what_is_installed),
        cmocka_unit_test (the_example_gives_the_defaults),
        cmocka_unit_test (the_manual_has_each_option_and_its_default),
        cmocka_unit_test (the_manual_has_no_other_option),
        cmocka_unit_test (each_allocation_may_fail),
    };

    return cmocka_run_group_tests_name ("conf", tests, set_up, tear_down);
}

/* test_conf.c - the options of the configuration, and its classes */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/conf_cases.h"

static void no_file_gives_the_defaults (void **state)
{
    struct hk_conf *conf = conf_defaults ();

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
    struct hk_conf *conf = conf_defaults ();
    struct hk_conf *set = conf_defaults ();

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
        conf_assert_value (set, options[i].section, options[i].name, value);
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
    struct hk_conf *conf = conf_defaults ();

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
    struct hk_conf *conf = conf_defaults ();
    struct hk_error err;

    (void)state;
    assert_int_equal (hk_conf_set (conf, "link", "head", "a,b:1", &err), -1);
    assert_string_equal (err.text,
                         "[link] head: expected host names, IPv4, or IPv6 in "
                         "brackets, at most 16 with commas between, without a "
                         "port, got 'a,b:1'");
    conf_assert_value (conf, "link", "head", "flux-hk-head");
    assert_int_equal (
        hk_conf_set (conf, "coordinator", "admin-uids", "1,x y", NULL), -1);
    conf_assert_value (conf, "coordinator", "admin-uids", "");
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
    struct hk_conf *conf = conf_defaults ();
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
    conf_assert_value (conf, "housekeeping.gpu", "timeout", "2h");
    conf_assert_value (conf, "housekeeping.gpu", "give-up", "1m");
    conf_assert_value (conf, "housekeeping.big", "timeout", "3h");
    assert_int_equal (hk_conf_policy (conf, "gpu4")->timeout_ms, 7200000);
    assert_int_equal (hk_conf_policy (conf, "gpu4.site")->timeout_ms, 7200000);
    assert_int_equal (hk_conf_policy (conf, "big1")->give_up_ms, 60000);
    assert_ptr_equal (hk_conf_policy (conf, "other"), &conf->policy);
    hk_conf_destroy (conf);
}

static void hosts_says_where_we_act (void **state)
{
    struct hk_conf *conf = conf_defaults ();

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

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (no_file_gives_the_defaults),
        cmocka_unit_test (each_preset_is_the_default),
        cmocka_unit_test (the_words_are_in_the_order_of_their_enums),
        cmocka_unit_test (a_refused_value_changes_nothing),
        cmocka_unit_test (a_class_keeps_its_own_and_follows_the_rest),
        cmocka_unit_test (hosts_says_where_we_act),
    };

    return cmocka_run_group_tests_name ("conf", tests, NULL, NULL);
}

/* test_inventory.c - what resource.status says of hosts and ranks */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>
#include "coordinator/host/inventory.h"

static const char status[] =
    "{\"R\":{\"version\":1,\"execution\":{\"R_lite\":[{\"rank\":\"0-2,5\","
    "\"children\":{\"core\":\"0-3\"}}],\"starttime\":0.0,\"expiration\":0.0,"
    "\"nodelist\":[\"a[0-2],b\"]}},"
    "\"drain\":{\"1\":{\"timestamp\":1.5,\"reason\":\"mine\"},"
    "\"2\":{\"timestamp\":1.5}},"
    "\"online\":\"0-2\",\"offline\":\"5\",\"exclude\":\"0\",\"torpid\":\"\"}";

static void drained_and_excluded_ranks_are_told (void **state)
{
    struct hk_error err;
    struct hkc_inventory *inv = hkc_inventory_decode (status, &err);

    (void)state;
    assert_non_null (inv);
    assert_null (hkc_inventory_drained (inv, 0));
    assert_string_equal (hkc_inventory_drained (inv, 1), "mine");
    assert_string_equal (hkc_inventory_drained (inv, 2), "");
    assert_true (hkc_inventory_excluded (inv, 0));
    assert_false (hkc_inventory_excluded (inv, 1));
    assert_int_equal (hk_rankset_first (hkc_inventory_ranks (inv, "b")), 5);
    assert_null (hkc_inventory_ranks (inv, "nosuch"));
    hkc_inventory_destroy (inv);
}

static void a_missing_rank_is_no_host_of_ours (void **state)
{
    struct hk_error err;
    struct hk_hostlist *hosts = hkc_inventory_hosts (status, &err);

    (void)state;
    assert_non_null (hosts);
    assert_int_equal (hk_hostlist_count (hosts), 6);
    assert_string_equal (hk_hostlist_nth (hosts, 2), "a2");
    assert_string_equal (hk_hostlist_nth (hosts, 3), "no-such-rank");
    assert_string_equal (hk_hostlist_nth (hosts, 5), "b");
    hk_hostlist_destroy (hosts);
}

static void what_is_not_understood_is_an_error (void **state)
{
    static const char *const bad[] = {
        "",
        "[]",
        "{\"drain\":{}}",
        "{\"R\":{},\"drain\":{}}",
        "{\"R\":{\"version\":1,\"execution\":{\"R_lite\":[{\"rank\":\"0\","
        "\"children\":{\"core\":\"0\"}}],\"nodelist\":[\"a\"],"
        "\"starttime\":0,\"expiration\":0}},\"drain\":{\"x\":{}}}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof (bad) / sizeof (bad[0]); i++) {
        struct hk_error err = { "" };
        assert_null (hkc_inventory_decode (bad[i], &err));
        assert_string_not_equal (err.text, "");
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (drained_and_excluded_ranks_are_told),
        cmocka_unit_test (a_missing_rank_is_no_host_of_ours),
        cmocka_unit_test (what_is_not_understood_is_an_error),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}

/* test_count.c - sets of resources: added, taken away, written as R */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "proto/resource.h"
#include "coordinator/host/count.h"

/* R of some entries `{"rank": .., "children": ..}` and a nodelist. */
static json_t *R_of (const char *lite, const char *nodelist)
{
    json_t *R = json_pack ("{s:i s:{s:o s:o s:f s:f}}",
                           "version",
                           1,
                           "execution",
                           "R_lite",
                           json_loads (lite, 0, NULL),
                           "nodelist",
                           json_loads (nodelist, 0, NULL),
                           "starttime",
                           0.,
                           "expiration",
                           0.);

    assert_non_null (R);
    return R;
}

static void add (struct hkc_count *count, const char *lite, const char *nodes)
{
    struct hk_error err;
    json_t *R = R_of (lite, nodes);

    assert_int_equal (hkc_count_add (count, R, NULL, &err), 0);
    json_decref (R);
}

static void take (struct hkc_count *count, const char *lite, const char *nodes)
{
    struct hk_error err;
    json_t *R = R_of (lite, nodes);

    assert_int_equal (hkc_count_remove (count, R, &err), 0);
    json_decref (R);
}

/* What is left is an R of those ranks, whose cores on `rank` are `cores`. */
static void expect (const struct hkc_count *count,
                    const char *ranks,
                    uint32_t rank,
                    const char *host,
                    const char *cores)
{
    json_t *R = hkc_count_R (count);
    char *text = json_dumps (R, JSON_COMPACT), *is;
    struct hk_error err = { "" };
    struct hk_resource *res = hk_resource_decode (text, &err);

    assert_string_equal (err.text, "");
    is = hk_rankset_encode (hk_resource_ranks (res));
    assert_string_equal (is, ranks);
    assert_string_equal (hk_resource_host (res, rank), host);
    assert_string_equal (hk_resource_cores (res, rank), cores);
    hk_resource_destroy (res);
    free (is);
    free (text);
    json_decref (R);
}

static const char whole[] =
    "[{\"rank\":\"0-3\",\"children\":{\"core\":\"0-3\",\"gpu\":\"0\"}}]";
static const char nodes[] = "[\"node[0-3]\"]";

static void a_rank_that_loses_all_it_has_is_gone (void **state)
{
    struct hkc_count *count = hkc_count_create ();

    (void)state;
    add (count, whole, nodes);
    take (count,
          "[{\"rank\":\"1\",\"children\":{\"core\":\"0-3\",\"gpu\":\"0\"}}]",
          "[\"node1\"]");
    expect (count, "0,2-3", 2, "node2", "0-3");
    take (count, whole, nodes);
    assert_true (hkc_count_is_empty (count));
    hkc_count_destroy (count);
}

static void two_jobs_share_a_rank_by_its_cores (void **state)
{
    struct hkc_count *count = hkc_count_create ();

    (void)state;
    add (count,
         "[{\"rank\":\"3\",\"children\":{\"core\":\"0-1\"}}]",
         "[\"node3\"]");
    add (count,
         "[{\"rank\":\"3\",\"children\":{\"core\":\"2\"}}]",
         "[\"node3\"]");
    expect (count, "3", 3, "node3", "0-2");
    take (count,
          "[{\"rank\":\"3\",\"children\":{\"core\":\"0-1\"}}]",
          "[\"node3\"]");
    expect (count, "3", 3, "node3", "2");
    hkc_count_destroy (count);
}

static void only_some_ranks_of_R_are_added (void **state)
{
    struct hkc_count *count = hkc_count_create ();
    struct hk_rankset *only = hk_rankset_decode ("1,7", NULL);
    json_t *R = R_of (whole, nodes);
    struct hk_error err;

    (void)state;
    assert_int_equal (hkc_count_add (count, R, only, &err), 0);
    expect (count, "1", 1, "node1", "0-3");
    json_decref (R);
    hk_rankset_destroy (only);
    hkc_count_destroy (count);
}

static void an_account_without_hosts_is_taken (void **state)
{
    struct hkc_count *count = hkc_count_create ();
    struct hk_error err;
    json_t *R = json_loads (
        "{\"version\":1,\"execution\":{\"R_lite\":"
        "[{\"rank\":\"2\",\"children\":{\"core\":\"0\"}}]}}",
        0,
        NULL);

    (void)state;
    assert_int_equal (hkc_count_add (count, R, NULL, &err), 0);
    expect (count, "2", 2, "rank2", "0");
    json_decref (R);
    hkc_count_destroy (count);
}

static void what_is_no_R_changes_nothing (void **state)
{
    static const char *const bad[] = {
        "{}",
        "{\"execution\":{}}",
        "{\"execution\":{\"R_lite\":[{\"rank\":\"x\",\"children\":{}}]}}",
        "{\"execution\":{\"R_lite\":[{\"rank\":\"0\"}]}}",
        "{\"execution\":{\"R_lite\":[{\"rank\":\"0\",\"children\":"
        "{\"core\":7}}]}}",
        "{\"execution\":{\"R_lite\":[{\"rank\":\"0\",\"children\":"
        "{\"core\":\"0\"}}],\"nodelist\":[\"a\",\"b\"]}}",
        "{\"execution\":{\"R_lite\":[{\"rank\":\"0\",\"children\":"
        "{\"core\":\"0\"}}],\"nodelist\":[3]}}",
    };
    struct hkc_count *count = hkc_count_create ();

    (void)state;
    add (count, whole, nodes);
    for (size_t i = 0; i < sizeof (bad) / sizeof (bad[0]); i++) {
        struct hk_error err = { "" };
        json_t *R = json_loads (bad[i], 0, NULL);
        assert_non_null (R);
        assert_int_equal (hkc_count_add (count, R, NULL, &err), -1);
        assert_int_equal (errno, EINVAL);
        assert_string_not_equal (err.text, "");
        assert_int_equal (hkc_count_remove (count, R, &err), -1);
        expect (count, "0-3", 0, "node0", "0-3");
        json_decref (R);
    }
    hkc_count_destroy (count);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (a_rank_that_loses_all_it_has_is_gone),
        cmocka_unit_test (two_jobs_share_a_rank_by_its_cores),
        cmocka_unit_test (only_some_ranks_of_R_are_added),
        cmocka_unit_test (an_account_without_hosts_is_taken),
        cmocka_unit_test (what_is_no_R_changes_nothing),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}

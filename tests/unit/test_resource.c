/* test_resource.c - R: decoding, questions, fragments */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "proto/limits.h"
#include "proto/resource.h"
#include "proto/text.h"
#include "tests/unit/alloc.h"
#include "tests/unit/cases.h"

/* Two kinds of nodes, ranks out of order, hosts shared by ranks 1 and 2. */
static const char sample[] =
    "{\"version\":1,\"execution\":{\"R_lite\":["
    "{\"rank\":\"5,9\",\"children\":{\"core\":\"0-7\",\"gpu\":\"0-1\"}},"
    "{\"rank\":\"0-3\",\"children\":{\"core\":\"0-3\"}}],"
    "\"nodelist\":[\"n[1-2]\",\"n2,m,k,n7\"],"
    "\"properties\":{\"gpu\":\"5,9\",\"odd\":\"1,3,5\"},"
    "\"starttime\":1700000000.5,\"expiration\":0},"
    "\"scheduling\":{\"graph\":{}}}";

static struct hk_resource *resource_of (const char *text)
{
    struct hk_error err = { "" };
    struct hk_resource *res = hk_resource_decode (text, &err);

    if (!res)
        fail_msg ("%s: %s", text, err.text);
    return res;
}

static struct hk_rankset *set_of (const char *text)
{
    struct hk_rankset *set = hk_rankset_decode (text, NULL);

    assert_non_null (set);
    return set;
}

static void assert_set (const struct hk_rankset *set, const char *want)
{
    char *text = hk_rankset_encode (set);

    assert_string_equal (text, want);
    free (text);
}

static void run_valid (const char *path, const char *text, const char *want)
{
    struct hk_error err = { "" };
    struct hk_resource *res = hk_resource_decode (text, &err);
    struct hk_resource *back;
    char *got;
    char *again;

    case_equal (path, res ? "" : err.text, "");
    got = hk_resource_encode (res);
    case_equal (path, got, want);
    back = resource_of (got);
    again = hk_resource_encode (back);
    assert_string_equal (again, got);
    free (got);
    free (again);
    hk_resource_destroy (res);
    hk_resource_destroy (back);
}

static void run_invalid (const char *path, const char *text, const char *want)
{
    struct hk_error err = { "" };

    assert_null (hk_resource_decode (text, &err));
    assert_true (errno == EINVAL || errno == ERANGE);
    case_equal (path, err.text, want);
}

static void valid_r_is_read (void **state)
{
    (void)state;
    cases_run ("resource/valid", "json", "out", run_valid);
}

static void invalid_r_is_refused (void **state)
{
    (void)state;
    cases_run ("resource/invalid", "json", "err", run_invalid);
}

static void r_that_is_too_long_is_refused (void **state)
{
    char *text = malloc (HK_R_BYTES + 2);
    struct hk_error err;

    (void)state;
    memset (text, ' ', HK_R_BYTES + 1);
    text[HK_R_BYTES + 1] = '\0';
    memcpy (text, sample, sizeof (sample) - 1);
    assert_null (hk_resource_decode (text, &err));
    assert_int_equal (errno, EINVAL);
    text[HK_R_BYTES] = '\0';
    hk_resource_destroy (resource_of (text));
    free (text);
}

static void hosts_belong_to_ranks_in_ascending_order (void **state)
{
    struct hk_resource *res = resource_of (sample);

    (void)state;
    assert_set (hk_resource_ranks (res), "0-3,5,9");
    assert_string_equal (hk_resource_host (res, 0), "n1");
    assert_string_equal (hk_resource_host (res, 1), "n2");
    assert_string_equal (hk_resource_host (res, 2), "n2");
    assert_string_equal (hk_resource_host (res, 3), "m");
    assert_string_equal (hk_resource_host (res, 5), "k");
    assert_string_equal (hk_resource_host (res, 9), "n7");
    assert_null (hk_resource_host (res, 4));
    assert_null (hk_resource_host (res, 10));
    assert_null (hk_resource_host (res, HK_RANK_NONE));
    hk_resource_destroy (res);
    hk_resource_destroy (NULL);
}

static void a_host_has_all_its_ranks (void **state)
{
    struct hk_resource *res = resource_of (sample);

    (void)state;
    assert_set (hk_resource_host_ranks (res, "n1"), "0");
    assert_set (hk_resource_host_ranks (res, "n2"), "1-2");
    assert_set (hk_resource_host_ranks (res, "n7"), "9");
    assert_null (hk_resource_host_ranks (res, "n"));
    assert_null (hk_resource_host_ranks (res, "n2.site"));
    hk_resource_destroy (res);
}

static void cores_are_those_of_the_entry (void **state)
{
    struct hk_resource *res = resource_of (sample);

    (void)state;
    assert_string_equal (hk_resource_cores (res, 1), "0-3");
    assert_string_equal (hk_resource_cores (res, 9), "0-7");
    assert_null (hk_resource_cores (res, 4));
    hk_resource_destroy (res);
}

static void assert_fragment (const char *ranks, const char *want)
{
    struct hk_resource *res = resource_of (sample);
    struct hk_rankset *set = set_of (ranks);
    struct hk_error err = { "" };
    char *text = hk_resource_fragment (res, set, &err);

    if (!text)
        fail_msg ("%s", err.text);
    assert_string_equal (text, want);
    hk_resource_destroy (resource_of (text));
    free (text);
    hk_rankset_destroy (set);
    hk_resource_destroy (res);
}

static void a_fragment_keeps_children_and_cuts_properties (void **state)
{
    (void)state;
    assert_fragment ("3,5",
                     "{\"version\":1,\"execution\":{\"R_lite\":["
                     "{\"rank\":\"5\",\"children\":{\"core\":\"0-7\","
                     "\"gpu\":\"0-1\"}},"
                     "{\"rank\":\"3\",\"children\":{\"core\":\"0-3\"}}],"
                     "\"nodelist\":[\"m,k\"],"
                     "\"properties\":{\"gpu\":\"5\",\"odd\":\"3,5\"},"
                     "\"starttime\":1700000000.5,\"expiration\":0}}");
    assert_fragment ("0-2",
                     "{\"version\":1,\"execution\":{\"R_lite\":["
                     "{\"rank\":\"0-2\",\"children\":{\"core\":\"0-3\"}}],"
                     "\"nodelist\":[\"n[1-2,2]\"],"
                     "\"properties\":{\"odd\":\"1\"},"
                     "\"starttime\":1700000000.5,\"expiration\":0}}");
    assert_fragment ("0,2",
                     "{\"version\":1,\"execution\":{\"R_lite\":["
                     "{\"rank\":\"0,2\",\"children\":{\"core\":\"0-3\"}}],"
                     "\"nodelist\":[\"n[1-2]\"],"
                     "\"starttime\":1700000000.5,\"expiration\":0}}");
}

static void a_fragment_of_foreign_or_no_ranks_is_refused (void **state)
{
    struct hk_resource *res = resource_of (sample);
    struct hk_rankset *set = set_of ("3-4");
    struct hk_error err;

    (void)state;
    assert_null (hk_resource_fragment (res, set, &err));
    assert_int_equal (errno, EINVAL);
    hk_rankset_clear (set);
    assert_null (hk_resource_fragment (res, set, &err));
    assert_int_equal (errno, EINVAL);
    hk_rankset_destroy (set);
    hk_resource_destroy (res);
}

static void equal_r_has_an_equal_digest (void **state)
{
    static const char one[] =
        "{\"version\":1,\"execution\":{\"R_lite\":[{\"rank\":\"0\","
        "\"children\":{\"core\":\"0\"}}],\"nodelist\":[\"a\"]}}";
    static const char same[] =
        " {\"execution\": {\"nodelist\":[\"a\"], \"R_lite\":[{\"children\":"
        "{\"core\":\"0\"},\"rank\":\"0\"}]}, \"version\":1}\n";
    static const char other[] =
        "{\"version\":1,\"execution\":{\"R_lite\":[{\"rank\":\"0\","
        "\"children\":{\"core\":\"0\"}}],\"nodelist\":[\"b\"]}}";
    const char *texts[] = { one, same, other };
    char hex[3][65];

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct hk_resource *res = resource_of (texts[i]);

        hk_resource_digest (res, hex[i]);
        hk_resource_destroy (res);
    }
    assert_string_equal (hex[0], hex[1]);
    assert_string_not_equal (hex[0], hex[2]);
    assert_int_equal (strspn (hex[0], "0123456789abcdef"), 64);
}

/* R of `count` ranks, each with children of its own. */
static char *make_r (int count)
{
    struct hk_text text = { 0 };

    hk_text_put (&text, "{\"version\":1,\"execution\":{\"R_lite\":[");
    for (int i = 0; i < count; i++) {
        hk_text_put (&text, i > 0 ? ",{\"rank\":\"" : "{\"rank\":\"");
        hk_text_put_number (&text, (uint64_t)i, 1);
        hk_text_put (&text, "\",\"children\":{\"core\":\"0-");
        hk_text_put_number (&text, (uint64_t)i % 64, 1);
        hk_text_put (&text, "\"}}");
    }
    hk_text_put (&text, "],\"nodelist\":[\"node[0-");
    hk_text_put_number (&text, (uint64_t)count - 1, 1);
    hk_text_put (&text, "]\"],\"properties\":{\"all\":\"0-");
    hk_text_put_number (&text, (uint64_t)count - 1, 1);
    hk_text_put (&text, "\"}}}");
    return hk_text_take (&text);
}

/* Whatever is cut off, each rank keeps its host and its cores, and the pieces
 * are the whole.
 */
static void random_fragments_add_up (void **state)
{
    enum { COUNT = 300 };
    char *text = make_r (COUNT);
    struct hk_resource *res = resource_of (text);
    uint32_t seed = 31;

    (void)state;
    for (int round = 0; round < 20; round++) {
        struct hk_rankset *part[2] = { hk_rankset_create (),
                                       hk_rankset_create () };

        for (uint32_t r = 0; r < COUNT; r++) {
            seed = seed * 1103515245 + 12345;
            hk_rankset_add (part[(seed >> 16) & 1], r);
        }
        for (int i = 0; i < 2; i++) {
            char *cut = hk_resource_fragment (res, part[i], NULL);
            struct hk_resource *back = resource_of (cut);

            assert_true (hk_rankset_equal (hk_resource_ranks (back), part[i]));
            for (uint32_t r = hk_rankset_first (part[i]); r != HK_RANK_NONE;
                 r = hk_rankset_next (part[i], r)) {
                assert_string_equal (hk_resource_host (back, r),
                                     hk_resource_host (res, r));
                assert_string_equal (hk_resource_cores (back, r),
                                     hk_resource_cores (res, r));
            }
            hk_resource_destroy (back);
            free (cut);
        }
        hk_rankset_destroy (part[0]);
        hk_rankset_destroy (part[1]);
    }
    hk_resource_destroy (res);
    free (text);
}

static double seconds (void)
{
    struct timespec ts;

    clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Each report looks up a host; a free cuts a fragment. Far above what it takes,
 * far below what a quadratic way would.
 */
static void large_r_is_fast (void **state)
{
    enum { COUNT = 16384 };
    char *text = make_r (COUNT);
    struct hk_resource *res = resource_of (text);
    struct hk_rankset *odd = hk_rankset_create ();
    double start;

    (void)state;
    for (uint32_t r = 1; r < COUNT; r += 2)
        hk_rankset_add (odd, r);
    start = seconds ();
    for (int i = 0; i < 10; i++)
        free (hk_resource_fragment (res, odd, NULL));
    assert_true (seconds () - start < 4);
    start = seconds ();
    for (int i = 0; i < 10; i++) {
        for (uint32_t r = 0; r < COUNT; r++)
            hk_resource_host_ranks (res, hk_resource_host (res, r));
    }
    assert_true (seconds () - start < 4);
    hk_rankset_destroy (odd);
    hk_resource_destroy (res);
    free (text);
}

static void each_allocation_of_decoding_may_fail (void **state)
{
    struct hk_resource *res = NULL;
    struct hk_error err;
    long n = 0;

    (void)state;
    do {
        assert_null (res);
        err.text[0] = '\0';
        alloc_fail_at (++n);
        res = hk_resource_decode (sample, &err);
        if (!res && (errno != ENOMEM || err.text[0] == '\0'))
            fail_msg ("allocation %ld: errno %d: %s", n, errno, err.text);
    } while (alloc_did_fail ());
    assert_true (n > 30);
    hk_resource_destroy (res);
}

/* Jansson's scanner calls it a wrong token when it has no memory for it, and
 * jansson may do without some memory; then the result must be the same.
 */
static void each_allocation_of_jansson_may_fail (void **state)
{
    struct hk_resource *whole = resource_of (sample);
    char *want = hk_resource_encode (whole);
    bool did_fail;
    long n = 0;

    (void)state;
    alloc_fail_jansson ();
    do {
        struct hk_error err = { "" };
        struct hk_resource *res;
        char *got;

        alloc_fail_at (++n);
        res = hk_resource_decode (sample, &err);
        did_fail = alloc_did_fail ();
        if (!res) {
            assert_string_not_equal (err.text, "");
            continue;
        }
        got = hk_resource_encode (res);
        assert_string_equal (got, want);
        free (got);
        got = hk_resource_fragment (res, hk_resource_ranks (whole), &err);
        assert_non_null (got);
        free (got);
        hk_resource_destroy (res);
    } while (did_fail);
    assert_true (n > 100);
    free (want);
    hk_resource_destroy (whole);
}

static void each_allocation_of_a_fragment_may_fail (void **state)
{
    struct hk_resource *res = resource_of (sample);
    struct hk_rankset *set = set_of ("1,3,5");
    struct hk_error err;
    char *text = NULL;
    long n = 0;

    (void)state;
    do {
        assert_null (text);
        alloc_fail_at (++n);
        text = hk_resource_fragment (res, set, &err);
        if (!text)
            assert_int_equal (errno, ENOMEM);
    } while (alloc_did_fail ());
    assert_true (n > 8);
    free (text);
    hk_rankset_destroy (set);
    hk_resource_destroy (res);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (valid_r_is_read),
        cmocka_unit_test (invalid_r_is_refused),
        cmocka_unit_test (r_that_is_too_long_is_refused),
        cmocka_unit_test (hosts_belong_to_ranks_in_ascending_order),
        cmocka_unit_test (a_host_has_all_its_ranks),
        cmocka_unit_test (cores_are_those_of_the_entry),
        cmocka_unit_test (a_fragment_keeps_children_and_cuts_properties),
        cmocka_unit_test (a_fragment_of_foreign_or_no_ranks_is_refused),
        cmocka_unit_test (equal_r_has_an_equal_digest),
        cmocka_unit_test (random_fragments_add_up),
        cmocka_unit_test (large_r_is_fast),
        cmocka_unit_test (each_allocation_of_decoding_may_fail),
        cmocka_unit_test (each_allocation_of_a_fragment_may_fail),
        cmocka_unit_test (each_allocation_of_jansson_may_fail),
    };

    return cmocka_run_group_tests_name ("resource", tests, NULL, NULL);
}

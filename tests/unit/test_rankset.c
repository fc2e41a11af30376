/* test_rankset.c - sets of ranks and RFC 22 idsets */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "proto/limits.h"
#include "proto/rankset.h"
#include "tests/unit/alloc.h"
#include "tests/unit/cases.h"

static struct hk_rankset *set_of (const char *text)
{
    struct hk_error err = { "" };
    struct hk_rankset *set = hk_rankset_decode (text, &err);

    if (!set)
        fail_msg ("%s: %s", text, err.text);
    return set;
}

static void assert_text (const struct hk_rankset *set, const char *want)
{
    char *text = hk_rankset_encode (set);

    assert_string_equal (text, want);
    free (text);
}

static void run_valid (const char *path, const char *text, const char *want)
{
    struct hk_error err = { "" };
    struct hk_rankset *set = hk_rankset_decode (text, &err);
    char *got;

    case_equal (path, set ? "" : err.text, "");
    got = hk_rankset_encode (set);
    case_equal (path, got, want);
    free (got);
    hk_rankset_destroy (set);
}

static void run_invalid (const char *path, const char *text, const char *want)
{
    struct hk_error err = { "" };

    assert_null (hk_rankset_decode (text, &err));
    case_equal (path, err.text, want);
    assert_true (errno == EINVAL || errno == ERANGE);
}

static void valid_idsets_are_read (void **state)
{
    (void)state;
    cases_run ("rankset/valid", "txt", "out", run_valid);
}

static void invalid_idsets_are_refused (void **state)
{
    (void)state;
    cases_run ("rankset/invalid", "txt", "err", run_invalid);
    assert_null (hk_rankset_decode (NULL, NULL));
    assert_int_equal (errno, EINVAL);
}

static void text_that_is_too_long_is_refused (void **state)
{
    struct hk_error err;
    char *text = malloc (HK_IDSET_TEXT_BYTES + 1);

    (void)state;
    memset (text, '1', HK_IDSET_TEXT_BYTES);
    text[HK_IDSET_TEXT_BYTES] = '\0';
    assert_null (hk_rankset_decode (text, &err));
    assert_int_equal (errno, ERANGE);
    free (text);
}

static void random_sets_come_back_from_text (void **state)
{
    uint32_t seed = 12345;

    (void)state;
    for (int round = 0; round < 100; round++) {
        struct hk_rankset *set = hk_rankset_create ();
        struct hk_rankset *back;
        char *text;
        uint32_t spread = round % 2 ? HK_RANK_LIMIT : 200;

        for (int i = 0; i < round * 5; i++) {
            seed = seed * 1103515245 + 12345;
            assert_int_equal (hk_rankset_add (set, (seed >> 8) % spread), 0);
        }
        text = hk_rankset_encode (set);
        back = set_of (text);
        assert_true (hk_rankset_equal (set, back));
        free (text);
        hk_rankset_destroy (set);
        hk_rankset_destroy (back);
    }
}

static void ranks_are_below_the_limit (void **state)
{
    struct hk_rankset *set = hk_rankset_create ();

    (void)state;
    assert_int_equal (hk_rankset_add (set, HK_RANK_LIMIT - 1), 0);
    errno = 0;
    assert_int_equal (hk_rankset_add (set, HK_RANK_LIMIT), -1);
    assert_int_equal (errno, ERANGE);
    assert_int_equal (hk_rankset_add (set, HK_RANK_NONE), -1);
    assert_int_equal (hk_rankset_count (set), 1);
    hk_rankset_destroy (set);
}

static void sets_are_joined_cut_and_compared (void **state)
{
    struct hk_rankset *a = set_of ("0-9");
    struct hk_rankset *b = set_of ("5-14");
    struct hk_rankset *c = hk_rankset_copy (a);

    (void)state;
    assert_true (hk_rankset_equal (a, c));
    assert_true (hk_rankset_intersects (a, b));
    assert_false (hk_rankset_contains (a, b));
    hk_rankset_add_set (c, b);
    assert_text (c, "0-14");
    assert_text (a, "0-9");
    assert_true (hk_rankset_contains (c, a));
    hk_rankset_remove_set (c, a);
    assert_text (c, "10-14");
    assert_false (hk_rankset_intersects (a, c));
    hk_rankset_keep_set (b, a);
    assert_text (b, "5-9");
    hk_rankset_remove (b, 7);
    hk_rankset_remove (b, 1000);
    assert_text (b, "5-6,8-9");
    assert_true (hk_rankset_has (b, 8));
    assert_false (hk_rankset_has (b, 7));
    hk_rankset_clear (b);
    assert_true (hk_rankset_is_empty (b));
    assert_true (hk_rankset_contains (a, b));
    hk_rankset_destroy (a);
    hk_rankset_destroy (b);
    hk_rankset_destroy (c);
    hk_rankset_destroy (NULL);
}

static void a_set_may_be_its_own_operand (void **state)
{
    struct hk_rankset *a = set_of ("1-3");

    (void)state;
    hk_rankset_add_set (a, a);
    hk_rankset_keep_set (a, a);
    assert_text (a, "1-3");
    hk_rankset_remove_set (a, a);
    assert_text (a, "");
    hk_rankset_destroy (a);
}

static void ranks_are_walked_in_order (void **state)
{
    static const uint32_t want[] = { 0, 1, 7, 65535, 65536, 1048575 };
    struct hk_rankset *set = set_of ("0-1,7,65535-65536,1048575");
    uint32_t list[6];
    size_t n = 0;

    (void)state;
    for (uint32_t r = hk_rankset_first (set); r != HK_RANK_NONE;
         r = hk_rankset_next (set, r)) {
        assert_true (n < 6);
        assert_int_equal (r, want[n++]);
    }
    assert_int_equal (n, 6);
    assert_int_equal (hk_rankset_next (set, 8), 65535);
    assert_int_equal (hk_rankset_next (set, HK_RANK_NONE), HK_RANK_NONE);
    hk_rankset_list (set, list);
    assert_memory_equal (list, want, sizeof (want));
    hk_rankset_clear (set);
    assert_int_equal (hk_rankset_first (set), HK_RANK_NONE);
    hk_rankset_destroy (set);
}

/* The ranks themselves are CRoaring's, which ends the process. */
static void each_allocation_may_fail (void **state)
{
    struct hk_rankset *set = NULL;
    struct hk_error err;
    char *text = NULL;
    long n = 0;

    (void)state;
    do {
        assert_null (set);
        alloc_fail_at (++n);
        set = hk_rankset_decode ("0-3,7", &err);
        if (!set)
            assert_int_equal (errno, ENOMEM);
    } while (alloc_did_fail ());
    assert_true (n > 1);
    for (uint32_t r = 0; r < 200; r += 2)
        hk_rankset_add (set, r);
    n = 0;
    do {
        assert_null (text);
        alloc_fail_at (++n);
        text = hk_rankset_encode (set);
        if (!text)
            assert_int_equal (errno, ENOMEM);
    } while (alloc_did_fail ());
    assert_true (n > 2);
    free (text);
    hk_rankset_destroy (set);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (valid_idsets_are_read),
        cmocka_unit_test (invalid_idsets_are_refused),
        cmocka_unit_test (text_that_is_too_long_is_refused),
        cmocka_unit_test (random_sets_come_back_from_text),
        cmocka_unit_test (ranks_are_below_the_limit),
        cmocka_unit_test (sets_are_joined_cut_and_compared),
        cmocka_unit_test (a_set_may_be_its_own_operand),
        cmocka_unit_test (ranks_are_walked_in_order),
        cmocka_unit_test (each_allocation_may_fail),
    };

    return cmocka_run_group_tests_name ("rankset", tests, NULL, NULL);
}

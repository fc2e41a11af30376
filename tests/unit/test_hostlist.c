/* test_hostlist.c - lists of host names and RFC 29 text */
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

#include "proto/hostlist.h"
#include "proto/limits.h"
#include "tests/unit/alloc.h"
#include "tests/unit/cases.h"

static struct hk_hostlist *list_of (const char *text)
{
    struct hk_error err = { "" };
    struct hk_hostlist *hosts = hk_hostlist_decode (text, &err);

    if (!hosts)
        fail_msg ("%s: %s", text, err.text);
    return hosts;
}

static void assert_text (const struct hk_hostlist *hosts, const char *want)
{
    char *text = hk_hostlist_encode (hosts);

    assert_string_equal (text, want);
    free (text);
}

/* First line: names with blanks between; second: the text they encode to. */
static void run_valid (const char *path, const char *text, const char *want)
{
    struct hk_error err = { "" };
    struct hk_hostlist *hosts = hk_hostlist_decode (text, &err);
    char names[4096] = "";
    char *folded;

    case_equal (path, hosts ? "" : err.text, "");
    for (size_t i = 0; i < hk_hostlist_count (hosts); i++) {
        strcat (names, i > 0 ? " " : "");
        strcat (names, hk_hostlist_nth (hosts, i));
    }
    folded = hk_hostlist_encode (hosts);
    strcat (names, "\n");
    strcat (names, folded);
    case_equal (path, names, want);
    free (folded);
    hk_hostlist_destroy (hosts);
}

static void run_invalid (const char *path, const char *text, const char *want)
{
    struct hk_error err = { "" };

    assert_null (hk_hostlist_decode (text, &err));
    case_equal (path, err.text, want);
    assert_true (errno == EINVAL || errno == ERANGE);
}

static void valid_host_lists_are_read (void **state)
{
    (void)state;
    cases_run ("hostlist/valid", "txt", "out", run_valid);
}

static void invalid_host_lists_are_refused (void **state)
{
    (void)state;
    cases_run ("hostlist/invalid", "txt", "err", run_invalid);
    assert_null (hk_hostlist_decode (NULL, NULL));
    assert_int_equal (errno, EINVAL);
}

static void names_that_are_too_long_are_refused (void **state)
{
    struct hk_hostlist *hosts;
    struct hk_error err;
    char name[HK_HOST_NAME_BYTES + 8];

    (void)state;
    memset (name, 'a', sizeof (name));
    name[HK_HOST_NAME_BYTES - 1] = '\0';
    hosts = list_of (name);
    hk_hostlist_destroy (hosts);
    name[HK_HOST_NAME_BYTES - 1] = 'a';
    name[HK_HOST_NAME_BYTES] = '\0';
    assert_null (hk_hostlist_decode (name, &err));
    assert_int_equal (errno, EINVAL);
    strcpy (name + HK_HOST_NAME_BYTES - 2, "[8-10]");
    assert_null (hk_hostlist_decode (name, &err));
    assert_int_equal (errno, EINVAL);
}

static void more_names_than_the_limit_are_refused (void **state)
{
    struct hk_error err;

    (void)state;
    assert_null (hk_hostlist_decode ("a[0-1048575],b", &err));
    assert_int_equal (errno, ERANGE);
}

/* Names made of few parts, so that neighbours often fold. */
static void random_lists_come_back_from_text (void **state)
{
    static const char *const parts[] = { "n",  "00", "0", "1",  "2",  "9",
                                         "10", "-",  "b", ".x", "099" };
    uint32_t seed = 4711;

    (void)state;
    for (int round = 0; round < 2000; round++) {
        struct hk_hostlist *hosts = hk_hostlist_create ();
        struct hk_hostlist *back;
        char *text;

        for (int i = 0; i < 8; i++) {
            char name[32] = "";

            for (int k = 0; k < 3; k++) {
                seed = seed * 1103515245 + 12345;
                strcat (name, parts[(seed >> 16) % 11]);
            }
            assert_int_equal (hk_hostlist_append (hosts, name), 0);
        }
        text = hk_hostlist_encode (hosts);
        back = list_of (text);
        assert_int_equal (hk_hostlist_count (back), 8);
        for (size_t i = 0; i < 8; i++) {
            if (strcmp (hk_hostlist_nth (hosts, i), hk_hostlist_nth (back, i)))
                fail_msg ("%s", text);
        }
        free (text);
        hk_hostlist_destroy (hosts);
        hk_hostlist_destroy (back);
    }
}

static void the_first_of_equal_names_is_found (void **state)
{
    struct hk_hostlist *hosts = hk_hostlist_create ();

    (void)state;
    assert_int_equal (hk_hostlist_find (hosts, "a"), -1);
    hk_hostlist_destroy (hosts);
    hosts = list_of ("b,a[1-3],b,a2");
    assert_int_equal (hk_hostlist_find (hosts, "b"), 0);
    assert_int_equal (hk_hostlist_find (hosts, "a2"), 2);
    assert_int_equal (hk_hostlist_find (hosts, "a02"), -1);
    assert_int_equal (hk_hostlist_find (hosts, "a"), -1);
    assert_null (hk_hostlist_nth (hosts, 6));
    hk_hostlist_destroy (hosts);
}

static double seconds (void)
{
    struct timespec ts;

    clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* A million look-ups; were they linear they would take minutes. */
static void finding_does_not_depend_on_the_length (void **state)
{
    struct hk_hostlist *hosts = list_of ("node[0-99999]");
    double start = seconds ();

    (void)state;
    for (int round = 0; round < 10; round++) {
        for (size_t i = 0; i < 100000; i++)
            assert_true (hk_hostlist_find (hosts, hk_hostlist_nth (hosts, i))
                         == (long)i);
    }
    assert_true (seconds () - start < 20);
    hk_hostlist_destroy (hosts);
}

static void uniq_sorts_by_prefix_then_number (void **state)
{
    struct hk_hostlist *hosts = list_of (
        "node10,node2,login,node2,node02,alpha,node1,node");

    (void)state;
    hk_hostlist_uniq (hosts);
    assert_text (hosts, "alpha,login,node,node1,node02,node[2,10]");
    assert_int_equal (hk_hostlist_count (hosts), 7);
    assert_int_equal (hk_hostlist_find (hosts, "node10"), 6);
    assert_int_equal (hk_hostlist_find (hosts, "alpha"), 0);
    assert_int_equal (hk_hostlist_append (hosts, "node11"), 0);
    assert_int_equal (hk_hostlist_find (hosts, "node11"), 7);
    hk_hostlist_destroy (hosts);
    hosts = hk_hostlist_create ();
    hk_hostlist_uniq (hosts);
    assert_text (hosts, "");
    hk_hostlist_destroy (hosts);
    hk_hostlist_destroy (NULL);
}

static void names_that_cannot_be_listed_are_refused (void **state)
{
    struct hk_hostlist *hosts = hk_hostlist_create ();

    (void)state;
    assert_int_equal (hk_hostlist_append (hosts, ""), -1);
    assert_int_equal (errno, EINVAL);
    assert_int_equal (hk_hostlist_append (hosts, "a,b"), -1);
    assert_int_equal (hk_hostlist_append (hosts, "a b"), -1);
    assert_int_equal (hk_hostlist_append (hosts, "caf\xc3\xa9"), -1);
    assert_int_equal (hk_hostlist_append (hosts, "[::1]"), 0);
    assert_int_equal (hk_hostlist_count (hosts), 1);
    hk_hostlist_destroy (hosts);
}

static void host_names_are_those_of_rfc_1123 (void **state)
{
    static const char *const good[] = { "a", "node1", "n-1_b",
                                        "1", "a.b.c", "NODE" };
    static const char *const bad[] = { "",   ".",    "a.",  ".a",   "a..b",
                                       "-a", "a.-b", "a b", "a/b",  "a[1]",
                                       "a,", "\xc3", "a\n", "[::1]" };
    char label[65];

    (void)state;
    for (size_t i = 0; i < sizeof (good) / sizeof (good[0]); i++)
        assert_true (hk_host_name_valid (good[i]));
    for (size_t i = 0; i < sizeof (bad) / sizeof (bad[0]); i++) {
        if (hk_host_name_valid (bad[i]))
            fail_msg ("'%s' is not a host name", bad[i]);
    }
    memset (label, 'a', 64);
    label[63] = '\0';
    assert_true (hk_host_name_valid (label));
    label[63] = 'a';
    label[64] = '\0';
    assert_false (hk_host_name_valid (label));
}

static void the_short_name_ends_at_the_first_dot (void **state)
{
    char name[HK_HOST_NAME_BYTES];
    char longest[400];

    (void)state;
    hk_host_name_short ("node1.cluster.site", name);
    assert_string_equal (name, "node1");
    hk_host_name_short ("node1", name);
    assert_string_equal (name, "node1");
    memset (longest, 'a', sizeof (longest) - 1);
    longest[sizeof (longest) - 1] = '\0';
    hk_host_name_short (longest, name);
    assert_int_equal (strlen (name), HK_HOST_NAME_BYTES - 1);
}

static void each_allocation_may_fail (void **state)
{
    struct hk_hostlist *hosts = NULL;
    struct hk_error err;
    char *text = NULL;
    long n = 0;

    (void)state;
    do {
        assert_null (hosts);
        alloc_fail_at (++n);
        hosts = hk_hostlist_decode ("a[1-20],b,c[7-9]x", &err);
        if (!hosts)
            assert_int_equal (errno, ENOMEM);
    } while (alloc_did_fail ());
    assert_true (n > 24);
    n = 0;
    do {
        assert_null (text);
        alloc_fail_at (++n);
        text = hk_hostlist_encode (hosts);
        if (!text)
            assert_int_equal (errno, ENOMEM);
    } while (alloc_did_fail ());
    assert_string_equal (text, "a[1-20],b,c[7-9]x");
    free (text);
    hk_hostlist_destroy (hosts);
}

/* A failed append leaves the list as it was. */
static void a_failed_append_changes_nothing (void **state)
{
    struct hk_hostlist *hosts = list_of ("a[1-8]");

    (void)state;
    for (long n = 1;; n++) {
        alloc_fail_at (n);
        hk_hostlist_append (hosts, "b");
        if (!alloc_did_fail ())
            break;
        assert_text (hosts, "a[1-8]");
        assert_int_equal (hk_hostlist_find (hosts, "a8"), 7);
        assert_int_equal (hk_hostlist_find (hosts, "b"), -1);
    }
    assert_text (hosts, "a[1-8],b");
    hk_hostlist_destroy (hosts);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (valid_host_lists_are_read),
        cmocka_unit_test (invalid_host_lists_are_refused),
        cmocka_unit_test (names_that_are_too_long_are_refused),
        cmocka_unit_test (more_names_than_the_limit_are_refused),
        cmocka_unit_test (random_lists_come_back_from_text),
        cmocka_unit_test (the_first_of_equal_names_is_found),
        cmocka_unit_test (finding_does_not_depend_on_the_length),
        cmocka_unit_test (uniq_sorts_by_prefix_then_number),
        cmocka_unit_test (names_that_cannot_be_listed_are_refused),
        cmocka_unit_test (host_names_are_those_of_rfc_1123),
        cmocka_unit_test (the_short_name_ends_at_the_first_dot),
        cmocka_unit_test (each_allocation_may_fail),
        cmocka_unit_test (a_failed_append_changes_nothing),
    };

    return cmocka_run_group_tests_name ("hostlist", tests, NULL, NULL);
}

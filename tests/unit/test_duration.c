/* test_duration.c - RFC 23 durations */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "proto/duration.h"
#include "tests/unit/cases.h"

/* Milliseconds, encoded, pretty: a line each. */
static void run_valid (const char *path, const char *text, const char *want)
{
    struct hk_error err = { "" };
    char encoded[HK_DURATION_TEXT_BYTES];
    char pretty[HK_DURATION_TEXT_BYTES];
    char got[256];
    int64_t ms = -1;
    int64_t back = -1;

    hk_duration_decode (text, &ms, &err);
    case_equal (path, err.text, "");
    snprintf (got,
              sizeof (got),
              "%" PRId64 "\n%s\n%s",
              ms,
              hk_duration_encode (ms, encoded),
              hk_duration_pretty (ms, pretty));
    case_equal (path, got, want);
    assert_int_equal (hk_duration_decode (encoded, &back, NULL), 0);
    assert_true (back == ms);
}

static void run_invalid (const char *path, const char *text, const char *want)
{
    struct hk_error err = { "" };
    int64_t ms = 4711;

    assert_int_equal (hk_duration_decode (text, &ms, &err), -1);
    assert_true (errno == EINVAL || errno == ERANGE);
    case_equal (path, err.text, want);
    assert_int_equal (ms, 4711);
}

static void valid_durations_are_read (void **state)
{
    (void)state;
    cases_run ("duration/valid", "txt", "out", run_valid);
}

static void invalid_durations_are_refused (void **state)
{
    int64_t ms;

    (void)state;
    cases_run ("duration/invalid", "txt", "err", run_invalid);
    assert_int_equal (hk_duration_decode (NULL, &ms, NULL), -1);
    assert_int_equal (hk_duration_decode ("36526d", &ms, NULL), -1);
    assert_int_equal (errno, ERANGE);
    assert_int_equal (hk_duration_decode ("1y", &ms, NULL), -1);
    assert_int_equal (errno, EINVAL);
}

static void encoded_durations_come_back (void **state)
{
    char text[HK_DURATION_TEXT_BYTES];
    uint64_t seed = 99;

    (void)state;
    for (int i = 0; i < 20000; i++) {
        int64_t back = -1;
        int64_t ms;

        seed = seed * 6364136223846793005 + 1442695040888963407;
        ms = (int64_t)(seed >> (23 + i % 40)) % 3155760000000;
        if (i % 3 == 0)
            ms -= ms % 60000;
        hk_duration_encode (ms, text);
        if (hk_duration_decode (text, &back, NULL) < 0 || back != ms)
            fail_msg ("%" PRId64 " became %s became %" PRId64, ms, text, back);
    }
}

static void the_locale_does_not_matter (void **state)
{
    int64_t ms = 0;

    (void)state;
    setlocale (LC_ALL, "de_DE.UTF-8");
    assert_int_equal (hk_duration_decode ("1.5s", &ms, NULL), 0);
    assert_int_equal (ms, 1500);
    assert_int_equal (hk_duration_decode ("1,5s", &ms, NULL), -1);
    setlocale (LC_ALL, "C");
}

static void a_time_that_ran_backwards_is_shown_as_nothing (void **state)
{
    char text[HK_DURATION_TEXT_BYTES];

    (void)state;
    assert_string_equal (hk_duration_pretty (-5000, text), "0s");
    assert_string_equal (hk_duration_pretty (INT64_MAX - 1, text), "36525d");
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (valid_durations_are_read),
        cmocka_unit_test (invalid_durations_are_refused),
        cmocka_unit_test (encoded_durations_come_back),
        cmocka_unit_test (the_locale_does_not_matter),
        cmocka_unit_test (a_time_that_ran_backwards_is_shown_as_nothing),
    };

    return cmocka_run_group_tests_name ("duration", tests, NULL, NULL);
}

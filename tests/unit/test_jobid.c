/* test_jobid.c - RFC 19 job ids in their spellings by digits */
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

#include "proto/jobid.h"
#include "tests/unit/cases.h"

/* Each spelling on a line of its own, in the order of the enum. */
static void run_valid (const char *path, const char *text, const char *want)
{
    char buf[HK_JOBID_TEXT_BYTES];
    char got[1024] = "";
    struct hk_error err = { "" };
    uint64_t id;

    hk_jobid_decode (text, &id, &err);
    case_equal (path, err.text, "");
    for (int kind = HK_JOBID_DEC; kind <= HK_JOBID_F58PLAIN; kind++) {
        strcat (got, kind > 0 ? "\n" : "");
        strcat (got, hk_jobid_encode (id, (enum hk_jobid_kind)kind, buf));
    }
    case_equal (path, got, want);
}

static void run_invalid (const char *path, const char *text, const char *want)
{
    struct hk_error err = { "" };
    uint64_t id = 4711;

    assert_int_equal (hk_jobid_decode (text, &id, &err), -1);
    assert_true (errno == EINVAL || errno == ERANGE);
    case_equal (path, err.text, want);
    assert_int_equal (id, 4711);
}

static void valid_job_ids_are_read (void **state)
{
    (void)state;
    cases_run ("jobid/valid", "txt", "out", run_valid);
}

static void invalid_job_ids_are_refused (void **state)
{
    uint64_t id;
    char text[HK_JOBID_TEXT_BYTES + 2];

    (void)state;
    cases_run ("jobid/invalid", "txt", "err", run_invalid);
    assert_int_equal (hk_jobid_decode (NULL, &id, NULL), -1);
    memset (text, '0', sizeof (text));
    text[sizeof (text) - 1] = '\0';
    assert_int_equal (hk_jobid_decode (text, &id, NULL), -1);
    assert_int_equal (errno, EINVAL);
}

static void each_spelling_comes_back (void **state)
{
    uint64_t id = 88172645463325252;
    char buf[HK_JOBID_TEXT_BYTES];

    (void)state;
    for (int i = 0; i < 20000; i++) {
        uint64_t back = 0;
        uint64_t some = id >> (i % 64);

        /* xorshift64 */
        id ^= id << 13;
        id ^= id >> 7;
        id ^= id << 17;
        hk_jobid_encode (some, (enum hk_jobid_kind) (i % 5), buf);
        if (hk_jobid_decode (buf, &back, NULL) < 0 || back != some)
            fail_msg ("%s", buf);
    }
}

static void blanks_around_are_ignored (void **state)
{
    uint64_t id = 0;

    (void)state;
    assert_int_equal (hk_jobid_decode (" \t42\n ", &id, NULL), 0);
    assert_int_equal (id, 42);
    assert_int_equal (hk_jobid_decode ("4 2", &id, NULL), -1);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (valid_job_ids_are_read),
        cmocka_unit_test (invalid_job_ids_are_refused),
        cmocka_unit_test (each_spelling_comes_back),
        cmocka_unit_test (blanks_around_are_ignored),
    };

    return cmocka_run_group_tests_name ("jobid", tests, NULL, NULL);
}

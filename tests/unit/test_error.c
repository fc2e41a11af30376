/* test_error.c - one line of text beside errno */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "proto/error.h"

static void set_gives_text_and_errno (void **state)
{
    struct hk_error err;

    (void)state;
    errno = 0;
    assert_int_equal (hk_error_set (&err, EINVAL, "rank %d", 7), -1);
    assert_int_equal (errno, EINVAL);
    assert_string_equal (err.text, "rank 7");
}

static void errno_is_named_in_the_text (void **state)
{
    struct hk_error err;

    (void)state;
    assert_int_equal (hk_error_errno (&err, ENOENT, "/x"), -1);
    assert_int_equal (errno, ENOENT);
    assert_string_equal (err.text, "/x: No such file or directory");
}

static void prefix_goes_before_and_keeps_errno (void **state)
{
    struct hk_error err;

    (void)state;
    hk_error_set (&err, ERANGE, "too large");
    assert_int_equal (hk_error_prefix (&err, "R: rank %d", 3), -1);
    assert_int_equal (errno, ERANGE);
    assert_string_equal (err.text, "R: rank 3: too large");
}

static void no_storage_is_fine (void **state)
{
    (void)state;
    assert_int_equal (hk_error_set (NULL, EPERM, "x"), -1);
    assert_int_equal (errno, EPERM);
    assert_int_equal (hk_error_errno (NULL, EIO, "x"), -1);
    assert_int_equal (errno, EIO);
    assert_int_equal (hk_error_prefix (NULL, "x"), -1);
    assert_int_equal (errno, EIO);
}

/* Bytes of "é" at the end that are not whole characters. */
static void assert_cut (const struct hk_error *err, size_t len)
{
    size_t n = strlen (err->text);

    assert_int_equal (n, len);
    assert_int_equal ((unsigned char)err->text[n - 1], 0xa9);
}

static void long_text_is_cut_at_a_character (void **state)
{
    struct hk_error err;
    char text[2 * HK_ERROR_BYTES + 2];

    (void)state;
    for (size_t i = 0; i + 1 < sizeof (text); i += 2)
        memcpy (text + i, "\xc3\xa9", 2);
    text[sizeof (text) - 2] = '\0';
    hk_error_set (&err, EINVAL, "%s", text);
    assert_cut (&err, HK_ERROR_BYTES - 2);
    hk_error_set (&err, EINVAL, "x%s", text);
    assert_cut (&err, HK_ERROR_BYTES - 1);
    hk_error_prefix (&err, "123");
    assert_cut (&err, HK_ERROR_BYTES - 2);
    assert_memory_equal (err.text, "123: x", 6);
    hk_error_errno (&err, EINVAL, "%s", text);
    assert_in_range (strlen (err.text), HK_ERROR_BYTES - 2, HK_ERROR_BYTES - 1);
}

static void characters_of_three_and_four_bytes_stay_whole (void **state)
{
    struct hk_error err;
    char text[HK_ERROR_BYTES];

    (void)state;
    memset (text, 'x', sizeof (text));
    strcpy (text + HK_ERROR_BYTES - 4, "\xe2\x82\xac");
    hk_error_set (&err, EINVAL, "%s", text);
    assert_string_equal (err.text, text);
    hk_error_set (&err, EINVAL, "y%s", text);
    assert_int_equal (strlen (err.text), HK_ERROR_BYTES - 3);
    strcpy (text + HK_ERROR_BYTES - 5, "\xf0\x9f\x98\x80");
    hk_error_set (&err, EINVAL, "yy%s", text);
    assert_int_equal (strlen (err.text), HK_ERROR_BYTES - 3);
}

static void a_prefix_that_fills_all_stays_within (void **state)
{
    struct hk_error err;
    char text[HK_ERROR_BYTES + 100];

    (void)state;
    memset (text, 'p', sizeof (text) - 1);
    text[sizeof (text) - 1] = '\0';
    hk_error_set (&err, EINVAL, "cause");
    hk_error_prefix (&err, "%s", text);
    assert_int_equal (strlen (err.text), HK_ERROR_BYTES - 1);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (set_gives_text_and_errno),
        cmocka_unit_test (errno_is_named_in_the_text),
        cmocka_unit_test (prefix_goes_before_and_keeps_errno),
        cmocka_unit_test (no_storage_is_fine),
        cmocka_unit_test (long_text_is_cut_at_a_character),
        cmocka_unit_test (characters_of_three_and_four_bytes_stay_whole),
        cmocka_unit_test (a_prefix_that_fills_all_stays_within),
    };

    return cmocka_run_group_tests_name ("error", tests, NULL, NULL);
}

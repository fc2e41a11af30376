/* test_escape.c - foreign text made safe */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "proto/escape.h"

static void assert_escaped (const char *in, const char *want)
{
    char out[256];

    assert_ptr_equal (hk_escape (in, SIZE_MAX, out, sizeof (out)), out);
    assert_string_equal (out, want);
}

static void plain_text_stays_as_it_is (void **state)
{
    (void)state;
    assert_escaped ("", "");
    assert_escaped ("node1: exited 1 (~!@#$%^&*)",
                    "node1: exited 1 "
                    "(~!@#$%^&*)");
    assert_escaped ("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
                    "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
}

static void controls_become_hex (void **state)
{
    (void)state;
    assert_escaped ("a\nb\tc\r", "a\\x0ab\\x09c\\x0d");
    assert_escaped ("\x1b[31m", "\\x1b[31m");
    assert_escaped ("\x7f", "\\x7f");
    assert_escaped ("\xc2\x9b"
                    "31m",
                    "\\xc2\\x9b31m");
    assert_escaped ("\xc2\xa0", "\xc2\xa0");
}

static void a_backslash_is_doubled (void **state)
{
    (void)state;
    assert_escaped ("\\x0a", "\\\\x0a");
}

static void bytes_that_are_no_utf8_become_hex (void **state)
{
    (void)state;
    assert_escaped ("\xff", "\\xff");
    assert_escaped ("\x80z", "\\x80z");
    assert_escaped ("\xc3", "\\xc3");
    assert_escaped ("\xc3z", "\\xc3z");
    assert_escaped ("\xe2\x82", "\\xe2\\x82");
    assert_escaped ("\xc0\xaf", "\\xc0\\xaf");          /* overlong / */
    assert_escaped ("\xe0\x80\xaf", "\\xe0\\x80\\xaf"); /* overlong / */
    assert_escaped ("\xed\xa0\x80", "\\xed\\xa0\\x80"); /* surrogate */
    assert_escaped ("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80");
    assert_escaped ("\xf8\x88\x80\x80\x80", "\\xf8\\x88\\x80\\x80\\x80");
}

static void bidi_controls_become_hex (void **state)
{
    (void)state;
    assert_escaped ("a\xe2\x80\xae"
                    "b",
                    "a\\xe2\\x80\\xaeb");
    assert_escaped ("\xe2\x81\xa6", "\\xe2\\x81\\xa6");
    assert_escaped ("\xe2\x81\xa9", "\\xe2\\x81\\xa9");
    assert_escaped ("\xe2\x80\x8e\xe2\x80\x8f",
                    "\\xe2\\x80\\x8e\\xe2\\x80\\x8f");
    assert_escaped ("\xd8\x9c", "\\xd8\\x9c");
    assert_escaped ("\xe2\x80\x90", "\xe2\x80\x90"); /* a hyphen */
}

static void a_length_is_kept_to (void **state)
{
    char out[32];

    (void)state;
    assert_string_equal (hk_escape ("abcdef", 3, out, sizeof (out)), "abc");
    assert_string_equal (hk_escape ("a\0b", 3, out, sizeof (out)), "a\\x00b");
    assert_string_equal (hk_escape ("\xc3\xa9", 1, out, sizeof (out)), "\\xc3");
    assert_string_equal (hk_escape ("x", 0, out, sizeof (out)), "");
}

static void what_does_not_fit_is_cut_at_a_character (void **state)
{
    char out[8];

    (void)state;
    assert_string_equal (hk_escape ("abcdefgh", SIZE_MAX, out, 8), "abcdefg");
    assert_string_equal (hk_escape ("abcd\n", SIZE_MAX, out, 8), "abcd");
    assert_string_equal (hk_escape ("abc\n", SIZE_MAX, out, 8), "abc\\x0a");
    assert_string_equal (hk_escape ("abcdef\xc3\xa9", SIZE_MAX, out, 8),
                         "abcdef");
    assert_string_equal (hk_escape ("abcde\xc3\xa9", SIZE_MAX, out, 8),
                         "abcde\xc3\xa9");
    assert_string_equal (hk_escape ("abcdef\\", SIZE_MAX, out, 8), "abcdef");
    assert_string_equal (hk_escape ("a", SIZE_MAX, out, 1), "");
    out[0] = 'z';
    hk_escape ("a", SIZE_MAX, out, 0);
    assert_int_equal (out[0], 'z');
}

/* Whatever comes in: what goes out is printable, fits, and ends in NUL. */
static void random_bytes_come_out_safe (void **state)
{
    uint32_t seed = 7;
    char in[64];
    char out[100];

    (void)state;
    for (int round = 0; round < 20000; round++) {
        size_t size = 1 + (size_t)round % sizeof (out);

        for (size_t i = 0; i < sizeof (in); i++) {
            seed = seed * 1103515245 + 12345;
            in[i] = (char)(seed >> 16);
            if (round % 2)
                in[i] = (char)(0x80 | in[i]);
        }
        memset (out, 'z', sizeof (out));
        hk_escape (in, sizeof (in), out, size);
        assert_true (strnlen (out, size) < size);
        for (size_t i = 0; out[i]; i++)
            assert_true ((unsigned char)out[i] >= 0x20 && out[i] != 0x7f);
        if (size < sizeof (out))
            assert_int_equal (out[size], 'z');
    }
}

static void a_reason_becomes_one_line (void **state)
{
    char text[] =
        "esc \033[31mred\n new\tline \\ \xc3\xa9 \xff \xe2\x80\xae end";

    (void)state;
    hk_one_line (text);
    assert_string_equal (text, "esc ?[31mred  new line \\ \xc3\xa9 ? ? end");
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (a_reason_becomes_one_line),
        cmocka_unit_test (plain_text_stays_as_it_is),
        cmocka_unit_test (controls_become_hex),
        cmocka_unit_test (a_backslash_is_doubled),
        cmocka_unit_test (bytes_that_are_no_utf8_become_hex),
        cmocka_unit_test (bidi_controls_become_hex),
        cmocka_unit_test (a_length_is_kept_to),
        cmocka_unit_test (what_does_not_fit_is_cut_at_a_character),
        cmocka_unit_test (random_bytes_come_out_safe),
    };

    return cmocka_run_group_tests_name ("escape", tests, NULL, NULL);
}

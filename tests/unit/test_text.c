/* test_text.c - a text that grows, and SHA-256 of one */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "proto/sha256.h"
#include "proto/text.h"
#include "tests/unit/alloc.h"

static void nothing_is_an_empty_text (void **state)
{
    struct hk_text text = { 0 };
    char *s = hk_text_take (&text);

    (void)state;
    assert_string_equal (s, "");
    free (s);
}

static void parts_follow_each_other (void **state)
{
    struct hk_text text = { 0 };
    char *s;

    (void)state;
    hk_text_put (&text, "[");
    hk_text_put_range (&text, 3, 3, 1);
    hk_text_put_range (&text, 5, 7, 2);
    hk_text_put_bytes (&text, "]xyz", 2);
    hk_text_put_number (&text, UINT64_MAX, 1);
    s = hk_text_take (&text);
    assert_string_equal (s, "[3,05-07]x18446744073709551615");
    free (s);
    assert_null (text.text);
}

static void long_texts_grow (void **state)
{
    struct hk_text text = { 0 };
    char *s;

    (void)state;
    for (int i = 0; i < 10000; i++)
        hk_text_put (&text, "0123456789");
    s = hk_text_take (&text);
    assert_int_equal (strlen (s), 100000);
    free (s);
}

static void a_failure_is_kept_until_the_end (void **state)
{
    char *s = NULL;
    long n = 0;

    (void)state;
    do {
        struct hk_text text = { 0 };

        alloc_fail_at (++n);
        for (int i = 0; i < 100; i++)
            hk_text_put (&text, "0123456789");
        s = hk_text_take (&text);
        if (!s)
            assert_int_equal (errno, ENOMEM);
    } while (alloc_did_fail ());
    assert_true (n > 3);
    assert_int_equal (strlen (s), 1000);
    free (s);
}

static void assert_digest (const void *data, size_t len, const char *want)
{
    char hex[HK_SHA256_HEX_BYTES];

    hk_sha256_hex (data, len, hex);
    assert_string_equal (hex, want);
}

/* NIST, "Examples with Intermediate Values", and lengths around a block. */
static void digests_are_those_of_the_standard (void **state)
{
    char *million = malloc (1000000);
    char block[65];

    (void)state;
    assert_digest ("",
                   0,
                   "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b"
                   "7852b855");
    assert_digest ("abc",
                   3,
                   "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61"
                   "f20015ad");
    assert_digest ("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                   56,
                   "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd4"
                   "19db06c1");
    memset (block, 'a', sizeof (block));
    assert_digest (block,
                   55,
                   "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e91"
                   "0f734318");
    assert_digest (block,
                   64,
                   "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df"
                   "154668eb");
    memset (million, 'a', 1000000);
    assert_digest (million,
                   1000000,
                   "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39cc"
                   "c7112cd0");
    free (million);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (nothing_is_an_empty_text),
        cmocka_unit_test (parts_follow_each_other),
        cmocka_unit_test (long_texts_grow),
        cmocka_unit_test (a_failure_is_kept_until_the_end),
        cmocka_unit_test (digests_are_those_of_the_standard),
    };

    return cmocka_run_group_tests_name ("text", tests, NULL, NULL);
}

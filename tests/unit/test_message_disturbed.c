/* test_message_disturbed.c - messages that are disturbed, and memory that ends */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "proto/json_text.h"
#include "proto/message.h"
#include "tests/unit/alloc.h"
#include "tests/unit/message_cases.h"

static void check_number (double value)
{
    struct hk_json_out out = { .errnum = 0 };
    struct hk_json_in in;
    double again = NAN;
    json_t *other;

    hk_json_out_number (&out, value);
    assert_int_equal (out.errnum, 0);
    other = json_loadb (
        out.data, out.len, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, NULL);
    assert_non_null (other);
    hk_json_in_init (&in, out.data, out.len, 1);
    assert_true (hk_json_in_number (&in, &again));
    if (again != value || json_number_value (other) != value)
        fail_msg ("%.17g became %.17g in %s", value, again, out.data);
    json_decref (other);
    free (out.data);
}

static void numbers_keep_every_bit (void **state)
{
    static const double values[] = {
        0,
        1,
        -1,
        0.5,
        -0.25,
        1e-7,
        123456789.125,
        1764590000.123456,
        0.1,
        1e300,
        -1e-300,
        4503599627370496.5,
        9007199254740993.0,
        1e15,
        1e16,
        1.7976931348623157e308,
        5e-324,
        0.000001,
        -0.000001,
        1e-6 / 3,
    };

    (void)state;
    for (size_t i = 0; i < sizeof (values) / sizeof (values[0]); i++)
        check_number (values[i]);
    srand48 (1);
    for (int i = 0; i < 20000; i++) {
        check_number (drand48 () * 2e9);
        check_number (1.7e9 + (double)(lrand48 () % 1000000) / 1e6);
        check_number (ldexp (drand48 (), (int)(mrand48 () % 900)));
    }
}

/* What jansson says; it stops at a value that does not fit, which is no matter
 * of the text: then nothing can be compared.
 */
enum verdict { REFUSED, TAKEN, OPEN };

static enum verdict ask_jansson (const char *text, size_t len)
{
    json_error_t error;
    json_t *value = json_loadb (
        text, len, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);

    json_decref (value);
    if (value)
        return TAKEN;
    if (json_error_code (&error) == json_error_numeric_overflow
        || json_error_code (&error) == json_error_null_byte_in_key)
        return OPEN;
    return REFUSED;
}

/* What our reader takes jansson takes, and the other way round, save for
 * numbers out of range and the limit of depth.
 */
static void compare_readers (const char *text, size_t len)
{
    char *copy = malloc (len + 1);
    struct hk_json_in in;
    bool ours;
    enum verdict theirs = ask_jansson (text, len);

    assert_non_null (copy);
    memcpy (copy, text, len);
    hk_json_in_init (&in, copy, len, 64);
    ours = hk_json_in_skip (&in) && hk_json_in_finish (&in);
    if (ours && theirs == REFUSED)
        fail_msg ("only we take: %.*s", (int)len, text);
    if (!ours && theirs == TAKEN
        && strcmp (in.problem, "nested too deeply") != 0
        && strcmp (in.problem, "NUL in a string") != 0)
        fail_msg ("only we refuse (%s): %.*s", in.problem, (int)len, text);
    free (copy);
}

static void mutate (char *text, size_t *len)
{
    static const char spice[] = "{}[]\",:\\u0-1e.9ntf \n\x80\xc3\xe2\xff";
    size_t at = (size_t)lrand48 () % *len;

    switch (lrand48 () % 4) {
    case 0:
        text[at] = (char)lrand48 ();
        break;
    case 1:
        text[at] = spice[(size_t)lrand48 () % (sizeof (spice) - 1)];
        break;
    case 2:
        memmove (text + at, text + at + 1, *len - at - 1);
        if (*len > 1)
            --*len;
        break;
    default:
        *len = at + 1;
    }
}

static void disturb (const char *name, const char *text, size_t len)
{
    char *copy = malloc (len);

    (void)name;
    assert_non_null (copy);
    for (int i = 0; len > 0 && i < 500; i++) {
        size_t copy_len = len;
        struct hk_msg msg;

        memcpy (copy, text, len);
        for (long n = lrand48 () % 3; n >= 0; n--)
            mutate (copy, &copy_len);
        compare_readers (copy, copy_len);
        if (hk_msg_decode (copy, copy_len, copy_len, &msg, NULL) < 0) {
            assert_true (errno == EINVAL || errno == EPROTO);
            assert_null (msg.arrays);
        } else if (ask_jansson (copy, copy_len) == REFUSED) {
            fail_msg ("only we take: %.*s", (int)copy_len, copy);
        }
        hk_msg_fini (&msg);
    }
    free (copy);
}

static void disturbed_messages_are_read_as_jansson_reads_them (void **state)
{
    (void)state;
    srand48 (2);
    message_each (MESSAGE_VALID, disturb);
    message_each (MESSAGE_INVALID, disturb);
}

static void starve_decode (const char *name, const char *text, size_t len)
{
    struct hk_msg msg;
    bool did_fail;
    long n = 0;

    do {
        int rc;
        int errnum;

        alloc_fail_at (++n);
        rc = hk_msg_decode (text, len, len, &msg, NULL);
        errnum = errno;
        did_fail = alloc_did_fail ();
        if (did_fail ? rc == 0 || errnum != ENOMEM : rc < 0)
            fail_msg ("%s: allocation %ld: %d, errno %d", name, n, rc, errnum);
        hk_msg_fini (&msg);
    } while (did_fail);
}

static void starve_encode (const char *name, const char *text, size_t len)
{
    struct hk_msg msg;
    size_t out_len;
    bool did_fail;
    long n = 0;

    assert_int_equal (hk_msg_decode (text, len, len, &msg, NULL), 0);
    do {
        char *out;
        int errnum;

        alloc_fail_at (++n);
        out = hk_msg_encode (&msg, &out_len, NULL);
        errnum = errno;
        did_fail = alloc_did_fail ();
        if (did_fail ? out || errnum != ENOMEM : !out)
            fail_msg ("%s: allocation %ld: errno %d", name, n, errnum);
        free (out);
    } while (did_fail);
    hk_msg_fini (&msg);
}

/* Our allocations only: without memory for a string with an escape jansson
 * 2.14 itself goes through a null pointer.
 */
static void without_memory_a_message_fails_and_no_more (void **state)
{
    (void)state;
    message_each (MESSAGE_VALID, starve_decode);
    message_each (MESSAGE_VALID, starve_encode);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (numbers_keep_every_bit),
        cmocka_unit_test (disturbed_messages_are_read_as_jansson_reads_them),
        cmocka_unit_test (without_memory_a_message_fails_and_no_more),
    };

    return cmocka_run_group_tests_name ("message-disturbed", tests, NULL, NULL);
}

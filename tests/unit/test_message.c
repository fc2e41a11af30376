/* test_message.c - the codec of messages */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "proto/limits.h"
#include "proto/message.h"
#include "tests/unit/message_cases.h"

static const char id_text[] = "0123456789abcdef0123456789abcdef";

/* Decoded and encoded again it says the same. */
static void round_trip (const char *name, const char *text, size_t len)
{
    struct hk_msg msg;
    struct hk_error err;
    json_t *before = json_loadb (text, len, 0, NULL);
    json_t *after;
    char *again;
    size_t again_len;

    if (hk_msg_decode (text, len, len, &msg, &err) < 0)
        fail_msg ("%s: %s", name, err.text);
    again = hk_msg_encode (&msg, &again_len, &err);
    if (!again) {
        fail_msg ("%s: %s", name, err.text);
        return;
    }
    assert_int_equal (strlen (again), again_len);
    after = json_loadb (again, again_len, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null (after);
    if (!json_equal (before, after))
        fail_msg ("%s became %s", name, again);
    free (again);
    json_decref (before);
    json_decref (after);
    hk_msg_fini (&msg);
}

static void valid_messages_survive_a_round_trip (void **state)
{
    (void)state;
    message_each (MESSAGE_VALID, round_trip);
}

static void check_refused (const char *name, const char *text, size_t len)
{
    struct hk_msg msg;
    struct hk_error err;
    char expected[512];
    size_t err_len;
    char *want;

    snprintf (expected,
              sizeof (expected),
              "%.*s.err",
              (int)(strlen (name) - 5),
              name);
    want = message_read (MESSAGE_INVALID, expected, &err_len);
    if (hk_msg_decode (text, len, HK_MSG_NODE_BYTES, &msg, &err) == 0)
        fail_msg ("%s was taken", name);
    if (errno != EINVAL && errno != EPROTO)
        fail_msg ("%s: errno %d", name, errno);
    want[strcspn (want, "\n")] = '\0';
    if (strcmp (err.text, want) != 0)
        fail_msg ("%s: \"%s\" instead of \"%s\"", name, err.text, want);
    free (want);
}

static void invalid_messages_are_refused_with_the_cause (void **state)
{
    (void)state;
    message_each (MESSAGE_INVALID, check_refused);
}

static int decode (const char *text, struct hk_msg *msg)
{
    struct hk_error err;

    return hk_msg_decode (text, strlen (text), HK_MSG_NODE_BYTES, msg, &err);
}

static void the_type_may_stand_anywhere (void **state)
{
    struct hk_msg msg;

    (void)state;
    assert_int_equal (decode (" { \"x\" : { \"type\" : \"kill\" } , \"n\":4, "
                              "\"seq\" : 3 ,\"type\" : \"free-ok\" } ",
                              &msg),
                      0);
    assert_int_equal (msg.type, HK_MSG_FREE_OK);
    assert_int_equal (msg.seq, 3);
    assert_int_equal (msg.free_ok.n, 4);
    hk_msg_fini (&msg);
}

static void unknown_fields_are_passed_over (void **state)
{
    struct hk_msg msg;

    (void)state;
    assert_int_equal (
        decode ("{\"type\":\"alive\",\"new\":[{\"a\":[1,2.5e3,null,true]}],"
                "\"seq\":1,\"life\":\"L\\u00e4\\ud83d\\ude00\",\"z\":\"\"}",
                &msg),
        0);
    assert_string_equal (msg.alive.life, "L\xc3\xa4\xf0\x9f\x98\x80");
    assert_null (msg.alive.boot_id);
    hk_msg_fini (&msg);
}

static void null_is_as_good_as_absent (void **state)
{
    struct hk_msg msg;

    (void)state;
    assert_int_equal (decode ("{\"type\":\"log-end\",\"seq\":1,\"host\":\"a\","
                              "\"text\":null,\"truncated\":null,\"re\":null}",
                              &msg),
                      0);
    assert_null (msg.log_end.text);
    assert_int_equal (msg.re, 0);
    hk_msg_fini (&msg);
}

static void absent_texts_of_a_run_are_empty (void **state)
{
    size_t len;
    char *text = message_read (MESSAGE_VALID, "run-starting.json", &len);
    struct hk_msg msg;

    (void)state;
    assert_int_equal (decode (text, &msg), 0);
    assert_string_equal (msg.run.invocation, "");
    assert_string_equal (msg.run.unit, "");
    assert_string_equal (msg.run.script, "");
    assert_string_equal (msg.run.reason, "");
    assert_int_equal (msg.run.scripts_count, 0);
    assert_int_equal (msg.run.outcome, HK_OUTCOME_NONE);
    hk_msg_fini (&msg);
    free (text);
}

static void a_run_decodes_whole (void **state)
{
    size_t len;
    char *text = message_read (MESSAGE_VALID, "run.json", &len);
    struct hk_msg msg;

    (void)state;
    assert_int_equal (decode (text, &msg), 0);
    assert_true (msg.run.alloc == INT64_MAX);
    assert_int_equal (msg.run.phase, HK_RUN_ENDED);
    assert_int_equal (msg.run.outcome, HK_OUTCOME_SIGNAL);
    assert_int_equal (msg.run.scripts_count, 2);
    assert_string_equal (msg.run.scripts[1].name, "20-ansible");
    assert_int_equal (msg.run.scripts[1].code, -1);
    assert_int_equal (msg.run.scripts[1].signal, 9);
    assert_true (msg.run.scripts[0].t_start == 1764590000.123456);
    assert_int_equal (msg.run.leftovers_count, 2);
    assert_string_equal (msg.run.leftovers[1], "413 dd -");
    hk_msg_fini (&msg);
    free (text);
}

static void a_message_over_its_limit_is_not_read (void **state)
{
    struct hk_msg msg;
    struct hk_error err;

    (void)state;
    assert_int_equal (hk_msg_decode ("{}", 2, 1, &msg, &err), -1);
    assert_int_equal (errno, EMSGSIZE);
    assert_string_equal (err.text, "message of 2 bytes, at most 1");
}

static void expect_no_encoding (const struct hk_msg *msg, const char *text)
{
    struct hk_error err;
    size_t len;

    assert_null (hk_msg_encode (msg, &len, &err));
    assert_int_equal (errno, EINVAL);
    assert_string_equal (err.text, text);
}

static void our_own_mistakes_are_not_sent (void **state)
{
    struct hk_msg msg = { .type = HK_MSG_KEY };
    char long_text[2 * HK_REASON_BYTES];

    (void)state;
    memset (long_text, 'x', sizeof (long_text) - 1);
    long_text[sizeof (long_text) - 1] = '\0';
    expect_no_encoding (&msg, "key: cred: missing");
    msg = (struct hk_msg){ .type = HK_MSG_NONE };
    expect_no_encoding (&msg, "message without a type");
    msg = (struct hk_msg){ .type = HK_MSG_FREE_OK };
    msg.free_ok.n = UINT64_MAX;
    expect_no_encoding (&msg, "free-ok: n: integer out of range");
    msg = (struct hk_msg){ .type = HK_MSG_DATA };
    expect_no_encoding (&msg, "data: rows: missing or of another type");
    msg = (struct hk_msg){ .type = HK_MSG_ERROR };
    msg.error.code = "bad";
    msg.error.text = long_text;
    expect_no_encoding (&msg, "error: text: text too long");
    msg = (struct hk_msg){ .type = HK_MSG_WELCOME };
    msg.welcome.instance = id_text;
    msg.welcome.now = NAN;
    expect_no_encoding (&msg, "welcome: now: not a JSON value");
    msg = (struct hk_msg){ .type = HK_MSG_ALIVE, .session = "not one" };
    expect_no_encoding (&msg, "alive: session: 32 hex digits expected");
    msg = (struct hk_msg){ .type = HK_MSG_RUN };
    msg.run.instance = msg.run.boot_id = id_text;
    expect_no_encoding (&msg, "run: phase: no such name");
}

static void bytes_that_are_no_utf8_are_replaced (void **state)
{
    struct hk_msg msg = { .type = HK_MSG_ALIVE, .seq = 1 };
    char *text;

    (void)state;
    msg.alive.life = "a\xff\x01\"\\\n\xe2\x82";
    text = hk_msg_encode (&msg, NULL, NULL); /* who needs no length */
    assert_string_equal (text,
                         "{\"type\":\"alive\",\"seq\":1,\"life\":\"a\xef\xbf"
                         "\xbd\\u0001\\\"\\\\\\n\xef\xbf\xbd\xef\xbf\xbd\"}");
    free (text);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (valid_messages_survive_a_round_trip),
        cmocka_unit_test (invalid_messages_are_refused_with_the_cause),
        cmocka_unit_test (the_type_may_stand_anywhere),
        cmocka_unit_test (unknown_fields_are_passed_over),
        cmocka_unit_test (null_is_as_good_as_absent),
        cmocka_unit_test (absent_texts_of_a_run_are_empty),
        cmocka_unit_test (a_run_decodes_whole),
        cmocka_unit_test (a_message_over_its_limit_is_not_read),
        cmocka_unit_test (our_own_mistakes_are_not_sent),
        cmocka_unit_test (bytes_that_are_no_utf8_are_replaced),
    };

    return cmocka_run_group_tests_name ("message", tests, NULL, NULL);
}

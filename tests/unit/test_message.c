/* test_message.c - the codec of messages, its table and its roles */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "proto/json_text.h"
#include "proto/limits.h"
#include "proto/message.h"
#include "tests/unit/alloc.h"

#define VALID "tests/unit/data/message/valid/"
#define INVALID "tests/unit/data/message/invalid/"

static const char id_text[] = "0123456789abcdef0123456789abcdef";

static char *read_file (const char *folder, const char *name, size_t *len)
{
    char path[512];
    FILE *f;
    char *data;
    long size;

    snprintf (path, sizeof (path), "%s%s", folder, name);
    f = fopen (path, "re");
    assert_non_null (f);
    assert_int_equal (fseek (f, 0, SEEK_END), 0);
    size = ftell (f);
    assert_true (size >= 0);
    rewind (f);
    data = malloc ((size_t)size + 1);
    assert_non_null (data);
    assert_int_equal (fread (data, 1, (size_t)size, f), size);
    data[size] = '\0';
    fclose (f);
    *len = (size_t)size;
    return data;
}

static int is_json (const struct dirent *entry)
{
    size_t len = strlen (entry->d_name);

    return len > 5 && strcmp (entry->d_name + len - 5, ".json") == 0;
}

typedef void (*case_f) (const char *name, const char *text, size_t len);

static int each_case (const char *folder, case_f check)
{
    struct dirent **list;
    int count = scandir (folder, &list, is_json, alphasort);

    assert_true (count > 0);
    for (int i = 0; i < count; i++) {
        size_t len;
        char *text = read_file (folder, list[i]->d_name, &len);

        check (list[i]->d_name, text, len);
        free (text);
        free (list[i]);
    }
    free (list);
    return count;
}

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
    each_case (VALID, round_trip);
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
    want = read_file (INVALID, expected, &err_len);
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
    each_case (INVALID, check_refused);
}

static void check_fields (const char *name,
                          const struct hk_msg_field *fields,
                          const json_t *object)
{
    for (; fields->name; fields++) {
        const json_t *value = json_object_get (object, fields->name);

        if (!value)
            fail_msg ("%s has no %s", name, fields->name);
        if (fields->kind == HK_FIELD_STRUCTS)
            check_fields (name,
                          fields->sub,
                          json_array_get (value, json_array_size (value) - 1));
        else if (fields->kind == HK_FIELD_GROUP)
            check_fields (name, fields->sub, value);
    }
}

static void every_message_has_a_case_with_every_field (void **state)
{
    (void)state;
    for (int i = HK_MSG_NONE + 1; i < HK_MSG_COUNT; i++) {
        const struct hk_msg_row *row = hk_msg_row ((enum hk_msg_type)i);
        char name[64];
        size_t len;
        char *text;
        json_t *object;

        snprintf (name, sizeof (name), "%s.json", row->name);
        text = read_file (VALID, name, &len);
        object = json_loadb (text, len, 0, NULL);
        check_fields (name, row->fields, object);
        json_decref (object);
        free (text);
    }
}

/* The paragraph of the manual page about a message: from the line that begins
 * with names of messages, this one among them, to the next one.
 */
static char *find_paragraph (const char *page, const char *name)
{
    char word[64];
    const char *line = page;
    const char *found = NULL;

    snprintf (word, sizeof (word), "*%s*", name);
    while (line && *line) {
        const char *end = strchrnul (line, '\n');
        const char *at = strstr (line, word);

        if (*line == '*' && found)
            return strndup (found, (size_t)(line - found));
        if (*line == '*' && at && at < end)
            found = line;
        line = *end ? end + 1 : end;
    }
    return found ? strdup (found) : NULL;
}

/* Each by its name, with a question mark if and only if it is optional. */
static void check_named (const char *name,
                         const struct hk_msg_field *fields,
                         const char *paragraph)
{
    for (; fields->name; fields++) {
        char word[64];

        snprintf (word,
                  sizeof (word),
                  "_%s_%s",
                  fields->name,
                  fields->optional ? "?" : "");
        if (!strstr (paragraph, word))
            fail_msg ("%s: no %s in the manual page", name, word);
        snprintf (word, sizeof (word), "_%s_?", fields->name);
        if (!fields->optional && strstr (paragraph, word))
            fail_msg ("%s: %s is not optional", name, fields->name);
        if (fields->sub && strcmp (fields->name, "runs") != 0)
            check_named (name, fields->sub, paragraph);
    }
}

static void the_manual_page_names_every_message_and_field (void **state)
{
    size_t len;
    char *page = read_file ("proto/", "hk-protocol.7.scd", &len);
    /* before, a few fields of the frame look like messages */
    const char *messages = strstr (page, "# THE KEY AND THE SESSION");

    (void)state;
    assert_non_null (messages);
    for (int i = HK_MSG_NONE + 1; i < HK_MSG_COUNT; i++) {
        const struct hk_msg_row *row = hk_msg_row ((enum hk_msg_type)i);
        char *paragraph = find_paragraph (messages, row->name);

        if (!paragraph)
            fail_msg ("%s is not in the manual page", row->name);
        check_named (row->name, row->fields, paragraph);
        free (paragraph);
    }
    free (page);
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
    char *text = read_file (VALID, "run-starting.json", &len);
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
    char *text = read_file (VALID, "run.json", &len);
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
    size_t len;
    char *text;

    (void)state;
    msg.alive.life = "a\xff\x01\"\\\n\xe2\x82";
    text = hk_msg_encode (&msg, &len, NULL);
    assert_string_equal (text,
                         "{\"type\":\"alive\",\"seq\":1,\"life\":\"a\xef\xbf"
                         "\xbd\\u0001\\\"\\\\\\n\xef\xbf\xbd\xef\xbf\xbd\"}");
    free (text);
}

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
    each_case (VALID, disturb);
    each_case (INVALID, disturb);
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
    each_case (VALID, starve_decode);
    each_case (VALID, starve_encode);
}

static void roles_are_no_ladder (void **state)
{
    (void)state;
    for (int i = HK_MSG_NONE + 1; i < HK_MSG_COUNT; i++) {
        enum hk_msg_type type = (enum hk_msg_type)i;
        const struct hk_msg_row *row = hk_msg_row (type);

        assert_int_equal (hk_msg_type_decode (row->name, strlen (row->name)),
                          type);
        /* what a guest or a manager may, an owner may */
        if (hk_msg_allowed (type, HK_ROLE_GUEST)
            || hk_msg_allowed (type, HK_ROLE_MANAGER))
            assert_true (hk_msg_allowed (type, HK_ROLE_OWNER));
        if (row->least != HK_ROLE_NONE)
            assert_true (hk_msg_allowed (type, row->least));
        else if (type != HK_MSG_HELLO)
            for (int r = HK_ROLE_GUEST; r <= HK_ROLE_OWNER; r++)
                assert_false (hk_msg_allowed (type, (enum hk_role)r));
    }
    assert_false (hk_msg_allowed (HK_MSG_KILL, HK_ROLE_NODE));
    assert_false (hk_msg_allowed (HK_MSG_LIST, HK_ROLE_NODE));
    assert_false (hk_msg_allowed (HK_MSG_RUN, HK_ROLE_OWNER));
    assert_false (hk_msg_allowed (HK_MSG_KILL, HK_ROLE_GUEST));
    assert_false (hk_msg_allowed (HK_MSG_JOB_END, HK_ROLE_MANAGER));
    assert_true (hk_msg_allowed (HK_MSG_PING, HK_ROLE_NODE));
    assert_false (hk_msg_allowed (HK_MSG_LIST, HK_ROLE_NONE));
    assert_null (hk_msg_row (HK_MSG_COUNT));
    assert_int_equal (hk_role_decode ("owner"), HK_ROLE_OWNER);
    assert_int_equal (hk_role_decode ("none"), -1);
}

static void names_of_outcomes_and_phases_come_back (void **state)
{
    (void)state;
    for (int i = HK_OUTCOME_NONE; i < HK_OUTCOME_COUNT; i++)
        assert_int_equal (
            hk_outcome_decode (hk_outcome_name ((enum hk_outcome)i)), i);
    for (int i = HK_RUN_STARTING; i <= HK_RUN_ENDED; i++)
        assert_int_equal (
            hk_run_phase_decode (hk_run_phase_name ((enum hk_run_phase)i)), i);
    assert_int_equal (hk_run_phase_decode (""), -1);
    assert_true (hk_outcome_is_failure (HK_OUTCOME_UNKNOWN));
    assert_false (hk_outcome_is_failure (HK_OUTCOME_SKIPPED));
    assert_false (hk_outcome_is_failure (HK_OUTCOME_NONE));
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (valid_messages_survive_a_round_trip),
        cmocka_unit_test (invalid_messages_are_refused_with_the_cause),
        cmocka_unit_test (every_message_has_a_case_with_every_field),
        cmocka_unit_test (the_manual_page_names_every_message_and_field),
        cmocka_unit_test (the_type_may_stand_anywhere),
        cmocka_unit_test (unknown_fields_are_passed_over),
        cmocka_unit_test (null_is_as_good_as_absent),
        cmocka_unit_test (absent_texts_of_a_run_are_empty),
        cmocka_unit_test (a_run_decodes_whole),
        cmocka_unit_test (a_message_over_its_limit_is_not_read),
        cmocka_unit_test (our_own_mistakes_are_not_sent),
        cmocka_unit_test (bytes_that_are_no_utf8_are_replaced),
        cmocka_unit_test (numbers_keep_every_bit),
        cmocka_unit_test (disturbed_messages_are_read_as_jansson_reads_them),
        cmocka_unit_test (without_memory_a_message_fails_and_no_more),
        cmocka_unit_test (roles_are_no_ladder),
        cmocka_unit_test (names_of_outcomes_and_phases_come_back),
    };

    return cmocka_run_group_tests_name ("message", tests, NULL, NULL);
}

/* test_message_table.c - the table of messages, its cases, manual page and roles */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "proto/message.h"
#include "tests/unit/message_cases.h"

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
        text = message_read (MESSAGE_VALID, name, &len);
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
    char *page = message_read ("proto/", "hk-protocol.7.scd", &len);
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
        cmocka_unit_test (every_message_has_a_case_with_every_field),
        cmocka_unit_test (the_manual_page_names_every_message_and_field),
        cmocka_unit_test (roles_are_no_ladder),
        cmocka_unit_test (names_of_outcomes_and_phases_come_back),
    };

    return cmocka_run_group_tests_name ("message-table", tests, NULL, NULL);
}

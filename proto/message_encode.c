/* message_encode.c - a message into the text of a frame, by the table */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "proto/message_codec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "proto/json_text.h"
#include "proto/limits.h"

struct encoder {
    struct hk_json_out out;
    const char *field; /* where the first mistake is */
    const char *problem;
};

static void encode_fields (struct encoder *e,
                           const struct hk_msg_field *fields,
                           const char *base,
                           bool first);

static void fail (struct encoder *e,
                  const struct hk_msg_field *field,
                  const char *problem)
{
    if (e->problem)
        return;
    e->field = field->name;
    e->problem = problem;
    e->out.errnum = EINVAL;
}

static const char *text_of (const struct hk_msg_field *field, const void *slot)
{
    const char *text;

    switch (field->kind) {
    case HK_FIELD_PHASE:
        return hk_run_phase_name (*(const enum hk_run_phase *)slot);
    case HK_FIELD_OUTCOME:
        return hk_outcome_name (*(const enum hk_outcome *)slot);
    default:
        text = *(const char *const *)slot;
        return text || !field->may_be_empty ? text : "";
    }
}

static int64_t integer_of (const struct hk_msg_field *field, const void *slot)
{
    if (field->kind == HK_FIELD_INT)
        return *(const int *)slot;
    if (field->kind == HK_FIELD_U32)
        return *(const uint32_t *)slot;
    return *(const int64_t *)slot; /* an u64 of 64 bits is negative here */
}

/* An optional field that says nothing is left out. */
static bool is_absent (const struct hk_msg_field *field, const char *base)
{
    const void *slot = base + field->offset;
    const char *text;

    if (!field->optional)
        return false;
    switch (field->kind) {
    case HK_FIELD_INT:
    case HK_FIELD_U32:
    case HK_FIELD_U64:
    case HK_FIELD_I64:
        return integer_of (field, slot) == 0;
    case HK_FIELD_DOUBLE:
        return *(const double *)slot == 0;
    case HK_FIELD_BOOL:
        return !*(const bool *)slot;
    case HK_FIELD_OBJECT:
    case HK_FIELD_ARRAY:
        return !*(json_t *const *)slot;
    case HK_FIELD_STRUCTS:
    case HK_FIELD_STRINGS:
        return *(const size_t *)(base + field->count_offset) == 0;
    case HK_FIELD_GROUP:
        return !*(const char *const *)(base + field->sub[0].offset);
    case HK_FIELD_OUTCOME:
        return *(const enum hk_outcome *)slot == HK_OUTCOME_NONE;
    default:
        text = text_of (field, slot);
        return !text || (field->may_be_empty && !*text);
    }
}

static void encode_text (struct encoder *e,
                         const struct hk_msg_field *field,
                         const void *slot)
{
    const char *text = text_of (field, slot);
    const char *problem;

    if (!text) {
        fail (e, field, "missing");
        return;
    }
    if (field->kind == HK_FIELD_PHASE || field->kind == HK_FIELD_OUTCOME)
        problem = *text ? NULL : "no such name";
    else
        problem = hk_field_check_text (field, text, strlen (text));
    if (problem)
        fail (e, field, problem);
    else
        hk_json_out_string (&e->out, text);
}

static void encode_value (struct encoder *e,
                          const struct hk_msg_field *field,
                          const void *slot)
{
    const json_t *value = *(json_t *const *)slot;

    if (field->kind == HK_FIELD_OBJECT ? !json_is_object (value)
                                       : !json_is_array (value))
        fail (e, field, "missing or of another type");
    else
        hk_json_out_value (&e->out, value);
}

static void encode_items (struct encoder *e,
                          const struct hk_msg_field *field,
                          const char *base,
                          const void *slot)
{
    size_t count = *(const size_t *)(base + field->count_offset);

    if (count > field->limit) {
        fail (e, field, "too many members");
        return;
    }
    hk_json_out_char (&e->out, '[');
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            hk_json_out_char (&e->out, ',');
        if (field->kind == HK_FIELD_STRINGS) {
            const char *text = (*(const char *const *const *)slot)[i];

            if (!text || strlen (text) >= HK_REASON_BYTES)
                fail (e, field, "missing or too long");
            else
                hk_json_out_string (&e->out, text);
            continue;
        }
        hk_json_out_char (&e->out, '{');
        encode_fields (e,
                       field->sub,
                       *(const char *const *)slot + i * field->sub_size,
                       true);
        hk_json_out_char (&e->out, '}');
    }
    hk_json_out_char (&e->out, ']');
}

static void encode_field (struct encoder *e,
                          const struct hk_msg_field *field,
                          const char *base)
{
    const void *slot = base + field->offset;

    switch (field->kind) {
    case HK_FIELD_INT:
    case HK_FIELD_U32:
    case HK_FIELD_U64:
    case HK_FIELD_I64:
        if (!hk_field_check_int (field, integer_of (field, slot)))
            fail (e, field, "integer out of range");
        hk_json_out_integer (&e->out, integer_of (field, slot));
        break;
    case HK_FIELD_DOUBLE:
        hk_json_out_number (&e->out, *(const double *)slot);
        break;
    case HK_FIELD_BOOL:
        if (*(const bool *)slot)
            hk_json_out_text (&e->out, "true", 4);
        else
            hk_json_out_text (&e->out, "false", 5);
        break;
    case HK_FIELD_OBJECT:
    case HK_FIELD_ARRAY:
        encode_value (e, field, slot);
        break;
    case HK_FIELD_STRUCTS:
    case HK_FIELD_STRINGS:
        encode_items (e, field, base, slot);
        break;
    case HK_FIELD_GROUP:
        hk_json_out_char (&e->out, '{');
        encode_fields (e, field->sub, base, true);
        hk_json_out_char (&e->out, '}');
        break;
    default:
        encode_text (e, field, slot);
    }
}

static void encode_fields (struct encoder *e,
                           const struct hk_msg_field *fields,
                           const char *base,
                           bool first)
{
    for (const struct hk_msg_field *field = fields; field->name; field++) {
        if (is_absent (field, base))
            continue;
        if (!first)
            hk_json_out_char (&e->out, ',');
        first = false;
        hk_json_out_char (&e->out, '"');
        hk_json_out_text (&e->out, field->name, strlen (field->name));
        hk_json_out_text (&e->out, "\":", 2);
        encode_field (e, field, base);
        if (e->out.errnum && !e->field)
            e->field = field->name;
    }
}

char *hk_msg_encode (const struct hk_msg *msg,
                     size_t *len,
                     struct hk_error *err)
{
    const struct hk_msg_row *row = hk_msg_row (msg->type);
    struct encoder e = { .field = NULL };
    struct hk_msg envelope = { .seq = msg->seq };

    if (!row) {
        hk_error_set (err, EINVAL, "message without a type");
        return NULL;
    }
    envelope.re = msg->re;
    envelope.session = msg->session;
    /* welcome and rehello have them in the body */
    if (msg->type != HK_MSG_WELCOME && msg->type != HK_MSG_REHELLO) {
        envelope.start = msg->start;
        envelope.commit = msg->commit;
    }
    hk_json_out_text (&e.out, "{\"type\":\"", 9);
    hk_json_out_text (&e.out, row->name, strlen (row->name));
    hk_json_out_char (&e.out, '"');
    encode_fields (&e, hk_msg_envelope, (const char *)&envelope, false);
    encode_fields (&e, row->fields, (const char *)msg + HK_MSG_BODY, false);
    hk_json_out_char (&e.out, '}');
    if (e.out.errnum) {
        free (e.out.data);
        hk_error_set (err,
                      e.out.errnum,
                      "%s: %s: %s",
                      row->name,
                      e.field ? e.field : "text",
                      e.problem                ? e.problem
                      : e.out.errnum == ENOMEM ? "out of memory"
                                               : "not a JSON value");
        return NULL;
    }
    if (len)
        *len = e.out.len;
    return e.out.data;
}

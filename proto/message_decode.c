/* message_decode.c - one frame into a message, by the table */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "proto/message_codec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "proto/json_text.h"
#include "proto/limits.h"

/* What msg->arrays points to: a list of blocks, the first of which is the
 * frame's text.
 */
struct block {
    struct block *next;
    max_align_t data[];
};

struct decoder {
    struct hk_json_in in;
    struct hk_msg *msg;
    const char *field; /* where the first problem is */
};

static bool decode_object (struct decoder *d,
                           const struct hk_msg_field *fields,
                           char *base,
                           bool is_top);

static void *arena_alloc (struct hk_msg *msg, size_t bytes)
{
    struct block *block = calloc (1, sizeof (*block) + bytes);

    if (!block)
        return NULL;
    block->next = msg->arrays;
    msg->arrays = block;
    return block->data;
}

void hk_msg_fini (struct hk_msg *msg)
{
    struct block *block = msg->arrays;

    while (block) {
        struct block *next = block->next;

        free (block);
        block = next;
    }
    msg->arrays = NULL;
    json_decref (msg->root);
    msg->root = NULL;
}

static bool fail (struct decoder *d,
                  const struct hk_msg_field *field,
                  const char *problem)
{
    if (!d->field)
        d->field = field->name;
    return hk_json_in_fail (&d->in, problem);
}

static bool decode_text (struct decoder *d,
                         const struct hk_msg_field *field,
                         void *slot)
{
    char *text;
    size_t len;
    const char *problem;
    int value;

    if (!hk_json_in_string (&d->in, &text, &len))
        return false;
    switch (field->kind) {
    case HK_FIELD_PHASE:
        if ((value = hk_run_phase_decode (text)) < 0)
            return fail (d, field, "no phase of a run");
        *(enum hk_run_phase *)slot = (enum hk_run_phase)value;
        return true;
    case HK_FIELD_OUTCOME:
        *(enum hk_outcome *)slot = hk_outcome_decode (text);
        if (*(enum hk_outcome *)slot == HK_OUTCOME_NONE && len > 0)
            return fail (d, field, "no outcome of a run");
        return true;
    default:
        problem = hk_field_check_text (field, text, len);
        if (problem)
            return fail (d, field, problem);
        *(const char **)slot = text;
        return true;
    }
}

static bool decode_integer (struct decoder *d,
                            const struct hk_msg_field *field,
                            void *slot)
{
    int64_t value;

    if (!hk_json_in_integer (&d->in, &value))
        return false;
    if (!hk_field_check_int (field, value))
        return fail (d, field, "integer out of range");
    if (field->kind == HK_FIELD_INT)
        *(int *)slot = (int)value;
    else if (field->kind == HK_FIELD_U32)
        *(uint32_t *)slot = (uint32_t)value;
    else
        *(int64_t *)slot = value; /* of u64 too: below 2^63 */
    return true;
}

static bool decode_value (struct decoder *d,
                          const struct hk_msg_field *field,
                          void *slot)
{
    char bracket = field->kind == HK_FIELD_OBJECT ? '{' : '[';
    json_t *value;

    if (hk_json_in_peek (&d->in) != bracket)
        return fail (
            d, field, bracket == '{' ? "object expected" : "array expected");
    value = hk_json_in_value (&d->in);
    if (!value)
        return false;
    d->msg->root = value;
    *(json_t **)slot = value;
    return true;
}

/* How many members the array at hand has; it is read twice so that it takes
 * one allocation of the right size.
 */
static bool count_items (struct decoder *d,
                         const struct hk_msg_field *field,
                         size_t *count)
{
    struct hk_json_in ahead = d->in;
    bool first = true;

    *count = 0;
    if (hk_json_in_open (&ahead, '['))
        while (hk_json_in_item (&ahead, &first)) {
            if (!hk_json_in_skip (&ahead))
                break;
            if (++*count > field->limit)
                return fail (d, field, "too many members");
        }
    if (ahead.problem)
        return fail (d, field, ahead.problem);
    return true;
}

static bool decode_items (struct decoder *d,
                          const struct hk_msg_field *field,
                          char *base,
                          void *slot)
{
    /* a string of the array has no entry of its own in a table */
    const struct hk_msg_field item = {
        .name = field->name,
        .kind = HK_FIELD_STRING,
        .limit = HK_REASON_BYTES,
    };
    bool is_strings = field->kind == HK_FIELD_STRINGS;
    size_t size = is_strings ? sizeof (char *) : field->sub_size;
    size_t count;
    char *items;
    bool first = true;

    if (!count_items (d, field, &count))
        return false;
    items = arena_alloc (d->msg, count * size);
    if (!items)
        return fail (d, field, hk_json_no_memory);
    *(char **)slot = items;
    *(size_t *)(base + field->count_offset) = count;
    hk_json_in_open (&d->in, '[');
    while (hk_json_in_item (&d->in, &first)) {
        if (is_strings ? !decode_text (d, &item, items)
                       : !decode_object (d, field->sub, items, false))
            return false;
        items += size;
    }
    return !d->in.problem;
}

static bool decode_field (struct decoder *d,
                          const struct hk_msg_field *field,
                          char *base)
{
    void *slot = base + field->offset;

    switch (field->kind) {
    case HK_FIELD_INT:
    case HK_FIELD_U32:
    case HK_FIELD_U64:
    case HK_FIELD_I64:
        return decode_integer (d, field, slot);
    case HK_FIELD_DOUBLE:
        return hk_json_in_number (&d->in, slot);
    case HK_FIELD_BOOL:
        return hk_json_in_bool (&d->in, slot);
    case HK_FIELD_OBJECT:
    case HK_FIELD_ARRAY:
        return decode_value (d, field, slot);
    case HK_FIELD_STRUCTS:
    case HK_FIELD_STRINGS:
        return decode_items (d, field, base, slot);
    case HK_FIELD_GROUP:
        return decode_object (d, field->sub, base, false);
    default:
        return decode_text (d, field, slot);
    }
}

/* Senders keep the order of the table: the search goes on from `hint`. */
static const struct hk_msg_field *find (const struct hk_msg_field *fields,
                                        const char *key,
                                        size_t len,
                                        size_t *hint)
{
    size_t i = *hint;

    do {
        if (!fields[i].name) {
            i = 0;
            if (!fields[0].name)
                return NULL;
            continue;
        }
        if (strncmp (fields[i].name, key, len) == 0 && !fields[i].name[len]) {
            *hint = i + 1;
            return &fields[i];
        }
        i++;
    } while (i != *hint);
    return NULL;
}

/* After the last member: what is missing, and "" where that is the default. */
static bool check_seen (struct decoder *d,
                        const struct hk_msg_field *fields,
                        char *base,
                        uint64_t seen)
{
    for (size_t i = 0; fields[i].name; i++) {
        if (seen & (1ULL << i))
            continue;
        if (!fields[i].optional)
            return fail (d, &fields[i], "missing");
        if (fields[i].may_be_empty)
            *(const char **)(base + fields[i].offset) = "";
    }
    return true;
}

static bool decode_member (struct decoder *d,
                           const struct hk_msg_field *fields,
                           const struct hk_msg_field *field,
                           char *base,
                           uint64_t *seen)
{
    uint64_t bit = 1ULL << (field - fields);

    if (*seen & bit)
        return fail (d, field, "said twice");
    if (field->optional && hk_json_in_null (&d->in))
        return true;
    *seen |= bit;
    if (decode_field (d, field, base))
        return true;
    if (!d->field)
        d->field = field->name;
    return false;
}

static bool decode_object (struct decoder *d,
                           const struct hk_msg_field *fields,
                           char *base,
                           bool is_top)
{
    const struct hk_msg_field *field;
    uint64_t seen = 0;
    uint64_t seen_envelope = 0;
    size_t hint = 0;
    size_t hint_envelope = 0;
    bool first = true;
    char *key;
    size_t len;
    bool ok = true;

    if (!hk_json_in_open (&d->in, '{'))
        return false;
    while (ok && hk_json_in_key (&d->in, &first, &key, &len)) {
        if ((field = find (fields, key, len, &hint)))
            ok = decode_member (d, fields, field, base, &seen);
        else if (is_top
                 && (field = find (hk_msg_envelope, key, len, &hint_envelope)))
            ok = decode_member (
                d, hk_msg_envelope, field, (char *)d->msg, &seen_envelope);
        else
            ok = hk_json_in_skip (&d->in);
    }
    if (d->in.problem || !check_seen (d, fields, base, seen))
        return false;
    return !is_top
           || check_seen (d, hk_msg_envelope, (char *)d->msg, seen_envelope);
}

/* The value of "type", wherever it stands, without a change to the text. */
static bool find_type (struct decoder *d, const char **name, size_t *len)
{
    struct hk_json_in in = d->in;
    bool first = true;

    if (!hk_json_in_open (&in, '{'))
        return hk_json_in_fail (&d->in, in.problem);
    while (!in.problem && hk_json_in_peek (&in) != '}') {
        const char *key;

        if (!first && (hk_json_in_peek (&in) != ',' || !in.at++))
            break;
        first = false;
        hk_json_in_peek (&in);
        key = in.at;
        if (!hk_json_in_skip (&in) || hk_json_in_peek (&in) != ':')
            break;
        in.at++;
        hk_json_in_peek (&in);
        *name = in.at + 1;
        if (!hk_json_in_skip (&in))
            break;
        if (strncmp (key, "\"type\"", 6) == 0 && (*name)[-1] == '"') {
            *len = (size_t)(in.at - 1 - *name);
            return true;
        }
    }
    return hk_json_in_fail (&d->in, in.problem ? in.problem : "no type");
}

/* Their start and commit are the envelope's as well. */
static void copy_stamp (struct hk_msg *msg)
{
    if (msg->type == HK_MSG_WELCOME) {
        msg->start = msg->welcome.start;
        msg->commit = msg->welcome.commit;
    } else if (msg->type == HK_MSG_REHELLO) {
        msg->start = msg->rehello.start;
    }
}

int hk_msg_decode (const void *data,
                   size_t len,
                   size_t max_bytes,
                   struct hk_msg *msg,
                   struct hk_error *err)
{
    struct decoder d = { .msg = msg };
    const struct hk_msg_row *row;
    const char *name = "";
    size_t name_len = 0;
    char *text;

    memset (msg, 0, sizeof (*msg));
    if (len > max_bytes)
        return hk_error_set (
            err, EMSGSIZE, "message of %zu bytes, at most %zu", len, max_bytes);
    text = arena_alloc (msg, len + 1);
    if (!text)
        return hk_error_set (err, ENOMEM, "out of memory");
    memcpy (text, data, len);
    hk_json_in_init (&d.in, text, len, HK_MSG_DEPTH);
    if (!find_type (&d, &name, &name_len)) {
        hk_msg_fini (msg);
        return hk_error_set (err, EINVAL, "message: %s", d.in.problem);
    }
    msg->type = hk_msg_type_decode (name, name_len);
    row = hk_msg_row (msg->type);
    if (!row) {
        int shown = name_len < 32 ? (int)name_len : 32;

        hk_error_set (err, EPROTO, "unknown message %.*s", shown, name);
        hk_msg_fini (msg);
        return -1;
    }
    if (decode_object (&d, row->fields, (char *)msg + HK_MSG_BODY, true)
        && hk_json_in_finish (&d.in)) {
        copy_stamp (msg);
        return 0;
    }
    hk_msg_fini (msg);
    return hk_error_set (err,
                         d.in.problem == hk_json_no_memory ? ENOMEM : EINVAL,
                         "%s: %s%s%s",
                         row->name,
                         d.field ? d.field : "",
                         d.field ? ": " : "",
                         d.in.problem);
}

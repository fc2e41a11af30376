/* message.c - what both directions of the codec check */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "proto/message_codec.h"

#include <limits.h>
#include <string.h>
#include "proto/limits.h"

const struct hk_msg_field hk_msg_envelope[] = {
    {
        .name = "seq",
        .kind = HK_FIELD_U64,
        .offset = offsetof (struct hk_msg, seq),
    },
    {
        .name = "re",
        .kind = HK_FIELD_U64,
        .optional = true,
        .offset = offsetof (struct hk_msg, re),
    },
    {
        .name = "session",
        .kind = HK_FIELD_ID,
        .optional = true,
        .offset = offsetof (struct hk_msg, session),
    },
    {
        .name = "start",
        .kind = HK_FIELD_U64,
        .optional = true,
        .offset = offsetof (struct hk_msg, start),
    },
    {
        .name = "commit",
        .kind = HK_FIELD_U64,
        .optional = true,
        .offset = offsetof (struct hk_msg, commit),
    },
    { .name = NULL },
};

static bool is_id (const char *text, size_t len)
{
    if (len != HK_ID_BYTES - 1)
        return false;
    for (size_t i = 0; i < len; i++)
        if (!((text[i] >= '0' && text[i] <= '9')
              || (text[i] >= 'a' && text[i] <= 'f')))
            return false;
    return true;
}

static bool is_idset (const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!((text[i] >= '0' && text[i] <= '9') || text[i] == ','
              || text[i] == '-' || text[i] == '[' || text[i] == ']'))
            return false;
    return true;
}

static bool is_hosts (const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (text[i] <= ' ' || text[i] > '~')
            return false;
    return true;
}

const char *hk_field_check_text (const struct hk_msg_field *field,
                                 const char *text,
                                 size_t len)
{
    switch (field->kind) {
    case HK_FIELD_ID:
        if (!is_id (text, len) && !(len == 0 && field->may_be_empty))
            return "32 hex digits expected";
        return NULL;
    case HK_FIELD_IDSET:
        if (!is_idset (text, len))
            return "idset expected";
        break;
    case HK_FIELD_HOSTS:
        if (!is_hosts (text, len))
            return "host list expected";
        break;
    default:
        break;
    }
    return len < field->limit ? NULL : "text too long";
}

bool hk_field_check_int (const struct hk_msg_field *field, int64_t value)
{
    switch (field->kind) {
    case HK_FIELD_INT:
        if (field->limit)
            return value >= 0 && value <= (int64_t)field->limit;
        return value >= INT_MIN && value <= INT_MAX;
    case HK_FIELD_U32:
        return value >= 0 && value <= UINT32_MAX;
    case HK_FIELD_U64:
        return value >= 0;
    default:
        return true;
    }
}

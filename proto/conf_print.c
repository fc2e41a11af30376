/* conf_print.c - one option's value to text, and what is expected of it */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/conf_table.h"
#include "proto/duration.h"
#include "proto/text.h"

char *hk_conf_value_expected (const struct hk_conf_row *row, char *buf)
{
    char least[HK_DURATION_TEXT_BYTES];
    char most[HK_DURATION_TEXT_BYTES];
    const char *text = "";

    switch (row->kind) {
    case HK_CONF_DURATION:
    case HK_CONF_RELEASE:
        snprintf (buf,
                  HK_ERROR_BYTES,
                  "duration from %s to %s%s",
                  hk_duration_encode (row->least, least),
                  hk_duration_encode (row->most, most),
                  row->kind == HK_CONF_RELEASE ? ", or all"
                  : row->unbounded             ? ", or infinity"
                                               : "");
        return buf;
    case HK_CONF_PORT:
    case HK_CONF_COUNT:
        snprintf (buf,
                  HK_ERROR_BYTES,
                  "number from %" PRId64 " to %" PRId64,
                  row->least,
                  row->most);
        return buf;
    case HK_CONF_BOOL:
        text = "yes or no";
        break;
    case HK_CONF_WORD:
        text = row->option.type;
        break;
    case HK_CONF_USER:
    case HK_CONF_OWNER:
        text = "user name or number";
        break;
    case HK_CONF_USERS:
        text = "user names or numbers with commas between";
        break;
    case HK_CONF_PATH:
        text = "absolute path";
        break;
    case HK_CONF_URI:
        text = "URI";
        break;
    case HK_CONF_HOST:
        text = "host name";
        break;
    case HK_CONF_ADDRESS:
        text = "*, IPv4, IPv6 in brackets, or the name of an interface";
        break;
    case HK_CONF_HOSTS:
        text = "host list, as node[1-4],login";
        break;
    case HK_CONF_ENDPOINTS:
        text = "host names, IPv4, or IPv6 in brackets, at most 16 with commas "
               "between, without a port";
        break;
    }
    snprintf (buf, HK_ERROR_BYTES, "%s", text);
    return buf;
}

static void print_word (struct hk_text *text, const char *words, int n)
{
    while (n-- > 0)
        words += strcspn (words, "|") + 1;
    hk_text_put_bytes (text, words, strcspn (words, "|"));
}

static void print_users (struct hk_text *text, const uid_t *uids, int count)
{
    for (int i = 0; i < count; i++) {
        if (i > 0)
            hk_text_put (text, ",");
        hk_text_put_number (text, uids[i], 1);
    }
}

static void print_endpoints (struct hk_text *text,
                             const struct hk_hostlist *list)
{
    for (size_t i = 0; i < hk_hostlist_count (list); i++) {
        if (i > 0)
            hk_text_put (text, ",");
        hk_text_put (text, hk_hostlist_nth (list, i));
    }
}

static void print_duration (struct hk_text *text, int64_t ms)
{
    char buf[HK_DURATION_TEXT_BYTES];

    hk_text_put (text,
                 ms == HK_RELEASE_ALL ? "all" : hk_duration_encode (ms, buf));
}

char *hk_conf_value_print (const struct hk_conf_row *row, const void *base)
{
    const void *field = (const char *)base + row->offset;
    const struct hk_hostlist *hosts;
    const char *s;
    struct hk_text text = { 0 };

    switch (row->kind) {
    case HK_CONF_DURATION:
    case HK_CONF_RELEASE:
        print_duration (&text, *(const int64_t *)field);
        break;
    case HK_CONF_BOOL:
        hk_text_put (&text, *(const bool *)field ? "yes" : "no");
        break;
    case HK_CONF_WORD:
        print_word (&text, row->option.type, *(const int *)field);
        break;
    case HK_CONF_PORT:
        hk_text_put_number (&text, *(const uint16_t *)field, 1);
        break;
    case HK_CONF_COUNT:
        hk_text_put_number (&text, *(const uint32_t *)field, 1);
        break;
    case HK_CONF_USER:
    case HK_CONF_OWNER:
        hk_text_put_number (&text, *(const uid_t *)field, 1);
        break;
    case HK_CONF_USERS:
        print_users (&text,
                     *(uid_t *const *)field,
                     *(const int *)((const char *)base + row->count_offset));
        break;
    case HK_CONF_PATH:
    case HK_CONF_URI:
    case HK_CONF_HOST:
    case HK_CONF_ADDRESS:
        s = *(char *const *)field;
        hk_text_put (&text, s ? s : "");
        break;
    case HK_CONF_HOSTS:
        hosts = *(struct hk_hostlist *const *)field;
        return hosts ? hk_hostlist_encode (hosts) : strdup ("");
    case HK_CONF_ENDPOINTS:
        print_endpoints (&text, *(struct hk_hostlist *const *)field);
        break;
    }
    return hk_text_take (&text);
}

void hk_conf_value_free (const struct hk_conf_row *row, void *base)
{
    void *field = (char *)base + row->offset;

    switch (row->kind) {
    case HK_CONF_USERS:
        free (*(uid_t **)field);
        break;
    case HK_CONF_PATH:
    case HK_CONF_URI:
    case HK_CONF_HOST:
    case HK_CONF_ADDRESS:
        free (*(char **)field);
        break;
    case HK_CONF_HOSTS:
    case HK_CONF_ENDPOINTS:
        hk_hostlist_destroy (*(struct hk_hostlist **)field);
        break;
    default:
        break;
    }
}

/* conf_value.c - one option's value from text and to text, by its kind */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "proto/conf_table.h"
#include "proto/conf_user.h"
#include "proto/duration.h"
#include "proto/limits.h"

enum { ENDPOINTS_LIMIT = 16, PATH_BYTES = 4096 };

static void *field_of (const struct hk_conf_row *row, void *base)
{
    return (char *)base + row->offset;
}

static int unexpected (const struct hk_conf_row *row,
                       const char *value,
                       struct hk_error *err)
{
    char expected[HK_ERROR_BYTES];

    return hk_error_set (err,
                         EINVAL,
                         "expected %.300s, got '%.100s'",
                         hk_conf_value_expected (row, expected),
                         value);
}

static int no_memory (struct hk_error *err)
{
    return hk_error_errno (err, ENOMEM, "value");
}

static int parse_duration (const struct hk_conf_row *row,
                           int64_t *ms,
                           const char *value,
                           struct hk_error *err)
{
    int64_t n;

    if (row->kind == HK_CONF_RELEASE
        && (!strcmp (value, "all") || !strcmp (value, "infinity"))) {
        *ms = HK_RELEASE_ALL;
        return 0;
    }
    if (hk_duration_decode (value, &n, NULL) < 0)
        return unexpected (row, value, err);
    if (n == HK_DURATION_INF ? !row->unbounded
                             : n < row->least || n > row->most)
        return unexpected (row, value, err);
    *ms = n;
    return 0;
}

static int parse_bool (const struct hk_conf_row *row,
                       bool *field,
                       const char *value,
                       struct hk_error *err)
{
    if (!strcasecmp (value, "yes") || !strcasecmp (value, "true"))
        *field = true;
    else if (!strcasecmp (value, "no") || !strcasecmp (value, "false"))
        *field = false;
    else
        return unexpected (row, value, err);
    return 0;
}

/* The words of the type are in the order of the enum, which has the size of an
 * int.
 */
static int parse_word (const struct hk_conf_row *row,
                       int *field,
                       const char *value,
                       struct hk_error *err)
{
    const char *p = row->option.type;
    size_t len = strlen (value);

    for (int n = 0;; n++) {
        size_t word = strcspn (p, "|");

        if (word == len && !memcmp (p, value, len)) {
            *field = n;
            return 0;
        }
        if (p[word] == '\0')
            return unexpected (row, value, err);
        p += word + 1;
    }
}

static int parse_number (const struct hk_conf_row *row,
                         int64_t *number,
                         const char *value,
                         struct hk_error *err)
{
    int64_t n = 0;

    for (const char *p = value; *p || p == value; p++) {
        if (!isdigit ((unsigned char)*p))
            return unexpected (row, value, err);
        n = n * 10 + (*p - '0');
        if (n > row->most)
            return unexpected (row, value, err);
    }
    if (n < row->least)
        return unexpected (row, value, err);
    *number = n;
    return 0;
}

static int parse_user (const struct hk_conf_row *row,
                       uid_t *uid,
                       const char *value,
                       struct hk_error *err)
{
    if (hk_conf_user_decode (value, uid) == 0)
        return 0;
    if (row->kind == HK_CONF_OWNER && errno == ENOENT
        && !strcmp (value, row->option.preset)) {
        *uid = 0;
        return 0;
    }
    if (errno == EINVAL)
        return unexpected (row, value, err);
    if (errno == ENOENT)
        return hk_error_set (err, EINVAL, "there is no user '%.100s'", value);
    return hk_error_errno (err, errno, "user '%.100s'", value);
}

static bool is_ipv6 (const char *text, size_t len)
{
    char buf[INET6_ADDRSTRLEN];
    struct in6_addr addr;
    const char *scope = memchr (text, '%', len);
    size_t n = scope ? (size_t)(scope - text) : len;

    if (n == 0 || n >= sizeof (buf) || (scope && n + 1 == len))
        return false;
    memcpy (buf, text, n);
    buf[n] = '\0';
    return inet_pton (AF_INET6, buf, &addr) == 1;
}

/* A name that ends in a label of digits alone can only be meant as IPv4. */
static bool is_endpoint (const char *text)
{
    size_t len = strlen (text);
    struct in_addr addr;
    const char *last = strrchr (text, '.');

    if (text[0] == '[')
        return text[len - 1] == ']' && is_ipv6 (text + 1, len - 2);
    if (!hk_host_name_valid (text))
        return false;
    last = last ? last + 1 : text;
    return last[strspn (last, "0123456789")] != '\0'
           || inet_pton (AF_INET, text, &addr) == 1;
}

static bool is_value_ok (const struct hk_conf_row *row, const char *value)
{
    switch (row->kind) {
    case HK_CONF_PATH:
        return value[0] == '/' && strlen (value) < PATH_BYTES;
    case HK_CONF_HOST:
        return hk_host_name_valid (value);
    case HK_CONF_ADDRESS:
        return !strcmp (value, "*") || is_endpoint (value);
    default: /* HK_CONF_URI */
        return strstr (value, "://") != NULL && !strpbrk (value, " \t");
    }
}

static int parse_string (const struct hk_conf_row *row,
                         char **field,
                         const char *value,
                         struct hk_error *err)
{
    char *copy = NULL;

    if (value[0] != '\0' || !row->may_be_empty) {
        if (!is_value_ok (row, value))
            return unexpected (row, value, err);
        copy = strdup (value);
        if (!copy)
            return no_memory (err);
    }
    free (*field);
    *field = copy;
    return 0;
}

static bool are_host_names (const struct hk_hostlist *hosts)
{
    for (size_t i = 0; i < hk_hostlist_count (hosts); i++) {
        if (!hk_host_name_valid (hk_hostlist_nth (hosts, i)))
            return false;
    }
    return hk_hostlist_count (hosts) > 0;
}

static int parse_hosts (const struct hk_conf_row *row,
                        struct hk_hostlist **field,
                        const char *value,
                        struct hk_error *err)
{
    struct hk_hostlist *hosts = NULL;

    if (value[0] != '\0' || !row->may_be_empty) {
        hosts = hk_hostlist_decode (value, err);
        if (!hosts)
            return -1;
        if (!are_host_names (hosts)) {
            hk_hostlist_destroy (hosts);
            return unexpected (row, value, err);
        }
    }
    hk_hostlist_destroy (*field);
    *field = hosts;
    return 0;
}

/* Cut the next item of a list with commas off *p into buf, without blanks
 * around it; false at the end. An item that does not fit comes back empty.
 */
static bool next_item (const char **p, char *buf, size_t size)
{
    const char *start;
    size_t len;

    if (!*p)
        return false;
    start = *p + strspn (*p, " \t");
    len = strcspn (start, ",");
    *p = start[len] == ',' ? start + len + 1 : NULL;
    while (len > 0 && isblank ((unsigned char)start[len - 1]))
        len--;
    if (len >= size)
        len = 0;
    memcpy (buf, start, len);
    buf[len] = '\0';
    return true;
}

static int parse_endpoints (const struct hk_conf_row *row,
                            struct hk_hostlist **field,
                            const char *value,
                            struct hk_error *err)
{
    struct hk_hostlist *list = hk_hostlist_create ();
    char item[HK_HOST_NAME_BYTES];
    const char *p = value;

    if (!list)
        return no_memory (err);
    while (next_item (&p, item, sizeof (item))) {
        if (!is_endpoint (item)
            || hk_hostlist_count (list) == ENDPOINTS_LIMIT) {
            hk_hostlist_destroy (list);
            return unexpected (row, value, err);
        }
        if (hk_hostlist_append (list, item) < 0) {
            hk_hostlist_destroy (list);
            return no_memory (err);
        }
    }
    hk_hostlist_destroy (*field);
    *field = list;
    return 0;
}

static int parse_users (const struct hk_conf_row *row,
                        void *base,
                        const char *value,
                        struct hk_error *err)
{
    uid_t **field = field_of (row, base);
    uid_t *uids = NULL;
    int count = 0;
    char item[HK_HOST_NAME_BYTES];
    const char *p = value[0] ? value : NULL;

    while (next_item (&p, item, sizeof (item))) {
        uid_t *more = realloc (uids, ((size_t)count + 1) * sizeof (*uids));

        if (!more) {
            free (uids);
            return no_memory (err);
        }
        uids = more;
        if (parse_user (row, &uids[count], item, err) < 0) {
            free (uids);
            return -1;
        }
        count++;
    }
    free (*field);
    *field = uids;
    *(int *)((char *)base + row->count_offset) = count;
    return 0;
}

int hk_conf_value_parse (const struct hk_conf_row *row,
                         void *base,
                         const char *value,
                         struct hk_error *err)
{
    void *field = field_of (row, base);
    int64_t number;

    switch (row->kind) {
    case HK_CONF_DURATION:
    case HK_CONF_RELEASE:
        return parse_duration (row, field, value, err);
    case HK_CONF_BOOL:
        return parse_bool (row, field, value, err);
    case HK_CONF_WORD:
        return parse_word (row, field, value, err);
    case HK_CONF_PORT:
        if (parse_number (row, &number, value, err) < 0)
            return -1;
        *(uint16_t *)field = (uint16_t)number;
        return 0;
    case HK_CONF_COUNT:
        if (parse_number (row, &number, value, err) < 0)
            return -1;
        *(uint32_t *)field = (uint32_t)number;
        return 0;
    case HK_CONF_USER:
    case HK_CONF_OWNER:
        return parse_user (row, field, value, err);
    case HK_CONF_USERS:
        return parse_users (row, base, value, err);
    case HK_CONF_PATH:
    case HK_CONF_URI:
    case HK_CONF_HOST:
    case HK_CONF_ADDRESS:
        return parse_string (row, field, value, err);
    case HK_CONF_HOSTS:
        return parse_hosts (row, field, value, err);
    case HK_CONF_ENDPOINTS:
        return parse_endpoints (row, field, value, err);
    }
    return hk_error_set (err, EINVAL, "option of an unknown kind");
}

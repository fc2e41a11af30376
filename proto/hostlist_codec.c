/* hostlist_codec.c - host lists from and to RFC 29 text */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "proto/hostlist.h"
#include "proto/hostlist_name.h"
#include "proto/limits.h"
#include "proto/text.h"

static bool is_digit (char c)
{
    return c >= '0' && c <= '9';
}

void hk_hostlist_name_split (const char *name, struct hk_hostlist_name *split)
{
    size_t end = strcspn (name, ".");
    size_t start;

    *split = (struct hk_hostlist_name){ .prefix = name };
    while (end > 0 && !is_digit (name[end - 1]))
        end--;
    start = end;
    while (start > 0 && is_digit (name[start - 1]))
        start--;
    split->prefix_len = start;
    split->suffix = name + end;
    if (start == end || end - start > HK_HOSTLIST_DIGITS_LIMIT) {
        split->prefix_len = strlen (name);
        split->suffix = name + split->prefix_len;
        return;
    }
    split->has_number = true;
    split->digits = (int)(end - start);
    split->width = name[start] == '0' ? split->digits : 1;
    for (; start < end; start++)
        split->number = split->number * 10 + (uint64_t)(name[start] - '0');
}

int hk_hostlist_name_compare (const struct hk_hostlist_name *a,
                              const struct hk_hostlist_name *b)
{
    size_t len = a->prefix_len < b->prefix_len ? a->prefix_len : b->prefix_len;
    int rc = memcmp (a->prefix, b->prefix, len);

    if (rc != 0)
        return rc;
    if (a->prefix_len != b->prefix_len)
        return a->prefix_len < b->prefix_len ? -1 : 1;
    if (a->has_number != b->has_number)
        return a->has_number ? 1 : -1;
    if (a->number != b->number)
        return a->number < b->number ? -1 : 1;
    return strcmp (a->suffix, b->suffix);
}

/* ---- decode ---- */

struct parser {
    const char *text;
    size_t pos;
    struct hk_hostlist *hosts;
    struct hk_error *err;
};

/* One "prefix[idlist]suffix": where its parts are. */
struct expression {
    const char *prefix;
    size_t prefix_len;
    const char *suffix;
    size_t suffix_len;
    int width; /* of the first number, 0 before it */
};

static int fail (struct parser *p, int errnum, const char *what)
{
    return hk_error_set (
        p->err, errnum, "host list: %s at character %zu", what, p->pos + 1);
}

static int append (struct parser *p, const char *name)
{
    if (hk_hostlist_append (p->hosts, name) == 0)
        return 0;
    if (errno == ENOMEM)
        return hk_error_errno (p->err, ENOMEM, "host list");
    if (errno == ERANGE)
        return fail (p, ERANGE, "too many names");
    return fail (p, EINVAL, "a name is too long");
}

static int append_number (struct parser *p,
                          const struct expression *e,
                          uint64_t number,
                          int width)
{
    char name[HK_HOST_NAME_BYTES + 1];
    char digits[HK_HOSTLIST_DIGITS_LIMIT + 1];
    size_t len;

    /* decode's numbers have at most HK_HOSTLIST_DIGITS_LIMIT digits */
    len = (size_t)snprintf (
        digits, sizeof (digits), "%0*" PRIu64, width, number);
    if (e->prefix_len + len + e->suffix_len >= HK_HOST_NAME_BYTES)
        return fail (p, EINVAL, "a name is too long");
    memcpy (name, e->prefix, e->prefix_len);
    memcpy (name + e->prefix_len, digits, len);
    memcpy (name + e->prefix_len + len, e->suffix, e->suffix_len);
    name[e->prefix_len + len + e->suffix_len] = '\0';
    return append (p, name);
}

/* RFC 29: leading zeros of the first number hold for all of the brackets. */
static int parse_number (struct parser *p, uint64_t *number, int *width)
{
    size_t start = p->pos;
    uint64_t n = 0;

    for (; is_digit (p->text[p->pos]); p->pos++) {
        if (p->pos - start == HK_HOSTLIST_DIGITS_LIMIT)
            return fail (p, ERANGE, "number is too long");
        n = n * 10 + (uint64_t)(p->text[p->pos] - '0');
    }
    if (p->pos == start)
        return fail (p, EINVAL, "expected a number");
    *number = n;
    *width = p->text[start] == '0' ? (int)(p->pos - start) : 1;
    return 0;
}

static int parse_range (struct parser *p, struct expression *e)
{
    uint64_t lo;
    uint64_t hi;
    int width;
    int unused;

    if (parse_number (p, &lo, &width) < 0)
        return -1;
    hi = lo;
    if (p->text[p->pos] == '-') {
        p->pos++;
        if (parse_number (p, &hi, &unused) < 0)
            return -1;
        if (hi < lo)
            return fail (p, EINVAL, "range counts down");
        if (hi - lo >= HK_HOSTLIST_LIMIT)
            return fail (p, ERANGE, "range of too many names");
    }
    if (e->width == 0)
        e->width = width;
    if (width < e->width)
        width = e->width;
    for (uint64_t n = lo; n <= hi; n++) {
        if (append_number (p, e, n, width) < 0)
            return -1;
    }
    return 0;
}

/* Length of plain characters at text. */
static size_t plain_len (const char *text)
{
    size_t n = 0;

    while (isgraph ((unsigned char)text[n]) && !(text[n] & 0x80)
           && !strchr ("[],", text[n]))
        n++;
    return n;
}

/* The suffix stands after the list that it belongs to: look ahead. */
static int find_suffix (struct parser *p, struct expression *e)
{
    const char *close = p->text + p->pos + 1;

    close += strcspn (close, "[]");
    if (*close != ']') {
        p->pos = (size_t)(close - p->text);
        return fail (p, EINVAL, "expected ']'");
    }
    e->suffix = close + 1;
    e->suffix_len = plain_len (e->suffix);
    return 0;
}

static int parse_expression (struct parser *p)
{
    struct expression e = { .prefix = p->text + p->pos, .suffix = "" };
    char name[HK_HOST_NAME_BYTES];

    e.prefix_len = plain_len (e.prefix);
    if (e.prefix[e.prefix_len] != '[') {
        if (e.prefix_len == 0)
            return 0; /* RFC 29: an empty expression is an empty list */
        if (e.prefix_len >= sizeof (name))
            return fail (p, EINVAL, "a name is too long");
        memcpy (name, e.prefix, e.prefix_len);
        name[e.prefix_len] = '\0';
        if (append (p, name) < 0)
            return -1;
        p->pos += e.prefix_len;
        return 0;
    }
    p->pos += e.prefix_len;
    if (find_suffix (p, &e) < 0)
        return -1;
    do {
        p->pos++;
        if (parse_range (p, &e) < 0)
            return -1;
    } while (p->text[p->pos] == ',');
    if (p->text[p->pos] != ']')
        return fail (p, EINVAL, "expected ',', '-' or ']'");
    p->pos += 1 + e.suffix_len;
    return 0;
}

static int parse_list (struct parser *p)
{
    for (;;) {
        if (parse_expression (p) < 0)
            return -1;
        if (p->text[p->pos] == '\0')
            return 0;
        if (p->text[p->pos] == '[')
            return fail (p, EINVAL, "second '[' of a name");
        if (p->text[p->pos] != ',')
            return fail (p, EINVAL, "unexpected character");
        p->pos++;
    }
}

struct hk_hostlist *hk_hostlist_decode (const char *text, struct hk_error *err)
{
    struct parser p = { .text = text, .err = err };

    if (!text) {
        hk_error_set (err, EINVAL, "host list: no text");
        return NULL;
    }
    if (strnlen (text, HK_HOSTLIST_TEXT_BYTES) >= HK_HOSTLIST_TEXT_BYTES) {
        hk_error_set (err,
                      ERANGE,
                      "host list: text of %d bytes or more",
                      HK_HOSTLIST_TEXT_BYTES);
        return NULL;
    }
    p.hosts = hk_hostlist_create ();
    if (!p.hosts) {
        hk_error_errno (err, ENOMEM, "host list");
        return NULL;
    }
    if (parse_list (&p) < 0) {
        hk_hostlist_destroy (p.hosts);
        return NULL;
    }
    return p.hosts;
}

/* ---- encode ---- */

/* May b stand in the brackets that a began? Only if the width of a gives back
 * b as it was written.
 */
static bool fits (const struct hk_hostlist_name *a,
                  const struct hk_hostlist_name *b)
{
    return a->has_number && b->has_number && a->prefix_len == b->prefix_len
           && !memcmp (a->prefix, b->prefix, a->prefix_len)
           && !strcmp (a->suffix, b->suffix)
           && (b->width == 1 ? b->digits >= a->width : b->width == a->width);
}

/* Write the names from i on that share one expression; returns the index of
 * the first that does not.
 */
static size_t put_expression (struct hk_text *text,
                              const char *const *names,
                              size_t count,
                              size_t i)
{
    struct hk_hostlist_name first;
    struct hk_hostlist_name next = { 0 };
    uint64_t lo;
    uint64_t hi;
    size_t n = i + 1;

    hk_hostlist_name_split (names[i], &first);
    if (n < count)
        hk_hostlist_name_split (names[n], &next);
    if (n == count || !fits (&first, &next)) {
        hk_text_put (text, names[i]);
        return n;
    }
    hk_text_put_bytes (text, first.prefix, first.prefix_len);
    hk_text_put (text, "[");
    lo = hi = first.number;
    while (n < count && fits (&first, &next)) {
        if (next.number == hi + 1)
            hi++;
        else {
            hk_text_put_range (text, lo, hi, first.width);
            lo = hi = next.number;
        }
        if (++n < count)
            hk_hostlist_name_split (names[n], &next);
    }
    hk_text_put_range (text, lo, hi, first.width);
    hk_text_put (text, "]");
    hk_text_put (text, first.suffix);
    return n;
}

char *hk_hostlist_encode_names (const char *const *names, size_t count)
{
    struct hk_text text = { 0 };
    size_t i = 0;

    while (i < count) {
        if (i > 0)
            hk_text_put (&text, ",");
        i = put_expression (&text, names, count, i);
    }
    return hk_text_take (&text);
}

/* duration.c - RFC 23 durations: 30s, 5m, 1.5h, 2d, 50ms, infinity */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "proto/duration.h"

static const struct unit {
    const char *suffix;
    int64_t ms;
} units[] = {
    { "d", 86400000 }, { "h", 3600000 }, { "m", 60000 },
    { "s", 1000 },     { "ms", 1 },
};
enum { UNITS_COUNT = sizeof (units) / sizeof (units[0]) };

static const int64_t limit_ms = INT64_C (3155760000000); /* 100 Julian years */

/* A decimal number as digits * 10^exponent. strtod would follow the locale's
 * decimal point, and a duration must read the same everywhere.
 */
struct decimal {
    uint64_t digits;
    int exponent;
    bool exact; /* no digit that is not zero was passed over */
};

static bool is_digit (char c)
{
    return c >= '0' && c <= '9';
}

static void push_digit (struct decimal *n, char c, bool fraction)
{
    if (n->digits < UINT64_C (100000000000000000)) {
        n->digits = n->digits * 10 + (uint64_t)(c - '0');
        if (fraction)
            n->exponent--;
        return;
    }
    if (c != '0')
        n->exact = false;
    if (!fraction)
        n->exponent++;
}

/* Returns where the number ends, NULL if there is none. */
static const char *parse_exponent (const char *p, struct decimal *n)
{
    bool minus = false;
    int e = 0;

    if (*p == '+' || *p == '-')
        minus = *p++ == '-';
    if (!is_digit (*p))
        return NULL;
    for (; is_digit (*p); p++) {
        if (e < 10000)
            e = e * 10 + (*p - '0');
    }
    n->exponent += minus ? -e : e;
    return p;
}

static const char *parse_decimal (const char *p, struct decimal *n)
{
    bool any = false;

    *n = (struct decimal){ .exact = true };
    for (; is_digit (*p); p++, any = true)
        push_digit (n, *p, false);
    if (*p == '.') {
        for (p++; is_digit (*p); p++, any = true)
            push_digit (n, *p, true);
    }
    if (!any)
        return NULL;
    if (*p == 'e' || *p == 'E')
        return parse_exponent (p + 1, n);
    return p;
}

/* What is above nothing stays above nothing: less than half a millisecond
 * counts as one. Returns -1 if out of range.
 */
static int64_t scale (const struct decimal *n, int64_t unit_ms)
{
    long double value = (long double)n->digits * (long double)unit_ms;

    if (n->digits == 0)
        return n->exact ? 0 : 1;
    for (int e = n->exponent; e > 0; e--) {
        value *= 10;
        if (value > (long double)limit_ms)
            return -1;
    }
    for (int e = n->exponent; e < 0 && value > 0.01L; e++)
        value /= 10;
    if (value > (long double)limit_ms)
        return -1;
    if (value < 1)
        return 1;
    return (int64_t)(value + 0.5L);
}

static const struct unit *find_unit (const char *suffix)
{
    if (suffix[0] == '\0')
        suffix = "s";
    for (int i = 0; i < UNITS_COUNT; i++) {
        if (!strcmp (units[i].suffix, suffix))
            return &units[i];
    }
    return NULL;
}

int hk_duration_decode (const char *text, int64_t *ms, struct hk_error *err)
{
    struct decimal n;
    const struct unit *unit;
    const char *end;
    int64_t value;

    if (!text)
        return hk_error_set (err, EINVAL, "duration: no text");
    if (!strcasecmp (text, "inf") || !strcasecmp (text, "infinity")) {
        *ms = HK_DURATION_INF;
        return 0;
    }
    end = parse_decimal (text[0] == '+' ? text + 1 : text, &n);
    if (!end)
        return hk_error_set (err,
                             EINVAL,
                             "'%.40s' is not a duration (as 30s, 5m, 1.5h, "
                             "2d, 50ms or infinity)",
                             text);
    unit = find_unit (end);
    if (!unit)
        return hk_error_set (err,
                             EINVAL,
                             "'%.40s': a duration's unit is ms, s, m, h or d",
                             text);
    value = scale (&n, unit->ms);
    if (value < 0)
        return hk_error_set (err,
                             ERANGE,
                             "'%.40s': a duration is at most 100 years or "
                             "infinity",
                             text);
    *ms = value;
    return 0;
}

/* "12.34" for value of unit/scale_ms parts, only if it is exact in at most six
 * decimals. Returns false if not.
 */
static bool print_exact (int64_t ms, const struct unit *unit, char *buf)
{
    int64_t whole = ms / unit->ms;
    int64_t rest = ms % unit->ms;
    size_t len;

    len = (size_t)snprintf (buf, HK_DURATION_TEXT_BYTES, "%" PRId64, whole);
    if (rest > 0)
        buf[len++] = '.';
    for (int i = 0; i < 6 && rest > 0; i++) {
        rest *= 10;
        buf[len++] = (char)('0' + rest / unit->ms);
        rest %= unit->ms;
    }
    if (rest > 0)
        return false;
    strcpy (buf + len, unit->suffix);
    return true;
}

char *hk_duration_encode (int64_t ms, char *buf)
{
    char text[HK_DURATION_TEXT_BYTES];

    if (ms == HK_DURATION_INF)
        return strcpy (buf, "infinity");
    if (ms == 0)
        return strcpy (buf, "0s");
    snprintf (buf, HK_DURATION_TEXT_BYTES, "%" PRId64 "ms", ms);
    for (int i = 0; i < UNITS_COUNT; i++) {
        if (print_exact (ms, &units[i], text)
            && (strlen (text) < strlen (buf)
                || (strlen (text) == strlen (buf) && ms >= units[i].ms
                    && !strchr (text, '.'))))
            strcpy (buf, text);
    }
    return buf;
}

char *hk_duration_pretty (int64_t ms, char *buf)
{
    int i = 0;

    if (ms == HK_DURATION_INF)
        return strcpy (buf, "infinity");
    if (ms < 0) /* a clock that was set back */
        ms = 0;
    if (ms > limit_ms)
        ms = limit_ms;
    if (ms > 0 && ms < 100) {
        snprintf (buf, HK_DURATION_TEXT_BYTES, "%" PRId64 "ms", ms);
        return buf;
    }
    if (ms < 10000 && ms % 1000 >= 100) {
        snprintf (buf,
                  HK_DURATION_TEXT_BYTES,
                  "%" PRId64 ".%" PRId64 "s",
                  ms / 1000,
                  ms % 1000 / 100);
        return buf;
    }
    while (i < UNITS_COUNT - 2 && ms < units[i].ms)
        i++;
    if (units[i].ms > 1000 && ms % units[i].ms / units[i + 1].ms > 0)
        snprintf (buf,
                  HK_DURATION_TEXT_BYTES,
                  "%" PRId64 "%s %" PRId64 "%s",
                  ms / units[i].ms,
                  units[i].suffix,
                  ms % units[i].ms / units[i + 1].ms,
                  units[i + 1].suffix);
    else
        snprintf (buf,
                  HK_DURATION_TEXT_BYTES,
                  "%" PRId64 "%s",
                  ms / units[i].ms,
                  units[i].suffix);
    return buf;
}

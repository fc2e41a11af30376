/* json_out.c - JSON text, written straight */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "proto/json_text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_BYTES = 1024 };

/* Room for len bytes and a NUL. */
static bool reserve (struct hk_json_out *out, size_t len)
{
    size_t size = out->size ? out->size : FIRST_BYTES;
    char *data;

    if (out->errnum)
        return false;
    if (out->size - out->len > len)
        return true;
    while (size - out->len <= len)
        size *= 2;
    data = realloc (out->data, size);
    if (!data) {
        out->errnum = ENOMEM;
        return false;
    }
    out->data = data;
    out->size = size;
    return true;
}

void hk_json_out_text (struct hk_json_out *out, const char *text, size_t len)
{
    if (!reserve (out, len))
        return;
    memcpy (out->data + out->len, text, len);
    out->len += len;
    out->data[out->len] = '\0';
}

void hk_json_out_char (struct hk_json_out *out, char c)
{
    hk_json_out_text (out, &c, 1);
}

static void escaped (struct hk_json_out *out, unsigned char c)
{
    char buf[8];
    int n;

    switch (c) {
    case '"':
        hk_json_out_text (out, "\\\"", 2);
        return;
    case '\\':
        hk_json_out_text (out, "\\\\", 2);
        return;
    case '\n':
        hk_json_out_text (out, "\\n", 2);
        return;
    case '\t':
        hk_json_out_text (out, "\\t", 2);
        return;
    default:
        n = snprintf (buf, sizeof (buf), "\\u%04x", c);
        hk_json_out_text (out, buf, (size_t)n);
    }
}

void hk_json_out_string (struct hk_json_out *out, const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    const unsigned char *end = p + strlen (text);
    const unsigned char *plain = p; /* not yet written */

    hk_json_out_char (out, '"');
    while (p < end) {
        size_t n = 1;

        if (*p >= 0x80)
            n = hk_utf8_len (p, end);
        if (n && *p >= 0x20 && *p != '"' && *p != '\\') {
            p += n;
            continue;
        }
        hk_json_out_text (out, (const char *)plain, (size_t)(p - plain));
        if (n)
            escaped (out, *p);
        else
            hk_json_out_text (out, "\xef\xbf\xbd", 3);
        plain = ++p;
    }
    hk_json_out_text (out, (const char *)plain, (size_t)(p - plain));
    hk_json_out_char (out, '"');
}

void hk_json_out_integer (struct hk_json_out *out, int64_t value)
{
    char buf[24];
    char *p = buf + sizeof (buf);
    uint64_t n = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;

    do {
        *--p = (char)('0' + n % 10);
        n /= 10;
    } while (n);
    if (value < 0)
        *--p = '-';
    hk_json_out_text (out, p, (size_t)(buf + sizeof (buf) - p));
}

/* Times are whole microseconds below 2^53: the quotient of two exact numbers
 * is what a reader makes of their decimal digits.
 */
static bool micros (struct hk_json_out *out, double value)
{
    double scaled = value * 1e6;
    int64_t n;
    char digits[8];
    int len = 7;

    if (!(scaled > -9e15 && scaled < 9e15))
        return false;
    n = llrint (scaled);
    if ((double)n / 1e6 != value || (n == 0 && signbit (value))
        || (n < 0 && n > -1000000))
        return false;
    hk_json_out_integer (out, n / 1000000);
    n = n < 0 ? -(n % 1000000) : n % 1000000;
    if (n == 0)
        return true;
    digits[0] = '.';
    for (int i = 6; i > 0; i--) {
        digits[i] = (char)('0' + n % 10);
        n /= 10;
    }
    while (digits[len - 1] == '0')
        len--;
    hk_json_out_text (out, digits, (size_t)len);
    return true;
}

void hk_json_out_number (struct hk_json_out *out, double value)
{
    char buf[40];
    int n;

    if (!isfinite (value)) {
        out->errnum = EINVAL;
        return;
    }
    if (micros (out, value))
        return;
    n = snprintf (buf, sizeof (buf), "%.17g", value);
    /* some locales have another decimal point */
    for (int i = 0; i < n; i++)
        if (!strchr ("+-0123456789e", buf[i]))
            buf[i] = '.';
    hk_json_out_text (out, buf, (size_t)n);
}

static int dump (const char *text, size_t len, void *arg)
{
    struct hk_json_out *out = arg;

    hk_json_out_text (out, text, len);
    return out->errnum ? -1 : 0;
}

void hk_json_out_value (struct hk_json_out *out, const json_t *value)
{
    if (out->errnum)
        return;
    if (json_dump_callback (value, dump, out, JSON_COMPACT | JSON_ENCODE_ANY)
        < 0)
        out->errnum = out->errnum ? out->errnum : ENOMEM;
}

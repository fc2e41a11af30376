/* json_string.c - strings of JSON: escapes, UTF-8 */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "proto/json_text.h"

#include <string.h>

size_t hk_utf8_len (const unsigned char *p, const unsigned char *end)
{
    size_t len = p[0] < 0x80   ? 1
                 : p[0] < 0xc2 ? 0
                 : p[0] < 0xe0 ? 2
                 : p[0] < 0xf0 ? 3
                 : p[0] < 0xf5 ? 4
                               : 0;

    if (len == 0 || (size_t)(end - p) < len)
        return 0;
    for (size_t i = 1; i < len; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    /* overlong forms, surrogates and what is above U+10FFFF */
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f)
        || (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
        return 0;
    return len;
}

/* Four hex digits at p, or -1. */
static int hex4 (const char *p, const char *end)
{
    int value = 0;

    if (end - p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        char c = p[i];

        if (c >= '0' && c <= '9')
            value = value * 16 + c - '0';
        else if (c >= 'a' && c <= 'f')
            value = value * 16 + c - 'a' + 10;
        else if (c >= 'A' && c <= 'F')
            value = value * 16 + c - 'A' + 10;
        else
            return -1;
    }
    return value;
}

static size_t put_utf8 (char *out, unsigned c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | (c >> 6));
        out[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | (c >> 12));
        out[1] = (char)(0x80 | ((c >> 6) & 0x3f));
        out[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | (c >> 18));
    out[1] = (char)(0x80 | ((c >> 12) & 0x3f));
    out[2] = (char)(0x80 | ((c >> 6) & 0x3f));
    out[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

/* After "\u": the character, which is longer as an escape than as UTF-8. */
static bool unicode_escape (struct hk_json_in *in, unsigned *c)
{
    int high = hex4 (in->at, in->end);
    int low;

    if (high <= 0)
        return hk_json_in_fail (
            in, high == 0 ? "NUL in a string" : "bad \\u escape");
    in->at += 4;
    *c = (unsigned)high;
    if (high < 0xd800 || high > 0xdfff)
        return true;
    if (high > 0xdbff || in->end - in->at < 6 || in->at[0] != '\\'
        || in->at[1] != 'u')
        return hk_json_in_fail (in, "half of a surrogate pair");
    low = hex4 (in->at + 2, in->end);
    if (low < 0xdc00 || low > 0xdfff)
        return hk_json_in_fail (in, "half of a surrogate pair");
    in->at += 6;
    *c = 0x10000 + (((unsigned)high - 0xd800) << 10) + ((unsigned)low - 0xdc00);
    return true;
}

/* At the character after a backslash. */
static bool escape (struct hk_json_in *in, unsigned *c)
{
    static const char names[] = "\"\\/bfnrt";
    static const char values[] = "\"\\/\b\f\n\r\t";
    const char *name;

    if (in->at == in->end)
        return hk_json_in_fail (in, "string without an end");
    if (*in->at == 'u') {
        in->at++;
        return unicode_escape (in, c);
    }
    name = *in->at ? strchr (names, *in->at) : NULL;
    if (!name)
        return hk_json_in_fail (in, "bad escape");
    in->at++;
    *c = (unsigned char)values[name - names];
    return true;
}

/* Pass over what stands for itself; at the quote, the backslash, the end or
 * what may not be in a string.
 */
static bool pass_plain (struct hk_json_in *in)
{
    const unsigned char *p = (unsigned char *)in->at;
    const unsigned char *end = (unsigned char *)in->end;

    while (p < end && *p != '"' && *p != '\\' && *p >= 0x20) {
        size_t n = *p < 0x80 ? 1 : hk_utf8_len (p, end);

        if (n == 0)
            return hk_json_in_fail (in, "not UTF-8");
        p += n;
    }
    in->at = (char *)p;
    return true;
}

bool hk_json_in_rest_of_string (struct hk_json_in *in, char *to, size_t *len)
{
    char *start = to;

    for (;;) {
        char *plain = in->at;
        unsigned wide = 0;
        char bytes[4];
        size_t n;

        if (!pass_plain (in))
            return false;
        n = (size_t)(in->at - plain);
        if (to && to != plain)
            memmove (to, plain, n);
        if (to)
            to += n;
        if (in->at == in->end)
            return hk_json_in_fail (in, "string without an end");
        if (*in->at == '"')
            break;
        if (*in->at++ != '\\')
            return hk_json_in_fail (in, "control character in a string");
        if (!escape (in, &wide))
            return false;
        n = put_utf8 (bytes, wide);
        if (to) {
            memcpy (to, bytes, n);
            to += n;
        }
    }
    in->at++;
    if (to)
        *len = (size_t)(to - start);
    return true;
}

/* escape.c - foreign text made safe before a log, a reason or a terminal */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "proto/escape.h"

/* Length of the valid UTF-8 character at p (of len bytes), its code point in
 * *code; 0 if there is none: truncated, overlong, surrogate, above U+10FFFF.
 */
static size_t decode_character (const unsigned char *p,
                                size_t len,
                                uint32_t *code)
{
    size_t n;
    uint32_t least;

    if (p[0] < 0x80) {
        *code = p[0];
        return 1;
    }
    if ((p[0] & 0xe0) == 0xc0) {
        n = 2;
        least = 0x80;
        *code = p[0] & 0x1f;
    } else if ((p[0] & 0xf0) == 0xe0) {
        n = 3;
        least = 0x800;
        *code = p[0] & 0x0f;
    } else if ((p[0] & 0xf8) == 0xf0) {
        n = 4;
        least = 0x10000;
        *code = p[0] & 0x07;
    } else
        return 0;
    if (n > len)
        return 0;
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | (p[i] & 0x3f);
    }
    if (*code < least || *code > 0x10ffff
        || (*code >= 0xd800 && *code <= 0xdfff))
        return 0;
    return n;
}

/* Unicode's Bidi_Control characters reorder what stands around them. */
static bool is_unsafe (uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x061c
           || code == 0x200e || code == 0x200f
           || (code >= 0x202a && code <= 0x202e)
           || (code >= 0x2066 && code <= 0x2069);
}

static size_t put_hex (const unsigned char *p, size_t n, char *buf)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < n; i++) {
        buf[4 * i] = '\\';
        buf[4 * i + 1] = 'x';
        buf[4 * i + 2] = digits[p[i] >> 4];
        buf[4 * i + 3] = digits[p[i] & 15];
    }
    return 4 * n;
}

char *hk_escape (const char *in, size_t len, char *out, size_t size)
{
    const unsigned char *p = (const unsigned char *)in;
    size_t used = 0;
    char buf[16];

    if (size == 0)
        return out;
    if (len == SIZE_MAX)
        len = strlen (in);
    while (len > 0) {
        uint32_t code = 0;
        size_t n = decode_character (p, len, &code);
        size_t put;

        if (n == 0 || is_unsafe (code)) {
            n = n ? n : 1;
            put = put_hex (p, n, buf);
        } else if (code == '\\') {
            memcpy (buf, "\\\\", 2);
            put = 2;
        } else {
            memcpy (buf, p, n);
            put = n;
        }
        if (put >= size - used)
            break;
        memcpy (out + used, buf, put);
        used += put;
        p += n;
        len -= n;
    }
    out[used] = '\0';
    return out;
}

void hk_one_line (char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t len = strlen (text);
    char *out = text;

    while (len > 0) {
        uint32_t code = 0;
        size_t n = decode_character (p, len, &code);

        if (n == 1 && (code == '\t' || code == '\n' || code == '\r'))
            *out++ = ' ';
        else if (n == 0 || is_unsafe (code))
            *out++ = '?';
        else {
            memmove (out, p, n);
            out += n;
        }
        p += n ? n : 1;
        len -= n ? n : 1;
    }
    *out = '\0';
}

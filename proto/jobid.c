/* jobid.c - RFC 19 job ids in their spellings by digits */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "proto/jobid.h"

/* RFC 19: no 0, I, O and l */
static const char f58_digits[] =
    "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
static const char hex_digits[] = "0123456789abcdef";

static const char f58_mark[] = "\xc6\x92"; /* U+0192 */
static const char emoji_mark[] = "\xf0\x9f";

/* A text of digits of some base, all of it, at least one. */
static int decode_digits (const char *text,
                          const char *digits,
                          uint64_t *id,
                          struct hk_error *err)
{
    uint64_t base = strlen (digits);
    uint64_t n = 0;
    const char *p = text;

    do {
        const char *digit = *p ? strchr (digits, *p) : NULL;

        if (!digit)
            return hk_error_set (err, EINVAL, "not a job id");
        if (__builtin_mul_overflow (n, base, &n)
            || __builtin_add_overflow (n, (uint64_t)(digit - digits), &n))
            return hk_error_set (err, ERANGE, "a job id has 64 bits");
    } while (*++p);
    *id = n;
    return 0;
}

static void lower (char *text)
{
    for (; *text; text++)
        *text = (char)tolower ((unsigned char)*text);
}

/* Four groups of four hex digits. */
static int decode_dothex (char *text, uint64_t *id, struct hk_error *err)
{
    char digits[17];

    if (strlen (text) != 19 || text[4] != '.' || text[9] != '.'
        || text[14] != '.')
        return hk_error_set (
            err, EINVAL, "a dotted job id is as 0000.1a2b.3c4d.5e6f");
    snprintf (digits,
              sizeof (digits),
              "%.4s%.4s%.4s%.4s",
              text,
              text + 5,
              text + 10,
              text + 15);
    lower (digits);
    return decode_digits (digits, hex_digits, id, err);
}

static bool starts_with (const char *text, const char *mark)
{
    return strncmp (text, mark, strlen (mark)) == 0;
}

/* In the order of RFC 19, "Decoding Alternate FLUID Representations". */
static int decode (char *text, uint64_t *id, struct hk_error *err)
{
    if (strchr (text, '.'))
        return decode_dothex (text, id, err);
    if (strchr (text, '-'))
        return hk_error_set (err,
                             EINVAL,
                             "job ids as words are not read, use f58 or "
                             "decimal");
    if (starts_with (text, f58_mark))
        return decode_digits (text + 2, f58_digits, id, err);
    if (text[0] == 'f')
        return decode_digits (text + 1, f58_digits, id, err);
    if (starts_with (text, emoji_mark))
        return hk_error_set (err,
                             EINVAL,
                             "job ids as emoji are not read, use f58 or "
                             "decimal");
    if (starts_with (text, "0x")) {
        lower (text);
        return decode_digits (text + 2, hex_digits, id, err);
    }
    return decode_digits (text, "0123456789", id, err);
}

int hk_jobid_decode (const char *text, uint64_t *id, struct hk_error *err)
{
    char copy[HK_JOBID_TEXT_BYTES];
    size_t len;

    if (!text)
        return hk_error_set (err, EINVAL, "job id: no text");
    while (isspace ((unsigned char)*text))
        text++;
    len = strlen (text);
    while (len > 0 && isspace ((unsigned char)text[len - 1]))
        len--;
    if (len >= sizeof (copy))
        return hk_error_set (err, EINVAL, "job id: text is too long");
    memcpy (copy, text, len);
    copy[len] = '\0';
    if (decode (copy, id, err) < 0)
        return hk_error_prefix (err, "'%.*s'", (int)len, text);
    return 0;
}

static void encode_f58 (uint64_t id, const char *mark, char *buf)
{
    char digits[12]; /* 58^11 is above 2^64 */
    size_t i = sizeof (digits) - 1;

    digits[i] = '\0';
    do {
        digits[--i] = f58_digits[id % 58];
        id /= 58;
    } while (id > 0);
    snprintf (buf, HK_JOBID_TEXT_BYTES, "%s%s", mark, digits + i);
}

char *hk_jobid_encode (uint64_t id, enum hk_jobid_kind kind, char *buf)
{
    switch (kind) {
    case HK_JOBID_DEC:
        break;
    case HK_JOBID_HEX:
        snprintf (buf, HK_JOBID_TEXT_BYTES, "0x%" PRIx64, id);
        return buf;
    case HK_JOBID_DOTHEX:
        snprintf (buf,
                  HK_JOBID_TEXT_BYTES,
                  "%04x.%04x.%04x.%04x",
                  (unsigned int)(id >> 48),
                  (unsigned int)(id >> 32 & 0xffff),
                  (unsigned int)(id >> 16 & 0xffff),
                  (unsigned int)(id & 0xffff));
        return buf;
    case HK_JOBID_F58:
        encode_f58 (id, f58_mark, buf);
        return buf;
    case HK_JOBID_F58PLAIN:
        encode_f58 (id, "f", buf);
        return buf;
    }
    snprintf (buf, HK_JOBID_TEXT_BYTES, "%" PRIu64, id);
    return buf;
}

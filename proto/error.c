/* error.c - one line of text beside errno: why a call failed */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "proto/error.h"

/* A text that filled the buffer may end within a character: go back to the
 * start of the last one and drop it if bytes of it are missing.
 */
static void cut_at_character (char *text, size_t len)
{
    size_t i = len;
    size_t need = 1;

    while (i > 0 && ((unsigned char)text[i - 1] & 0xc0) == 0x80)
        i--;
    if (i == 0)
        return;
    i--;
    if (((unsigned char)text[i] & 0xe0) == 0xc0)
        need = 2;
    else if (((unsigned char)text[i] & 0xf0) == 0xe0)
        need = 3;
    else if (((unsigned char)text[i] & 0xf8) == 0xf0)
        need = 4;
    if (len - i < need)
        text[i] = '\0';
}

/* Returns the length of the text in the buffer. */
__attribute__ ((format (printf, 2, 0))) static size_t print_text (
    char *text, const char *fmt, va_list ap)
{
    int n = vsnprintf (text, HK_ERROR_BYTES, fmt, ap);

    if (n < 0) {
        text[0] = '\0';
        return 0;
    }
    if (n >= HK_ERROR_BYTES) {
        cut_at_character (text, HK_ERROR_BYTES - 1);
        return strlen (text);
    }
    return (size_t)n;
}

static void append_text (char *text, size_t len, const char *more)
{
    size_t room = HK_ERROR_BYTES - len;
    size_t more_len = strlen (more);

    if (more_len < room) {
        memcpy (text + len, more, more_len + 1);
        return;
    }
    memcpy (text + len, more, room - 1);
    text[HK_ERROR_BYTES - 1] = '\0';
    cut_at_character (text, HK_ERROR_BYTES - 1);
}

int hk_error_set (struct hk_error *err, int errnum, const char *fmt, ...)
{
    va_list ap;

    if (err) {
        va_start (ap, fmt);
        print_text (err->text, fmt, ap);
        va_end (ap);
    }
    errno = errnum;
    return -1;
}

int hk_error_errno (struct hk_error *err, int errnum, const char *fmt, ...)
{
    va_list ap;
    size_t len;
    char buf[128];

    if (err) {
        va_start (ap, fmt);
        len = print_text (err->text, fmt, ap);
        va_end (ap);
        append_text (err->text, len, ": ");
        append_text (err->text,
                     strlen (err->text),
                     strerror_r (errnum, buf, sizeof (buf)));
    }
    errno = errnum;
    return -1;
}

int hk_error_prefix (struct hk_error *err, const char *fmt, ...)
{
    int saved_errno = errno;
    va_list ap;
    size_t len;
    char text[HK_ERROR_BYTES];

    if (err) {
        va_start (ap, fmt);
        len = print_text (text, fmt, ap);
        va_end (ap);
        append_text (text, len, ": ");
        append_text (text, strlen (text), err->text);
        memcpy (err->text, text, strlen (text) + 1);
    }
    errno = saved_errno;
    return -1;
}

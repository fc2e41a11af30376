/* text.c - a text that grows; keeps its first failure until it is taken */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/text.h"

static void make_room (struct hk_text *text, size_t len)
{
    size_t size = text->size ? text->size : 64;
    char *p;

    while (size - text->len <= len)
        size *= 2;
    if (text->failed || size == text->size)
        return;
    p = realloc (text->text, size);
    if (!p) {
        text->failed = true;
        return;
    }
    text->text = p;
    text->size = size;
}

void hk_text_put_bytes (struct hk_text *text, const char *more, size_t len)
{
    make_room (text, len);
    if (text->failed)
        return;
    memcpy (text->text + text->len, more, len);
    text->len += len;
    text->text[text->len] = '\0';
}

void hk_text_put (struct hk_text *text, const char *more)
{
    hk_text_put_bytes (text, more, strlen (more));
}

void hk_text_put_number (struct hk_text *text, uint64_t number, int width)
{
    char buf[64];
    int len = snprintf (buf, sizeof (buf), "%0*" PRIu64, width, number);

    if (len < 0 || len >= (int)sizeof (buf))
        text->failed = true;
    else
        hk_text_put_bytes (text, buf, (size_t)len);
}

void hk_text_put_range (struct hk_text *text,
                        uint64_t lo,
                        uint64_t hi,
                        int width)
{
    if (text->len > 0 && !strchr ("[\"", text->text[text->len - 1]))
        hk_text_put (text, ",");
    hk_text_put_number (text, lo, width);
    if (hi > lo) {
        hk_text_put (text, "-");
        hk_text_put_number (text, hi, width);
    }
}

char *hk_text_take (struct hk_text *text)
{
    char *taken;

    hk_text_put (text, "");
    taken = text->text;
    if (text->failed) {
        free (taken);
        taken = NULL;
        errno = ENOMEM;
    }
    *text = (struct hk_text){ 0 };
    return taken;
}

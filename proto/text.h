/* text.h - a text that grows; keeps its first failure until it is taken */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HK_TEXT_H
#define HK_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Starts as { 0 }. After a failure what is put is passed over. */
struct hk_text {
    char *text;
    size_t len;
    size_t size;
    bool failed;
};

void hk_text_put (struct hk_text *text, const char *more);
void hk_text_put_bytes (struct hk_text *text, const char *more, size_t len);
/* At least width digits. */
void hk_text_put_number (struct hk_text *text, uint64_t number, int width);

/* "3" or "3-7", after a comma unless text is empty or ends in '[' or '"'. */
void hk_text_put_range (struct hk_text *text,
                        uint64_t lo,
                        uint64_t hi,
                        int width);

/* The text, "" if nothing was put, which the caller frees; NULL with ENOMEM if
 * any put failed. text is empty afterwards.
 */
char *hk_text_take (struct hk_text *text);

#endif

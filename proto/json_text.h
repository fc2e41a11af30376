/* json_text.h - strict JSON text, read in place and written straight */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HK_JSON_TEXT_H
#define HK_JSON_TEXT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The codec of messages goes over the text once and puts what it reads into
 * the message's structure: with jansson between, a report takes eight times as
 * long.  Values that are JSON to us as well (R, rows) go through jansson.
 */

/* `problem` when that is what it is. */
extern const char hk_json_no_memory[];

/* Borrows the text, which it changes: strings are unescaped where they stand.
 * After the first failure `problem` says what is wrong at `at`, and every
 * further call fails.
 */
struct hk_json_in {
    char *at;
    char *end;
    int depth; /* of arrays and objects around `at` */
    int depth_limit;
    const char *problem;
};

void hk_json_in_init (struct hk_json_in *in,
                      char *text,
                      size_t len,
                      int depth_limit);
/* Returns false always. */
bool hk_json_in_fail (struct hk_json_in *in, const char *problem);

/* First character of the next value or '\0' at the end, blanks passed over. */
char hk_json_in_peek (struct hk_json_in *in);

/* '{' or '[', then for each member: true and, of an object, its key with the
 * colon passed over; false at the closing bracket or on failure.  `first`
 * is the caller's: true before the first member.
 */
bool hk_json_in_open (struct hk_json_in *in, char bracket);
bool hk_json_in_key (struct hk_json_in *in,
                     bool *first,
                     char **key,
                     size_t *len);
bool hk_json_in_item (struct hk_json_in *in, bool *first);
/* Only blanks may follow. */
bool hk_json_in_finish (struct hk_json_in *in);

/* Scalars.  A string comes back NUL terminated, UTF-8, without NUL inside. */
bool hk_json_in_string (struct hk_json_in *in, char **text, size_t *len);
bool hk_json_in_integer (struct hk_json_in *in, int64_t *value);
bool hk_json_in_number (struct hk_json_in *in, double *value);
bool hk_json_in_bool (struct hk_json_in *in, bool *value);
bool hk_json_in_null (struct hk_json_in *in);
/* Any value, checked and passed over, text unchanged. */
bool hk_json_in_skip (struct hk_json_in *in);
/* As skip, and parsed by jansson; NULL on failure.  The caller owns it. */
json_t *hk_json_in_value (struct hk_json_in *in);

/* After the opening quote: the string into `to`, which may be where it stands,
 * without NUL at its end; NULL: only checked.
 */
bool hk_json_in_rest_of_string (struct hk_json_in *in, char *to, size_t *len);

/* The length of the character at p (1 to 4), 0 if it is not UTF-8. */
size_t hk_utf8_len (const unsigned char *p, const unsigned char *end);

/* Growing text.  After a failure (`errnum` set) all further calls do nothing.
 */
struct hk_json_out {
    char *data;
    size_t len;
    size_t size;
    int errnum;
};

void hk_json_out_text (struct hk_json_out *out, const char *text, size_t len);
void hk_json_out_char (struct hk_json_out *out, char c);
/* Quoted and escaped; bytes that are not UTF-8 become U+FFFD. */
void hk_json_out_string (struct hk_json_out *out, const char *text);
void hk_json_out_integer (struct hk_json_out *out, int64_t value);
/* Shortest for times with microseconds, else 17 digits; EINVAL if not finite.
 */
void hk_json_out_number (struct hk_json_out *out, double value);
void hk_json_out_value (struct hk_json_out *out, const json_t *value);

#endif

/* json_in.c - strict JSON text, read in place */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "proto/json_text.h"

#include <string.h>

const char hk_json_no_memory[] = "out of memory";

void hk_json_in_init (struct hk_json_in *in,
                      char *text,
                      size_t len,
                      int depth_limit)
{
    in->at = text;
    in->end = text + len;
    in->depth = 0;
    in->depth_limit = depth_limit;
    in->problem = NULL;
}

bool hk_json_in_fail (struct hk_json_in *in, const char *problem)
{
    if (!in->problem)
        in->problem = problem;
    return false;
}

char hk_json_in_peek (struct hk_json_in *in)
{
    while (in->at < in->end
           && (*in->at == ' ' || *in->at == '\t' || *in->at == '\n'
               || *in->at == '\r'))
        in->at++;
    return in->at < in->end ? *in->at : '\0';
}

static bool take (struct hk_json_in *in, char c)
{
    if (in->problem || hk_json_in_peek (in) != c || in->at == in->end)
        return false;
    in->at++;
    return true;
}

bool hk_json_in_open (struct hk_json_in *in, char bracket)
{
    if (!take (in, bracket))
        return hk_json_in_fail (
            in, bracket == '{' ? "object expected" : "array expected");
    if (++in->depth > in->depth_limit)
        return hk_json_in_fail (in, "nested too deeply");
    return true;
}

/* The comma before a member or the closing bracket after the last. */
static bool next_member (struct hk_json_in *in, bool *first, char closing)
{
    if (in->problem)
        return false;
    if (take (in, closing)) {
        in->depth--;
        return false;
    }
    if (!*first && !take (in, ','))
        return hk_json_in_fail (in, "comma or closing bracket expected");
    *first = false;
    return true;
}

bool hk_json_in_item (struct hk_json_in *in, bool *first)
{
    return next_member (in, first, ']');
}

bool hk_json_in_finish (struct hk_json_in *in)
{
    if (in->problem)
        return false;
    hk_json_in_peek (in);
    if (in->at != in->end)
        return hk_json_in_fail (in, "text after the end");
    return true;
}

bool hk_json_in_string (struct hk_json_in *in, char **text, size_t *len)
{
    char *start;

    if (!take (in, '"'))
        return hk_json_in_fail (in, "string expected");
    start = in->at;
    if (!hk_json_in_rest_of_string (in, start, len))
        return false;
    /* at the latest the closing quote's place, which was read */
    start[*len] = '\0';
    *text = start;
    return true;
}

bool hk_json_in_key (struct hk_json_in *in,
                     bool *first,
                     char **key,
                     size_t *len)
{
    if (!next_member (in, first, '}') || !hk_json_in_string (in, key, len))
        return false;
    if (!take (in, ':'))
        return hk_json_in_fail (in, "colon expected");
    return true;
}

static bool is_digit (const struct hk_json_in *in, const char *p)
{
    return p < in->end && *p >= '0' && *p <= '9';
}

/* Pass over a number; `whole` is false if it has a fraction or an exponent. */
static bool pass_number (struct hk_json_in *in, char **start, bool *whole)
{
    char *p;

    hk_json_in_peek (in);
    *start = p = in->at;
    *whole = true;
    if (p < in->end && *p == '-')
        p++;
    if (!is_digit (in, p))
        return hk_json_in_fail (in, "number expected");
    if (*p == '0' && is_digit (in, p + 1))
        return hk_json_in_fail (in, "number with a leading zero");
    while (is_digit (in, p))
        p++;
    if (p < in->end && *p == '.') {
        *whole = false;
        if (!is_digit (in, ++p))
            return hk_json_in_fail (in, "digit expected");
        while (is_digit (in, p))
            p++;
    }
    if (p < in->end && (*p == 'e' || *p == 'E')) {
        *whole = false;
        p++;
        if (p < in->end && (*p == '+' || *p == '-'))
            p++;
        if (!is_digit (in, p))
            return hk_json_in_fail (in, "digit expected");
        while (is_digit (in, p))
            p++;
    }
    in->at = p;
    return true;
}

bool hk_json_in_integer (struct hk_json_in *in, int64_t *value)
{
    char *p;
    bool whole;
    bool negative;
    int64_t n = 0;

    if (in->problem || !pass_number (in, &p, &whole))
        return false;
    if (!whole)
        return hk_json_in_fail (in, "integer expected");
    negative = *p == '-';
    for (p += negative; p < in->at; p++)
        if (__builtin_mul_overflow (n, 10, &n)
            || __builtin_add_overflow (n, *p - '0', &n))
            return hk_json_in_fail (in, "integer over 63 bits");
    *value = negative ? -n : n;
    return true;
}

/* Digits that make at most 2^53 and a short fraction are exact in two steps:
 * both numbers are exact, and a division is rounded once, rightly.
 */
static bool short_number (const char *p, const char *end, double *value)
{
    static const double power[] = { 1e0, 1e1, 1e2, 1e3, 1e4,
                                    1e5, 1e6, 1e7, 1e8, 1e9 };
    const char *point = NULL;
    int64_t n = 0;
    int digits = 0;
    bool negative = *p == '-';

    for (p += negative; p < end; p++) {
        if (*p == '.') {
            point = p;
            continue;
        }
        if (*p == 'e' || *p == 'E' || ++digits > 18)
            return false;
        n = n * 10 + (*p - '0');
    }
    if (n > 1LL << 53 || (point && end - point - 1 > 9))
        return false;
    *value = (double)n / power[point ? end - point - 1 : 0];
    if (negative)
        *value = -*value;
    return true;
}

/* The text was found right: what else jansson calls a mistake of the text is
 * memory that it did not get.
 */
static bool is_no_memory (const json_error_t *error)
{
    enum json_error_code code = json_error_code (error);

    return code != json_error_duplicate_key
           && code != json_error_numeric_overflow;
}

bool hk_json_in_number (struct hk_json_in *in, double *value)
{
    char *start;
    bool whole;
    json_t *number;
    json_error_t error;

    if (in->problem || !pass_number (in, &start, &whole))
        return false;
    if (short_number (start, in->at, value))
        return true;
    /* jansson does the long ones right in every locale */
    number = json_loadb (start,
                         (size_t)(in->at - start),
                         JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL,
                         &error);
    if (!number)
        return hk_json_in_fail (in,
                                is_no_memory (&error) ? hk_json_no_memory
                                                      : "number out of range");
    *value = json_number_value (number);
    json_decref (number);
    return true;
}

static bool take_word (struct hk_json_in *in, const char *word)
{
    size_t len = strlen (word);

    hk_json_in_peek (in);
    if (in->problem || (size_t)(in->end - in->at) < len
        || memcmp (in->at, word, len) != 0)
        return false;
    in->at += len;
    return true;
}

bool hk_json_in_bool (struct hk_json_in *in, bool *value)
{
    if (take_word (in, "true"))
        *value = true;
    else if (take_word (in, "false"))
        *value = false;
    else
        return hk_json_in_fail (in, "true or false expected");
    return true;
}

bool hk_json_in_null (struct hk_json_in *in)
{
    return take_word (in, "null");
}

static bool skip_string (struct hk_json_in *in)
{
    if (!take (in, '"'))
        return hk_json_in_fail (in, "string expected");
    return hk_json_in_rest_of_string (in, NULL, NULL);
}

/* Recursion ends at depth_limit. */
bool hk_json_in_skip (struct hk_json_in *in)
{
    char c = hk_json_in_peek (in);
    bool first = true;
    bool unused;
    char *start;

    if (in->problem)
        return false;
    switch (c) {
    case '{':
        if (!hk_json_in_open (in, '{'))
            return false;
        while (next_member (in, &first, '}')) {
            if (!skip_string (in))
                return false;
            if (!take (in, ':'))
                return hk_json_in_fail (in, "colon expected");
            if (!hk_json_in_skip (in))
                return false;
        }
        return !in->problem;
    case '[':
        if (!hk_json_in_open (in, '['))
            return false;
        while (hk_json_in_item (in, &first))
            if (!hk_json_in_skip (in))
                return false;
        return !in->problem;
    case '"':
        return skip_string (in);
    case 't':
    case 'f':
        return hk_json_in_bool (in, &unused);
    case 'n':
        return hk_json_in_null (in) || hk_json_in_fail (in, "value expected");
    default:
        return pass_number (in, &start, &unused);
    }
}

json_t *hk_json_in_value (struct hk_json_in *in)
{
    char *start;
    json_t *value;
    json_error_t error;

    hk_json_in_peek (in);
    start = in->at;
    if (!hk_json_in_skip (in))
        return NULL;
    value = json_loadb (start,
                        (size_t)(in->at - start),
                        JSON_DECODE_ANY | JSON_REJECT_DUPLICATES,
                        &error);
    if (!value)
        hk_json_in_fail (in,
                         is_no_memory (&error)
                             ? hk_json_no_memory
                             : "duplicate key or number out of range");
    return value;
}

/* rankset.c - a set of ranks over a CRoaring bitmap; text is an RFC 22 idset */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <roaring/roaring.h>
#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"
#include "proto/rankset.h"
#include "proto/text.h"

/* All ranks being below HK_RANK_LIMIT, a bitmap has at most 16 containers of
 * 8 KiB: that is the bound on what is asked of CRoaring, which ends the
 * process when malloc fails.
 */
struct hk_rankset {
    roaring_bitmap_t *bits;
};

struct hk_rankset *hk_rankset_create (void)
{
    struct hk_rankset *set = calloc (1, sizeof (*set));

    if (!set)
        return NULL;
    set->bits = roaring_bitmap_create ();
    if (!set->bits) {
        free (set);
        errno = ENOMEM;
        return NULL;
    }
    return set;
}

void hk_rankset_destroy (struct hk_rankset *set)
{
    if (set) {
        int saved_errno = errno;
        roaring_bitmap_free (set->bits);
        free (set);
        errno = saved_errno;
    }
}

struct hk_rankset *hk_rankset_copy (const struct hk_rankset *set)
{
    struct hk_rankset *copy = hk_rankset_create ();

    if (copy)
        roaring_bitmap_or_inplace (copy->bits, set->bits);
    return copy;
}

/* Read one number at text[*pos] and move on. RFC 22: no leading zeros. */
static int parse_rank (const char *text,
                       size_t *pos,
                       uint32_t *rank,
                       struct hk_error *err)
{
    size_t start = *pos;
    uint32_t n = 0;

    while (text[*pos] >= '0' && text[*pos] <= '9') {
        n = n * 10 + (uint32_t)(text[*pos] - '0');
        if (n >= HK_RANK_LIMIT)
            return hk_error_set (err,
                                 ERANGE,
                                 "rank set: number at character %zu is not "
                                 "below %d",
                                 start + 1,
                                 HK_RANK_LIMIT);
        (*pos)++;
    }
    if (*pos == start)
        return hk_error_set (err,
                             EINVAL,
                             "rank set: expected a number at character %zu",
                             start + 1);
    if (text[start] == '0' && *pos - start > 1)
        return hk_error_set (
            err, EINVAL, "rank set: leading zero at character %zu", start + 1);
    *rank = n;
    return 0;
}

/* Read "N" or "N-M" at text[*pos] into set. RFC 22: unique and ascending, so
 * it starts at `least` or above; least is set to what may come next.
 */
static int parse_range (struct hk_rankset *set,
                        const char *text,
                        size_t *pos,
                        uint32_t *least,
                        struct hk_error *err)
{
    size_t start = *pos;
    uint32_t lo;
    uint32_t hi;

    if (parse_rank (text, pos, &lo, err) < 0)
        return -1;
    hi = lo;
    if (text[*pos] == '-') {
        (*pos)++;
        if (parse_rank (text, pos, &hi, err) < 0)
            return -1;
    }
    if (lo < *least || hi < lo)
        return hk_error_set (err,
                             EINVAL,
                             "rank set: numbers do not ascend at character %zu",
                             start + 1);
    roaring_bitmap_add_range_closed (set->bits, lo, hi);
    *least = hi + 1;
    return 0;
}

static int parse_set (struct hk_rankset *set,
                      const char *text,
                      struct hk_error *err)
{
    size_t pos = 0;
    uint32_t least = 0;
    bool bracket = text[0] == '[';

    if (bracket)
        pos++;
    if (text[pos] != (bracket ? ']' : '\0')) {
        for (;;) {
            if (parse_range (set, text, &pos, &least, err) < 0)
                return -1;
            if (text[pos] != ',')
                break;
            pos++;
        }
    }
    if (bracket && text[pos++] != ']')
        return hk_error_set (err,
                             EINVAL,
                             "rank set: expected ',', '-' or ']' at "
                             "character %zu",
                             pos);
    if (text[pos] != '\0')
        return hk_error_set (
            err, EINVAL, "rank set: unexpected text at character %zu", pos + 1);
    return 0;
}

struct hk_rankset *hk_rankset_decode (const char *text, struct hk_error *err)
{
    struct hk_rankset *set;

    if (!text) {
        hk_error_set (err, EINVAL, "rank set: no text");
        return NULL;
    }
    if (strnlen (text, HK_IDSET_TEXT_BYTES) >= HK_IDSET_TEXT_BYTES) {
        hk_error_set (err,
                      ERANGE,
                      "rank set: text of %d bytes or more",
                      HK_IDSET_TEXT_BYTES);
        return NULL;
    }
    set = hk_rankset_create ();
    if (!set) {
        hk_error_errno (err, ENOMEM, "rank set");
        return NULL;
    }
    if (parse_set (set, text, err) < 0) {
        hk_rankset_destroy (set);
        return NULL;
    }
    return set;
}

char *hk_rankset_encode (const struct hk_rankset *set)
{
    struct hk_text text = { 0 };
    roaring_uint32_iterator_t it;

    roaring_init_iterator (set->bits, &it);
    while (it.has_value) {
        uint32_t lo = it.current_value;
        uint32_t hi = lo;

        while (roaring_advance_uint32_iterator (&it)
               && it.current_value == hi + 1)
            hi++;
        hk_text_put_range (&text, lo, hi, 1);
    }
    return hk_text_take (&text);
}

int hk_rankset_add (struct hk_rankset *set, uint32_t rank)
{
    if (rank >= HK_RANK_LIMIT) {
        errno = ERANGE;
        return -1;
    }
    roaring_bitmap_add (set->bits, rank);
    return 0;
}

void hk_rankset_remove (struct hk_rankset *set, uint32_t rank)
{
    roaring_bitmap_remove (set->bits, rank);
}

bool hk_rankset_has (const struct hk_rankset *set, uint32_t rank)
{
    return roaring_bitmap_contains (set->bits, rank);
}

void hk_rankset_add_set (struct hk_rankset *set, const struct hk_rankset *more)
{
    if (set != more)
        roaring_bitmap_or_inplace (set->bits, more->bits);
}

void hk_rankset_remove_set (struct hk_rankset *set,
                            const struct hk_rankset *less)
{
    if (set == less)
        roaring_bitmap_clear (set->bits);
    else
        roaring_bitmap_andnot_inplace (set->bits, less->bits);
}

void hk_rankset_keep_set (struct hk_rankset *set, const struct hk_rankset *only)
{
    if (set != only)
        roaring_bitmap_and_inplace (set->bits, only->bits);
}

void hk_rankset_clear (struct hk_rankset *set)
{
    roaring_bitmap_clear (set->bits);
}

size_t hk_rankset_count (const struct hk_rankset *set)
{
    return (size_t)roaring_bitmap_get_cardinality (set->bits);
}

bool hk_rankset_is_empty (const struct hk_rankset *set)
{
    return roaring_bitmap_is_empty (set->bits);
}

bool hk_rankset_equal (const struct hk_rankset *a, const struct hk_rankset *b)
{
    return roaring_bitmap_equals (a->bits, b->bits);
}

bool hk_rankset_contains (const struct hk_rankset *set,
                          const struct hk_rankset *subset)
{
    return roaring_bitmap_is_subset (subset->bits, set->bits);
}

bool hk_rankset_intersects (const struct hk_rankset *a,
                            const struct hk_rankset *b)
{
    return roaring_bitmap_intersect (a->bits, b->bits);
}

uint32_t hk_rankset_first (const struct hk_rankset *set)
{
    roaring_uint32_iterator_t it;

    roaring_init_iterator (set->bits, &it);
    return it.has_value ? it.current_value : HK_RANK_NONE;
}

uint32_t hk_rankset_next (const struct hk_rankset *set, uint32_t after)
{
    roaring_uint32_iterator_t it;

    if (after >= HK_RANK_LIMIT)
        return HK_RANK_NONE;
    /* sets are dense, and moving an iterator is linear in a bitset */
    if (roaring_bitmap_contains (set->bits, after + 1))
        return after + 1;
    roaring_init_iterator (set->bits, &it);
    if (!roaring_move_uint32_iterator_equalorlarger (&it, after + 1))
        return HK_RANK_NONE;
    return it.current_value;
}

void hk_rankset_list (const struct hk_rankset *set, uint32_t *ranks)
{
    roaring_bitmap_to_uint32_array (set->bits, ranks);
}

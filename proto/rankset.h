/* rankset.h - a set of ranks; text is an RFC 22 idset */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HK_RANKSET_H
#define HK_RANKSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/error.h"

/* Ranks are below HK_RANK_LIMIT.  CRoaring ends the process when memory is
 * gone, so every size is bounded before it is reached.
 */
struct hk_rankset;

#define HK_RANK_NONE UINT32_MAX

struct hk_rankset *hk_rankset_create (void);
void hk_rankset_destroy (struct hk_rankset *set); /* NULL is fine */
struct hk_rankset *hk_rankset_copy (const struct hk_rankset *set);

/* RFC 22: "", "3", "0-3,7", "[0-3,7]".  NULL with EINVAL (says at which
 * character) or ERANGE.
 */
struct hk_rankset *hk_rankset_decode (const char *text, struct hk_error *err);
/* Without brackets, "" when empty.  The caller frees the result. */
char *hk_rankset_encode (const struct hk_rankset *set);

/* Ranks at or above HK_RANK_LIMIT: -1 with ERANGE. */
int hk_rankset_add (struct hk_rankset *set, uint32_t rank);
void hk_rankset_remove (struct hk_rankset *set, uint32_t rank);
bool hk_rankset_has (const struct hk_rankset *set, uint32_t rank);

void hk_rankset_add_set (struct hk_rankset *set, const struct hk_rankset *more);
void hk_rankset_remove_set (struct hk_rankset *set,
                            const struct hk_rankset *less);
void hk_rankset_keep_set (struct hk_rankset *set,
                          const struct hk_rankset *only);
void hk_rankset_clear (struct hk_rankset *set);

size_t hk_rankset_count (const struct hk_rankset *set);
bool hk_rankset_is_empty (const struct hk_rankset *set);
bool hk_rankset_equal (const struct hk_rankset *a, const struct hk_rankset *b);
bool hk_rankset_contains (const struct hk_rankset *set,
                          const struct hk_rankset *subset);
bool hk_rankset_intersects (const struct hk_rankset *a,
                            const struct hk_rankset *b);

/* for (r = hk_rankset_first (s); r != HK_RANK_NONE;
 *      r = hk_rankset_next (s, r)) */
uint32_t hk_rankset_first (const struct hk_rankset *set);
uint32_t hk_rankset_next (const struct hk_rankset *set, uint32_t after);
/* All of them, ascending, into an array of hk_rankset_count (set): faster than
 * the loop above where a set is large.
 */
void hk_rankset_list (const struct hk_rankset *set, uint32_t *ranks);

#endif

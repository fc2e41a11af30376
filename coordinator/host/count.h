/* count.h - sets of resources: by rank, its cores, gpus and whatever it has */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HKC_COUNT_H
#define HKC_COUNT_H

#include <jansson.h>
#include <stdbool.h>
#include "proto/error.h"
#include "proto/rankset.h"

struct hkc_count;
struct hkc_count *hkc_count_create (void);
void hkc_count_destroy (struct hkc_count *count);
/* R of any size; -1 with EINVAL: what is not R; nothing is changed then. */
int hkc_count_add (struct hkc_count *count,
                   const json_t *R,
                   const struct hk_rankset *only, /* NULL: all of R */
                   struct hk_error *err);
int hkc_count_remove (struct hkc_count *count,
                      const json_t *R,
                      struct hk_error *err);
bool hkc_count_is_empty (const struct hkc_count *count);
/* As an R that the caller frees; a rank whose host was never told has the name
 * rankN.
 */
json_t *hkc_count_R (const struct hkc_count *count);

#endif

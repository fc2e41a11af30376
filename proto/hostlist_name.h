/* hostlist_name.h - a host name as prefix, number and suffix; for hostlist.c
 * and its text codec alone */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HK_HOSTLIST_NAME_H
#define HK_HOSTLIST_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* More digits than this are text and no number. */
enum { HK_HOSTLIST_DIGITS_LIMIT = 18 };

/* The number is the last one in the first label: node12, node12.site,
 * rack1-node07-ib. Borrows the name.
 */
struct hk_hostlist_name {
    const char *prefix;
    size_t prefix_len;
    bool has_number;
    uint64_t number;
    int digits; /* as written */
    int width;  /* 1 or, with leading zeros, digits */
    const char *suffix;
};

void hk_hostlist_name_split (const char *name, struct hk_hostlist_name *split);

/* By prefix, then number (none first), then suffix. */
int hk_hostlist_name_compare (const struct hk_hostlist_name *a,
                              const struct hk_hostlist_name *b);

#endif

/* resource_impl.h - what R is kept as; for the resource files alone */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HK_RESOURCE_IMPL_H
#define HK_RESOURCE_IMPL_H

#include <stddef.h>
#include <stdint.h>

#include "proto/hostlist.h"
#include "proto/rankset.h"
#include "proto/resource.h"

/* An entry of R_lite. */
struct hk_resource_entry {
    char *rest;  /* JSON object of all but `rank`, never empty */
    char *cores; /* idset, "" if there is none */
};

struct hk_resource_property {
    char *name; /* as a JSON string, quoted */
    struct hk_rankset *ranks;
};

/* JSON trees are large: R is kept as text and as arrays by a rank's place, that
 * is how many ranks of R are below it. The host of place n is the n-th of hosts.
 */
struct hk_resource {
    char *text; /* compact, keys sorted */
    struct hk_rankset *ranks;
    size_t count;
    uint32_t *rank_at;  /* ascending */
    uint32_t *entry_at; /* index into entries */
    struct hk_hostlist *hosts;
    struct hk_rankset **host_ranks; /* at a host's first place, else NULL */
    struct hk_resource_entry *entries;
    size_t entries_count;
    struct hk_resource_property *properties;
    size_t properties_count;
    char *starttime;  /* JSON number or NULL */
    char *expiration; /* JSON number or NULL */
};

/* The place of a rank; -1 if it is not in R. */
long hk_resource_place (const struct hk_resource *res, uint32_t rank);

#endif

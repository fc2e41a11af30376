/* resource.c - questions to R, the resource set of RFC 20 */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/resource.h"
#include "proto/resource_impl.h"
#include "proto/sha256.h"

struct hk_resource *hk_resource_create_empty (void)
{
    struct hk_resource *res = calloc (1, sizeof (*res));

    if (!res || !(res->ranks = hk_rankset_create ())
        || !(res->hosts = hk_hostlist_create ())
        || !(res->text = strdup ("{}"))) {
        hk_resource_destroy (res);
        errno = ENOMEM;
        return NULL;
    }
    return res;
}

void hk_resource_destroy (struct hk_resource *res)
{
    int saved_errno = errno;

    if (!res)
        return;
    for (size_t i = 0; i < res->entries_count; i++) {
        free (res->entries[i].rest);
        free (res->entries[i].cores);
    }
    for (size_t i = 0; i < res->properties_count; i++) {
        free (res->properties[i].name);
        hk_rankset_destroy (res->properties[i].ranks);
    }
    if (res->host_ranks) {
        for (size_t i = 0; i < res->count; i++)
            hk_rankset_destroy (res->host_ranks[i]);
    }
    free (res->entries);
    free (res->properties);
    free (res->host_ranks);
    free (res->rank_at);
    free (res->entry_at);
    hk_rankset_destroy (res->ranks);
    hk_hostlist_destroy (res->hosts);
    free (res->starttime);
    free (res->expiration);
    free (res->text);
    free (res);
    errno = saved_errno;
}

char *hk_resource_encode (const struct hk_resource *res)
{
    return strdup (res->text);
}

const struct hk_rankset *hk_resource_ranks (const struct hk_resource *res)
{
    return res->ranks;
}

long hk_resource_place (const struct hk_resource *res, uint32_t rank)
{
    size_t lo = 0;
    size_t hi = res->count;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (res->rank_at[mid] < rank)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < res->count && res->rank_at[lo] == rank ? (long)lo : -1;
}

const char *hk_resource_host (const struct hk_resource *res, uint32_t rank)
{
    long place = hk_resource_place (res, rank);

    return place < 0 ? NULL : hk_hostlist_nth (res->hosts, (size_t)place);
}

const struct hk_rankset *hk_resource_host_ranks (const struct hk_resource *res,
                                                 const char *host)
{
    long place = hk_hostlist_find (res->hosts, host);

    return place < 0 ? NULL : res->host_ranks[place];
}

const char *hk_resource_cores (const struct hk_resource *res, uint32_t rank)
{
    long place = hk_resource_place (res, rank);

    return place < 0 ? NULL : res->entries[res->entry_at[place]].cores;
}

void hk_resource_digest (const struct hk_resource *res, char *hex)
{
    hk_sha256_hex (res->text, strlen (res->text), hex);
}

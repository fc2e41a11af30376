/* inventory.c - what resource.status says: hosts, drained and excluded ranks */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include "proto/resource.h"
#include "coordinator/host/inventory.h"

static const char no_host[] = "no-such-rank";

struct hkc_inventory {
    json_t *o;
    struct hk_resource *res;
    struct hk_rankset *exclude;
    struct hk_rankset **drained; /* one for each reason */
    const char **reasons;        /* borrowed from o */
    size_t drained_count;
};

void hkc_inventory_destroy (struct hkc_inventory *inv)
{
    if (!inv)
        return;
    for (size_t i = 0; i < inv->drained_count; i++)
        hk_rankset_destroy (inv->drained[i]);
    free (inv->drained);
    free (inv->reasons);
    hk_rankset_destroy (inv->exclude);
    hk_resource_destroy (inv->res);
    json_decref (inv->o);
    free (inv);
}

static int take_drained (struct hkc_inventory *inv, json_t *drain)
{
    size_t size = json_object_size (drain) + 1;
    const char *ranks;
    json_t *info;

    inv->drained = calloc (size, sizeof (*inv->drained));
    inv->reasons = calloc (size, sizeof (*inv->reasons));
    if (!inv->drained || !inv->reasons)
        return -1;
    json_object_foreach (drain, ranks, info)
    {
        const char *reason = "";
        struct hk_rankset *set = hk_rankset_decode (ranks, NULL);
        if (!set)
            return -1;
        json_unpack (info, "{s?s}", "reason", &reason);
        inv->reasons[inv->drained_count] = reason;
        inv->drained[inv->drained_count++] = set;
    }
    return 0;
}

struct hkc_inventory *hkc_inventory_decode (const char *text,
                                            struct hk_error *err)
{
    struct hkc_inventory *inv = calloc (1, sizeof (*inv));
    json_t *R, *drain;
    const char *exclude = "";
    json_error_t jerr;
    char *R_text = NULL;

    if (!inv) {
        hk_error_set (err, ENOMEM, "out of memory");
        return NULL;
    }
    if (!(inv->o = json_loads (text, 0, &jerr))
        || json_unpack_ex (inv->o,
                           &jerr,
                           0,
                           "{s:o s:o s?s}",
                           "R",
                           &R,
                           "drain",
                           &drain,
                           "exclude",
                           &exclude)) {
        hk_error_set (err, EINVAL, "resource.status: %s", jerr.text);
        goto error;
    }
    if (!(R_text = json_dumps (R, JSON_COMPACT))
        || !(inv->res = hk_resource_decode (R_text, err)))
        goto error;
    if (!(inv->exclude = hk_rankset_decode (exclude, err))
        || take_drained (inv, drain) < 0) {
        hk_error_set (err, EINVAL, "resource.status: drain or exclude");
        goto error;
    }
    free (R_text);
    return inv;
error:
    free (R_text);
    hkc_inventory_destroy (inv);
    return NULL;
}

struct hk_hostlist *hkc_inventory_hosts (const char *text, struct hk_error *err)
{
    struct hkc_inventory *inv = hkc_inventory_decode (text, err);
    struct hk_hostlist *hosts = NULL;
    const struct hk_rankset *ranks;
    uint32_t next = 0;

    if (!inv || !(hosts = hk_hostlist_create ()))
        goto out;
    ranks = hk_resource_ranks (inv->res);
    for (uint32_t r = hk_rankset_first (ranks); r != HK_RANK_NONE;
         r = hk_rankset_next (ranks, r)) {
        int rc = 0;
        for (; next < r && rc == 0; next++)
            rc = hk_hostlist_append (hosts, no_host);
        next = r + 1;
        if (rc < 0
            || hk_hostlist_append (hosts, hk_resource_host (inv->res, r)) < 0) {
            hk_error_errno (err, errno, "hosts of the inventory");
            hk_hostlist_destroy (hosts);
            hosts = NULL;
            goto out;
        }
    }
out:
    hkc_inventory_destroy (inv);
    return hosts;
}

const struct hk_rankset *hkc_inventory_ranks (const struct hkc_inventory *inv,
                                              const char *host)
{
    return hk_resource_host_ranks (inv->res, host);
}

bool hkc_inventory_excluded (const struct hkc_inventory *inv, uint32_t rank)
{
    return hk_rankset_has (inv->exclude, rank);
}

const char *hkc_inventory_drained (const struct hkc_inventory *inv,
                                   uint32_t rank)
{
    for (size_t i = 0; i < inv->drained_count; i++)
        if (hk_rankset_has (inv->drained[i], rank))
            return inv->reasons[i];
    return NULL;
}

const struct hk_rankset *hkc_inventory_all (const struct hkc_inventory *inv)
{
    return hk_resource_ranks (inv->res);
}

const char *hkc_inventory_host (const struct hkc_inventory *inv, uint32_t rank)
{
    return hk_resource_host (inv->res, rank);
}

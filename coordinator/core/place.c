/* place.c - what is no longer as R says: ranks that moved, jobs forgotten */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "coordinator/core/internal.h"

static bool is_there (struct hkc_core *core,
                      const struct hkc_part *part,
                      uint32_t rank)
{
    const char *now = hk_hostlist_nth (core->inventory, rank);
    const char *then = hk_resource_host (part->alloc->res, rank);

    return now
           && (!strcmp (now, then) || hkc_host_find (core, now) == part->host);
}

void hkc_part_place (struct hkc_core *core, struct hkc_part *part)
{
    part->misplaced = false;
    if (!core->inventory)
        return;
    for (uint32_t r = hk_rankset_first (part->ranks);
         r != HK_RANK_NONE && !part->misplaced;
         r = hk_rankset_next (part->ranks, r))
        part->misplaced = !is_there (core, part, r);
}

static struct hk_hostlist *copy_of (const struct hk_hostlist *hosts)
{
    struct hk_hostlist *copy = hk_hostlist_create ();
    size_t count = hk_hostlist_count (hosts);

    for (size_t i = 0; copy && i < count; i++) {
        if (hk_hostlist_append (copy, hk_hostlist_nth (hosts, i)) < 0) {
            hk_hostlist_destroy (copy);
            copy = NULL;
        }
    }
    return copy;
}

int hkc_inventory (struct hkc_core *core,
                   const struct hk_hostlist *hosts,
                   struct hk_error *err)
{
    struct hk_hostlist *copy = NULL;

    if (hosts && !(copy = copy_of (hosts)))
        return hk_error_set (err, ENOMEM, "out of memory");
    hk_hostlist_destroy (core->inventory);
    core->inventory = copy;
    for (struct hkc_alloc *a = core->first; a; a = a->next) {
        for (uint32_t i = 0; i < a->parts_count; i++)
            hkc_part_place (core, &a->parts[i]);
        if (core->life_state == HKC_LIFE_HELLO)
            hkc_hello_drain (core, a);
    }
    return 0;
}

struct hk_hostlist *hkc_hosts_of (const struct hkc_core *core,
                                  const struct hk_rankset *ranks)
{
    struct hk_hostlist *hosts;

    if (!core->inventory || !ranks)
        return NULL;
    if (!(hosts = hk_hostlist_create ()))
        abort ();
    for (uint32_t r = hk_rankset_first (ranks); r != HK_RANK_NONE;
         r = hk_rankset_next (ranks, r)) {
        const char *name = hk_hostlist_nth (core->inventory, r);
        if (name && hk_hostlist_append (hosts, name) < 0)
            abort (); /* it was in a list of that size */
    }
    return hosts;
}

int hkc_job_purged (struct hkc_core *core, const struct hkc_event *ev)
{
    struct hkc_alloc *a = zhashx_lookup (core->jobs, &ev->purged.jobid);

    for (; a; a = a->job_next) {
        if (a->t_submit != ev->purged.t_submit)
            continue;
        a->purged = true;
        if (core->life_state == HKC_LIFE_HELLO)
            hkc_hello_drain (core, a);
    }
    return 0;
}

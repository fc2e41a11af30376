/* account.c - what the scheduler really holds, compared once a life */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include "coordinator/core/internal.h"

struct cores_memo {
    const char *ours, *theirs;
    bool within;
};

/* Does the account have every core of ours on the rank?  R says the same text
 * for thousands of ranks: the last comparison is remembered.
 */
static bool cores_within (struct cores_memo *memo,
                          const char *ours,
                          const char *theirs)
{
    struct hk_rankset *a, *b;

    if (!ours || !theirs)
        return theirs != NULL;
    if (memo->ours && !strcmp (memo->ours, ours)
        && !strcmp (memo->theirs, theirs))
        return memo->within;
    a = hk_rankset_decode (ours, NULL);
    b = hk_rankset_decode (theirs, NULL);
    memo->within = a && b && hk_rankset_contains (b, a);
    memo->ours = ours;
    memo->theirs = theirs;
    hk_rankset_destroy (a);
    hk_rankset_destroy (b);
    return memo->within;
}

static bool part_within (struct cores_memo *memo,
                         const struct hkc_part *part,
                         const struct hk_resource *account)
{
    for (uint32_t r = hk_rankset_first (part->ranks); r != HK_RANK_NONE;
         r = hk_rankset_next (part->ranks, r)) {
        if (!hk_rankset_has (hk_resource_ranks (account), r))
            return false;
        if (!cores_within (memo,
                           hk_resource_cores (part->alloc->res, r),
                           hk_resource_cores (account, r)))
            return false;
    }
    return true;
}

static void lacking (struct hkc_core *core, struct hkc_part *part)
{
    struct hkc_alloc *alloc = part->alloc;

    hk_rankset_remove_set (alloc->known, part->ranks);
    hkc_alloc_dirty (core, alloc);
    if (hkc_part_is_held (part))
        hkc_cause_add (core,
                       part->host,
                       HKC_CAUSE_HELLO,
                       alloc->id,
                       "housekeeping: held, and the scheduler lost it");
    hkc_say (core,
             LOG_ERR,
             alloc->jobid,
             part->host->shown,
             "the scheduler was told of it and does not count it");
}

void hkc_account_compare (struct hkc_core *core,
                          const struct hk_resource *account)
{
    struct cores_memo memo = { NULL, NULL, false };

    for (struct hkc_alloc *a = core->first; a; a = a->next) {
        if (!a->begun)
            continue;
        for (uint32_t i = 0; i < a->parts_count; i++) {
            struct hkc_part *p = &a->parts[i];
            bool known = hk_rankset_contains (a->known, p->ranks);
            bool there;
            if (p->phase == HKC_DONE || p->conflict)
                continue;
            there = part_within (&memo, p, account);
            if (known && !there)
                lacking (core, p);
            else if (core->online && there && !p->misplaced) {
                hk_rankset_add_set (a->known, p->ranks);
                hkc_alloc_dirty (core, a);
                known = true;
            }
            if (known && there)
                hkc_cause_remove (core, p->host, HKC_CAUSE_HELLO, a->id);
        }
    }
}

/* release.c - when an ended rank is due, and how due ranks are freed */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include "coordinator/core/internal.h"

/* release-after as upstream: 0 each as it is done; a duration counts from the
 * first end, and on expiry all that have ended go; `all` and the last end
 * release everything at once.
 */
static bool release_is_met (const struct hkc_core *core,
                            const struct hkc_alloc *alloc)
{
    int64_t after = core->conf->policy.release_after_ms;

    if (alloc->ended_count == alloc->parts_count || after == 0)
        return true;
    if (after == HK_RELEASE_ALL || after == HK_DURATION_INF
        || alloc->ended_count == 0)
        return false;
    return core->now_ms >= alloc->first_end_ms + after;
}

void hkc_release_sweep (struct hkc_core *core, struct hkc_alloc *alloc)
{
    for (uint32_t i = 0; i < alloc->parts_count; i++)
        hkc_part_reviewed (core, &alloc->parts[i]);
}

bool hkc_release_met (struct hkc_core *core, struct hkc_alloc *alloc)
{
    if (!alloc->released && release_is_met (core, alloc)) {
        alloc->released = true;
        hkc_release_sweep (core, alloc);
    }
    return alloc->released;
}

static void due_back (struct hkc_core *core, struct hkc_alloc *alloc)
{
    for (uint32_t i = 0; i < alloc->due_count; i++) {
        alloc->due[i]->phase = HKC_ENDED;
        hkc_part_dirty (core, alloc->due[i]);
    }
    alloc->due_count = 0;
}

/* Another configuration: what was due and is not freed is judged anew. */
void hkc_release_all (struct hkc_core *core)
{
    for (struct hkc_alloc *a = core->first; a; a = a->next) {
        a->released = false;
        due_back (core, a);
        hkc_release_met (core, a);
    }
}

void hkc_due_prune (struct hkc_alloc *alloc)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < alloc->due_count; i++)
        if (alloc->due[i]->phase == HKC_DUE)
            alloc->due[kept++] = alloc->due[i];
    alloc->due_count = kept;
}

void hkc_due_add (struct hkc_core *core, struct hkc_part *part)
{
    struct hkc_alloc *alloc = part->alloc;
    size_t size = alloc->due_size;

    alloc->due = hkc_grow (
        alloc->due, &size, alloc->due_count + 1, sizeof (*alloc->due));
    alloc->due_size = (uint32_t)size;
    alloc->due[alloc->due_count++] = part;
    alloc->stalled = false;
    if (!alloc->on_free_list) {
        alloc->on_free_list = true;
        alloc->free_next = core->freeing;
        core->freeing = alloc;
    }
}

/* Between a life's end and the next ready nothing is freed. */
bool hkc_may_free (const struct hkc_core *core)
{
    return core->life_state == HKC_LIFE_READY && core->manager
           && !core->recover;
}

static void free_send (struct hkc_core *core,
                       struct hkc_alloc *alloc,
                       const struct hk_rankset *ranks)
{
    struct hkc_row_free *row = hkc_zalloc (sizeof (*row));
    struct hk_error err;
    char *text, *R;

    if (!(R = hk_resource_fragment (alloc->res, ranks, &err))
        || !(text = hk_rankset_encode (ranks)))
        abort (); /* ranks is within R, so only memory can be gone */
    hk_rankset_remove_set (alloc->known, ranks);
    row->n = ++core->free_n;
    row->life = hkc_strdup (core->life);
    row->jobid = alloc->jobid;
    row->ranks = text;
    row->R = R;
    row->final = hk_rankset_is_empty (alloc->known);
    zlistx_add_end (core->frees, row);
    core->sched_dirty = true;
    hkc_put (core, HKC_ROW_FREE)->free = hkc_free_borrow (core, row);
    hkc_act (core, HKC_ACT_FREE)->free = hkc_free_borrow (core, row);
    hkc_say (core,
             LOG_DEBUG,
             alloc->jobid,
             NULL,
             "freed ranks %s%s",
             text,
             row->final ? ", final" : "");
}

static bool window_is_open (const struct hkc_core *core,
                            const struct hkc_alloc *alloc)
{
    if (alloc->last_free_ms == INT64_MIN
        || alloc->done_count + alloc->due_count == alloc->parts_count)
        return true;
    return core->now_ms
           >= alloc->last_free_ms + core->conf->policy.free_window_ms;
}

/* Due ranks that the scheduler counts are freed; those it was not told of, once
 * its account has spoken, are closed out and nothing is sent.
 */
static void free_alloc (struct hkc_core *core, struct hkc_alloc *alloc)
{
    struct hk_rankset *ranks = hk_rankset_copy (alloc->done);
    uint32_t kept = 0;

    hk_rankset_keep_set (ranks, alloc->known); /* done in an earlier life */
    for (uint32_t i = 0; i < alloc->due_count; i++) {
        struct hkc_part *part = alloc->due[i];
        bool known = hk_rankset_contains (alloc->known, part->ranks);
        if (known)
            hk_rankset_add_set (ranks, part->ranks);
        else if (!core->account_spoken) {
            alloc->due[kept++] = part;
            continue;
        }
        hkc_part_done (core, part);
    }
    alloc->due_count = kept;
    alloc->stalled = kept > 0;
    if (!hk_rankset_is_empty (ranks)) {
        free_send (core, alloc, ranks);
        alloc->last_free_ms = core->now_ms;
    }
    hk_rankset_destroy (ranks);
}

void hkc_release_tick (struct hkc_core *core)
{
    struct hkc_alloc **p, *alloc;

    if (core->conf->policy.release_after_ms > 0)
        for (alloc = core->first; alloc; alloc = alloc->next)
            hkc_release_met (core, alloc);
    if (!hkc_may_free (core))
        return;
    for (p = &core->freeing; (alloc = *p);) {
        if (alloc->due_count && window_is_open (core, alloc))
            free_alloc (core, alloc);
        if (alloc->due_count) {
            p = &alloc->free_next;
            continue;
        }
        *p = alloc->free_next;
        alloc->on_free_list = false;
        hkc_alloc_close_if_done (core, alloc);
    }
}

int64_t hkc_release_deadline (const struct hkc_core *core)
{
    int64_t when = INT64_MAX;
    int64_t after = core->conf->policy.release_after_ms;

    if (after > 0 && after != HK_DURATION_INF) {
        for (const struct hkc_alloc *a = core->first; a; a = a->next)
            if (!a->released && a->ended_count
                && a->first_end_ms + after < when)
                when = a->first_end_ms + after;
    }
    if (!hkc_may_free (core))
        return when;
    for (const struct hkc_alloc *a = core->freeing; a; a = a->free_next) {
        int64_t at = a->last_free_ms == INT64_MIN
                         ? core->now_ms
                         : a->last_free_ms + core->conf->policy.free_window_ms;
        if (!a->stalled && at < when)
            when = at;
    }
    return when;
}

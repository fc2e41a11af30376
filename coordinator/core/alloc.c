/* alloc.c - an allocation: recorded, begun, dropped, closed */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "coordinator/core/internal.h"

struct hkc_alloc *hkc_alloc_find (const struct hkc_core *core, uint64_t id)
{
    return zhashx_lookup (core->allocs, &id);
}

bool hkc_core_knows (const struct hkc_core *core, uint64_t alloc)
{
    return hkc_alloc_find (core, alloc) != NULL;
}

void hkc_alloc_free (struct hkc_alloc *alloc)
{
    if (!alloc)
        return;
    for (uint32_t i = 0; alloc->parts && i < alloc->parts_count; i++) {
        free (alloc->parts[i].script);
        free (alloc->parts[i].blocked);
        free (alloc->parts[i].reason);
    }
    free (alloc->parts);
    free (alloc->due);
    free (alloc->queue);
    free (alloc->R);
    free (alloc->ranks_text);
    hk_resource_destroy (alloc->res);
    hk_rankset_destroy (alloc->done);
    hk_rankset_destroy (alloc->known);
    free (alloc);
}

void hkc_alloc_insert (struct hkc_core *core, struct hkc_alloc *alloc)
{
    struct hkc_alloc *same = zhashx_lookup (core->jobs, &alloc->jobid);

    alloc->prev = core->last;
    if (core->last)
        core->last->next = alloc;
    else
        core->first = alloc;
    core->last = alloc;
    zhashx_insert (core->allocs, &alloc->id, alloc);
    if (same) { /* the first stays the key: its memory holds the key */
        alloc->job_next = same->job_next;
        same->job_next = alloc;
    } else
        zhashx_insert (core->jobs, &alloc->jobid, alloc);
}

static void jobs_remove (struct hkc_core *core, struct hkc_alloc *alloc)
{
    struct hkc_alloc *first = zhashx_lookup (core->jobs, &alloc->jobid);

    if (first != alloc) {
        while (first && first->job_next != alloc)
            first = first->job_next;
        if (first)
            first->job_next = alloc->job_next;
        return;
    }
    zhashx_delete (core->jobs, &alloc->jobid);
    if (alloc->job_next)
        zhashx_insert (core->jobs, &alloc->job_next->jobid, alloc->job_next);
}

/* Out of every list; its memory stays until the turn is settled. */
void hkc_alloc_unlink (struct hkc_core *core, struct hkc_alloc *alloc)
{
    struct hkc_alloc **p;

    for (p = &core->freeing; *p; p = &(*p)->free_next) {
        if (*p == alloc) {
            *p = alloc->free_next;
            break;
        }
    }
    jobs_remove (core, alloc);
    zhashx_delete (core->allocs, &alloc->id);
    if (alloc->prev)
        alloc->prev->next = alloc->next;
    else
        core->first = alloc->next;
    if (alloc->next)
        alloc->next->prev = alloc->prev;
    else
        core->last = alloc->prev;
    alloc->free_next = core->closed;
    core->closed = alloc;
}

static void host_append (struct hkc_host *host, struct hkc_part *part)
{
    part->host = host;
    *host->parts_end = part;
    host->parts_end = &part->next_on_host;
}

static uint32_t count_parts (const struct hk_resource *res)
{
    const struct hk_rankset *ranks = hk_resource_ranks (res);
    uint32_t n = 0;

    for (uint32_t r = hk_rankset_first (ranks); r != HK_RANK_NONE;
         r = hk_rankset_next (ranks, r)) {
        const char *name = hk_resource_host (res, r);
        if (hk_rankset_first (hk_resource_host_ranks (res, name)) == r)
            n++;
    }
    return n;
}

/* A part a host, in order of the lowest rank: the order that pid counts. */
void hkc_alloc_parts (struct hkc_core *core, struct hkc_alloc *alloc)
{
    const struct hk_rankset *ranks = hk_resource_ranks (alloc->res);
    uint32_t i = 0;

    alloc->parts_count = count_parts (alloc->res);
    alloc->parts = hkc_zalloc (alloc->parts_count * sizeof (*alloc->parts));
    alloc->ranks_text = hk_rankset_encode (ranks);
    for (uint32_t r = hk_rankset_first (ranks); r != HK_RANK_NONE;
         r = hk_rankset_next (ranks, r)) {
        const char *name = hk_resource_host (alloc->res, r);
        const struct hk_rankset *mine = hk_resource_host_ranks (alloc->res,
                                                                name);
        if (hk_rankset_first (mine) != r)
            continue;
        struct hkc_part *part = &alloc->parts[i];
        struct hkc_host *host = hkc_host_need (core, name);
        part->alloc = alloc;
        part->ranks = mine;
        part->pid = alloc->pid + i;
        part->phase = HKC_WAITING;
        part->attempt = 1;
        part->t_since = alloc->t_end;
        part->covered = hk_conf_covers (core->conf, name);
        if (strcmp (host->shown, name))
            hkc_strset (&host->shown, name);
        host_append (host, part);
        hkc_part_place (core, part);
        i++;
    }
    core->held_count += alloc->parts_count;
}

uint64_t hkc_core_find_end (const struct hkc_core *core,
                            uint64_t jobid,
                            double t_submit,
                            double t_end,
                            const char *digest)
{
    struct hkc_alloc *a = zhashx_lookup (core->jobs, &jobid);

    for (; a; a = a->job_next)
        if (a->t_submit == t_submit && a->t_end == t_end
            && !strcmp (a->digest, digest))
            return a->id;
    return 0;
}

/* The same end, of an allocation that this turn has closed: it is in no index
 * yet, neither ours nor the store's.
 */
static uint64_t find_closed (const struct hkc_core *core,
                             const struct hkc_event *ev,
                             const char *digest)
{
    for (const struct hkc_alloc *a = core->closed; a; a = a->free_next)
        if (a->jobid == ev->job_end.jobid && a->t_submit == ev->job_end.t_submit
            && a->t_end == ev->job_end.t_end && !strcmp (a->digest, digest)
            && a->done_count == a->parts_count) /* dropped: none is */
            return a->id;
    return 0;
}

static void record (struct hkc_core *core, const struct hkc_alloc *alloc)
{
    struct hkc_row *row = hkc_put (core, HKC_ROW_ALLOC);

    row->alloc.alloc = alloc->id;
    row->alloc.jobid = alloc->jobid;
    row->alloc.userid = alloc->userid;
    row->alloc.priority = alloc->priority;
    row->alloc.t_submit = alloc->t_submit;
    row->alloc.t_end = alloc->t_end;
    row->alloc.R = alloc->R;
    row->alloc.digest = alloc->digest;
    row->alloc.queue = alloc->queue;
    row->alloc.pid = alloc->pid;
    row->alloc.parts_count = alloc->parts_count;
}

static bool hello_is_under_way (const struct hkc_core *core)
{
    return core->life_state == HKC_LIFE_HELLO
           || core->life_state == HKC_LIFE_ANSWERED;
}

/* A job that ends on a host ends the conflict that an active job there had
 * caused: the active job was this one, or it is gone from the host.
 */
static void conflicts_end (struct hkc_core *core,
                           struct hkc_host *host,
                           const struct hkc_alloc *ended)
{
    for (struct hkc_part *p = host->parts; p; p = p->next_on_host) {
        if (!p->conflict || p->alloc == ended)
            continue;
        p->conflict = false;
        hkc_part_dirty (core, p);
        hkc_cause_remove (core, host, HKC_CAUSE_CONFLICT, p->alloc->id);
        hkc_part_reviewed (core, p);
    }
}

/* The manager had it for active, and all of it is done: so is the conflict.
 * While a hello is under way the manager's word of it stands; it says the end
 * once more after ready.
 */
void hkc_job_end_again (struct hkc_core *core,
                        uint64_t jobid,
                        const struct hk_resource *res)
{
    const struct hk_rankset *ranks = hk_resource_ranks (res);

    if (hello_is_under_way (core) || !hkc_active_take (core, jobid))
        return;
    for (uint32_t r = hk_rankset_first (ranks); r != HK_RANK_NONE;
         r = hk_rankset_next (ranks, r)) {
        struct hkc_host *host = hkc_host_find (core, hk_resource_host (res, r));
        if (host)
            conflicts_end (core, host, NULL);
    }
}

/* The manager had not heard our answer when it said which jobs are active: the
 * job that stands against the allocation is its own.  So this life's scheduler
 * counts the whole of R; what was done before is freed to it once more.
 */
void hkc_end_repeated (struct hkc_core *core, struct hkc_alloc *alloc)
{
    alloc->end_repeated = hello_is_under_way (core);
    if (alloc->end_repeated || !hkc_active_take (core, alloc->jobid))
        return;
    if (core->life_state == HKC_LIFE_READY) {
        hk_rankset_add_set (alloc->known, hk_resource_ranks (alloc->res));
        hkc_alloc_dirty (core, alloc);
    }
    for (uint32_t i = 0; i < alloc->parts_count; i++) {
        struct hkc_part *p = &alloc->parts[i];
        if (!p->conflict)
            continue;
        p->conflict = false;
        hkc_part_dirty (core, p);
        hkc_cause_remove (core, p->host, HKC_CAUSE_CONFLICT, alloc->id);
        hkc_part_reviewed (core, p);
    }
}

int hkc_job_end (struct hkc_core *core,
                 const struct hkc_event *ev,
                 struct hkc_answer *answer,
                 struct hk_error *err)
{
    struct hkc_alloc *alloc;
    char digest[65];
    uint64_t id;

    hk_resource_digest (ev->job_end.res, digest);
    if ((id = hkc_core_find_end (core,
                                 ev->job_end.jobid,
                                 ev->job_end.t_submit,
                                 ev->job_end.t_end,
                                 digest))) {
        hk_resource_destroy (ev->job_end.res);
        hkc_end_repeated (core, hkc_alloc_find (core, id));
        answer->alloc = id;
        answer->state = "held";
        return 0;
    }
    if ((id = find_closed (core, ev, digest))) {
        hkc_job_end_again (core, ev->job_end.jobid, ev->job_end.res);
        hk_resource_destroy (ev->job_end.res);
        answer->alloc = id;
        answer->state = "done";
        return 0;
    }
    if (ev->job_end.alloc == 0 || hkc_alloc_find (core, ev->job_end.alloc))
        return hk_error_set (err, EINVAL, "allocation id is in use");
    alloc = hkc_zalloc (sizeof (*alloc));
    alloc->id = ev->job_end.alloc;
    alloc->jobid = ev->job_end.jobid;
    alloc->userid = ev->job_end.userid;
    alloc->priority = ev->job_end.priority;
    alloc->t_submit = ev->job_end.t_submit;
    alloc->t_end = ev->job_end.t_end;
    alloc->queue = hkc_strdup (ev->job_end.queue);
    alloc->res = ev->job_end.res;
    if (!(alloc->R = hk_resource_encode (alloc->res)))
        abort ();
    memcpy (alloc->digest, digest, sizeof (digest));
    alloc->last_free_ms = INT64_MIN;
    alloc->hold_begin = ev->job_end.hold_begin;
    alloc->done = hk_rankset_create ();
    alloc->known = hk_rankset_create ();
    alloc->pid = core->next_pid;
    hkc_alloc_parts (core, alloc);
    core->next_pid += alloc->parts_count;
    hkc_alloc_insert (core, alloc);
    record (core, alloc);
    for (uint32_t i = 0; i < alloc->parts_count; i++)
        hkc_part_dirty (core, &alloc->parts[i]);
    hkc_alloc_dirty (core, alloc);
    answer->alloc = alloc->id;
    answer->state = "new";
    /* DESIGN 6: an end that comes while a hello is under way is begun after
     * ready, since the manager itself counts it as allocated.
     */
    if (!alloc->hold_begin && !hello_is_under_way (core))
        hkc_alloc_begin (core, alloc);
    return 0;
}

/* A host we are not to act on: its ranks go back at once, with a row of
 * history that says so.
 */
void hkc_skip_uncovered (struct hkc_core *core, struct hkc_alloc *alloc)
{
    for (uint32_t i = 0; alloc->begun && i < alloc->parts_count; i++) {
        struct hkc_part *part = &alloc->parts[i];
        /* what was started is seen to its end */
        part->covered = part->start_sent || part->phase != HKC_WAITING
                        || hk_conf_covers (core->conf, part->host->shown);
        if (!part->covered)
            hkc_part_ended (
                core, part, HK_OUTCOME_SKIPPED, NULL, "not in hosts");
    }
}

void hkc_alloc_begin (struct hkc_core *core, struct hkc_alloc *alloc)
{
    if (alloc->begun)
        return;
    alloc->begun = true;
    hkc_alloc_dirty (core, alloc);
    /* what begins later than a life's ready, its scheduler counts whole, but
     * not what the manager itself had forgotten by then */
    if (core->life_state == HKC_LIFE_READY && !alloc->purged)
        hk_rankset_add_set (alloc->known, hk_resource_ranks (alloc->res));
    if (hkc_active_take (core, alloc->jobid))
        for (uint32_t i = 0; i < alloc->parts_count; i++)
            conflicts_end (core, alloc->parts[i].host, alloc);
    hkc_skip_uncovered (core, alloc);
    if (core->life_state == HKC_LIFE_HELLO || alloc->purged)
        hkc_hello_drain (core, alloc);
    for (uint32_t i = 0; i < alloc->parts_count; i++)
        hkc_host_start_next (core, alloc->parts[i].host);
}

int hkc_job_begin (struct hkc_core *core, uint64_t id, struct hk_error *err)
{
    struct hkc_alloc *alloc = hkc_alloc_find (core, id);

    if (!alloc)
        return hk_error_set (err, ENOENT, "no such allocation");
    /* the manager's own answer to the hello may have it, or come after: its
     * scheduler counts it */
    if (core->life_state == HKC_LIFE_ANSWERED && !alloc->purged)
        alloc->hold_begin = false; /* begun at ready */
    else
        hkc_alloc_begin (core, alloc);
    return 0;
}

static void host_remove (struct hkc_part *part)
{
    struct hkc_part **p = &part->host->parts;

    while (*p && *p != part)
        p = &(*p)->next_on_host;
    if (!*p)
        return;
    *p = part->next_on_host;
    if (!*p)
        part->host->parts_end = p;
    part->next_on_host = NULL;
}

/* Freed or closed out: nothing holds the rank any more. */
void hkc_part_done (struct hkc_core *core, struct hkc_part *part)
{
    struct hkc_alloc *alloc = part->alloc;

    if (part->phase == HKC_DONE)
        return;
    part->phase = HKC_DONE;
    alloc->done_count++;
    core->held_count--;
    hk_rankset_add_set (alloc->done, part->ranks);
    hkc_alloc_dirty (core, alloc);
    host_remove (part);
    hkc_cause_remove (core, part->host, HKC_CAUSE_HELLO, alloc->id);
    hkc_cause_remove (core, part->host, HKC_CAUSE_CONFLICT, alloc->id);
    hkc_drain_review (core, part->host);
    hkc_host_start_next (core, part->host);
}

int hkc_job_drop (struct hkc_core *core, uint64_t id, struct hk_error *err)
{
    struct hkc_alloc *alloc = hkc_alloc_find (core, id);
    struct hkc_row *row;

    if (!alloc)
        return hk_error_set (err, ENOENT, "no such allocation");
    if (alloc->begun)
        return hk_error_set (
            err, EINVAL, "a begun allocation is never dropped");
    for (uint32_t i = 0; i < alloc->parts_count; i++) {
        host_remove (&alloc->parts[i]);
        hkc_cause_remove (core, alloc->parts[i].host, HKC_CAUSE_CONFLICT, id);
        hkc_cause_remove (core, alloc->parts[i].host, HKC_CAUSE_HELLO, id);
    }
    core->held_count -= alloc->parts_count;
    row = hkc_put (core, HKC_ROW_DROPPED);
    row->closed.alloc = alloc->id;
    row->closed.jobid = alloc->jobid;
    row->closed.pid = alloc->pid;
    row->closed.parts_count = alloc->parts_count;
    row->closed.digest = alloc->digest;
    hkc_alloc_unlink (core, alloc);
    return 0;
}

void hkc_alloc_close_if_done (struct hkc_core *core, struct hkc_alloc *alloc)
{
    struct hkc_row *row;

    if (alloc->done_count < alloc->parts_count)
        return;
    row = hkc_put (core, HKC_ROW_CLOSED);
    row->closed.alloc = alloc->id;
    row->closed.jobid = alloc->jobid;
    row->closed.t_submit = alloc->t_submit;
    row->closed.t_end = alloc->t_end;
    row->closed.t_closed = core->wall;
    row->closed.pid = alloc->pid;
    row->closed.parts_count = alloc->parts_count;
    row->closed.digest = alloc->digest;
    hkc_alloc_unlink (core, alloc);
}

/* sched.c - the scheduler's lives: hello, answer, ready, gone */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include "coordinator/core/internal.h"

void hkc_free_row_destroy (struct hkc_row_free *row)
{
    free ((char *)row->life);
    free ((char *)row->ranks);
    free ((char *)row->R);
    free (row);
}

struct hkc_row_free hkc_free_borrow (struct hkc_core *core,
                                     const struct hkc_row_free *row)
{
    struct hkc_row_free copy = *row;

    copy.life = hkc_arena_dup (core, row->life);
    copy.ranks = hkc_arena_dup (core, row->ranks);
    copy.R = hkc_arena_dup (core, row->R);
    return copy;
}

static void free_gone (struct hkc_core *core, struct hkc_row_free *row)
{
    hkc_put (core, HKC_ROW_FREE_GONE)->free.n = row->n;
    zlistx_delete (core->frees, zlistx_cursor (core->frees));
    hkc_free_row_destroy (row);
}

int hkc_free_ok (struct hkc_core *core, uint64_t n)
{
    for (struct hkc_row_free *row = zlistx_first (core->frees); row;
         row = zlistx_next (core->frees)) {
        if (row->n != n)
            continue;
        free_gone (core, row);
        break;
    }
    return 0;
}

static char *active_key (uint64_t jobid, char key[24])
{
    snprintf (key, 24, "%llu", (unsigned long long)jobid);
    return key;
}

bool hkc_active_take (struct hkc_core *core, uint64_t jobid)
{
    char key[24];

    if (!zhashx_lookup (core->active, active_key (jobid, key)))
        return false;
    zhashx_delete (core->active, key);
    core->sched_dirty = true;
    return true;
}

static void active_set (struct hkc_core *core, const struct hkc_event *ev)
{
    char key[24];

    zhashx_purge (core->active);
    for (size_t i = 0; i < ev->sched.jobs_count; i++)
        zhashx_update (core->active, active_key (ev->sched.jobs[i], key), core);
}

/* A life ends: what it counted is nothing to the next. */
static void life_end (struct hkc_core *core)
{
    struct hkc_row_free *row;

    while ((row = zlistx_first (core->frees)))
        free_gone (core, row);
    for (struct hkc_alloc *a = core->first; a; a = a->next) {
        if (hk_rankset_is_empty (a->known))
            continue;
        hk_rankset_clear (a->known);
        hkc_alloc_dirty (core, a);
    }
    core->life_state = HKC_LIFE_NONE;
    core->online = false;
    core->account_spoken = false;
    core->sched_dirty = true;
}

static void begin_recorded (struct hkc_core *core)
{
    for (struct hkc_alloc *a = core->first; a; a = a->next) {
        if (!a->begun && !a->hold_begin)
            hkc_alloc_begin (core, a);
        if (a->end_repeated)
            hkc_end_repeated (core, a);
    }
}

void hkc_recover_set (struct hkc_core *core, const char *why)
{
    if (core->recover)
        return;
    hkc_strset (&core->recover, why);
    core->sched_dirty = true;
    hkc_say (core,
             LOG_ALERT,
             0,
             NULL,
             "the store went back in time: %s; nothing is started, freed or "
             "undrained until `hkctl recover`",
             why);
}

/* The life that is stored resumes: frees above last_free come again. */
static void resume (struct hkc_core *core, uint64_t last_free)
{
    struct hkc_row_free *row = zlistx_first (core->frees);
    struct hkc_action *act;

    while (row) {
        if (row->n <= last_free) {
            free_gone (core, row);
            row = zlistx_first (core->frees);
            continue;
        }
        row = zlistx_next (core->frees);
    }
    act = hkc_act (core, HKC_ACT_HELLO_END);
    act->hello_end.tag = core->hello_tag;
    act->hello_end.life = hkc_arena_dup (core, core->life);
    act->hello_end.resumed = true;
    if (!core->recover)
        for (row = zlistx_first (core->frees); row;
             row = zlistx_next (core->frees))
            hkc_act (core, HKC_ACT_FREE)->free = hkc_free_borrow (core, row);
}

static void conflict_set (struct hkc_core *core, struct hkc_part *p, bool now)
{
    if (now == p->conflict)
        return;
    p->conflict = now;
    hkc_part_dirty (core, p);
    if (now)
        hkc_cause_add (core,
                       p->host,
                       HKC_CAUSE_CONFLICT,
                       p->alloc->id,
                       "housekeeping: an active job holds a rank whose "
                       "housekeeping is not done");
    else {
        hkc_cause_remove (core, p->host, HKC_CAUSE_CONFLICT, p->alloc->id);
        hkc_part_reviewed (core, p);
    }
}

/* A rank of R that is another host now says nothing: the host's name does. */
static bool is_active (const struct hkc_part *part,
                       const struct hk_rankset *active,
                       const struct hk_hostlist *hosts)
{
    if (part->misplaced)
        return hosts && hk_hostlist_find (hosts, part->host->shown) >= 0;
    return active && hk_rankset_intersects (active, part->ranks);
}

/* An active job holds the rank: it is not ours to tell, start on or free.  A
 * rank that was due could be placed on as soon as a life did not count it: it
 * is closed out.
 */
static void conflicts_set (struct hkc_core *core,
                           const struct hk_rankset *active)
{
    struct hk_hostlist *hosts = hkc_hosts_of (core, active);
    struct hkc_alloc *next;

    for (struct hkc_alloc *a = core->first; a; a = next) {
        next = a->next;
        for (uint32_t i = 0; a->begun && i < a->parts_count; i++) {
            struct hkc_part *p = &a->parts[i];
            bool now = is_active (p, active, hosts);
            if (p->phase == HKC_DUE && now)
                hkc_part_done (core, p);
            else if (p->phase < HKC_DUE)
                conflict_set (core, p, now);
        }
        hkc_due_prune (a);
        hkc_alloc_close_if_done (core, a);
    }
    hk_hostlist_destroy (hosts);
}

/* A rank that an active job holds, or that is another host than R says. */
static bool is_not_told (const struct hkc_part *part)
{
    return part->conflict || part->misplaced;
}

static bool any_not_told (const struct hkc_alloc *alloc)
{
    for (uint32_t i = 0; i < alloc->parts_count; i++)
        if (is_not_told (&alloc->parts[i]) && alloc->parts[i].phase != HKC_DONE)
            return true;
    return false;
}

/* Can the allocation be told, and would the telling be believed?  With a part
 * done it cannot without partial-ok, and with it schedulers were seen to lose
 * ranks of such.  Of a purged job they look for what the manager no longer has.
 */
static bool needs_drain (const struct hkc_core *core,
                         const struct hkc_alloc *alloc)
{
    return core->recover || alloc->purged || alloc->done_count > 0
           || any_not_told (alloc);
}

/* A store that went back in time is not believed of a rank that was due. */
static bool is_drained_first (const struct hkc_core *core,
                              const struct hkc_part *part)
{
    return !part->conflict
           && (hkc_part_is_held (part)
               || (core->recover && part->phase == HKC_DUE));
}

void hkc_hello_drain (struct hkc_core *core, struct hkc_alloc *alloc)
{
    if (!alloc->begun || !needs_drain (core, alloc))
        return;
    for (uint32_t i = 0; i < alloc->parts_count; i++)
        if (is_drained_first (core, &alloc->parts[i]))
            hkc_cause_add (core,
                           alloc->parts[i].host,
                           HKC_CAUSE_HELLO,
                           alloc->id,
                           "housekeeping: held while the scheduler restarts");
}

int hkc_sched_hello (struct hkc_core *core,
                     const struct hkc_event *ev,
                     struct hk_error *err)
{
    const char *life = ev->sched.life;
    bool same = core->life && !strcmp (core->life, life);

    if (!life || !*life || strlen (life) > 64)
        return hk_error_set (err, EINVAL, "life: expected 1 to 64 characters");
    if (same && ev->sched.last_free > core->free_n)
        hkc_recover_set (core, "the scheduler was told of frees that it lacks");
    core->hello_tag = ev->sched.tag;
    if (!core->manager || !same) {
        core->manager = true;
        hkc_drain_anew (core);
    }
    if (same && core->life_state == HKC_LIFE_READY) {
        resume (core, ev->sched.last_free);
        return 0;
    }
    life_end (core);
    hkc_strset (&core->life, life);
    core->life_state = HKC_LIFE_HELLO;
    core->partial_ok = ev->sched.partial_ok;
    core->sched_dirty = true;
    active_set (core, ev);
    begin_recorded (core);
    conflicts_set (core, ev->sched.active);
    for (struct hkc_alloc *a = core->first; a; a = a->next)
        hkc_hello_drain (core, a);
    return 0;
}

/* Each rank still held that needs a drain has one? */
static bool drains_confirmed (const struct hkc_core *core)
{
    for (const struct hkc_alloc *a = core->first; a; a = a->next) {
        if (!a->begun || !needs_drain (core, a))
            continue;
        for (uint32_t i = 0; i < a->parts_count; i++) {
            const struct hkc_part *p = &a->parts[i];
            if (is_drained_first (core, p)
                && !hkc_host_confirmed (p->host, HKC_CAUSE_HELLO, a->id))
                return false;
        }
    }
    return true;
}

static void tell (struct hkc_core *core, struct hkc_alloc *alloc)
{
    struct hk_rankset *gone = hk_rankset_copy (alloc->done);
    struct hkc_action *act;

    for (uint32_t i = 0; i < alloc->parts_count; i++) {
        struct hkc_part *p = &alloc->parts[i];
        bool goes = p->phase == HKC_DUE && core->partial_ok && !core->recover;
        if (goes || is_not_told (p))
            hk_rankset_add_set (gone, p->ranks);
        if (goes)
            hkc_part_done (core, p);
    }
    hk_rankset_add_set (alloc->known, hk_resource_ranks (alloc->res));
    hk_rankset_remove_set (alloc->known, gone);
    hkc_alloc_dirty (core, alloc);
    if (!hk_rankset_is_empty (alloc->known)) {
        char *text = hk_rankset_encode (gone);
        act = hkc_act (core, HKC_ACT_HELLO_ENTRY);
        act->entry.tag = core->hello_tag;
        act->entry.life = hkc_arena_dup (core, core->life);
        act->entry.jobid = alloc->jobid;
        act->entry.priority = alloc->priority;
        act->entry.userid = alloc->userid;
        act->entry.t_submit = alloc->t_submit;
        act->entry.R = alloc->R;
        act->entry.free = *text ? hkc_arena_dup (core, text) : NULL;
        free (text);
    }
    hk_rankset_destroy (gone);
}

/* One commit reads the phases and is the answer. */
static void answer (struct hkc_core *core)
{
    struct hkc_alloc *a, *next;
    struct hkc_action *act;

    for (a = core->first; a; a = next) {
        bool whole = a->done_count == 0 && !any_not_told (a);
        next = a->next;
        if (!a->begun || a->purged || !(core->partial_ok || whole))
            continue;
        tell (core, a);
        hkc_due_prune (a);
        hkc_alloc_close_if_done (core, a);
    }
    act = hkc_act (core, HKC_ACT_HELLO_END);
    act->hello_end.tag = core->hello_tag;
    act->hello_end.life = hkc_arena_dup (core, core->life);
    core->life_state = HKC_LIFE_ANSWERED;
    core->sched_dirty = true;
}

void hkc_sched_tick (struct hkc_core *core)
{
    if (core->life_state == HKC_LIFE_HELLO && core->manager
        && drains_confirmed (core))
        answer (core);
}

static void due_anew (struct hkc_core *core)
{
    for (struct hkc_alloc *a = core->first; a; a = a->next)
        a->stalled = false;
}

/* A scheduler that was online before us: what its account shows beyond active
 * jobs becomes known; without one our ranks are drained and shown.
 */
static int online (struct hkc_core *core, const struct hkc_event *ev)
{
    life_end (core);
    core->manager = true;
    hkc_strset (&core->life, ev->sched.life);
    core->life_state = HKC_LIFE_READY;
    core->online = true;
    core->partial_ok = false;
    hkc_drain_anew (core);
    active_set (core, ev);
    conflicts_set (core, ev->sched.active);
    for (struct hkc_alloc *a = core->first; a; a = a->next) {
        if (!a->begun)
            continue;
        for (uint32_t i = 0; i < a->parts_count; i++)
            if (hkc_part_is_held (&a->parts[i]))
                hkc_cause_add (core,
                               a->parts[i].host,
                               HKC_CAUSE_HELLO,
                               a->id,
                               HKC_REASON_UNTOLD);
    }
    if (ev->sched.account) {
        core->account_spoken = true;
        hkc_account_compare (core, ev->sched.account);
    }
    due_anew (core);
    hkc_drain_ready (core);
    begin_recorded (core);
    core->sched_dirty = true;
    return 0;
}

int hkc_sched_ready (struct hkc_core *core,
                     const struct hkc_event *ev,
                     struct hk_error *err)
{
    const char *life = ev->sched.life;
    bool same = core->life && life && !strcmp (core->life, life);

    if (!life || !*life || strlen (life) > 64)
        return hk_error_set (err, EINVAL, "life: expected 1 to 64 characters");
    if (core->life_state != HKC_LIFE_NONE && !same)
        return hk_error_set (err, ESTALE, "not the life of the last hello");
    if (core->life_state == HKC_LIFE_HELLO)
        return hk_error_set (err, EINVAL, "hello is not answered yet");
    if (core->life_state == HKC_LIFE_READY) {
        core->manager = true;
        return 0; /* said again: the account is compared once a life */
    }
    if (core->life_state == HKC_LIFE_NONE)
        return online (core, ev);
    core->life_state = HKC_LIFE_READY;
    core->account_spoken = true; /* "unavailable" is all it will say */
    core->sched_dirty = true;
    if (ev->sched.account)
        hkc_account_compare (core, ev->sched.account);
    due_anew (core);
    hkc_drain_ready (core);
    begin_recorded (core);
    return 0;
}

int hkc_sched_gone (struct hkc_core *core)
{
    if (!core->manager)
        return 0;
    core->manager = false;
    /* a hello under way is abandoned; a standalone life outlasts its link */
    if (core->life_ends_with_link || core->life_state != HKC_LIFE_READY)
        life_end (core);
    begin_recorded (core);
    return 0;
}

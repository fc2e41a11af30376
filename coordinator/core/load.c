/* load.c - the core as the store has it, at start */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "coordinator/core/internal.h"

static int load_alloc (struct hkc_core *core,
                       const struct hkc_row_alloc *row,
                       struct hk_error *err)
{
    struct hkc_alloc *alloc;

    if (row->alloc == 0 || hkc_alloc_find (core, row->alloc))
        return hk_error_set (err,
                             EINVAL,
                             "allocation %llu is there twice",
                             (unsigned long long)row->alloc);
    alloc = hkc_zalloc (sizeof (*alloc));
    if (!(alloc->res = hk_resource_decode (row->R, err))) {
        free (alloc);
        return -1;
    }
    alloc->id = row->alloc;
    alloc->jobid = row->jobid;
    alloc->userid = row->userid;
    alloc->priority = row->priority;
    alloc->t_submit = row->t_submit;
    alloc->t_end = row->t_end;
    alloc->queue = hkc_strdup (row->queue);
    alloc->R = hkc_strdup (row->R);
    snprintf (alloc->digest, sizeof (alloc->digest), "%s", row->digest);
    alloc->last_free_ms = INT64_MIN;
    alloc->done = hk_rankset_create ();
    alloc->known = hk_rankset_create ();
    alloc->pid = row->pid;
    hkc_alloc_parts (core, alloc);
    hkc_alloc_insert (core, alloc);
    if (core->next_pid < alloc->pid + alloc->parts_count)
        core->next_pid = alloc->pid + alloc->parts_count;
    if (alloc->parts_count != row->parts_count)
        return hk_error_set (err,
                             EINVAL,
                             "allocation %llu has %u hosts, not "
                             "%u as stored",
                             (unsigned long long)row->alloc,
                             alloc->parts_count,
                             row->parts_count);
    return 0;
}

static int load_state (struct hkc_core *core,
                       const struct hkc_row_state *row,
                       struct hk_error *err)
{
    struct hkc_alloc *alloc = hkc_alloc_find (core, row->alloc);
    struct hk_rankset *done, *known = NULL;

    if (!alloc)
        return hk_error_set (err,
                             EINVAL,
                             "state of allocation %llu that is "
                             "not there",
                             (unsigned long long)row->alloc);
    if (!(done = hk_rankset_decode (row->done, err))
        || !(known = hk_rankset_decode (row->known, err))) {
        hk_rankset_destroy (done);
        return -1;
    }
    hk_rankset_destroy (alloc->done);
    hk_rankset_destroy (alloc->known);
    alloc->done = done;
    alloc->known = known;
    alloc->begun = row->begun;
    /* the host settles it, where a host says what begins */
    alloc->hold_begin = !row->begun && core->life_ends_with_link;
    alloc->t_first_end = row->t_first_end;
    for (uint32_t i = 0; i < alloc->parts_count; i++) {
        struct hkc_part *p = &alloc->parts[i];
        if (!hk_rankset_contains (done, p->ranks))
            continue;
        p->phase = HKC_DONE;
        alloc->done_count++;
        alloc->ended_count++;
        core->held_count--;
    }
    return 0;
}

static int load_part (struct hkc_core *core,
                      const struct hkc_row_part *row,
                      struct hk_error *err)
{
    struct hkc_alloc *alloc = hkc_alloc_find (core, row->alloc);
    struct hkc_part *p;

    if (!alloc || row->pid < alloc->pid
        || row->pid - alloc->pid >= alloc->parts_count
        || row->phase < HKC_WAITING || row->phase > HKC_DUE)
        return hk_error_set (
            err, EINVAL, "part %llu cannot be", (unsigned long long)row->pid);
    p = &alloc->parts[row->pid - alloc->pid];
    if (p->phase == HKC_DONE)
        return 0;
    p->phase = row->phase;
    p->attempt = row->attempt;
    snprintf (p->boot_id, sizeof (p->boot_id), "%s", row->boot_id);
    snprintf (p->invocation, sizeof (p->invocation), "%s", row->invocation);
    p->start_sent = row->start_sent;
    p->outcome = row->outcome;
    p->stop_signal = row->stop_signal;
    p->conflict = row->conflict;
    p->t_since = row->t_since;
    p->t_start = row->t_start;
    hkc_strset (&p->script, row->script);
    hkc_strset (&p->reason, row->reason);
    if (p->phase >= HKC_ENDED)
        alloc->ended_count++;
    if (p->phase == HKC_DUE)
        hkc_due_add (core, p);
    return 0;
}

static int load_host (struct hkc_core *core, const struct hkc_row_host *row)
{
    struct hkc_host *host = hkc_host_need (core, row->host);

    snprintf (host->boot_id, sizeof (host->boot_id), "%s", row->boot_id);
    host->t_seen = row->t_seen;
    host->drain = row->drain;
    hkc_drain_load (host, row->reasons);
    return 0;
}

static int load_cause (struct hkc_core *core, const struct hkc_row_cause *row)
{
    struct hkc_host *host = hkc_host_need (core, row->host);
    struct hkc_cause *cause = hkc_zalloc (sizeof (*cause));

    cause->kind = row->kind;
    cause->about = row->about;
    cause->reason = hkc_strdup (row->reason);
    cause->confirmed = row->confirmed;
    cause->t = row->t;
    cause->next = host->causes;
    host->causes = cause;
    if (cause->kind == HKC_CAUSE_LOST)
        host->lost = true;
    if (cause->kind == HKC_CAUSE_UNKNOWN_RUN) {
        struct hkc_stray *s = hkc_zalloc (sizeof (*s));
        s->alloc = cause->about;
        s->next = host->strays;
        host->strays = s;
    }
    return 0;
}

static int load_free (struct hkc_core *core, const struct hkc_row_free *row)
{
    struct hkc_row_free *copy = hkc_zalloc (sizeof (*copy));

    *copy = *row;
    copy->life = hkc_strdup (row->life);
    copy->ranks = hkc_strdup (row->ranks);
    copy->R = hkc_strdup (row->R);
    zlistx_add_end (core->frees, copy);
    return 0;
}

static int load_sched (struct hkc_core *core, const struct hkc_row_sched *row)
{
    hkc_strset (&core->life, *row->life ? row->life : NULL);
    core->life_state = row->state;
    core->partial_ok = row->partial_ok;
    core->account_spoken = row->account_spoken;
    core->free_n = row->free_n;
    for (const char *p = row->active; *p;) {
        char key[24];
        size_t n = strcspn (p, " ");
        snprintf (key, sizeof (key), "%.*s", (int)n, p);
        zhashx_update (core->active, key, core);
        p += n + (p[n] == ' ');
    }
    hkc_strset (&core->recover, *row->recover ? row->recover : NULL);
    return 0;
}

int hkc_core_load (struct hkc_core *core,
                   const struct hkc_row *row,
                   struct hk_error *err)
{
    switch (row->kind) {
    case HKC_ROW_ALLOC:
        return load_alloc (core, &row->alloc, err);
    case HKC_ROW_STATE:
        return load_state (core, &row->state, err);
    case HKC_ROW_PART:
        return load_part (core, &row->part, err);
    case HKC_ROW_HOST:
        return load_host (core, &row->host);
    case HKC_ROW_CAUSE:
        return load_cause (core, &row->cause);
    case HKC_ROW_FREE:
        return load_free (core, &row->free);
    case HKC_ROW_SCHED:
        return load_sched (core, &row->sched);
    default:
        return hk_error_set (
            err, EINVAL, "row kind %d is not loaded", row->kind);
    }
}

static void unlink_done (struct hkc_host *host)
{
    struct hkc_part **p = &host->parts;

    while (*p) {
        if ((*p)->phase == HKC_DONE)
            *p = (*p)->next_on_host;
        else
            p = &(*p)->next_on_host;
    }
    host->parts_end = p;
}

/* Ready to hear: silence counts from here.  A hello that was under way when the
 * last process ended had a session, and the session is gone.
 */
void hkc_core_loaded (struct hkc_core *core, int64_t now_ms)
{
    core->now_ms = core->ready_ms = now_ms;
    core->scan_ms = now_ms;
    for (struct hkc_host *h = zhashx_first (core->hosts); h;
         h = zhashx_next (core->hosts)) {
        unlink_done (h);
        if (h->causes || h->drain != HKC_UNDRAINED)
            hkc_drain_review (core, h);
    }
    for (struct hkc_alloc *a = core->first; a; a = a->next) {
        a->first_end_ms = now_ms;
        a->last_free_ms = a->done_count ? now_ms : INT64_MIN;
    }
    if (core->life_state == HKC_LIFE_HELLO
        || core->life_state == HKC_LIFE_ANSWERED
        || (core->life_ends_with_link && core->life_state)) {
        core->manager = true; /* so that it is seen to go */
        hkc_sched_gone (core);
    }
    for (struct hkc_alloc *a = core->first; a; a = a->next)
        if (hkc_release_met (core, a))
            hkc_release_sweep (core, a);
    hkc_core_covers_anew (core);
}

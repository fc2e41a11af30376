/* report.c - what nodes say of runs, and what follows from it */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include "proto/escape.h"
#include "proto/jobid.h"
#include "coordinator/core/internal.h"

static void ack (struct hkc_core *core,
                 const struct hkc_host *host,
                 const struct hk_run *run)
{
    struct hkc_action *act = hkc_act (core, HKC_ACT_ACK);

    act->ack.peer = host->peer;
    act->ack.ack.alloc = run->alloc;
    act->ack.ack.attempt = run->attempt;
    act->ack.ack.invocation = hkc_arena_dup (core, run->invocation);
}

static void stop_send (struct hkc_core *core, const struct hkc_part *part)
{
    struct hkc_action *act = hkc_act (core, HKC_ACT_STOP);

    act->stop.peer = part->host->peer;
    act->stop.stop = (struct hk_stop){
        .alloc = part->alloc->id,
        .attempt = part->attempt,
        .signal = part->stop_signal,
        .reason = hkc_arena_dup (core, part->reason),
    };
}

/* The part of an allocation on a host, also when it is done: parts are in
 * order of their lowest rank.
 */
static struct hkc_part *part_on (struct hkc_alloc *alloc,
                                 const struct hkc_host *host)
{
    const struct hk_rankset *ranks;
    uint32_t lo = 0, hi = alloc->parts_count, rank;

    if (!(ranks = hk_resource_host_ranks (alloc->res, host->shown))
        && !(ranks = hk_resource_host_ranks (alloc->res, host->name)))
        return NULL;
    rank = hk_rankset_first (ranks);
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        uint32_t first = hk_rankset_first (alloc->parts[mid].ranks);
        if (first == rank)
            return &alloc->parts[mid];
        if (first < rank)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

/* A run that we do not know is neither stopped nor acknowledged by itself: the
 * host is shown and drained while the node lists it.
 */
static void stray_add (struct hkc_core *core,
                       struct hkc_host *host,
                       const struct hk_run *run)
{
    struct hkc_stray *s;
    char id[HK_JOBID_TEXT_BYTES];

    for (s = host->strays; s; s = s->next)
        if (s->alloc == run->alloc)
            break;
    if (!s) {
        s = hkc_zalloc (sizeof (*s));
        s->alloc = run->alloc;
        s->jobid = run->jobid;
        s->next = host->strays;
        host->strays = s;
        hk_jobid_encode (run->jobid, HK_JOBID_F58PLAIN, id);
        hkc_say (core,
                 LOG_ERR,
                 run->jobid,
                 host->shown,
                 "a run is there that this coordinator did not start");
        hkc_cause_add (core,
                       host,
                       HKC_CAUSE_UNKNOWN_RUN,
                       run->alloc,
                       hkc_arena_fmt (core,
                                      "housekeeping@%s unknown: a run that "
                                      "this coordinator does not know",
                                      id));
    }
    s->seen = true;
    s->ended = run->phase == HK_RUN_ENDED;
}

/* hkd vouches for success; a result that says otherwise is not believed. */
static enum hk_outcome believed (const struct hk_run *run)
{
    if (run->outcome == HK_OUTCOME_NONE)
        return HK_OUTCOME_UNKNOWN;
    if (run->outcome != HK_OUTCOME_SUCCESS)
        return run->outcome;
    for (size_t i = 0; i < run->scripts_count; i++)
        if (run->scripts[i].code != 0 || run->scripts[i].signal != 0)
            return HK_OUTCOME_UNKNOWN;
    return HK_OUTCOME_SUCCESS;
}

/* The node has it, and does not begin it yet.  Not stored: each state of the
 * node tells it.
 */
static void part_blocked (struct hkc_core *core,
                          struct hkc_part *part,
                          const char *reason)
{
    char *why = hkc_arena_dup (core, reason);
    bool first = !part->blocked;

    hk_one_line (why); /* it goes to logs and terminals */
    hkc_strset (&part->blocked, why);
    if (!first)
        return;
    hkc_say (core,
             LOG_WARNING,
             part->alloc->jobid,
             part->host->shown,
             "%s",
             part->blocked);
    if (part->stop_signal)
        stop_send (core, part);
}

static void part_progress (struct hkc_core *core,
                           struct hkc_part *part,
                           const struct hk_run *run)
{
    enum hkc_phase phase = run->phase == HK_RUN_STOPPING ? HKC_STOPPING
                                                         : HKC_RUNNING;

    if (part->phase == HKC_WAITING && run->phase == HK_RUN_STARTING
        && *run->reason) {
        part_blocked (core, part, run->reason);
        return;
    }
    hkc_strset (&part->blocked, NULL);
    if (part->phase < phase) {
        if (part->phase == HKC_WAITING)
            part->t_start = run->t_start > 0 ? run->t_start : core->wall;
        part->phase = phase;
        part->t_since = phase == HKC_RUNNING ? part->t_start : core->wall;
        hkc_part_dirty (core, part);
        if (part->stop_signal && phase == HKC_RUNNING)
            stop_send (core, part);
    }
    if (strcmp (part->invocation, run->invocation)) {
        snprintf (
            part->invocation, sizeof (part->invocation), "%s", run->invocation);
        hkc_part_dirty (core, part);
    }
    if (strcmp (part->script ? part->script : "", run->script)) {
        hkc_strset (&part->script, run->script);
        hkc_part_dirty (core, part);
    }
}

static void run_of_part (struct hkc_core *core,
                         struct hkc_part *part,
                         const struct hk_run *run)
{
    bool settled = part->phase >= HKC_ENDED || run->attempt < part->attempt;

    if (settled) { /* its outcome is in the history: the first one counts */
        if (run->phase == HK_RUN_ENDED)
            ack (core, part->host, run);
        else
            stray_add (core, part->host, run);
        return;
    }
    if (part->boot_id[0] && strcmp (part->boot_id, run->boot_id))
        return;
    part->seen = true;
    part->start_sent = true;
    if (!part->boot_id[0])
        snprintf (part->boot_id, sizeof (part->boot_id), "%s", run->boot_id);
    if (run->phase != HK_RUN_ENDED) {
        part_progress (core, part, run);
        return;
    }
    snprintf (
        part->invocation, sizeof (part->invocation), "%s", run->invocation);
    hkc_part_ended (core,
                    part,
                    believed (run),
                    run,
                    run->reason && *run->reason ? run->reason : NULL);
    ack (core, part->host, run);
}

static void run_take (struct hkc_core *core,
                      struct hkc_host *host,
                      const struct hk_run *run,
                      bool closed)
{
    struct hkc_alloc *alloc = NULL;
    struct hkc_part *part = NULL;
    bool ours = !strcmp (run->instance, core->instance);

    if (strcmp (run->boot_id, host->session_boot))
        return;
    if (ours && (alloc = hkc_alloc_find (core, run->alloc)))
        part = part_on (alloc, host);
    if (part && run->attempt <= part->attempt)
        run_of_part (core, part, run);
    else if (ours && closed && run->phase == HK_RUN_ENDED)
        ack (core, host, run);
    else
        stray_add (core, host, run);
}

int hkc_node_run (struct hkc_core *core, const struct hkc_event *ev)
{
    struct hkc_host *host = hkc_host_of_peer (core, ev->node_run.peer);

    if (!host)
        return hkc_node_unknown (core, ev->node_run.peer);
    hkc_node_heard (core, host);
    if (host->conflict || !host->heard)
        return 0; /* it is in the state that follows */
    run_take (core, host, ev->node_run.run, ev->node_run.closed);
    return 0;
}

/* Another boot: what was started in the old one is gone with it. */
static void boot_take (struct hkc_core *core,
                       struct hkc_host *host,
                       const char *boot_id)
{
    if (!strcmp (host->boot_id, boot_id))
        return;
    if (host->boot_id[0])
        hkc_say (
            core, LOG_NOTICE, 0, host->shown, "rebooted, boot %.8s", boot_id);
    snprintf (host->boot_id, sizeof (host->boot_id), "%s", boot_id);
    hkc_host_dirty (core, host);
    for (struct hkc_part *p = host->parts; p; p = p->next_on_host)
        if (p->start_sent && p->phase < HKC_ENDED
            && strcmp (p->boot_id, boot_id))
            hkc_part_ended (
                core, p, HK_OUTCOME_REBOOTED, NULL, "the node was booted anew");
}

static void strays_review (struct hkc_core *core, struct hkc_host *host)
{
    for (struct hkc_stray **s = &host->strays; *s;) {
        if ((*s)->seen) {
            s = &(*s)->next;
            continue;
        }
        struct hkc_stray *gone = *s;
        *s = gone->next;
        hkc_cause_remove (core, host, HKC_CAUSE_UNKNOWN_RUN, gone->alloc);
        free (gone);
    }
}

/* The whole state was heard: what should exist and does not? */
static void absence (struct hkc_core *core, struct hkc_host *host)
{
    for (struct hkc_part *p = host->parts; p; p = p->next_on_host) {
        if (p->phase >= HKC_ENDED || !p->start_sent)
            continue;
        if (p->seen) {
            if (p->stop_signal && p->phase != HKC_STOPPING)
                stop_send (core, p);
            continue;
        }
        hkc_strset (&p->blocked, NULL);
        if (p->phase == HKC_WAITING) {
            if (!core->recover && !p->conflict)
                hkc_part_start (core, p);
        } else
            hkc_part_ended (core,
                            p,
                            HK_OUTCOME_VANISHED,
                            NULL,
                            "the node no longer has the run");
    }
}

static void state_begin (struct hkc_host *host)
{
    for (struct hkc_part *p = host->parts; p; p = p->next_on_host)
        p->seen = false;
    for (struct hkc_stray *s = host->strays; s; s = s->next)
        s->seen = false;
}

int hkc_node_state (struct hkc_core *core,
                    const struct hkc_event *ev,
                    struct hk_error *err)
{
    struct hkc_host *host = hkc_host_of_peer (core, ev->node_state.peer);

    if (!host)
        return hkc_node_unknown (core, ev->node_state.peer);
    if (strcmp (ev->node_state.boot_id, host->session_boot))
        return hk_error_set (err, EINVAL, "boot id is not the HELLO's");
    hkc_node_heard (core, host);
    if (host->conflict)
        return 0;
    if (ev->node_state.first)
        state_begin (host);
    for (size_t i = 0; i < ev->node_state.runs_count; i++)
        run_take (core,
                  host,
                  &ev->node_state.runs[i],
                  ev->node_state.closed && ev->node_state.closed[i]);
    if (!ev->node_state.last)
        return 0;
    hkc_strset (&host->foreign, ev->node_state.foreign);
    boot_take (core, host, ev->node_state.boot_id);
    strays_review (core, host);
    if (core->recover) { /* nothing is concluded from a store that went back */
        host->heard = true;
        return 0;
    }
    absence (core, host);
    host->heard = true;
    hkc_host_start_next (core, host);
    return 0;
}

static const char *kill_one (struct hkc_core *core,
                             struct hkc_part *part,
                             const struct hkc_event *ev)
{
    char *why = hkc_arena_fmt (core,
                               "killed by uid %u%s%s",
                               ev->kill.userid,
                               *ev->kill.reason ? ": " : "",
                               ev->kill.reason);

    hk_one_line (why);
    if (part->phase >= HKC_ENDED)
        return "has ended";
    if (!part->start_sent) {
        hkc_part_ended (core,
                        part,
                        HK_OUTCOME_KILLED,
                        NULL,
                        hkc_arena_fmt (core, "%s before it began", why));
        return "ended before it began";
    }
    part->stop_signal = ev->kill.signal;
    hkc_strset (&part->reason, why);
    hkc_part_dirty (core, part);
    if (!part->host->peer || !part->host->heard)
        return "no contact; is stopped when the node returns";
    stop_send (core, part);
    return "signal sent";
}

static bool is_meant (const struct hkc_part *part, const struct hkc_event *ev)
{
    return (!ev->kill.hosts
            || hk_hostlist_find (ev->kill.hosts, part->host->shown) >= 0)
           && (!ev->kill.ranks
               || hk_rankset_intersects (ev->kill.ranks, part->ranks));
}

int hkc_kill (struct hkc_core *core,
              const struct hkc_event *ev,
              struct hkc_answer *answer)
{
    struct hkc_result *results = NULL;
    size_t size = 0, n = 0;
    struct hkc_row *row;

    for (struct hkc_alloc *a = core->first; a; a = a->next) {
        if (!a->begun || (ev->kill.jobid && a->jobid != ev->kill.jobid))
            continue;
        for (uint32_t i = 0; i < a->parts_count; i++) {
            struct hkc_part *p = &a->parts[i];
            if (p->phase >= HKC_ENDED || !is_meant (p, ev))
                continue;
            results = hkc_grow (results, &size, n + 1, sizeof (*results));
            results[n].host = hkc_arena_dup (core, p->host->shown);
            results[n++].text = kill_one (core, p, ev);
        }
    }
    answer->results_count = n;
    answer->results = n ? memcpy (hkc_arena (core, n * sizeof (*results)),
                                  results,
                                  n * sizeof (*results))
                        : NULL;
    free (results);
    row = hkc_put (core, HKC_ROW_AUDIT);
    row->audit.t = core->wall;
    row->audit.userid = ev->kill.userid;
    row->audit.what = "kill";
    row->audit.about = hkc_arena_fmt (core,
                                      "job %llu signal %d, %zu runs",
                                      (unsigned long long)ev->kill.jobid,
                                      ev->kill.signal,
                                      n);
    row->audit.reason = hkc_arena_dup (core, ev->kill.reason);
    return 0;
}

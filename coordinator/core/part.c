/* part.c - the way of one host of an allocation: start, end, due */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include "proto/duration.h"
#include "proto/escape.h"
#include "proto/jobid.h"
#include "coordinator/core/internal.h"

bool hkc_part_is_held (const struct hkc_part *part)
{
    return part->phase < HKC_DUE;
}

static const struct hk_policy *policy_of (const struct hkc_core *core,
                                          const struct hkc_part *part)
{
    return hk_conf_policy (core->conf, part->host->shown);
}

/* START, after the boot it is for is stored (in the same commit).  A run that
 * exists returns its state, so it may be sent again while it is waiting.
 */
void hkc_part_start (struct hkc_core *core, struct hkc_part *part)
{
    struct hkc_action *act = hkc_act (core, HKC_ACT_START);

    if (!part->start_sent || strcmp (part->boot_id, part->host->boot_id)) {
        part->start_sent = true;
        memcpy (part->boot_id, part->host->boot_id, sizeof (part->boot_id));
        hkc_part_dirty (core, part);
    }
    act->start.peer = part->host->peer;
    act->start.start = (struct hk_start){
        .alloc = part->alloc->id,
        .attempt = part->attempt,
        .boot_id = hkc_arena_dup (core, part->boot_id),
        .jobid = part->alloc->jobid,
        .userid = part->alloc->userid,
        .ranks = hkc_arena_dup (core, part->alloc->ranks_text),
        .rank = hk_rankset_first (part->ranks),
        .queue = hkc_arena_dup (core, part->alloc->queue),
    };
}

static bool may_start (const struct hkc_core *core, const struct hkc_part *part)
{
    return part->alloc->begun && part->phase == HKC_WAITING && part->covered
           && !part->conflict && !core->recover;
}

static bool strays_run (const struct hkc_host *host)
{
    for (const struct hkc_stray *s = host->strays; s; s = s->next)
        if (!s->ended)
            return true;
    return false;
}

/* Start what can be: with `serial` the oldest run of the host goes first. */
void hkc_host_start_next (struct hkc_core *core, struct hkc_host *host)
{
    const struct hk_policy *policy = hk_conf_policy (core->conf, host->shown);
    bool serial = policy->per_node == HK_PER_NODE_SERIAL;

    if (!host->peer || !host->heard || host->conflict)
        return;
    if (serial && strays_run (host))
        return;
    for (struct hkc_part *p = host->parts; p; p = p->next_on_host) {
        if (p->phase == HKC_RUNNING || p->phase == HKC_STOPPING
            || (p->phase == HKC_WAITING && p->start_sent)) {
            if (serial)
                return;
            continue;
        }
        if (!may_start (core, p))
            continue;
        hkc_part_start (core, p);
        if (serial)
            return;
    }
}

static void history (struct hkc_core *core,
                     const struct hkc_part *part,
                     enum hk_outcome outcome,
                     const struct hk_run *run,
                     const char *reason)
{
    struct hkc_row *row;
    struct hk_script_result *copy = NULL;

    if (run && run->scripts_count) {
        copy = hkc_arena (core, run->scripts_count * sizeof (*copy));
        for (size_t i = 0; i < run->scripts_count; i++) {
            copy[i] = run->scripts[i];
            copy[i].name = hkc_arena_dup (core, run->scripts[i].name);
        }
    }
    row = hkc_put (core, HKC_ROW_HISTORY);
    row->history.pid = part->pid;
    row->history.attempt = part->attempt;
    row->history.alloc = part->alloc->id;
    row->history.jobid = part->alloc->jobid;
    row->history.userid = part->alloc->userid;
    row->history.host = hkc_arena_dup (core, part->host->shown);
    row->history.outcome = outcome;
    row->history.t_start = run && run->t_start > 0 ? run->t_start
                                                   : part->t_start;
    row->history.t_end = run && run->t_end > 0 ? run->t_end : core->wall;
    row->history.invocation = hkc_arena_dup (core, part->invocation);
    row->history.reason = hkc_arena_dup (core, reason);
    row->history.scripts = copy;
    row->history.scripts_count = copy ? run->scripts_count : 0;
}

static const struct hk_script_result *failed_script (const struct hk_run *run)
{
    const struct hk_script_result *worst = NULL;

    for (size_t i = 0; run && i < run->scripts_count; i++) {
        const struct hk_script_result *s = &run->scripts[i];
        if (s->signal || s->code > 0) {
            if (!worst || s->signal
                || (!worst->signal && s->code > worst->code))
                worst = s;
        }
    }
    return worst;
}

/* Upstream's words, so that what sites match on goes on working:
 * "housekeeping@JOBID exit-code: exited 1", then ours: script and time.
 */
static char *drain_reason (struct hkc_core *core,
                           const struct hkc_part *part,
                           enum hk_outcome outcome,
                           const struct hk_run *run,
                           const char *reason)
{
    const struct hk_script_result *bad = failed_script (run);
    char id[HK_JOBID_TEXT_BYTES], took[HK_DURATION_TEXT_BYTES] = "";
    char what[640] = "", tail[HK_SCRIPT_NAME_BYTES + 64] = "";
    const char *script = bad                  ? bad->name
                         : run && run->script ? run->script
                         : part->script       ? part->script
                                              : "";
    double t0 = bad ? bad->t_start : run ? run->t_start : part->t_start;
    double t1 = bad                     ? bad->t_end
                : run && run->t_end > 0 ? run->t_end
                                        : core->wall;

    hk_jobid_encode (part->alloc->jobid, HK_JOBID_F58PLAIN, id);
    if (t0 > 0 && t1 >= t0)
        hk_duration_pretty ((int64_t)((t1 - t0) * 1000), took);
    if (outcome == HK_OUTCOME_EXIT_CODE && bad)
        snprintf (what, sizeof (what), ": exited %d", bad->code);
    else if (outcome == HK_OUTCOME_SIGNAL && bad)
        snprintf (what,
                  sizeof (what),
                  ": killed %s",
                  sigabbrev_np (bad->signal) ? sigabbrev_np (bad->signal)
                                             : "?");
    else if (reason && *reason)
        snprintf (what, sizeof (what), ": %.600s", reason);
    if (*script && *took)
        snprintf (tail, sizeof (tail), " (%s after %s)", script, took);
    else if (*script)
        snprintf (tail, sizeof (tail), " (%s)", script);
    else if (*took)
        snprintf (tail, sizeof (tail), " (after %s)", took);
    return hkc_arena_fmt (core,
                          "housekeeping@%s %s%s%s",
                          id,
                          hk_outcome_name (outcome),
                          what,
                          tail);
}

static void next_attempt (struct hkc_core *core, struct hkc_part *part)
{
    part->attempt++;
    part->phase = HKC_WAITING;
    part->start_sent = false;
    part->outcome = HK_OUTCOME_NONE;
    part->boot_id[0] = part->invocation[0] = '\0';
    part->t_start = 0;
    part->t_since = core->wall;
    hkc_strset (&part->script, NULL);
    hkc_strset (&part->reason, "rebooted during the last attempt");
    hkc_part_dirty (core, part);
}

static void count_ended (struct hkc_core *core, struct hkc_part *part)
{
    struct hkc_alloc *alloc = part->alloc;

    if (alloc->ended_count++ == 0) {
        alloc->t_first_end = core->wall;
        alloc->first_end_ms = core->now_ms;
        hkc_alloc_dirty (core, alloc);
    }
}

/* The one place where an attempt gets its outcome: history, then another
 * attempt, or the way to due.
 */
void hkc_part_ended (struct hkc_core *core,
                     struct hkc_part *part,
                     enum hk_outcome outcome,
                     const struct hk_run *run,
                     const char *reason)
{
    const struct hk_policy *policy = policy_of (core, part);
    char *shown = hkc_arena_dup (core, reason);
    struct hkc_host *host = part->host;

    if (hk_outcome_is_failure (outcome))
        shown = drain_reason (core, part, outcome, run, reason);
    hk_one_line (shown); /* it goes to logs, drain reasons and terminals */
    history (core, part, outcome, run, shown);
    part->stop_signal = 0;
    hkc_strset (&part->blocked, NULL);
    if (outcome == HK_OUTCOME_REBOOTED
        && policy->on_reboot == HK_ON_REBOOT_RERUN) {
        hkc_say (core,
                 LOG_WARNING,
                 part->alloc->jobid,
                 host->shown,
                 "rebooted during housekeeping, attempt %d follows",
                 part->attempt + 1);
        next_attempt (core, part);
        return;
    }
    part->phase = HKC_ENDED;
    part->outcome = outcome;
    part->t_since = core->wall;
    hkc_strset (&part->reason, shown);
    if (run) {
        const struct hk_script_result *bad = failed_script (run);
        hkc_strset (&part->script, bad ? bad->name : NULL);
    }
    hkc_part_dirty (core, part);
    count_ended (core, part);
    if (hk_outcome_is_failure (outcome)) {
        hkc_say (core, LOG_ERR, part->alloc->jobid, host->shown, "%s", shown);
        if (policy->on_failure == HK_ON_FAILURE_DRAIN)
            hkc_cause_add (
                core, host, HKC_CAUSE_FAILURE, part->alloc->id, shown);
    }
    if (hkc_release_met (core, part->alloc))
        hkc_part_reviewed (core, part);
    hkc_host_start_next (core, host);
}

static bool outcome_allows (const struct hkc_core *core,
                            const struct hkc_part *part)
{
    if (!hk_outcome_is_failure (part->outcome))
        return true;
    switch (policy_of (core, part)->on_failure) {
    case HK_ON_FAILURE_RELEASE:
        return true;
    case HK_ON_FAILURE_HOLD:
        return false;
    case HK_ON_FAILURE_DRAIN:
        break;
    }
    return hkc_host_confirmed (part->host, HKC_CAUSE_FAILURE, part->alloc->id);
}

/* Something that kept an ended part from being due has changed. */
void hkc_part_reviewed (struct hkc_core *core, struct hkc_part *part)
{
    if (part->phase == HKC_WAITING) {
        hkc_host_start_next (core, part->host);
        return;
    }
    if (part->phase != HKC_ENDED || part->conflict || core->recover
        || !part->alloc->released)
        return;
    if (!outcome_allows (core, part)) {
        /* drained before its confirmation was asked for: on-failure changed */
        if (policy_of (core, part)->on_failure == HK_ON_FAILURE_DRAIN
            && !hkc_cause_find (part->host, HKC_CAUSE_FAILURE, part->alloc->id))
            hkc_cause_add (core,
                           part->host,
                           HKC_CAUSE_FAILURE,
                           part->alloc->id,
                           part->reason);
        return;
    }
    part->phase = HKC_DUE;
    hkc_part_dirty (core, part);
    hkc_due_add (core, part);
}

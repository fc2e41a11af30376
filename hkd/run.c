/* run.c - the node's state machine: runs from START to ACK */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include "hkd/run_impl.h"

void hkd_report (struct hkd_runs *runs, struct hkd_run *run)
{
    if (run->pub.phase == HK_RUN_ENDED) {
        run->repeat_wait_ms = run->repeat_wait_ms ? run->repeat_wait_ms * 2
                                                  : HKD_REPEAT_FIRST_MS;
        if (run->repeat_wait_ms > HKD_REPEAT_MOST_MS)
            run->repeat_wait_ms = HKD_REPEAT_MOST_MS;
        run->repeat_ms = runs->now_ms + run->repeat_wait_ms;
    }
    if (runs->up)
        hkd_act (runs, HKD_ACT_REPORT, run);
}

static int on_start (struct hkd_runs *runs,
                     const struct hkd_event *ev,
                     struct hk_error *err)
{
    const struct hk_start *start = &ev->start.start;
    struct hkd_run *run;

    if (strcmp (start->boot_id, runs->boot_id))
        return hk_error_set (err, EINVAL, "start is for another boot");
    if ((run = hkd_run_find (runs, start->alloc, start->attempt))) {
        hkd_report (runs, run);
        return 0;
    }
    run = hkd_run_add (runs, start->alloc, start->attempt);
    hkd_text_set (&run->pub.instance, ev->start.instance);
    run->pub.jobid = start->jobid;
    run->pub.t_start = runs->wall;
    run->start.alloc = start->alloc;
    run->start.attempt = start->attempt;
    run->start.jobid = start->jobid;
    run->start.userid = start->userid;
    run->start.rank = start->rank;
    hkd_text_set (&run->start.ranks, start->ranks);
    hkd_text_set (&run->start.queue, start->queue);
    hkd_act (runs, HKD_ACT_PREPARE, run);
    return 0;
}

static void on_prepared (struct hkd_runs *runs,
                         struct hkd_run *run,
                         const struct hkd_event *ev)
{
    struct hk_script_result *list;
    size_t n = ev->prepared.count;

    if (run->pub.phase != HK_RUN_STARTING)
        return;
    hkd_run_unblocked (runs, run);
    if (!(list = calloc (n + 1, sizeof (*list))))
        abort ();
    for (size_t i = 0; i < n; i++) {
        list[i].name = ev->prepared.names[i];
        list[i].code = -1;
    }
    hkd_scripts_set (run, list, n);
    free (list);
    hkd_act (runs, HKD_ACT_FILE, run);
    hkd_act (runs, HKD_ACT_UNIT_START, run);
}

static void on_started (struct hkd_runs *runs,
                        struct hkd_run *run,
                        const struct hkd_event *ev)
{
    run->has_unit = true;
    hkd_text_set (&run->pub.invocation, ev->started.invocation);
    hkd_text_set (&run->pub.unit, ev->started.unit);
    if (run->pub.phase == HK_RUN_STARTING) {
        run->pub.phase = HK_RUN_RUNNING;
        run->pub.t_start = runs->wall;
        run->start_ms = runs->now_ms;
    }
    hkd_act (runs, HKD_ACT_FILE, run);
    if (run->pub.phase == HK_RUN_STOPPING)
        hkd_run_stop_again (runs, run);
    hkd_report (runs, run);
}

static void on_start_failed (struct hkd_runs *runs,
                             struct hkd_run *run,
                             const struct hkd_event *ev)
{
    if (run->pub.phase == HK_RUN_ENDED)
        return;
    if (ev->failed.no_scripts && run->no_scripts == HK_NO_SCRIPTS_SUCCESS)
        hkd_run_ended (runs, run, HK_OUTCOME_SUCCESS, ev->failed.reason);
    else
        hkd_run_ended (runs, run, HK_OUTCOME_START_FAILED, ev->failed.reason);
}

/* The script that is under way, or "". */
static const char *script_now (const struct hkd_run *run)
{
    for (size_t i = run->pub.scripts_count; i > 0; i--) {
        const struct hk_script_result *s = &run->pub.scripts[i - 1];
        if (s->t_start > 0 && s->t_end <= 0)
            return s->name;
    }
    return "";
}

static size_t scripts_ended (const struct hkd_run *run)
{
    size_t ended = 0;

    for (size_t i = 0; i < run->pub.scripts_count; i++)
        ended += run->pub.scripts[i].t_end > 0;
    return ended;
}

static void on_scripts (struct hkd_runs *runs,
                        struct hkd_run *run,
                        const struct hkd_event *ev)
{
    size_t before = scripts_ended (run);
    const char *now;

    if (run->pub.phase == HK_RUN_ENDED)
        return;
    hkd_scripts_set (run, ev->scripts.results, ev->scripts.count);
    now = script_now (run);
    if (scripts_ended (run) == before && !strcmp (now, run->pub.script))
        return;
    hkd_text_set (&run->pub.script, now);
    hkd_act (runs, HKD_ACT_FILE, run);
    if (*now)
        hkd_report (runs, run);
}

static void on_gone (struct hkd_runs *runs, struct hkd_run *run)
{
    run->has_unit = false;
    if (run->pub.phase == HK_RUN_ENDED)
        return;
    run->finished = true;
    if (run->pub.phase == HK_RUN_STOPPING)
        hkd_run_cgroup (runs, run, NULL, 0); /* no unit, no cgroup of it */
    else
        hkd_run_ended (
            runs, run, HK_OUTCOME_VANISHED, "systemd no longer has the unit");
}

static void on_file (struct hkd_runs *runs, const struct hkd_event *ev)
{
    const struct hk_run *in = ev->file.run;
    struct hkd_run *run;
    int64_t age;

    if (hkd_run_find (runs, in->alloc, in->attempt)
        || strcmp (in->boot_id, runs->boot_id))
        return;
    run = hkd_run_add (runs, in->alloc, in->attempt);
    run->pub.jobid = in->jobid;
    run->pub.phase = in->phase;
    run->pub.outcome = in->outcome;
    run->pub.t_start = in->t_start;
    run->pub.t_end = in->t_end;
    hkd_text_set (&run->pub.instance, in->instance);
    hkd_text_set (&run->pub.invocation, in->invocation);
    hkd_text_set (&run->pub.unit, in->unit);
    hkd_text_set (&run->pub.reason, in->reason);
    hkd_scripts_set (run, in->scripts, in->scripts_count);
    if (ev->file.limits)
        run->limits = *ev->file.limits;
    /* the clock may have been set meanwhile: at most the whole limit is over */
    age = in->t_start > 0 ? (int64_t)((runs->wall - in->t_start) * 1000) : 0;
    if (age < 0)
        age = 0;
    if (run->limits.timeout_ms != INT64_MAX && age > run->limits.timeout_ms)
        age = run->limits.timeout_ms;
    run->start_ms = runs->now_ms - age;
    run->stage_ms = runs->now_ms;
    if (run->pub.phase == HK_RUN_STOPPING)
        run->stage = HKD_STAGE_TERM;
}

static int on_unit (struct hkd_runs *runs,
                    struct hkd_run *run,
                    const struct hkd_event *ev,
                    struct hk_error *err)
{
    const struct hk_run *unit = ev->run;

    if (run->pub.invocation[0]
        && strcmp (run->pub.invocation, unit->invocation))
        return hk_error_set (err, ENOENT, "another unit of that name");
    run->has_unit = true;
    hkd_text_set (&run->pub.invocation, unit->invocation);
    hkd_text_set (&run->pub.unit, unit->unit);
    hkd_scripts_set (run, unit->scripts, unit->scripts_count);
    if (run->pub.phase == HK_RUN_STARTING)
        run->pub.phase = HK_RUN_RUNNING;
    if (run->pub.phase != HK_RUN_ENDED) {
        hkd_text_set (&run->pub.script, script_now (run));
        hkd_say (runs, LOG_INFO, run, "%s is adopted", unit->unit);
    }
    hkd_act (runs, HKD_ACT_FILE, run);
    if (run->pub.phase == HK_RUN_STOPPING)
        hkd_run_stop_again (runs, run);
    return 0;
}

static void on_adopted (struct hkd_runs *runs)
{
    for (struct hkd_run *run = runs->first; run; run = run->next)
        if (!run->has_unit && run->pub.phase != HK_RUN_ENDED)
            on_gone (runs, run);
}

static void on_stop (struct hkd_runs *runs,
                     struct hkd_run *run,
                     const struct hkd_event *ev)
{
    struct hkd_action *act;
    const char *text = "has ended";

    if (run->blocked) {
        hkd_run_blocked_end (runs, run, HK_OUTCOME_KILLED, ev->stop.reason);
        text = "ended before it began";
    } else if (run->pub.phase != HK_RUN_ENDED) {
        hkd_run_stop (
            runs, run, HK_OUTCOME_KILLED, ev->stop.signal, ev->stop.reason);
        text = "signal sent";
    }
    act = hkd_act (runs, HKD_ACT_STOPPED, run);
    act->text = text;
}

static void on_ack (struct hkd_runs *runs,
                    struct hkd_run *run,
                    const struct hkd_event *ev)
{
    struct hkd_run **p = &runs->first;

    if (run->pub.phase != HK_RUN_ENDED
        || strcmp (run->pub.invocation, ev->ack.invocation))
        return;
    hkd_act (runs, HKD_ACT_FORGET, run);
    while (*p != run)
        p = &(*p)->next;
    *p = run->next;
    run->next = runs->forgotten;
    runs->forgotten = run;
}

static int of_run (struct hkd_runs *runs,
                   const struct hkd_event *ev,
                   struct hk_error *err)
{
    struct hkd_run *run = hkd_run_find (runs, ev->alloc, ev->attempt);

    if (!run)
        return hk_error_set (err, ENOENT, "no such run");
    switch (ev->kind) {
    case HKD_EV_UNIT:
        return on_unit (runs, run, ev, err);
    case HKD_EV_STOP:
        on_stop (runs, run, ev);
        break;
    case HKD_EV_ACK:
        on_ack (runs, run, ev);
        break;
    case HKD_EV_BLOCKED:
        hkd_run_blocked (runs, run, ev->blocked.reason);
        break;
    case HKD_EV_PREPARED:
        on_prepared (runs, run, ev);
        break;
    case HKD_EV_STARTED:
        on_started (runs, run, ev);
        break;
    case HKD_EV_START_FAILED:
        on_start_failed (runs, run, ev);
        break;
    case HKD_EV_SCRIPTS:
        on_scripts (runs, run, ev);
        break;
    case HKD_EV_FINISHED:
        run->finished = true;
        hkd_run_look (runs, run);
        break;
    case HKD_EV_CGROUP:
        run->looking = false;
        hkd_run_cgroup (runs, run, ev->cgroup.leftovers, ev->cgroup.count);
        break;
    case HKD_EV_GONE:
        on_gone (runs, run);
        break;
    default:
        return hk_error_set (err, EINVAL, "unknown event %d", ev->kind);
    }
    return 0;
}

int hkd_runs_step (struct hkd_runs *runs,
                   const struct hkd_event *ev,
                   struct hk_error *err)
{
    hkd_runs_settle (runs);
    runs->now_ms = ev->now_ms;
    runs->wall = ev->wall;
    switch (ev->kind) {
    case HKD_EV_TICK:
        for (struct hkd_run *run = runs->first; run; run = run->next)
            hkd_run_tick (runs, run);
        return 0;
    case HKD_EV_FILE:
        on_file (runs, ev);
        return 0;
    case HKD_EV_ADOPTED:
        on_adopted (runs);
        return 0;
    case HKD_EV_UP:
        runs->up = true;
        hkd_act (runs, HKD_ACT_STATE, NULL);
        return 0;
    case HKD_EV_DOWN:
        runs->up = false;
        return 0;
    case HKD_EV_CONF:
        runs->conf = ev->conf;
        return 0;
    case HKD_EV_START:
        return on_start (runs, ev, err);
    default:
        return of_run (runs, ev, err);
    }
}

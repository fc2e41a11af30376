/* run_end.c - how a run is ended, and what its outcome is */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include "proto/duration.h"
#include "hkd/run_impl.h"

static void leftovers_set (struct hkd_run *run,
                           const char *const *leftovers,
                           size_t count)
{
    const char **list = NULL;

    for (size_t i = 0; i < run->pub.leftovers_count; i++)
        free ((char *)run->pub.leftovers[i]);
    free ((void *)run->pub.leftovers);
    if (count > HK_LEFTOVERS_LIMIT)
        count = HK_LEFTOVERS_LIMIT;
    if (count && !(list = calloc (count, sizeof (*list))))
        abort ();
    for (size_t i = 0; i < count; i++)
        hkd_text_set (&list[i], leftovers[i]);
    run->pub.leftovers = list;
    run->pub.leftovers_count = count;
}

const char *hkd_run_subject (const struct hkd_run *run,
                             char name[HKD_SUBJECT_BYTES])
{
    char jobid[HK_JOBID_TEXT_BYTES];

    if (run->pub.unit[0])
        return run->pub.unit;
    snprintf (name,
              HKD_SUBJECT_BYTES,
              "run of %s",
              hk_jobid_encode (run->pub.jobid, HK_JOBID_F58PLAIN, jobid));
    return name;
}

static bool add (int64_t at, int64_t wait, int64_t *when)
{
    if (wait == HK_DURATION_INF || at > INT64_MAX - wait)
        return false;
    *when = at + wait;
    return true;
}

/* Success needs a recorded exit 0 of every script that was in the unit. */
static enum hk_outcome result_of (const struct hkd_run *run)
{
    bool missing = false, failed = false;

    for (size_t i = 0; i < run->pub.scripts_count; i++) {
        const struct hk_script_result *s = &run->pub.scripts[i];
        if (s->t_end <= 0)
            missing = true;
        else if (s->signal)
            return HK_OUTCOME_SIGNAL;
        else if (s->code != 0)
            failed = true;
    }
    if (failed)
        return HK_OUTCOME_EXIT_CODE;
    if (missing || run->pub.scripts_count == 0)
        return HK_OUTCOME_UNKNOWN;
    return HK_OUTCOME_SUCCESS;
}

/* Which script made it a failure, for the log; "" if none did. */
static void culprit (const struct hkd_run *run, char *text, size_t size)
{
    text[0] = '\0';
    for (size_t i = 0; i < run->pub.scripts_count; i++) {
        const struct hk_script_result *s = &run->pub.scripts[i];
        const char *abbrev = sigabbrev_np (s->signal);
        if (s->t_end > 0 && s->signal)
            snprintf (text,
                      size,
                      "%s killed by %s",
                      s->name,
                      abbrev ? abbrev : "a signal");
        else if (s->t_end > 0 && s->code != 0)
            snprintf (text, size, "%s exited %d", s->name, s->code);
        if (text[0])
            return;
    }
}

static void say_ended (struct hkd_runs *runs, const struct hkd_run *run)
{
    bool good = run->pub.outcome == HK_OUTCOME_SUCCESS;
    char name[HKD_SUBJECT_BYTES], why[HK_REASON_BYTES];

    if (run->pub.reason[0])
        snprintf (why, sizeof (why), "%s", run->pub.reason);
    else
        culprit (run, why, sizeof (why));
    hkd_say (runs,
             good ? LOG_INFO : LOG_ERR,
             run,
             "%s ended: %s%s%s",
             hkd_run_subject (run, name),
             hk_outcome_name (run->pub.outcome),
             why[0] ? ": " : "",
             why);
}

void hkd_run_ended (struct hkd_runs *runs,
                    struct hkd_run *run,
                    enum hk_outcome outcome,
                    const char *reason)
{
    if (run->pub.phase == HK_RUN_ENDED)
        return;
    run->pub.phase = HK_RUN_ENDED;
    run->blocked = false;
    run->pub.outcome = outcome;
    run->pub.t_end = runs->wall;
    run->stage = HKD_STAGE_NONE;
    if (reason && *reason)
        hkd_text_set (&run->pub.reason, reason);
    if (outcome == HK_OUTCOME_UNKNOWN && !run->pub.reason[0])
        hkd_text_set (&run->pub.reason, "results of scripts are missing");
    if (outcome == HK_OUTCOME_SUCCESS || outcome == HK_OUTCOME_EXIT_CODE
        || outcome == HK_OUTCOME_SIGNAL)
        hkd_text_set (&run->pub.script, "");
    say_ended (runs, run);
    hkd_act (runs, HKD_ACT_FILE, run);
    hkd_report (runs, run);
}

void hkd_run_look (struct hkd_runs *runs, struct hkd_run *run)
{
    if (run->looking || run->pub.phase == HK_RUN_ENDED)
        return;
    run->looking = true;
    hkd_act (runs, HKD_ACT_CGROUP, run);
}

/* Also where no unit is known yet: one that is being started must not go on. */
static void send_signal (struct hkd_runs *runs, struct hkd_run *run, int signum)
{
    char name[HKD_SUBJECT_BYTES];

    hkd_say (runs,
             LOG_WARNING,
             run,
             "%s: sending %s",
             hkd_run_subject (run, name),
             sigabbrev_np (signum) ? sigabbrev_np (signum) : "a signal");
    hkd_act (runs, HKD_ACT_SIGNAL, run)->signal = signum;
    run->look_wait_ms = HKD_LOOK_FIRST_MS;
    run->look_ms = runs->now_ms + run->look_wait_ms;
}

/* The outcome that is meant is kept in the file from here on, so that a
 * restart of hkd does not take the end for one of the scripts' own.
 */
void hkd_run_stop (struct hkd_runs *runs,
                   struct hkd_run *run,
                   enum hk_outcome outcome,
                   int signum,
                   const char *reason)
{
    bool again = run->pub.phase == HK_RUN_STOPPING;

    if (!again) {
        run->pub.phase = HK_RUN_STOPPING;
        run->stage_ms = runs->now_ms;
    }
    if (run->pub.outcome == HK_OUTCOME_NONE) {
        run->pub.outcome = outcome;
        hkd_text_set (&run->pub.reason, reason);
    }
    run->stage = signum == SIGKILL ? HKD_STAGE_KILL : HKD_STAGE_TERM;
    if (run->stage == HKD_STAGE_KILL)
        run->stage_ms = runs->now_ms;
    hkd_act (runs, HKD_ACT_FILE, run);
    send_signal (runs, run, signum);
    hkd_report (runs, run);
}

void hkd_run_stop_again (struct hkd_runs *runs, struct hkd_run *run)
{
    send_signal (runs, run, run->stage == HKD_STAGE_KILL ? SIGKILL : SIGTERM);
}

/* The scripts are over or being ended: is anything left of them? */
void hkd_run_cgroup (struct hkd_runs *runs,
                     struct hkd_run *run,
                     const char *const *leftovers,
                     size_t count)
{
    if (run->pub.phase == HK_RUN_ENDED)
        return;
    if (count == 0 && run->finished) {
        enum hk_outcome meant = run->pub.outcome;
        leftovers_set (run, NULL, 0);
        hkd_run_ended (runs, run, meant ? meant : result_of (run), NULL);
        return;
    }
    if (count)
        leftovers_set (run, leftovers, count);
    if (run->pub.phase == HK_RUN_STOPPING) {
        run->look_wait_ms *= 2;
        if (run->look_wait_ms > HKD_LOOK_MOST_MS)
            run->look_wait_ms = HKD_LOOK_MOST_MS;
        run->look_ms = runs->now_ms + run->look_wait_ms;
        return;
    }
    if (count == 0)
        return;
    /* every script has a result: what is left changes none of it */
    hkd_say (runs,
             LOG_WARNING,
             run,
             "%s left %zu processes, the first is %s",
             run->pub.unit,
             count,
             leftovers[0]);
    hkd_run_stop (runs, run, result_of (run), SIGTERM, "");
}

static void give_up (struct hkd_runs *runs, struct hkd_run *run)
{
    char reason[HK_REASON_BYTES];
    enum hk_outcome meant = run->pub.outcome;

    snprintf (reason,
              sizeof (reason),
              "%s%s%zu %s left after KILL%s%s",
              run->pub.reason,
              run->pub.reason[0] ? "; " : "",
              run->pub.leftovers_count,
              run->pub.leftovers_count == 1 ? "process is" : "processes are",
              run->pub.leftovers_count ? ": " : "",
              run->pub.leftovers_count ? run->pub.leftovers[0] : "");
    if (meant != HK_OUTCOME_KILLED)
        meant = HK_OUTCOME_TIMEOUT;
    hkd_run_ended (runs, run, meant, reason);
}

int64_t hkd_run_limit (const struct hkd_run *run)
{
    int64_t when = INT64_MAX;

    add (run->start_ms, run->limits.timeout_ms, &when);
    return when;
}

static void tick_running (struct hkd_runs *runs, struct hkd_run *run)
{
    char limit[HK_DURATION_TEXT_BYTES], reason[HK_REASON_BYTES];

    if (runs->now_ms < hkd_run_limit (run))
        return;
    snprintf (reason,
              sizeof (reason),
              "%s exceeded %s",
              run->pub.script[0] ? run->pub.script : "the run",
              hk_duration_encode (run->limits.timeout_ms, limit));
    hkd_say (runs, LOG_ERR, run, "%s", reason);
    hkd_run_stop (runs, run, HK_OUTCOME_TIMEOUT, SIGTERM, reason);
}

static void tick_stopping (struct hkd_runs *runs, struct hkd_run *run)
{
    int64_t when;

    if (run->stage == HKD_STAGE_TERM
        && add (run->stage_ms, run->limits.kill_grace_ms, &when)
        && runs->now_ms >= when) {
        run->stage = HKD_STAGE_KILL;
        run->stage_ms = runs->now_ms;
        send_signal (runs, run, SIGKILL);
    } else if (run->stage == HKD_STAGE_KILL
               && add (run->stage_ms, run->limits.give_up_ms, &when)
               && runs->now_ms >= when) {
        give_up (runs, run);
        return;
    }
    if (runs->now_ms >= run->look_ms)
        hkd_run_look (runs, run);
}

void hkd_run_tick (struct hkd_runs *runs, struct hkd_run *run)
{
    switch (run->pub.phase) {
    case HK_RUN_STARTING:
    case HK_RUN_RUNNING:
        if (run->blocked)
            hkd_run_blocked_tick (runs, run);
        else
            tick_running (runs, run);
        break;
    case HK_RUN_STOPPING:
        tick_stopping (runs, run);
        break;
    case HK_RUN_ENDED:
        if (runs->now_ms >= run->repeat_ms)
            hkd_report (runs, run);
        break;
    }
}

int64_t hkd_run_deadline (const struct hkd_run *run)
{
    int64_t when = INT64_MAX, at;

    switch (run->pub.phase) {
    case HK_RUN_STARTING:
    case HK_RUN_RUNNING:
        when = hkd_run_limit (run);
        if (run->blocked && run->look_ms < when)
            when = run->look_ms;
        break;
    case HK_RUN_STOPPING:
        add (run->stage_ms,
             run->stage == HKD_STAGE_TERM ? run->limits.kill_grace_ms
                                          : run->limits.give_up_ms,
             &when);
        at = run->looking ? INT64_MAX : run->look_ms;
        if (at < when)
            when = at;
        break;
    case HK_RUN_ENDED:
        when = run->repeat_ms;
        break;
    }
    return when;
}

/* run_node.c - a node for its state machine: events in, actions as words */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/run_node.h"

struct run_node rn;

static const char *word (const struct hkd_action *act)
{
    switch (act->kind) {
    case HKD_ACT_PREPARE:
        return "prepare";
    case HKD_ACT_UNIT_START:
        return "start";
    case HKD_ACT_FILE:
        rn.written = *act->limits;
        return "file";
    case HKD_ACT_SIGNAL:
        rn.signum = act->signal;
        return "signal";
    case HKD_ACT_CGROUP:
        return "cgroup";
    case HKD_ACT_FORGET:
        return "forget";
    case HKD_ACT_REPORT:
        return "report";
    case HKD_ACT_STATE:
        return "state";
    case HKD_ACT_STOPPED:
        return "stopped";
    case HKD_ACT_LOG:
        return "";
    }
    return "?";
}

int run_feed (struct hkd_event *ev)
{
    const struct hkd_action *list;
    size_t count;
    int rc;

    ev->now_ms = rn.now_ms;
    ev->wall = 1e9 + (double)rn.now_ms / 1000;
    if (!ev->alloc)
        ev->alloc = ALLOC;
    if (!ev->attempt)
        ev->attempt = 1;
    rc = hkd_runs_step (rn.runs, ev, NULL);
    rn.acts[0] = '\0';
    rn.signum = 0;
    list = hkd_runs_actions (rn.runs, &count);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        const char *name = word (&list[i]);
        size_t n = strlen (rn.acts);
        if (*name)
            snprintf (
                rn.acts + n, sizeof (rn.acts) - n, "%s%s", n ? " " : "", name);
        if (list[i].run) {
            rn.last = *list[i].run;
            snprintf (rn.reason, sizeof (rn.reason), "%s", rn.last.reason);
            snprintf (rn.script, sizeof (rn.script), "%s", rn.last.script);
        }
    }
    return rc;
}

int run_simple (enum hkd_event_kind kind)
{
    return run_feed (&(struct hkd_event){ .kind = kind });
}

int run_start (void)
{
    return run_feed (&(struct hkd_event){ .kind = HKD_EV_START,
                                          .start = { .start = { .alloc = ALLOC,
                                                                .attempt = 1,
                                                                .boot_id = BOOT,
                                                                .jobid = 1234,
                                                                .userid = 1000,
                                                                .ranks = "0-3",
                                                                .queue = "" },
                                                     .instance = INSTANCE } });
}

int run_blocked (const char *by)
{
    return run_feed (
        &(struct hkd_event){ .kind = HKD_EV_BLOCKED, .blocked = { by } });
}

int run_prepared (size_t n)
{
    static const char *const names[] = { "10-a", "20-b", "30-c" };

    return run_feed (&(struct hkd_event){ .kind = HKD_EV_PREPARED,
                                          .prepared = { names, n } });
}

int run_started (void)
{
    return run_feed (&(struct hkd_event){ .kind = HKD_EV_STARTED,
                                          .started = { INVOCATION, UNIT } });
}

static size_t parse (const char *text, struct hk_script_result *list)
{
    static const char *const names[] = { "10-a", "20-b", "30-c" };
    size_t n = 0;

    for (; *text && n < 3; n++) {
        struct hk_script_result *r = &list[n];
        *r = (struct hk_script_result){ .name = names[n], .code = -1 };
        if (*text != '-')
            r->t_start = 10;
        if (*text == 'k')
            r->signal = atoi (text + 1);
        else if (*text != 'r' && *text != '-')
            r->code = atoi (text);
        if (*text != 'r' && *text != '-')
            r->t_end = 11;
        text += strcspn (text, " ");
        text += strspn (text, " ");
    }
    return n;
}

int run_results (const char *text)
{
    struct hk_script_result list[3];
    size_t n = parse (text, list);

    return run_feed (
        &(struct hkd_event){ .kind = HKD_EV_SCRIPTS, .scripts = { list, n } });
}

int run_cgroup (size_t n)
{
    static const char *const left[] = { "7 sleep -", "8 sh -" };

    return run_feed (
        &(struct hkd_event){ .kind = HKD_EV_CGROUP, .cgroup = { left, n } });
}

int run_stop (int sig)
{
    return run_feed (
        &(struct hkd_event){ .kind = HKD_EV_STOP,
                             .stop = { .alloc = ALLOC,
                                       .attempt = 1,
                                       .signal = sig,
                                       .reason = "killed by root" } });
}

int run_ack (const char *invocation)
{
    return run_feed (&(struct hkd_event){
        .kind = HKD_EV_ACK,
        .ack = { .alloc = ALLOC, .attempt = 1, .invocation = invocation } });
}

int run_failed (const char *why, bool no_scripts)
{
    return run_feed (&(struct hkd_event){ .kind = HKD_EV_START_FAILED,
                                          .failed = { why, no_scripts } });
}

int run_file (enum hk_run_phase phase,
              enum hk_outcome outcome,
              const char *invocation,
              const char *text)
{
    struct hk_script_result list[3];
    struct hk_run run = {
        .alloc = ALLOC,
        .attempt = 1,
        .jobid = 1234,
        .instance = INSTANCE,
        .boot_id = BOOT,
        .invocation = invocation,
        .unit = UNIT,
        .phase = phase,
        .outcome = outcome,
        .script = "",
        .reason = "",
        .t_start = 1e9,
        .scripts = list,
        .scripts_count = parse (text, list),
    };

    return run_feed (&(struct hkd_event){ .kind = HKD_EV_FILE,
                                          .file = { &run, rn.limits } });
}

int run_unit (const char *invocation, const char *text)
{
    struct hk_script_result list[3];
    struct hk_run run = { .invocation = invocation,
                          .unit = UNIT,
                          .scripts = list,
                          .scripts_count = parse (text, list) };

    return run_feed (&(struct hkd_event){ .kind = HKD_EV_UNIT, .run = &run });
}

void run_wait_for_deadline (void)
{
    int64_t when = hkd_runs_deadline (rn.runs);

    assert_true (when != INT64_MAX);
    if (when > rn.now_ms)
        rn.now_ms = when;
    run_simple (HKD_EV_TICK);
}

void run_wait_for (const char *what, int64_t limit)
{
    int steps = 0;

    do {
        run_wait_for_deadline ();
        assert_true (rn.now_ms <= limit && ++steps < 1000);
        if (!strcmp (rn.acts, "cgroup"))
            run_cgroup (1); /* something is left */
    } while (!strstr (rn.acts, what));
}

void run_running (const char *text)
{
    run_start ();
    run_prepared (2);
    run_started ();
    run_results (text);
}

int run_set_up (void **state)
{
    struct hk_error err;

    (void)state;
    rn.now_ms = 1000;
    rn.limits = NULL;
    if (!(rn.conf = hk_conf_load ("/nonexistent/hk.conf", 0, &err)))
        return -1;
    rn.runs = hkd_runs_create (rn.conf, "node0", BOOT);
    return run_simple (HKD_EV_UP);
}

int run_tear_down (void **state)
{
    (void)state;
    hkd_runs_destroy (rn.runs);
    hk_conf_destroy (rn.conf);
    return 0;
}

/* node.c - nodes: the real state machine of hkd over a model of systemd */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/sim/sim.h"

enum { BEAT_MS = 1000, STATE_MS = 3000, SAY_AGAIN_MS = 500 };

static void step (struct sim_node *n, struct hkd_event *ev);

static struct hkd_event event (enum hkd_event_kind kind,
                               uint64_t alloc,
                               int attempt)
{
    return (struct hkd_event){
        .kind = kind,
        .now_ms = w.now_ms,
        .wall = w.wall,
        .alloc = alloc,
        .attempt = attempt,
    };
}

static void send_c (struct sim_node *n, struct sim_msg *msg)
{
    msg->node = n->i;
    msg->session = n->session;
    msg->seq = ++n->out_seq;
    snprintf (msg->boot, sizeof (msg->boot), "%s", n->boot);
    sim_put (&n->to_c, msg);
}

static void send_run (struct sim_node *n, const struct hk_run *run)
{
    struct sim_msg *msg;

    if (!n->welcome)
        return;
    msg = sim_msg (SIM_RUN);
    msg->runs = sim_run_copy (run);
    msg->runs_count = 1;
    send_c (n, msg);
}

struct all {
    struct sim_msg *msg;
};

static int add_run (void *arg, const struct hk_run *run)
{
    struct all *all = arg;
    struct hk_run *copy = sim_run_copy (run);

    all->msg->runs = realloc (all->msg->runs,
                              (all->msg->runs_count + 1) * sizeof (*copy));
    all->msg->runs[all->msg->runs_count++] = *copy;
    free (copy);
    return 0;
}

static void send_state (struct sim_node *n)
{
    struct all all = { sim_msg (SIM_STATE) };

    all.msg->first = all.msg->last = true;
    hkd_runs_each (n->runs, add_run, &all);
    send_c (n, all.msg);
    n->state_ms = w.now_ms + STATE_MS;
}

/* What an action brings about, as an event that follows it. */
static bool act_one (struct sim_node *n,
                     const struct hkd_action *act,
                     struct hkd_event *next)
{
    static const char *const left[] = { "42 sleep do_wait" };
    const struct hk_run *run = act->run;
    struct sim_unit *u;

    if (!run) {
        if (act->kind == HKD_ACT_STATE)
            send_state (n);
        return false;
    }
    u = sim_unit_find (n, run->alloc, run->attempt);
    *next = event (0, run->alloc, run->attempt);
    switch (act->kind) {
    case HKD_ACT_PREPARE:
        if (sim_unit_in_way (n, run->alloc, run->attempt)) {
            next->kind = HKD_EV_BLOCKED;
            next->blocked.reason = "blocked: 1 process is left";
            w.blocked++;
            return true;
        }
        next->kind = HKD_EV_PREPARED;
        next->prepared.names = sim_script_names;
        next->prepared.count = SIM_SCRIPTS;
        if (w.faults && sim_chance (1)) {
            next->kind = HKD_EV_START_FAILED;
            next->failed.reason = "a script is not root's";
            next->failed.no_scripts = false;
        }
        return true;
    case HKD_ACT_UNIT_START:
        u = sim_unit_create (n, run->alloc, run->attempt);
        next->kind = HKD_EV_STARTED;
        next->started.invocation = u->invocation;
        next->started.unit = "flux-housekeeping-f1.service";
        return true;
    case HKD_ACT_FILE:
        sim_file_write (n, run);
        return false;
    case HKD_ACT_SIGNAL:
        if (u)
            sim_unit_signal (u, act->signal);
        return false;
    case HKD_ACT_CGROUP:
        next->kind = HKD_EV_CGROUP;
        next->cgroup.leftovers = left;
        next->cgroup.count = u && sim_unit_left (u);
        return true;
    case HKD_ACT_FORGET:
        if (u && sim_unit_left (u))
            n->left_ms = w.now_ms + sim_below (60000);
        if (u)
            sim_unit_remove (n, u);
        sim_file_remove (n, run);
        return false;
    case HKD_ACT_REPORT:
        send_run (n, run);
        return false;
    case HKD_ACT_STATE:
        send_state (n);
        return false;
    default:
        return false;
    }
}

/* hkd may end between any two actions. */
static void step (struct sim_node *n, struct hkd_event *ev)
{
    struct hkd_event later[32];
    size_t count, n_later = 0;
    const struct hkd_action *acts;

    if (hkd_runs_step (n->runs, ev, NULL) < 0)
        return;
    acts = hkd_runs_actions (n->runs, &count);
    for (size_t i = 0; i < count; i++) {
        if (w.faults && sim_below (1000) < 2) {
            sim_hkd_kill (n);
            return;
        }
        if (n_later < 32 && act_one (n, &acts[i], &later[n_later]))
            n_later++;
    }
    for (size_t i = 0; i < n_later && n->runs; i++) {
        if (w.faults && sim_below (1000) < 2) {
            sim_hkd_kill (n);
            return;
        }
        step (n, &later[i]);
    }
}

void sim_hkd_kill (struct sim_node *n)
{
    if (!n->runs)
        return;
    w.crashes++;
    sim_say ("%s: hkd is killed", n->name);
    hkd_runs_destroy (n->runs);
    n->runs = NULL;
    n->session = 0;
    n->welcome = false;
}

void sim_hkd_start (struct sim_node *n)
{
    struct hkd_event ev;

    if (n->runs || !n->on)
        return;
    sim_say ("%s: hkd starts", n->name);
    n->runs = hkd_runs_create (w.conf, n->name, n->boot);
    n->hello_ms = w.now_ms;
    for (struct sim_file *f = n->files; f && n->runs; f = f->next) {
        struct hk_run *copy = sim_run_copy (&f->run);
        ev = event (HKD_EV_FILE, f->run.alloc, f->run.attempt);
        ev.file.run = copy;
        ev.file.limits = NULL;
        hkd_runs_step (n->runs, &ev, NULL);
        sim_run_fini (copy);
        free (copy);
    }
    for (struct sim_unit *u = n->units; u && n->runs; u = u->next) {
        struct hk_run run = {
            .alloc = u->alloc,
            .attempt = u->attempt,
            .instance = "",
            .boot_id = n->boot,
            .invocation = u->invocation,
            .unit = "flux-housekeeping-f1.service",
            .script = "",
            .scripts = u->results,
            .scripts_count = SIM_SCRIPTS,
        };
        ev = event (HKD_EV_UNIT, u->alloc, u->attempt);
        ev.run = &run;
        step (n, &ev);
    }
    ev = event (HKD_EV_ADOPTED, 0, 0);
    if (n->runs)
        step (n, &ev);
}

static void unit_tick (struct sim_node *n, struct sim_unit *u)
{
    bool changed = sim_unit_run (n, u);

    if (!n->runs || (!changed && u->at < SIM_SCRIPTS))
        return;
    struct hkd_event ev = event (HKD_EV_SCRIPTS, u->alloc, u->attempt);
    uint64_t alloc = u->alloc;
    int attempt = u->attempt;
    bool over = u->at >= SIM_SCRIPTS;
    ev.scripts.results = u->results;
    ev.scripts.count = SIM_SCRIPTS;
    step (n, &ev);
    if (over && n->runs) {
        ev = event (HKD_EV_FINISHED, alloc, attempt);
        step (n, &ev);
    }
}
void sim_unit_lost (struct sim_node *n)
{
    struct hkd_event ev;

    if (!n->units)
        return;
    ev = event (HKD_EV_GONE, n->units->alloc, n->units->attempt);
    sim_say ("%s: a unit is reset by hand", n->name);
    sim_unit_remove (n, n->units);
    if (n->runs)
        step (n, &ev);
}

static void link_tick (struct sim_node *n)
{
    struct hkd_event ev;

    if (n->session && w.now_ms - n->heard_ms > 10 * BEAT_MS
        && !n->welcome) { /* nothing was heard: another try */
        n->session = 0;
    }
    if (n->session == 0 && w.now_ms >= n->hello_ms) {
        n->session = sim_id ();
        n->out_seq = n->in_seq = 0;
        n->welcome = false;
        n->heard_ms = w.now_ms;
        sim_queue_clear (&n->to_n);
        ev = event (HKD_EV_DOWN, 0, 0);
        step (n, &ev);
        if (n->runs)
            send_c (n, sim_msg (SIM_HELLO));
        return;
    }
    if (n->welcome && w.now_ms >= n->alive_ms) {
        send_c (n, sim_msg (SIM_ALIVE));
        n->alive_ms = w.now_ms + BEAT_MS;
    }
    if (n->welcome && w.now_ms >= n->state_ms)
        send_state (n);
}

void sim_node_tick (struct sim_node *n)
{
    struct hkd_event ev;

    if (!n->on)
        return;
    for (struct sim_unit *u = n->units, *next; u; u = next) {
        next = u->next;
        unit_tick (n, u);
    }
    if (!n->runs)
        return;
    ev = event (HKD_EV_TICK, 0, 0);
    if (hkd_runs_deadline (n->runs) <= w.now_ms)
        step (n, &ev);
    if (n->runs)
        link_tick (n);
}

void sim_node_deliver (struct sim_node *n, struct sim_msg *msg)
{
    struct hkd_event ev;

    if (!n->runs || msg->session != n->session || msg->seq <= n->in_seq)
        return; /* another session's, or late: the link drops it */
    n->in_seq = msg->seq;
    n->heard_ms = w.now_ms;
    switch (msg->kind) {
    case SIM_WELCOME:
        n->welcome = true;
        n->alive_ms = w.now_ms + BEAT_MS;
        ev = event (HKD_EV_UP, 0, 0);
        step (n, &ev);
        break;
    case SIM_REFUSED:
    case SIM_REHELLO:
        n->session = 0;
        n->welcome = false;
        n->hello_ms = w.now_ms + SAY_AGAIN_MS;
        break;
    case SIM_START:
        ev = event (HKD_EV_START, msg->alloc, msg->attempt);
        ev.start.instance = "11111111111111111111111111111111";
        ev.start.start = (struct hk_start){
            .alloc = msg->alloc,
            .attempt = msg->attempt,
            .boot_id = msg->boot,
            .jobid = msg->jobid,
            .ranks = "0",
            .queue = "",
        };
        step (n, &ev);
        break;
    case SIM_STOP:
        ev = event (HKD_EV_STOP, msg->alloc, msg->attempt);
        ev.stop =
            (struct hk_stop){ msg->alloc, msg->attempt, SIGTERM, "an admin" };
        step (n, &ev);
        break;
    case SIM_ACK:
        ev = event (HKD_EV_ACK, msg->alloc, msg->attempt);
        ev.ack = (struct hk_ack){ msg->alloc, msg->attempt, msg->invocation };
        step (n, &ev);
        break;
    default:
        break;
    }
}

void sim_node_on (struct sim_node *n)
{
    if (n->on)
        return;
    n->on = true;
    sim_id_text (n->boot);
    sim_say ("%s: boots, %.8s", n->name, n->boot);
    sim_hkd_start (n);
}

void sim_node_off (struct sim_node *n)
{
    if (!n->on)
        return;
    sim_say ("%s: power off", n->name);
    hkd_runs_destroy (n->runs);
    n->runs = NULL;
    n->session = 0;
    n->welcome = false;
    n->on = false;
    n->left_ms = 0;
    while (n->units)
        sim_unit_remove (n, n->units);
    while (n->files)
        sim_file_remove (n, &n->files->run);
    sim_queue_clear (&n->to_c);
    sim_queue_clear (&n->to_n);
}

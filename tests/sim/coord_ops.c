/* coord_ops.c - what a turn of the coordinator calls, over models */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "tests/sim/sim.h"

static int64_t op_now (void *arg)
{
    (void)arg;
    return w.now_ms;
}

static double op_wall (void *arg)
{
    (void)arg;
    return w.wall;
}

static int stage (void *arg, const struct hkc_row *row)
{
    (void)arg;
    sim_coord_may_crash ();
    sim_store_stage (w.c.store, row);
    return 0;
}

static int op_commit (void *arg, struct hkc_core *core, struct hk_error *err)
{
    (void)arg;
    sim_coord_may_crash ();
    hkc_core_changes (core, stage, NULL);
    if (w.c.store_fails) {
        sim_store_drop (w.c.store);
        return hk_error_set (err, ENOSPC, "disk full");
    }
    sim_store_apply (w.c.store);
    w.c.commits++;
    sim_coord_may_crash ();
    return 0;
}

static uint64_t op_find_end (void *arg, const struct hkc_event *ev)
{
    char digest[65];

    (void)arg;
    hk_resource_digest (ev->job_end.res, digest);
    return sim_store_find_end (w.c.store,
                               ev->job_end.jobid,
                               ev->job_end.t_submit,
                               ev->job_end.t_end,
                               digest);
}

static bool op_find_run (void *arg, uint64_t peer, const struct hk_run *run)
{
    struct sim_node *node = zhashx_lookup (w.c.peers, &peer);

    (void)arg;
    return node
           && sim_store_find_run (
               w.c.store, run->alloc, node->name, run->attempt);
}

static void send_n (uint64_t peer, struct sim_msg *msg)
{
    struct sim_node *node = zhashx_lookup (w.c.peers, &peer);
    static uint64_t seq;

    if (!node) {
        sim_msg_free (msg);
        return;
    }
    msg->session = peer;
    msg->seq = ++seq;
    sim_put (&node->to_n, msg);
}

/* S3: an acknowledged end is in the history. */
static void check_ack (uint64_t peer, const struct hk_ack *ack)
{
    struct sim_node *node = zhashx_lookup (w.c.peers, &peer);

    if (node
        && !sim_store_has_outcome (
            w.c.store, ack->alloc, node->name, ack->attempt))
        sim_broken ("S3",
                    "%s: an end was acknowledged that is not on disk",
                    node->name);
}

static void op_node (void *arg, const struct hkc_action *act)
{
    struct sim_msg *msg;

    (void)arg;
    sim_coord_may_crash ();
    switch (act->kind) {
    case HKC_ACT_WELCOME:
        send_n (act->node.peer, sim_msg (SIM_WELCOME));
        break;
    case HKC_ACT_REFUSE:
        send_n (act->node.peer, sim_msg (SIM_REFUSED));
        zhashx_delete (w.c.peers, &act->node.peer);
        break;
    case HKC_ACT_CLOSE:
        zhashx_delete (w.c.peers, &act->node.peer);
        break;
    case HKC_ACT_START:
        msg = sim_msg (SIM_START);
        msg->alloc = act->start.start.alloc;
        msg->attempt = act->start.start.attempt;
        msg->jobid = act->start.start.jobid;
        snprintf (
            msg->boot, sizeof (msg->boot), "%s", act->start.start.boot_id);
        send_n (act->start.peer, msg);
        break;
    case HKC_ACT_STOP:
        msg = sim_msg (SIM_STOP);
        msg->alloc = act->stop.stop.alloc;
        msg->attempt = act->stop.stop.attempt;
        send_n (act->stop.peer, msg);
        break;
    default:
        msg = sim_msg (SIM_ACK);
        msg->alloc = act->ack.ack.alloc;
        msg->attempt = act->ack.ack.attempt;
        snprintf (msg->invocation,
                  sizeof (msg->invocation),
                  "%s",
                  act->ack.ack.invocation);
        check_ack (act->ack.peer, &act->ack.ack);
        send_n (act->ack.peer, msg);
        break;
    }
}

static void send_m (struct sim_msg *msg)
{
    static uint64_t seq;

    msg->session = w.c.manager;
    msg->seq = ++seq;
    if (w.c.manager)
        sim_put (&w.m.to_m, msg);
    else
        sim_msg_free (msg);
}

/* S5: between a life's end and the next ready no free is sent.  The session
 * would pass over it, and then it is lost.
 */
static void check_free (const struct hkc_row_free *row)
{
    struct hkc_totals totals;

    hkc_core_totals (w.c.core, &totals);
    if (totals.life_state != HKC_LIFE_READY)
        sim_broken (
            "S5", "free %llu is sent before ready", (unsigned long long)row->n);
}

static void op_host (void *arg, const struct hkc_action *act)
{
    struct sim_msg *msg = NULL;

    (void)arg;
    sim_coord_may_crash ();
    if (act->kind == HKC_ACT_FREE)
        check_free (&act->free);
    if (!hkc_session_takes (&w.c.of_manager, act))
        return;
    switch (act->kind) {
    case HKC_ACT_LOG:
        sim_say ("C: %s%s%s",
                 act->log.host ? act->log.host : "",
                 act->log.host ? ": " : "",
                 act->log.text);
        return;
    case HKC_ACT_HELLO_ENTRY:
        msg = sim_msg (SIM_ENTRY);
        msg->jobid = act->entry.jobid;
        msg->text = strdup (act->entry.R);
        msg->ranks = act->entry.free ? strdup (act->entry.free) : NULL;
        snprintf (msg->life, sizeof (msg->life), "%s", act->entry.life);
        break;
    case HKC_ACT_HELLO_END:
        msg = sim_msg (SIM_HELLO_END);
        msg->flag = act->hello_end.resumed;
        snprintf (msg->life, sizeof (msg->life), "%s", act->hello_end.life);
        break;
    case HKC_ACT_FREE:
        msg = sim_msg (SIM_FREE);
        msg->n = act->free.n;
        msg->jobid = act->free.jobid;
        msg->ranks = strdup (act->free.ranks);
        msg->flag = act->free.final;
        snprintf (msg->life, sizeof (msg->life), "%s", act->free.life);
        if (act->free.n > w.m.last_free
            && !sim_store_has_free (w.c.store, act->free.n))
            sim_broken ("S3",
                        "free %llu is not on disk",
                        (unsigned long long)act->free.n);
        break;
    default:
        msg = sim_msg (act->kind == HKC_ACT_DRAIN ? SIM_DRAIN : SIM_UNDRAIN);
        msg->n = act->drain.n;
        msg->text = strdup (act->drain.reason);
        snprintf (msg->host, sizeof (msg->host), "%s", act->drain.host);
        snprintf (msg->life, sizeof (msg->life), "%s", act->drain.life);
        break;
    }
    send_m (msg);
}

static void op_answer (void *arg,
                       uint64_t token,
                       int rc,
                       const struct hkc_answer *answer,
                       const struct hk_error *err)
{
    struct sim_msg *msg = sim_msg (SIM_RECORDED);

    (void)arg;
    sim_coord_may_crash ();
    if (rc)
        sim_broken ("job-end", "refused: %s", err->text);
    if (zhashx_lookup (w.c.put_off, &token))
        sim_broken ("job-end", "answered once more after it was put off");
    msg->job = (int)(token & 0xfffff);
    msg->n = token >> 20;
    snprintf (msg->state, sizeof (msg->state), "%s", answer->state);
    if (!sim_store_has_alloc (w.c.store, answer->alloc))
        sim_broken ("S3",
                    "allocation %llx was said to be recorded",
                    (unsigned long long)answer->alloc);
    msg->session = 1; /* an owner's request needs no session */
    sim_put (&w.m.to_m, msg);
}

/* As for a client every other time, as for a note of the host else. */
static bool op_put_off (void *arg, uint64_t token)
{
    (void)arg;
    sim_coord_may_crash ();
    if (token >> 20 & 1)
        return false;
    zhashx_update (w.c.put_off, &token, &w);
    return true;
}

static void op_look (void *arg, struct hkc_input *in)
{
    sim_coord_release (arg, in);
}

static void op_store_state (void *arg, const struct hk_error *err)
{
    (void)arg;
    sim_say ("C: the store %s", err ? err->text : "can be written again");
}

const struct hkc_ops sim_coord_ops = {
    .now_ms = op_now,
    .wall = op_wall,
    .receive = sim_coord_receive,
    .release = sim_coord_release,
    .commit = op_commit,
    .find_end = op_find_end,
    .find_run = op_find_run,
    .node = op_node,
    .host = op_host,
    .answer = op_answer,
    .look = op_look,
    .put_off = op_put_off,
    .look_put_off = op_look,
    .store_state = op_store_state,
};

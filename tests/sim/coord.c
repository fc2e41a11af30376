/* coord.c - the real core and turn of the coordinator over models */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "coordinator/core/idhash.h"
#include "tests/sim/sim.h"

struct owner {
    struct sim_msg *msg;
    struct hk_rankset *active;
    struct hk_resource *account;
    struct hk_hostlist *hosts;
    struct hk_resource *res;
};

/* The process may end between any two operations. */
static void may_crash (void)
{
    if (w.c.crash_in && --w.c.crash_in == 0)
        longjmp (w.c.crash, 1);
}

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

static void op_release (void *arg, struct hkc_input *in)
{
    struct owner *o = in->owner;

    (void)arg;
    if (!o)
        return;
    if (in->ev.kind == HKC_EV_JOB_END)
        hk_resource_destroy (in->ev.job_end.res);
    hk_rankset_destroy (o->active);
    hk_resource_destroy (o->account);
    hk_hostlist_destroy (o->hosts);
    sim_msg_free (o->msg);
    free (o);
    in->owner = NULL;
}

static void node_event (struct sim_msg *msg, struct hkc_input *in)
{
    struct sim_node *n = &w.nodes[msg->node];

    switch (msg->kind) {
    case SIM_HELLO:
        in->ev.kind = HKC_EV_NODE_HELLO;
        in->ev.node_hello.peer = msg->session;
        in->ev.node_hello.host = n->name;
        in->ev.node_hello.short_host = n->name;
        in->ev.node_hello.boot_id = msg->boot;
        in->ev.node_hello.address = "10.0.0.1";
        break;
    case SIM_STATE:
        in->ev.kind = HKC_EV_NODE_STATE;
        in->ev.node_state.peer = msg->session;
        in->ev.node_state.boot_id = msg->boot;
        in->ev.node_state.runs = msg->runs;
        in->ev.node_state.runs_count = msg->runs_count;
        in->ev.node_state.first = msg->first;
        in->ev.node_state.last = msg->last;
        break;
    case SIM_RUN:
        in->ev.kind = HKC_EV_NODE_RUN;
        in->ev.node_run.peer = msg->session;
        in->ev.node_run.run = msg->runs;
        break;
    default:
        in->ev.kind = HKC_EV_NODE_ALIVE;
        in->ev.node.peer = msg->session;
        break;
    }
}

static void manager_event (struct owner *o, struct hkc_input *in)
{
    struct sim_msg *msg = o->msg;

    in->token = 0;
    switch (msg->kind) {
    case SIM_JOB_END:
        in->ev.kind = HKC_EV_JOB_END;
        in->ev.job_end.alloc = sim_id ();
        in->ev.job_end.jobid = msg->jobid;
        in->ev.job_end.t_submit = msg->t_submit;
        in->ev.job_end.t_end = msg->t_end;
        in->ev.job_end.queue = "";
        in->ev.job_end.res = hk_resource_decode (msg->text, NULL);
        in->token = msg->n << 20 | (uint64_t)msg->job;
        break;
    case SIM_SCHED_HELLO:
    case SIM_SCHED_READY:
        in->ev.kind = msg->kind == SIM_SCHED_HELLO ? HKC_EV_SCHED_HELLO
                                                   : HKC_EV_SCHED_READY;
        if (msg->ranks)
            o->active = hk_rankset_decode (msg->ranks, NULL);
        if (msg->text)
            o->account = hk_resource_decode (msg->text, NULL);
        in->ev.sched.life = msg->life;
        in->ev.sched.partial_ok = msg->partial_ok;
        in->ev.sched.last_free = msg->n;
        in->ev.sched.tag = msg->session;
        in->ev.sched.active = o->active;
        in->ev.sched.jobs = msg->ids;
        in->ev.sched.jobs_count = msg->ids_count;
        in->ev.sched.account = o->account;
        break;
    case SIM_KILL:
        in->ev.kind = HKC_EV_KILL;
        in->ev.kill.jobid = msg->jobid;
        in->ev.kill.signal = 15;
        in->ev.kill.reason = "";
        break;
    case SIM_FREE_OK:
        in->ev.kind = HKC_EV_FREE_OK;
        in->ev.done.n = msg->n;
        break;
    default:
        in->ev.kind = msg->kind == SIM_DRAIN_DONE ? HKC_EV_DRAIN_DONE
                                                  : HKC_EV_UNDRAIN_DONE;
        in->ev.done.n = msg->n;
        in->ev.done.host = msg->host;
        in->ev.done.result = msg->result;
        in->ev.done.reason = msg->text;
        in->ev.done.text = "a fault";
        break;
    }
}

static int op_receive (void *arg, enum hkc_collect how, struct hkc_input *in)
{
    struct sim_msg *msg = NULL;
    struct owner *o;

    (void)arg;
    may_crash ();
    if (how == HKC_COLLECT_DEAF) { /* what nodes say is dropped */
        struct sim_queue kept;
        sim_queue_init (&kept);
        while ((msg = w.c.in.first)) {
            w.c.in.first = msg->next;
            if (msg->node >= 0)
                sim_msg_free (msg);
            else
                sim_put (&kept, msg);
        }
        w.c.in.first = kept.first;
        w.c.in.end = kept.first ? kept.end : &w.c.in.first;
        w.c.in.count = kept.count;
        return 0;
    }
    if (!(msg = w.c.in.first))
        return 0;
    if (!(w.c.in.first = msg->next))
        w.c.in.end = &w.c.in.first;
    w.c.in.count--;
    o = calloc (1, sizeof (*o));
    o->msg = msg;
    in->owner = o;
    if (msg->kind == SIM_SCHED_HELLO && msg->flag)
        in->ev.kind = HKC_EV_SCHED_GONE;
    else if (msg->node >= 0)
        node_event (msg, in);
    else
        manager_event (o, in);
    return 1;
}

static int stage (void *arg, const struct hkc_row *row)
{
    (void)arg;
    may_crash ();
    sim_store_stage (w.c.store, row);
    return 0;
}

static int op_commit (void *arg, struct hkc_core *core, struct hk_error *err)
{
    (void)arg;
    may_crash ();
    hkc_core_changes (core, stage, NULL);
    if (w.c.store_fails) {
        sim_store_drop (w.c.store);
        return hk_error_set (err, ENOSPC, "disk full");
    }
    sim_store_apply (w.c.store);
    w.c.commits++;
    may_crash ();
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
    may_crash ();
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

/* As the hosts do: what is not of the present life or hello is dropped. */
static bool is_stale (const struct hkc_action *act)
{
    switch (act->kind) {
    case HKC_ACT_FREE:
        return strcmp (act->free.life, w.c.manager_life) != 0;
    case HKC_ACT_UNDRAIN:
        return strcmp (act->drain.life, w.c.manager_life) != 0;
    case HKC_ACT_HELLO_ENTRY:
        return act->entry.tag != w.c.manager;
    case HKC_ACT_HELLO_END:
        return act->hello_end.tag != w.c.manager;
    default:
        return false;
    }
}

static void op_host (void *arg, const struct hkc_action *act)
{
    struct sim_msg *msg = NULL;

    (void)arg;
    may_crash ();
    if (is_stale (act))
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
    may_crash ();
    if (rc)
        sim_broken ("job-end", "refused: %s", err->text);
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

static void op_look (void *arg, struct hkc_input *in)
{
    op_release (arg, in);
}

static void op_store_state (void *arg, const struct hk_error *err)
{
    (void)arg;
    sim_say ("C: the store %s", err ? err->text : "can be written again");
}

static const struct hkc_ops ops = {
    .now_ms = op_now,
    .wall = op_wall,
    .receive = op_receive,
    .release = op_release,
    .commit = op_commit,
    .find_end = op_find_end,
    .find_run = op_find_run,
    .node = op_node,
    .host = op_host,
    .answer = op_answer,
    .look = op_look,
    .store_state = op_store_state,
};

void sim_coord_start (void)
{
    struct hkc_setup setup = {
        .conf = w.conf,
        .instance = "11111111111111111111111111111111",
        .next_pid = sim_store_next_pid (w.c.store),
    };

    if (w.c.core)
        return;
    sim_say ("C: starts");
    w.c.core = hkc_core_create (&setup);
    sim_store_load (w.c.store, w.c.core);
    hkc_core_loaded (w.c.core, w.now_ms);
    w.c.turn = hkc_turn_create (w.c.core, &ops);
    w.c.peers = hkc_idhash_create ();
    zhashx_set_key_duplicator (w.c.peers, sim_id_dup);
    zhashx_set_key_destructor (w.c.peers, sim_id_end);
}

void sim_coord_kill (void)
{
    if (!w.c.core)
        return;
    w.crashes++;
    sim_say ("C: is killed");
    sim_store_drop (w.c.store);
    hkc_turn_destroy (w.c.turn);
    hkc_core_destroy (w.c.core);
    zhashx_destroy (&w.c.peers);
    sim_queue_clear (&w.c.in);
    w.c.turn = NULL;
    w.c.core = NULL;
    w.c.manager = 0;
    w.c.crash_in = 0;
    sim_manager_unlink ();
}

void sim_coord_turn (void)
{
    struct hk_error err;

    if (!w.c.core)
        return;
    if (setjmp (w.c.crash)) {
        sim_coord_kill ();
        return;
    }
    hkc_turn_run (w.c.turn, &err);
}

static bool link_takes (struct sim_msg *msg)
{
    if (msg->node < 0) {
        if (msg->kind == SIM_SCHED_HELLO && !msg->flag
            && w.c.manager != msg->session) {
            if (w.c.manager) { /* the session is replaced */
                struct sim_msg *gone = sim_msg (SIM_SCHED_HELLO);
                gone->flag = true;
                sim_put (&w.c.in, gone);
            }
            w.c.manager = msg->session;
            snprintf (
                w.c.manager_life, sizeof (w.c.manager_life), "%s", msg->life);
        }
        return msg->kind == SIM_JOB_END || msg->kind == SIM_KILL
               || (msg->session && msg->session == w.c.manager);
    }
    if (msg->kind == SIM_HELLO) {
        zhashx_update (w.c.peers, &msg->session, &w.nodes[msg->node]);
        return true;
    }
    return zhashx_lookup (w.c.peers, &msg->session) != NULL;
}

/* What has arrived at the process; it reads it in its next turn. */
void sim_coord_deliver (struct sim_msg *msg)
{
    if (!w.c.core) {
        sim_msg_free (msg);
        return;
    }
    if (link_takes (msg)) {
        sim_put (&w.c.in, msg);
        return;
    }
    if (msg->node >= 0 && msg->session == w.nodes[msg->node].session) {
        struct sim_msg *again = sim_msg (SIM_REHELLO);
        again->session = msg->session;
        again->seq = UINT64_MAX;
        sim_put (&w.nodes[msg->node].to_n, again);
    }
    sim_msg_free (msg);
}

/* coord.c - the coordinator: its life, and what it receives */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
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

void sim_coord_may_crash (void)
{
    if (w.c.crash_in && --w.c.crash_in == 0)
        longjmp (w.c.crash, 1);
}

void sim_coord_release (void *arg, struct hkc_input *in)
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
    case SIM_PURGED:
        in->ev.kind = HKC_EV_JOB_PURGED;
        in->ev.purged.jobid = msg->jobid;
        in->ev.purged.t_submit = msg->t_submit;
        break;
    case SIM_HOSTS:
        in->ev.kind = HKC_EV_HOSTS;
        o->hosts = hk_hostlist_decode (msg->text, NULL);
        in->ev.inventory.hosts = o->hosts;
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

int sim_coord_receive (void *arg, enum hkc_collect how, struct hkc_input *in)
{
    struct sim_msg *msg = NULL;
    struct owner *o;

    (void)arg;
    sim_coord_may_crash ();
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
    w.c.turn = hkc_turn_create (w.c.core, &sim_coord_ops);
    w.c.peers = hkc_idhash_create ();
    zhashx_set_key_duplicator (w.c.peers, sim_id_dup);
    zhashx_set_key_destructor (w.c.peers, sim_id_end);
    w.c.put_off = hkc_idhash_create ();
    zhashx_set_key_duplicator (w.c.put_off, sim_id_dup);
    zhashx_set_key_destructor (w.c.put_off, sim_id_end);
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
    zhashx_destroy (&w.c.put_off);
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
            hkc_session_hello (&w.c.of_manager, msg->life, msg->session);
        }
        return msg->kind == SIM_JOB_END || msg->kind == SIM_KILL
               || msg->kind == SIM_PURGED || msg->kind == SIM_HOSTS
               || (msg->session && msg->session == w.c.manager);
    }
    if (msg->kind == SIM_HELLO) {
        zhashx_update (w.c.peers, &msg->session, &w.nodes[msg->node]);
        return true;
    }
    return zhashx_lookup (w.c.peers, &msg->session) != NULL;
}

/* Said twice, and late: one connection keeps its order. */
static bool is_late (const struct sim_msg *msg)
{
    struct sim_node *n = msg->node >= 0 ? &w.nodes[msg->node] : NULL;

    if (!n)
        return false;
    if (n->c_session == msg->session && msg->seq < n->c_seq)
        return true;
    n->c_session = msg->session;
    n->c_seq = msg->seq;
    return false;
}

/* What has arrived at the process; it reads it in its next turn. */
void sim_coord_deliver (struct sim_msg *msg)
{
    if (!w.c.core || is_late (msg)) {
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

/* common_swarm.c - one process that is many nodes */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <czmq.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "proto/clock.h"
#include "proto/identity.h"
#include "tests/bench/common.h"

/* Deadlines of links are looked at often, for their handshakes; those of runs
 * are a second and more, and looking costs as much as there are runs.
 */
enum { SWEEP_MS = 20, RUNS_SWEEP_MS = 250, EVENTS = 512, JITTER_MS = 1 };

static const char *const script_names[] = { "10-true" };

static void step (struct bench_swarm *s,
                  struct bench_node *n,
                  struct hkd_event *ev);

static struct hkd_event event (enum hkd_event_kind kind,
                               uint64_t alloc,
                               int attempt)
{
    return (struct hkd_event){
        .kind = kind,
        .now_ms = hk_boot_ms (),
        .wall = hk_wall (),
        .alloc = alloc,
        .attempt = attempt,
    };
}

static struct bench_run *done_of (struct bench_swarm *s,
                                  struct bench_node *n,
                                  uint64_t jobid)
{
    return &n->done[jobid % (uint64_t)s->jobs];
}

static void send_run (struct bench_swarm *s,
                      struct bench_node *n,
                      const struct hk_run *run)
{
    struct hk_msg msg = { .type = HK_MSG_RUN, .run = *run };
    struct bench_run *d = done_of (s, n, run->jobid);

    if (hk_link_client_send (n->client, &msg, NULL) < 0)
        return; /* the state machine says it again */
    if (run->phase != HK_RUN_ENDED || d->jobid == run->jobid)
        return;
    d->jobid = run->jobid;
    d->ended = bench_now ();
    if (s->first_end == 0)
        s->first_end = d->ended;
}

struct all {
    struct hk_run *runs;
    size_t count;
};

static int add_run (void *arg, const struct hk_run *run)
{
    struct all *all = arg;

    all->runs[all->count++] = *run;
    return 0;
}

static void send_state (struct bench_node *n)
{
    size_t size = hkd_runs_count (n->runs);
    struct all all = { calloc (size + 1, sizeof (*all.runs)), 0 };
    struct hk_msg msg = {
        .type = HK_MSG_STATE,
        .state = { .boot_id = n->boot },
    };
    size_t at = 0;

    hkd_runs_each (n->runs, add_run, &all);
    do {
        size_t some = all.count - at > HK_RUNS_LIMIT ? HK_RUNS_LIMIT
                                                     : all.count - at;
        msg.state.runs = all.runs + at;
        msg.state.runs_count = some;
        at += some;
        msg.state.last = at == all.count;
        hk_link_client_send (n->client, &msg, NULL);
        msg.state.part++;
    } while (at < all.count);
    free (all.runs);
}

/* The runner: a unit is there at once, and its script ends when it is told. */
static bool act_one (struct bench_swarm *s,
                     struct bench_node *n,
                     const struct hkd_action *act,
                     struct hkd_event *next)
{
    const struct hk_run *run = act->run;

    if (!run) {
        if (act->kind == HKD_ACT_STATE)
            send_state (n);
        return false;
    }
    *next = event (0, run->alloc, run->attempt);
    switch (act->kind) {
    case HKD_ACT_PREPARE:
        next->kind = HKD_EV_PREPARED;
        next->prepared.names = script_names;
        next->prepared.count = 1;
        return true;
    case HKD_ACT_UNIT_START:
        next->kind = HKD_EV_STARTED;
        next->started.invocation = "0123456789abcdef0123456789abcdef";
        next->started.unit = "flux-housekeeping-f1.service";
        s->running++;
        return true;
    case HKD_ACT_CGROUP:
        next->kind = HKD_EV_CGROUP;
        next->cgroup.leftovers = NULL;
        next->cgroup.count = 0;
        return true;
    case HKD_ACT_REPORT:
        send_run (s, n, run);
        return false;
    default:
        return false;
    }
}

static void step (struct bench_swarm *s,
                  struct bench_node *n,
                  struct hkd_event *ev)
{
    struct hkd_event later[16];
    size_t count, n_later = 0;
    const struct hkd_action *acts;

    if (hkd_runs_step (n->runs, ev, NULL) < 0)
        return;
    acts = hkd_runs_actions (n->runs, &count);
    for (size_t i = 0; i < count && n_later < 16; i++)
        n_later += act_one (s, n, &acts[i], &later[n_later]);
    for (size_t i = 0; i < n_later; i++)
        step (s, n, &later[i]);
}

static void finish (struct bench_swarm *s,
                    struct bench_node *n,
                    uint64_t alloc,
                    int attempt)
{
    struct hkd_event ev = event (HKD_EV_SCRIPTS, alloc, attempt);
    struct hk_script_result result = {
        .name = script_names[0],
        .t_start = ev.wall - 0.01,
        .t_end = ev.wall,
    };

    ev.scripts.results = &result;
    ev.scripts.count = 1;
    step (s, n, &ev);
    ev = event (HKD_EV_FINISHED, alloc, attempt);
    step (s, n, &ev);
}

struct ids {
    uint64_t alloc[256];
    int attempt[256];
    size_t count;
};

static int add_id (void *arg, const struct hk_run *run)
{
    struct ids *ids = arg;

    if (run->phase == HK_RUN_RUNNING && ids->count < 256) {
        ids->alloc[ids->count] = run->alloc;
        ids->attempt[ids->count++] = run->attempt;
    }
    return 0;
}

static void message (struct bench_swarm *s,
                     struct bench_node *n,
                     const struct hk_msg *msg)
{
    struct hkd_event ev;
    struct bench_run *d;

    if (msg->type == HK_MSG_START) {
        ev = event (HKD_EV_START, msg->start_run.alloc, msg->start_run.attempt);
        ev.start.start = msg->start_run;
        ev.start.instance = s->instance;
        d = done_of (s, n, msg->start_run.jobid);
        d->acked = d->ended = 0;
        d->jobid = UINT64_MAX;
        step (s, n, &ev);
        if (s->started_f)
            s->started_f (
                s->arg, n->i, msg->start_run.alloc, msg->start_run.attempt);
    } else if (msg->type == HK_MSG_ACK) {
        const struct hk_start *start = hkd_runs_start (
            n->runs, msg->ack.alloc, msg->ack.attempt);
        if (!start)
            return;
        d = done_of (s, n, start->jobid);
        if (d->acked == 0) {
            s->acked++;
            s->last_ack = d->acked = bench_now ();
        }
        ev = event (HKD_EV_ACK, msg->ack.alloc, msg->ack.attempt);
        ev.ack = msg->ack;
        step (s, n, &ev);
    }
}

static void watch (struct bench_swarm *s, struct bench_node *n)
{
    struct epoll_event ev = { .events = EPOLLIN | EPOLLET };
    int fd = hk_link_client_fd (n->client);

    if (fd == n->fd)
        return;
    n->fd = fd;
    ev.data.u32 = (uint32_t)n->i;
    if (fd >= 0 && epoll_ctl (s->epoll, EPOLL_CTL_ADD, fd, &ev) < 0
        && errno != EEXIST)
        bench_fail ("epoll: %s", strerror (errno));
}

static void hear (struct bench_swarm *s, struct bench_node *n)
{
    enum hk_client_event what;
    struct hk_msg msg;
    struct hk_error err;
    struct hkd_event ev;

    while (hk_link_client_next (n->client, hk_boot_ms (), &what, &msg, &err)
           > 0) {
        if (what == HK_CLIENT_MESSAGE)
            message (s, n, &msg);
        else {
            bool up = what == HK_CLIENT_UP;
            s->up_count += up;
            s->up_count -= n->up;
            n->up = up;
            if (up)
                snprintf (s->instance,
                          sizeof (s->instance),
                          "%s",
                          msg.welcome.instance);
            ev = event (up ? HKD_EV_UP : HKD_EV_DOWN, 0, 0);
            step (s, n, &ev);
        }
        if (what != HK_CLIENT_DOWN)
            hk_msg_fini (&msg);
    }
    watch (s, n);
}

void bench_swarm_end_one (struct bench_swarm *s,
                          int node,
                          uint64_t alloc,
                          int attempt)
{
    finish (s, &s->nodes[node], alloc, attempt);
    hear (s, &s->nodes[node]);
}

void bench_swarm_end (struct bench_swarm *s, int node)
{
    struct bench_node *n = &s->nodes[node];
    struct ids ids = { .count = 0 };

    hkd_runs_each (n->runs, add_id, &ids);
    for (size_t i = 0; i < ids.count; i++)
        finish (s, n, ids.alloc[i], ids.attempt[i]);
    hear (s, n); /* what came meanwhile: a send takes the descriptor's edge */
}

static void sweep (struct bench_swarm *s)
{
    int64_t now = hk_boot_ms ();
    bool runs = now - s->runs_swept_ms >= RUNS_SWEEP_MS;

    if (now - s->swept_ms < SWEEP_MS)
        return;
    s->swept_ms = now;
    if (runs)
        s->runs_swept_ms = now;
    for (int i = 0; i < s->count; i++) {
        struct bench_node *n = &s->nodes[i];
        if (hk_link_client_deadline (n->client) <= now)
            hear (s, n);
        if (runs && hkd_runs_deadline (n->runs) <= now) {
            struct hkd_event ev = event (HKD_EV_TICK, 0, 0);
            step (s, n, &ev);
            hear (s, n);
        }
    }
}

void bench_swarm_turn (struct bench_swarm *s, int ms)
{
    struct epoll_event evs[EVENTS];
    int n = epoll_wait (s->epoll, evs, EVENTS, ms);

    for (int i = 0; i < n; i++)
        hear (s, &s->nodes[evs[i].data.u32]);
    sweep (s);
}

static void node_open (struct bench_swarm *s, int i)
{
    struct bench_node *n = &s->nodes[i];
    struct hk_error err;
    struct hk_client_conf cc = {
        .head = s->conf->head,
        .port = s->conf->node_port,
        .key_port = s->conf->key_port,
        .munge_socket = s->conf->munge_socket,
        .server_uid = s->conf->server_uid,
        .role = "node",
        .host = n->name,
        .short_host = n->name,
        .boot_id = n->boot,
        .jitter_ms = JITTER_MS,
        .zmq_context = s->context,
        .lean = true,
    };

    n->i = i;
    snprintf (n->name, sizeof (n->name), "node%d", s->first + i);
    hk_random_id (n->boot);
    n->done = calloc ((size_t)s->jobs, sizeof (*n->done));
    n->runs = hkd_runs_create (s->conf, n->name, n->boot);
    if (!(n->client = hk_link_client_create (&cc, &err)))
        bench_fail ("%s: %s", n->name, err.text);
    n->fd = -1;
    hear (s, n);
}

void bench_swarm_open (struct bench_swarm *s,
                       const struct hk_conf *conf,
                       int first,
                       int count,
                       int jobs)
{
    memset (s, 0, sizeof (*s));
    s->conf = conf;
    s->first = first;
    s->count = count;
    s->jobs = jobs;
    s->epoll = epoll_create1 (EPOLL_CLOEXEC);
    s->context = zmq_ctx_new ();
    zmq_ctx_set (s->context, ZMQ_MAX_SOCKETS, 65536);
    s->nodes = calloc ((size_t)count, sizeof (*s->nodes));
    for (int i = 0; i < count; i++)
        node_open (s, i);
}

void bench_swarm_close (struct bench_swarm *s)
{
    for (int i = 0; i < s->count; i++) {
        hk_link_client_destroy (s->nodes[i].client);
        hkd_runs_destroy (s->nodes[i].runs);
        free (s->nodes[i].done);
    }
    free (s->nodes);
    close (s->epoll);
    zmq_ctx_term (s->context);
}

void bench_swarm_phase (struct bench_swarm *s)
{
    s->running = s->acked = 0;
    s->first_end = s->last_ack = 0;
}

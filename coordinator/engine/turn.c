/* turn.c - one turn of the engine: collect, decide, commit, send */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include "proto/log.h"
#include "coordinator/engine/turn.h"

enum {
    BATCH_COUNT = 4096, /* inputs of one transaction */
    UNTOLD_MS = 20,     /* a change that nobody waits for */
    RETRY_FIRST_MS = 100,
    RETRY_MOST_MS = 2000,
    CLOSED_LIMIT = HK_RUNS_LIMIT,
};

struct reply {
    uint64_t token;
    int rc;
    struct hkc_answer answer;
    struct hk_error err;
};

struct hkc_turn {
    struct hkc_core *core;
    struct hkc_ops ops;
    struct reply *replies;
    size_t replies_count, replies_size;
    struct hkc_input *looks;
    size_t looks_count, looks_size;
    int64_t untold_ms; /* when it is committed at the latest; 0: none waits */
    bool stuck;
    int64_t retry_ms;
    int64_t retry_wait_ms;
};

struct hkc_turn *hkc_turn_create (struct hkc_core *core,
                                  const struct hkc_ops *ops)
{
    struct hkc_turn *turn = calloc (1, sizeof (*turn));

    if (turn) {
        turn->core = core;
        turn->ops = *ops;
    }
    return turn;
}

void hkc_turn_destroy (struct hkc_turn *turn)
{
    if (!turn)
        return;
    for (size_t i = 0; i < turn->looks_count; i++)
        turn->ops.release (turn->ops.arg, &turn->looks[i]);
    free (turn->replies);
    free (turn->looks);
    free (turn);
}

static void *room (void *array, size_t *size, size_t count, size_t item)
{
    if (count < *size)
        return array;
    *size = *size ? *size * 2 : 64;
    if (!(array = realloc (array, *size * item)))
        abort (); /* as in the core: a crash is survived, half a turn is not */
    return array;
}

static struct reply *reply_add (struct hkc_turn *turn, uint64_t token)
{
    turn->replies = room (turn->replies,
                          &turn->replies_size,
                          turn->replies_count,
                          sizeof (*turn->replies));
    struct reply *r = &turn->replies[turn->replies_count++];
    memset (r, 0, sizeof (*r));
    r->token = token;
    return r;
}

/* Which runs of ours are in the history: asked only of those that the core no
 * longer has.
 */
static void closed_find (struct hkc_turn *turn,
                         struct hkc_event *ev,
                         bool *closed)
{
    const struct hk_run *runs = ev->node_state.runs;

    for (size_t i = 0; i < ev->node_state.runs_count && i < CLOSED_LIMIT; i++)
        closed[i] = !hkc_core_knows (turn->core, runs[i].alloc)
                    && turn->ops.find_run (
                        turn->ops.arg, ev->node_state.peer, &runs[i]);
    ev->node_state.closed = closed;
}

/* The same end of a closed allocation gets the same answer. */
static bool answered_by_history (struct hkc_turn *turn, struct hkc_input *in)
{
    struct reply *r;
    uint64_t alloc;

    if (in->ev.kind != HKC_EV_JOB_END)
        return false;
    if (!(alloc = turn->ops.find_end (turn->ops.arg, &in->ev)))
        return false;
    in->ev.kind = HKC_EV_JOB_END_AGAIN;
    hkc_core_step (turn->core, &in->ev, NULL, NULL);
    in->ev.kind = HKC_EV_JOB_END; /* res is released with the input */
    r = reply_add (turn, in->token);
    r->answer.alloc = alloc;
    r->answer.state = "done";
    return true;
}

static void step (struct hkc_turn *turn, struct hkc_input *in)
{
    bool closed[CLOSED_LIMIT];
    struct hkc_answer answer;
    struct hk_error err = { "" };
    int rc;

    in->ev.now_ms = turn->ops.now_ms (turn->ops.arg);
    in->ev.wall = turn->ops.wall (turn->ops.arg);
    if (answered_by_history (turn, in))
        return;
    if (in->ev.kind == HKC_EV_NODE_STATE)
        closed_find (turn, &in->ev, closed);
    else if (in->ev.kind == HKC_EV_NODE_RUN)
        in->ev.node_run.closed =
            !hkc_core_knows (turn->core, in->ev.node_run.run->alloc)
            && turn->ops.find_run (
                turn->ops.arg, in->ev.node_run.peer, in->ev.node_run.run);
    rc = hkc_core_step (turn->core, &in->ev, &answer, &err);
    if (in->ev.kind == HKC_EV_NODE_STATE)
        in->ev.node_state.closed = NULL; /* ours, and of this call */
    if (rc == 0 && in->ev.kind == HKC_EV_JOB_END)
        in->ev.job_end.res = NULL; /* taken */
    if (in->token) {
        struct reply *r = reply_add (turn, in->token);
        r->rc = rc < 0 ? (errno ? errno : EINVAL) : 0;
        r->answer = answer;
        r->err = err;
    } else if (rc < 0)
        hk_log_throttled (LOG_WARNING,
                          "step",
                          "event %d is refused: %s",
                          in->ev.kind,
                          err.text);
}

/* Everything that is ready, up to a batch. */
static bool collect (struct hkc_turn *turn, enum hkc_collect how)
{
    struct hkc_input in;

    for (size_t i = 0; i < BATCH_COUNT; i++) {
        memset (&in, 0, sizeof (in));
        if (!turn->ops.receive (turn->ops.arg, how, &in))
            return false;
        if (in.look) {
            turn->looks = room (turn->looks,
                                &turn->looks_size,
                                turn->looks_count,
                                sizeof (*turn->looks));
            turn->looks[turn->looks_count++] = in;
            continue;
        }
        step (turn, &in);
        turn->ops.release (turn->ops.arg, &in);
    }
    return true;
}

static void tick (struct hkc_turn *turn)
{
    struct hkc_event ev = {
        .kind = HKC_EV_TICK,
        .now_ms = turn->ops.now_ms (turn->ops.arg),
        .wall = turn->ops.wall (turn->ops.arg),
    };

    hkc_core_step (turn->core, &ev, NULL, NULL);
}

static void carry_out (struct hkc_turn *turn)
{
    size_t count;
    const struct hkc_action *acts = hkc_core_actions (turn->core, &count);

    for (size_t i = 0; i < count; i++) {
        if (acts[i].kind <= HKC_ACT_ACK)
            turn->ops.node (turn->ops.arg, &acts[i]);
        else
            turn->ops.host (turn->ops.arg, &acts[i]);
    }
    for (size_t i = 0; i < turn->replies_count; i++) {
        struct reply *r = &turn->replies[i];
        if (r->token)
            turn->ops.answer (
                turn->ops.arg, r->token, r->rc, &r->answer, &r->err);
    }
    turn->replies_count = 0;
    hkc_core_settle (turn->core);
    for (size_t i = 0; i < turn->looks_count; i++)
        turn->ops.look (turn->ops.arg, &turn->looks[i]);
    turn->looks_count = 0;
}

static void deaf_ends (struct hkc_turn *turn)
{
    struct hkc_event ev = {
        .kind = HKC_EV_DEAF_ENDS,
        .now_ms = turn->ops.now_ms (turn->ops.arg),
        .wall = turn->ops.wall (turn->ops.arg),
    };

    turn->stuck = false;
    turn->retry_wait_ms = 0;
    hkc_core_step (turn->core, &ev, NULL, NULL);
    turn->ops.store_state (turn->ops.arg, NULL);
}

/* Answers wait for the commit, but those who asked not as long as the store
 * refuses: they learn that nothing is on disk yet, once, and the commit that
 * succeeds later answers only who goes on waiting.
 */
static void put_off (struct hkc_turn *turn)
{
    for (size_t i = 0; i < turn->replies_count; i++) {
        struct reply *r = &turn->replies[i];
        if (r->token && turn->ops.put_off (turn->ops.arg, r->token))
            r->token = 0;
    }
    for (size_t i = 0; i < turn->looks_count; i++)
        turn->ops.look_put_off (turn->ops.arg, &turn->looks[i]);
    turn->looks_count = 0;
}

/* The same batch is tried again; what comes later waits. */
static int commit (struct hkc_turn *turn, struct hk_error *err)
{
    if (!hkc_core_changed (turn->core))
        return 0;
    if (turn->ops.commit (turn->ops.arg, turn->core, err) == 0)
        return 0;
    if (errno == ESTALE)
        return -1;
    if (!turn->stuck) {
        turn->ops.store_state (turn->ops.arg, err);
        put_off (turn);
    }
    turn->stuck = true;
    turn->retry_wait_ms = turn->retry_wait_ms ? turn->retry_wait_ms * 2
                                              : RETRY_FIRST_MS;
    if (turn->retry_wait_ms > RETRY_MOST_MS)
        turn->retry_wait_ms = RETRY_MOST_MS;
    turn->retry_ms = turn->ops.now_ms (turn->ops.arg) + turn->retry_wait_ms;
    return 1;
}

static void collect_deaf (struct hkc_turn *turn)
{
    struct hkc_input in;

    memset (&in, 0, sizeof (in));
    for (size_t i = 0; i < BATCH_COUNT; i++)
        if (!turn->ops.receive (turn->ops.arg, HKC_COLLECT_DEAF, &in))
            break;
}

/* Nobody is told anything: that a run is under way, say.  Such a change waits a
 * little for others, so that it costs no commit of its own; what a crash takes
 * of it the nodes say again.
 */
static bool may_wait (struct hkc_turn *turn)
{
    int64_t now;
    size_t count;

    hkc_core_actions (turn->core, &count);
    if (count || turn->replies_count || turn->looks_count
        || !hkc_core_changed (turn->core)) {
        turn->untold_ms = 0;
        return false;
    }
    now = turn->ops.now_ms (turn->ops.arg);
    if (!turn->untold_ms)
        turn->untold_ms = now + UNTOLD_MS;
    if (now < turn->untold_ms)
        return true;
    turn->untold_ms = 0;
    return false;
}

int hkc_turn_run (struct hkc_turn *turn, struct hk_error *err)
{
    bool more = false;
    int rc;

    if (turn->stuck) {
        collect_deaf (turn);
        if (turn->ops.now_ms (turn->ops.arg) < turn->retry_ms)
            return 0;
    } else {
        more = collect (turn, HKC_COLLECT_ALL);
        tick (turn);
        if (may_wait (turn))
            return more;
    }
    if ((rc = commit (turn, err)) != 0)
        return rc < 0 ? -1 : 0;
    if (turn->stuck)
        deaf_ends (turn);
    carry_out (turn);
    return more;
}

int64_t hkc_turn_deadline (const struct hkc_turn *turn)
{
    int64_t when = hkc_core_deadline (turn->core);

    if (turn->stuck)
        return turn->retry_ms;
    return turn->untold_ms && turn->untold_ms < when ? turn->untold_ms : when;
}

bool hkc_turn_is_stuck (const struct hkc_turn *turn)
{
    return turn->stuck;
}

/* drain.c - drains and undrains by resource.drain, confirmed */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "coordinator/host/flux/flux.h"

/* There is no compare-and-swap: what is drained, and why, is read just before
 * (resource.status), for all that waits at once.  Plain mode never touches
 * what an admin has drained meanwhile: the request fails and is looked at
 * anew.  What succeeded is committed with the sync flag before it is confirmed
 * to the engine: a broker that is killed would forget it.
 */
enum { ANSWER_S = 60, AGAIN_MOST = 3 };

struct op {
    struct op *next, *prev;
    bool undrain;
    uint64_t n;
    char *life;
    char *host;
    char *reason;
    int again;
    char *targets; /* ranks to ask for */
    enum hkc_drain_result result;
    char *present; /* reason that is there */
    char *error;
};

struct hkc_drain {
    struct op *waiting; /* for the next look */
    struct op *looking; /* the look under way is for them */
    struct op *asked;   /* requests of theirs are under way */
    size_t asked_count;
    struct op *done; /* ok, to be committed */
    bool is_busy;
};

struct look {
    struct hkc_task task;
    char *text;
    struct hk_error err;
};

static void op_free (struct op *op)
{
    free (op->life);
    free (op->host);
    free (op->reason);
    free (op->targets);
    free (op->present);
    free (op->error);
    free (op);
}

static void ops_free (struct op *op)
{
    struct op *next;

    for (; op; op = next) {
        next = op->next;
        op_free (op);
    }
}

/* No order is kept: the engine asks one thing of a host at a time. */
static void push (struct op **list, struct op *op)
{
    op->prev = NULL;
    op->next = *list;
    if (op->next)
        op->next->prev = op;
    *list = op;
}

static void take_out (struct op **list, struct op *op)
{
    if (op->next)
        op->next->prev = op->prev;
    if (op->prev)
        op->prev->next = op->next;
    else
        *list = op->next;
}

static struct op *pop (struct op **list)
{
    struct op *op = *list;

    if (!op)
        return NULL;
    *list = op->next;
    if (op->next)
        op->next->prev = NULL;
    return op;
}

/* To the engine; ends the op. */
static void confirm (struct hkc_flux *x, struct op *op)
{
    struct hkc_note *note = hkc_note_create (op->undrain ? HKC_EV_UNDRAIN_DONE
                                                         : HKC_EV_DRAIN_DONE);

    if (!note)
        abort (); /* the next start asks again */
    note->ev.done.n = op->n;
    note->ev.done.host = hkc_note_text (note, op->host);
    note->ev.done.result = op->result;
    note->ev.done.reason = hkc_note_text (note, op->present);
    note->ev.done.text = hkc_note_text (note, op->error);
    hkc_engine_post (x->engine, note);
    op_free (op);
}

static void fail (struct hkc_flux *x, struct op *op, const char *why)
{
    op->result = HKC_DRAIN_FAILED;
    free (op->error);
    op->error = strdup (why);
    confirm (x, op);
}

static void next_round (struct hkc_flux *x);

/* ---- the sync commit ---- */

static void on_commit (flux_future_t *f, void *arg)
{
    struct hkc_flux *x = arg;
    struct hkc_drain *d = x->drains;
    struct op *op;
    int errnum = 0;

    if (flux_future_get (f, NULL) < 0 && errno != ENOSYS)
        errnum = errno; /* ENOSYS: there is nothing that could be lost */
    hkc_flux_done (x, f);
    while ((op = pop (&d->done))) {
        if (errnum)
            fail (x, op, strerror (errnum));
        else
            confirm (x, op);
    }
    next_round (x);
}

static void commit (struct hkc_flux *x)
{
    flux_kvs_txn_t *txn = flux_kvs_txn_create ();
    flux_future_t *f = NULL;

    if (!txn || !(f = flux_kvs_commit (x->h, NULL, FLUX_KVS_SYNC, txn))
        || hkc_flux_then (x, f, ANSWER_S, on_commit, x) < 0) {
        struct op *op;
        while ((op = pop (&x->drains->done)))
            fail (x, op, "no memory for a commit");
        next_round (x);
    }
    flux_kvs_txn_destroy (txn);
}

/* ---- requests ---- */

static void answered (struct hkc_flux *x)
{
    if (--x->drains->asked_count > 0)
        return;
    if (x->drains->done)
        commit (x);
    else
        next_round (x);
}

static void on_answer (flux_future_t *f, void *arg)
{
    struct hkc_flux *x = arg;
    struct hkc_drain *d = x->drains;
    struct op *op = flux_future_aux_get (f, "op");

    take_out (&d->asked, op);
    if (flux_future_get (f, NULL) == 0) {
        op->result = HKC_DRAIN_OK;
        push (&d->done, op);
    } else if (errno != ETIMEDOUT && ++op->again < AGAIN_MOST)
        push (&d->waiting, op); /* it is not as it was when we looked */
    else
        fail (x, op, future_strerror (f, errno));
    hkc_flux_done (x, f);
    answered (x);
}

static void ask (struct hkc_flux *x, struct op *op)
{
    flux_future_t *f;

    if (op->undrain)
        f = flux_rpc_pack (x->h,
                           "resource.undrain",
                           FLUX_NODEID_ANY,
                           0,
                           "{s:s}",
                           "targets",
                           op->targets);
    else
        f = flux_rpc_pack (x->h,
                           "resource.drain",
                           FLUX_NODEID_ANY,
                           0,
                           "{s:s s:s}",
                           "targets",
                           op->targets,
                           "reason",
                           op->reason);
    x->drains->asked_count++;
    if (!f || flux_future_aux_set (f, "op", op, NULL) < 0
        || hkc_flux_then (x, f, ANSWER_S, on_answer, x) < 0) {
        fail (x, op, strerror (errno));
        answered (x);
        return;
    }
    push (&x->drains->asked, op);
}

/* ---- the look before ---- */

static bool is_ours (const struct op *op, const char *reason)
{
    return reason && !strcmp (reason, op->reason);
}

/* Which of the host's ranks are to be asked for; or the result. */
static void decide (const struct hkc_inventory *inv, struct op *op)
{
    const struct hk_rankset *ranks = hkc_inventory_ranks (inv, op->host);
    struct hk_rankset *ask = hk_rankset_create ();
    const char *present = NULL;
    size_t excluded = 0;

    free (op->targets);
    op->targets = NULL;
    op->result = 0;
    if (!ranks) {
        op->result = op->undrain ? HKC_DRAIN_NOT_DRAINED : HKC_DRAIN_NOT_FOUND;
        hk_rankset_destroy (ask);
        return;
    }
    for (uint32_t r = hk_rankset_first (ranks); r != HK_RANK_NONE;
         r = hk_rankset_next (ranks, r)) {
        const char *reason = hkc_inventory_drained (inv, r);
        if (!op->undrain && hkc_inventory_excluded (inv, r))
            excluded++;
        else if (op->undrain ? is_ours (op, reason) : !reason)
            hk_rankset_add (ask, r);
        else if (reason)
            present = reason;
    }
    if (!hk_rankset_is_empty (ask))
        op->targets = hk_rankset_encode (ask);
    else if (present) {
        op->result = op->undrain ? HKC_DRAIN_CHANGED : HKC_DRAIN_ALREADY;
        free (op->present);
        op->present = strdup (present);
    } else if (op->undrain)
        op->result = HKC_DRAIN_NOT_DRAINED;
    else
        op->result = excluded ? HKC_DRAIN_EXCLUDED : HKC_DRAIN_NOT_FOUND;
    hk_rankset_destroy (ask);
}

static void look_free (struct hkc_task *task)
{
    struct look *look = (struct look *)task;

    free (look->text);
    free (look);
}

/* The clerk. The reactor leaves the list alone while the look is under way. */
static void look_work (struct hkc_flux *x, struct hkc_task *task)
{
    struct look *look = (struct look *)task;
    struct hkc_inventory *inv = NULL;

    if (!look->text || !(inv = hkc_inventory_decode (look->text, &look->err)))
        return;
    for (struct op *op = x->drains->looking; op; op = op->next)
        decide (inv, op);
    hkc_inventory_destroy (inv);
}

/* S5: an undrain is for the life that it was decided in. */
static bool is_stale (const struct hkc_flux *x, const struct op *op)
{
    return op->undrain && strcmp (op->life, x->sched.life) != 0;
}

static void look_done (struct hkc_flux *x, struct hkc_task *task)
{
    struct look *look = (struct look *)task;
    struct hkc_drain *d = x->drains;
    struct op *op;

    d->asked_count = 1; /* so that nothing is over before all were asked */
    while ((op = pop (&d->looking))) {
        if (is_stale (x, op))
            op_free (op); /* the new life decides anew */
        else if (look->err.text[0])
            fail (x, op, look->err.text);
        else if (op->targets)
            ask (x, op);
        else
            confirm (x, op);
    }
    answered (x);
}

static void on_status (flux_future_t *f, void *arg)
{
    struct hkc_flux *x = arg;
    struct look *look = calloc (1, sizeof (*look));
    const char *text;

    if (!look)
        abort ();
    look->task.work_f = look_work;
    look->task.done_f = look_done;
    look->task.free_f = look_free;
    if (flux_rpc_get (f, &text) < 0 || !text)
        snprintf (look->err.text,
                  sizeof (look->err.text),
                  "resource.status: %s",
                  future_strerror (f, errno));
    else if (!(look->text = strdup (text)))
        snprintf (look->err.text, sizeof (look->err.text), "out of memory");
    hkc_flux_done (x, f);
    hkc_clerk_put (x, &look->task);
}

static void next_round (struct hkc_flux *x)
{
    struct hkc_drain *d = x->drains;
    flux_future_t *f;

    d->is_busy = d->waiting != NULL;
    if (!d->is_busy)
        return;
    d->looking = d->waiting;
    d->waiting = NULL;
    f = flux_rpc (x->h, "resource.status", NULL, FLUX_NODEID_ANY, 0);
    if (!f || hkc_flux_then (x, f, ANSWER_S, on_status, x) < 0) {
        struct op *op;
        while ((op = pop (&d->looking)))
            fail (x, op, "resource.status cannot be asked");
        d->is_busy = false; /* the engine asks again */
    }
}

void hkc_drain_ask (struct hkc_flux *x,
                    bool undrain,
                    uint64_t n,
                    const char *life,
                    const char *host,
                    const char *reason)
{
    struct op *op = calloc (1, sizeof (*op));

    if (!op || !(op->life = strdup (life)) || !(op->host = strdup (host))
        || !(op->reason = strdup (reason)))
        abort ();
    op->undrain = undrain;
    op->n = n;
    push (&x->drains->waiting, op);
    if (!x->drains->is_busy)
        next_round (x);
}

int hkc_drains_open (struct hkc_flux *x)
{
    return (x->drains = calloc (1, sizeof (*x->drains))) ? 0 : -1;
}

void hkc_drains_close (struct hkc_flux *x)
{
    if (!x->drains)
        return;
    ops_free (x->drains->waiting);
    ops_free (x->drains->looking);
    ops_free (x->drains->asked);
    ops_free (x->drains->done);
    free (x->drains);
    x->drains = NULL;
}

/* blind.c - the store cannot be opened: what is held is not known */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "coordinator/host/flux/flux.h"

/* A hello that is not answered keeps the instance from starting, and one that
 * is answered without what we hold would let jobs start there.  So every rank
 * that is not drained is drained first, with one reason, and only then is
 * job-manager's own answer given.  When the store is open, ranks that are not
 * held are undrained; of held ones the core takes the drain for its own, whose
 * reason it is.
 */
enum { ANSWER_S = 60 };

struct look {
    struct hkc_task task;
    bool undrain;
    zhashx_t *held; /* host names, for an undrain; borrowed */
    char *text;
    char *targets; /* "": none */
    struct hk_error err;
};

static void look_free (struct hkc_task *task)
{
    struct look *look = (struct look *)task;

    free (look->text);
    free (look->targets);
    free (look);
}

static bool is_target (const struct look *look,
                       const struct hkc_inventory *inv,
                       uint32_t rank)
{
    const char *reason = hkc_inventory_drained (inv, rank);

    if (!look->undrain)
        return !reason && !hkc_inventory_excluded (inv, rank);
    return reason && !strcmp (reason, HKC_REASON_UNTOLD)
           && !zhashx_lookup (look->held, hkc_inventory_host (inv, rank));
}

/* The clerk. */
static void look_work (struct hkc_flux *x, struct hkc_task *task)
{
    struct look *look = (struct look *)task;
    struct hkc_inventory *inv;
    struct hk_rankset *targets;
    const struct hk_rankset *all;

    (void)x;
    if (!look->text || !(inv = hkc_inventory_decode (look->text, &look->err)))
        return;
    targets = hk_rankset_create ();
    all = hkc_inventory_all (inv);
    for (uint32_t r = hk_rankset_first (all); r != HK_RANK_NONE;
         r = hk_rankset_next (all, r))
        if (is_target (look, inv, r))
            hk_rankset_add (targets, r);
    look->targets = hk_rankset_encode (targets);
    hk_rankset_destroy (targets);
    hkc_inventory_destroy (inv);
}

static void on_drained (flux_future_t *f, void *arg)
{
    struct hkc_flux *x = arg;

    x->is_blinding = false;
    if (flux_future_get (f, NULL) < 0)
        flux_log (x->h,
                  LOG_ERR,
                  "hk: every node was to be drained: %s",
                  future_strerror (f, errno));
    else
        hkc_sched_blind (x);
    hkc_flux_done (x, f);
}

static void on_undrained (flux_future_t *f, void *arg)
{
    struct hkc_flux *x = arg;

    x->is_blinding = false;
    if (flux_future_get (f, NULL) < 0)
        flux_log (x->h,
                  LOG_ERR,
                  "hk: nodes are still drained (%s): %s",
                  HKC_REASON_UNTOLD,
                  future_strerror (f, errno));
    else
        zhashx_destroy (&x->blind_held);
    hkc_flux_done (x, f);
}

static void ask (struct hkc_flux *x, struct look *look)
{
    flux_future_t *f;

    if (look->undrain)
        f = flux_rpc_pack (x->h,
                           "resource.undrain",
                           FLUX_NODEID_ANY,
                           0,
                           "{s:s}",
                           "targets",
                           look->targets);
    else
        f = flux_rpc_pack (x->h,
                           "resource.drain",
                           FLUX_NODEID_ANY,
                           0,
                           "{s:s s:s}",
                           "targets",
                           look->targets,
                           "reason",
                           HKC_REASON_UNTOLD);
    flux_log (x->h,
              LOG_WARNING,
              "hk: %s ranks %s: %s",
              look->undrain ? "undraining" : "draining",
              look->targets,
              HKC_REASON_UNTOLD);
    if (!f
        || hkc_flux_then (
               x, f, ANSWER_S, look->undrain ? on_undrained : on_drained, x)
               < 0)
        x->is_blinding = false; /* the next tick tries again */
}

static void look_done (struct hkc_flux *x, struct hkc_task *task)
{
    struct look *look = (struct look *)task;

    if (!look->undrain && x->engine) {
        x->is_blinding = false; /* it can see again */
        return;
    }
    if (look->targets && *look->targets) {
        ask (x, look);
        return;
    }
    x->is_blinding = false;
    if (!look->targets)
        flux_log (x->h, LOG_ERR, "hk: %s", look->err.text);
    else if (look->undrain)
        zhashx_destroy (&x->blind_held);
    else
        hkc_sched_blind (x);
}

static void on_status (flux_future_t *f, void *arg)
{
    struct hkc_flux *x = arg;
    struct look *look = flux_future_aux_get (f, "look");
    const char *text;

    if (flux_rpc_get (f, &text) == 0 && text)
        look->text = strdup (text);
    else
        hk_error_set (&look->err,
                      errno,
                      "resource.status: %s",
                      future_strerror (f, errno));
    hkc_flux_done (x, f);
    hkc_clerk_put (x, &look->task);
}

static void start (struct hkc_flux *x, bool undrain)
{
    struct look *look = calloc (1, sizeof (*look));
    flux_future_t *f;

    if (!look)
        abort ();
    look->task.work_f = look_work;
    look->task.done_f = look_done;
    look->task.free_f = look_free;
    look->undrain = undrain;
    look->held = x->blind_held;
    x->is_blinding = true;
    f = flux_rpc (x->h, "resource.status", NULL, FLUX_NODEID_ANY, 0);
    if (!f || flux_future_aux_set (f, "look", look, NULL) < 0
        || hkc_flux_then (x, f, ANSWER_S, on_status, x) < 0) {
        x->is_blinding = false;
        look_free (&look->task);
    }
}

void hkc_blind_tick (struct hkc_flux *x)
{
    if (x->is_blinding)
        return;
    if (x->blind_held)
        start (x, true); /* until it has succeeded */
    else if (x->sched.hello && !x->engine && x->open_failed)
        start (x, false);
}

static int hold_hosts (void *arg, const struct hkc_alloc_view *a)
{
    zhashx_t *held = arg;
    struct hk_resource *res;
    struct hk_error err;

    if (!a->begun || !(res = hk_resource_decode (a->R, &err)))
        return 0; /* what is recorded its active job has */
    for (uint32_t r = hk_rankset_first (a->ranks); r != HK_RANK_NONE;
         r = hk_rankset_next (a->ranks, r))
        if (!hk_rankset_has (a->done, r))
            zhashx_insert (held, hk_resource_host (res, r), held);
    hk_resource_destroy (res);
    return 0;
}

void hkc_blind_end (struct hkc_flux *x, struct hkc_engine *engine)
{
    if (x->blind_held)
        return; /* opened before and not started: it holds the same */
    x->blind_held = zhashx_new ();
    hkc_engine_each_alloc (engine, hold_hosts, x->blind_held);
    if (!x->is_blinding)
        start (x, true);
}

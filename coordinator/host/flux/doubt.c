/* doubt.c - a scheduler that was online before us, and may be gone */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include "coordinator/host/flux/flux.h"
#include "coordinator/host/flux/sched.h"

/* Who it is was said in a hello that we did not hear, so that any disconnect
 * may be its own.  Then it is asked for what it holds, and no free is sent
 * until it has answered: one that is new says hello before it answers
 * anything, and that would be heard first.
 */
enum { ANSWER_S = 60 };

struct waiting {
    uint64_t n;
    flux_jobid_t id;
    json_t *R;
    bool final;
};

static void waiting_free (void **item)
{
    struct waiting *w = *item;

    if (w)
        json_decref (w->R);
    free (w);
    *item = NULL;
}

bool hkc_doubt_keeps (
    struct hkc_flux *x, uint64_t n, flux_jobid_t id, json_t *R, bool final)
{
    struct waiting *w;

    if (!x->sched.doubts)
        return false;
    if (!(w = calloc (1, sizeof (*w))))
        abort ();
    w->n = n;
    w->id = id;
    w->R = json_incref (R);
    w->final = final;
    zlistx_add_end (x->sched.waiting, w);
    return true;
}

static void send_waiting (struct hkc_flux *x)
{
    struct waiting *w;

    while ((w = zlistx_first (x->sched.waiting))) {
        hkc_sched_send_free (x, w->n, w->id, w->R, w->final);
        zlistx_delete (x->sched.waiting, zlistx_cursor (x->sched.waiting));
    }
}

static void ask (struct hkc_flux *x);

static void on_answer (flux_future_t *f, void *arg)
{
    struct hkc_flux *x = arg;
    bool is_current = hkc_flux_label_of (f) == x->sched.tag;
    int errnum = flux_future_get (f, NULL) < 0 ? errno : 0;

    hkc_flux_done (x, f);
    if (!is_current || !x->sched.doubts)
        return; /* its life has ended meanwhile */
    if (errnum && errnum != ETIMEDOUT)
        hkc_sched_end (x); /* there is none */
    else if (errnum || x->sched.doubts > 1)
        ask (x);
    else {
        x->sched.doubts = 0;
        send_waiting (x);
    }
}

static void ask (struct hkc_flux *x)
{
    flux_future_t *f = flux_rpc (
        x->h, "sched.resource-status", NULL, FLUX_NODEID_ANY, 0);

    x->sched.doubts = 1;
    if (!f || hkc_flux_label (f, x->sched.tag) < 0
        || hkc_flux_then (x, f, ANSWER_S, on_answer, x) < 0)
        abort (); /* no free would ever be sent; a restart settles it */
}

void hkc_doubt (struct hkc_flux *x)
{
    if (x->sched.state != HKC_SCHED_ACCOUNT
        && x->sched.state != HKC_SCHED_READY)
        return;
    if (x->sched.doubts++ == 0)
        ask (x);
}

void hkc_doubt_end (struct hkc_flux *x)
{
    x->sched.doubts = 0;
    zlistx_purge (x->sched.waiting);
}

int hkc_doubt_open (struct hkc_flux *x)
{
    if (!(x->sched.waiting = zlistx_new ()))
        return -1;
    zlistx_set_destructor (x->sched.waiting, waiting_free);
    return 0;
}

void hkc_doubt_close (struct hkc_flux *x)
{
    zlistx_destroy (&x->sched.waiting);
}

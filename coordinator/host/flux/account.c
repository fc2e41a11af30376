/* account.c - a scheduler that is ready, and what it really holds */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "coordinator/host/flux/flux.h"
#include "coordinator/host/flux/override.h"
#include "coordinator/host/flux/sched.h"

enum { ACCOUNT_S = 60 };

static void work_free (struct hkc_task *task)
{
    struct hkc_sched_work *w = (struct hkc_sched_work *)task;

    for (size_t i = 0; i < w->taken_count; i++)
        free (w->taken[i]);
    free (w->taken);
    hk_hostlist_destroy (w->hosts);
    free (w->text);
    free (w->account);
    free (w);
}

struct hkc_sched_work *hkc_sched_work (struct hkc_flux *x, flux_future_t *f)
{
    struct hkc_sched_work *w = calloc (1, sizeof (*w));
    const char *text;

    if (!w)
        abort ();
    w->task.free_f = work_free;
    w->tag = x->sched.tag;
    if (flux_rpc_get (f, &text) == 0 && text)
        w->text = strdup (text);
    else
        snprintf (
            w->error, sizeof (w->error), "%s", future_strerror (f, errno));
    return w;
}

static void ready_post (struct hkc_flux *x, struct hkc_sched_work *w)
{
    struct hkc_note *note = hkc_sched_note (x, HKC_EV_SCHED_READY);

    if (w->is_online && hkc_sched_active (x, note) < 0)
        abort ();
    note->account_text = w->account;
    w->account = NULL;
    x->sched.state = HKC_SCHED_READY;
    hkc_engine_post (x->engine, note);
    hkc_sched_begins (x);
    hkc_jobs_advance (x);
}

static void account_done (struct hkc_flux *x, struct hkc_task *task)
{
    struct hkc_sched_work *w = (struct hkc_sched_work *)task;

    if (w->tag != x->sched.tag || x->sched.state != HKC_SCHED_ACCOUNT)
        return;
    if (w->error[0])
        flux_log (x->h,
                  LOG_ERR,
                  "hk: what the scheduler holds is not known (%s): drains for "
                  "its restart stay until their ranks are done",
                  w->error);
    ready_post (x, w);
}

/* The clerk: what the scheduler holds beyond active jobs. */
static void account_work (struct hkc_flux *x, struct hkc_task *task)
{
    struct hkc_sched_work *w = (struct hkc_sched_work *)task;
    struct hkc_count *count = hkc_count_create ();
    struct hk_error err = { "out of memory" };
    json_t *o = w->text ? json_loads (w->text, 0, NULL) : NULL;
    json_t *R = NULL, *rest = NULL;

    (void)x;
    if (w->text
        && (!count
            || json_unpack (o, "{s:o}", "allocated", &R)
            /* Fluxion says null where it holds nothing */
            || (!json_is_null (R) && hkc_count_add (count, R, NULL, &err) < 0)))
        snprintf (w->error, sizeof (w->error), "%s", err.text);
    for (size_t i = 0; R && i < w->taken_count; i++) {
        json_t *taken = json_loads (w->taken[i], 0, NULL);
        if (hkc_count_remove (count, taken, &err) < 0)
            snprintf (w->error, sizeof (w->error), "%s", err.text);
        json_decref (taken);
    }
    if (!w->error[0] && w->text && hkc_count_is_empty (count))
        w->account = strdup ("");
    else if (!w->error[0] && w->text && (rest = hkc_count_R (count)))
        w->account = json_dumps (rest, JSON_COMPACT);
    json_decref (rest);
    json_decref (o);
    hkc_count_destroy (count);
}

/* By the order of messages every alloc that the account holds was heard. */
static void taken_set (struct hkc_flux *x, struct hkc_sched_work *w)
{
    w->taken = calloc (zhashx_size (x->jobs) + 1, sizeof (*w->taken));
    if (!w->taken)
        abort ();
    for (struct hkc_job *job = zhashx_first (x->jobs); job;
         job = zhashx_next (x->jobs)) {
        if (!hkc_job_is_counted (job) && !hkc_job_is_between (job))
            continue;
        if (!(w->taken[w->taken_count++] = strdup (job->R)))
            abort ();
    }
}

static void on_account (flux_future_t *f, void *arg)
{
    struct hkc_flux *x = arg;
    struct hkc_sched_work *w = hkc_sched_work (x, f);
    bool is_online = flux_future_aux_get (f, "online") != NULL;

    x->sched.account = NULL;
    hkc_flux_done (x, f);
    if (is_online) {
        /* no scheduler: its hello comes; a hello came: that is the way */
        if (!w->text
            || (x->sched.state != HKC_SCHED_NONE
                && x->sched.state != HKC_SCHED_BLIND)) {
            w->task.free_f (&w->task);
            return;
        }
        hkc_sched_life (x);
        w->tag = x->sched.tag;
        w->is_online = true;
        x->sched.state = HKC_SCHED_ACCOUNT;
    }
    taken_set (x, w);
    w->task.work_f = account_work;
    w->task.done_f = account_done;
    hkc_clerk_put (x, &w->task);
}

void hkc_account_ask (struct hkc_flux *x, bool is_online)
{
    flux_future_t *f = flux_rpc (
        x->h, "sched.resource-status", NULL, FLUX_NODEID_ANY, 0);

    if (!f || (is_online && flux_future_aux_set (f, "online", x, NULL) < 0)
        || hkc_flux_then (x, f, ACCOUNT_S, on_account, x) < 0)
        hkc_flux_trouble (
            x, "cannot ask what the scheduler holds: %s", strerror (errno));
    else
        x->sched.account = f;
}

void hkc_on_ready (flux_t *h,
                   flux_msg_handler_t *mh,
                   const flux_msg_t *msg,
                   void *arg)
{
    struct hkc_flux *x = arg;

    (void)h;
    (void)mh;
    if (hkc_is_probe (x, msg))
        return;
    if (x->sched.state == HKC_SCHED_ANSWERED) {
        x->sched.state = HKC_SCHED_ACCOUNT;
        hkc_sched_sender (x, msg);
        hkc_account_ask (x, false);
    } else if (x->sched.state != HKC_SCHED_BLIND)
        flux_log (x->h, LOG_ERR, "hk: ready without a hello");
    hkc_pass_on (x, msg);
}

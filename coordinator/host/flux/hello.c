/* hello.c - the scheduler's lives: hello, ready, what it really holds, gone */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "proto/identity.h"
#include "proto/log.h"
#include "coordinator/host/flux/flux.h"
#include "coordinator/host/flux/job.h"
#include "coordinator/host/flux/override.h"
#include "coordinator/host/flux/sched.h"

/* A hello goes this way: which host has which rank (resource.status), then to
 * the engine, whose entries are answered here; then the request is passed on
 * to job-manager, which tells its active jobs and ends the answer.  From its
 * arrival until then no job gets our flag: job-manager would leave it out, and
 * so would the engine, which was told that it is active.  The ready is passed
 * on at once; but the engine hears of it with the scheduler's own account, so
 * that nothing is freed that the scheduler may have lost.  Allocations that
 * begin in between are told to the engine after that: the scheduler counts the
 * whole of them.
 */
enum { INVENTORY_S = 30 };

/* A hello that is passed on is still to be answered by job-manager: that it was
 * is seen by the scheduler's being ready.
 */
bool hkc_sched_may_flag (const struct hkc_flux *x)
{
    return x->sched.state != HKC_SCHED_HELLO
           && x->sched.state != HKC_SCHED_ANSWERED;
}

/* ---- allocations that begin ---- */

static bool is_under_way (const struct hkc_flux *x)
{
    return x->sched.state == HKC_SCHED_HELLO
           || x->sched.state == HKC_SCHED_ANSWERED
           || x->sched.state == HKC_SCHED_ACCOUNT;
}

void hkc_sched_begin (struct hkc_flux *x, uint64_t alloc)
{
    uint64_t *copy;

    if (!is_under_way (x)) {
        hkc_job_post (x, HKC_EV_JOB_BEGIN, alloc);
        return;
    }
    if (!(copy = malloc (sizeof (*copy))))
        abort ();
    *copy = alloc;
    zlistx_add_end (x->sched.begins, copy);
}

void hkc_sched_begins (struct hkc_flux *x)
{
    uint64_t *alloc;

    while ((alloc = zlistx_first (x->sched.begins))) {
        hkc_job_post (x, HKC_EV_JOB_BEGIN, *alloc);
        zlistx_delete (x->sched.begins, zlistx_cursor (x->sched.begins));
    }
}

/* ---- hello ---- */

static void hello_drop (struct hkc_sched *s)
{
    flux_msg_decref (s->hello);
    s->hello = NULL;
    s->is_posted = false;
}

/* Ranks and ids of jobs that are not ours to tell. */
int hkc_sched_active (struct hkc_flux *x, struct hkc_note *note)
{
    size_t n = 0;

    note->jobs = calloc (zhashx_size (x->jobs) + 1, sizeof (*note->jobs));
    if (!note->jobs || !(note->active = hk_rankset_create ()))
        return -1;
    for (struct hkc_job *job = zhashx_first (x->jobs); job;
         job = zhashx_next (x->jobs)) {
        if (!hkc_job_is_counted (job) && !hkc_job_is_between (job))
            continue;
        note->jobs[n++] = job->id;
        hk_rankset_add_set (note->active, job->ranks);
    }
    note->ev.sched.active = note->active;
    note->ev.sched.jobs = note->jobs;
    note->ev.sched.jobs_count = n;
    return 0;
}

struct hkc_note *hkc_sched_note (struct hkc_flux *x, enum hkc_event_kind kind)
{
    struct hkc_note *note = hkc_note_create (kind);

    if (!note || !(note->ev.sched.life = hkc_note_text (note, x->sched.life)))
        abort (); /* the next start of ours is told by the next hello */
    return note;
}

static void hello_post (struct hkc_flux *x)
{
    struct hkc_note *note = hkc_sched_note (x, HKC_EV_SCHED_HELLO);

    if (hkc_sched_active (x, note) < 0)
        abort ();
    note->ev.sched.partial_ok = x->sched.partial_ok;
    note->ev.sched.tag = x->sched.tag;
    x->sched.is_posted = true;
    hkc_engine_post (x->engine, note);
}

static void hosts_post (struct hkc_flux *x, struct hkc_sched_work *w)
{
    struct hkc_note *note = hkc_note_create (HKC_EV_HOSTS);

    if (!note)
        abort ();
    note->hosts = w->hosts;
    note->ev.inventory.hosts = w->hosts;
    w->hosts = NULL;
    hkc_engine_post (x->engine, note);
}

static void inventory_done (struct hkc_flux *x, struct hkc_task *task)
{
    struct hkc_sched_work *w = (struct hkc_sched_work *)task;

    if (!x->sched.hello || w->tag != x->sched.tag || x->sched.is_posted)
        return;
    if (!w->hosts)
        flux_log (x->h,
                  LOG_ERR,
                  "hk: hello: which host has which rank is not known (%s): R "
                  "is believed",
                  w->error);
    hosts_post (x, w);
    hello_post (x);
}

/* The clerk: rank -> host from the R of the resource module. */
static void inventory_work (struct hkc_flux *x, struct hkc_task *task)
{
    struct hkc_sched_work *w = (struct hkc_sched_work *)task;
    struct hk_error err = { "" };

    (void)x;
    if (w->text)
        w->hosts = hkc_inventory_hosts (w->text, &err);
    if (!w->hosts && err.text[0])
        snprintf (w->error, sizeof (w->error), "%s", err.text);
}

static void on_inventory (flux_future_t *f, void *arg)
{
    struct hkc_flux *x = arg;
    struct hkc_sched_work *w = hkc_sched_work (x, f);

    w->task.work_f = inventory_work;
    w->task.done_f = inventory_done;
    hkc_flux_done (x, f);
    hkc_clerk_put (x, &w->task);
}

static void hello_start (struct hkc_flux *x)
{
    flux_future_t *f = flux_rpc (
        x->h, "resource.status", NULL, FLUX_NODEID_ANY, 0);

    if (!f || hkc_flux_then (x, f, INVENTORY_S, on_inventory, x) < 0)
        hkc_flux_trouble (x, "hello: %s", strerror (errno));
}

void hkc_sched_life (struct hkc_flux *x)
{
    hk_random_id (x->sched.life);
    x->sched.tag++;
}

void hkc_sched_sender (struct hkc_flux *x, const flux_msg_t *msg)
{
    const char *sender = flux_msg_route_first (msg);

    free (x->sched.sender);
    x->sched.sender = sender ? strdup (sender) : NULL;
}

/* A life that ends with another's hello: job-manager may not have heard of it
 * yet.
 */
void hkc_sched_end (struct hkc_flux *x)
{
    struct hkc_sched *s = &x->sched;

    if (s->state == HKC_SCHED_NONE)
        return;
    hello_drop (s);
    hkc_doubt_end (x);
    s->state = HKC_SCHED_NONE;
    free (s->sender);
    s->sender = NULL;
    if (x->engine) {
        struct hkc_note *note = hkc_note_create (HKC_EV_SCHED_GONE);
        if (!note)
            abort ();
        hkc_engine_post (x->engine, note);
        hkc_sched_begins (x);
    }
    hkc_jobs_advance (x);
}

void hkc_on_hello (flux_t *h,
                   flux_msg_handler_t *mh,
                   const flux_msg_t *msg,
                   void *arg)
{
    struct hkc_flux *x = arg;
    int partial_ok = 0;

    (void)h;
    (void)mh;
    if (hkc_is_probe (x, msg))
        return;
    if (!flux_msg_is_streaming (msg)) {
        hkc_pass_on (x, msg); /* it knows what to say to that */
        return;
    }
    hkc_sched_end (x);
    hkc_sched_life (x);
    flux_request_unpack (msg, NULL, "{s?b}", "partial-ok", &partial_ok);
    x->sched.partial_ok = partial_ok;
    x->sched.hello = flux_msg_incref (msg);
    x->sched.state = HKC_SCHED_HELLO;
    x->sched.is_posted = false;
    hkc_sched_sender (x, msg);
    hkc_status_fresh (x);
    if (x->engine && !x->looking)
        hello_start (x);
    else
        flux_log (x->h, LOG_INFO, "hk: hello waits: %s", x->trouble);
}

void hkc_sched_entry (struct hkc_flux *x,
                      uint64_t tag,
                      flux_jobid_t id,
                      int64_t priority,
                      uint32_t userid,
                      double t_submit,
                      const char *free_ranks)
{
    if (!x->sched.hello || tag != x->sched.tag)
        return;
    if (flux_respond_pack (x->h,
                           x->sched.hello,
                           "{s:I s:I s:I s:f s:s*}",
                           "id",
                           (json_int_t)id,
                           "priority",
                           (json_int_t)priority,
                           "userid",
                           (json_int_t)userid,
                           "t_submit",
                           t_submit,
                           "free",
                           free_ranks)
        < 0)
        flux_log_error (x->h, "hk: hello: respond");
}

void hkc_sched_blind (struct hkc_flux *x)
{
    if (!x->sched.hello || x->engine)
        return;
    x->sched.state = HKC_SCHED_BLIND;
    hkc_pass_on (x, x->sched.hello);
    hello_drop (&x->sched);
}

/* Flagged by us and not yet freed: job-manager leaves them out. */
static void tell_between (struct hkc_flux *x)
{
    for (struct hkc_job *job = zhashx_first (x->jobs); job;
         job = zhashx_next (x->jobs))
        if (hkc_job_is_between (job))
            hkc_sched_entry (x,
                             x->sched.tag,
                             job->id,
                             job->priority,
                             job->userid,
                             job->t_submit,
                             NULL);
}

void hkc_sched_told (struct hkc_flux *x, uint64_t tag)
{
    if (!x->sched.hello || tag != x->sched.tag)
        return;
    tell_between (x);
    x->sched.state = HKC_SCHED_ANSWERED;
    hkc_pass_on (x, x->sched.hello);
    hello_drop (&x->sched);
}

void hkc_on_disconnect (flux_t *h,
                        flux_msg_handler_t *mh,
                        const flux_msg_t *msg,
                        void *arg)
{
    struct hkc_flux *x = arg;
    const char *sender;

    (void)h;
    (void)mh;
    if (hkc_is_probe (x, msg))
        return;
    sender = flux_msg_route_first (msg);
    if (!x->sched.sender)
        hkc_doubt (x);
    else if (sender && !strcmp (sender, x->sched.sender))
        hkc_sched_end (x);
    hkc_pass_on (x, msg);
}

void hkc_sched_send_free (
    struct hkc_flux *x, uint64_t n, flux_jobid_t id, json_t *R, bool final)
{
    struct hkc_note *note;
    flux_msg_t *msg;

    if (!(msg = flux_request_encode ("sched.free", NULL))
        || flux_msg_pack (msg,
                          "{s:I s:O s:b}",
                          "id",
                          (json_int_t)id,
                          "R",
                          R,
                          "final",
                          final)
               < 0
        || flux_send (x->h, msg, 0) < 0
        || !(note = hkc_note_create (HKC_EV_FREE_OK))) {
        /* the ranks stay allocated: until the scheduler's next hello */
        flux_log_error (x->h, "hk: sched.free");
        flux_msg_destroy (msg);
        return;
    }
    x->frees_sent++;
    note->ev.done.n = n;
    hkc_engine_post (x->engine, note);
    flux_msg_destroy (msg);
}

void hkc_sched_free (struct hkc_flux *x,
                     uint64_t n,
                     const char *life,
                     flux_jobid_t id,
                     json_t *R,
                     bool final)
{
    /* S5: what is for another life is dropped; that one's end settled it */
    if (x->sched.state == HKC_SCHED_READY && !strcmp (life, x->sched.life)
        && !hkc_doubt_keeps (x, n, id, R, final))
        hkc_sched_send_free (x, n, id, R, final);
}

/* ---- */

void hkc_sched_opened (struct hkc_flux *x)
{
    if (!x->engine || x->looking)
        return;
    if (x->sched.hello && !x->sched.is_posted)
        hello_start (x);
    else if ((x->sched.state == HKC_SCHED_NONE
              || x->sched.state == HKC_SCHED_BLIND)
             && !x->sched.account)
        hkc_account_ask (x, true);
}

static void free_item (void **item)
{
    free (*item);
    *item = NULL;
}

int hkc_sched_open (struct hkc_flux *x)
{
    if (!(x->sched.begins = zlistx_new ()))
        return -1;
    zlistx_set_destructor (x->sched.begins, free_item);
    return hkc_doubt_open (x);
}

void hkc_sched_close (struct hkc_flux *x)
{
    hello_drop (&x->sched);
    free (x->sched.sender);
    zlistx_destroy (&x->sched.begins);
    hkc_doubt_close (x);
}

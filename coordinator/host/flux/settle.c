/* settle.c - what became of jobs while we were away */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "proto/log.h"
#include "coordinator/host/flux/flux.h"
#include "coordinator/host/flux/job.h"

enum { LOOKUP_S = 30, LOOK_AGAIN_S = 1 };

void hkc_job_is_purged (struct hkc_flux *x, flux_jobid_t id, double t_submit)
{
    struct hkc_note *note;

    if (!x->engine)
        return; /* it is asked about when the engine is opened */
    if (!(note = hkc_note_create (HKC_EV_JOB_PURGED)))
        abort ();
    note->ev.purged.jobid = id;
    note->ev.purged.t_submit = t_submit;
    hkc_engine_post (x->engine, note);
}

/* ---- what an eventlog says ---- */

struct past {
    int epilogs; /* of earlier starts of ours, not finished */
    bool flagged;
    bool freed;
};

static bool is_older (const struct hkc_flux *x, const char *description)
{
    return !strncmp (description, hkc_epilog_prefix, strlen (hkc_epilog_prefix))
           && strcmp (description, x->epilog) != 0;
}

/* A flag that the job's user asked for is in the jobspec, and such a job is
 * not looked at here.
 */
static void read_eventlog (const struct hkc_flux *x,
                           const char *log,
                           struct past *past)
{
    for (const char *line = log; line && *line;) {
        const char *end = strchr (line, '\n');
        size_t len = end ? (size_t)(end - line) : strlen (line);
        json_t *o = json_loadb (line, len, 0, NULL);
        const char *name = "", *description = "";
        json_unpack (o,
                     "{s:s s?{s?s}}",
                     "name",
                     &name,
                     "context",
                     "description",
                     &description);
        past->flagged |= hkc_job_flags (o);
        past->freed |= !strcmp (name, "free");
        if (is_older (x, description))
            past->epilogs += !strcmp (name, "epilog-start")
                             - !strcmp (name, "epilog-finish");
        json_decref (o);
        line = end ? end + 1 : NULL;
    }
}

/* A look at an eventlog: of a job of ours, or for an allocation. */
struct look {
    flux_jobid_t id;
    uint64_t alloc; /* 0: of a job of ours */
};

static void look_start (struct hkc_flux *x, flux_jobid_t id, uint64_t alloc);

static void on_look_again (flux_future_t *f, void *arg)
{
    struct look look = *(struct look *)flux_future_aux_get (f, "look");

    hkc_flux_done (arg, f);
    look_start (arg, look.id, look.alloc);
}

static int look_then (struct hkc_flux *x,
                      flux_future_t *f,
                      const struct look *look,
                      double timeout_s,
                      flux_continuation_f cb)
{
    struct look *copy = malloc (sizeof (*copy));

    if (!copy || flux_future_aux_set (f, "look", copy, free) < 0) {
        free (copy);
        flux_future_destroy (f);
        return -1;
    }
    *copy = *look;
    return hkc_flux_then (x, f, timeout_s, cb, x);
}

/* As long as it cannot be read the job is held, and a hello waits. */
static void look_again (struct hkc_flux *x, const struct look *look)
{
    flux_future_t *f = flux_future_create (NULL, NULL); /* never fulfilled */

    flux_log_error (x->h, "hk: eventlog of %ju", (uintmax_t)look->id);
    if (!f)
        abort ();
    flux_future_set_flux (f, x->h);
    if (look_then (x, f, look, LOOK_AGAIN_S, on_look_again) < 0)
        abort ();
}

static void job_looked (struct hkc_flux *x,
                        struct hkc_job *job,
                        const struct past *past)
{
    job->looking = false;
    job->epilogs += past->epilogs;
    if (past->freed) /* what was recorded of it is settled as such */
        hkc_job_pass (x, job);
    else if (past->flagged) {
        /* job-manager does not tell of it: do we hold it, or is it done? */
        job->is_ours = job->asking = true;
        hkc_job_advance (x, job);
        return;
    }
    hkc_job_advance (x, job);
    hkc_jobs_looked (x);
}

/* Recorded, and its job has ended: it is ours if it was freed after our flag.
 * One that was not freed yet is armed again by its job.
 */
static void alloc_looked (struct hkc_flux *x,
                          const struct look *look,
                          const struct past *past)
{
    uint64_t id = look->id;
    bool is_active = zhashx_lookup (x->jobs, &id) != NULL;

    if (x->engine && past->freed && past->flagged)
        hkc_job_post (x, HKC_EV_JOB_BEGIN, look->alloc);
    else if (x->engine && (past->freed || !is_active))
        hkc_job_post (x, HKC_EV_JOB_DROP, look->alloc);
    hkc_jobs_looked (x);
}

static void on_eventlog (flux_future_t *f, void *arg)
{
    struct hkc_flux *x = arg;
    struct look look = *(struct look *)flux_future_aux_get (f, "look");
    uint64_t id = look.id;
    struct hkc_job *job = zhashx_lookup (x->jobs, &id);
    struct past past = { 0 };
    const char *log;

    if (!look.alloc && (!job || !job->looking))
        ; /* it has ended meanwhile */
    else if (flux_kvs_lookup_get (f, &log) < 0)
        look_again (x, &look);
    else {
        read_eventlog (x, log, &past);
        if (look.alloc)
            alloc_looked (x, &look, &past);
        else
            job_looked (x, job, &past);
    }
    hkc_flux_done (x, f);
}

static void look_start (struct hkc_flux *x, flux_jobid_t id, uint64_t alloc)
{
    struct look look = { .id = id, .alloc = alloc };
    char key[64];
    flux_future_t *f;

    if (flux_job_kvs_key (key, sizeof (key), id, "eventlog") < 0
        || !(f = flux_kvs_lookup (x->h, NULL, 0, key))
        || look_then (x, f, &look, LOOKUP_S, on_eventlog) < 0)
        look_again (x, &look);
}

void hkc_job_look (struct hkc_flux *x, struct hkc_job *job)
{
    if (!job->looking)
        x->looking++;
    job->looking = true;
    job->is_unread = !x->is_loaded;
    if (!job->is_unread)
        look_start (x, job->id, 0);
}

void hkc_jobs_looked (struct hkc_flux *x)
{
    x->looking--;
    hkc_sched_opened (x); /* a hello may have waited for it */
}

/* ---- allocations of an earlier start ---- */

struct settling {
    struct hkc_flux *x;
    struct hkc_engine *engine;
    size_t looks, begun, dropped, purged;
};

static void post (struct settling *s,
                  enum hkc_event_kind kind,
                  const struct hkc_alloc_view *a)
{
    struct hkc_note *note = hkc_note_create (kind);

    if (!note)
        abort ();
    if (kind == HKC_EV_JOB_PURGED) {
        note->ev.purged.jobid = a->jobid;
        note->ev.purged.t_submit = a->t_submit;
        s->purged++;
    } else {
        note->ev.job.alloc = a->alloc;
        s->begun += kind == HKC_EV_JOB_BEGIN;
        s->dropped += kind == HKC_EV_JOB_DROP;
    }
    hkc_engine_post (s->engine, note);
}

enum knowledge {
    UNKNOWN,  /* ids are used again: it is another job, or none */
    ANOTHER,  /* the job, but not at this end: it runs again, or has */
    THIS_END, /* the end that the allocation is of */
};

static enum knowledge knowledge_of (struct hkc_flux *x,
                                    const struct hkc_alloc_view *a)
{
    flux_plugin_arg_t *args = flux_jobtap_job_lookup (x->p, a->jobid);
    double t_submit = 0, t_end = 0;
    enum knowledge known = UNKNOWN;

    if (args
        && flux_plugin_arg_unpack (args,
                                   FLUX_PLUGIN_ARG_IN,
                                   "{s:f s?{s:f}}",
                                   "t_submit",
                                   &t_submit,
                                   "end_event",
                                   "timestamp",
                                   &t_end)
               == 0
        && t_submit == a->t_submit)
        known = t_end == a->t_end ? THIS_END : ANOTHER;
    flux_plugin_arg_destroy (args);
    return known;
}

/* Begun: a scheduler that is told of it looks for the R of this end.
 * Recorded: running again or never freed, dropped; in CLEANUP, armed again by
 * its job; freed after our flag, begun; unknown, begun and drained.
 */
static int settle_one (void *arg, const struct hkc_alloc_view *a)
{
    struct settling *s = arg;
    enum knowledge known = knowledge_of (s->x, a);

    if (known == UNKNOWN || (known == ANOTHER && a->begun))
        post (s, HKC_EV_JOB_PURGED, a);
    if (a->begun)
        return 0;
    if (known == UNKNOWN)
        post (s, HKC_EV_JOB_BEGIN, a);
    else if (known == ANOTHER)
        post (s, HKC_EV_JOB_DROP, a);
    else {
        s->looks++;
        s->x->looking++;
        look_start (s->x, a->jobid, a->alloc);
    }
    return 0;
}

void hkc_jobs_settle (struct hkc_flux *x, struct hkc_engine *engine)
{
    struct settling s = { .x = x, .engine = engine };

    hkc_engine_each_alloc (engine, settle_one, &s);
    if (s.looks || s.begun || s.dropped || s.purged)
        flux_log (x->h,
                  LOG_INFO,
                  "hk: of what was held, %zu begun, %zu dropped, %zu whose "
                  "job is purged, unknown or runs again; %zu asked about",
                  s.begun,
                  s.dropped,
                  s.purged,
                  s.looks);
}

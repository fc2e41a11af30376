/* settle.c - what became of jobs while we were away */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "proto/log.h"
#include "coordinator/host/flux/flux.h"
#include "coordinator/host/flux/job.h"

enum { LOOKUP_S = 30 };

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

/* ---- epilogs of an earlier start ---- */

static bool is_older (const struct hkc_flux *x, const char *description)
{
    return !strncmp (description, hkc_epilog_prefix, strlen (hkc_epilog_prefix))
           && strcmp (description, x->epilog) != 0;
}

/* A flag that the job's user asked for is in the jobspec, and such a job is
 * not looked at here.
 */
static void read_eventlog (struct hkc_flux *x,
                           struct hkc_job *job,
                           const char *log)
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
        if (hkc_job_flags (o))
            job->is_ours = true;
        if (is_older (x, description))
            job->epilogs += !strcmp (name, "epilog-start")
                            - !strcmp (name, "epilog-finish");
        json_decref (o);
        line = end ? end + 1 : NULL;
    }
}

static void on_eventlog (flux_future_t *f, void *arg)
{
    struct hkc_flux *x = arg;
    uint64_t id = hkc_flux_label_of (f);
    struct hkc_job *job = zhashx_lookup (x->jobs, &id);
    const char *log;

    if (job && job->looking) {
        job->looking = false;
        x->looking--;
        if (flux_kvs_lookup_get (f, &log) == 0) {
            read_eventlog (x, job, log);
            hkc_job_advance (x, job);
            hkc_sched_opened (x); /* a hello may have waited for it */
        } else {
            flux_log_error (x->h, "hk: eventlog of %ju", (uintmax_t)id);
            hkc_job_look (x, job);
        }
    }
    hkc_flux_done (x, f);
}

void hkc_job_look (struct hkc_flux *x, struct hkc_job *job)
{
    char key[64];
    flux_future_t *f = NULL;

    job->looking = true; /* and held, as long as it cannot be read */
    x->looking++;
    if (flux_job_kvs_key (key, sizeof (key), job->id, "eventlog") < 0
        || !(f = flux_kvs_lookup (x->h, NULL, 0, key))
        || hkc_flux_label (f, job->id) < 0
        || hkc_flux_then (x, f, LOOKUP_S, on_eventlog, x) < 0)
        flux_log_error (x->h, "hk: cannot read an eventlog");
}

/* ---- allocations of an earlier start ---- */

struct settling {
    struct hkc_flux *x;
    struct hkc_engine *engine;
    size_t begun, dropped, purged;
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

/* Is it the job that the allocation is of?  Ids are used again. */
static bool is_known (struct hkc_flux *x,
                      const struct hkc_alloc_view *a,
                      int *state)
{
    flux_plugin_arg_t *args = flux_jobtap_job_lookup (x->p, a->jobid);
    double t_submit = 0;
    bool same;

    same = args
           && flux_plugin_arg_unpack (args,
                                      FLUX_PLUGIN_ARG_IN,
                                      "{s:f s:i}",
                                      "t_submit",
                                      &t_submit,
                                      "state",
                                      state)
                  == 0
           && t_submit == a->t_submit;
    flux_plugin_arg_destroy (args);
    return same;
}

/* Recorded and not begun: running again or never freed, dropped; in CLEANUP,
 * armed again by its job; freed, begun; unknown, begun and drained.
 */
static int settle_one (void *arg, const struct hkc_alloc_view *a)
{
    struct settling *s = arg;
    struct hkc_job *job = zhashx_lookup (s->x->jobs, &a->jobid);
    int state = 0;

    if (!is_known (s->x, a, &state)) {
        post (s, HKC_EV_JOB_PURGED, a);
        if (!a->begun)
            post (s, HKC_EV_JOB_BEGIN, a);
        return 0;
    }
    if (a->begun)
        return 0;
    if (flux_jobtap_job_event_posted (s->x->p, a->jobid, "free") == 1)
        post (s, HKC_EV_JOB_BEGIN, a);
    else if (state != FLUX_JOB_STATE_CLEANUP || !job || job->t_end != a->t_end)
        post (s, HKC_EV_JOB_DROP, a);
    return 0;
}

void hkc_jobs_settle (struct hkc_flux *x, struct hkc_engine *engine)
{
    struct settling s = { .x = x, .engine = engine };

    hkc_engine_each_alloc (engine, settle_one, &s);
    if (s.begun || s.dropped || s.purged)
        flux_log (x->h,
                  LOG_INFO,
                  "hk: of what was held, %zu begun, %zu dropped, %zu whose "
                  "job is purged or unknown",
                  s.begun,
                  s.dropped,
                  s.purged);
}

/* job_heard.c - what job-manager says of its jobs */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "coordinator/core/idhash.h"
#include "coordinator/host/flux/flux.h"
#include "coordinator/host/flux/job.h"

static void job_free (void **item)
{
    struct hkc_job *job = *item;

    if (job) {
        free (job->R);
        free (job->queue);
        hk_rankset_destroy (job->ranks);
        free (job);
    }
    *item = NULL;
}

/* The ranks of an R without looking at its hosts: cheap at any size. */
static struct hk_rankset *ranks_of (const json_t *R)
{
    struct hk_rankset *ranks = hk_rankset_create ();
    json_t *lite = NULL, *entry;
    size_t i;

    if (json_unpack ((json_t *)R, "{s:{s:o}}", "execution", "R_lite", &lite))
        return ranks;
    json_array_foreach (lite, i, entry)
    {
        const char *text;
        struct hk_rankset *some;
        if (json_unpack (entry, "{s:s}", "rank", &text) == 0
            && (some = hk_rankset_decode (text, NULL))) {
            hk_rankset_add_set (ranks, some);
            hk_rankset_destroy (some);
        }
    }
    return ranks;
}

/* R as it is now: its expiration may have been changed while the job ran. */
static void take_R (struct hkc_job *job, flux_plugin_arg_t *args)
{
    json_t *R = NULL;
    char *text;

    if (flux_plugin_arg_unpack (args, FLUX_PLUGIN_ARG_IN, "{s?o}", "R", &R) < 0
        || !R || !(text = json_dumps (R, JSON_COMPACT)))
        return;
    free (job->R);
    job->R = text;
    hk_rankset_destroy (job->ranks);
    job->ranks = ranks_of (R);
}

static int state_of (flux_plugin_arg_t *args)
{
    int state = 0;

    flux_plugin_arg_unpack (args, FLUX_PLUGIN_ARG_IN, "{s:i}", "state", &state);
    return state;
}

/* In a callback of the job: the epilog is its own. */
static void hold (struct hkc_flux *x,
                  struct hkc_job *job,
                  flux_plugin_arg_t *args)
{
    take_R (job, args);
    if (flux_plugin_arg_unpack (args,
                                FLUX_PLUGIN_ARG_IN,
                                "{s:{s:f}}",
                                "end_event",
                                "timestamp",
                                &job->t_end)
        < 0)
        job->t_end = flux_reactor_now (x->r);
    job->state = HKC_JOB_HELD; /* its event may come before this returns */
    job->epilogs++;
    if (flux_jobtap_epilog_start (x->p, x->epilog) < 0)
        flux_log_error (x->h, "hk: epilog start");
    hkc_job_advance (x, job);
}

static bool is_to_be_held (const struct hkc_job *job, flux_plugin_arg_t *args)
{
    return job->state == HKC_JOB_LIVE && job->R && !job->bypass
           && state_of (args) == FLUX_JOB_STATE_CLEANUP;
}

static struct hkc_job *make (struct hkc_flux *x, flux_plugin_arg_t *args)
{
    struct hkc_job *job = calloc (1, sizeof (*job));
    json_int_t id, userid, priority;
    json_t *bypass = NULL;
    const char *queue = "";

    if (!job
        || flux_plugin_arg_unpack (args,
                                   FLUX_PLUGIN_ARG_IN,
                                   "{s:I s:I s:I s:f s:{s?{s?{s?o s?s}}}}",
                                   "id",
                                   &id,
                                   "userid",
                                   &userid,
                                   "priority",
                                   &priority,
                                   "t_submit",
                                   &job->t_submit,
                                   "jobspec",
                                   "attributes",
                                   "system",
                                   hkc_job_flag,
                                   &bypass,
                                   "queue",
                                   &queue)
               < 0
        || !(job->queue = strdup (queue))) {
        free (job);
        return NULL;
    }
    job->id = (flux_jobid_t)id;
    job->userid = (uint32_t)userid;
    job->priority = priority;
    job->bypass = bypass != NULL;
    job->state = HKC_JOB_LIVE;
    take_R (job, args);
    zhashx_update (x->jobs, &job->id, job);
    return job;
}

/* A job that is new, or was there before us.  One in CLEANUP may have epilogs
 * of an earlier start of ours: another is started at once, since that can only
 * be done here, and the eventlog says how many there are to finish.  (What
 * flux_jobtap_job_event_posted says is of this start of job-manager alone.)
 */
static int on_new (flux_plugin_t *p,
                   const char *topic,
                   flux_plugin_arg_t *args,
                   void *arg)
{
    struct hkc_flux *x = arg;
    struct hkc_job *job = make (x, args);

    (void)topic;
    if (!job) {
        flux_log_error (x->h, "hk: job.new");
        return -1;
    }
    if (flux_jobtap_job_subscribe (p, job->id) < 0)
        flux_log_error (x->h, "hk: subscribe");
    if (!is_to_be_held (job, args))
        return 0;
    job->is_back = true;
    hkc_job_look (x, job);
    hold (x, job, args);
    return 0;
}

bool hkc_job_flags (json_t *entry)
{
    json_t *flags = NULL, *value;
    const char *name;
    size_t i;

    if (json_unpack (
            entry, "{s:s s:{s:o}}", "name", &name, "context", "flags", &flags)
        || strcmp (name, "set-flags"))
        return false;
    json_array_foreach (
        flags, i, value) if (json_is_string (value)
                             && !strcmp (json_string_value (value),
                                         hkc_job_flag)) return true;
    return false;
}

/* job-manager lets go of the ranks.  Before our flag it tells the scheduler:
 * then they are not ours.
 */
static void on_free (struct hkc_flux *x, struct hkc_job *job)
{
    if (job->state == HKC_JOB_FLAGGED) {
        job->state = HKC_JOB_FREED;
        hkc_sched_begin (x, job->alloc);
        if (job->is_back)
            hkc_job_say_again (x, job);
        return;
    }
    if (job->state == HKC_JOB_RECORDED)
        hkc_job_post (x, HKC_EV_JOB_DROP, job->alloc);
    if (job->state != HKC_JOB_LIVE && job->state != HKC_JOB_PASSED)
        flux_log (x->h,
                  LOG_ERR,
                  "hk: job %ju was freed without us",
                  (uintmax_t)job->id);
    job->state = HKC_JOB_LIVE;
    job->bypass = true;
}

static int on_event (flux_plugin_t *p,
                     const char *topic,
                     flux_plugin_arg_t *args,
                     void *arg)
{
    struct hkc_flux *x = arg;
    const char *name = topic + strlen ("job.event.");
    int64_t entered = hkc_flux_enter ();
    struct hkc_job *job;
    json_t *entry;
    json_int_t id;

    (void)p;
    if (flux_plugin_arg_unpack (args, FLUX_PLUGIN_ARG_IN, "{s:I}", "id", &id)
            < 0
        || !(job = hkc_job_find (x, (flux_jobid_t)id)))
        return 0;
    if (!strcmp (name, "alloc")) {
        take_R (job, args);
        hkc_status_fresh (x);
    } else if (job->state < HKC_JOB_RECORDED && !job->is_ours
               && flux_plugin_arg_unpack (
                      args, FLUX_PLUGIN_ARG_IN, "{s:o}", "entry", &entry)
                      == 0
               && hkc_job_flags (entry))
        job->bypass = true;
    else if (!strcmp (name, "priority"))
        flux_plugin_arg_unpack (
            args, FLUX_PLUGIN_ARG_IN, "{s:I}", "priority", &job->priority);
    if (!strcmp (name, "free"))
        on_free (x, job);
    else if (is_to_be_held (job, args))
        hold (x, job, args);
    hkc_flux_leave (x, entered, "event");
    return 0;
}

static int on_inactive (flux_plugin_t *p,
                        const char *topic,
                        flux_plugin_arg_t *args,
                        void *arg)
{
    struct hkc_flux *x = arg;
    bool is_waited_for;
    struct hkc_job *job;
    json_int_t id;

    (void)p;
    (void)topic;
    if (flux_plugin_arg_unpack (args, FLUX_PLUGIN_ARG_IN, "{s:I}", "id", &id)
            < 0
        || !(job = hkc_job_find (x, (flux_jobid_t)id)))
        return 0;
    if (job->state == HKC_JOB_RECORDED || job->state == HKC_JOB_FLAGGED)
        hkc_job_post (x, HKC_EV_JOB_DROP, job->alloc);
    is_waited_for = job->looking || job->asking;
    zhashx_delete (x->jobs, &job->id);
    if (is_waited_for)
        hkc_jobs_looked (x);
    return 0;
}

/* Its R is gone from the KVS: a scheduler could not be told of it. */
static int on_purged (flux_plugin_t *p,
                      const char *topic,
                      flux_plugin_arg_t *args,
                      void *arg)
{
    struct hkc_flux *x = arg;
    double t_submit;
    json_int_t id;

    (void)p;
    (void)topic;
    if (flux_plugin_arg_unpack (args,
                                FLUX_PLUGIN_ARG_IN,
                                "{s:I s:f}",
                                "id",
                                &id,
                                "t_submit",
                                &t_submit)
        == 0)
        hkc_job_is_purged (x, (flux_jobid_t)id, t_submit);
    return 0;
}

static const struct flux_plugin_handler handlers[] = {
    { "job.new", on_new, NULL },
    { "job.event.*", on_event, NULL },
    { "job.state.inactive", on_inactive, NULL },
    { "job.inactive-remove", on_purged, NULL },
    { 0 },
};

int hkc_jobs_open (struct hkc_flux *x)
{
    x->jobs = hkc_idhash_create ();
    zhashx_set_destructor (x->jobs, job_free);
    for (const struct flux_plugin_handler *t = handlers; t->topic; t++)
        if (flux_plugin_add_handler (x->p, t->topic, t->cb, x) < 0)
            return -1;
    return 0;
}

void hkc_jobs_close (struct hkc_flux *x)
{
    zhashx_destroy (&x->jobs);
}

/* job.c - a job from its end to the hold of its ranks */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "proto/jobid.h"
#include "proto/log.h"
#include "coordinator/host/flux/flux.h"
#include "coordinator/host/flux/job.h"
#include "coordinator/host/flux/override.h"

/* A job that has ranks is held in CLEANUP by an epilog of ours as soon as its
 * end is seen.  When the engine has recorded it, the flag alloc-bypass is
 * posted, and then the epilog finishes: job-manager neither runs its own
 * housekeeping nor tells the scheduler of a free.  At the event `free` the
 * ranks are ours.  The flag without the epilog around it would come too late:
 * flags take effect when the event is processed, after the action of the state.
 */
const char hkc_epilog_prefix[] = "hk-coordinator-";
const char hkc_job_flag[] = "alloc-bypass";

struct hkc_job *hkc_job_find (struct hkc_flux *x, flux_jobid_t id)
{
    uint64_t key = id;

    return zhashx_lookup (x->jobs, &key);
}

bool hkc_job_is_counted (const struct hkc_job *job)
{
    return job->R && !job->bypass && !job->is_ours;
}

bool hkc_job_is_between (const struct hkc_job *job)
{
    return job->R && job->is_ours && job->state != HKC_JOB_FREED;
}

/* ---- onwards ---- */

static struct hkc_note *end_note (const struct hkc_job *job)
{
    struct hkc_note *note = hkc_note_create (HKC_EV_JOB_END);

    if (!note || !(note->R_text = strdup (job->R))
        || !(note->ev.job_end.queue = hkc_note_text (note, job->queue))) {
        hkc_note_destroy (note);
        return NULL;
    }
    note->ev.job_end.jobid = job->id;
    note->ev.job_end.userid = job->userid;
    note->ev.job_end.priority = job->priority;
    note->ev.job_end.t_submit = job->t_submit;
    note->ev.job_end.t_end = job->t_end;
    note->ev.job_end.hold_begin = true;
    return note;
}

static void record (struct hkc_flux *x, struct hkc_job *job)
{
    struct hkc_note *note = end_note (job);

    if (!note)
        return; /* the next tick tries again */
    note->tag = job->id;
    job->state = HKC_JOB_SENT;
    hkc_engine_post (x->engine, note);
}

void hkc_job_say_again (struct hkc_flux *x, struct hkc_job *job)
{
    struct hkc_note *note = end_note (job);

    if (!note)
        abort (); /* the ranks would stay in conflict; a restart settles it */
    hkc_engine_post (x->engine, note);
}

void hkc_job_post (struct hkc_flux *x, enum hkc_event_kind kind, uint64_t alloc)
{
    struct hkc_note *note = hkc_note_create (kind);

    if (!note)
        abort (); /* the ranks would be nobody's; a restart settles it */
    note->ev.job.alloc = alloc;
    hkc_engine_post (x->engine, note);
}

/* Events that are posted outside of a callback of the job are processed at
 * once: `free` may be seen before this returns.
 */
static void finish_epilogs (struct hkc_flux *x, struct hkc_job *job)
{
    int n = job->epilogs;

    job->epilogs = 0;
    while (n-- > 0)
        if (flux_jobtap_epilog_finish (x->p, job->id, x->epilog, 0) < 0)
            flux_log_error (x->h, "hk: epilog finish");
}

/* What flux jobs shows of it from now on, also when it is inactive. */
static void say_where (struct hkc_flux *x, const struct hkc_job *job)
{
    char id[HK_JOBID_TEXT_BYTES], text[HK_JOBID_TEXT_BYTES + 24];

    snprintf (text,
              sizeof (text),
              "hkctl history -j %s",
              hk_jobid_encode (job->id, HK_JOBID_F58PLAIN, id));
    if (flux_jobtap_event_post_pack (
            x->p, job->id, "memo", "{s:s}", "housekeeping", text)
        < 0)
        flux_log_error (x->h, "hk: memo");
}

static void let_go (struct hkc_flux *x, struct hkc_job *job)
{
    if (!job->is_ours)
        say_where (x, job);
    if (flux_jobtap_job_set_flag (x->p, job->id, hkc_job_flag) < 0) {
        flux_log_error (x->h, "hk: set flag");
        return; /* the next tick tries again */
    }
    job->is_ours = true;
    job->state = HKC_JOB_FLAGGED;
    hkc_status_stale (x, job->R);
    finish_epilogs (x, job);
}

void hkc_job_pass (struct hkc_flux *x, struct hkc_job *job)
{
    job->bypass |= job->is_ours; /* job-manager does not count it */
    job->is_ours = false;
    job->state = HKC_JOB_PASSED;
    finish_epilogs (x, job);
}

void hkc_job_advance (struct hkc_flux *x, struct hkc_job *job)
{
    /* a timer of a reactor that has not run yet ends at once */
    if (job->is_unread && x->is_loaded)
        hkc_job_look (x, job);
    if (!x->engine || job->looking || !hkc_overrides_proven ())
        return;
    if (job->state == HKC_JOB_HELD)
        record (x, job);
    else if (job->state == HKC_JOB_RECORDED && hkc_sched_may_flag (x))
        let_go (x, job);
}

void hkc_jobs_advance (struct hkc_flux *x)
{
    zlistx_t *jobs = zhashx_values (x->jobs); /* letting go changes the hash */

    if (!jobs)
        return;
    zlistx_set_destructor (jobs, NULL); /* it has the hash's own */
    for (struct hkc_job *job = zlistx_first (jobs); job;
         job = zlistx_next (jobs))
        if (job->state == HKC_JOB_HELD || job->state == HKC_JOB_RECORDED)
            hkc_job_advance (x, job);
    zlistx_destroy (&jobs);
}

void hkc_job_answered (struct hkc_flux *x,
                       flux_jobid_t id,
                       int rc,
                       uint64_t alloc,
                       const char *text)
{
    struct hkc_job *job = hkc_job_find (x, id);

    if (!job || job->state != HKC_JOB_SENT) {
        if (rc == 0 && alloc) /* let go without us meanwhile */
            hkc_job_post (x, HKC_EV_JOB_DROP, alloc);
        return;
    }
    if (rc) {
        char f58[HK_JOBID_TEXT_BYTES];
        job->state = HKC_JOB_HELD;
        hk_log_throttled (LOG_ERR,
                          "record",
                          "%s is held in CLEANUP: %s",
                          hk_jobid_encode (id, HK_JOBID_F58, f58),
                          text);
        return;
    }
    job->alloc = alloc;
    job->state = HKC_JOB_RECORDED;
    if (job->asking) {
        job->asking = false;
        hkc_jobs_looked (x);
    }
    if (alloc)
        hkc_job_advance (x, job);
    else /* an earlier start of ours had seen it to its end */
        hkc_job_pass (x, job);
}

/* job.h - what job.c, job_heard.c and settle.c share */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HKC_FLUX_JOB_H
#define HKC_FLUX_JOB_H

#include "coordinator/host/flux/flux.h"

extern const char hkc_job_flag[];
struct hkc_job *hkc_job_find (struct hkc_flux *x, flux_jobid_t id);
/* It was begun before our start, and active when the scheduler asked: so that
 * its ranks are seen to be no other job's, after its free.
 */
void hkc_job_say_again (struct hkc_flux *x, struct hkc_job *job);
void hkc_job_advance (struct hkc_flux *x, struct hkc_job *job);
/* JOB_BEGIN or JOB_DROP of an allocation. */
void hkc_job_post (struct hkc_flux *x,
                   enum hkc_event_kind kind,
                   uint64_t alloc);
void hkc_job_is_purged (struct hkc_flux *x, flux_jobid_t id, double t_submit);
/* Read the eventlog: how many epilogs of earlier starts of ours wait to be
 * finished, and had they flagged it?
 */
void hkc_job_look (struct hkc_flux *x, struct hkc_job *job);
/* One of those that a hello waits for is known. */
void hkc_jobs_looked (struct hkc_flux *x);
/* Nothing of it is ours: job-manager ends it alone. */
void hkc_job_pass (struct hkc_flux *x, struct hkc_job *job);
/* Is it an event that sets our flag? */
bool hkc_job_flags (json_t *entry);

#endif

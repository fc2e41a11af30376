/* link_client_munge.c - credentials, made and read in the pool */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "proto/link_client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void hk_client_job_free (struct hk_client_job *job)
{
    if (!job)
        return;
    if (job->cred)
        explicit_bzero (job->cred, strlen (job->cred));
    free (job->cred);
    free (job->munge_socket);
    free (job);
}

static void drop (struct hk_pool_job *job)
{
    hk_client_job_free ((struct hk_client_job *)job);
}

void hk_client_jobs_fini (struct hk_link_client *c)
{
    hk_pool_lane_fini (&c->lane, drop);
}

static void work (struct hk_pool_job *pool_job)
{
    struct hk_client_job *job = (struct hk_client_job *)pool_job;
    int rc = 0;

    if (job->is_key) {
        rc = hk_key_claim_decode (
            job->munge_socket, job->cred, &job->claim, &job->uid, &job->err);
    } else {
        job->cred = hk_hello_claim_encode (
            job->munge_socket, &job->hello, job->uid, &job->err);
        rc = job->cred ? 0 : -1;
    }
    job->errnum = rc < 0 ? errno : 0;
}

static struct hk_client_job *make_job (const struct hk_link_client *c)
{
    struct hk_client_job *job = calloc (1, sizeof (*job));

    if (!job)
        return NULL;
    job->job.work = work;
    job->attempt = c->attempt;
    if (c->munge_socket && !(job->munge_socket = strdup (c->munge_socket))) {
        free (job);
        return NULL;
    }
    return job;
}

static int submit (struct hk_link_client *c, struct hk_client_job *job)
{
    if (hk_pool_submit (&c->lane, &job->job) == 0)
        return 0;
    hk_client_job_free (job);
    return -1;
}

int hk_client_check_key (struct hk_link_client *c, const char *cred)
{
    struct hk_client_job *job = make_job (c);

    if (!job)
        return -1;
    job->is_key = true;
    job->cred = strdup (cred);
    if (!job->cred) {
        hk_client_job_free (job);
        return -1;
    }
    return submit (c, job);
}

int hk_client_make_hello (struct hk_link_client *c)
{
    struct hk_client_job *job = make_job (c);

    if (!job)
        return -1;
    job->hello = c->who;
    memcpy (job->hello.instance, c->server.instance, HK_ID_BYTES);
    job->hello.start = c->server.start;
    job->uid = c->server_uid;
    return submit (c, job);
}

struct hk_client_job *hk_client_collect (struct hk_link_client *c)
{
    struct hk_client_job *job;

    while (c->lane.count > 0
           && (job = (struct hk_client_job *)hk_pool_collect (&c->lane))) {
        if (job->attempt == c->attempt)
            return job;
        hk_client_job_free (job);
    }
    return NULL;
}

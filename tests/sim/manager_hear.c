/* manager_hear.c - what the coordinator says to the job manager */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/sim/sim.h"

/* What is told as held must be the host that R says. */
static void check_places (const struct sim_job *job,
                          const struct hk_resource *res)
{
    for (uint32_t r = hk_rankset_first (job->booked); r != HK_RANK_NONE;
         r = hk_rankset_next (job->booked, r))
        if (sim_host_index (hk_resource_host (res, r)) != sim_host_of (r))
            sim_broken ("hello",
                        "rank %u of job %llu is told and is another host",
                        r,
                        (unsigned long long)job->jobid);
}

static void on_entry (const struct sim_msg *msg)
{
    struct hk_resource *res = hk_resource_decode (msg->text, NULL);
    struct sim_job *job = sim_job_find (msg->jobid);
    struct hk_rankset *free_set = msg->ranks
                                      ? hk_rankset_decode (msg->ranks, NULL)
                                      : NULL;

    sim_say ("M: is told of job %llu but [%s]",
             (unsigned long long)msg->jobid,
             msg->ranks ? msg->ranks : "");
    if (!w.m.awaits)
        sim_broken ("S5", "an entry that nobody asked for");
    if (msg->ranks && !w.m.partial_ok)
        sim_broken ("hello", "free without partial-ok");
    if (!job)
        sim_broken ("hello",
                    "job %llu is told and was never ours",
                    (unsigned long long)msg->jobid);
    if (sim_job_is_active (job))
        sim_broken ("hello",
                    "job %llu is active and was told",
                    (unsigned long long)msg->jobid);
    if (job->purged_said)
        sim_broken ("hello",
                    "job %llu is purged and was told",
                    (unsigned long long)msg->jobid);
    job->told = true;
    hk_rankset_destroy (job->booked); /* told anew: it replaces */
    job->booked = hk_rankset_copy (hk_resource_ranks (res));
    if (free_set)
        hk_rankset_remove_set (job->booked, free_set);
    check_places (job, res);
    hk_rankset_destroy (free_set);
    hk_resource_destroy (res);
}

static char *account (void)
{
    struct hk_rankset *set = hk_rankset_create ();
    char *R = NULL;

    for (size_t i = 0; i < w.m.jobs_count; i++)
        if (w.m.jobs[i].booked && !sim_job_is_active (&w.m.jobs[i]))
            hk_rankset_add_set (set, w.m.jobs[i].booked);
    if (!hk_rankset_is_empty (set))
        R = sim_make_R (set);
    hk_rankset_destroy (set);
    return R;
}

static void on_hello_end (const struct sim_msg *msg)
{
    struct sim_msg *ready;

    if (!w.m.awaits)
        sim_broken ("S5", "the end of an answer that nobody asked for");
    w.m.awaits = false;
    if (msg->flag) {
        if (w.m.phase != 3)
            sim_broken ("S5", "resumed a life that was not ready");
        for (size_t i = 0; i < w.m.jobs_count; i++)
            w.m.jobs[i].named = w.m.jobs[i].repeat;
        return;
    }
    /* an answer is the whole of what is held: it replaces an older one */
    for (size_t i = 0; i < w.m.jobs_count; i++) {
        struct sim_job *job = &w.m.jobs[i];
        if (job->ours && !job->told) {
            hk_rankset_destroy (job->booked);
            job->booked = NULL;
        }
        job->told = false;
    }
    w.m.phase = 2;
    ready = sim_msg (SIM_SCHED_READY);
    snprintf (ready->life, sizeof (ready->life), "%s", w.m.life);
    if (sim_chance (60))
        ready->text = account ();
    sim_manager_send (ready);
    w.m.phase = 3;
    /* what was named as active and has ended: its end is said once more, for
     * the coordinator may have taken it for another job's */
    for (size_t i = 0; i < w.m.jobs_count; i++)
        if (w.m.jobs[i].named && w.m.jobs[i].ended)
            w.m.jobs[i].repeat = true, w.m.jobs[i].said_n = 0;
    sim_say ("M: scheduler %s is ready", w.m.life);
}

/* A node whose scripts failed is drained before its rank is free. */
static void check_failed_drained (uint64_t jobid,
                                  const struct hk_rankset *ranks)
{
    for (uint32_t r = hk_rankset_first (ranks); r != HK_RANK_NONE;
         r = hk_rankset_next (ranks, r)) {
        int host = sim_host_of (r);
        double at = sim_store_failed_at (w.c.store, jobid, w.nodes[host].name);
        if (at > 0 && w.m.drained_at[host] < at)
            sim_broken ("S1",
                        "%s failed and is freed before it is drained",
                        w.nodes[host].name);
    }
}

/* S2: at most once in each life, only what the scheduler counts; final with
 * the free that empties it.
 */
static void on_free (const struct sim_msg *msg)
{
    struct hk_rankset *ranks = hk_rankset_decode (msg->ranks, NULL);
    struct sim_job *job = sim_job_find (msg->jobid);
    struct sim_msg *ok;

    w.frees++;
    if (strcmp (msg->life, w.m.life))
        sim_broken ("S5", "a free for life %s in %s", msg->life, w.m.life);
    if (w.m.phase != 3)
        sim_broken ("S5", "a free before ready");
    if (msg->n > w.m.last_free && w.m.over[msg->jobid])
        w.m.last_free = msg->n;
    if (msg->n > w.m.last_free) {
        if (!job || !job->booked || !hk_rankset_contains (job->booked, ranks))
            sim_broken ("S2",
                        "job %llu ranks %s freed, the books do not "
                        "have them",
                        (unsigned long long)msg->jobid,
                        msg->ranks);
        check_failed_drained (job->jobid, ranks);
        job->recorded = true; /* the answer to its end may be lost */
        hk_rankset_remove_set (job->booked, ranks);
        if (msg->flag != hk_rankset_is_empty (job->booked))
            sim_broken ("S2",
                        "job %llu: final is %d and the books have %zu",
                        (unsigned long long)msg->jobid,
                        msg->flag,
                        hk_rankset_count (job->booked));
        w.m.last_free = msg->n;
        sim_say ("M: job %llu ranks %s are free%s",
                 (unsigned long long)msg->jobid,
                 msg->ranks,
                 msg->flag ? ", final" : "");
    }
    hk_rankset_destroy (ranks);
    ok = sim_msg (SIM_FREE_OK);
    ok->n = msg->n;
    sim_manager_send (ok);
}

static void on_drain (const struct sim_msg *msg)
{
    struct sim_msg *done = sim_msg (msg->kind == SIM_DRAIN ? SIM_DRAIN_DONE
                                                           : SIM_UNDRAIN_DONE);
    int host = sim_host_index (msg->host);
    char **reason = &w.m.drained[host];

    w.drains++;
    sim_say ("M: asked to %s %s: %s",
             msg->kind == SIM_DRAIN ? "drain" : "undrain",
             msg->host,
             msg->text);
    if (strncmp (msg->text, "housekeeping", 12))
        sim_broken ("S7", "a reason that is not ours: %s", msg->text);
    done->n = msg->n;
    snprintf (done->host, sizeof (done->host), "%s", msg->host);
    if (w.faults && sim_chance (10))
        done->result = HKC_DRAIN_FAILED;
    else if (msg->kind == SIM_DRAIN) {
        done->result = *reason ? HKC_DRAIN_ALREADY : HKC_DRAIN_OK;
        done->text = *reason ? strdup (*reason) : NULL;
        if (!*reason) {
            *reason = strdup (msg->text);
            w.m.admins[host] = false;
            sim_say ("M: %s is drained: %s", msg->host, msg->text);
        }
    } else if (!*reason)
        done->result = HKC_DRAIN_NOT_DRAINED;
    else if (strcmp (*reason, msg->text))
        done->result = HKC_DRAIN_CHANGED, done->text = strdup (*reason);
    else {
        if (w.m.admins[host])
            sim_broken ("S7", "%s: an admin's drain was undone", msg->host);
        sim_say ("M: %s is undrained: %s", msg->host, msg->text);
        free (*reason);
        *reason = NULL;
        done->result = HKC_DRAIN_OK;
    }
    if (msg->kind == SIM_DRAIN && done->result != HKC_DRAIN_FAILED)
        w.m.drained_at[host] = w.wall;
    sim_manager_send (done);
}

/* The answer to an end.  "done": nothing of it is held any more.  If it was
 * named as active to this life's scheduler, no free will come: it is the
 * manager's own to take out of the books.  Not before the hello is answered:
 * if the life resumes, its frees come again.
 */
static void on_recorded (const struct sim_msg *msg)
{
    struct sim_job *job = sim_job_find ((uint64_t)msg->job);

    if (!job || msg->n != job->said_n)
        return;
    sim_say ("M: job %d is recorded: %s", msg->job, msg->state);
    job->recorded = true;
    job->repeat = false;
    if (!strcmp (msg->state, "done") && job->named && !w.m.awaits) {
        w.m.over[job->jobid] = true;
        sim_job_drop (job);
    }
}

void sim_manager_deliver (struct sim_msg *msg)
{
    if (msg->kind == SIM_RECORDED) {
        on_recorded (msg);
        return;
    }
    if (msg->session != w.m.session || msg->seq <= w.m.in_seq)
        return;
    w.m.in_seq = msg->seq;
    switch (msg->kind) {
    case SIM_ENTRY:
        on_entry (msg);
        break;
    case SIM_HELLO_END:
        on_hello_end (msg);
        break;
    case SIM_FREE:
        on_free (msg);
        break;
    default:
        on_drain (msg);
        break;
    }
}

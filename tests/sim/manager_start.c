/* manager_start.c - what a job manager that starts again no longer knows */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/sim/sim.h"

uint32_t sim_rank (int host, int r)
{
    return (uint32_t)(w.m.slots[host] * w.per_host + r);
}

int sim_host_of (uint32_t rank)
{
    int host = 0;

    while (w.m.slots[host] != (int)rank / w.per_host)
        host++;
    return host;
}

static void say_purged (const struct sim_job *job)
{
    struct sim_msg *msg = sim_msg (SIM_PURGED);

    msg->jobid = job->jobid;
    msg->t_submit = job->t_submit;
    sim_manager_send (msg);
}

static void say_hosts (void)
{
    struct sim_msg *msg = sim_msg (SIM_HOSTS);
    int count = w.nodes_count * w.per_host;
    size_t size = (size_t)count * 8, at = 0;

    msg->text = malloc (size);
    for (int r = 0; r < count; r++)
        at += (size_t)snprintf (msg->text + at,
                                size - at,
                                "%sn%d",
                                r ? "," : "",
                                sim_host_of ((uint32_t)r));
    sim_manager_send (msg);
}

/* Before each hello, and so after each start of the coordinator. */
void sim_manager_forgets (void)
{
    say_hosts ();
    for (size_t i = 0; i < w.m.jobs_count; i++) {
        w.m.jobs[i].purged_said = w.m.jobs[i].purged;
        if (w.m.jobs[i].purged)
            say_purged (&w.m.jobs[i]);
    }
}

/* A job that is over for the manager.  One that it has named as active is not:
 * it has yet to say the end once more.
 */
void sim_purge (void)
{
    struct sim_job *job;

    if (!w.m.jobs_count)
        return;
    job = &w.m.jobs[sim_below ((uint32_t)w.m.jobs_count)];
    if (sim_job_is_active (job) || job->named || job->repeat || job->purged)
        return;
    job->purged = true;
    sim_say ("M: job %llu is purged", (unsigned long long)job->jobid);
    if (w.m.session)
        say_purged (job);
}

static bool is_in_use (int host)
{
    for (size_t i = 0; i < w.m.jobs_count; i++)
        if (sim_job_is_active (&w.m.jobs[i])
            && hk_rankset_has (w.m.jobs[i].ranks, sim_rank (host, 0)))
            return true;
    return false;
}

/* Two hosts without a job change their ranks. */
void sim_renumber (void)
{
    int a = (int)sim_below ((uint32_t)w.nodes_count);
    int b = (int)sim_below ((uint32_t)w.nodes_count);
    int slot = w.m.slots[a];

    if (a == b || is_in_use (a) || is_in_use (b))
        return;
    w.m.slots[a] = w.m.slots[b];
    w.m.slots[b] = slot;
    sim_say (
        "M: %s and %s change their ranks", w.nodes[a].name, w.nodes[b].name);
}

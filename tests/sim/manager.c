/* manager.c - a job manager with a scheduler that keeps its own books */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/sim/sim.h"

enum { SAY_AGAIN_MS = 700, ADMINS_PERCENT = 50 };

void sim_manager_send (struct sim_msg *msg)
{
    msg->session = w.m.session;
    msg->seq = ++w.m.out_seq;
    sim_put (&w.m.to_c, msg);
}

static bool host_is_free (int host)
{
    if (w.m.drained[host])
        return false;
    for (size_t i = 0; i < w.m.jobs_count; i++)
        for (int r = 0; r < w.per_host; r++)
            if (w.m.jobs[i].booked
                && hk_rankset_has (w.m.jobs[i].booked, sim_rank (host, r)))
                return false;
    return true;
}

/* S1 as it matters: a job is placed on a rank.  Is that rank's last
 * housekeeping over, in truth and on disk?
 */
static void check_placed (int host, uint64_t jobid)
{
    const struct sim_node *n = &w.nodes[host];
    uint64_t held;

    for (const struct sim_unit *u = n->units; u; u = u->next)
        if (u->at < SIM_SCRIPTS)
            sim_broken ("S1",
                        "job %llu was placed on %s where scripts run",
                        (unsigned long long)jobid,
                        n->name);
    if (sim_store_holds (w.c.store, host, &held))
        sim_broken ("S1",
                    "job %llu was placed on %s held for job %llu",
                    (unsigned long long)jobid,
                    n->name,
                    (unsigned long long)held);
}

char *sim_make_R (const struct hk_rankset *ranks)
{
    char *ids = hk_rankset_encode (ranks), *R;
    char hosts[8192] = "";
    size_t at = 0;

    for (uint32_t r = hk_rankset_first (ranks); r != HK_RANK_NONE;
         r = hk_rankset_next (ranks, r))
        at += (size_t)snprintf (hosts + at,
                                sizeof (hosts) - at,
                                "%sn%d",
                                at ? "," : "",
                                sim_host_of (r));
    if (asprintf (&R,
                  "{\"version\":1,\"execution\":{\"R_lite\":[{\"rank\":\"%s\","
                  "\"children\":{\"core\":\"0-3\"}}],\"nodelist\":[\"%s\"],"
                  "\"starttime\":1,\"expiration\":0}}",
                  ids,
                  hosts)
        < 0)
        abort ();
    free (ids);
    return R;
}

void sim_job_start (void)
{
    struct sim_job *job;
    int want = 1
               + (int)sim_below (sim_chance (20) ? (uint32_t)w.nodes_count : 4);

    if (w.m.phase != 3 || w.m.jobs_count >= 40
        || w.m.next_jobid >= sizeof (w.m.over) / sizeof (w.m.over[0]))
        return;
    w.m.jobs = realloc (w.m.jobs, (w.m.jobs_count + 1) * sizeof (*w.m.jobs));
    job = &w.m.jobs[w.m.jobs_count];
    memset (job, 0, sizeof (*job));
    job->ranks = hk_rankset_create ();
    job->jobid = w.m.next_jobid;
    for (int i = 0, h = (int)sim_below ((uint32_t)w.nodes_count);
         i < w.nodes_count && want;
         i++, h = (h + 1) % w.nodes_count) {
        if (!host_is_free (h))
            continue;
        check_placed (h, job->jobid);
        for (int r = 0; r < w.per_host; r++)
            hk_rankset_add (job->ranks, sim_rank (h, r));
        want--;
    }
    if (hk_rankset_is_empty (job->ranks)) {
        hk_rankset_destroy (job->ranks);
        return;
    }
    w.m.next_jobid++;
    job->R = sim_make_R (job->ranks);
    job->booked = hk_rankset_copy (job->ranks);
    job->t_submit = w.wall;
    w.m.jobs_count++;
}

void sim_job_drop (struct sim_job *job)
{
    hk_rankset_destroy (job->ranks);
    hk_rankset_destroy (job->booked);
    free (job->R);
    *job = w.m.jobs[--w.m.jobs_count];
}

struct sim_job *sim_job_find (uint64_t jobid)
{
    for (size_t i = 0; i < w.m.jobs_count; i++)
        if (w.m.jobs[i].jobid == jobid)
            return &w.m.jobs[i];
    return NULL;
}

void sim_job_end (void)
{
    struct sim_job *job;

    if (!w.m.jobs_count)
        return;
    job = &w.m.jobs[sim_below ((uint32_t)w.m.jobs_count)];
    if (job->ended)
        return;
    job->ended = true;
    job->t_end = w.wall;
    sim_say ("M: job %llu ends", (unsigned long long)job->jobid);
}

void sim_jobs_end (void)
{
    for (size_t i = 0; i < w.m.jobs_count; i++) {
        if (!w.m.jobs[i].ended)
            w.m.jobs[i].t_end = w.wall;
        w.m.jobs[i].ended = true;
    }
}

/* An end is said until it is recorded, now and then also later. */
static void say_ends (void)
{
    for (size_t i = 0; i < w.m.jobs_count; i++) {
        struct sim_job *job = &w.m.jobs[i];
        struct sim_msg *msg;
        if (!job->ended || job->purged || w.now_ms < job->said_ms
            || (job->recorded && !job->repeat && !(w.faults && sim_chance (1))))
            continue;
        job->said_ms = w.now_ms + SAY_AGAIN_MS;
        msg = sim_msg (SIM_JOB_END);
        msg->jobid = job->jobid;
        msg->job = (int)job->jobid;
        msg->n = job->said_n = ++w.ids;
        msg->text = strdup (job->R);
        msg->t_submit = job->t_submit;
        msg->t_end = job->t_end;
        sim_put (&w.m.to_c, msg);
    }
}

bool sim_job_is_active (const struct sim_job *job)
{
    return !job->ended || !job->recorded;
}

static char *active_text (void)
{
    struct hk_rankset *set = hk_rankset_create ();
    char *text;

    for (size_t i = 0; i < w.m.jobs_count; i++) {
        w.m.jobs[i].named = sim_job_is_active (&w.m.jobs[i]);
        w.m.jobs[i].ours = !w.m.jobs[i].named;
        w.m.jobs[i].told = false;
        if (w.m.jobs[i].named)
            hk_rankset_add_set (set, w.m.jobs[i].ranks);
    }
    text = hk_rankset_encode (set);
    hk_rankset_destroy (set);
    return text;
}

void sim_manager_unlink (void)
{
    if (w.m.session && w.c.core)
        sim_say ("M: the session is lost");
    w.m.session = 0;
    w.m.hello_ms = w.now_ms + sim_below (500);
    sim_queue_clear (&w.m.to_m);
    sim_queue_clear (&w.m.to_c);
}

/* The scheduler starts anew: what it knew is gone. */
void sim_manager_reload (void)
{
    snprintf (w.m.life, sizeof (w.m.life), "life-%d", ++w.m.lives);
    if (sim_chance (30))
        sim_renumber ();
    sim_say ("M: scheduler %s starts", w.m.life);
    sim_manager_unlink ();
    w.m.phase = 0;
    w.m.partial_ok = sim_chance (50);
    w.m.last_free = 0;
    for (size_t i = 0; i < w.m.jobs_count; i++) {
        hk_rankset_destroy (w.m.jobs[i].booked);
        w.m.jobs[i].booked = NULL;
    }
}

static void say_hello (void)
{
    struct sim_msg *msg = sim_msg (SIM_SCHED_HELLO);

    w.hellos++;
    w.m.awaits = true;
    w.m.session = sim_id ();
    w.m.out_seq = w.m.in_seq = 0;
    sim_manager_forgets ();
    if (w.m.phase != 3)
        w.m.phase = 1;
    /* the manager tells its scheduler of active jobs, and us their ranks */
    if (w.m.phase == 1) {
        for (size_t i = 0; i < w.m.jobs_count; i++) {
            struct sim_job *job = &w.m.jobs[i];
            hk_rankset_destroy (job->booked);
            job->booked = sim_job_is_active (job) ? hk_rankset_copy (job->ranks)
                                                  : NULL;
        }
    }
    msg->ranks = active_text ();
    for (size_t i = 0; i < w.m.jobs_count; i++)
        if (w.m.jobs[i].named)
            msg->ids[msg->ids_count++] = w.m.jobs[i].jobid;
    sim_say ("M: says hello, life %s, phase %d, active %s",
             w.m.life,
             w.m.phase,
             msg->ranks);
    msg->partial_ok = w.m.partial_ok;
    msg->n = w.m.last_free;
    snprintf (msg->life, sizeof (msg->life), "%s", w.m.life);
    sim_manager_send (msg);
}

void sim_manager_tick (void)
{
    if (w.m.session == 0 && w.now_ms >= w.m.hello_ms && w.c.core)
        say_hello ();
    else if (w.m.session && w.m.phase == 1
             && w.now_ms > w.m.hello_ms + 30000) /* no answer: again */
        sim_manager_unlink ();
    say_ends ();
}

/* An admin drains, and undrains also what we drained for a failure. */
void sim_admin (void)
{
    int host = (int)sim_below ((uint32_t)w.nodes_count);
    char **reason = &w.m.drained[host];

    if (!*reason) {
        *reason = strdup ("a fan is broken");
        w.m.admins[host] = true;
    } else if (w.m.admins[host] || strstr (*reason, "exit-code")
               || strstr (*reason, "signal") || strstr (*reason, "start-failed")
               || strstr (*reason, "vanished") || strstr (*reason, "timeout")
               || strstr (*reason, "unknown") || strstr (*reason, "killed")) {
        uint64_t held;
        /* an admin looks first: what is held stays drained */
        if (sim_store_holds (w.c.store, host, &held))
            return;
        sim_say ("admin: %s is undrained: %s", w.nodes[host].name, *reason);
        free (*reason);
        *reason = NULL;
    }
}

/* check.c - what must always hold, and what must hold in the end */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/sim/sim.h"

static bool is_booked (uint32_t rank)
{
    for (size_t i = 0; i < w.m.jobs_count; i++)
        if (w.m.jobs[i].booked && hk_rankset_has (w.m.jobs[i].booked, rank))
            return true;
    return false;
}

static bool is_host_booked (int host)
{
    for (int r = 0; r < w.per_host; r++)
        if (!is_booked (sim_rank (host, r)))
            return false;
    return true;
}

/* S1 and S4 on what is on disk: while a scheduler is ready, each held rank is
 * in its books or drained.
 */
void sim_check (void)
{
    uint64_t jobid;

    if (w.m.phase != 3)
        return;
    for (int h = 0; h < w.nodes_count; h++) {
        if (w.m.drained[h] || is_host_booked (h)
            || !sim_store_holds (w.c.store, h, &jobid))
            continue;
        sim_broken ("S4",
                    "%s is held for job %llu, not in the books of %s and not "
                    "drained",
                    w.nodes[h].name,
                    (unsigned long long)jobid,
                    w.m.life);
    }
}

static bool is_passing (const char *reason)
{
    return strstr (reason, "held") || strstr (reason, "no contact")
           || strstr (reason, "two machines") || strstr (reason, "active job");
}

/* L1: the faults have stopped.  Every rank of every allocation is done, the
 * books have running jobs alone, and drains of ours that only waited for
 * something are gone.
 */
void sim_check_settled (void)
{
    for (int h = 0; h < w.nodes_count; h++) {
        const struct sim_node *n = &w.nodes[h];
        sim_say ("%s: session %llu welcome %d, out %zu, in %zu, hkd %d, "
                 "heard %lld",
                 n->name,
                 (unsigned long long)n->session,
                 n->welcome,
                 n->to_c.count,
                 n->to_n.count,
                 n->runs != NULL,
                 (long long)n->heard_ms);
    }
    if (sim_store_open (w.c.store))
        sim_broken (
            "L1", "%zu allocations are still open", sim_store_open (w.c.store));
    for (size_t i = 0; i < w.m.jobs_count; i++) {
        const struct sim_job *job = &w.m.jobs[i];
        if (job->ended && !job->recorded)
            sim_broken ("L1",
                        "the end of job %llu was never recorded",
                        (unsigned long long)job->jobid);
        if (job->ended && job->booked && !hk_rankset_is_empty (job->booked))
            sim_broken ("L1",
                        "job %llu is over and the books have %zu ranks",
                        (unsigned long long)job->jobid,
                        hk_rankset_count (job->booked));
    }
    for (int h = 0; h < w.nodes_count; h++)
        if (w.m.drained[h] && !w.m.admins[h] && is_passing (w.m.drained[h])
            && !sim_store_failed_there (w.c.store, w.nodes[h].name))
            sim_broken (
                "L1", "%s stays drained: %s", w.nodes[h].name, w.m.drained[h]);
}

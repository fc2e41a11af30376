/* swarm.c - the coordinator under thousands of nodes, beside its bare parts */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <czmq.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "proto/log.h"
#include "tests/bench/common.h"

/* swarm [--nodes N]: prints what | target | measured | of the limit.  With
 * --serve CONF [--first I] it is but N nodes, from node I on, of the
 * coordinator that CONF names.  Targets are those of the design for a machine of two cores with the load generator
 * on the same two; a figure below half its target fails.
 */

enum { JOBS = 24, LIMIT_S = 120 };

static int bad;

static void row (const char *what,
                 double target,
                 double got,
                 const char *unit,
                 bool more_is_better)
{
    double share = more_is_better ? got / target : target / got;

    printf ("%-58s | %s%10.1f %-8s | %10.1f | %5.0f %%%s\n",
            what,
            more_is_better ? ">=" : "<=",
            target,
            unit,
            got,
            share * 100,
            share < 0.5 ? "  BELOW HALF" : "");
    fflush (stdout);
    bad += share < 0.5;
}

static void plain (const char *what, double got, const char *unit)
{
    printf ("%-58s | %12s %-8s | %10.1f |\n", what, "", unit, got);
    fflush (stdout);
}

/* Turn both until a condition holds; none may take for ever. */
#define UNTIL(cond, s, m, what)                                             \
    do {                                                                    \
        double until_t0 = bench_now ();                                     \
        while (!(cond)) {                                                   \
            bench_swarm_turn (s, 1);                                        \
            bench_manager_turn (m);                                         \
            if (bench_now () - until_t0 > LIMIT_S)                          \
                bench_fail ("%s: in vain (%zu up, %zu running, %zu acked, " \
                            "%llu freed)",                                  \
                            what,                                           \
                            (s)->up_count,                                  \
                            (s)->running,                                   \
                            (s)->acked,                                     \
                            (unsigned long long)(m)->ranks_freed);          \
        }                                                                   \
    } while (0)

static void storm (struct bench_daemons *d,
                   struct bench_swarm *s,
                   struct bench_manager *m,
                   int nodes)
{
    long before = bench_rss_kb (d->coordinator);
    double t0 = bench_now ();
    char what[80];

    bench_swarm_open (s, d->conf, 0, nodes, JOBS);
    UNTIL (s->up_count == (size_t)nodes, s, m, "connect storm");
    snprintf (what, sizeof (what), "%d nodes connect at once", nodes);
    row (what, 12.0 * nodes / 10000, bench_now () - t0, "s", false);
    row ("memory of the coordinator a connection",
         60,
         (double)(bench_rss_kb (d->coordinator) - before) / nodes,
         "KB",
         false);
}

static void jobs_start (struct bench_swarm *s,
                        struct bench_manager *m,
                        uint64_t base,
                        int jobs)
{
    bench_swarm_phase (s);
    bench_manager_phase (m, base);
    for (int j = 0; j < jobs; j++)
        bench_manager_job_end (m, base + (uint64_t)j);
    UNTIL (s->running == (size_t)s->count * (size_t)jobs, s, m, "jobs start");
    /* until their starts are acted on: the phase begins in quiet */
    for (int i = 0; i < 100; i++) {
        bench_swarm_turn (s, 5);
        bench_manager_turn (m);
    }
}

static void saturated (struct bench_daemons *d,
                       struct bench_swarm *s,
                       struct bench_manager *m,
                       int jobs)
{
    size_t all = (size_t)s->count * (size_t)jobs;
    double cpu, own, rate;
    double zmq, sqlite;

    jobs_start (s, m, 1000, jobs);
    cpu = bench_cpu (d->coordinator);
    own = bench_cpu (getpid ());
    for (int i = 0; i < s->count; i++) {
        bench_swarm_end (s, i);
        if (i % 64 == 0) {
            bench_swarm_turn (s, 0);
            bench_manager_turn (m);
        }
    }
    UNTIL (s->acked == all && m->ranks_freed == all, s, m, "saturated");
    rate = (double)all / (fmax (m->last_free, s->last_ack) - s->first_end);
    row ("report -> durable -> acknowledged and freed, saturated",
         50000,
         rate,
         "ranks/s",
         true);
    plain ("  CPU of the coordinator for it",
           (bench_cpu (d->coordinator) - cpu) * 1e6 / (double)all,
           "us/rank");
    plain ("  CPU of the nodes and the manager for it",
           (bench_cpu (getpid ()) - own) * 1e6 / (double)all,
           "us/rank");
    zmq = bench_bare_zmq (100000);
    sqlite = bench_bare_sqlite (d->dir, 100000, 1000);
    plain ("  bare ZeroMQ with CURVE, there and back", zmq, "msg/s");
    plain ("  bare SQLite, a row each in commits of 1000", sqlite, "rows/s");
    plain ("  ours of the slower of the two",
           rate * 100 / fmin (zmq, sqlite),
           "%");
}

static void one_job (struct bench_swarm *s, struct bench_manager *m)
{
    size_t all = (size_t)s->count;
    char what[80];

    jobs_start (s, m, 2000, 1);
    for (int i = 0; i < s->count; i++)
        bench_swarm_end (s, i);
    UNTIL (m->ranks_freed == all && s->acked == all, s, m, "one job");
    snprintf (what,
              sizeof (what),
              "a %d-rank job ends everywhere -> last free",
              s->count);
    row (what, 1.0 * s->count / 16384, m->last_free - s->first_end, "s", false);
    row ("  in so many frees", 25, (double)m->frees, "", false);
}

static void paced (struct bench_swarm *s, struct bench_manager *m, int rate)
{
    double *freed = calloc ((size_t)s->count, sizeof (double));
    double *acked = calloc ((size_t)s->count, sizeof (double));
    double t0;
    int next = 0;

    jobs_start (s, m, 3000, 1);
    t0 = bench_now ();
    while (next < s->count) {
        while (next < s->count && bench_now () - t0 >= (double)next / rate)
            bench_swarm_end (s, next++);
        bench_swarm_turn (s, 1); /* a core that spins is one too few */
        bench_manager_turn (m);
    }
    UNTIL (m->ranks_freed == (size_t)s->count && s->acked == (size_t)s->count,
           s,
           m,
           "paced");
    for (int i = 0; i < s->count; i++) {
        const struct bench_run *d = &s->nodes[i].done[3000 % s->jobs];
        freed[i] = (m->freed[i] - d->ended) * 1e3;
        acked[i] = (d->acked - d->ended) * 1e3;
    }
    qsort (freed, (size_t)s->count, sizeof (double), bench_compare);
    qsort (acked, (size_t)s->count, sizeof (double), bench_compare);
    printf ("at %d reports a second:\n", rate);
    row ("  report -> free, p50", 60, freed[s->count / 2], "ms", false);
    row ("  report -> acknowledged, p99",
         5,
         acked[s->count * 99 / 100],
         "ms",
         false);
    plain ("  report -> acknowledged, p50", acked[s->count / 2], "ms");
    free (freed);
    free (acked);
}

/* Held ranks by the hundred thousand: killed, started, asked. */
static void restart (struct bench_daemons *d,
                     struct bench_swarm *s,
                     struct bench_manager *m)
{
    char what[80];
    double t0;

    jobs_start (s, m, 4000, JOBS);
    bench_coordinator_kill (d);
    bench_manager_close (m);
    t0 = bench_now ();
    bench_coordinator_start (d);
    bench_coordinator_wait (d);
    snprintf (what,
              sizeof (what),
              "restart with %d held ranks -> ready",
              s->count * JOBS);
    row (what, 1.0 * s->count * JOBS / 100000, bench_now () - t0, "s", false);
    bench_manager_open (m, d->conf, s->count, JOBS);
    UNTIL (s->up_count == (size_t)s->count, s, m, "nodes come back");
    plain ("  -> every node has come back", bench_now () - t0, "s");
    bench_manager_phase (m, 4000);
    for (int i = 0; i < s->count; i++)
        bench_swarm_end (s, i);
    UNTIL (m->ranks_freed == (size_t)s->count * JOBS, s, m, "all is freed");
    plain ("  -> every rank is freed", bench_now () - t0, "s");
}

int main (int argc, char **argv)
{
    static const struct option longs[] = {
        { "nodes", required_argument, NULL, 'n' },
        { "serve", required_argument, NULL, 's' },
        { "first", required_argument, NULL, 'f' },
        { NULL, 0, NULL, 0 },
    };
    struct bench_daemons d = { .munged = 0 };
    struct bench_swarm s;
    struct bench_manager m;
    const char *serve = NULL;
    int nodes = 4096, first = 0, c;

    while ((c = getopt_long (argc, argv, "", longs, NULL)) >= 0) {
        if (c == 's')
            serve = optarg;
        else if (c == 'f')
            first = atoi (optarg);
        else if (c != 'n' || (nodes = atoi (optarg)) < 1 || nodes > 10000) {
            fprintf (stderr,
                     "usage: swarm [--nodes 1..10000] "
                     "[--serve CONF [--first I]]\n");
            return 2;
        }
    }
    hk_log_init ("swarm", LOG_ERR, NULL, NULL);
    zsys_handler_set (NULL);
    if (serve) {
        bench_nodes_run (serve, first, nodes);
        return 0;
    }
    bench_daemons_start (&d);
    bench_manager_open (&m, d.conf, nodes, JOBS);
    printf (
        "%-58s | %21s | %10s | of the limit\n", "what", "target", "measured");
    storm (&d, &s, &m, nodes);
    saturated (&d, &s, &m, 16);
    one_job (&s, &m);
    paced (&s, &m, 1000);
    restart (&d, &s, &m);
    bench_swarm_close (&s);
    bench_manager_close (&m);
    bench_daemons_stop (&d);
    return bad != 0;
}

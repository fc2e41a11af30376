/* common.h - what the benchmarks share: daemons, a swarm of nodes, a manager */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef BENCH_COMMON_H
#define BENCH_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "hkd/run.h"
#include "proto/conf.h"
#include "proto/link.h"

double bench_now (void); /* seconds, CLOCK_MONOTONIC */
/* Print why and end: nothing of a benchmark is worth going on after it. */
void bench_fail (const char *fmt, ...)
    __attribute__ ((format (printf, 1, 2), noreturn));
int bench_compare (const void *a, const void *b); /* of doubles, for qsort */

/* ---- common_daemon.c: munged and hk-coordinator in a folder of their own,
 * ended with this process
 */
struct bench_daemons {
    char dir[64];
    char conf_path[96];
    struct hk_conf *conf; /* as the coordinator's */
    pid_t munged, coordinator;
};
void bench_daemons_start (struct bench_daemons *d);
void bench_coordinator_start (struct bench_daemons *d);
void bench_coordinator_kill (struct bench_daemons *d); /* -9 */
/* Wait until it listens for clients: it does once all is loaded. */
void bench_coordinator_wait (struct bench_daemons *d);
long bench_rss_kb (pid_t pid);
double bench_cpu (pid_t pid); /* seconds so far */
void bench_daemons_stop (struct bench_daemons *d);

/* ---- common_swarm.c: one process that is many nodes: the real link and the
 * real state machine of hkd over a runner that only counts time
 */
struct bench_run { /* of one attempt on one node */
    uint64_t jobid;
    double ended; /* when its end was first sent */
    double acked;
};

struct bench_node {
    int i;
    char name[32];
    char boot[HK_ID_BYTES];
    struct hk_link_client *client;
    struct hkd_runs *runs;
    int fd; /* that epoll has; a lean client's changes with its socket */
    bool up;
    struct bench_run *done; /* one for each job */
};

struct bench_swarm {
    const struct hk_conf *conf;
    int first; /* node's number */
    int count;
    int jobs; /* at most */
    struct bench_node *nodes;
    int epoll;
    char instance[HK_ID_BYTES]; /* the coordinator's */
    void *context;
    size_t up_count, running, acked;
    double first_end; /* of the phase, 0: none yet */
    double last_ack;
    /* A run has started; NULL: it goes on until bench_swarm_end.  It is not
     * to be ended from here.
     */
    void (*started_f) (void *arg, int node, uint64_t alloc, int attempt);
    void *arg;
    int64_t runs_swept_ms;
    int64_t swept_ms;
};

void bench_swarm_open (struct bench_swarm *s,
                       const struct hk_conf *conf,
                       int first,
                       int count,
                       int jobs);
void bench_swarm_close (struct bench_swarm *s);
/* Do what can be done, wait at most ms for more. */
void bench_swarm_turn (struct bench_swarm *s, int ms);
/* Scripts of one node's runs end now. */
void bench_swarm_end (struct bench_swarm *s, int node);
void bench_swarm_end_one (struct bench_swarm *s,
                          int node,
                          uint64_t alloc,
                          int attempt);
void bench_swarm_phase (struct bench_swarm *s); /* counters to zero */

/* ---- common_nodes.c: nodes whose only script is /bin/true, until SIGTERM */
void bench_nodes_run (const char *conf_path, int first, int count);

/* ---- common_manager.c: a job manager and its scheduler */
struct bench_manager {
    struct hk_link_client *client;
    bool up, answered;
    uint64_t frees, ranks_freed, recorded;
    double last_free;
    uint64_t job_base; /* freed[] is of jobs from here on */
    int ranks;
    double *freed; /* [job - base][rank]: when; for `jobs` jobs */
    int jobs;
};

void bench_manager_open (struct bench_manager *m,
                         const struct hk_conf *conf,
                         int ranks,
                         int jobs);
void bench_manager_close (struct bench_manager *m);
void bench_manager_turn (struct bench_manager *m);
void bench_manager_phase (struct bench_manager *m, uint64_t job_base);
void bench_manager_job_end (struct bench_manager *m, uint64_t jobid);
/* A ping and its answer: seconds it took. */
double bench_manager_ping (struct bench_manager *m);

/* ---- common_bare.c: what the parts do without us, in the same run */
double bench_bare_zmq (int messages); /* CURVE round trips a second, many
                                            at once, text of a report's size */
double bench_bare_sqlite (const char *dir, int rows, int batch); /* rows/s */

#endif

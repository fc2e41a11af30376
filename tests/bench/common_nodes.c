/* common_nodes.c - nodes that run /bin/true for each job, until told to end */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include "tests/bench/common.h"

/* A run costs one process here, as it does under flux-core's own housekeeping:
 * the two are compared.
 */
enum { RUNS_MOST = 4096, JOBS = 64, IDLE_MS = 100 };

struct child {
    pid_t pid; /* 0: none */
    int node;
    uint64_t alloc;
    int attempt;
};

struct nodes {
    struct bench_swarm swarm;
    struct child children[RUNS_MOST];
    int count;
};

static volatile sig_atomic_t is_over;

static void on_signal (int sig)
{
    is_over |= sig != SIGCHLD; /* which only ends a wait */
}

static void run_start (void *arg, int node, uint64_t alloc, int attempt)
{
    static char *const argv[] = { "true", NULL };
    struct nodes *s = arg;
    struct child *c;

    if (s->count == RUNS_MOST)
        bench_fail ("more than %d runs at once", RUNS_MOST);
    c = &s->children[s->count++];
    *c = (struct child){ .node = node, .alloc = alloc, .attempt = attempt };
    if (posix_spawn (&c->pid, "/bin/true", NULL, NULL, argv, NULL) != 0)
        bench_fail ("cannot run /bin/true");
}

static void run_ended (struct nodes *s, pid_t pid)
{
    struct child c;
    int i = 0;

    while (i < s->count && s->children[i].pid != pid)
        i++;
    if (i == s->count)
        return;
    c = s->children[i];
    s->children[i] = s->children[--s->count];
    bench_swarm_end_one (&s->swarm, c.node, c.alloc, c.attempt);
}

void bench_nodes_run (const char *conf_path, int first, int count)
{
    static struct nodes s;
    struct sigaction on_end = { .sa_handler = on_signal };
    struct hk_error err;
    struct hk_conf *conf = hk_conf_load (conf_path, 0, &err);
    pid_t pid;

    if (!conf)
        bench_fail ("%s", err.text);
    sigaction (SIGTERM, &on_end, NULL);
    sigaction (SIGINT, &on_end, NULL);
    sigaction (SIGCHLD, &on_end, NULL);
    bench_swarm_open (&s.swarm, conf, first, count, JOBS);
    s.swarm.started_f = run_start;
    s.swarm.arg = &s;
    while (!is_over) {
        bench_swarm_turn (&s.swarm, s.count ? 1 : IDLE_MS);
        while ((pid = waitpid (-1, NULL, WNOHANG)) > 0)
            run_ended (&s, pid);
    }
    bench_swarm_close (&s.swarm);
    hk_conf_destroy (conf);
}

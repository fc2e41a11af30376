/* story.h - stories of the core: what happens, and what follows from it */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef TESTS_UNIT_STORY_H
#define TESTS_UNIT_STORY_H

#include <stdbool.h>
#include <stdint.h>
#include "coordinator/core/core.h"
#include "coordinator/store/store.h"

/* The core with a real store under a clock that the story moves.  Hosts are
 * node0 to node63 with the rank of their number, four cores each; hosts are
 * said as a list, "node[0-3]".  Each sentence below is a turn of its own: step,
 * tick, commit, actions.  A sentence that the core refuses fails the test.
 */
enum { STORY_HOSTS = 64, STORY_RUNS = 8, STORY_JOBS = 64, STORY_LINES = 512 };

struct story_run {
    uint64_t alloc, jobid;
    int attempt;
    enum hk_run_phase phase; /* 0: asked for, not begun */
    enum hk_outcome outcome;
    const char *instance;
    const char *blocked; /* by what; NULL: it is not */
};

/* What a node has, as hkd would. */
struct story_node {
    char boot[HK_ID_BYTES];
    int boots;
    uint64_t peer; /* 0: not connected */
    bool silent;   /* connected, and says nothing */
    struct story_run runs[STORY_RUNS];
    int runs_count;
    uint64_t drain_n, undrain_n; /* of the last request */
};

struct story_job {
    uint64_t jobid, alloc;
    char hosts[128];
};

struct story_line {
    char verb[32], host[32], rest[512];
};

struct story {
    char folder[64], dir[80];
    struct hk_conf *conf, *old_conf;
    struct hkc_store *store;
    struct hkc_core *core;
    int64_t now_ms;
    double wall;
    uint64_t next_alloc, next_peer;
    bool flux;       /* a life ends with its link; JOB_BEGIN follows */
    bool tells_acks; /* else they are passed over, as are welcomes */
    bool tells_links;
    struct story_node nodes[STORY_HOSTS];
    struct story_job jobs[STORY_JOBS];
    int jobs_count;
    struct story_line lines[STORY_LINES];
    int lines_count;
    const char *account_cores; /* of each rank of an account; "0-3" */
    uint64_t active;   /* id of a job that the next hello names as active */
    char results[512]; /* of the last kill */
};

/* For cmocka's setup and teardown: *state is the story. */
int story_set_up (void **state);
int story_tear_down (void **state);

/* "release-after=all" of [housekeeping], or "link.heartbeat=1s". */
void story_conf (struct story *s, const char *option);
void story_flux (struct story *s);
/* The coordinator is killed and starts again from the store. */
void story_restart (struct story *s);

/* Time goes on; all that are connected and not silent say that they live. */
void later (struct story *s, int64_t ms);

/* ---- jobs ---- */

uint64_t job_ends (struct story *s, uint64_t jobid, const char *hosts);
/* "held" if it was known, "new" else. */
const char *job_ends_again (struct story *s, uint64_t jobid);
void job_begins (struct story *s, uint64_t jobid);
void job_drops (struct story *s, uint64_t jobid);
/* The manager has forgotten it; if at all, it was submitted as ours. */
void job_purged (struct story *s, uint64_t jobid, bool ours);
/* With R as it is. */
uint64_t job_ends_with (struct story *s, uint64_t jobid, const char *R);

/* ---- nodes ---- */

/* They connect and tell all they have. */
void nodes_up (struct story *s, const char *hosts);
void nodes_gone (struct story *s, const char *hosts);
void nodes_silent (struct story *s, const char *hosts, bool silent);
/* They tell all they have once more. */
void nodes_tell (struct story *s, const char *hosts);
/* Another boot, two heartbeats long: what they had is gone; they connect. */
void nodes_boot (struct story *s, const char *hosts);
/* HELLO alone, with a boot of that name; the peer. */
uint64_t node_hello (struct story *s, const char *host, const char *boot);
void node_forgets (struct story *s, const char *host, uint64_t jobid);
/* A run that the coordinator knows nothing of. */
void node_has (struct story *s, const char *host, uint64_t alloc);

/* The run that was asked for: it runs; it has ended. */
void run_runs (struct story *s, const char *hosts, uint64_t jobid);
void run_ends (struct story *s,
               const char *hosts,
               uint64_t jobid,
               enum hk_outcome outcome);
/* A report as it may come late: of another attempt, boot or peer. */
void run_report (struct story *s,
                 uint64_t peer,
                 const char *boot,
                 const struct story_run *run);
/* It waits on its nodes for what is in its way. */
void run_waits (struct story *s,
                const char *hosts,
                uint64_t jobid,
                const char *blocked);
/* START, running, success: all of it. */
void run_well (struct story *s, const char *hosts, uint64_t jobid);

/* ---- the scheduler ---- */

/* active: ranks of active jobs, "" none. */
void sched_hello (struct story *s,
                  const char *life,
                  bool partial_ok,
                  const char *active);
void sched_hello_after (struct story *s, const char *life, uint64_t last_free);
/* account: ranks that it counts with all cores; NULL: unavailable. */
void sched_ready (struct story *s, const char *life, const char *account);
void sched_online (struct story *s,
                   const char *life,
                   const char *active,
                   const char *account);
void sched_gone (struct story *s);
/* The host of each rank from 0 on, as they are now; NULL: not known. */
void ranks_are (struct story *s, const char *hosts);
/* Hello with nothing active and partial-ok, ready without account. */
void sched_up (struct story *s, const char *life);

/* Answers the request that is under way for each host. */
void drained (struct story *s,
              const char *hosts,
              enum hkc_drain_result result,
              const char *reason);
void undrained (struct story *s,
                const char *hosts,
                enum hkc_drain_result result);

/* ---- acts ---- */

void kill_runs (struct story *s, uint64_t jobid, const char *hosts);
void kill_ranks (struct story *s, uint64_t jobid, const char *ranks);
void story_event (struct story *s, enum hkc_event_kind kind);
/* Any event; -1 if it is refused. */
int story_step (struct story *s,
                struct hkc_event *ev,
                struct hkc_answer *answer,
                struct hk_error *err);
void story_turn (struct story *s);

/* ---- what follows ---- */

/* All that went out since the last time, hosts folded, in any order:
 *   "start node[0-3] 10"    with "#2" for a second attempt
 *   "stop node1 10 15"      "ack node1 10"
 *   "free 10 0-2"           with " final"
 *   "tell 10 0-3"           with " free 1-2"
 *   "told L1"               "resumed L1"
 *   "drain node1 REASON"    "undrain node1 REASON"
 *   "close node1"           "refuse node1"
 *   "alarm TEXT"            of level alert
 */
void expect_lines (struct story *s, const char *const *lines);
#define expect(s, ...) \
    expect_lines (s, (const char *const[]){ __VA_ARGS__, NULL })
#define expect_nothing(s) expect_lines (s, (const char *const[]){ NULL })
/* So that what came before does not matter. */
void pass_over (struct story *s);

/* Phase and marks, "waiting lost"; "gone" when it is no longer held. */
void expect_phase (struct story *s,
                   uint64_t jobid,
                   const char *hosts,
                   const char *phase);
/* The act that a person is shown. */
void expect_act (struct story *s,
                 uint64_t jobid,
                 const char *host,
                 const char *act);
/* Outcomes of a job's runs on a host in history, "rebooted,success". */
void expect_history (struct story *s,
                     uint64_t jobid,
                     const char *host,
                     const char *outcomes);

#endif

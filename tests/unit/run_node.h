/* run_node.h - a node for its state machine: events in, actions as words */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef TESTS_UNIT_RUN_NODE_H
#define TESTS_UNIT_RUN_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hkd/run.h"

#define BOOT "0123456789abcdef0123456789abcdef"
#define OTHER_BOOT "ffffffffffffffffffffffffffffffff"
#define INSTANCE "11111111111111111111111111111111"
#define INVOCATION "22222222222222222222222222222222"
#define UNIT "flux-housekeeping-fNH.service"

enum { ALLOC = 77, MINUTE = 60000, HOUR = 3600000 };

/* A node: its time, and what the last step asked for, as words: "prepare",
 * "file report" ...; LOG actions are left out.
 */
struct run_node {
    struct hk_conf *conf;
    struct hkd_runs *runs;
    int64_t now_ms;
    char acts[512];
    struct hk_run last; /* of the last action that has one */
    char reason[1024];
    char script[256];
    int signum;
    struct hkd_limits written;       /* with the file */
    const struct hkd_limits *limits; /* of the next file; NULL: none */
};

extern struct run_node rn;

/* A test's fixtures: a node with a link, and no run. */
int run_set_up (void **state);
int run_tear_down (void **state);

/* An event, of ALLOC's first attempt if it names none: 0 or -1. */
int run_feed (struct hkd_event *ev);
int run_simple (enum hkd_event_kind kind);
int run_start (void);
int run_blocked (const char *by);
int run_prepared (size_t scripts);
int run_started (void);
/* Results of scripts as "0 7 k15 r -": exit codes, killed by a signal, running,
 * not begun.
 */
int run_results (const char *text);
int run_cgroup (size_t processes);
int run_stop (int sig);
int run_ack (const char *invocation);
int run_failed (const char *why, bool no_scripts);
int run_file (enum hk_run_phase phase,
              enum hk_outcome outcome,
              const char *invocation,
              const char *text);
int run_unit (const char *invocation, const char *text);

/* A run whose scripts have these results. */
void run_running (const char *text);
/* Until the next deadline, which must be there and may be over. */
void run_wait_for_deadline (void);
/* Deadlines, up to `limit`, until the last step asked for `what`. */
void run_wait_for (const char *what, int64_t limit);

#endif

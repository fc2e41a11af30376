/* run.h - the node's state machine: runs from START to ACK */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HKD_RUN_H
#define HKD_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/conf.h"
#include "proto/error.h"
#include "proto/limits.h"
#include "proto/run.h"
#include "hkd/limits.h"

/* Pure: no I/O, no clock, no bus.  step (event) -> actions, carried out in
 * order before the next step; what an action brings about comes back as an
 * event.  Actions and the text in them are borrowed until the next step.
 * Memory that is gone ends the process: files and units outlive it.
 */
struct hkd_runs;

enum hkd_event_kind {
    HKD_EV_TICK = 1,
    /* at start, in this order: each file, each unit of ours, then ADOPTED */
    HKD_EV_FILE,    /* a run as its file tells it, of this boot */
    HKD_EV_UNIT,    /* a unit that systemd has, with what it still tells */
    HKD_EV_ADOPTED, /* no more: files without unit vanished */
    /* the link */
    HKD_EV_UP, /* welcome: send the state */
    HKD_EV_DOWN,
    HKD_EV_START,
    HKD_EV_STOP,
    HKD_EV_ACK,
    /* what actions brought about */
    HKD_EV_BLOCKED,      /* reason: processes of an older run are left */
    HKD_EV_PREPARED,     /* scripts found and file written: start the unit */
    HKD_EV_STARTED,      /* the unit is active */
    HKD_EV_START_FAILED, /* reason: scripts, file or systemd */
    HKD_EV_SCRIPTS,      /* results so far; which one is under way */
    HKD_EV_FINISHED,     /* no script is under way or will be */
    HKD_EV_CGROUP,       /* what is left in the unit's cgroup */
    HKD_EV_GONE,         /* systemd no longer has the unit */
    HKD_EV_CONF,
};

struct hkd_event {
    enum hkd_event_kind kind;
    int64_t now_ms; /* CLOCK_BOOTTIME */
    double wall;
    uint64_t alloc; /* of the run, but TICK, ADOPTED, UP, DOWN, CONF */
    int attempt;
    union {
        struct {
            const struct hk_run *run;
            const struct hkd_limits *limits; /* NULL: as configured now */
        } file;
        const struct hk_run *run; /* UNIT: invocation, unit, scripts */
        struct {
            struct hk_start start;
            const char *instance;
        } start;
        struct hk_stop stop;
        struct hk_ack ack;
        struct {
            const char *reason;
        } blocked;
        struct {
            const char *const *names; /* the scripts of the unit, in order */
            size_t count;
        } prepared;
        struct {
            const char *invocation;
            const char *unit;
        } started;
        struct {
            const char *reason;
            bool no_scripts; /* none was found */
        } failed;
        struct {
            const struct hk_script_result *results;
            size_t count;
        } scripts;
        struct {
            const char *const *leftovers; /* "pid comm wchan" */
            size_t count;
        } cgroup;
        const struct hk_conf *conf;
    };
};

enum hkd_action_kind {
    HKD_ACT_PREPARE = 1, /* look for what is in the way, find scripts:
                            BLOCKED, PREPARED or START_FAILED */
    HKD_ACT_UNIT_START,  /* then STARTED, SCRIPTS.., FINISHED or START_FAILED */
    HKD_ACT_FILE,        /* write the file anew: the run has changed */
    HKD_ACT_SIGNAL,      /* to every process of the unit's cgroup; from the
                            first on no further script of it may start */
    HKD_ACT_CGROUP,      /* look what is left: CGROUP follows */
    HKD_ACT_FORGET,      /* let systemd forget the unit, remove the file */
    HKD_ACT_REPORT,      /* send the run */
    HKD_ACT_STATE,       /* send all runs: hkd_runs_each */
    HKD_ACT_STOPPED,     /* answer a stop */
    HKD_ACT_LOG,
};

struct hkd_action {
    enum hkd_action_kind kind;
    const struct hk_run *run;        /* of all but STATE */
    const struct hk_start *start;    /* PREPARE, UNIT_START: the environment */
    const struct hkd_limits *limits; /* FILE: go with it */
    int signal;                      /* SIGNAL */
    int level;                       /* LOG */
    const char *text;                /* LOG, STOPPED */
};

struct hkd_runs *hkd_runs_create (const struct hk_conf *conf, /* borrowed */
                                  const char *host,
                                  const char *boot_id);
void hkd_runs_destroy (struct hkd_runs *runs);

/* 0, or -1 with errno and nothing changed: EINVAL, ENOENT (no such run). */
int hkd_runs_step (struct hkd_runs *runs,
                   const struct hkd_event *ev,
                   struct hk_error *err);
const struct hkd_action *hkd_runs_actions (const struct hkd_runs *runs,
                                           size_t *count);
int64_t hkd_runs_deadline (const struct hkd_runs *runs); /* next TICK */

typedef int (*hkd_run_f) (void *arg, const struct hk_run *run);
int hkd_runs_each (const struct hkd_runs *runs, hkd_run_f fn, void *arg);
size_t hkd_runs_count (const struct hkd_runs *runs);
/* Is it here, and not ended? */
bool hkd_runs_has (const struct hkd_runs *runs, uint64_t alloc, int attempt);
/* What START said of a run, for its file; NULL if there is no such run. */
const struct hk_start *hkd_runs_start (const struct hkd_runs *runs,
                                       uint64_t alloc,
                                       int attempt);

#endif

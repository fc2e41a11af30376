/* run.h - a run of housekeeping on a host, as node and coordinator tell it */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HK_RUN_H
#define HK_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* How a run ended.  The names are what messages, store and users see. */
enum hk_outcome {
    HK_OUTCOME_NONE = 0,
    HK_OUTCOME_SUCCESS,
    HK_OUTCOME_EXIT_CODE,    /* "exit-code" */
    HK_OUTCOME_SIGNAL,       /* "signal" */
    HK_OUTCOME_TIMEOUT,      /* "timeout" */
    HK_OUTCOME_KILLED,       /* "killed": by an admin */
    HK_OUTCOME_START_FAILED, /* "start-failed" */
    HK_OUTCOME_VANISHED,     /* "vanished" */
    HK_OUTCOME_REBOOTED,     /* "rebooted" */
    HK_OUTCOME_UNKNOWN,      /* "unknown": results are missing */
    HK_OUTCOME_SKIPPED,      /* "skipped": an admin's word, or not our host */
    HK_OUTCOME_FORCED,       /* "forced": an admin's word */
    HK_OUTCOME_COUNT,
};

/* Of a run on its node. */
enum hk_run_phase {
    HK_RUN_STARTING = 1, /* "starting": file written, unit asked for */
    HK_RUN_RUNNING,      /* "running" */
    HK_RUN_STOPPING,     /* "stopping": being ended, or leftovers are */
    HK_RUN_ENDED,        /* "ended": outcome set, cgroup empty or given up */
};

const char *hk_outcome_name (enum hk_outcome outcome); /* "" for NONE */
enum hk_outcome hk_outcome_decode (const char *name);  /* NONE if unknown */
const char *hk_run_phase_name (enum hk_run_phase phase);
int hk_run_phase_decode (const char *name); /* -1 if unknown */
/* A failure needs the drain of its node: all but success, skipped, forced. */
bool hk_outcome_is_failure (enum hk_outcome outcome);

struct hk_script_result {
    const char *name;
    int code;       /* exit status; -1 if ended by signal or not yet ended */
    int signal;     /* 0 unless ended by one */
    double t_start; /* seconds since the epoch, 0: not started */
    double t_end;   /* 0: not ended */
};

/* All strings are the maker's, borrowed by the reader; ids are 32 lower case
 * hex digits.
 */
struct hk_run {
    uint64_t alloc;
    const char *instance; /* of the coordinator that started it */
    int attempt;          /* from 1 */
    uint64_t jobid;
    const char *boot_id;
    const char *invocation; /* systemd's; "" before the unit exists */
    const char *unit;       /* unit name, "" before it has one */
    enum hk_run_phase phase;
    const char *script; /* under way; "" between scripts */
    size_t scripts_count;
    const struct hk_script_result *scripts;
    enum hk_outcome outcome;
    size_t leftovers_count; /* "pid comm wchan" each */
    const char *const *leftovers;
    const char *reason; /* one line for a person, "" if none */
    double t_start;
    double t_end; /* 0: not ended */
};

struct hk_start {
    uint64_t alloc;
    int attempt;
    const char *boot_id;
    uint64_t jobid;
    uint32_t userid;
    const char *ranks; /* idset, all ranks of the job */
    uint32_t rank;     /* the lowest of this host */
    const char *queue; /* "" if none */
};

struct hk_stop {
    uint64_t alloc;
    int attempt;
    int signal;
    const char *reason;
};

struct hk_ack {
    uint64_t alloc;
    int attempt;
    const char *invocation;
};

#endif

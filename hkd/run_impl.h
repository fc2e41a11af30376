/* run_impl.h - what the files of the state machine share */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HKD_RUN_IMPL_H
#define HKD_RUN_IMPL_H

#include "proto/jobid.h"
#include "hkd/run.h"

enum {
    HKD_REPEAT_FIRST_MS = 2000,
    HKD_REPEAT_MOST_MS = 30000,
    HKD_LOOK_FIRST_MS = 20, /* at the cgroup, while a run is being ended */
    HKD_LOOK_MOST_MS = 1000,
    HKD_BLOCKED_FIRST_MS = 200, /* while others' processes are in the way */
    HKD_BLOCKED_MOST_MS = 5000,
    HKD_SUBJECT_BYTES = HK_JOBID_TEXT_BYTES + 8,
};

enum hkd_stage { /* of ending what is left */
                 HKD_STAGE_NONE = 0,
                 HKD_STAGE_TERM,
                 HKD_STAGE_KILL,
};

struct hkd_run {
    struct hkd_run *next;
    struct hk_run pub; /* its strings and arrays are ours, on the heap */
    struct hk_start start;
    struct hkd_limits limits; /* as it began */
    enum hk_no_scripts no_scripts;
    bool has_unit;
    bool finished;
    bool looking; /* CGROUP was asked for */
    bool blocked; /* STARTING, with no unit yet */
    enum hkd_stage stage;
    int64_t start_ms;
    int64_t stage_ms;
    int64_t look_ms, look_wait_ms;
    int64_t repeat_ms, repeat_wait_ms;
};

struct hkd_runs {
    const struct hk_conf *conf;
    char *host;
    char boot_id[HK_ID_BYTES];
    struct hkd_run *first;
    bool up;
    int64_t now_ms;
    double wall;
    struct hkd_action *actions;
    size_t actions_count, actions_size;
    struct hkd_run *forgotten; /* freed at the next step */
    char *texts[64];           /* of LOG actions, freed at the next step */
    size_t texts_count;
};

/* run_memory.c */
void hkd_text_set (const char **field, const char *text);
struct hkd_action *hkd_act (struct hkd_runs *runs,
                            enum hkd_action_kind kind,
                            const struct hkd_run *run);
void hkd_say (struct hkd_runs *runs,
              int level,
              const struct hkd_run *run,
              const char *fmt,
              ...) __attribute__ ((format (printf, 4, 5)));
void hkd_scripts_set (struct hkd_run *run,
                      const struct hk_script_result *results,
                      size_t count);
struct hkd_run *hkd_run_find (const struct hkd_runs *runs,
                              uint64_t alloc,
                              int attempt);
/* At the end: the order of arrival is the one in which a person sees them. */
struct hkd_run *hkd_run_add (struct hkd_runs *runs,
                             uint64_t alloc,
                             int attempt);
/* The last step's actions are over. */
void hkd_runs_settle (struct hkd_runs *runs);

/* run.c */
void hkd_report (struct hkd_runs *runs, struct hkd_run *run);

/* run_blocked.c */
void hkd_run_blocked (struct hkd_runs *runs,
                      struct hkd_run *run,
                      const char *reason);
void hkd_run_unblocked (struct hkd_runs *runs, struct hkd_run *run);
/* Nothing was begun: there is nothing to be ended. */
void hkd_run_blocked_end (struct hkd_runs *runs,
                          struct hkd_run *run,
                          enum hk_outcome outcome,
                          const char *why);
void hkd_run_blocked_tick (struct hkd_runs *runs, struct hkd_run *run);

/* run_end.c */
/* The unit, or the job while there is none: for the log; may be in `name`. */
const char *hkd_run_subject (const struct hkd_run *run,
                             char name[HKD_SUBJECT_BYTES]);
/* When `timeout` is over; INT64_MAX: never. */
int64_t hkd_run_limit (const struct hkd_run *run);
void hkd_run_stop (struct hkd_runs *runs,
                   struct hkd_run *run,
                   enum hk_outcome outcome,
                   int signal,
                   const char *reason);
/* Its unit came to be known, or hkd anew: the signal may have reached none. */
void hkd_run_stop_again (struct hkd_runs *runs, struct hkd_run *run);
void hkd_run_look (struct hkd_runs *runs, struct hkd_run *run);
void hkd_run_cgroup (struct hkd_runs *runs,
                     struct hkd_run *run,
                     const char *const *leftovers,
                     size_t count);
void hkd_run_ended (struct hkd_runs *runs,
                    struct hkd_run *run,
                    enum hk_outcome outcome,
                    const char *reason);
void hkd_run_tick (struct hkd_runs *runs, struct hkd_run *run);
int64_t hkd_run_deadline (const struct hkd_run *run);

#endif

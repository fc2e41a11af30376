/* core.h - the coordinator's decisions: step (event) -> changes, actions */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HKC_CORE_H
#define HKC_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/conf.h"
#include "proto/error.h"
#include "proto/limits.h"
#include "proto/rankset.h"
#include "proto/resource.h"
#include "proto/run.h"

/* The core is pure: no I/O, no clock, no threads, no logging, no JSON of its
 * own.  One turn of its caller is
 *
 *     step, step, ..., step (TICK)   decide
 *     hkc_core_changes               the rows to commit, in one transaction
 *     hkc_core_actions               after the commit: carry them out
 *     hkc_core_settle                what was borrowed ends here
 *
 * Time: now_ms is CLOCK_BOOTTIME, wall is seconds since the epoch and is only
 * recorded.  Memory that is gone ends the process, as it does in CRoaring and
 * czmq below: what was committed stands, and a restart goes on from there.
 */
struct hkc_core;

/* ---- rows: what the store writes and what it gives back at start ---- */

enum hkc_phase {
    HKC_WAITING = 1, /* START not confirmed */
    HKC_RUNNING,
    HKC_STOPPING,
    HKC_ENDED, /* outcome on disk */
    HKC_DUE,   /* may be freed */
    HKC_DONE,  /* freed or closed out */
};
const char *hkc_phase_name (enum hkc_phase phase);

enum hkc_cause_kind { /* gravest first */
                      HKC_CAUSE_FAILURE = 1,
                      HKC_CAUSE_UNKNOWN_RUN,
                      HKC_CAUSE_CONFLICT,
                      HKC_CAUSE_GHOST,
                      HKC_CAUSE_LOST,
                      HKC_CAUSE_HELLO,
};
const char *hkc_cause_name (enum hkc_cause_kind kind);

enum hkc_life_state {
    HKC_LIFE_NONE = 0,
    HKC_LIFE_HELLO,    /* asked; drains may still be unconfirmed */
    HKC_LIFE_ANSWERED, /* told; not ready */
    HKC_LIFE_READY,
};

enum hkc_row_kind {
    HKC_ROW_ALLOC = 1, /* written once */
    HKC_ROW_STATE,     /* of an allocation: what changes */
    HKC_ROW_PART,
    HKC_ROW_HOST,
    HKC_ROW_CAUSE,
    HKC_ROW_CAUSE_GONE,
    HKC_ROW_FREE,
    HKC_ROW_FREE_GONE, /* confirmed, or its life ended */
    HKC_ROW_SCHED,
    HKC_ROW_HISTORY,
    HKC_ROW_CLOSED,  /* the allocation and its parts leave the live tables */
    HKC_ROW_DROPPED, /* as CLOSED without a trace: the job runs again */
    HKC_ROW_AUDIT,
};

struct hkc_row_alloc {
    uint64_t alloc;
    uint64_t jobid;
    uint32_t userid;
    int64_t priority;
    double t_submit;
    double t_end;
    const char *R;
    const char *digest;
    const char *queue;
    uint64_t pid; /* of its first part; part i has pid + i */
    uint32_t parts_count;
};
struct hkc_row_state {
    uint64_t alloc;
    bool begun;
    double t_first_end; /* 0: none ended */
    const char *done;   /* idset */
    const char *known;  /* idset, of the life in the sched row */
};
struct hkc_row_part {
    uint64_t pid;
    uint64_t alloc;
    const char *host;
    enum hkc_phase phase; /* DONE is told by the state row alone */
    int attempt;
    const char *boot_id;
    const char *invocation;
    bool start_sent;
    enum hk_outcome outcome;
    int stop_signal;
    bool conflict;
    double t_since;
    double t_start;
    const char *script; /* that failed */
    const char *reason;
};
struct hkc_row_host {
    const char *host;
    const char *boot_id;
    double t_seen;       /* first HELLO ever; 0: never */
    int drain;           /* enum hkc_drain_state */
    const char *reasons; /* sent since it was last known undrained, by '\n' */
};
struct hkc_row_cause {
    const char *host;
    enum hkc_cause_kind kind;
    uint64_t about; /* alloc; 0 for lost */
    const char *reason;
    bool confirmed;
    double t;
};
struct hkc_row_free {
    uint64_t n;
    const char *life;
    uint64_t jobid;
    const char *ranks;
    const char *R;
    bool final;
};
struct hkc_row_sched {
    const char *life;
    enum hkc_life_state state;
    bool partial_ok;
    bool account_spoken;
    uint64_t free_n;
    const char *recover; /* why the store is not believed; "" if it is */
    const char *active;  /* ids of jobs that the hello named, by spaces */
};
struct hkc_row_history {
    uint64_t pid;
    int attempt;
    uint64_t alloc;
    uint64_t jobid;
    uint32_t userid;
    const char *host;
    enum hk_outcome outcome;
    double t_start;
    double t_end;
    const char *invocation;
    const char *reason;
    size_t scripts_count;
    const struct hk_script_result *scripts;
};
struct hkc_row_audit {
    double t;
    uint32_t userid;
    const char *what;
    const char *about;
    const char *reason;
};

struct hkc_row {
    enum hkc_row_kind kind;
    union {
        struct hkc_row_alloc alloc;
        struct hkc_row_state state;
        struct hkc_row_part part;
        struct hkc_row_host host;
        struct hkc_row_cause cause;
        struct hkc_row_free free;
        struct hkc_row_sched sched;
        struct hkc_row_history history;
        struct hkc_row_audit audit;
        struct { /* CLOSED, DROPPED */
            uint64_t alloc;
            uint64_t jobid;
            double t_submit;
            double t_end;
            double t_closed;
            uint64_t pid;
            uint32_t parts_count;
            const char *digest;
        } closed;
    };
};

/* ---- events ---- */

enum hkc_event_kind {
    HKC_EV_TICK = 1, /* timers, frees, drains; last of each turn */
    HKC_EV_JOB_END,
    HKC_EV_JOB_END_AGAIN, /* of a closed allocation: job_end.res is borrowed */
    /* The job manager let go of the ranks.  Until then an allocation is
     * recorded alone: nothing of it is started, drained or told at a hello,
     * since the manager itself tells its scheduler of it, and it stays so over
     * a restart where a host begins jobs (life_ends_with_link).  Said before
     * the answer to a hello it is told there, so the manager must not tell it;
     * said later it is known whole at ready, so the manager must. */
    HKC_EV_JOB_BEGIN,
    HKC_EV_JOB_DROP, /* recorded, but the job runs again */
    /* The manager no longer has the job: a scheduler that starts cannot be
     * told of it.  Its held ranks are drained at each hello, by host.  Kept in
     * memory alone: the host says it again after a restart, before a JOB_BEGIN
     * if there is one.  A life that is ready goes on as it was. */
    HKC_EV_JOB_PURGED,
    /* Which host has which rank now, said before a hello: R of an older start
     * of the manager may have them at others.  A part of which one is, is not
     * told at a hello, and its host is drained by name first.  Copied; kept in
     * memory alone.  A life that is ready goes on as it was. */
    HKC_EV_HOSTS,
    HKC_EV_NODE_HELLO, /* answered by a WELCOME or REFUSE action */
    HKC_EV_NODE_STATE,
    HKC_EV_NODE_RUN,
    HKC_EV_NODE_ALIVE,
    HKC_EV_NODE_GONE,
    HKC_EV_SCHED_HELLO,
    HKC_EV_SCHED_READY, /* without a hello before: online before us */
    HKC_EV_SCHED_GONE,
    HKC_EV_FREE_OK,
    HKC_EV_DRAIN_DONE,
    HKC_EV_UNDRAIN_DONE,
    HKC_EV_KILL,
    HKC_EV_CONF,       /* another configuration, already checked */
    HKC_EV_STORE_BACK, /* the store went back in time */
    HKC_EV_RECOVER,    /* an admin says: go on with it */
    HKC_EV_DEAF_ENDS,  /* nothing was heard until now: count silence anew */
};

enum hkc_drain_result {
    HKC_DRAIN_OK = 1,
    HKC_DRAIN_ALREADY,
    HKC_DRAIN_EXCLUDED,
    HKC_DRAIN_NOT_FOUND,
    HKC_DRAIN_FAILED,
    HKC_DRAIN_CHANGED,     /* undrain: reason is not the one named */
    HKC_DRAIN_NOT_DRAINED, /* undrain */
};

struct hkc_event {
    enum hkc_event_kind kind;
    int64_t now_ms;
    double wall;
    union {
        struct {
            uint64_t alloc; /* random, for a new one */
            uint64_t jobid;
            uint32_t userid;
            int64_t priority;
            double t_submit;
            double t_end;
            const char *queue;
            struct hk_resource *res; /* taken on success if new */
            bool hold_begin;         /* Flux: JOB_BEGIN follows */
        } job_end;
        struct {
            uint64_t alloc;
        } job; /* JOB_BEGIN, JOB_DROP */
        struct {
            uint64_t jobid;
            double t_submit;
        } purged; /* every open allocation of both */
        struct {
            const struct hk_hostlist *hosts; /* by rank; NULL: as R says */
        } inventory;                         /* HOSTS */
        struct {
            uint64_t peer;
            const char *host;
            const char *short_host;
            const char *boot_id;
            const char *address;
        } node_hello;
        struct {
            uint64_t peer;
            const char *boot_id;
            const struct hk_run *runs;
            const bool *closed; /* runs[i] is in the history of ours */
            size_t runs_count;
            bool first; /* of the parts of one state */
            bool last;
            const char *foreign;
        } node_state;
        struct {
            uint64_t peer;
            const struct hk_run *run;
            bool closed;
        } node_run;
        struct {
            uint64_t peer;
        } node; /* ALIVE, GONE */
        struct {
            const char *life;
            bool partial_ok;
            uint64_t last_free;
            uint64_t tag; /* HELLO: given back with its answer */
            const struct hk_rankset *active; /* as they are now; NULL: none */
            const uint64_t *jobs;            /* ids of the active jobs */
            size_t jobs_count;
            const struct hk_resource *account; /* NULL: unavailable */
        } sched;                               /* HELLO, READY */
        struct {
            uint64_t n;
            const char *host;
            enum hkc_drain_result result;
            const char *reason; /* ALREADY, CHANGED: the present one */
            const char *text;   /* FAILED: why */
        } done;                 /* FREE_OK, DRAIN_DONE, UNDRAIN_DONE */
        struct {
            uint64_t jobid;                  /* 0: any */
            const struct hk_hostlist *hosts; /* NULL: any */
            const struct hk_rankset *ranks;  /* as in R; NULL: any */
            int signal;
            const char *reason;
            uint32_t userid;
        } kill;
        const struct hk_conf *conf; /* borrowed until the next CONF */
        const char *why;            /* STORE_BACK, RECOVER */
        uint32_t userid;            /* RECOVER */
    };
};

/* ---- actions: only after the commit ---- */

enum hkc_action_kind {
    HKC_ACT_WELCOME = 1,
    HKC_ACT_REFUSE,
    HKC_ACT_CLOSE, /* the session was replaced by another */
    HKC_ACT_START,
    HKC_ACT_STOP,
    HKC_ACT_ACK,
    HKC_ACT_HELLO_ENTRY,
    HKC_ACT_HELLO_END,
    HKC_ACT_FREE,
    HKC_ACT_DRAIN,
    HKC_ACT_UNDRAIN,
    HKC_ACT_LOG,
};

struct hkc_action {
    enum hkc_action_kind kind;
    union {
        struct {
            uint64_t peer;
            const char *code;
            const char *text;
        } node; /* WELCOME, REFUSE, CLOSE */
        struct {
            uint64_t peer;
            struct hk_start start;
        } start;
        struct {
            uint64_t peer;
            struct hk_stop stop;
        } stop;
        struct {
            uint64_t peer;
            struct hk_ack ack;
        } ack;
        struct {
            uint64_t tag; /* of the hello: the host drops another's */
            const char *life;
            uint64_t jobid;
            int64_t priority;
            uint32_t userid;
            double t_submit;
            const char *R;
            const char *free; /* idset; NULL: nothing was freed */
        } entry;
        struct {
            uint64_t tag;
            const char *life;
            bool resumed; /* no entries: known is as it was */
        } hello_end;
        struct hkc_row_free free;
        struct {
            uint64_t n;
            const char *life;
            const char *host;
            const char *ranks; /* "" if R has none of them right */
            const char *reason;
        } drain; /* DRAIN, UNDRAIN */
        struct {
            int level;
            uint64_t jobid;
            const char *host;
            const char *text;
        } log;
    };
};

struct hkc_result {
    const char *host;
    const char *text;
};

struct hkc_answer {
    uint64_t alloc;
    const char *state; /* JOB_END: "new", "held", "done" (in this turn) */
    size_t results_count;
    const struct hkc_result *results; /* KILL; until settle */
};

/* ---- the core ---- */

struct hkc_setup {
    const struct hk_conf *conf; /* borrowed */
    const char *instance;
    bool life_ends_with_link; /* Flux: a disconnect ends the life */
    uint64_t next_pid;        /* above every pid ever used */
};

/* The reason of a drain while a scheduler runs that was not told of what is
 * held; a host that cannot open its store drains everything with it.
 */
#define HKC_REASON_UNTOLD \
    "housekeeping: may be held, and the scheduler does not know it"

struct hkc_core *hkc_core_create (const struct hkc_setup *setup);
void hkc_core_destroy (struct hkc_core *core);

/* At start: ALLOC, STATE, PART, HOST, CAUSE, FREE, SCHED rows in this order of
 * kinds, then hkc_core_loaded.  -1 with EINVAL: a row that cannot be.
 */
int hkc_core_load (struct hkc_core *core,
                   const struct hkc_row *row,
                   struct hk_error *err);
void hkc_core_loaded (struct hkc_core *core, int64_t now_ms);

/* Takes effect wholly, or returns -1 with errno and changes nothing: EINVAL,
 * ESTALE (an old life or session), ENOENT.  answer may be NULL.
 */
int hkc_core_step (struct hkc_core *core,
                   const struct hkc_event *ev,
                   struct hkc_answer *answer,
                   struct hk_error *err);
/* When to feed the next TICK at the latest; INT64_MAX: never. */
int64_t hkc_core_deadline (const struct hkc_core *core);

typedef int (*hkc_row_f) (void *arg, const struct hkc_row *row);
/* Every row that changed since settle, each once, in its last state.  May be
 * called again with the same result: a commit that fails is tried again.
 * Returns the first non-zero result of fn, else 0.
 */
int hkc_core_changes (struct hkc_core *core, hkc_row_f fn, void *arg);
bool hkc_core_changed (const struct hkc_core *core);
const struct hkc_action *hkc_core_actions (const struct hkc_core *core,
                                           size_t *count);
void hkc_core_settle (struct hkc_core *core);

/* ---- looking ---- */

bool hkc_core_knows (const struct hkc_core *core, uint64_t alloc);

/* An open allocation with the same end, or 0. */
uint64_t hkc_core_find_end (const struct hkc_core *core,
                            uint64_t jobid,
                            double t_submit,
                            double t_end,
                            const char *digest);

/* An open allocation, recorded or begun; borrowed for the call. */
struct hkc_alloc_view {
    uint64_t alloc;
    uint64_t jobid;
    uint32_t userid;
    double t_submit;
    double t_end;
    bool begun;
    const char *R;
    const struct hk_rankset *ranks;
    const struct hk_rankset *done; /* those that are free again */
};
typedef int (*hkc_alloc_view_f) (void *arg, const struct hkc_alloc_view *view);
/* In order of arrival.  Returns the first non-zero result of fn, else 0. */
int hkc_core_each_alloc (const struct hkc_core *core,
                         hkc_alloc_view_f fn,
                         void *arg);

/* One part as a person sees it; strings borrowed until the next step. */
struct hkc_view {
    uint64_t alloc;
    uint64_t jobid;
    uint32_t userid;
    bool begun;
    const char *host;
    uint32_t rank;
    enum hkc_phase phase;
    int attempt;
    enum hk_outcome outcome;
    const char *script;
    double t_since;
    const char *marks;  /* "lost", "no-hkd", "queued", ... or "" */
    const char *reason; /* why it is not done */
    const char *act;    /* the act that ends it */
    bool in_known;
    const struct hk_rankset *ranks;
};
typedef int (*hkc_view_f) (void *arg, const struct hkc_view *view);
/* Parts that are not done, by allocation in order of arrival.  jobid 0: all. */
int hkc_core_each_part (struct hkc_core *core,
                        uint64_t jobid,
                        hkc_view_f fn,
                        void *arg);

struct hkc_host_view {
    const char *host;
    const char *boot_id;
    bool connected; /* has a session, and was heard lately */
    bool state_heard;
    uint64_t peer;
    int64_t contact_ms; /* last message, CLOCK_BOOTTIME; 0: none */
    const char *drain;  /* reason of ours, or "" */
    bool drain_confirmed;
    const char *marks;
    const char *foreign; /* units and runs that are not ours */
};
typedef int (*hkc_host_view_f) (void *arg, const struct hkc_host_view *view);
int hkc_core_each_host (struct hkc_core *core, hkc_host_view_f fn, void *arg);

struct hkc_totals {
    size_t allocs, parts_held, hosts, connected;
    enum hkc_life_state life_state;
    const char *life;
    const char *recover; /* "" or why */
    bool manager;        /* has a session */
    uint64_t free_n;
};
void hkc_core_totals (const struct hkc_core *core, struct hkc_totals *out);

#endif

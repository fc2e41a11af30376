/* flux.h - what the files of the Flux jobtap plugin share */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HKC_FLUX_H
#define HKC_FLUX_H

#include <czmq.h>
#include <flux/core.h>
#include <flux/jobtap.h>
#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include "proto/conf.h"
#include "proto/rankset.h"
#include "proto/resource.h"
#include "coordinator/engine/engine.h"
#include "coordinator/host/count.h"
#include "coordinator/host/inventory.h"

/* Three threads, which share nothing but two queues and the engine's mailbox:
 *
 *     the reactor   job-manager's own: callbacks, messages of Flux; it never
 *                   waits, neither for a disk nor for a parse of a large R
 *     the clerk     opens the engine until it can be, counts resources
 *     the engine    its own thread (engine.h)
 *
 * What the other two have to say to the reactor goes through its inbox.
 */

struct hkc_flux;

/* ---- inbox.c: tasks on their way between threads ---- */

struct hkc_task {
    struct hkc_task *next;
    void (*work_f) (struct hkc_flux *x, struct hkc_task *task); /* the clerk */
    void (*done_f) (struct hkc_flux *x, struct hkc_task *task); /* reactor */
    void (*free_f) (struct hkc_task *task); /* NULL: free () */
};

struct hkc_task_queue {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    struct hkc_task *first, **end;
    int fd; /* eventfd; -1: who reads it waits for cond */
    bool is_signalled, quit;
};

int hkc_inbox_open (struct hkc_flux *x, flux_error_t *err);
void hkc_inbox_close (struct hkc_flux *x);
/* Any thread; both take the task.  The clerk does work_f, and what it has done
 * goes to the reactor for done_f.
 */
void hkc_inbox_put (struct hkc_flux *x, struct hkc_task *task);
void hkc_clerk_put (struct hkc_flux *x, struct hkc_task *task);

/* ---- conf.c: the plugin's conf over hk.conf ---- */

/* conf may be NULL.  The caller frees *out. */
int hkc_flux_conf (const json_t *conf,
                   struct hk_conf **out,
                   struct hk_error *err);
/* conf.update: `config` is the instance's whole configuration. */
int hkc_flux_reconf (struct hkc_flux *x,
                     const json_t *config,
                     struct hk_error *err);

/* ---- open.c: the engine's life ---- */

void hkc_open_start (struct hkc_flux *x); /* if it is not open or under way */
void hkc_open_end (struct hkc_flux *x);

/* ---- events.c: what the engine says, in its thread ---- */

/* Tags of answers: job ids have 63 bits. */
#define HKC_TAG_KILL (1ULL << 63)

void hkc_flux_ops (struct hkc_flux *x, struct hkc_host_ops *out);

/* ---- job.c: a job from its end to the hold ---- */

enum hkc_job_state {
    HKC_JOB_LIVE = 1, /* nothing is ours */
    HKC_JOB_HELD,     /* our epilog keeps it in CLEANUP */
    HKC_JOB_SENT,     /* the engine is to record it */
    HKC_JOB_RECORDED, /* it is on disk; waits for a hello to be answered */
    HKC_JOB_FLAGGED,  /* the scheduler does not hear of its end */
    HKC_JOB_FREED,    /* job-manager let go: the ranks are ours */
    HKC_JOB_PASSED,   /* was ours, and is job-manager's to end */
};

struct hkc_job {
    flux_jobid_t id;
    uint32_t userid;
    int64_t priority;
    double t_submit;
    double t_end;
    char *R; /* as text; NULL: nothing is allocated */
    struct hk_rankset *ranks;
    char *queue;
    enum hkc_job_state state;
    bool bypass;    /* its user goes round the scheduler: never ours */
    bool is_ours;   /* we have flagged it, also in an earlier start */
    bool is_back;   /* was in CLEANUP when we came: its end may be on disk */
    bool looking;   /* the eventlog is being read for epilogs of ours */
    bool is_unread; /* that has not begun */
    bool asking;    /* it was flagged; whether it is done is not known yet */
    int epilogs;    /* of ours that are to be finished */
    uint64_t alloc;
};

extern const char hkc_epilog_prefix[];
int hkc_jobs_open (struct hkc_flux *x);
void hkc_jobs_close (struct hkc_flux *x);
/* Everything that can go on goes on: after the engine was opened, a hello was
 * answered, a time has passed.
 */
void hkc_jobs_advance (struct hkc_flux *x);
void hkc_job_answered (struct hkc_flux *x,
                       flux_jobid_t id,
                       int rc,
                       uint64_t alloc,
                       const char *text);
/* Does job-manager count its ranks, and tell them at a hello; or does it leave
 * it to us because of our flag?
 */
bool hkc_job_is_counted (const struct hkc_job *job);
bool hkc_job_is_between (const struct hkc_job *job);
/* Open allocations, told by the engine before it starts: what of each? */
void hkc_jobs_settle (struct hkc_flux *x, struct hkc_engine *engine);

/* ---- hello.c: the scheduler's lives ---- */

enum hkc_sched_state {
    HKC_SCHED_NONE,     /* no scheduler */
    HKC_SCHED_HELLO,    /* asked: no job goes on from recorded */
    HKC_SCHED_ANSWERED, /* told */
    HKC_SCHED_ACCOUNT,  /* ready; asked what it holds */
    HKC_SCHED_READY,
    HKC_SCHED_BLIND, /* told by job-manager alone: see blind.c */
};

struct hkc_sched {
    enum hkc_sched_state state;
    char life[HK_ID_BYTES];
    uint64_t tag;
    const flux_msg_t *hello; /* while it is not answered */
    bool is_posted;          /* the engine has it */
    bool partial_ok;
    char *sender;
    flux_future_t *account;
    unsigned doubts;   /* asked whether it is still there (doubt.c) */
    zlistx_t *waiting; /* frees, until that is known */
    zlistx_t *begins;  /* of allocations, until the life is ready or gone */
};

int hkc_sched_open (struct hkc_flux *x);
void hkc_sched_close (struct hkc_flux *x);
void hkc_sched_opened (struct hkc_flux *x); /* the engine is */
bool hkc_sched_may_flag (const struct hkc_flux *x);
void hkc_sched_begin (struct hkc_flux *x, uint64_t alloc);
void hkc_sched_entry (struct hkc_flux *x,
                      uint64_t tag,
                      flux_jobid_t id,
                      int64_t priority,
                      uint32_t userid,
                      double t_submit,
                      const char *free_ranks);
void hkc_sched_blind (struct hkc_flux *x); /* every rank is drained */
void hkc_sched_told (struct hkc_flux *x, uint64_t tag);
void hkc_sched_free (struct hkc_flux *x,
                     uint64_t n,
                     const char *life,
                     flux_jobid_t id,
                     json_t *R,
                     bool final);

/* ---- blind.c: a scheduler asks, and the store is not open ---- */

void hkc_blind_tick (struct hkc_flux *x);
/* It is open: ranks that it does not hold are undrained. */
void hkc_blind_end (struct hkc_flux *x, struct hkc_engine *engine);

/* ---- override.c: job-manager's handlers, and ours before them ---- */

struct hkc_override {
    const char *topic;
    uint32_t rolemask; /* 0: the owner's */
    flux_msg_handler_f cb;
    flux_msg_handler_t *mh;
    bool is_probed, is_proven; /* a request of ours came to us */
};

int hkc_overrides_open (struct hkc_flux *x);
/* Ask for each by a request of ours; once. */
void hkc_overrides_probe (struct hkc_flux *x);
bool hkc_overrides_proven (void); /* every one was seen to work */
void hkc_overrides_close (struct hkc_flux *x);
/* Give the message to job-manager's own handler. */
void hkc_pass_on (struct hkc_flux *x, const flux_msg_t *msg);
/* Is it our own probe of the overrides?  Then it is answered. */
bool hkc_is_probe (struct hkc_flux *x, const flux_msg_t *msg);

/* ---- drain.c ---- */

struct hkc_drain;
int hkc_drains_open (struct hkc_flux *x);
void hkc_drains_close (struct hkc_flux *x);
void hkc_drain_ask (struct hkc_flux *x,
                    bool undrain,
                    uint64_t n,
                    const char *life,
                    const char *host,
                    const char *reason);

/* ---- status.c: flux resource, flux housekeeping, flux jobtap query ---- */

int hkc_status_open (struct hkc_flux *x);
void hkc_status_close (struct hkc_flux *x);
void hkc_status_list (struct hkc_flux *x, uint64_t tag, json_t *rows);
/* job-manager may still count it in an answer that it keeps. */
void hkc_status_stale (struct hkc_flux *x, const char *R);
void hkc_status_fresh (struct hkc_flux *x);
void hkc_status_resource (flux_t *h,
                          flux_msg_handler_t *mh,
                          const flux_msg_t *msg,
                          void *arg);
void hkc_status_stats (flux_t *h,
                       flux_msg_handler_t *mh,
                       const flux_msg_t *msg,
                       void *arg);

/* ---- kill.c: flux housekeeping kill ---- */

void hkc_kill_asked (flux_t *h,
                     flux_msg_handler_t *mh,
                     const flux_msg_t *msg,
                     void *arg);
int hkc_kill_open (struct hkc_flux *x);
void hkc_kill_done (struct hkc_flux *x, uint64_t tag, size_t matched);

/* ---- query.c: flux jobtap query ---- */

int hkc_query_open (struct hkc_flux *x);

/* ---- the plugin ---- */

enum { HKC_TROUBLE_BYTES = 640, HKC_TICK_MS = 1000 };

struct hkc_flux {
    flux_plugin_t *p;
    flux_t *h;
    flux_reactor_t *r;
    struct hkc_task_queue inbox, desk;
    pthread_t clerk;
    bool has_clerk;
    flux_watcher_t *inbox_w, *prepare_w, *timer_w;
    json_t *conf;              /* of the plugin; NULL: none */
    struct hk_conf *next_conf; /* for an engine that is not open yet */
    bool is_opening;
    int64_t open_again_ms;
    bool open_failed;          /* once, since the last time it was open */
    zhashx_t *blind_held;      /* hosts that stay drained; NULL: undrained */
    bool is_blinding;          /* a drain or undrain of blind.c is under way */
    struct hkc_engine *engine; /* NULL: not open yet */
    char trouble[HKC_TROUBLE_BYTES]; /* why it is not, or what else is wrong */
    char said[HKC_TROUBLE_BYTES];
    zhashx_t *jobs;  /* by id */
    size_t looking;  /* jobs not known well enough to answer a hello */
    char epilog[32]; /* its description, another at each start of ours */
    struct hkc_sched sched;
    struct hkc_drain *drains;
    zlistx_t *futures; /* under way: destroyed with us */
    zlistx_t *stale;   /* R's, see hkc_status_stale */
    zhashx_t *asks;    /* tag -> request that waits for a list */
    zhashx_t *kills;   /* tag -> request to kill */
    uint64_t last_tag;
    uint64_t frees_sent;
    int64_t longest_ns; /* that the reactor was kept */
    const char *longest_what;
    bool is_misfit;    /* an override does not work */
    bool is_loaded;    /* conf.update has been called once */
    bool builtin_said; /* that the built-in is configured too */
};

void hkc_flux_trouble (struct hkc_flux *x, const char *fmt, ...)
    __attribute__ ((format (printf, 2, 3)));
/* How long the reactor is kept by what is ours: CPU time of its thread.  `what`
 * is a literal; the longest is told by flux jobtap query.
 */
int64_t hkc_flux_enter (void);
void hkc_flux_leave (struct hkc_flux *x, int64_t entered_ns, const char *what);
/* A future that is to be destroyed when we are unloaded before it is done. */
int hkc_flux_then (struct hkc_flux *x,
                   flux_future_t *f,
                   double timeout_s,
                   flux_continuation_f cb,
                   void *arg);
/* A number that goes with a future.  -1: out of memory. */
int hkc_flux_label (flux_future_t *f, uint64_t label);
uint64_t hkc_flux_label_of (flux_future_t *f);
void hkc_flux_done (struct hkc_flux *x, flux_future_t *f); /* destroys it */

#endif

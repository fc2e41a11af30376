/* internal.h - what the files of the core share; nobody else includes it */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HKC_CORE_INTERNAL_H
#define HKC_CORE_INTERNAL_H

#include <czmq.h>
#include "proto/duration.h"
#include "coordinator/core/core.h"

struct hkc_host;
struct hkc_alloc;

/* One allocation on one host: the ranks of R that share a run. */
struct hkc_part {
    struct hkc_alloc *alloc;
    struct hkc_host *host;
    struct hkc_part *next_on_host;  /* held parts, in order of arrival */
    const struct hk_rankset *ranks; /* borrowed from R */
    uint64_t pid;
    enum hkc_phase phase;
    enum hk_outcome outcome;
    int attempt;
    int stop_signal; /* an admin's kill that is to reach the node */
    bool start_sent; /* START may have been delivered */
    bool conflict;   /* an active job holds the rank */
    bool misplaced;  /* one of its ranks is another host now */
    bool covered;    /* `hosts` names it: we act here */
    bool dirty;
    bool seen; /* in the state that is being heard */
    char boot_id[HK_ID_BYTES];
    char invocation[HK_ID_BYTES];
    double t_since;
    double t_start;
    char *script;
    char *reason;
    char *blocked; /* why the node does not begin yet; NULL: it is not said */
};

struct hkc_alloc {
    struct hkc_alloc *next, *prev; /* in order of arrival */
    struct hkc_alloc *free_next;   /* those with due ranks */
    struct hkc_alloc *job_next;    /* the same job id */
    struct hkc_alloc *dirty_next;
    bool on_free_list, dirty;
    uint64_t id;
    uint64_t jobid;
    uint32_t userid;
    int64_t priority;
    double t_submit, t_end;
    char *queue;
    struct hk_resource *res;
    char *R;
    char digest[65];
    char *ranks_text;
    bool begun;
    bool hold_begin;   /* a JOB_BEGIN is to come; else begun by us */
    bool end_repeated; /* while a hello was under way */
    bool purged;       /* the manager cannot tell of it any more */
    uint64_t pid;
    uint32_t parts_count;
    struct hkc_part *parts;
    uint32_t ended_count; /* ended, due or done */
    uint32_t done_count;
    struct hkc_part **due;
    uint32_t due_count, due_size;
    double t_first_end;
    int64_t first_end_ms;
    int64_t last_free_ms; /* INT64_MIN: none yet */
    bool released;        /* release-after is met */
    bool stalled;         /* nothing due can be freed in this life yet */
    struct hk_rankset *done;
    struct hk_rankset *known;
};

struct hkc_cause {
    struct hkc_cause *next;
    enum hkc_cause_kind kind;
    uint64_t about;
    bool confirmed;
    uint64_t n; /* of the request it went with; 0: not asked */
    double t;
    char *reason;
};

enum hkc_drain_state {
    HKC_UNDRAINED = 0,
    HKC_DRAINED_OURS,
    HKC_DRAINED_ADMIN, /* also excluded and not in the inventory */
};

/* A run that the node has and we do not know. */
struct hkc_stray {
    struct hkc_stray *next;
    uint64_t alloc;
    uint64_t jobid;
    bool ended;
    bool seen;
};

struct hkc_host {
    char *name;  /* key */
    char *shown; /* as R has it; else the name */
    char *short_name;
    char boot_id[HK_ID_BYTES];
    double t_seen;
    uint64_t peer; /* 0: no session */
    char address[64];
    char session_boot[HK_ID_BYTES];
    bool heard; /* its full state, in this session */
    int64_t contact_ms;
    /* another machine that says it is this host */
    char rival_boot[HK_ID_BYTES];
    char rival_address[64];
    int64_t rival_first_ms, rival_last_ms; /* 0: none */
    bool conflict;
    bool lost;
    char *foreign;
    struct hkc_stray *strays;
    struct hkc_part *parts;
    struct hkc_part **parts_end;
    struct hkc_cause *causes;
    enum hkc_drain_state drain;
    char *reason;                /* ours that is shown there, if OURS */
    char *asked;                 /* with the request that is under way */
    char *reasons;               /* all of ours since it was last undrained */
    uint64_t drain_n, undrain_n; /* asked and not answered; 0: none */
    int64_t retry_ms;
    int retries;
    char *failed; /* why the last drain failed */
    bool dirty, in_review;
    struct hkc_host *dirty_next, *review_next;
};

struct hkc_chunk;

struct hkc_core {
    const struct hk_conf *conf;
    char instance[HK_ID_BYTES];
    bool life_ends_with_link;
    uint64_t next_pid;
    int64_t ready_ms; /* ready to hear; silence counts from here */
    int64_t now_ms;   /* of the event under way */
    double wall;
    zhashx_t *hosts;               /* name -> host */
    zhashx_t *aliases;             /* short name -> host, or &hkc_ambiguous */
    zhashx_t *allocs;              /* id -> alloc */
    zhashx_t *jobs;                /* job id -> first alloc */
    zhashx_t *peers;               /* peer -> host */
    struct hk_hostlist *inventory; /* host of each rank; NULL: as R says */
    struct hkc_alloc *first, *last;
    struct hkc_alloc *freeing;
    struct hkc_host *review;
    size_t held_count;
    /* the scheduler's life */
    char *life;
    enum hkc_life_state life_state;
    uint64_t hello_tag;
    bool online; /* a life without a hello */
    bool manager;
    bool partial_ok;
    bool account_spoken;
    uint64_t free_n;
    uint64_t drain_n;
    zhashx_t *active; /* ids (text) of jobs that this life's hello named and
                         whose end was not said since */
    zlistx_t *frees;  /* hkc_row_free, heap; not confirmed */
    char *recover;
    int64_t scan_ms; /* when silence is looked for next */
    bool silence_alarm;
    bool strays_changed;
    /* the turn */
    struct hkc_action *actions;
    size_t actions_count, actions_size;
    struct hkc_row *rows; /* one-shot rows, in order */
    size_t rows_count, rows_size;
    struct hkc_alloc *dirty_allocs;
    struct hkc_host *dirty_hosts;
    struct hkc_part **dirty_parts;
    size_t dirty_parts_count, dirty_parts_size;
    bool sched_dirty;
    struct hkc_alloc *closed; /* freed at settle; linked by free_next */
    struct hkc_chunk *arena;
};

/* emit.c */
void *hkc_zalloc (size_t size); /* never NULL */
char *hkc_strdup (const char *text);
void hkc_strset (char **field, const char *text);
void *hkc_grow (void *array, size_t *size, size_t need, size_t item);
void *hkc_arena (struct hkc_core *core, size_t size);
char *hkc_arena_dup (struct hkc_core *core, const char *text);
char *hkc_arena_fmt (struct hkc_core *core, const char *fmt, ...)
    __attribute__ ((format (printf, 2, 3)));
void hkc_arena_clear (struct hkc_core *core);
struct hkc_action *hkc_act (struct hkc_core *core, enum hkc_action_kind kind);
struct hkc_row *hkc_put (struct hkc_core *core, enum hkc_row_kind kind);
void hkc_say (struct hkc_core *core,
              int level,
              uint64_t jobid,
              const char *host,
              const char *fmt,
              ...) __attribute__ ((format (printf, 5, 6)));
void hkc_alloc_dirty (struct hkc_core *core, struct hkc_alloc *alloc);
void hkc_part_dirty (struct hkc_core *core, struct hkc_part *part);
void hkc_host_dirty (struct hkc_core *core, struct hkc_host *host);

/* alloc.c */
struct hkc_alloc *hkc_alloc_find (const struct hkc_core *core, uint64_t id);
void hkc_alloc_free (struct hkc_alloc *alloc);
void hkc_alloc_insert (struct hkc_core *core, struct hkc_alloc *alloc);
void hkc_alloc_parts (struct hkc_core *core, struct hkc_alloc *alloc);
int hkc_job_end (struct hkc_core *core,
                 const struct hkc_event *ev,
                 struct hkc_answer *answer,
                 struct hk_error *err);
void hkc_job_end_again (struct hkc_core *core,
                        uint64_t jobid,
                        const struct hk_resource *res);
int hkc_job_begin (struct hkc_core *core, uint64_t id, struct hk_error *err);
int hkc_job_drop (struct hkc_core *core, uint64_t id, struct hk_error *err);
/* Hosts that `hosts` does not name, or no longer. */
void hkc_skip_uncovered (struct hkc_core *core, struct hkc_alloc *alloc);
void hkc_end_repeated (struct hkc_core *core, struct hkc_alloc *alloc);
void hkc_alloc_begin (struct hkc_core *core, struct hkc_alloc *alloc);
void hkc_alloc_unlink (struct hkc_core *core, struct hkc_alloc *alloc);

/* part.c: the way of one part */
void hkc_part_start (struct hkc_core *core, struct hkc_part *part);
void hkc_part_ended (struct hkc_core *core,
                     struct hkc_part *part,
                     enum hk_outcome outcome,
                     const struct hk_run *run,
                     const char *reason);
void hkc_part_reviewed (struct hkc_core *core, struct hkc_part *part);
void hkc_part_done (struct hkc_core *core, struct hkc_part *part);
bool hkc_part_is_held (const struct hkc_part *part);
void hkc_host_start_next (struct hkc_core *core, struct hkc_host *host);

/* release.c: due, free, close */
bool hkc_release_met (struct hkc_core *core, struct hkc_alloc *alloc);
void hkc_release_sweep (struct hkc_core *core, struct hkc_alloc *alloc);
void hkc_release_all (struct hkc_core *core); /* conf or guard changed */
void hkc_release_tick (struct hkc_core *core);
int64_t hkc_release_deadline (const struct hkc_core *core);
void hkc_due_prune (struct hkc_alloc *alloc); /* those no longer DUE */
void hkc_due_add (struct hkc_core *core, struct hkc_part *part);
bool hkc_may_free (const struct hkc_core *core);
void hkc_alloc_close_if_done (struct hkc_core *core, struct hkc_alloc *alloc);
void hkc_close_out (struct hkc_core *core);

/* node.c */
struct hkc_host *hkc_host_find (struct hkc_core *core, const char *name);
struct hkc_host *hkc_host_need (struct hkc_core *core, const char *name);
struct hkc_host *hkc_host_of_peer (struct hkc_core *core, uint64_t peer);
void hkc_host_free (struct hkc_host *host);
int hkc_node_hello (struct hkc_core *core,
                    const struct hkc_event *ev,
                    struct hk_error *err);
int hkc_node_gone (struct hkc_core *core, uint64_t peer);
void hkc_node_heard (struct hkc_core *core, struct hkc_host *host);
/* silence.c */
bool hkc_is_silent (const struct hkc_core *core, const struct hkc_host *host);
void hkc_silence_tick (struct hkc_core *core);
int64_t hkc_silence_deadline (const struct hkc_core *core);
/* report.c */
int hkc_node_state (struct hkc_core *core,
                    const struct hkc_event *ev,
                    struct hk_error *err);
int hkc_node_run (struct hkc_core *core, const struct hkc_event *ev);
/* A message of a session that is none: its peer is to say HELLO again. */
int hkc_node_unknown (struct hkc_core *core, uint64_t peer);
int hkc_kill (struct hkc_core *core,
              const struct hkc_event *ev,
              struct hkc_answer *answer);

/* drain.c */
void hkc_cause_add (struct hkc_core *core,
                    struct hkc_host *host,
                    enum hkc_cause_kind kind,
                    uint64_t about,
                    const char *reason);
void hkc_cause_remove (struct hkc_core *core,
                       struct hkc_host *host,
                       enum hkc_cause_kind kind,
                       uint64_t about);
const struct hkc_cause *hkc_cause_find (const struct hkc_host *host,
                                        enum hkc_cause_kind kind,
                                        uint64_t about);
/* The reasons as stored (the shown one first) after a restart. */
void hkc_drain_load (struct hkc_host *host, const char *reasons);
bool hkc_host_confirmed (const struct hkc_host *host,
                         enum hkc_cause_kind kind,
                         uint64_t about);
void hkc_drain_review (struct hkc_core *core, struct hkc_host *host);
void hkc_drain_tick (struct hkc_core *core);
int64_t hkc_drain_deadline (const struct hkc_core *core);
int hkc_drain_done (struct hkc_core *core, const struct hkc_event *ev);
int hkc_undrain_done (struct hkc_core *core, const struct hkc_event *ev);
void hkc_drain_anew (struct hkc_core *core);
void hkc_drain_ready (struct hkc_core *core);

/* sched.c, account.c */
/* Was the job named as active to this life?  It is no longer, then. */
bool hkc_active_take (struct hkc_core *core, uint64_t jobid);
int hkc_sched_hello (struct hkc_core *core,
                     const struct hkc_event *ev,
                     struct hk_error *err);
int hkc_sched_ready (struct hkc_core *core,
                     const struct hkc_event *ev,
                     struct hk_error *err);
int hkc_sched_gone (struct hkc_core *core);
/* If it cannot be told, or the telling not be believed: drain what is held. */
void hkc_hello_drain (struct hkc_core *core, struct hkc_alloc *alloc);
int hkc_free_ok (struct hkc_core *core, uint64_t n);
void hkc_sched_tick (struct hkc_core *core); /* answer a hello when it can be */
void hkc_account_compare (struct hkc_core *core,
                          const struct hk_resource *account);
/* A copy for the turn: the free may be confirmed before it is carried out. */
struct hkc_row_free hkc_free_borrow (struct hkc_core *core,
                                     const struct hkc_row_free *row);
void hkc_free_row_destroy (struct hkc_row_free *row);
void hkc_recover_set (struct hkc_core *core, const char *why);

/* place.c: where R says a rank is, and where it is; jobs forgotten */
int hkc_job_purged (struct hkc_core *core, const struct hkc_event *ev);
int hkc_inventory (struct hkc_core *core,
                   const struct hk_hostlist *hosts,
                   struct hk_error *err);
void hkc_part_place (struct hkc_core *core, struct hkc_part *part);
/* The hosts of ranks as they are now; NULL where that is not known. */
struct hk_hostlist *hkc_hosts_of (const struct hkc_core *core,
                                  const struct hk_rankset *ranks);

/* core.c */
void hkc_core_covers_anew (struct hkc_core *core);

/* view.c */
const char *hkc_part_marks (struct hkc_core *core, const struct hkc_part *part);

#endif

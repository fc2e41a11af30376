/* sim.h - a cluster in one thread under a virtual clock, made by a seed */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef SIM_H
#define SIM_H

#include <czmq.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include "coordinator/core/core.h"
#include "coordinator/engine/turn.h"
#include "coordinator/host/host.h"
#include "hkd/run.h"

enum { SIM_NODES_MOST = 64, SIM_SCRIPTS = 3 };

/* ---- chance ---- */

uint64_t sim_random (void);
uint32_t sim_below (uint32_t n); /* 0 .. n-1 */
bool sim_chance (uint32_t percent);

/* ---- messages: what the wire carries ---- */

enum sim_kind {
    /* node to coordinator */
    SIM_HELLO = 1,
    SIM_STATE,
    SIM_RUN,
    SIM_ALIVE,
    /* back */
    SIM_WELCOME,
    SIM_REFUSED,
    SIM_REHELLO,
    SIM_START,
    SIM_STOP,
    SIM_ACK,
    /* manager to coordinator */
    SIM_JOB_END,
    SIM_SCHED_HELLO,
    SIM_SCHED_READY,
    SIM_FREE_OK,
    SIM_DRAIN_DONE,
    SIM_UNDRAIN_DONE,
    SIM_KILL,
    SIM_PURGED,
    SIM_HOSTS,
    /* back */
    SIM_RECORDED,
    SIM_ENTRY,
    SIM_HELLO_END,
    SIM_FREE,
    SIM_DRAIN,
    SIM_UNDRAIN,
};

struct sim_msg {
    struct sim_msg *next;
    enum sim_kind kind;
    uint64_t session; /* of the link it was sent on */
    uint64_t seq;     /* in that session and direction */
    int node;         /* -1: the manager's */
    char boot[HK_ID_BYTES];
    struct hk_run *runs; /* copies */
    size_t runs_count;
    bool first, last;
    uint64_t alloc;
    int attempt;
    char invocation[HK_ID_BYTES];
    uint64_t jobid;
    uint64_t n;
    int job; /* index of the sender's */
    char life[32];
    char state[16];
    bool partial_ok, flag;
    char *ranks; /* idset */
    char *text;
    char host[32];
    int result;
    double t_submit, t_end;
    uint64_t ids[64]; /* of active jobs */
    size_t ids_count;
};

struct sim_queue {
    struct sim_msg *first, **end;
    size_t count;
};

struct sim_msg *sim_msg (enum sim_kind kind);
void sim_msg_free (struct sim_msg *msg);
struct sim_msg *sim_msg_copy (const struct sim_msg *msg);
void sim_queue_init (struct sim_queue *queue);
void sim_put (struct sim_queue *queue, struct sim_msg *msg);
/* The first, or now and then another one: the link drops what comes late.  A
 * manager's session keeps its order: it is lost whole or not at all.
 */
struct sim_msg *sim_take (struct sim_queue *queue, bool in_order);
void sim_queue_clear (struct sim_queue *queue);
struct hk_run *sim_run_copy (const struct hk_run *run);
void sim_run_fini (struct hk_run *run);

/* ---- nodes ---- */

struct sim_unit {
    struct sim_unit *next;
    uint64_t alloc;
    int attempt;
    char invocation[HK_ID_BYTES];
    struct hk_script_result results[SIM_SCRIPTS];
    int will[SIM_SCRIPTS]; /* 0 exits 0; > 0 exits so; < 0 dies of a signal */
    int64_t ends[SIM_SCRIPTS];
    int at;       /* script under way; SIM_SCRIPTS: all are over */
    bool stopped; /* no further script may start */
    bool ignores_term;
    bool leaves_child;
    bool child; /* a process is left in the cgroup */
    bool unkillable;
};

struct sim_file {
    struct sim_file *next;
    struct hk_run run;
};

struct sim_node {
    int i;
    char name[32];
    char boot[HK_ID_BYTES];
    bool on, cut;
    struct hkd_runs *runs; /* NULL: hkd is down */
    struct sim_unit *units;
    struct sim_file *files;
    int64_t left_ms; /* processes of a unit that is forgotten: until then */
    /* link */
    uint64_t session; /* 0: not connected */
    bool welcome;
    uint64_t out_seq, in_seq;
    int64_t hello_ms, alive_ms, state_ms, heard_ms;
    struct sim_queue to_c, to_n;
    uint64_t c_session, c_seq; /* that the coordinator heard last */
};

void sim_node_on (struct sim_node *node); /* power, a new boot */
void sim_node_off (struct sim_node *node);
void sim_hkd_start (struct sim_node *node);
void sim_hkd_kill (struct sim_node *node);
void sim_node_tick (struct sim_node *node);
void sim_node_deliver (struct sim_node *node, struct sim_msg *msg);
void sim_unit_lost (struct sim_node *node); /* reset by hand */

/* ---- systemd on a node, and hkd's files there ---- */

extern const char *const sim_script_names[SIM_SCRIPTS];
struct sim_unit *sim_unit_create (struct sim_node *node,
                                  uint64_t alloc,
                                  int attempt);
struct sim_unit *sim_unit_find (struct sim_node *node,
                                uint64_t alloc,
                                int attempt);
void sim_unit_remove (struct sim_node *node, struct sim_unit *unit);
void sim_unit_signal (struct sim_unit *unit, int signum);
/* Is anything left of it? */
bool sim_unit_left (const struct sim_unit *unit);
/* A run that has ended left something that is still there: none may begin. */
bool sim_unit_in_way (const struct sim_node *node, uint64_t alloc, int attempt);
/* Scripts end, whether hkd is there or not: has one? */
bool sim_unit_run (struct sim_node *node, struct sim_unit *unit);
void sim_file_write (struct sim_node *node, const struct hk_run *run);
void sim_file_remove (struct sim_node *node, const struct hk_run *run);

/* ---- the store: rows that were committed ---- */

struct sim_store;
struct sim_store *sim_store_create (void);
void sim_store_destroy (struct sim_store *store);
void sim_store_stage (struct sim_store *store, const struct hkc_row *row);
void sim_store_apply (struct sim_store *store);
void sim_store_drop (struct sim_store *store); /* what was staged */
void sim_store_load (struct sim_store *store, struct hkc_core *core);
uint64_t sim_store_find_end (struct sim_store *store,
                             uint64_t jobid,
                             double t_submit,
                             double t_end,
                             const char *digest);
bool sim_store_find_run (struct sim_store *store,
                         uint64_t alloc,
                         const char *host,
                         int attempt);
bool sim_store_has_alloc (struct sim_store *store, uint64_t alloc);
bool sim_store_has_free (struct sim_store *store, uint64_t n);
/* Is an outcome of the run on disk, of an open or a closed allocation? */
bool sim_store_has_outcome (struct sim_store *store,
                            uint64_t alloc,
                            const char *host,
                            int attempt);
bool sim_store_failed_there (struct sim_store *store, const char *host);
uint64_t sim_store_next_pid (struct sim_store *store);
/* When the last run on a host for a job failed, 0 if it did not. */
double sim_store_failed_at (struct sim_store *store,
                            uint64_t jobid,
                            const char *host);
size_t sim_store_open (struct sim_store *store); /* allocations not closed */
/* Is a host held by what is on disk? */
bool sim_store_holds (struct sim_store *store, int host, uint64_t *jobid);
void sim_store_print (struct sim_store *store);
struct hkc_row *sim_row_copy (const struct hkc_row *row);
void sim_row_free (void **row);
void sim_row_key (const struct hkc_row *row, char key[320]);

/* ---- the coordinator ---- */

struct sim_coord {
    struct sim_store *store;
    struct hkc_core *core; /* NULL: down */
    struct hkc_turn *turn;
    struct sim_queue in; /* delivered, not yet received */
    zhashx_t *peers;     /* session -> struct sim_node */
    zhashx_t *put_off;   /* tokens that are not answered any more */
    uint64_t manager;    /* session */
    struct hkc_session of_manager;
    int crash_in; /* operations; 0: none planned */
    jmp_buf crash;
    bool store_fails;
    uint64_t commits;
};

void sim_coord_start (void);
void sim_coord_kill (void);
void sim_coord_turn (void);
void sim_coord_deliver (struct sim_msg *msg);
extern const struct hkc_ops sim_coord_ops;
int sim_coord_receive (void *arg, enum hkc_collect how, struct hkc_input *in);
void sim_coord_release (void *arg, struct hkc_input *in);
/* The process may end between any two operations. */
void sim_coord_may_crash (void);

/* ---- the job manager and its scheduler ---- */

struct sim_job {
    uint64_t jobid;
    struct hk_rankset *ranks;
    char *R;
    double t_submit, t_end;
    bool ended, recorded;
    int64_t said_ms;
    uint64_t said_n;  /* of the last request: older answers count for nothing */
    bool ours;        /* the coordinator's to tell, when hello was said */
    bool told;        /* in the answer that is under way */
    bool named;       /* as active in the last hello */
    bool repeat;      /* say the end once more, though it is recorded */
    bool purged;      /* the manager has forgotten it ... */
    bool purged_said; /* ... and said so before the last hello */
    struct hk_rankset *booked;
};

struct sim_manager {
    bool over[1024]; /* by job id: taken from the books by itself */
    struct sim_job *jobs;
    size_t jobs_count;
    uint64_t next_jobid;
    char life[32];
    int lives;
    int phase; /* 0 down, 1 hello sent, 2 answered, 3 ready */
    bool partial_ok;
    bool awaits; /* the answer to a hello */
    uint64_t last_free;
    uint64_t session;
    uint64_t out_seq, in_seq;
    int64_t hello_ms;
    struct sim_queue to_c, to_m;
    /* A host has the ranks from slots[host] * per_host on: where it was found
     * in the inventory when the manager started. */
    int slots[SIM_NODES_MOST];
    char *drained[SIM_NODES_MOST]; /* reason, NULL: not */
    bool admins[SIM_NODES_MOST];
    double drained_at[SIM_NODES_MOST]; /* last answer that it is drained */
};

void sim_manager_tick (void);
void sim_manager_deliver (struct sim_msg *msg);
void sim_manager_reload (void); /* a new life */
void sim_manager_unlink (void); /* the session is lost */
void sim_manager_send (struct sim_msg *msg);
uint32_t sim_rank (int host, int r); /* its r-th rank, as it is now */
int sim_host_of (uint32_t rank);
void sim_purge (void);           /* the manager forgets a job */
void sim_manager_forgets (void); /* what it says before a hello */
void sim_renumber (void);        /* two hosts change their ranks */
void sim_job_start (void);
void sim_job_end (void);
void sim_jobs_end (void); /* all that run */
void sim_admin (void);
struct sim_job *sim_job_find (uint64_t jobid);
void sim_job_drop (struct sim_job *job);
/* Is it a job that the manager itself tells its scheduler of? */
bool sim_job_is_active (const struct sim_job *job);
char *sim_make_R (const struct hk_rankset *ranks);

/* ---- the world ---- */

struct sim_world {
    uint64_t seed;
    uint64_t step;
    int nodes_count;
    int per_host; /* ranks */
    int64_t now_ms;
    double wall;
    bool faults;
    struct hk_conf *conf;
    struct sim_node nodes[SIM_NODES_MOST];
    struct sim_coord c;
    struct sim_manager m;
    uint64_t ids;
    zhashx_t *started; /* "alloc/host/attempt": once each */
    zhashx_t *bad;     /* the same, of runs with a script that failed */
    FILE *story;       /* NULL: quiet */
    /* counted */
    uint64_t frees, runs, crashes, hellos, drains, blocked;
};

extern struct sim_world w;

void sim_say (const char *fmt, ...) __attribute__ ((format (printf, 1, 2)));
/* An invariant is broken: print how to replay it and leave this seed. */
void sim_broken (const char *which, const char *fmt, ...)
    __attribute__ ((format (printf, 2, 3), noreturn));
uint64_t sim_id (void);
void *sim_id_dup (const void *key); /* for hashes that own their keys */
void sim_id_end (void **key);
void sim_id_text (char out[HK_ID_BYTES]);
int sim_host_index (const char *name);
void sim_check (void);
void sim_check_settled (void); /* faults have stopped: is all done? */

#endif

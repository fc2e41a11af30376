/* unit_impl.h - what the files about units share */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HKD_UNIT_IMPL_H
#define HKD_UNIT_IMPL_H

#include <systemd/sd-bus.h>
#include "proto/limits.h"
#include "hkd/bus.h"
#include "hkd/unit.h"

#define HKD_SYSTEMD "org.freedesktop.systemd1"
#define HKD_SYSTEMD_PATH "/org/freedesktop/systemd1"
#define HKD_UNIT_PREFIX "flux-housekeeping-"
#define HKD_SLICE "flux-hk.slice"

enum {
    HKD_UNIT_NAME_BYTES = 256,
    HKD_UNIT_NAMES_LIMIT = 1000, /* of one job id */
    HKD_START_LIMIT_MS = 300000, /* then start-failed */
    HKD_CHECK_MS = 500,          /* after the start: are properties as asked */
    HKD_FORGET_AGAIN_MS = 60000,
};

/* What ExecStart tells of one command. */
struct hkd_exec {
    char *path; /* of the script, also where /bin/sh runs it */
    bool by_shell;
    double t_start, t_end; /* 0: not yet */
    uint32_t pid;
    int code, status; /* CLD_EXITED.. and the number that goes with it */
};

/* Properties as a message tells them; what it does not tell is 0 or "". */
struct hkd_props {
    char active_state[32];
    char invocation[HK_ID_BYTES];
    char *cgroup;
    bool has_cgroup;
    uint32_t main_pid;
    int main_code, main_status;
    uint64_t main_start_us, main_exit_us;
    bool has_main;
    struct hkd_exec *execs;
    size_t execs_count;
    bool has_execs;
    uint64_t alloc; /* of the environment */
    int attempt;
    /* to be compared with what was asked for */
    char kill_mode[32], collect_mode[32], type[32], slice[64];
    bool remain_after_exit;
    uint64_t timeout_start_us, timeout_stop_us, runtime_max_us;
};

enum hkd_unit_state {
    HKD_UNIT_PREPARED = 0,
    HKD_UNIT_WAITING,   /* for a connection, to be started */
    HKD_UNIT_ASKED,     /* start was sent */
    HKD_UNIT_CHECKING,  /* of a unit of that name: is it ours? */
    HKD_UNIT_STARTED,   /* systemd has it */
    HKD_UNIT_FORGOTTEN, /* to be let go */
};

struct hkd_unit {
    struct hkd_unit *next;
    struct hkd_units *units;
    uint64_t alloc;
    int attempt;
    uint64_t jobid;
    struct hk_start start; /* its texts are ours */
    int64_t kill_grace_ms;
    bool exit_on_first_error;
    enum hkd_unit_state state;
    char name[HKD_UNIT_NAME_BYTES];
    char *path;        /* its object */
    unsigned name_no;  /* N of the name, 1: none */
    bool lost;         /* a start was sent that got no answer */
    int signum;        /* was sent last; 0: none */
    char *why;         /* it cannot be started: told with the next tick */
    int64_t since_ms;  /* start was wanted */
    int64_t check_ms;  /* compare the properties; INT64_MAX: done */
    int64_t forget_ms; /* ask again to let go of it */
    bool told;         /* STARTED or UNIT */
    struct hkd_scripts scripts;
    struct hk_script_result *results; /* as many; names are those of scripts */
    uint32_t *pids;
    char active_state[32];
    char invocation[HK_ID_BYTES];
    char *cgroup;
    bool job_done;   /* the start job is over */
    unsigned asking; /* answers that are awaited */
    bool changed;    /* since they were asked for */
    bool finished;   /* FINISHED was told */
    bool listed;     /* in the list that is being read */
};

struct hkd_units {
    sd_event *event;
    const struct hk_conf *conf;
    char *host;
    struct hkd_units_calls calls;
    void *arg;
    struct hkd_bus *bus;
    struct hkd_unit *first;
    char *foreign;
    bool adopting;
    bool expecting;     /* a start is under way */
    bool wanted_list;   /* with the next connection */
    bool looking;       /* the list was asked for */
    size_t looks_left;  /* units of the list that were not yet heard */
    char *foreign_next; /* of the list under way */
};

/* ---- unit.c ---- */

struct hkd_unit *hkd_unit_find (const struct hkd_units *units,
                                uint64_t alloc,
                                int attempt);
/* The one that systemd has, rather than one that only asks for that name. */
struct hkd_unit *hkd_unit_by_name (const struct hkd_units *units,
                                   const char *name);
struct hkd_unit *hkd_unit_by_path (const struct hkd_units *units,
                                   const char *path);
struct hkd_unit *hkd_unit_add (struct hkd_units *units,
                               uint64_t alloc,
                               int attempt);
void hkd_unit_drop (struct hkd_unit *u); /* only our memory of it */
int hkd_unit_set_name (struct hkd_unit *u, const char *name);
int hkd_unit_set_scripts (struct hkd_unit *u, struct hkd_scripts *take);
int64_t hkd_units_now (struct hkd_units *units);
/* Keeps the connection while there is something to do with it. */
void hkd_units_want_bus (struct hkd_units *units);
/* Fills kind, alloc and attempt. */
int hkd_unit_tell (struct hkd_unit *u,
                   enum hkd_event_kind kind,
                   struct hkd_event *ev);

/* What an answer finds its unit by: it may be gone by then. */
struct hkd_call {
    struct hkd_units *units;
    uint64_t alloc;
    int attempt;
    char name[HKD_UNIT_NAME_BYTES];
    const char *method; /* or the property that was asked for */
};
struct hkd_call *hkd_call_create (const struct hkd_unit *u);
struct hkd_unit *hkd_call_unit (const struct hkd_call *call);
/* Send m, which may be NULL with rc saying why, and unref it; a failure is
 * logged.  The answer goes to fn.
 */
int hkd_call_send (struct hkd_units *units,
                   sd_bus_message *m,
                   int rc,
                   sd_bus_message_handler_t fn,
                   struct hkd_call *take);
/* A new call of systemd's manager; negative errno on failure. */
int hkd_manager_call (struct hkd_units *units,
                      const char *method,
                      sd_bus_message **m);
/* An error of a call whose failure changes nothing but is to be seen. */
void hkd_call_failed (const struct hkd_call *call, const sd_bus_error *error);
/* systemd did not answer, or the connection went. */
bool hkd_call_lost (const sd_bus_error *error);
void hkd_unit_kill (struct hkd_unit *u);
void hkd_unit_let_go (struct hkd_unit *u);

/* ---- unit_start.c ---- */

void hkd_unit_start_now (struct hkd_unit *u);
void hkd_unit_started (struct hkd_unit *u);
void hkd_unit_start_failed (struct hkd_unit *u, const char *reason);
void hkd_unit_check (struct hkd_unit *u);

/* ---- unit_watch.c ---- */

int hkd_units_match (struct hkd_units *units, sd_bus *bus);
void hkd_unit_ask (struct hkd_unit *u); /* for the results of its commands */
void hkd_unit_take (struct hkd_unit *u, const struct hkd_props *props);
void hkd_unit_tell_scripts (struct hkd_unit *u);
void hkd_unit_settle (struct hkd_unit *u); /* FINISHED? */
/* Does systemd still have it?  If not it is gone: told and dropped. */
void hkd_unit_verify (struct hkd_unit *u);
void hkd_unit_gone (struct hkd_unit *u);

/* ---- unit_list.c ---- */

void hkd_units_list (struct hkd_units *units);
/* All properties of a unit, or one of its service; fn gets the call. */
int hkd_units_get_all (struct hkd_units *units,
                       const char *name,
                       sd_bus_message_handler_t fn,
                       struct hkd_call *call);
int hkd_units_get (struct hkd_units *units,
                   const char *name,
                   const char *property,
                   sd_bus_message_handler_t fn,
                   struct hkd_call *call);

/* ---- unit_message.c ---- */

/* The message that starts u; negative errno on failure. */
int hkd_unit_message (struct hkd_unit *u, sd_bus *bus, sd_bus_message **m);
int64_t hkd_unit_stop_ms (const struct hkd_unit *u);

/* ---- unit_props.c ---- */

/* An array of properties; negative errno on failure; caller ends with _fini. */
int hkd_props_read (sd_bus_message *m, struct hkd_props *props);
/* One, whose value is next. */
int hkd_prop_read (sd_bus_message *m,
                   const char *name,
                   struct hkd_props *props);
void hkd_props_fini (struct hkd_props *props);
/* What differs from what was asked for, "" if nothing does. */
void hkd_props_compare (const struct hkd_unit *u,
                        const struct hkd_props *props,
                        char *text,
                        size_t size);

#endif

/* hkctl.h - what the commands of hkctl share */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HK_HKCTL_H
#define HK_HKCTL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/conf.h"
#include "proto/error.h"
#include "proto/link.h"

enum ctl_status {
    CTL_DONE = 0,
    CTL_NO = 1, /* the answer is "no": nothing matched, refused, not well */
    CTL_USAGE = 2,
    CTL_NO_WAY = 3, /* cannot reach the coordinator, or not allowed */
};

/* Everything that a command line can say; what was not said is zero. */
struct ctl_args {
    bool help;
    bool json;
    bool no_header;
    const char *config;
    int64_t timeout_ms;
    uint64_t jobid;
    bool has_jobid;
    struct hk_hostlist *hosts;
    uint32_t userid;
    bool has_userid;
    const char *resource_file;
    const char *ranks;
    const char *queue;
    const char *reason;
    int64_t priority;
    double t_submit;
    double t_end;
    int signal;
    int64_t lines;
    int64_t limit;
    bool all;
    bool follow;
    bool manager;
    bool hello;
    bool partial_ok;
    bool take_over;
    bool example;
    const char *life;
    const char *active;
    const char *jobs;
    const char *allocated_file;
};

enum ctl_option_kind {
    CTL_FLAG,     /* bool */
    CTL_TEXT,     /* const char * */
    CTL_NUMBER,   /* int64_t, not negative */
    CTL_TIME,     /* double, seconds since the epoch */
    CTL_DURATION, /* int64_t, ms */
    CTL_JOBID,    /* uint64_t, any spelling; has_jobid */
    CTL_HOSTS,    /* struct hk_hostlist * */
    CTL_USER,     /* uint32_t, name or number; has_userid */
    CTL_SIGNAL,   /* int, name or number */
};

struct ctl_option {
    const char *name; /* long; NULL ends a table */
    char letter;      /* '\0': none */
    enum ctl_option_kind kind;
    size_t offset;     /* in struct ctl_args */
    const char *value; /* what the help calls it; NULL for a flag */
    const char *help;
};

struct ctl {
    struct ctl_args args;
    struct hk_conf *conf;
    struct hk_link_client *client;
    char role[16]; /* granted */
};

struct ctl_command {
    const char *name;
    const char *usage; /* arguments and the options that are not common */
    const char *help;  /* one line */
    const struct ctl_option *options;
    bool takes_jobid; /* as its argument, required */
    bool is_local;    /* no coordinator is asked; a bad hk.conf is a no */
    int (*run) (struct ctl *ctl);
};

/* commands.c */
const struct ctl_command *ctl_command_find (const char *name);
const struct ctl_command *ctl_command_nth (size_t n); /* NULL past the end */
/* The program but for main; returns the exit status. */
int ctl_main (int argc, char **argv);

/* options.c */
extern const struct ctl_option ctl_common_options[];
/* Where in argv the command stands, after whatever options; 0: nowhere. */
int ctl_command_at (int argc, char **argv);
/* argv[0] is the command's name.  CTL_DONE or CTL_USAGE with a line on stderr.
 */
int ctl_parse (const struct ctl_command *command,
               int argc,
               char **argv,
               struct ctl_args *args);
void ctl_args_fini (struct ctl_args *args);
void ctl_help (const struct ctl_command *command);
void ctl_help_all (void);

/* session.c */
/* CTL_DONE when welcomed; else says why on stderr. */
int ctl_connect (struct ctl *ctl, const char *role);
void ctl_disconnect (struct ctl *ctl);
/* Wait for what comes next, at most until timeout (CTL args; < 0: for ever).
 * 1 a message, the caller ends it; 0 the connection was lost and is made
 * again: ask anew (said on stderr); -1 with the exit status in *status, said on
 * stderr.
 */
int ctl_receive (struct ctl *ctl,
                 int64_t timeout_ms,
                 struct hk_msg *msg,
                 int *status);
/* One question and all of its answers: each row goes to row (NULL: none are
 * expected), what done, recorded or log-end said to the end (NULL: nothing to
 * do).  An error is said on stderr.  Returns the exit status.
 */
struct ctl_answer {
    int (*rows) (void *arg, json_t *rows);
    int (*other) (void *arg, const struct hk_msg *msg);
    void *arg;
    char code[16];   /* of an error; "" if there was none */
    json_t *result;  /* of done, owned by the caller; NULL: none */
    char text[1024]; /* of done */
};
int ctl_ask (struct ctl *ctl, struct hk_msg *msg, struct ctl_answer *answer);
/* The exit status for the code of an error message. */
int ctl_error_status (const char *code);
/* Into a query; the text is the caller's to free after sending. */
char *ctl_hosts_text (const struct ctl *ctl);

/* render.c */
struct ctl_column {
    const char *name; /* heading; NULL ends a table */
    bool right;
    bool wrap;
    bool optional; /* left out when every cell is empty */
    /* Into buf of size; the row is the coordinator's. */
    void (*cell) (const json_t *row, char *buf, size_t size);
};
/* A table, or with --json {"rows": [...]} with all that the rows have. */
int ctl_render (const struct ctl *ctl,
                const struct ctl_column *columns,
                const json_t *rows);
/* One value as one line of JSON and out to the reader; -1 if that fails. */
int ctl_print_json (const json_t *value);
/* Flush; CTL_DONE, or CTL_NO when what was written did not get out. */
int ctl_flush (void);
/* Cells: text of a field, escaped; "" if absent. */
void ctl_cell_text (const json_t *row, const char *key, char *buf, size_t size);
void ctl_cell_jobid (const json_t *row, char *buf, size_t size);
void ctl_cell_user (const json_t *row, char *buf, size_t size);
/* Since a time until now, and a time of day. */
void ctl_cell_age (const json_t *row, const char *key, char *buf, size_t size);
void ctl_cell_time (const json_t *row, const char *key, char *buf, size_t size);
void ctl_cell_int (const json_t *row, const char *key, char *buf, size_t size);

/* The commands, one file a family. */
int ctl_list (struct ctl *ctl);
int ctl_nodes (struct ctl *ctl);
int ctl_history (struct ctl *ctl);
int ctl_job_end (struct ctl *ctl);
int ctl_follow (struct ctl *ctl);
int ctl_manage (struct ctl *ctl);
int ctl_kill (struct ctl *ctl);
int ctl_recover (struct ctl *ctl);
int ctl_log (struct ctl *ctl);
int ctl_ping (struct ctl *ctl);
int ctl_config (struct ctl *ctl);

#endif

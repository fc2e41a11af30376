/* message.h - the messages: one table, one codec */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HK_MESSAGE_H
#define HK_MESSAGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/error.h"
#include "proto/run.h"

enum { HK_PROTOCOL_VERSION = 1 };

enum hk_role {
    HK_ROLE_NONE = 0,
    HK_ROLE_GUEST,
    HK_ROLE_NODE,
    HK_ROLE_MANAGER,
    HK_ROLE_OWNER,
};
const char *hk_role_name (enum hk_role role); /* "none" for NONE */
int hk_role_decode (const char *name);        /* -1 if unknown */

enum hk_msg_type {
    HK_MSG_NONE = 0,
    /* the key question, plain */
    HK_MSG_KEY_GET,
    HK_MSG_KEY,
    /* the session */
    HK_MSG_HELLO,
    HK_MSG_WELCOME,
    HK_MSG_ERROR,
    HK_MSG_REHELLO,
    HK_MSG_ALIVE,
    /* node and coordinator */
    HK_MSG_STATE,
    HK_MSG_RUN,
    HK_MSG_START,
    HK_MSG_STOP,
    HK_MSG_ACK,
    /* clients */
    HK_MSG_PING,
    HK_MSG_LIST,
    HK_MSG_NODES,
    HK_MSG_HISTORY,
    HK_MSG_FOLLOW,
    HK_MSG_DATA,
    HK_MSG_DONE,
    HK_MSG_LOG,
    HK_MSG_LOG_DATA,
    HK_MSG_LOG_END,
    HK_MSG_KILL,
    HK_MSG_RECOVER,
    HK_MSG_JOB_END,
    HK_MSG_RECORDED,
    /* managers */
    HK_MSG_SCHED_HELLO,
    HK_MSG_SCHED_ALLOC,
    HK_MSG_SCHED_ALLOC_END,
    HK_MSG_SCHED_READY,
    HK_MSG_FREE,
    HK_MSG_FREE_OK,
    HK_MSG_DRAIN,
    HK_MSG_DRAIN_DONE,
    HK_MSG_UNDRAIN,
    HK_MSG_UNDRAIN_DONE,
    HK_MSG_COUNT,
};

/* Strings are borrowed from the message that was decoded (until hk_msg_fini)
 * or from the caller (until hk_msg_encode returns).  An optional string that
 * is absent decodes as NULL, in runs and starts as ""; a number as 0.
 */
struct hk_msg_key_get {
    const char *nonce; /* 64 hex digits */
};

struct hk_msg_key {
    const char *cred;
};

struct hk_msg_hello {
    int version;
    const char *role;
    const char *cred;
};

struct hk_msg_welcome {
    int version;
    const char *instance;
    uint64_t start;
    uint64_t commit;
    uint32_t uid;
    double now;
    int64_t heartbeat_ms;
    int64_t reconcile_ms;
    const char *role;     /* granted: a guest may have asked as owner */
    const char *software; /* HK_VERSION of the coordinator */
};

struct hk_msg_error {
    const char *code; /* auth version skew conflict denied not-found bad limit
                         store */
    int version;      /* the coordinator's */
    const char *text;
};

struct hk_msg_rehello {
    const char *instance;
    uint64_t start;
};

struct hk_msg_alive {
    const char *boot_id; /* nodes */
    const char *life;    /* managers */
};

struct hk_msg_state {
    const char *boot_id;
    const char *seen_instance; /* NULL: hkd has seen none since boot */
    uint64_t seen_start;
    uint64_t seen_commit;
    struct hk_run *runs;
    size_t runs_count;
    int part;
    bool last;
    const char *foreign; /* units of such a name that are not ours, space
                            separated; NULL: none */
};

/* What is asked for by list, nodes, history, ping, follow, log, kill and
 * recover; the table says which fields each of them has.
 */
struct hk_msg_query {
    uint64_t jobid;    /* 0: any */
    const char *hosts; /* host list; NULL: any */
    uint32_t limit;    /* rows; 0: the server's own */
    const char *after; /* where the last page ended; NULL: from the start */
    bool all;
    int signal;
    const char *reason;
    int lines;
    bool follow;
};

struct hk_msg_data {
    json_t *rows; /* array */
    bool more;
};

struct hk_msg_done {
    json_t *result; /* object or NULL */
    const char *text;
};

struct hk_msg_log_data {
    const char *host;
    json_t *lines; /* array of strings */
};

struct hk_msg_log_end {
    const char *host;
    bool truncated;
    const char *text;
};

struct hk_msg_job_end {
    uint64_t jobid;
    uint32_t userid;
    json_t *R;
    int64_t priority;
    double t_submit;
    double t_end;
    const char *queue;
};

struct hk_msg_recorded {
    uint64_t alloc;
    const char *state; /* new, held, done */
};

struct hk_msg_sched_hello {
    const char *life;
    bool partial_ok;
    uint64_t last_free;
    const char *active; /* idset of ranks of active jobs; NULL: none */
    json_t *jobs;       /* array of their ids; NULL: not said */
    bool take_over;
};

struct hk_msg_sched_alloc {
    const char *life;
    uint64_t jobid;
    int64_t priority;
    uint32_t userid;
    double t_submit;
    json_t *R;
    const char *free; /* idset or NULL */
};

struct hk_msg_sched_alloc_end {
    const char *life;
    bool resumed; /* the life that is stored: nothing was told anew */
};

struct hk_msg_sched_ready {
    const char *life;
    json_t *allocated; /* R or NULL: unavailable */
};

struct hk_msg_free {
    uint64_t n;
    const char *life;
    uint64_t jobid;
    const char *ranks;
    json_t *R;
    bool final;
};

struct hk_msg_free_ok {
    uint64_t n;
};

struct hk_msg_drain {
    uint64_t n;
    const char *life;
    const char *hosts;
    const char *ranks;
    const char *reason;
};

/* per host: {HOST: {"result": "ok|already|excluded|unknown|failed|changed|
 * not-drained", "reason"?, "text"?}} */
struct hk_msg_drain_done {
    uint64_t n;
    json_t *hosts;
};

struct hk_msg {
    enum hk_msg_type type;
    uint64_t seq;
    uint64_t re;         /* 0: not an answer */
    const char *session; /* NULL before welcome */
    /* what goes to a node also carries; of welcome and rehello they are
     * decoded here and there, and encoded from there */
    uint64_t start;
    uint64_t commit;
    union {
        struct hk_msg_key_get key_get;
        struct hk_msg_key key;
        struct hk_msg_hello hello;
        struct hk_msg_welcome welcome;
        struct hk_msg_error error;
        struct hk_msg_rehello rehello;
        struct hk_msg_alive alive;
        struct hk_msg_state state;
        struct hk_run run;
        struct hk_start start_run;
        struct hk_stop stop;
        struct hk_ack ack;
        struct hk_msg_query query;
        struct hk_msg_data data;
        struct hk_msg_done done;
        struct hk_msg_log_data log_data;
        struct hk_msg_log_end log_end;
        struct hk_msg_job_end job_end;
        struct hk_msg_recorded recorded;
        struct hk_msg_sched_hello sched_hello;
        struct hk_msg_sched_alloc sched_alloc;
        struct hk_msg_sched_alloc_end sched_alloc_end;
        struct hk_msg_sched_ready sched_ready;
        struct hk_msg_free free;
        struct hk_msg_free_ok free_ok;
        struct hk_msg_drain drain;           /* also undrain */
        struct hk_msg_drain_done drain_done; /* also undrain-done */
    };
    json_t *root; /* owned: the one json_t field of what was decoded; NULL in a
                     message to encode */
    void *arrays; /* owned: text and arrays of what was decoded */
};

/* Decode one frame.  max_bytes by who sent it (limits.h).  -1 with EINVAL (not
 * JSON, wrong type, a missing field, over a limit), EMSGSIZE, ENOMEM;
 * EPROTO for a type that is not in the table.  Unknown fields are passed over.
 * On success the caller ends with hk_msg_fini.  The data is copied.
 */
int hk_msg_decode (const void *data,
                   size_t len,
                   size_t max_bytes,
                   struct hk_msg *msg,
                   struct hk_error *err);
/* Also for a message that was only made to be encoded (nothing to do), and
 * after a decode that failed.
 */
void hk_msg_fini (struct hk_msg *msg);
/* The frame's text, NUL terminated, which the caller frees, and its length
 * (len may be NULL); json_t fields are borrowed.  Bytes that are not UTF-8
 * become U+FFFD.  NULL with EINVAL (our own mistake: a required field is NULL, a
 * text or an array over its limit, an integer over 63 bits, a number that is
 * not finite) or ENOMEM.
 */
char *hk_msg_encode (const struct hk_msg *msg,
                     size_t *len,
                     struct hk_error *err);

/* What a field is in JSON and in the structure. */
enum hk_field_kind {
    HK_FIELD_STRING,  /* const char *, limit: bytes with NUL */
    HK_FIELD_ID,      /* const char *, 32 hex digits; "" where may_be_empty */
    HK_FIELD_IDSET,   /* const char *, characters of an idset only */
    HK_FIELD_HOSTS,   /* const char *, no space nor control character */
    HK_FIELD_INT,     /* int; limit: 0 or the largest, 0 then the smallest */
    HK_FIELD_U32,     /* uint32_t */
    HK_FIELD_U64,     /* uint64_t below 2^63 */
    HK_FIELD_I64,     /* int64_t */
    HK_FIELD_DOUBLE,  /* double, finite */
    HK_FIELD_BOOL,    /* bool */
    HK_FIELD_PHASE,   /* enum hk_run_phase, by name */
    HK_FIELD_OUTCOME, /* enum hk_outcome, by name */
    HK_FIELD_OBJECT,  /* json_t * */
    HK_FIELD_ARRAY,   /* json_t * */
    HK_FIELD_STRUCTS, /* pointer and count; sub; limit: how many */
    HK_FIELD_STRINGS, /* const char ** and count; limit: how many */
    HK_FIELD_GROUP,   /* object of fields of the same structure; sub, whose
                         first is a string: NULL leaves the group out */
};

/* The table's rows, for dispatch, the manual page and the role walk. */
struct hk_msg_field {
    const char *name; /* NULL ends a table */
    enum hk_field_kind kind;
    bool optional;
    bool may_be_empty; /* optional, and "" instead of NULL */
    size_t offset;     /* in the body, or in the element of an array */
    size_t limit;
    size_t count_offset;            /* STRUCTS, STRINGS */
    size_t sub_size;                /* STRUCTS: of an element */
    const struct hk_msg_field *sub; /* STRUCTS, GROUP */
};

struct hk_msg_row {
    const char *name;   /* "sched-hello" */
    unsigned from;      /* 1 << enum hk_role of the peers that may send it; 0:
                           only the coordinator does */
    unsigned to;        /* 1 << enum hk_role the coordinator sends it to;
                           1 << HK_ROLE_NONE: before welcome */
    enum hk_role least; /* least role that may send it; NONE: coordinator only
                           or before welcome */
    const struct hk_msg_field *fields;
};

const struct hk_msg_row *hk_msg_row (enum hk_msg_type type);
const char *hk_msg_type_name (enum hk_msg_type type);
/* HK_MSG_NONE if unknown. */
enum hk_msg_type hk_msg_type_decode (const char *name, size_t len);
/* May a peer of that role send this type?  Roles are not one ladder: owner has
 * all of guest and manager; node has its own and ping.
 */
bool hk_msg_allowed (enum hk_msg_type type, enum hk_role role);
/* The limit of a frame from a peer of that role. */
size_t hk_msg_max_bytes (enum hk_role role);

#endif

/* message_table.c - every message and field: what drives codec and roles */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "proto/message.h"

#include <string.h>
#include "proto/identity.h"
#include "proto/limits.h"

/* FIELD (structure, member, kind, more...): a field named as its member. */
#define NAMED(s, m, n, k, ...)                                               \
    {                                                                        \
        .name = (n), .kind = HK_FIELD_##k, .offset = offsetof (struct s, m), \
        __VA_ARGS__                                                          \
    }
#define FIELD(s, m, k, ...) NAMED (s, m, #m, k, __VA_ARGS__)
#define OPTIONAL .optional = true
#define MAYBE_EMPTY .optional = true, .may_be_empty = true
#define LIMIT(n) .limit = (n)
#define MANY(s, m) .count_offset = offsetof (struct s, m)
/* clang-format off */
#define END { .name = NULL }
/* clang-format on */

enum {
    ROLE_WORD_BYTES = 16,
    CODE_WORD_BYTES = 32,
    UNIT_NAME_BYTES = 256,
    QUEUE_NAME_BYTES = 256,
    LIFE_BYTES = 128,
    PAGE_BYTES = 256,
    SOFTWARE_BYTES = 64,
    SIGNAL_MAX = 64,
    LOG_LINES_MAX = 1000000,
    FOREIGN_BYTES = 64 << 10,
    ATTEMPT_MAX = 1000000,
};

typedef const struct hk_msg_field fields_t[];

static fields_t no_fields = { END };

static fields_t key_get_fields = {
    FIELD (hk_msg_key_get, nonce, STRING, LIMIT (HK_NONCE_TEXT_BYTES)),
    END,
};

static fields_t key_fields = {
    FIELD (hk_msg_key, cred, STRING, LIMIT (HK_CRED_BYTES)),
    END,
};

static fields_t hello_fields = {
    FIELD (hk_msg_hello, version, INT),
    FIELD (hk_msg_hello, role, STRING, LIMIT (ROLE_WORD_BYTES)),
    FIELD (hk_msg_hello, cred, STRING, LIMIT (HK_CRED_BYTES)),
    END,
};

static fields_t welcome_fields = {
    FIELD (hk_msg_welcome, version, INT),
    FIELD (hk_msg_welcome, instance, ID),
    FIELD (hk_msg_welcome, start, U64),
    FIELD (hk_msg_welcome, commit, U64),
    FIELD (hk_msg_welcome, uid, U32),
    FIELD (hk_msg_welcome, now, DOUBLE),
    FIELD (hk_msg_welcome, heartbeat_ms, I64),
    FIELD (hk_msg_welcome, reconcile_ms, I64),
    FIELD (hk_msg_welcome, role, STRING, LIMIT (ROLE_WORD_BYTES), OPTIONAL),
    FIELD (hk_msg_welcome, software, STRING, LIMIT (SOFTWARE_BYTES), OPTIONAL),
    END,
};

static fields_t error_fields = {
    FIELD (hk_msg_error, code, STRING, LIMIT (CODE_WORD_BYTES)),
    FIELD (hk_msg_error, version, INT, OPTIONAL),
    FIELD (hk_msg_error, text, STRING, LIMIT (HK_REASON_BYTES)),
    END,
};

static fields_t rehello_fields = {
    FIELD (hk_msg_rehello, instance, ID),
    FIELD (hk_msg_rehello, start, U64),
    END,
};

static fields_t alive_fields = {
    FIELD (hk_msg_alive, boot_id, ID, OPTIONAL),
    FIELD (hk_msg_alive, life, STRING, LIMIT (LIFE_BYTES), OPTIONAL),
    END,
};

static fields_t script_fields = {
    FIELD (hk_script_result, name, STRING, LIMIT (HK_SCRIPT_NAME_BYTES)),
    FIELD (hk_script_result, code, INT),
    FIELD (hk_script_result, signal, INT, LIMIT (SIGNAL_MAX), OPTIONAL),
    FIELD (hk_script_result, t_start, DOUBLE, OPTIONAL),
    FIELD (hk_script_result, t_end, DOUBLE, OPTIONAL),
    END,
};

static fields_t run_fields = {
    FIELD (hk_run, alloc, U64),
    FIELD (hk_run, instance, ID),
    FIELD (hk_run, attempt, INT, LIMIT (ATTEMPT_MAX)),
    FIELD (hk_run, jobid, U64),
    FIELD (hk_run, boot_id, ID),
    FIELD (hk_run, invocation, ID, MAYBE_EMPTY),
    FIELD (hk_run, unit, STRING, LIMIT (UNIT_NAME_BYTES), MAYBE_EMPTY),
    FIELD (hk_run, phase, PHASE),
    FIELD (hk_run, script, STRING, LIMIT (HK_SCRIPT_NAME_BYTES), MAYBE_EMPTY),
    FIELD (hk_run,
           scripts,
           STRUCTS,
           LIMIT (HK_SCRIPTS_LIMIT),
           MANY (hk_run, scripts_count),
           OPTIONAL,
           .sub = script_fields,
           .sub_size = sizeof (struct hk_script_result)),
    FIELD (hk_run, outcome, OUTCOME, OPTIONAL),
    FIELD (hk_run,
           leftovers,
           STRINGS,
           LIMIT (HK_LEFTOVERS_LIMIT),
           MANY (hk_run, leftovers_count),
           OPTIONAL),
    FIELD (hk_run, reason, STRING, LIMIT (HK_REASON_BYTES), MAYBE_EMPTY),
    FIELD (hk_run, t_start, DOUBLE, OPTIONAL),
    FIELD (hk_run, t_end, DOUBLE, OPTIONAL),
    END,
};

static fields_t seen_fields = {
    NAMED (hk_msg_state, seen_instance, "instance", ID, OPTIONAL),
    NAMED (hk_msg_state, seen_start, "start", U64, OPTIONAL),
    NAMED (hk_msg_state, seen_commit, "commit", U64, OPTIONAL),
    END,
};

static fields_t state_fields = {
    FIELD (hk_msg_state, boot_id, ID),
    { .name = "seen", .kind = HK_FIELD_GROUP, OPTIONAL, .sub = seen_fields },
    FIELD (hk_msg_state,
           runs,
           STRUCTS,
           LIMIT (HK_RUNS_LIMIT),
           MANY (hk_msg_state, runs_count),
           OPTIONAL,
           .sub = run_fields,
           .sub_size = sizeof (struct hk_run)),
    FIELD (hk_msg_state, part, INT, LIMIT (1 << 20), OPTIONAL),
    FIELD (hk_msg_state, last, BOOL, OPTIONAL),
    FIELD (hk_msg_state, foreign, STRING, LIMIT (FOREIGN_BYTES), OPTIONAL),
    END,
};

static fields_t start_fields = {
    FIELD (hk_start, alloc, U64),
    FIELD (hk_start, attempt, INT, LIMIT (ATTEMPT_MAX)),
    FIELD (hk_start, boot_id, ID),
    FIELD (hk_start, jobid, U64),
    FIELD (hk_start, userid, U32),
    FIELD (hk_start, ranks, IDSET, LIMIT (HK_IDSET_TEXT_BYTES)),
    FIELD (hk_start, rank, U32),
    FIELD (hk_start, queue, STRING, LIMIT (QUEUE_NAME_BYTES), MAYBE_EMPTY),
    END,
};

static fields_t stop_fields = {
    FIELD (hk_stop, alloc, U64),
    FIELD (hk_stop, attempt, INT, LIMIT (ATTEMPT_MAX)),
    FIELD (hk_stop, signal, INT, LIMIT (SIGNAL_MAX)),
    FIELD (hk_stop, reason, STRING, LIMIT (HK_REASON_BYTES), MAYBE_EMPTY),
    END,
};

static fields_t ack_fields = {
    FIELD (hk_ack, alloc, U64),
    FIELD (hk_ack, attempt, INT, LIMIT (ATTEMPT_MAX)),
    FIELD (hk_ack, invocation, ID, MAYBE_EMPTY),
    END,
};

#define QUERY_JOBID FIELD (hk_msg_query, jobid, U64, OPTIONAL)
#define QUERY_HOSTS \
    FIELD (hk_msg_query, hosts, HOSTS, LIMIT (HK_HOSTLIST_TEXT_BYTES), OPTIONAL)
#define QUERY_ALL FIELD (hk_msg_query, all, BOOL, OPTIONAL)
#define QUERY_REASON \
    FIELD (hk_msg_query, reason, STRING, LIMIT (HK_REASON_BYTES), OPTIONAL)

static fields_t rows_query_fields = {
    QUERY_JOBID,
    QUERY_HOSTS,
    FIELD (hk_msg_query, limit, U32, OPTIONAL),
    FIELD (hk_msg_query, after, STRING, LIMIT (PAGE_BYTES), OPTIONAL),
    QUERY_ALL,
    END,
};

static fields_t follow_fields = { QUERY_JOBID, QUERY_HOSTS, END };

static fields_t log_fields = {
    QUERY_JOBID,
    QUERY_HOSTS,
    FIELD (hk_msg_query, lines, INT, LIMIT (LOG_LINES_MAX), OPTIONAL),
    FIELD (hk_msg_query, follow, BOOL, OPTIONAL),
    END,
};

static fields_t kill_fields = {
    QUERY_JOBID,
    QUERY_HOSTS,
    QUERY_ALL,
    FIELD (hk_msg_query, signal, INT, LIMIT (SIGNAL_MAX), OPTIONAL),
    QUERY_REASON,
    END,
};

static fields_t recover_fields = { QUERY_REASON, END };

static fields_t data_fields = {
    FIELD (hk_msg_data, rows, ARRAY),
    FIELD (hk_msg_data, more, BOOL, OPTIONAL),
    END,
};

static fields_t done_fields = {
    FIELD (hk_msg_done, result, OBJECT, OPTIONAL),
    FIELD (hk_msg_done, text, STRING, LIMIT (HK_REASON_BYTES), OPTIONAL),
    END,
};

static fields_t log_data_fields = {
    FIELD (hk_msg_log_data, host, HOSTS, LIMIT (HK_HOST_NAME_BYTES)),
    FIELD (hk_msg_log_data, lines, ARRAY),
    END,
};

static fields_t log_end_fields = {
    FIELD (hk_msg_log_end, host, HOSTS, LIMIT (HK_HOST_NAME_BYTES)),
    FIELD (hk_msg_log_end, truncated, BOOL, OPTIONAL),
    FIELD (hk_msg_log_end, text, STRING, LIMIT (HK_REASON_BYTES), OPTIONAL),
    END,
};

static fields_t job_end_fields = {
    FIELD (hk_msg_job_end, jobid, U64),
    FIELD (hk_msg_job_end, userid, U32),
    FIELD (hk_msg_job_end, R, OBJECT),
    FIELD (hk_msg_job_end, priority, I64, OPTIONAL),
    FIELD (hk_msg_job_end, t_submit, DOUBLE, OPTIONAL),
    FIELD (hk_msg_job_end, t_end, DOUBLE, OPTIONAL),
    FIELD (hk_msg_job_end, queue, STRING, LIMIT (QUEUE_NAME_BYTES), OPTIONAL),
    END,
};

static fields_t recorded_fields = {
    FIELD (hk_msg_recorded, alloc, U64),
    FIELD (hk_msg_recorded, state, STRING, LIMIT (ROLE_WORD_BYTES)),
    END,
};

#define LIFE(s) FIELD (s, life, STRING, LIMIT (LIFE_BYTES))

static fields_t sched_hello_fields = {
    LIFE (hk_msg_sched_hello),
    FIELD (hk_msg_sched_hello, partial_ok, BOOL, OPTIONAL),
    FIELD (hk_msg_sched_hello, last_free, U64, OPTIONAL),
    FIELD (hk_msg_sched_hello,
           active,
           IDSET,
           LIMIT (HK_IDSET_TEXT_BYTES),
           OPTIONAL),
    FIELD (hk_msg_sched_hello, jobs, ARRAY, OPTIONAL),
    FIELD (hk_msg_sched_hello, take_over, BOOL, OPTIONAL),
    END,
};

static fields_t sched_alloc_fields = {
    LIFE (hk_msg_sched_alloc),
    FIELD (hk_msg_sched_alloc, jobid, U64),
    FIELD (hk_msg_sched_alloc, priority, I64, OPTIONAL),
    FIELD (hk_msg_sched_alloc, userid, U32),
    FIELD (hk_msg_sched_alloc, t_submit, DOUBLE, OPTIONAL),
    FIELD (hk_msg_sched_alloc, R, OBJECT),
    FIELD (
        hk_msg_sched_alloc, free, IDSET, LIMIT (HK_IDSET_TEXT_BYTES), OPTIONAL),
    END,
};

static fields_t sched_alloc_end_fields = {
    LIFE (hk_msg_sched_alloc_end),
    FIELD (hk_msg_sched_alloc_end, resumed, BOOL, OPTIONAL),
    END,
};

static fields_t sched_ready_fields = {
    LIFE (hk_msg_sched_ready),
    FIELD (hk_msg_sched_ready, allocated, OBJECT, OPTIONAL),
    END,
};

static fields_t free_fields = {
    FIELD (hk_msg_free, n, U64),
    LIFE (hk_msg_free),
    FIELD (hk_msg_free, jobid, U64),
    FIELD (hk_msg_free, ranks, IDSET, LIMIT (HK_IDSET_TEXT_BYTES)),
    FIELD (hk_msg_free, R, OBJECT),
    FIELD (hk_msg_free, final, BOOL, OPTIONAL),
    END,
};

static fields_t free_ok_fields = {
    FIELD (hk_msg_free_ok, n, U64),
    END,
};

static fields_t drain_fields = {
    FIELD (hk_msg_drain, n, U64),
    FIELD (hk_msg_drain, life, STRING, LIMIT (LIFE_BYTES), OPTIONAL),
    FIELD (hk_msg_drain, hosts, HOSTS, LIMIT (HK_HOSTLIST_TEXT_BYTES)),
    FIELD (hk_msg_drain, ranks, IDSET, LIMIT (HK_IDSET_TEXT_BYTES), OPTIONAL),
    FIELD (hk_msg_drain, reason, STRING, LIMIT (HK_REASON_BYTES), OPTIONAL),
    END,
};

static fields_t drain_done_fields = {
    FIELD (hk_msg_drain_done, n, U64),
    FIELD (hk_msg_drain_done, hosts, OBJECT),
    END,
};

enum {
    C = 0, /* only the coordinator says it */
    BEFORE = 1 << HK_ROLE_NONE,
    G = 1 << HK_ROLE_GUEST,
    N = 1 << HK_ROLE_NODE,
    M = 1 << HK_ROLE_MANAGER,
    O = 1 << HK_ROLE_OWNER,
    CLIENTS = G | M | O,
    ALL = G | N | M | O,
};

#define ROW(TYPE, n, f, t, l, table) \
    [HK_MSG_##TYPE] = { (n), (f), (t), HK_ROLE_##l, (table) }

static const struct hk_msg_row rows[HK_MSG_COUNT] = {
    ROW (KEY_GET, "key-get", BEFORE, 0, NONE, key_get_fields),
    ROW (KEY, "key", C, BEFORE, NONE, key_fields),
    ROW (HELLO, "hello", BEFORE | ALL, 0, NONE, hello_fields),
    ROW (WELCOME, "welcome", C, ALL, NONE, welcome_fields),
    ROW (ERROR, "error", C, BEFORE | ALL, NONE, error_fields),
    ROW (REHELLO, "rehello", C, BEFORE | ALL, NONE, rehello_fields),
    ROW (ALIVE, "alive", ALL, 0, GUEST, alive_fields),
    ROW (STATE, "state", N, 0, NODE, state_fields),
    ROW (RUN, "run", N, 0, NODE, run_fields),
    ROW (START, "start", C, N, NONE, start_fields),
    ROW (STOP, "stop", C, N, NONE, stop_fields),
    ROW (ACK, "ack", C, N, NONE, ack_fields),
    ROW (PING, "ping", ALL, 0, GUEST, no_fields),
    ROW (LIST, "list", CLIENTS, 0, GUEST, rows_query_fields),
    ROW (NODES, "nodes", CLIENTS, 0, GUEST, rows_query_fields),
    ROW (HISTORY, "history", CLIENTS, 0, GUEST, rows_query_fields),
    ROW (FOLLOW, "follow", O, 0, OWNER, follow_fields),
    ROW (DATA, "data", C, CLIENTS, NONE, data_fields),
    ROW (DONE, "done", N, ALL, NODE, done_fields),
    ROW (LOG, "log", O, N, OWNER, log_fields),
    ROW (LOG_DATA, "log-data", N, O, NODE, log_data_fields),
    ROW (LOG_END, "log-end", N, O, NODE, log_end_fields),
    ROW (KILL, "kill", O, 0, OWNER, kill_fields),
    ROW (RECOVER, "recover", O, 0, OWNER, recover_fields),
    ROW (JOB_END, "job-end", O, 0, OWNER, job_end_fields),
    ROW (RECORDED, "recorded", C, O, NONE, recorded_fields),
    ROW (SCHED_HELLO, "sched-hello", M | O, 0, MANAGER, sched_hello_fields),
    ROW (SCHED_ALLOC, "sched-alloc", C, M | O, NONE, sched_alloc_fields),
    ROW (SCHED_ALLOC_END,
         "sched-alloc-end",
         C,
         M | O,
         NONE,
         sched_alloc_end_fields),
    ROW (SCHED_READY, "sched-ready", M | O, 0, MANAGER, sched_ready_fields),
    ROW (FREE, "free", C, M | O, NONE, free_fields),
    ROW (FREE_OK, "free-ok", M | O, 0, MANAGER, free_ok_fields),
    ROW (DRAIN, "drain", C, M | O, NONE, drain_fields),
    ROW (DRAIN_DONE, "drain-done", M | O, 0, MANAGER, drain_done_fields),
    ROW (UNDRAIN, "undrain", C, M | O, NONE, drain_fields),
    ROW (UNDRAIN_DONE, "undrain-done", M | O, 0, MANAGER, drain_done_fields),
};

const struct hk_msg_row *hk_msg_row (enum hk_msg_type type)
{
    if (type <= HK_MSG_NONE || type >= HK_MSG_COUNT)
        return NULL;
    return &rows[type];
}

const char *hk_msg_type_name (enum hk_msg_type type)
{
    const struct hk_msg_row *row = hk_msg_row (type);

    return row ? row->name : "none";
}

enum hk_msg_type hk_msg_type_decode (const char *name, size_t len)
{
    for (int i = HK_MSG_NONE + 1; i < HK_MSG_COUNT; i++)
        if (strncmp (name, rows[i].name, len) == 0 && !rows[i].name[len])
            return (enum hk_msg_type)i;
    return HK_MSG_NONE;
}

bool hk_msg_allowed (enum hk_msg_type type, enum hk_role role)
{
    const struct hk_msg_row *row = hk_msg_row (type);

    return row && (row->from & (1U << role)) != 0;
}

size_t hk_msg_max_bytes (enum hk_role role)
{
    switch (role) {
    case HK_ROLE_GUEST:
    case HK_ROLE_NODE:
        return HK_MSG_NODE_BYTES;
    case HK_ROLE_MANAGER:
    case HK_ROLE_OWNER:
        return HK_MSG_OWNER_BYTES;
    case HK_ROLE_NONE:
        break;
    }
    return HK_MSG_UNBOUND_BYTES;
}

static const char *const role_names[] = {
    [HK_ROLE_NONE] = "none",   [HK_ROLE_GUEST] = "guest",
    [HK_ROLE_NODE] = "node",   [HK_ROLE_MANAGER] = "manager",
    [HK_ROLE_OWNER] = "owner",
};

const char *hk_role_name (enum hk_role role)
{
    if (role < HK_ROLE_NONE || role > HK_ROLE_OWNER)
        return "none";
    return role_names[role];
}

int hk_role_decode (const char *name)
{
    for (int i = HK_ROLE_GUEST; name && i <= HK_ROLE_OWNER; i++)
        if (strcmp (name, role_names[i]) == 0)
            return i;
    return -1;
}

/* write.c - one transaction a turn */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <string.h>
#include "proto/log.h"
#include "coordinator/store/schema.h"

/* Binds in order; "i" int64, "d" double, "s" text that outlives the step. */
struct bind {
    sqlite3_stmt *stmt;
    int at;
};

static void put_i (struct bind *b, int64_t value)
{
    sqlite3_bind_int64 (b->stmt, ++b->at, value);
}

static void put_d (struct bind *b, double value)
{
    sqlite3_bind_double (b->stmt, ++b->at, value);
}

static void put_s (struct bind *b, const char *text)
{
    sqlite3_bind_text (b->stmt, ++b->at, text ? text : "", -1, SQLITE_STATIC);
}

int hkc_store_run (struct hkc_store *store,
                   enum hkc_stmt which,
                   struct hk_error *err)
{
    sqlite3_stmt *stmt = store->stmt[which];
    int rc = sqlite3_step (stmt);

    if (rc != SQLITE_DONE && rc != SQLITE_ROW)
        hkc_store_fail (store->db, err, store->path);
    else
        rc = SQLITE_OK;
    int saved = errno;
    sqlite3_reset (stmt);
    errno = saved;
    return rc == SQLITE_OK ? 0 : -1;
}

/* A row that cannot be is set aside; all others go on. */
static int put (struct hkc_store *store,
                enum hkc_stmt which,
                const char *what,
                struct hk_error *err)
{
    struct hk_error why;

    if (hkc_store_run (store, which, &why) == 0)
        return 0;
    if (errno != EEXIST) {
        if (err)
            *err = why;
        return -1;
    }
    store->refused++;
    hk_log_throttled (LOG_ALERT,
                      "store refused",
                      "a row is refused and set aside: %s: %s",
                      what,
                      why.text);
    return 0;
}

int hkc_store_begin (struct hkc_store *store, struct hk_error *err)
{
    return hkc_store_run (store, HKC_STMT_BEGIN, err);
}

/* Are we still the one that the store is of?  In the transaction, so that
 * nothing of a coordinator that was replaced is ever written.
 */
static int number (struct hkc_store *store, struct hk_error *err)
{
    struct bind b = { store->stmt[HKC_STMT_NUMBER], 0 };
    const char *host = NULL;

    put_i (&b, (int64_t)(store->commit + 1));
    put_i (&b, (int64_t)store->start);
    if (hkc_store_run (store, HKC_STMT_NUMBER, err) < 0)
        return -1;
    if (sqlite3_changes (store->db) == 1)
        return 0;
    if (sqlite3_step (store->stmt[HKC_STMT_TAKER]) == SQLITE_ROW)
        host = (const char *)sqlite3_column_text (store->stmt[HKC_STMT_TAKER],
                                                  0);
    hk_error_set (err,
                  ESTALE,
                  "%s: another coordinator has taken the store, "
                  "on %s",
                  store->path,
                  host ? host : "?");
    sqlite3_reset (store->stmt[HKC_STMT_TAKER]);
    errno = ESTALE;
    return -1;
}

int hkc_store_commit (struct hkc_store *store, struct hk_error *err)
{
    if (number (store, err) < 0)
        return -1;
    if (store->next_pid != store->stored_next) {
        struct bind b = { store->stmt[HKC_STMT_NEXT_PID], 0 };
        put_i (&b, (int64_t)store->next_pid);
        if (hkc_store_run (store, HKC_STMT_NEXT_PID, err) < 0)
            return -1;
    }
    if (hkc_store_run (store, HKC_STMT_COMMIT, err) < 0)
        return -1;
    store->commit++;
    store->stored_next = store->next_pid;
    return 0;
}

void hkc_store_rollback (struct hkc_store *store)
{
    /* it cannot fail in a way that leaves the transaction open: the next
     * begin would say so */
    if (!sqlite3_get_autocommit (store->db))
        sqlite3_exec (store->db, "ROLLBACK", NULL, NULL, NULL);
}

static int put_alloc (struct hkc_store *store,
                      const struct hkc_row_alloc *row,
                      struct hk_error *err)
{
    struct bind b = { store->stmt[HKC_STMT_ALLOC], 0 };

    put_i (&b, (int64_t)row->alloc);
    put_i (&b, (int64_t)row->jobid);
    put_i (&b, row->userid);
    put_i (&b, row->priority);
    put_d (&b, row->t_submit);
    put_d (&b, row->t_end);
    put_s (&b, row->R);
    put_s (&b, row->digest);
    put_s (&b, row->queue);
    put_i (&b, (int64_t)row->pid);
    put_i (&b, row->parts_count);
    if (store->next_pid < row->pid + row->parts_count)
        store->next_pid = row->pid + row->parts_count;
    return put (store, HKC_STMT_ALLOC, "allocation", err);
}

static int put_part (struct hkc_store *store,
                     const struct hkc_row_part *row,
                     struct hk_error *err)
{
    struct bind b = { store->stmt[HKC_STMT_PART], 0 };

    put_i (&b, (int64_t)row->pid);
    put_i (&b, (int64_t)row->alloc);
    put_s (&b, row->host);
    put_i (&b, row->phase);
    put_i (&b, row->attempt);
    put_s (&b, row->boot_id);
    put_s (&b, row->invocation);
    put_i (&b, row->start_sent);
    put_i (&b, row->outcome);
    put_i (&b, row->stop_signal);
    put_i (&b, row->conflict);
    put_d (&b, row->t_since);
    put_d (&b, row->t_start);
    put_s (&b, row->script);
    put_s (&b, row->reason);
    return put (store, HKC_STMT_PART, row->host, err);
}

static int put_cause (struct hkc_store *store,
                      const struct hkc_row_cause *row,
                      bool gone,
                      struct hk_error *err)
{
    enum hkc_stmt which = gone ? HKC_STMT_CAUSE_GONE : HKC_STMT_CAUSE;
    struct bind b = { store->stmt[which], 0 };

    put_s (&b, row->host);
    put_i (&b, row->kind);
    put_i (&b, (int64_t)row->about);
    if (!gone) {
        put_s (&b, row->reason);
        put_i (&b, row->confirmed);
        put_d (&b, row->t);
    }
    return put (store, which, row->host, err);
}

/* The scripts of a run go with the row that counts, the first. */
static int put_history (struct hkc_store *store,
                        const struct hkc_row_history *row,
                        struct hk_error *err)
{
    struct bind b = { store->stmt[HKC_STMT_HISTORY], 0 };
    uint64_t refused = store->refused;

    put_i (&b, (int64_t)row->pid);
    put_i (&b, row->attempt);
    put_i (&b, (int64_t)row->alloc);
    put_i (&b, (int64_t)row->jobid);
    put_i (&b, row->userid);
    put_s (&b, row->host);
    put_i (&b, row->outcome);
    put_d (&b, row->t_start);
    put_d (&b, row->t_end);
    put_s (&b, row->invocation);
    put_s (&b, row->reason);
    if (put (store, HKC_STMT_HISTORY, row->host, err) < 0)
        return -1;
    if (store->refused != refused)
        return 0;
    for (size_t i = 0; i < row->scripts_count; i++) {
        const struct hk_script_result *s = &row->scripts[i];
        b = (struct bind){ store->stmt[HKC_STMT_SCRIPT], 0 };
        put_i (&b, (int64_t)row->pid);
        put_i (&b, row->attempt);
        put_i (&b, (int64_t)i);
        put_s (&b, s->name);
        put_i (&b, s->code);
        put_i (&b, s->signal);
        put_d (&b, s->t_start);
        put_d (&b, s->t_end);
        if (put (store, HKC_STMT_SCRIPT, s->name, err) < 0)
            return -1;
    }
    return 0;
}

static int put_ended (struct hkc_store *store,
                      const struct hkc_row *row,
                      struct hk_error *err)
{
    struct bind b = { store->stmt[HKC_STMT_CLOSED], 0 };

    if (row->kind == HKC_ROW_CLOSED) {
        put_i (&b, (int64_t)row->closed.alloc);
        put_i (&b, (int64_t)row->closed.jobid);
        put_d (&b, row->closed.t_submit);
        put_d (&b, row->closed.t_end);
        put_d (&b, row->closed.t_closed);
        put_i (&b, (int64_t)row->closed.pid);
        put_i (&b, row->closed.parts_count);
        put_s (&b, row->closed.digest);
        if (put (store, HKC_STMT_CLOSED, "closed allocation", err) < 0)
            return -1;
    }
    sqlite3_bind_int64 (
        store->stmt[HKC_STMT_DEL_ALLOC], 1, (int64_t)row->closed.alloc);
    sqlite3_bind_int64 (
        store->stmt[HKC_STMT_DEL_STATE], 1, (int64_t)row->closed.alloc);
    sqlite3_bind_int64 (
        store->stmt[HKC_STMT_DEL_PARTS], 1, (int64_t)row->closed.pid);
    sqlite3_bind_int64 (store->stmt[HKC_STMT_DEL_PARTS],
                        2,
                        (int64_t)row->closed.pid + row->closed.parts_count);
    if (hkc_store_run (store, HKC_STMT_DEL_ALLOC, err) < 0
        || hkc_store_run (store, HKC_STMT_DEL_STATE, err) < 0)
        return -1;
    return hkc_store_run (store, HKC_STMT_DEL_PARTS, err);
}

static int put_free (struct hkc_store *store,
                     const struct hkc_row *row,
                     struct hk_error *err)
{
    bool gone = row->kind == HKC_ROW_FREE_GONE;
    enum hkc_stmt which = gone ? HKC_STMT_FREE_GONE : HKC_STMT_FREE;
    struct bind b = { store->stmt[which], 0 };

    put_i (&b, (int64_t)row->free.n);
    if (!gone) {
        put_s (&b, row->free.life);
        put_i (&b, (int64_t)row->free.jobid);
        put_s (&b, row->free.ranks);
        put_s (&b, row->free.R);
        put_i (&b, row->free.final);
    }
    return put (store, which, "free", err);
}

static void bind_state (struct bind *b, const struct hkc_row_state *row)
{
    put_i (b, (int64_t)row->alloc);
    put_i (b, row->begun);
    put_d (b, row->t_first_end);
    put_s (b, row->done);
    put_s (b, row->known);
}

static void bind_host (struct bind *b, const struct hkc_row_host *row)
{
    put_s (b, row->host);
    put_s (b, row->boot_id);
    put_d (b, row->t_seen);
    put_i (b, row->drain);
    put_s (b, row->reasons);
}

static void bind_sched (struct bind *b, const struct hkc_row_sched *row)
{
    put_s (b, row->life);
    put_i (b, row->state);
    put_i (b, row->partial_ok);
    put_i (b, row->account_spoken);
    put_i (b, (int64_t)row->free_n);
    put_s (b, row->recover);
    put_s (b, row->active);
}

static void bind_audit (struct bind *b, const struct hkc_row_audit *row)
{
    put_d (b, row->t);
    put_i (b, row->userid);
    put_s (b, row->what);
    put_s (b, row->about);
    put_s (b, row->reason);
}

static int put_small (struct hkc_store *store,
                      const struct hkc_row *row,
                      struct hk_error *err)
{
    struct bind b = { NULL, 0 };

    switch (row->kind) {
    case HKC_ROW_STATE:
        b.stmt = store->stmt[HKC_STMT_STATE];
        bind_state (&b, &row->state);
        return put (store, HKC_STMT_STATE, "state", err);
    case HKC_ROW_HOST:
        b.stmt = store->stmt[HKC_STMT_HOST];
        bind_host (&b, &row->host);
        return put (store, HKC_STMT_HOST, row->host.host, err);
    case HKC_ROW_SCHED:
        b.stmt = store->stmt[HKC_STMT_SCHED];
        bind_sched (&b, &row->sched);
        return put (store, HKC_STMT_SCHED, "scheduler", err);
    case HKC_ROW_AUDIT:
        b.stmt = store->stmt[HKC_STMT_AUDIT];
        bind_audit (&b, &row->audit);
        return put (store, HKC_STMT_AUDIT, "audit", err);
    default:
        return hk_error_set (
            err, EINVAL, "row kind %d is not stored", row->kind);
    }
}

int hkc_store_put (struct hkc_store *store,
                   const struct hkc_row *row,
                   struct hk_error *err)
{
    switch (row->kind) {
    case HKC_ROW_ALLOC:
        return put_alloc (store, &row->alloc, err);
    case HKC_ROW_PART:
        return put_part (store, &row->part, err);
    case HKC_ROW_CAUSE:
    case HKC_ROW_CAUSE_GONE:
        return put_cause (
            store, &row->cause, row->kind == HKC_ROW_CAUSE_GONE, err);
    case HKC_ROW_FREE:
    case HKC_ROW_FREE_GONE:
        return put_free (store, row, err);
    case HKC_ROW_HISTORY:
        return put_history (store, &row->history, err);
    case HKC_ROW_CLOSED:
    case HKC_ROW_DROPPED:
        return put_ended (store, row, err);
    default:
        return put_small (store, row, err);
    }
}

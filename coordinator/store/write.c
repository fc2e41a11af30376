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

static int run (struct hkc_store *store, enum hkc_stmt which,
                struct hk_error *err)
{
    sqlite3_stmt *stmt = store->stmt[which];
    int rc = sqlite3_step (stmt);

    if (rc == SQLITE_DONE || rc == SQLITE_ROW) {
        sqlite3_reset (stmt);
        return 0;
    }
    if ((rc & 0xff) == SQLITE_CONSTRAINT) {
        store->refused++;
        hk_log (LOG_ALERT, "%s: a row was refused and set aside: %s: %s",
                store->path, sqlite3_errmsg (store->db), hkc_stmt_sql[which]);
        sqlite3_reset (stmt);
        return 0;
    }
    hkc_store_fail (store->db, err, store->path);
    sqlite3_reset (stmt);
    return -1;
}

int hkc_store_begin (struct hkc_store *store, struct hk_error *err)
{
    return run (store, HKC_STMT_BEGIN, err);
}

int hkc_store_commit (struct hkc_store *store, struct hk_error *err)
{
    struct bind b = { store->stmt[HKC_STMT_NUMBER], 0 };

    put_i (&b, (int64_t)(store->commit + 1));
    put_i (&b, (int64_t)store->start);
    if (run (store, HKC_STMT_NUMBER, err) < 0)
        return -1;
    if (sqlite3_changes (store->db) != 1)
        return hk_error_set (err, ESTALE, "%s: another coordinator has taken "
                             "the store", store->path);
    if (run (store, HKC_STMT_COMMIT, err) < 0)
        return -1;
    store->commit++;
    return 0;
}

void hkc_store_rollback (struct hkc_store *store)
{
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
    return run (store, HKC_STMT_ALLOC, err);
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
    return run (store, HKC_STMT_PART, err);
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
    return run (store, which, err);
}

static int put_history (struct hkc_store *store,
                        const struct hkc_row_history *row,
                        struct hk_error *err)
{
    struct bind b = { store->stmt[HKC_STMT_HISTORY], 0 };

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
    if (run (store, HKC_STMT_HISTORY, err) < 0)
        return -1;
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
        if (run (store, HKC_STMT_SCRIPT, err) < 0)
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
        if (run (store, HKC_STMT_CLOSED, err) < 0)
            return -1;
    }
    sqlite3_bind_int64 (store->stmt[HKC_STMT_DEL_ALLOC], 1,
                        (int64_t)row->closed.alloc);
    sqlite3_bind_int64 (store->stmt[HKC_STMT_DEL_STATE], 1,
                        (int64_t)row->closed.alloc);
    sqlite3_bind_int64 (store->stmt[HKC_STMT_DEL_PARTS], 1,
                        (int64_t)row->closed.pid);
    sqlite3_bind_int64 (store->stmt[HKC_STMT_DEL_PARTS], 2,
                        (int64_t)row->closed.pid + row->closed.parts_count);
    if (run (store, HKC_STMT_DEL_ALLOC, err) < 0
        || run (store, HKC_STMT_DEL_STATE, err) < 0)
        return -1;
    return run (store, HKC_STMT_DEL_PARTS, err);
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
    return run (store, which, err);
}

static int put_small (struct hkc_store *store,
                      const struct hkc_row *row,
                      struct hk_error *err)
{
    struct bind b = { NULL, 0 };

    switch (row->kind) {
        case HKC_ROW_STATE:
            b.stmt = store->stmt[HKC_STMT_STATE];
            put_i (&b, (int64_t)row->state.alloc);
            put_i (&b, row->state.begun);
            put_d (&b, row->state.t_first_end);
            put_s (&b, row->state.done);
            put_s (&b, row->state.known);
            return run (store, HKC_STMT_STATE, err);
        case HKC_ROW_HOST:
            b.stmt = store->stmt[HKC_STMT_HOST];
            put_s (&b, row->host.host);
            put_s (&b, row->host.boot_id);
            put_d (&b, row->host.t_seen);
            put_i (&b, row->host.drain);
            put_s (&b, row->host.reasons);
            return run (store, HKC_STMT_HOST, err);
        case HKC_ROW_SCHED:
            b.stmt = store->stmt[HKC_STMT_SCHED];
            put_s (&b, row->sched.life);
            put_i (&b, row->sched.state);
            put_i (&b, row->sched.partial_ok);
            put_i (&b, row->sched.account_spoken);
            put_i (&b, (int64_t)row->sched.free_n);
            put_s (&b, row->sched.recover);
            return run (store, HKC_STMT_SCHED, err);
        case HKC_ROW_AUDIT:
            b.stmt = store->stmt[HKC_STMT_AUDIT];
            put_d (&b, row->audit.t);
            put_i (&b, row->audit.userid);
            put_s (&b, row->audit.what);
            put_s (&b, row->audit.about);
            put_s (&b, row->audit.reason);
            return run (store, HKC_STMT_AUDIT, err);
        default:
            return hk_error_set (err, EINVAL, "row kind %d is not stored",
                                 row->kind);
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
            return put_cause (store, &row->cause,
                              row->kind == HKC_ROW_CAUSE_GONE, err);
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

/* find.c - look-ups by index, what nodes remember, and history that is old */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <string.h>
#include "proto/log.h"
#include "coordinator/store/schema.h"

enum { TRIM_MOST = 1024, TRIM_RUNS = 20000 };

/* Steps to a row?  What cannot be read is not found: the commit that follows
 * will most likely fail too, and say so.
 */
static bool found (struct hkc_store *store, enum hkc_stmt which)
{
    int rc = sqlite3_step (store->stmt[which]);

    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        hk_log_throttled (LOG_ALERT,
                          "store read",
                          "%s: %s",
                          store->path,
                          sqlite3_errmsg (store->db));
    return rc == SQLITE_ROW;
}

uint64_t hkc_store_find_end (struct hkc_store *store,
                             uint64_t jobid,
                             double t_submit,
                             double t_end,
                             const char *digest)
{
    sqlite3_stmt *stmt = store->stmt[HKC_STMT_FIND_END];
    uint64_t alloc = 0;

    sqlite3_bind_int64 (stmt, 1, (int64_t)jobid);
    sqlite3_bind_double (stmt, 2, t_submit);
    sqlite3_bind_double (stmt, 3, t_end);
    sqlite3_bind_text (stmt, 4, digest, -1, SQLITE_STATIC);
    if (found (store, HKC_STMT_FIND_END))
        alloc = (uint64_t)sqlite3_column_int64 (stmt, 0);
    sqlite3_reset (stmt);
    return alloc;
}

bool hkc_store_find_run (struct hkc_store *store,
                         uint64_t alloc,
                         const char *host,
                         int attempt)
{
    sqlite3_stmt *stmt = store->stmt[HKC_STMT_FIND_RUN];
    bool there;

    sqlite3_bind_int64 (stmt, 1, (int64_t)alloc);
    sqlite3_bind_text (stmt, 2, host, -1, SQLITE_STATIC);
    sqlite3_bind_int (stmt, 3, attempt);
    there = found (store, HKC_STMT_FIND_RUN);
    sqlite3_reset (stmt);
    return there;
}

void hkc_store_job_hosts (struct hkc_store *store,
                          uint64_t jobid,
                          struct hk_hostlist *hosts)
{
    sqlite3_stmt *stmt = store->stmt[HKC_STMT_JOB_HOSTS];

    sqlite3_bind_int64 (stmt, 1, (int64_t)jobid);
    while (found (store, HKC_STMT_JOB_HOSTS)) {
        const char *host = (const char *)sqlite3_column_text (stmt, 0);
        if (host && hk_hostlist_find (hosts, host) < 0
            && hk_hostlist_append (hosts, host) < 0)
            break;
    }
    sqlite3_reset (stmt);
}

/* The last commit of an earlier start of this instance. */
static bool last_commit_of (struct hkc_store *store,
                            uint64_t start,
                            uint64_t *commit)
{
    sqlite3_stmt *stmt = store->stmt[HKC_STMT_SEEN];
    bool there = true;

    if (store->seen_start != start || start == 0) {
        sqlite3_bind_int64 (stmt, 1, (int64_t)start);
        if ((there = found (store, HKC_STMT_SEEN))) {
            store->seen_start = start;
            store->seen_commit = (uint64_t)sqlite3_column_int64 (stmt, 0);
        }
        sqlite3_reset (stmt);
    }
    *commit = store->seen_commit;
    return there;
}

int hkc_store_seen (struct hkc_store *store,
                    const char *instance,
                    uint64_t start,
                    uint64_t commit,
                    struct hk_error *err)
{
    uint64_t ours = store->commit;

    if (!instance || strcmp (instance, store->instance) != 0)
        return 0; /* another instance's: nothing follows */
    if (start != store->start && !last_commit_of (store, start, &ours))
        return hk_error_set (err,
                             ESTALE,
                             "a node has seen a start that the "
                             "store does not have");
    if (commit <= ours)
        return 0;
    return hk_error_set (err,
                         ESTALE,
                         "a node has seen commit %llu of %s "
                         "start, the store has %llu",
                         (unsigned long long)commit,
                         start == store->start ? "this" : "an earlier",
                         (unsigned long long)ours);
}

struct old {
    int64_t alloc, pid, parts_count;
};

/* The oldest, so many that deleting them takes a moment. */
static int old_list (struct hkc_store *store,
                     double older_than,
                     int limit,
                     struct old *old,
                     struct hk_error *err)
{
    sqlite3_stmt *stmt = store->stmt[HKC_STMT_OLD];
    int64_t runs = 0;
    int rc, n = 0;

    sqlite3_bind_double (stmt, 1, older_than);
    sqlite3_bind_int (stmt, 2, limit);
    while ((rc = sqlite3_step (stmt)) == SQLITE_ROW && n < limit) {
        old[n].alloc = sqlite3_column_int64 (stmt, 0);
        old[n].pid = sqlite3_column_int64 (stmt, 1);
        old[n].parts_count = sqlite3_column_int64 (stmt, 2);
        runs += old[n].parts_count;
        if (n > 0 && runs > TRIM_RUNS)
            break;
        n++;
    }
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        n = hkc_store_fail (store->db, err, store->path);
    sqlite3_reset (stmt);
    return n;
}

static int old_delete (struct hkc_store *store,
                       const struct old *old,
                       struct hk_error *err)
{
    static const enum hkc_stmt runs[] = {
        HKC_STMT_DEL_SCRIPTS,
        HKC_STMT_DEL_HISTORY,
    };

    for (size_t i = 0; i < sizeof (runs) / sizeof (runs[0]); i++) {
        sqlite3_stmt *stmt = store->stmt[runs[i]];
        sqlite3_bind_int64 (stmt, 1, old->pid);
        sqlite3_bind_int64 (stmt, 2, old->pid + old->parts_count);
        if (hkc_store_run (store, runs[i], err) < 0)
            return -1;
    }
    sqlite3_bind_int64 (store->stmt[HKC_STMT_DEL_CLOSED], 1, old->alloc);
    return hkc_store_run (store, HKC_STMT_DEL_CLOSED, err);
}

int hkc_store_trim (struct hkc_store *store,
                    double older_than,
                    int limit,
                    struct hk_error *err)
{
    struct old old[TRIM_MOST];
    int n, rc;

    if (limit > TRIM_MOST)
        limit = TRIM_MOST;
    if ((n = old_list (store, older_than, limit, old, err)) <= 0)
        return n;
    rc = hkc_store_begin (store, err);
    for (int i = 0; i < n && rc == 0; i++)
        rc = old_delete (store, &old[i], err);
    if (rc == 0 && hkc_store_commit (store, err) == 0)
        return n;
    rc = errno;
    hkc_store_rollback (store);
    errno = rc;
    return -1;
}

/* schema.c - the tables and the statements */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "proto/identity.h"
#include "coordinator/store/schema.h"

/* Live tables hold what is not done; history, script and closed what was.
 * pid counts parts and is never used again: (pid, attempt) is a run, so a
 * second outcome of it cannot be stored.
 */
const char *const hkc_schema_sql =
    "CREATE TABLE meta (id INTEGER PRIMARY KEY CHECK (id = 1),"
    " schema INTEGER NOT NULL, instance TEXT NOT NULL,"
    " start INTEGER NOT NULL, made REAL NOT NULL) STRICT;"
    "CREATE TABLE start (id INTEGER PRIMARY KEY,"
    " last_commit INTEGER NOT NULL, t REAL NOT NULL) STRICT;"
    "CREATE TABLE alloc (alloc INTEGER PRIMARY KEY,"
    " jobid INTEGER NOT NULL, userid INTEGER NOT NULL,"
    " priority INTEGER NOT NULL, t_submit REAL NOT NULL,"
    " t_end REAL NOT NULL, R TEXT NOT NULL, digest TEXT NOT NULL,"
    " queue TEXT NOT NULL, pid INTEGER NOT NULL UNIQUE,"
    " parts_count INTEGER NOT NULL) STRICT;"
    "CREATE TABLE state (alloc INTEGER PRIMARY KEY,"
    " begun INTEGER NOT NULL, t_first_end REAL NOT NULL,"
    " done TEXT NOT NULL, known TEXT NOT NULL) STRICT;"
    "CREATE TABLE part (pid INTEGER PRIMARY KEY, alloc INTEGER NOT NULL,"
    " host TEXT NOT NULL, phase INTEGER NOT NULL, attempt INTEGER NOT NULL,"
    " boot_id TEXT NOT NULL, invocation TEXT NOT NULL,"
    " start_sent INTEGER NOT NULL, outcome INTEGER NOT NULL,"
    " stop_signal INTEGER NOT NULL, conflict INTEGER NOT NULL,"
    " t_since REAL NOT NULL, t_start REAL NOT NULL,"
    " script TEXT NOT NULL, reason TEXT NOT NULL) STRICT;"
    "CREATE TABLE host (host TEXT PRIMARY KEY, boot_id TEXT NOT NULL,"
    " t_seen REAL NOT NULL, drain INTEGER NOT NULL,"
    " reasons TEXT NOT NULL) STRICT, WITHOUT ROWID;"
    "CREATE TABLE cause (host TEXT NOT NULL, kind INTEGER NOT NULL,"
    " about INTEGER NOT NULL, reason TEXT NOT NULL,"
    " confirmed INTEGER NOT NULL, t REAL NOT NULL,"
    " PRIMARY KEY (host, kind, about)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE free (n INTEGER PRIMARY KEY, life TEXT NOT NULL,"
    " jobid INTEGER NOT NULL, ranks TEXT NOT NULL, R TEXT NOT NULL,"
    " final INTEGER NOT NULL) STRICT;"
    "CREATE TABLE sched (id INTEGER PRIMARY KEY CHECK (id = 1),"
    " life TEXT NOT NULL, state INTEGER NOT NULL,"
    " partial_ok INTEGER NOT NULL, account_spoken INTEGER NOT NULL,"
    " free_n INTEGER NOT NULL, recover TEXT NOT NULL) STRICT;"
    "CREATE TABLE history (pid INTEGER NOT NULL, attempt INTEGER NOT NULL,"
    " alloc INTEGER NOT NULL, jobid INTEGER NOT NULL,"
    " userid INTEGER NOT NULL, host TEXT NOT NULL,"
    " outcome INTEGER NOT NULL, t_start REAL NOT NULL, t_end REAL NOT NULL,"
    " invocation TEXT NOT NULL, reason TEXT NOT NULL,"
    " PRIMARY KEY (pid, attempt)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE script (pid INTEGER NOT NULL, attempt INTEGER NOT NULL,"
    " seq INTEGER NOT NULL, name TEXT NOT NULL, code INTEGER NOT NULL,"
    " signal INTEGER NOT NULL, t_start REAL NOT NULL, t_end REAL NOT NULL,"
    " PRIMARY KEY (pid, attempt, seq)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE closed (alloc INTEGER PRIMARY KEY, jobid INTEGER NOT NULL,"
    " t_submit REAL NOT NULL, t_end REAL NOT NULL, t_closed REAL NOT NULL,"
    " pid INTEGER NOT NULL, parts_count INTEGER NOT NULL,"
    " digest TEXT NOT NULL) STRICT;"
    "CREATE INDEX closed_job ON closed (jobid);"
    "CREATE INDEX closed_time ON closed (t_closed);"
    "CREATE TABLE audit (id INTEGER PRIMARY KEY, t REAL NOT NULL,"
    " userid INTEGER NOT NULL, what TEXT NOT NULL, about TEXT NOT NULL,"
    " reason TEXT NOT NULL) STRICT;";

const char *const hkc_stmt_sql[HKC_STMT_COUNT] = {
    [HKC_STMT_BEGIN] = "BEGIN IMMEDIATE",
    [HKC_STMT_COMMIT] = "COMMIT",
    [HKC_STMT_NUMBER] =
        "UPDATE start SET last_commit = ?1 WHERE id = ?2"
        " AND id = (SELECT start FROM meta WHERE id = 1)",
    [HKC_STMT_ALLOC] =
        "INSERT INTO alloc VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11)",
    [HKC_STMT_STATE] = "INSERT OR REPLACE INTO state VALUES (?1,?2,?3,?4,?5)",
    [HKC_STMT_PART] = "INSERT OR REPLACE INTO part VALUES"
                      " (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15)",
    [HKC_STMT_HOST] = "INSERT OR REPLACE INTO host VALUES (?1,?2,?3,?4,?5)",
    [HKC_STMT_CAUSE] =
        "INSERT OR REPLACE INTO cause VALUES (?1,?2,?3,?4,?5,?6)",
    [HKC_STMT_CAUSE_GONE] =
        "DELETE FROM cause WHERE host = ?1 AND kind = ?2 AND about = ?3",
    [HKC_STMT_FREE] = "INSERT INTO free VALUES (?1,?2,?3,?4,?5,?6)",
    [HKC_STMT_FREE_GONE] = "DELETE FROM free WHERE n = ?1",
    [HKC_STMT_SCHED] =
        "INSERT OR REPLACE INTO sched VALUES (1,?1,?2,?3,?4,?5,?6)",
    [HKC_STMT_HISTORY] =
        "INSERT INTO history VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11)",
    [HKC_STMT_SCRIPT] = "INSERT INTO script VALUES (?1,?2,?3,?4,?5,?6,?7,?8)",
    [HKC_STMT_CLOSED] = "INSERT INTO closed VALUES (?1,?2,?3,?4,?5,?6,?7,?8)",
    [HKC_STMT_DEL_ALLOC] = "DELETE FROM alloc WHERE alloc = ?1",
    [HKC_STMT_DEL_STATE] = "DELETE FROM state WHERE alloc = ?1",
    [HKC_STMT_DEL_PARTS] = "DELETE FROM part WHERE pid >= ?1 AND pid < ?2",
    [HKC_STMT_AUDIT] = "INSERT INTO audit VALUES (NULL,?1,?2,?3,?4,?5)",
    [HKC_STMT_FIND_END] =
        "SELECT alloc FROM closed WHERE jobid = ?1 AND t_submit = ?2"
        " AND t_end = ?3 AND digest = ?4",
    [HKC_STMT_FIND_RUN] =
        "SELECT 1 FROM closed c JOIN history h ON h.pid >= c.pid"
        " AND h.pid < c.pid + c.parts_count"
        " WHERE c.alloc = ?1 AND h.host = ?2 AND h.attempt = ?3",
    [HKC_STMT_JOB_HOSTS] =
        "SELECT DISTINCT h.host FROM"
        " (SELECT pid, parts_count FROM closed WHERE jobid = ?1 UNION ALL"
        " SELECT pid, parts_count FROM alloc WHERE jobid = ?1) c"
        " JOIN history h ON h.pid >= c.pid AND h.pid < c.pid + c.parts_count"
        " LIMIT 1024",
};

static const int errno_of[][2] = {
    { SQLITE_FULL, ENOSPC },      { SQLITE_READONLY, EROFS },
    { SQLITE_CORRUPT, EUCLEAN },  { SQLITE_NOTADB, EUCLEAN },
    { SQLITE_BUSY, EBUSY },       { SQLITE_NOMEM, ENOMEM },
    { SQLITE_CANTOPEN, EACCES },  { SQLITE_PERM, EACCES },
    { SQLITE_CONSTRAINT, EEXIST },
};

int hkc_store_fail (sqlite3 *db, struct hk_error *err, const char *what)
{
    int rc = sqlite3_errcode (db) & 0xff;
    int errnum = EIO;

    for (size_t i = 0; i < sizeof (errno_of) / sizeof (errno_of[0]); i++)
        if (errno_of[i][0] == rc)
            errnum = errno_of[i][1];
    return hk_error_set (err, errnum, "%s: %s", what, sqlite3_errmsg (db));
}

static int one_number (struct hkc_store *store,
                       const char *sql,
                       int64_t *number,
                       struct hk_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = -1;

    if (sqlite3_prepare_v2 (store->db, sql, -1, &stmt, NULL) != SQLITE_OK)
        return hkc_store_fail (store->db, err, store->path);
    if (sqlite3_step (stmt) == SQLITE_ROW) {
        *number = sqlite3_column_int64 (stmt, 0);
        rc = 0;
    }
    else
        hkc_store_fail (store->db, err, store->path);
    sqlite3_finalize (stmt);
    return rc;
}

static int make (struct hkc_store *store, struct hk_error *err)
{
    char id[HK_ID_BYTES], *sql;
    int rc;

    hk_random_id (id);
    sql = sqlite3_mprintf ("BEGIN IMMEDIATE; %s INSERT INTO meta VALUES"
                           " (1, %d, %Q, 0, unixepoch ()); COMMIT;",
                           hkc_schema_sql, HKC_STORE_SCHEMA, id);
    if (!sql)
        return hk_error_set (err, ENOMEM, "out of memory");
    rc = sqlite3_exec (store->db, sql, NULL, NULL, NULL);
    sqlite3_free (sql);
    if (rc != SQLITE_OK)
        return hkc_store_fail (store->db, err, store->path);
    return 0;
}

/* The tables that decide what is freed are checked whole; the history is not:
 * it may be large, and a fault in it is found when it is read.
 */
static int check (struct hkc_store *store, struct hk_error *err)
{
    static const char *const tables[] = {
        "meta", "start", "alloc", "state", "part", "host", "cause", "free",
        "sched",
    };

    for (size_t i = 0; i < sizeof (tables) / sizeof (tables[0]); i++) {
        char sql[64];
        sqlite3_stmt *stmt = NULL;
        int rc = -1;
        snprintf (sql, sizeof (sql), "PRAGMA quick_check('%s')", tables[i]);
        if (sqlite3_prepare_v2 (store->db, sql, -1, &stmt, NULL) == SQLITE_OK
            && sqlite3_step (stmt) == SQLITE_ROW) {
            const char *text = (const char *)sqlite3_column_text (stmt, 0);
            if (text && !strcmp (text, "ok"))
                rc = 0;
            else
                hk_error_set (err, EUCLEAN, "%s is damaged: table %s: %s",
                              store->path, tables[i], text ? text : "?");
        }
        else {
            hkc_store_fail (store->db, err, store->path);
            hk_error_prefix (err, "damaged");
        }
        sqlite3_finalize (stmt);
        if (rc < 0)
            return -1;
    }
    return 0;
}

int hkc_schema_prepare (struct hkc_store *store, struct hk_error *err)
{
    int64_t tables, schema;

    if (one_number (store,
                    "SELECT count(*) FROM sqlite_schema WHERE name = 'meta'",
                    &tables, err) < 0)
        return -1;
    if (tables == 0 && make (store, err) < 0)
        return -1;
    if (one_number (store, "SELECT schema FROM meta", &schema, err) < 0)
        return -1;
    if (schema > HKC_STORE_SCHEMA)
        return hk_error_set (err, ENOTSUP, "%s has schema %d, made by a newer "
                             "version; this one knows up to %d", store->path,
                             (int)schema, HKC_STORE_SCHEMA);
    if (schema < 1)
        return hk_error_set (err, EUCLEAN, "%s has schema %d, expected 1 to "
                             "%d", store->path, (int)schema, HKC_STORE_SCHEMA);
    return check (store, err);
}

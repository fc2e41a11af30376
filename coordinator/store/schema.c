/* schema.c - the tables and the statements */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include "coordinator/store/schema.h"

/* Live tables hold what is not done; history, script and closed what was.
 * pid counts parts and is never used again: (pid, attempt) is a run, so a
 * second outcome of it cannot be stored.  Each allocation's pids follow each
 * other: a range of pids is an allocation, in order of arrival.
 */
static const char tables_sql[] =
    "CREATE TABLE meta (id INTEGER PRIMARY KEY CHECK (id = 1),"
    " schema INTEGER NOT NULL, instance TEXT NOT NULL,"
    " start INTEGER NOT NULL, next_pid INTEGER NOT NULL,"
    " made REAL NOT NULL) STRICT;"
    "CREATE TABLE start (id INTEGER PRIMARY KEY,"
    " last_commit INTEGER NOT NULL, t REAL NOT NULL,"
    " host TEXT NOT NULL) STRICT;"
    "CREATE TABLE alloc (alloc INTEGER PRIMARY KEY,"
    " jobid INTEGER NOT NULL, userid INTEGER NOT NULL,"
    " priority INTEGER NOT NULL, t_submit REAL NOT NULL,"
    " t_end REAL NOT NULL, R TEXT NOT NULL, digest TEXT NOT NULL,"
    " queue TEXT NOT NULL, pid INTEGER NOT NULL UNIQUE,"
    " parts_count INTEGER NOT NULL) STRICT;"
    "CREATE INDEX alloc_job ON alloc (jobid);"
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
    " free_n INTEGER NOT NULL, recover TEXT NOT NULL,"
    " active TEXT NOT NULL) STRICT;"
    "CREATE TABLE history (pid INTEGER NOT NULL, attempt INTEGER NOT NULL,"
    " alloc INTEGER NOT NULL, jobid INTEGER NOT NULL,"
    " userid INTEGER NOT NULL, host TEXT NOT NULL,"
    " outcome INTEGER NOT NULL, t_start REAL NOT NULL, t_end REAL NOT NULL,"
    " invocation TEXT NOT NULL, reason TEXT NOT NULL,"
    " PRIMARY KEY (pid, attempt)) STRICT, WITHOUT ROWID;"
    "CREATE INDEX history_run ON history (alloc, host);"
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

/* The step from version 1 to 2 will be the first of them. */
static const char *const steps[] = { NULL };
_Static_assert(sizeof (steps) / sizeof (steps[0]) == HKC_STORE_SCHEMA,
               "a step for each older version");

const struct hkc_schema hkc_schema = { HKC_STORE_SCHEMA, tables_sql, steps };

const char *const hkc_stmt_sql[HKC_STMT_COUNT] = {
    [HKC_STMT_BEGIN] = "BEGIN IMMEDIATE",
    [HKC_STMT_COMMIT] = "COMMIT",
    [HKC_STMT_NUMBER] = "UPDATE start SET last_commit = ?1 WHERE id = ?2"
                        " AND id = (SELECT start FROM meta WHERE id = 1)",
    [HKC_STMT_TAKER] = "SELECT host FROM start"
                       " WHERE id = (SELECT start FROM meta WHERE id = 1)",
    [HKC_STMT_NEXT_PID] = "UPDATE meta SET next_pid = ?1 WHERE id = 1",
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
        "INSERT OR REPLACE INTO sched VALUES (1,?1,?2,?3,?4,?5,?6,?7)",
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
    [HKC_STMT_FIND_RUN] = "SELECT 1 FROM history WHERE alloc = ?1"
                          " AND host = ?2 AND attempt = ?3",
    [HKC_STMT_JOB_HOSTS] =
        "SELECT h.host FROM (SELECT alloc, pid FROM closed WHERE jobid = ?1"
        " UNION ALL SELECT alloc, pid FROM alloc WHERE jobid = ?1) c"
        " CROSS JOIN history h ON h.alloc = c.alloc WHERE h.attempt = 1"
        " ORDER BY c.pid DESC, h.pid LIMIT 1024",
    [HKC_STMT_SEEN] = "SELECT last_commit FROM start WHERE id = ?1",
    [HKC_STMT_OLD] = "SELECT alloc, pid, parts_count FROM closed"
                     " WHERE t_closed < ?1 ORDER BY t_closed LIMIT ?2",
    [HKC_STMT_DEL_SCRIPTS] = "DELETE FROM script WHERE pid >= ?1 AND pid < ?2",
    [HKC_STMT_DEL_HISTORY] = "DELETE FROM history WHERE pid >= ?1 AND pid < ?2",
    [HKC_STMT_DEL_CLOSED] = "DELETE FROM closed WHERE alloc = ?1",
};

static const int errno_of[][2] = {
    { SQLITE_FULL, ENOSPC },     { SQLITE_READONLY, EROFS },
    { SQLITE_CORRUPT, EUCLEAN }, { SQLITE_NOTADB, EUCLEAN },
    { SQLITE_BUSY, EBUSY },      { SQLITE_LOCKED, EBUSY },
    { SQLITE_NOMEM, ENOMEM },    { SQLITE_CANTOPEN, EACCES },
    { SQLITE_PERM, EACCES },     { SQLITE_CONSTRAINT, EEXIST },
};

/* SQLite keeps what the system said, except where a commit fails: then the file
 * of the log has it.
 */
static int system_errno (sqlite3 *db)
{
    sqlite3_file *wal = NULL;
    int errnum = sqlite3_system_errno (db);

    if (errnum == 0
        && sqlite3_file_control (db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &wal)
               == SQLITE_OK
        && wal && wal->pMethods)
        wal->pMethods->xFileControl (wal, SQLITE_FCNTL_LAST_ERRNO, &errnum);
    return errnum;
}

int hkc_store_fail (sqlite3 *db, struct hk_error *err, const char *path)
{
    int rc = sqlite3_errcode (db) & 0xff;
    int errnum = EIO, system = 0;

    for (size_t i = 0; i < sizeof (errno_of) / sizeof (errno_of[0]); i++)
        if (errno_of[i][0] == rc)
            errnum = errno_of[i][1];
    if (errnum == EUCLEAN)
        return hk_error_set (
            err, errnum, "%s is damaged: %s", path, sqlite3_errmsg (db));
    if (rc == SQLITE_IOERR || rc == SQLITE_CANTOPEN)
        system = system_errno (db);
    if (system > 0)
        return hk_error_errno (
            err, system, "%s: %s", path, sqlite3_errmsg (db));
    return hk_error_set (err, errnum, "%s: %s", path, sqlite3_errmsg (db));
}

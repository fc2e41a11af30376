/* store.c - open, lock, check and close the one file */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "proto/identity.h"
#include "coordinator/store/schema.h"

/* statfs(2); locks and fsync of these are not what we rely on */
static const struct {
    long magic;
    const char *name;
} remote_fs[] = {
    { 0x6969, "nfs" },        { 0xff534d42, "cifs" }, { 0xfe534d42, "smb" },
    { 0x517b, "smb" },        { 0x01021997, "9p" },   { 0x0bd00bd0, "lustre" },
    { 0x47504653, "gpfs" },   { 0x00c36400, "ceph" }, { 0x5346414f, "afs" },
    { 0x19830326, "beegfs" }, { 0x65735546, "fuse" },
};

static int dir_prepare (const char *dir, struct hk_error *err)
{
    struct stat st;
    struct statfs fs;

    if (mkdir (dir, 0700) < 0 && errno != EEXIST)
        return hk_error_errno (err, errno, "%s", dir);
    if (stat (dir, &st) < 0 || statfs (dir, &fs) < 0)
        return hk_error_errno (err, errno, "%s", dir);
    if (!S_ISDIR (st.st_mode))
        return hk_error_set (err, ENOTDIR, "%s is no folder", dir);
    if (st.st_uid != geteuid ())
        return hk_error_set (err, EPERM, "%s belongs to uid %u, this program "
                             "runs as %u", dir, st.st_uid, geteuid ());
    if (st.st_mode & 077)
        return hk_error_set (err, EPERM, "%s has mode %04o, expected 0700",
                             dir, st.st_mode & 07777);
    for (size_t i = 0; i < sizeof (remote_fs) / sizeof (remote_fs[0]); i++)
        if ((unsigned long)fs.f_type == (unsigned long)remote_fs[i].magic)
            return hk_error_set (err, EXDEV, "%s is on a network file system "
                                 "(%s); a local one is needed", dir,
                                 remote_fs[i].name);
    return 0;
}

static int lock (struct hkc_store *store, struct hk_error *err)
{
    char *path;

    if (asprintf (&path, "%s/lock", store->dir) < 0)
        return hk_error_set (err, ENOMEM, "out of memory");
    store->lock_fd = open (path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (store->lock_fd < 0)
        hk_error_errno (err, errno, "%s", path);
    else if (flock (store->lock_fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno == EWOULDBLOCK)
            hk_error_set (err, EBUSY, "%s: another coordinator has it", path);
        else
            hk_error_errno (err, errno, "%s", path);
    }
    else {
        free (path);
        return 0;
    }
    free (path);
    return -1;
}

static int db_open (struct hkc_store *store, struct hk_error *err)
{
    static const char setup[] = "PRAGMA journal_mode = WAL;"
                                "PRAGMA synchronous = FULL;"
                                "PRAGMA wal_autocheckpoint = 4000;"
                                "PRAGMA cache_size = -65536;"
                                "PRAGMA trusted_schema = OFF;";
    mode_t mask;
    int rc;

    if (asprintf (&store->path, "%s/hk.db", store->dir) < 0) {
        store->path = NULL;
        return hk_error_set (err, ENOMEM, "out of memory");
    }
    mask = umask (077); /* SQLite has no mode of its own for what it makes */
    rc = sqlite3_open_v2 (store->path, &store->db,
                          SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
                              | SQLITE_OPEN_NOMUTEX
                              | SQLITE_OPEN_EXRESCODE,
                          NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec (store->db, setup, NULL, NULL, NULL);
    umask (mask);
    if (rc != SQLITE_OK)
        return hkc_store_fail (store->db, err, store->path);
    sqlite3_busy_timeout (store->db, 5000);
    return 0;
}

static int load_meta (struct hkc_store *store, struct hk_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = -1;

    if (sqlite3_prepare_v2 (store->db, "SELECT instance FROM meta", -1, &stmt,
                            NULL) != SQLITE_OK
        || sqlite3_step (stmt) != SQLITE_ROW)
        goto out;
    snprintf (store->instance, sizeof (store->instance), "%s",
              (const char *)sqlite3_column_text (stmt, 0));
    sqlite3_finalize (stmt);
    if (sqlite3_prepare_v2 (store->db, "SELECT id, last_commit FROM start", -1,
                            &stmt, NULL) != SQLITE_OK)
        goto out;
    while (sqlite3_step (stmt) == SQLITE_ROW) {
        struct hkc_seen_start *more = realloc (
            store->starts, (store->starts_count + 1) * sizeof (*more));
        if (!more) {
            sqlite3_finalize (stmt);
            return hk_error_set (err, ENOMEM, "out of memory");
        }
        store->starts = more;
        more[store->starts_count].id = sqlite3_column_int64 (stmt, 0);
        more[store->starts_count++].last_commit = sqlite3_column_int64 (stmt,
                                                                        1);
    }
    rc = 0;
out:
    if (rc < 0)
        hkc_store_fail (store->db, err, store->path);
    sqlite3_finalize (stmt);
    return rc;
}

/* From here on a coordinator of an older start finds out at its next commit. */
static int start_draw (struct hkc_store *store, struct hk_error *err)
{
    char *sql;
    int rc;

    store->start = hk_random_u63 ();
    sql = sqlite3_mprintf (
        "BEGIN IMMEDIATE;"
        "INSERT INTO start VALUES (%lld, 0, unixepoch ());"
        "UPDATE meta SET start = %lld; COMMIT;",
        (long long)store->start, (long long)store->start);
    if (!sql)
        return hk_error_set (err, ENOMEM, "out of memory");
    rc = sqlite3_exec (store->db, sql, NULL, NULL, NULL);
    sqlite3_free (sql);
    if (rc != SQLITE_OK)
        return hkc_store_fail (store->db, err, store->path);
    return 0;
}

static int prepare_all (struct hkc_store *store, struct hk_error *err)
{
    for (int i = 0; i < HKC_STMT_COUNT; i++)
        if (sqlite3_prepare_v3 (store->db, hkc_stmt_sql[i], -1,
                                SQLITE_PREPARE_PERSISTENT, &store->stmt[i],
                                NULL) != SQLITE_OK)
            return hkc_store_fail (store->db, err, hkc_stmt_sql[i]);
    return 0;
}

struct hkc_store *hkc_store_open (const char *dir, struct hk_error *err)
{
    struct hkc_store *store = calloc (1, sizeof (*store));

    if (!store || !(store->dir = strdup (dir))) {
        free (store);
        hk_error_set (err, ENOMEM, "out of memory");
        return NULL;
    }
    store->lock_fd = -1;
    if (dir_prepare (dir, err) < 0 || lock (store, err) < 0
        || db_open (store, err) < 0 || hkc_schema_prepare (store, err) < 0
        || load_meta (store, err) < 0 || start_draw (store, err) < 0
        || prepare_all (store, err) < 0) {
        int saved = errno;
        hkc_store_close (store);
        errno = saved;
        return NULL;
    }
    return store;
}

void hkc_store_close (struct hkc_store *store)
{
    if (!store)
        return;
    for (int i = 0; i < HKC_STMT_COUNT; i++)
        sqlite3_finalize (store->stmt[i]);
    sqlite3_close (store->db);
    if (store->lock_fd >= 0)
        close (store->lock_fd);
    free (store->starts);
    free (store->path);
    free (store->dir);
    free (store);
}

const char *hkc_store_instance (const struct hkc_store *store)
{
    return store->instance;
}

uint64_t hkc_store_start (const struct hkc_store *store)
{
    return store->start;
}

uint64_t hkc_store_commit_number (const struct hkc_store *store)
{
    return store->commit;
}

const char *hkc_store_path (const struct hkc_store *store)
{
    return store->path;
}

uint64_t hkc_store_refused (const struct hkc_store *store)
{
    return store->refused;
}

uint64_t hkc_store_next_pid (const struct hkc_store *store)
{
    sqlite3_stmt *stmt = NULL;
    uint64_t next = 1;

    if (sqlite3_prepare_v2 (
            store->db,
            "SELECT max (ifnull ((SELECT max (pid + parts_count) FROM alloc),"
            " 1), ifnull ((SELECT max (pid + parts_count) FROM closed), 1),"
            " ifnull ((SELECT max (pid) + 1 FROM history), 1))",
            -1, &stmt, NULL) == SQLITE_OK
        && sqlite3_step (stmt) == SQLITE_ROW)
        next = sqlite3_column_int64 (stmt, 0);
    sqlite3_finalize (stmt);
    return next;
}

int hkc_store_seen (struct hkc_store *store,
                    const char *instance,
                    uint64_t start,
                    uint64_t commit,
                    struct hk_error *err)
{
    if (!instance || strcmp (instance, store->instance))
        return 0; /* another instance's: nothing follows */
    if (start == store->start) {
        if (commit <= store->commit)
            return 0;
        return hk_error_set (err, ESTALE, "a node has seen commit %llu, the "
                             "store is at %llu", (unsigned long long)commit,
                             (unsigned long long)store->commit);
    }
    for (size_t i = 0; i < store->starts_count; i++) {
        if (store->starts[i].id != start)
            continue;
        if (commit <= store->starts[i].last_commit)
            return 0;
        return hk_error_set (err, ESTALE, "a node has seen commit %llu of an "
                             "earlier start, the store has %llu",
                             (unsigned long long)commit,
                             (unsigned long long)store->starts[i].last_commit);
    }
    return hk_error_set (err, ESTALE, "a node has seen a start that the store "
                         "does not have");
}

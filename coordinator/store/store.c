/* store.c - open, lock and close the one file */
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

enum {
    BUSY_OPEN_MS = 5000,
    BUSY_MS = 200, /* somebody looks with a program of his own: try again */
};

/* statfs(2); locks and fsync of these are not what we rely on */
static const struct {
    long magic;
    const char *name;
} remote_fs[] = {
    { 0x6969, "nfs" },      { 0xff534d42, "cifs" },   { 0xfe534d42, "smb" },
    { 0x517b, "smb" },      { 0x01021997, "9p" },     { 0x0bd00bd0, "lustre" },
    { 0x47504653, "gpfs" }, { 0x00c36400, "ceph" },   { 0x5346414f, "afs" },
    { 0x6b414653, "afs" },  { 0x19830326, "beegfs" }, { 0xaad7aaea, "panfs" },
    { 0x73757245, "coda" }, { 0x786f4256, "vboxsf" }, { 0x65735546, "fuse" },
};

/* Ours alone? */
static int owner_check (const char *path,
                        const struct stat *st,
                        mode_t mode,
                        struct hk_error *err)
{
    if (st->st_uid != geteuid ())
        return hk_error_set (err,
                             EPERM,
                             "%s belongs to uid %u, this program "
                             "runs as %u",
                             path,
                             st->st_uid,
                             geteuid ());
    if (st->st_mode & 077)
        return hk_error_set (err,
                             EPERM,
                             "%s has mode %04o, expected %04o",
                             path,
                             st->st_mode & 07777,
                             mode);
    return 0;
}

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
    for (size_t i = 0; i < sizeof (remote_fs) / sizeof (remote_fs[0]); i++)
        if ((unsigned long)fs.f_type == (unsigned long)remote_fs[i].magic)
            return hk_error_set (err,
                                 EXDEV,
                                 "%s is on a network file system "
                                 "(%s); a local one is needed",
                                 dir,
                                 remote_fs[i].name);
    return owner_check (dir, &st, 0700, err);
}

/* A file that is made here is 0600, and SQLite gives what it makes beside it
 * the same mode: the umask of the process is not touched.
 */
static int file_open (const char *path, struct hk_error *err)
{
    int fd = open (path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    struct stat st;

    if (fd < 0)
        return hk_error_errno (err, errno, "%s", path);
    if (fstat (fd, &st) < 0)
        hk_error_errno (err, errno, "%s", path);
    else if (!S_ISREG (st.st_mode))
        hk_error_set (err, EINVAL, "%s is no regular file", path);
    else if (owner_check (path, &st, 0600, err) == 0)
        return fd;
    int saved = errno;
    close (fd);
    errno = saved;
    return -1;
}

static int lock (struct hkc_store *store, struct hk_error *err)
{
    char *path;
    int rc = -1;

    if (asprintf (&path, "%s/lock", store->dir) < 0)
        return hk_error_set (err, ENOMEM, "out of memory");
    if ((store->lock_fd = file_open (path, err)) >= 0) {
        if (flock (store->lock_fd, LOCK_EX | LOCK_NB) == 0)
            rc = 0;
        else if (errno == EWOULDBLOCK)
            hk_error_set (err, EBUSY, "%s: another coordinator has it", path);
        else
            hk_error_errno (err, errno, "%s", path);
    }
    int saved = errno;
    free (path);
    errno = saved;
    return rc;
}

/* Before SQLite opens it: a file that is closed loses its locks. */
static int db_file (struct hkc_store *store, struct hk_error *err)
{
    int fd, dir_fd, rc = 0;

    if (asprintf (&store->path, "%s/hk.db", store->dir) < 0) {
        store->path = NULL;
        return hk_error_set (err, ENOMEM, "out of memory");
    }
    if ((fd = file_open (store->path, err)) < 0)
        return -1;
    close (fd);
    dir_fd = open (store->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir_fd < 0 || fsync (dir_fd) < 0)
        rc = hk_error_errno (err, errno, "%s", store->dir);
    if (dir_fd >= 0)
        close (dir_fd);
    return rc;
}

/* Nothing is written to the file, not at close either, before its tables were
 * looked at: one that is damaged stays as it is.
 */
static int db_open (struct hkc_store *store,
                    const struct hkc_schema *schema,
                    struct hk_error *err)
{
    static const char setup[] = "PRAGMA synchronous = FULL;"
                                "PRAGMA journal_size_limit = 67108864;"
                                "PRAGMA cache_size = -65536;"
                                "PRAGMA temp_store = MEMORY;"
                                "PRAGMA trusted_schema = OFF;";
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX
                | SQLITE_OPEN_EXRESCODE;

    if (db_file (store, err) < 0)
        return -1;
    if (sqlite3_open_v2 (store->path, &store->db, flags, NULL) != SQLITE_OK
        || sqlite3_db_config (
               store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL)
               != SQLITE_OK
        || sqlite3_busy_timeout (store->db, BUSY_OPEN_MS) != SQLITE_OK
        || sqlite3_wal_autocheckpoint (store->db, HKC_STORE_LOG_PAGES)
               != SQLITE_OK
        || sqlite3_exec (store->db, setup, NULL, NULL, NULL) != SQLITE_OK)
        return hkc_store_fail (store->db, err, store->path);
    if (hkc_store_prepare (store, schema, err) < 0)
        return -1;
    if (sqlite3_db_config (store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL)
        != SQLITE_OK)
        return hkc_store_fail (store->db, err, store->path);
    return 0;
}

static int load_meta (struct hkc_store *store, struct hk_error *err)
{
    /* an older program may have put allocations after a newer one: belt */
    static const char next_sql[] =
        "SELECT max (next_pid,"
        " ifnull ((SELECT max (pid + parts_count) FROM alloc), 1),"
        " ifnull ((SELECT max (pid) + 1 FROM history), 1)) FROM meta";
    sqlite3_stmt *stmt = NULL;
    const char *text = NULL;
    int64_t next;
    int rc = -1;

    if (sqlite3_prepare_v2 (
            store->db, "SELECT instance FROM meta", -1, &stmt, NULL)
            != SQLITE_OK
        || sqlite3_step (stmt) != SQLITE_ROW)
        hkc_store_fail (store->db, err, store->path);
    else if (!(text = (const char *)sqlite3_column_text (stmt, 0))
             || strlen (text) != HK_ID_BYTES - 1)
        hk_error_set (err,
                      EUCLEAN,
                      "%s is damaged: instance is '%s'",
                      store->path,
                      text ? text : "");
    else
        rc = 0;
    if (rc == 0)
        memcpy (store->instance, text, HK_ID_BYTES);
    sqlite3_finalize (stmt);
    if (rc < 0 || hkc_store_number (store, next_sql, &next, err) < 0)
        return -1;
    store->next_pid = store->stored_next = (uint64_t)next;
    return 0;
}

/* From here on a coordinator of an older start finds out at its next commit. */
static int start_draw (struct hkc_store *store, struct hk_error *err)
{
    char host[HK_HOST_NAME_BYTES] = "";

    store->start = hk_random_u63 ();
    gethostname (host, sizeof (host) - 1);
    return hkc_store_run_take (
        store,
        sqlite3_mprintf ("BEGIN IMMEDIATE;"
                         "INSERT INTO start VALUES"
                         " (%lld, 0, unixepoch (), %Q);"
                         "UPDATE meta SET start = %lld; COMMIT;",
                         (long long)store->start,
                         host,
                         (long long)store->start),
        err);
}

static int prepare_all (struct hkc_store *store, struct hk_error *err)
{
    for (int i = 0; i < HKC_STMT_COUNT; i++)
        if (sqlite3_prepare_v3 (store->db,
                                hkc_stmt_sql[i],
                                -1,
                                SQLITE_PREPARE_PERSISTENT,
                                &store->stmt[i],
                                NULL)
            != SQLITE_OK)
            return hkc_store_fail (store->db, err, hkc_stmt_sql[i]);
    return sqlite3_busy_timeout (store->db, BUSY_MS) == SQLITE_OK
               ? 0
               : hkc_store_fail (store->db, err, store->path);
}

struct hkc_store *hkc_store_open_as (const char *dir,
                                     const struct hkc_schema *schema,
                                     struct hk_error *err)
{
    struct hkc_store *store = calloc (1, sizeof (*store));

    if (!store || !(store->dir = strdup (dir))) {
        free (store);
        hk_error_set (err, ENOMEM, "out of memory");
        return NULL;
    }
    store->lock_fd = -1;
    if (dir_prepare (dir, err) < 0 || lock (store, err) < 0
        || db_open (store, schema, err) < 0 || load_meta (store, err) < 0
        || start_draw (store, err) < 0 || prepare_all (store, err) < 0) {
        int saved = errno;
        hkc_store_close (store);
        errno = saved;
        return NULL;
    }
    return store;
}

struct hkc_store *hkc_store_open (const char *dir, struct hk_error *err)
{
    return hkc_store_open_as (dir, &hkc_schema, err);
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
    return store->next_pid;
}

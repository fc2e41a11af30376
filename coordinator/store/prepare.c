/* prepare.c - make, check or migrate the tables */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "proto/identity.h"
#include "proto/log.h"
#include "coordinator/store/schema.h"

enum { APPLICATION_ID = 0x686b6462 }; /* "hkdb", for file(1) */

int hkc_store_number (struct hkc_store *store,
                      const char *sql,
                      int64_t *number,
                      struct hk_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = -1, step;

    if (sqlite3_prepare_v2 (store->db, sql, -1, &stmt, NULL) != SQLITE_OK)
        return hkc_store_fail (store->db, err, store->path);
    if ((step = sqlite3_step (stmt)) == SQLITE_ROW) {
        *number = sqlite3_column_int64 (stmt, 0);
        rc = 0;
    } else if (step == SQLITE_DONE)
        hk_error_set (
            err, EUCLEAN, "%s is damaged: no row: %s", store->path, sql);
    else
        hkc_store_fail (store->db, err, store->path);
    sqlite3_finalize (stmt);
    return rc;
}

int hkc_store_run_take (struct hkc_store *store,
                        char *sql,
                        struct hk_error *err)
{
    int rc;

    if (!sql)
        return hk_error_set (err, ENOMEM, "out of memory");
    if ((rc = sqlite3_exec (store->db, sql, NULL, NULL, NULL)) != SQLITE_OK)
        hkc_store_fail (store->db, err, store->path);
    sqlite3_free (sql);
    if (rc == SQLITE_OK)
        return 0;
    hkc_store_rollback (store);
    return -1;
}

static int make (struct hkc_store *store,
                 const struct hkc_schema *schema,
                 struct hk_error *err)
{
    char id[HK_ID_BYTES];

    hk_random_id (id);
    return hkc_store_run_take (
        store,
        sqlite3_mprintf ("BEGIN IMMEDIATE; PRAGMA application_id = %d;"
                         "%s INSERT INTO meta VALUES"
                         " (1, %d, %Q, 0, 1, unixepoch ()); COMMIT;",
                         APPLICATION_ID,
                         schema->sql,
                         schema->version,
                         id),
        err);
}

static int check_table (struct hkc_store *store,
                        const char *table,
                        struct hk_error *err)
{
    sqlite3_stmt *stmt = NULL;
    const char *text;
    char sql[64];
    int rc = -1;

    snprintf (sql, sizeof (sql), "PRAGMA quick_check('%s')", table);
    if (sqlite3_prepare_v2 (store->db, sql, -1, &stmt, NULL) != SQLITE_OK
        || sqlite3_step (stmt) != SQLITE_ROW)
        hkc_store_fail (store->db, err, store->path);
    else if (!(text = (const char *)sqlite3_column_text (stmt, 0))
             || strcmp (text, "ok") != 0)
        hk_error_set (err,
                      EUCLEAN,
                      "%s is damaged: table %s: %s",
                      store->path,
                      table,
                      text ? text : "?");
    else
        rc = 0;
    sqlite3_finalize (stmt);
    return rc;
}

/* The tables that decide what is freed are checked whole; the history is not:
 * it may be large, and a fault in it is found when it is read.
 */
static int check (struct hkc_store *store, struct hk_error *err)
{
    static const char *const tables[] = {
        "meta", "start", "alloc", "state", "part",
        "host", "cause", "free",  "sched",
    };

    for (size_t i = 0; i < sizeof (tables) / sizeof (tables[0]); i++)
        if (check_table (store, tables[i], err) < 0)
            return -1;
    return 0;
}

/* On disk, the name too. */
static int sync_path (const char *path, int flags, struct hk_error *err)
{
    int fd = open (path, O_RDONLY | O_CLOEXEC | flags);
    int rc = 0;

    if (fd < 0 || fsync (fd) < 0)
        rc = hk_error_errno (err, errno, "%s", path);
    if (fd >= 0)
        close (fd);
    return rc;
}

static int copy_to (struct hkc_store *store,
                    const char *path,
                    struct hk_error *err)
{
    int fd = open (
        path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0)
        return hk_error_errno (err, errno, "%s", path);
    close (fd); /* SQLite fills an empty file and keeps its mode */
    if (hkc_store_run_take (
            store, sqlite3_mprintf ("VACUUM INTO %Q", path), err)
            < 0
        || sync_path (path, 0, err) < 0) {
        int saved = errno;
        unlink (path);
        errno = saved;
        return -1;
    }
    return 0;
}

/* A copy as it was, named by version and last start: a migration that is tried
 * again makes no other.
 */
static int keep_aside (struct hkc_store *store, int from, struct hk_error *err)
{
    char *kept = NULL, *part = NULL;
    int64_t start;
    int rc = -1;

    if (hkc_store_number (store, "SELECT start FROM meta", &start, err) < 0)
        return -1;
    if (asprintf (&kept,
                  "%s.schema-%d-%llx",
                  store->path,
                  from,
                  (unsigned long long)start)
        < 0) {
        kept = NULL;
        return hk_error_set (err, ENOMEM, "out of memory");
    }
    if (access (kept, F_OK) == 0) {
        free (kept);
        return 0;
    }
    if (asprintf (&part, "%s.part", kept) < 0) {
        part = NULL;
        hk_error_set (err, ENOMEM, "out of memory");
    } else if (copy_to (store, part, err) == 0) {
        if (rename (part, kept) < 0)
            hk_error_errno (err, errno, "%s", kept);
        else if (sync_path (store->dir, O_DIRECTORY, err) == 0)
            rc = 0;
    }
    if (rc == 0)
        hk_log (LOG_NOTICE, "the store as it was is kept as %s", kept);
    free (part);
    free (kept);
    return rc;
}

/* All steps in one transaction: it is the older one or the newer one. */
static int migrate (struct hkc_store *store,
                    const struct hkc_schema *schema,
                    int from,
                    struct hk_error *err)
{
    sqlite3_str *sql;

    if (keep_aside (store, from, err) < 0)
        return hk_error_prefix (
            err, "no copy could be kept of schema %d", from);
    sql = sqlite3_str_new (store->db);
    sqlite3_str_appendall (sql, "BEGIN IMMEDIATE;");
    for (int i = from; i < schema->version; i++)
        sqlite3_str_appendall (sql, schema->steps[i - 1]);
    sqlite3_str_appendf (
        sql, "UPDATE meta SET schema = %d; COMMIT;", schema->version);
    if (hkc_store_run_take (store, sqlite3_str_finish (sql), err) < 0)
        return hk_error_prefix (
            err, "migrating schema %d to %d", from, schema->version);
    hk_log (LOG_NOTICE,
            "%s: schema %d was migrated to %d",
            store->path,
            from,
            schema->version);
    return 0;
}

/* In WAL the reader sees a whole commit and never holds up the writer. */
static int journal (struct hkc_store *store, struct hk_error *err)
{
    sqlite3_stmt *stmt = NULL;
    const char *mode = NULL;
    int rc = -1;

    if (sqlite3_prepare_v2 (
            store->db, "PRAGMA journal_mode = WAL", -1, &stmt, NULL)
            != SQLITE_OK
        || sqlite3_step (stmt) != SQLITE_ROW)
        hkc_store_fail (store->db, err, store->path);
    else if (!(mode = (const char *)sqlite3_column_text (stmt, 0))
             || strcmp (mode, "wal") != 0)
        hk_error_set (err,
                      ENOTSUP,
                      "%s: no write-ahead log here, journal "
                      "mode is %s",
                      store->path,
                      mode ? mode : "?");
    else
        rc = 0;
    sqlite3_finalize (stmt);
    return rc;
}

static int version_of (struct hkc_store *store,
                       const struct hkc_schema *schema,
                       int64_t *version,
                       struct hk_error *err)
{
    if (hkc_store_number (store, "SELECT schema FROM meta", version, err) < 0)
        return -1;
    if (*version > schema->version)
        return hk_error_set (err,
                             ENOTSUP,
                             "%s has schema %lld, made by a "
                             "newer version; this one knows up to %d",
                             store->path,
                             (long long)*version,
                             schema->version);
    if (*version < 1)
        return hk_error_set (err,
                             EUCLEAN,
                             "%s is damaged: schema %lld, "
                             "expected 1 to %d",
                             store->path,
                             (long long)*version,
                             schema->version);
    return 0;
}

int hkc_store_prepare (struct hkc_store *store,
                       const struct hkc_schema *schema,
                       struct hk_error *err)
{
    int64_t tables, ours, version;

    if (hkc_store_number (
            store, "SELECT count(*) FROM sqlite_schema", &tables, err)
            < 0
        || hkc_store_number (store,
                             "SELECT count(*) FROM sqlite_schema"
                             " WHERE type = 'table' AND name = 'meta'",
                             &ours,
                             err)
               < 0)
        return -1;
    if (tables == 0)
        return journal (store, err) < 0 ? -1 : make (store, schema, err);
    if (ours == 0)
        return hk_error_set (err,
                             EUCLEAN,
                             "%s is no store of a coordinator: "
                             "it has other tables",
                             store->path);
    if (version_of (store, schema, &version, err) < 0 || check (store, err) < 0
        || journal (store, err) < 0)
        return -1;
    if (version < schema->version)
        return migrate (store, schema, (int)version, err);
    return 0;
}

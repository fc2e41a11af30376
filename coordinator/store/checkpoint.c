/* checkpoint.c - the write-ahead log is copied home beside the commits */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <syslog.h>
#include "proto/log.h"
#include "proto/thread.h"
#include "coordinator/store/schema.h"

/* A commit that has to do it waits some 30 ms for the disk, and with it every
 * report of the turn.  A passive checkpoint takes no lock that a commit needs.
 */
enum {
    WANTED_PAGES = 8000, /* 32 MiB: a page that changes often is copied once */
    MOST_PAGES = 64000,  /* the thread does not keep up: the commit does it */
    BUSY_MS = 0,
};

struct hkc_checkpoint {
    struct hkc_store *store;
    sqlite3 *db; /* the thread's own */
    pthread_t thread;
    bool started;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool wanted, quit;
};

static int wal_hook (void *arg, sqlite3 *db, const char *name, int pages)
{
    struct hkc_checkpoint *cp = arg;

    if (pages >= MOST_PAGES)
        sqlite3_wal_checkpoint_v2 (
            db, name, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    else if (pages >= WANTED_PAGES) {
        pthread_mutex_lock (&cp->mutex);
        cp->wanted = true;
        pthread_cond_signal (&cp->cond);
        pthread_mutex_unlock (&cp->mutex);
    }
    return SQLITE_OK;
}

static void *checkpoint_main (void *arg)
{
    struct hkc_checkpoint *cp = arg;

    pthread_mutex_lock (&cp->mutex);
    while (!cp->quit) {
        if (!cp->wanted) {
            pthread_cond_wait (&cp->cond, &cp->mutex);
            continue;
        }
        cp->wanted = false;
        pthread_mutex_unlock (&cp->mutex);
        int rc = sqlite3_wal_checkpoint_v2 (
            cp->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
        if (rc != SQLITE_OK && (rc & 0xff) != SQLITE_BUSY)
            hk_log_throttled (LOG_ERR,
                              "checkpoint",
                              "%s: the log stays as it is: %s",
                              hkc_store_path (cp->store),
                              sqlite3_errmsg (cp->db));
        pthread_mutex_lock (&cp->mutex);
    }
    pthread_mutex_unlock (&cp->mutex);
    return NULL;
}

struct hkc_checkpoint *hkc_checkpoint_create (struct hkc_store *store,
                                              struct hk_error *err)
{
    struct hkc_checkpoint *cp = calloc (1, sizeof (*cp));
    int rc;

    if (!cp) {
        hk_error_set (err, ENOMEM, "out of memory");
        return NULL;
    }
    cp->store = store;
    pthread_mutex_init (&cp->mutex, NULL);
    pthread_cond_init (&cp->cond, NULL);
    if (sqlite3_open_v2 (hkc_store_path (store),
                         &cp->db,
                         SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
                         NULL)
            != SQLITE_OK
        || sqlite3_busy_timeout (cp->db, BUSY_MS) != SQLITE_OK
        /* before its first read a connection knows of no log, and copies
         * nothing */
        || sqlite3_exec (
               cp->db, "SELECT count (*) FROM sqlite_schema", NULL, NULL, NULL)
               != SQLITE_OK) {
        hkc_store_fail (cp->db, err, hkc_store_path (store));
        goto error;
    }
    if ((rc = hk_thread_start (&cp->thread, 0, checkpoint_main, cp))) {
        hk_error_errno (err, rc, "checkpoint thread");
        goto error;
    }
    cp->started = true;
    sqlite3_wal_hook (store->db, wal_hook, cp);
    return cp;
error:
    rc = errno;
    hkc_checkpoint_destroy (cp);
    errno = rc;
    return NULL;
}

void hkc_checkpoint_destroy (struct hkc_checkpoint *cp)
{
    if (!cp)
        return;
    if (cp->started) {
        sqlite3_wal_autocheckpoint (cp->store->db, HKC_STORE_LOG_PAGES);
        pthread_mutex_lock (&cp->mutex);
        cp->quit = true;
        pthread_cond_signal (&cp->cond);
        pthread_mutex_unlock (&cp->mutex);
        pthread_join (cp->thread, NULL);
    }
    sqlite3_close (cp->db);
    pthread_mutex_destroy (&cp->mutex);
    pthread_cond_destroy (&cp->cond);
    free (cp);
}

/* reader.c - answers that need a scan: a thread and a connection of its own */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "coordinator/store/schema.h"
#include "proto/clock.h"
#include "proto/thread.h"

enum { WAITING_LIMIT = 64, PROGRESS_STEPS = 10000, BUSY_MS = 2000 };

struct item {
    struct item *next;
    struct hkc_reader_query query;
    struct hkc_reader_answer answer;
};

struct hkc_reader {
    sqlite3 *db;
    pthread_t thread;
    bool started;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    struct item *asked, **asked_end;
    struct item *done, **done_end;
    size_t waiting;
    atomic_bool quit;
    int fd;
    int64_t deadline_ms; /* of the query under way */
};

static int over_time (void *arg)
{
    struct hkc_reader *reader = arg;

    return atomic_load (&reader->quit) || hk_boot_ms () > reader->deadline_ms;
}

static void item_free (struct item *item)
{
    free (item->query.hosts);
    json_decref (item->answer.rows);
    free (item);
}

static void *reader_main (void *arg)
{
    struct hkc_reader *reader = arg;
    uint64_t one = 1;

    pthread_mutex_lock (&reader->mutex);
    while (!atomic_load (&reader->quit)) {
        struct item *item = reader->asked;
        if (!item) {
            pthread_cond_wait (&reader->cond, &reader->mutex);
            continue;
        }
        if (!(reader->asked = item->next))
            reader->asked_end = &reader->asked;
        item->next = NULL;
        pthread_mutex_unlock (&reader->mutex);
        reader->deadline_ms = item->query.deadline_ms;
        hkc_history_page (reader->db, &item->query, &item->answer);
        pthread_mutex_lock (&reader->mutex);
        *reader->done_end = item;
        reader->done_end = &item->next;
        if (write (reader->fd, &one, sizeof (one)) < 0)
            continue; /* an eventfd that is full is readable all the same */
    }
    pthread_mutex_unlock (&reader->mutex);
    return NULL;
}

static int thread_start (struct hkc_reader *reader, struct hk_error *err)
{
    int rc;

    rc = hk_thread_start (&reader->thread, 0, reader_main, reader);
    if (rc)
        return hk_error_errno (err, rc, "reader thread");
    reader->started = true;
    return 0;
}

static int connect_to (struct hkc_reader *reader,
                       const char *path,
                       struct hk_error *err)
{
    int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX;

    if (sqlite3_open_v2 (path, &reader->db, flags, NULL) != SQLITE_OK
        || sqlite3_busy_timeout (reader->db, BUSY_MS) != SQLITE_OK
        || sqlite3_exec (
               reader->db, "PRAGMA temp_store = MEMORY", NULL, NULL, NULL)
               != SQLITE_OK)
        return hkc_store_fail (reader->db, err, path);
    sqlite3_progress_handler (reader->db, PROGRESS_STEPS, over_time, reader);
    return 0;
}

struct hkc_reader *hkc_reader_create (const char *path, struct hk_error *err)
{
    struct hkc_reader *reader = calloc (1, sizeof (*reader));

    if (!reader) {
        hk_error_set (err, ENOMEM, "out of memory");
        return NULL;
    }
    reader->asked_end = &reader->asked;
    reader->done_end = &reader->done;
    pthread_mutex_init (&reader->mutex, NULL);
    pthread_cond_init (&reader->cond, NULL);
    reader->fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (reader->fd < 0)
        hk_error_errno (err, errno, "eventfd");
    else if (connect_to (reader, path, err) == 0
             && thread_start (reader, err) == 0)
        return reader;
    int saved = errno;
    hkc_reader_destroy (reader);
    errno = saved;
    return NULL;
}

void hkc_reader_destroy (struct hkc_reader *reader)
{
    if (!reader)
        return;
    if (reader->started) {
        pthread_mutex_lock (&reader->mutex);
        atomic_store (&reader->quit, true);
        pthread_cond_signal (&reader->cond);
        pthread_mutex_unlock (&reader->mutex);
        sqlite3_interrupt (reader->db);
        pthread_join (reader->thread, NULL);
    }
    *reader->asked_end = reader->done;
    while (reader->asked) {
        struct item *next = reader->asked->next;
        item_free (reader->asked);
        reader->asked = next;
    }
    sqlite3_close (reader->db);
    if (reader->fd >= 0)
        close (reader->fd);
    pthread_mutex_destroy (&reader->mutex);
    pthread_cond_destroy (&reader->cond);
    free (reader);
}

int hkc_reader_ask (struct hkc_reader *reader,
                    const struct hkc_reader_query *query)
{
    struct item *item = calloc (1, sizeof (*item));

    if (!item) {
        free (query->hosts);
        errno = ENOMEM;
        return -1;
    }
    item->query = *query;
    pthread_mutex_lock (&reader->mutex);
    if (reader->waiting >= WAITING_LIMIT) {
        pthread_mutex_unlock (&reader->mutex);
        item_free (item);
        errno = EAGAIN;
        return -1;
    }
    reader->waiting++;
    *reader->asked_end = item;
    reader->asked_end = &item->next;
    pthread_cond_signal (&reader->cond);
    pthread_mutex_unlock (&reader->mutex);
    return 0;
}

int hkc_reader_fd (const struct hkc_reader *reader)
{
    return reader->fd;
}

int hkc_reader_next (struct hkc_reader *reader, struct hkc_reader_answer *out)
{
    struct item *item;
    uint64_t n;

    pthread_mutex_lock (&reader->mutex);
    if ((item = reader->done)) {
        if (!(reader->done = item->next))
            reader->done_end = &reader->done;
        reader->waiting--;
    }
    /* under the lock, so that an answer that comes now is not passed over */
    if (!reader->done && read (reader->fd, &n, sizeof (n)) < 0)
        n = 0; /* EAGAIN: it was not readable */
    pthread_mutex_unlock (&reader->mutex);
    if (!item)
        return 0;
    *out = item->answer;
    item->answer.rows = NULL;
    item_free (item);
    return 1;
}

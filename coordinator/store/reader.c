/* reader.c - answers that need a scan: a thread and a connection of its own */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include "proto/hostlist.h"
#include "coordinator/store/schema.h"

enum { WAITING_LIMIT = 64, PROGRESS_STEPS = 10000 };

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

static int64_t boot_ms (void)
{
    struct timespec ts;

    clock_gettime (CLOCK_BOOTTIME, &ts);
    return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static int over_time (void *arg)
{
    struct hkc_reader *reader = arg;

    return reader->quit || boot_ms () > reader->deadline_ms;
}

static json_t *scripts_of (struct hkc_reader *reader, int64_t pid, int attempt)
{
    sqlite3_stmt *s = NULL;
    json_t *list = json_array ();

    if (sqlite3_prepare_v2 (reader->db,
                            "SELECT name, code, signal, t_start, t_end FROM"
                            " script WHERE pid = ?1 AND attempt = ?2"
                            " ORDER BY seq", -1, &s, NULL) == SQLITE_OK) {
        sqlite3_bind_int64 (s, 1, pid);
        sqlite3_bind_int (s, 2, attempt);
        while (sqlite3_step (s) == SQLITE_ROW)
            json_array_append_new (
                list,
                json_pack ("{s:s s:i s:i s:f s:f}",
                           "name", sqlite3_column_text (s, 0),
                           "code", sqlite3_column_int (s, 1),
                           "signal", sqlite3_column_int (s, 2),
                           "t_start", sqlite3_column_double (s, 3),
                           "t_end", sqlite3_column_double (s, 4)));
    }
    sqlite3_finalize (s);
    return list;
}

static json_t *row_of (struct hkc_reader *reader, sqlite3_stmt *s, bool full)
{
    json_t *row = json_pack (
        "{s:I s:I s:s s:i s:s s:f s:f s:I}",
        "jobid", (json_int_t)sqlite3_column_int64 (s, 3),
        "userid", (json_int_t)sqlite3_column_int64 (s, 4),
        "host", sqlite3_column_text (s, 5),
        "attempt", sqlite3_column_int (s, 1),
        "outcome", hk_outcome_name (sqlite3_column_int (s, 6)),
        "t_start", sqlite3_column_double (s, 7),
        "t_end", sqlite3_column_double (s, 8),
        "alloc", (json_int_t)sqlite3_column_int64 (s, 2));

    if (row && full) {
        json_object_set_new (row, "invocation",
                             json_string ((const char *)sqlite3_column_text (
                                 s, 9)));
        json_object_set_new (row, "reason",
                             json_string ((const char *)sqlite3_column_text (
                                 s, 10)));
        json_object_set_new (row, "scripts",
                             scripts_of (reader, sqlite3_column_int64 (s, 0),
                                         sqlite3_column_int (s, 1)));
    }
    return row;
}

/* Newest first; a page ends with the key it goes on from: pid * 2^10 + attempt
 * would not hold every attempt, so pages end at whole pids.
 */
static void answer (struct hkc_reader *reader, struct item *item)
{
    const struct hkc_reader_query *q = &item->query;
    struct hk_hostlist *hosts = NULL;
    sqlite3_stmt *s = NULL;
    int64_t last = 0;
    int rc = SQLITE_OK;
    static const char sql[] =
        "SELECT * FROM history WHERE pid < ?1 AND (?2 = 0 OR jobid = ?2)"
        " ORDER BY pid DESC, attempt DESC";
    static const char by_job[] =
        "SELECT * FROM history WHERE pid < ?1 AND jobid = ?2 AND pid >="
        " (SELECT min (pid) FROM (SELECT pid FROM closed WHERE jobid = ?2"
        " UNION ALL SELECT pid FROM alloc WHERE jobid = ?2))"
        " ORDER BY pid DESC, attempt DESC";

    item->answer.tag = q->tag;
    if (q->hosts && !(hosts = hk_hostlist_decode (q->hosts, &item->answer.err)))
        return;
    item->answer.rows = json_array ();
    reader->deadline_ms = q->deadline_ms;
    if ((rc = sqlite3_prepare_v2 (reader->db, q->jobid ? by_job : sql, -1, &s,
                                  NULL)) == SQLITE_OK) {
        sqlite3_bind_int64 (s, 1, q->after ? (int64_t)q->after : INT64_MAX);
        sqlite3_bind_int64 (s, 2, (int64_t)q->jobid);
        while ((rc = sqlite3_step (s)) == SQLITE_ROW) {
            int64_t pid = sqlite3_column_int64 (s, 0);
            if (hosts
                && hk_hostlist_find (hosts, (const char *)sqlite3_column_text (
                                                s, 5)) < 0)
                continue;
            if (pid != last && json_array_size (item->answer.rows) >= q->limit) {
                item->answer.next = last;
                break;
            }
            json_array_append_new (item->answer.rows,
                                   row_of (reader, s, q->text));
            last = pid;
        }
    }
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        json_decref (item->answer.rows);
        item->answer.rows = NULL;
        hkc_store_fail (reader->db, &item->answer.err,
                        rc == SQLITE_INTERRUPT ? "took too long" : "history");
    }
    sqlite3_finalize (s);
    hk_hostlist_destroy (hosts);
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
    while (!reader->quit) {
        struct item *item = reader->asked;
        if (!item) {
            pthread_cond_wait (&reader->cond, &reader->mutex);
            continue;
        }
        if (!(reader->asked = item->next))
            reader->asked_end = &reader->asked;
        item->next = NULL;
        pthread_mutex_unlock (&reader->mutex);
        answer (reader, item);
        pthread_mutex_lock (&reader->mutex);
        *reader->done_end = item;
        reader->done_end = &item->next;
        if (write (reader->fd, &one, sizeof (one)) < 0)
            continue; /* an eventfd that is full is readable all the same */
    }
    pthread_mutex_unlock (&reader->mutex);
    return NULL;
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
    if (reader->fd < 0) {
        hk_error_errno (err, errno, "eventfd");
        goto error;
    }
    if (sqlite3_open_v2 (path, &reader->db,
                         SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL)
        != SQLITE_OK) {
        hkc_store_fail (reader->db, err, path);
        goto error;
    }
    sqlite3_busy_timeout (reader->db, 2000);
    sqlite3_progress_handler (reader->db, PROGRESS_STEPS, over_time, reader);
    if ((errno = pthread_create (&reader->thread, NULL, reader_main, reader))) {
        hk_error_errno (err, errno, "reader thread");
        goto error;
    }
    reader->started = true;
    return reader;
error:
    hkc_reader_destroy (reader);
    return NULL;
}

void hkc_reader_destroy (struct hkc_reader *reader)
{
    if (!reader)
        return;
    if (reader->started) {
        pthread_mutex_lock (&reader->mutex);
        reader->quit = true;
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

    if (!item)
        return -1;
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

int hkc_reader_next (struct hkc_reader *reader,
                     struct hkc_reader_answer *out)
{
    struct item *item;
    uint64_t n;

    if (read (reader->fd, &n, sizeof (n)) < 0 && errno != EAGAIN)
        return 0;
    pthread_mutex_lock (&reader->mutex);
    if ((item = reader->done)) {
        if (!(reader->done = item->next))
            reader->done_end = &reader->done;
        reader->waiting--;
    }
    pthread_mutex_unlock (&reader->mutex);
    if (!item)
        return 0;
    *out = item->answer;
    item->answer.rows = NULL;
    item_free (item);
    return 1;
}

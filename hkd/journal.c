/* journal.c - what scripts wrote is asked for: the loop's side */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include "proto/log.h"
#include "proto/thread.h"
#include "hkd/journal_impl.h"

enum { AGAIN_US = 20000 };

struct hkd_journal {
    struct hkd_journal_calls calls;
    void *arg;
    sd_event_source *io;
    sd_event_source *again; /* the link had no room */
    int fd;                 /* an eventfd: a thread has something for us */
    pthread_mutex_t lock;
    pthread_cond_t room;
    struct hkd_question *first;
    size_t count;
};

/* ---- from the threads ---- */

static void wake (struct hkd_journal *journal)
{
    uint64_t one = 1;

    if (write (journal->fd, &one, sizeof (one)) < 0 && errno != EAGAIN)
        hk_log (LOG_CRIT, "journal: eventfd: %s", strerror (errno));
}

bool hkd_question_put (struct hkd_question *q, json_t *lines_take)
{
    struct hkd_journal *journal = q->journal;
    bool go_on;

    pthread_mutex_lock (&journal->lock);
    while (!q->cancelled && q->batches_count == HKD_JOURNAL_BATCHES)
        pthread_cond_wait (&journal->room, &journal->lock);
    if ((go_on = !q->cancelled))
        q->batches[q->batches_count++] = lines_take;
    pthread_mutex_unlock (&journal->lock);
    if (go_on)
        wake (journal);
    else
        json_decref (lines_take);
    return go_on;
}

bool hkd_question_cancelled (struct hkd_question *q)
{
    bool cancelled;

    pthread_mutex_lock (&q->journal->lock);
    cancelled = q->cancelled;
    pthread_mutex_unlock (&q->journal->lock);
    return cancelled;
}

void hkd_question_done (struct hkd_question *q,
                        bool truncated,
                        const char *text)
{
    struct hkd_journal *journal = q->journal;

    pthread_mutex_lock (&journal->lock);
    q->truncated = truncated;
    snprintf (q->text, sizeof (q->text), "%s", text);
    q->done = true;
    /* under the lock: afterwards the journal may be gone */
    wake (journal);
    pthread_mutex_unlock (&journal->lock);
}

/* ---- to the link ---- */

static void question_free (struct hkd_question *q)
{
    for (size_t i = 0; i < q->batches_count; i++)
        json_decref (q->batches[i]);
    free (q);
}

/* The first batch, or NULL; with *done if there will be none. */
static json_t *peek (struct hkd_question *q, bool *done)
{
    json_t *batch;

    pthread_mutex_lock (&q->journal->lock);
    batch = q->batches_count ? q->batches[0] : NULL;
    *done = q->done;
    pthread_mutex_unlock (&q->journal->lock);
    return batch;
}

static void drop_first (struct hkd_question *q)
{
    json_t *batch;

    pthread_mutex_lock (&q->journal->lock);
    batch = q->batches[0];
    q->batches_count--;
    memmove (
        q->batches, q->batches + 1, q->batches_count * sizeof (q->batches[0]));
    pthread_cond_broadcast (&q->journal->room);
    pthread_mutex_unlock (&q->journal->lock);
    json_decref (batch);
}

static int on_again (sd_event_source *source, uint64_t usec, void *arg);

static void send_again (struct hkd_journal *journal)
{
    sd_event *event = sd_event_source_get_event (journal->io);

    journal->again = sd_event_source_disable_unref (journal->again);
    if (sd_event_add_time_relative (event,
                                    &journal->again,
                                    CLOCK_BOOTTIME,
                                    AGAIN_US,
                                    1000,
                                    on_again,
                                    journal)
        < 0)
        hk_log_throttled (LOG_ERR, "journal", "journal: no timer");
}

/* True when all of it is sent. */
static bool send_question (struct hkd_question *q)
{
    struct hkd_journal *journal = q->journal;
    json_t *batch;
    bool done;

    while ((batch = peek (q, &done))) {
        if (!q->cancelled
            && journal->calls.lines (journal->arg, q->seq, batch) < 0) {
            send_again (journal);
            return false;
        }
        drop_first (q);
    }
    return done;
}

static void send_all (struct hkd_journal *journal)
{
    struct hkd_question **p = &journal->first;

    while (*p) {
        struct hkd_question *q = *p;
        if (!send_question (q)) {
            p = &q->next;
            continue;
        }
        *p = q->next;
        journal->count--;
        pthread_join (q->thread, NULL); /* it has nothing left to do */
        if (q->displaced)
            journal->calls.end (
                journal->arg, q->seq, true, "others ask, ask again");
        else if (!q->cancelled)
            journal->calls.end (journal->arg,
                                q->seq,
                                q->truncated,
                                q->text[0] ? q->text : NULL);
        question_free (q);
    }
}

static int on_again (sd_event_source *source, uint64_t usec, void *arg)
{
    (void)source;
    (void)usec;
    send_all (arg);
    return 0;
}

static int on_wake (sd_event_source *source, int fd, uint32_t events, void *arg)
{
    uint64_t count;

    (void)source;
    (void)events;
    if (read (fd, &count, sizeof (count)) < 0 && errno != EAGAIN)
        return -errno;
    send_all (arg);
    return 0;
}

/* ---- questions ---- */

/* Whoever followed may have left: nobody tells us.  The longest of those that
 * follow ends, within a second.
 */
static bool make_room (struct hkd_journal *journal)
{
    struct hkd_question *oldest = NULL;
    size_t count = 0;

    for (struct hkd_question *q = journal->first; q; q = q->next) {
        count += !q->cancelled;
        if (q->follow && !q->cancelled)
            oldest = q;
    }
    if (count < HKD_JOURNAL_QUESTIONS)
        return true;
    if (!oldest || journal->count >= 2 * HKD_JOURNAL_QUESTIONS)
        return false;
    pthread_mutex_lock (&journal->lock);
    oldest->cancelled = oldest->displaced = true;
    pthread_cond_broadcast (&journal->room);
    pthread_mutex_unlock (&journal->lock);
    return true;
}

void hkd_journal_ask (struct hkd_journal *journal,
                      uint64_t seq,
                      uint64_t jobid,
                      int lines,
                      bool follow)
{
    struct hkd_question *q;
    int rc;

    if (!make_room (journal)) {
        journal->calls.end (journal->arg,
                            seq,
                            true,
                            "too many questions for the journal at once");
        return;
    }
    if (!(q = calloc (1, sizeof (*q)))) {
        journal->calls.end (journal->arg, seq, true, "out of memory");
        return;
    }
    q->journal = journal;
    q->seq = seq;
    q->jobid = jobid;
    q->lines = lines > 0 && lines < HKD_JOURNAL_LINES ? lines
                                                      : HKD_JOURNAL_LINES;
    q->follow = follow;
    rc = hk_thread_start (&q->thread, 0, hkd_question_read, q);
    if (rc != 0) {
        journal->calls.end (journal->arg, seq, true, strerror (rc));
        free (q);
        return;
    }
    q->next = journal->first;
    journal->first = q;
    journal->count++;
}

void hkd_journal_cancel (struct hkd_journal *journal)
{
    pthread_mutex_lock (&journal->lock);
    for (struct hkd_question *q = journal->first; q; q = q->next) {
        q->cancelled = true;
        q->displaced = false;
    }
    pthread_cond_broadcast (&journal->room);
    pthread_mutex_unlock (&journal->lock);
}

struct hkd_journal *hkd_journal_create (sd_event *event,
                                        const struct hkd_journal_calls *calls,
                                        void *arg)
{
    struct hkd_journal *journal = calloc (1, sizeof (*journal));
    int rc;

    if (!journal)
        return NULL;
    journal->calls = *calls;
    journal->arg = arg;
    pthread_mutex_init (&journal->lock, NULL);
    pthread_cond_init (&journal->room, NULL);
    journal->fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
    rc = journal->fd < 0
             ? -errno
             : sd_event_add_io (
                 event, &journal->io, journal->fd, EPOLLIN, on_wake, journal);
    if (rc < 0) {
        hkd_journal_destroy (journal);
        errno = -rc;
        return NULL;
    }
    return journal;
}

void hkd_journal_destroy (struct hkd_journal *journal)
{
    if (!journal)
        return;
    hkd_journal_cancel (journal);
    while (journal->first) { /* each looks at least once a second */
        struct hkd_question *q = journal->first;
        journal->first = q->next;
        pthread_join (q->thread, NULL);
        question_free (q);
    }
    sd_event_source_disable_unref (journal->again);
    sd_event_source_disable_unref (journal->io);
    if (journal->fd >= 0)
        close (journal->fd);
    pthread_cond_destroy (&journal->room);
    pthread_mutex_destroy (&journal->lock);
    free (journal);
}

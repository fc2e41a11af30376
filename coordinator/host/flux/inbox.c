/* inbox.c - tasks between the reactor, the clerk and the engine */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "proto/thread.h"
#include "coordinator/host/flux/flux.h"

enum { TASKS_AT_ONCE = 64 }; /* then the reactor has others' work to do */

static int queue_init (struct hkc_task_queue *q, bool has_fd)
{
    memset (q, 0, sizeof (*q));
    q->end = &q->first;
    q->fd = -1;
    pthread_mutex_init (&q->mutex, NULL);
    pthread_cond_init (&q->cond, NULL);
    if (has_fd && (q->fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
        return -1;
    return 0;
}

static void task_free (struct hkc_task *task)
{
    if (task->free_f)
        task->free_f (task);
    else
        free (task);
}

static void queue_fini (struct hkc_task_queue *q)
{
    struct hkc_task *task;

    while ((task = q->first)) {
        q->first = task->next;
        task_free (task);
    }
    if (q->fd >= 0)
        close (q->fd);
    pthread_cond_destroy (&q->cond);
    pthread_mutex_destroy (&q->mutex);
}

static void queue_put (struct hkc_task_queue *q, struct hkc_task *task)
{
    pthread_mutex_lock (&q->mutex);
    task->next = NULL;
    *q->end = task;
    q->end = &task->next;
    if (q->fd >= 0 && !q->is_signalled)
        eventfd_write (q->fd, 1);
    q->is_signalled = true;
    pthread_cond_signal (&q->cond);
    pthread_mutex_unlock (&q->mutex);
}

static struct hkc_task *queue_take (struct hkc_task_queue *q)
{
    struct hkc_task *task;
    eventfd_t n;

    pthread_mutex_lock (&q->mutex);
    if ((task = q->first) && !(q->first = task->next))
        q->end = &q->first;
    if (!q->first && q->is_signalled) {
        if (q->fd >= 0)
            eventfd_read (q->fd, &n);
        q->is_signalled = false;
    }
    pthread_mutex_unlock (&q->mutex);
    return task;
}

void hkc_inbox_put (struct hkc_flux *x, struct hkc_task *task)
{
    queue_put (&x->inbox, task);
}

void hkc_clerk_put (struct hkc_flux *x, struct hkc_task *task)
{
    queue_put (&x->desk, task);
}

static void on_inbox (flux_reactor_t *r,
                      flux_watcher_t *w,
                      int revents,
                      void *arg)
{
    struct hkc_flux *x = arg;
    struct hkc_task *task;
    int64_t entered;

    (void)r;
    (void)w;
    (void)revents;
    for (int i = 0; i < TASKS_AT_ONCE; i++) {
        if (!(task = queue_take (&x->inbox)))
            return;
        entered = hkc_flux_enter ();
        task->done_f (x, task);
        task_free (task);
        hkc_flux_leave (x, entered, "inbox");
    }
    /* what is left keeps the descriptor readable */
}

static void *clerk (void *arg)
{
    struct hkc_flux *x = arg;
    struct hkc_task *task;

    for (;;) {
        pthread_mutex_lock (&x->desk.mutex);
        while (!x->desk.first && !x->desk.quit)
            pthread_cond_wait (&x->desk.cond, &x->desk.mutex);
        if (x->desk.quit) {
            pthread_mutex_unlock (&x->desk.mutex);
            return NULL;
        }
        pthread_mutex_unlock (&x->desk.mutex);
        task = queue_take (&x->desk);
        task->work_f (x, task);
        hkc_inbox_put (x, task);
    }
}

int hkc_inbox_open (struct hkc_flux *x, flux_error_t *err)
{
    int rc;

    if (queue_init (&x->inbox, true) < 0 || queue_init (&x->desk, false) < 0
        || !(x->inbox_w = flux_fd_watcher_create (
                 x->r, x->inbox.fd, FLUX_POLLIN, on_inbox, x))) {
        snprintf (err->text, sizeof (err->text), "%s", strerror (errno));
        return -1;
    }
    flux_watcher_start (x->inbox_w);
    if ((rc = hk_thread_start (&x->clerk, 0, clerk, x))) {
        snprintf (err->text, sizeof (err->text), "thread: %s", strerror (rc));
        return -1;
    }
    x->has_clerk = true;
    return 0;
}

/* The engine has ended: nobody puts any more. */
void hkc_inbox_close (struct hkc_flux *x)
{
    if (x->has_clerk) {
        pthread_mutex_lock (&x->desk.mutex);
        x->desk.quit = true;
        pthread_cond_broadcast (&x->desk.cond);
        pthread_mutex_unlock (&x->desk.mutex);
        pthread_join (x->clerk, NULL);
    }
    flux_watcher_destroy (x->inbox_w);
    queue_fini (&x->desk);
    queue_fini (&x->inbox);
}

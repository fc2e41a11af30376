/* mailbox.c - notes between threads: a queue and an eventfd */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "coordinator/engine/internal.h"

int hkc_mailbox_init (struct hkc_mailbox *box, struct hk_error *err)
{
    box->first = NULL;
    box->end = &box->first;
    box->is_signalled = false;
    pthread_mutex_init (&box->mutex, NULL);
    if ((box->fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
        return hk_error_errno (err, errno, "eventfd");
    return 0;
}

void hkc_mailbox_fini (struct hkc_mailbox *box)
{
    struct hkc_note *note;

    while ((note = hkc_mailbox_take (box)))
        hkc_note_destroy (note);
    if (box->fd >= 0)
        close (box->fd);
    pthread_mutex_destroy (&box->mutex);
}

/* With the mutex held.  The flag saves the reader a call to the kernel for
 * each message of the link that it takes.
 */
static void signal_reader (struct hkc_mailbox *box)
{
    if (!box->is_signalled)
        eventfd_write (box->fd, 1);
    box->is_signalled = true;
}

void hkc_mailbox_put (struct hkc_mailbox *box, struct hkc_note *note)
{
    pthread_mutex_lock (&box->mutex);
    note->next = NULL;
    *box->end = note;
    box->end = &note->next;
    signal_reader (box);
    pthread_mutex_unlock (&box->mutex);
}

void hkc_mailbox_wake (struct hkc_mailbox *box)
{
    pthread_mutex_lock (&box->mutex);
    signal_reader (box);
    pthread_mutex_unlock (&box->mutex);
}

struct hkc_note *hkc_mailbox_take (struct hkc_mailbox *box)
{
    struct hkc_note *note;
    eventfd_t n;

    pthread_mutex_lock (&box->mutex);
    if ((note = box->first)) {
        if (!(box->first = note->next))
            box->end = &box->first;
        note->next = NULL;
    }
    if (!box->first && box->is_signalled) {
        eventfd_read (box->fd, &n);
        box->is_signalled = false;
    }
    pthread_mutex_unlock (&box->mutex);
    return note;
}

void hkc_engine_post (struct hkc_engine *engine, struct hkc_note *note)
{
    hkc_mailbox_put (&engine->mailbox, note);
}

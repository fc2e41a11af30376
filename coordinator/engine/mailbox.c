/* mailbox.c - notes between threads: a queue and an eventfd */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "coordinator/engine/internal.h"

struct hkc_note *hkc_note_create (enum hkc_event_kind kind)
{
    struct hkc_note *note = calloc (1, sizeof (*note));

    if (note)
        note->ev.kind = kind;
    return note;
}

const char *hkc_note_text (struct hkc_note *note, const char *text)
{
    if (!text)
        return NULL;
    for (size_t i = 0; i < sizeof (note->texts) / sizeof (note->texts[0]); i++)
        if (!note->texts[i])
            return note->texts[i] = strdup (text);
    errno = ENOMEM;
    return NULL;
}

void hkc_note_destroy (struct hkc_note *note)
{
    if (!note)
        return;
    if (note->ev.kind == HKC_EV_JOB_END)
        hk_resource_destroy (note->ev.job_end.res);
    hk_rankset_destroy (note->active);
    hk_resource_destroy (note->account);
    free (note->jobs);
    hk_hostlist_destroy (note->hosts);
    hk_rankset_destroy (note->ranks);
    for (size_t i = 0; i < sizeof (note->texts) / sizeof (note->texts[0]); i++)
        free (note->texts[i]);
    free (note);
}

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

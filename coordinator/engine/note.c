/* note.c - a host's note: its memory, and what is decoded of it */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include "proto/identity.h"
#include "proto/log.h"
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
    free (note->R_text);
    free (note->account_text);
    free (note->jobs);
    hk_hostlist_destroy (note->hosts);
    hk_rankset_destroy (note->ranks);
    for (size_t i = 0; i < sizeof (note->texts) / sizeof (note->texts[0]); i++)
        free (note->texts[i]);
    free (note);
}

int hkc_engine_ask_list (struct hkc_engine *e, uint64_t tag)
{
    struct hkc_note *note;

    if (!e->host.list) {
        errno = ENOSYS;
        return -1;
    }
    if (!(note = hkc_note_create (0))) {
        errno = ENOMEM;
        return -1;
    }
    note->asks_list = true;
    note->tag = tag;
    hkc_engine_post (e, note);
    return 0;
}

struct hk_resource *hkc_job_resource (const char *text, struct hk_error *err)
{
    struct hk_resource *res = hk_resource_decode (text, err);

    if (!res)
        hk_error_prefix (err, "R");
    else if (hk_rankset_count (hk_resource_ranks (res)) > HK_JOB_RANKS_LIMIT) {
        hk_resource_destroy (res);
        res = NULL;
        hk_error_set (err, EINVAL, "R: more ranks than a job may have");
    }
    return res;
}

/* A host's R is read here, in the engine's thread. */
int hkc_note_decode (struct hkc_note *note, struct hk_error *err)
{
    struct hkc_event *ev = &note->ev;

    if (ev->kind == HKC_EV_SCHED_READY && note->account_text
        && !ev->sched.account) {
        note->account = *note->account_text
                            ? hk_resource_decode (note->account_text, err)
                            : hk_resource_create_empty ();
        if (!note->account)
            hk_log (LOG_ERR,
                    "the scheduler's account counts as unavailable: %s",
                    err->text);
        ev->sched.account = note->account;
    }
    if (ev->kind != HKC_EV_JOB_END)
        return 0;
    if (ev->job_end.alloc == 0)
        ev->job_end.alloc = hk_random_u63 ();
    if (ev->job_end.res)
        return 0;
    if (!note->R_text)
        return hk_error_set (err, EINVAL, "R: expected one");
    ev->job_end.res = hkc_job_resource (note->R_text, err);
    return ev->job_end.res ? 0 : -1;
}

void hkc_note_refuse (struct hkc_engine *e,
                      struct hkc_note *note,
                      const struct hk_error *err)
{
    int rc = errno == ENOMEM ? ENOMEM : EINVAL;
    struct hk_log_ids ids = { .jobid = note->ev.job_end.jobid };
    struct hkc_answer none = { 0 };

    hk_log_with (LOG_ERR,
                 &ids,
                 "the end of job %llu is refused: %s",
                 (unsigned long long)note->ev.job_end.jobid,
                 err->text);
    if (note->tag)
        e->host.answered (e->host.arg, note->tag, rc, &none, err);
    hkc_note_destroy (note);
}

/* kill.c - flux housekeeping kill */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include "coordinator/core/idhash.h"
#include "coordinator/host/flux/flux.h"

/* A request that the engine has not answered yet. */
struct kill {
    uint64_t tag;
    const flux_msg_t *msg;
};

static void kill_free (void **item)
{
    struct kill *k = *item;

    if (k)
        flux_msg_decref (k->msg);
    free (k);
    *item = NULL;
}

static void kill_add (struct hkc_flux *x, uint64_t tag, const flux_msg_t *msg)
{
    struct kill *k = calloc (1, sizeof (*k));

    if (!k)
        abort ();
    k->tag = tag;
    k->msg = flux_msg_incref (msg);
    zhashx_insert (x->kills, &k->tag, k);
}

void hkc_kill_asked (flux_t *h,
                     flux_msg_handler_t *mh,
                     const flux_msg_t *msg,
                     void *arg)
{
    struct hkc_flux *x = arg;
    struct hkc_note *note = NULL;
    struct hk_error err = { "expected signum, jobid?, ranks?" };
    const char *ranks = NULL;
    struct flux_msg_cred cred = { 0 };
    json_int_t jobid = 0;
    int signum;

    (void)mh;
    if (hkc_is_probe (x, msg))
        return;
    if (!x->engine) {
        hkc_pass_on (x, msg);
        return;
    }
    if (flux_request_unpack (msg,
                             NULL,
                             "{s:i s?I s?s}",
                             "signum",
                             &signum,
                             "jobid",
                             &jobid,
                             "ranks",
                             &ranks)
            < 0
        || signum < 1 || signum >= NSIG || flux_msg_get_cred (msg, &cred) < 0
        || !(note = hkc_note_create (HKC_EV_KILL))
        || (ranks && !(note->ranks = hk_rankset_decode (ranks, &err)))
        || !(note->ev.kill.reason = hkc_note_text (note,
                                                   "flux housekeeping kill"))) {
        flux_respond_error (h, msg, EINVAL, err.text);
        hkc_note_destroy (note);
        return;
    }
    note->tag = HKC_TAG_KILL | ++x->last_tag;
    kill_add (x, note->tag, msg);
    note->ev.kill.jobid = jobid == (json_int_t)FLUX_JOBID_ANY ? 0
                                                              : (uint64_t)jobid;
    note->ev.kill.ranks = note->ranks;
    note->ev.kill.signal = signum;
    note->ev.kill.userid = cred.userid;
    hkc_engine_post (x->engine, note);
}

/* What matches nothing of ours may be the built-in's. */
void hkc_kill_done (struct hkc_flux *x, uint64_t tag, size_t matched)
{
    struct kill *k = zhashx_lookup (x->kills, &tag);

    if (!k)
        return;
    if (matched == 0)
        hkc_pass_on (x, k->msg);
    else if (flux_respond (x->h, k->msg, NULL) < 0)
        flux_log_error (x->h, "hk: respond");
    zhashx_delete (x->kills, &k->tag);
}

int hkc_kill_open (struct hkc_flux *x)
{
    if (!(x->kills = hkc_idhash_create ()))
        return -1;
    zhashx_set_destructor (x->kills, kill_free);
    return 0;
}

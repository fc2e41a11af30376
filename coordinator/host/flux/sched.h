/* sched.h - what hello.c and account.c share */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HKC_FLUX_SCHED_H
#define HKC_FLUX_SCHED_H

#include "coordinator/host/flux/flux.h"

/* What Flux answered, on its way through the clerk. */
struct hkc_sched_work {
    struct hkc_task task;
    uint64_t tag;
    bool is_online; /* there is an account without a hello */
    char *text;     /* what Flux answered; NULL: nothing */
    char **taken;   /* R's of active jobs */
    size_t taken_count;
    struct hk_hostlist *hosts;
    char *account;
    char error[HKC_TROUBLE_BYTES];
};

/* Of an answer; never NULL. */
struct hkc_sched_work *hkc_sched_work (struct hkc_flux *x, flux_future_t *f);
/* Of this life; never NULL. */
struct hkc_note *hkc_sched_note (struct hkc_flux *x, enum hkc_event_kind kind);
/* Ranks and ids of the jobs that are not ours to tell; -1: out of memory. */
int hkc_sched_active (struct hkc_flux *x, struct hkc_note *note);
void hkc_sched_life (struct hkc_flux *x);   /* a new one */
void hkc_sched_begins (struct hkc_flux *x); /* those that waited */
void hkc_sched_sender (struct hkc_flux *x, const flux_msg_t *msg);
void hkc_sched_end (struct hkc_flux *x); /* this life; fine if none is */
void hkc_sched_send_free (
    struct hkc_flux *x, uint64_t n, flux_jobid_t id, json_t *R, bool final);
/* is_online: is there a scheduler that never said hello to us? */
void hkc_account_ask (struct hkc_flux *x, bool is_online);

/* ---- doubt.c: a life that was online before us ---- */

int hkc_doubt_open (struct hkc_flux *x);
void hkc_doubt_close (struct hkc_flux *x);
/* Somebody has gone, and it may be the scheduler. */
void hkc_doubt (struct hkc_flux *x);
void hkc_doubt_end (struct hkc_flux *x); /* with the life */
/* The free waits until that is known; false: it need not. */
bool hkc_doubt_keeps (
    struct hkc_flux *x, uint64_t n, flux_jobid_t id, json_t *R, bool final);

#endif

/* turn.h - one turn of the engine: collect, decide, commit, send */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HKC_TURN_H
#define HKC_TURN_H

#include <stdbool.h>
#include <stdint.h>
#include "coordinator/core/core.h"

/* One thing that came in.  A LOOK is a question that changes nothing: it is
 * answered after the commit, so that nobody is told what is not on disk.
 */
struct hkc_input {
    bool look;
    struct hkc_event ev; /* now_ms and wall are set by the turn */
    uint64_t token;      /* who is to be answered; 0: nobody */
    void *owner;         /* the maker's: released after the step */
};

enum hkc_collect {
    HKC_COLLECT_ALL,
    /* the store cannot be written: clients are told so, what a manager says is
     * kept for later, what nodes say is dropped, they say it again */
    HKC_COLLECT_DEAF,
};

/* The operations that a turn is made of.  Production binds ZeroMQ, SQLite and
 * the mailbox to them, the simulation its models; a crash may come between any
 * two calls.
 */
struct hkc_ops {
    void *arg;
    int64_t (*now_ms) (void *arg); /* CLOCK_BOOTTIME */
    double (*wall) (void *arg);
    /* 1 and *in, or 0: nothing more now. */
    int (*receive) (void *arg, enum hkc_collect how, struct hkc_input *in);
    void (*release) (void *arg, struct hkc_input *in);
    /* Write hkc_core_changes in one transaction.  -1 with errno; ESTALE: the
     * process must end. */
    int (*commit) (void *arg, struct hkc_core *core, struct hk_error *err);
    /* By index, of what is closed. */
    uint64_t (*find_end) (void *arg, const struct hkc_event *ev);
    bool (*find_run) (void *arg, uint64_t peer, const struct hk_run *run);
    /* After the commit, in order. */
    void (*node) (void *arg, const struct hkc_action *act);
    void (*host) (void *arg, const struct hkc_action *act);
    void (*answer) (void *arg,
                    uint64_t token,
                    int rc,
                    const struct hkc_answer *answer,
                    const struct hk_error *err);
    void (*look) (void *arg, struct hkc_input *in); /* releases it */
    /* The commit failed and is tried again: who waits for the answer to token
     * learns that now.  True: nobody waits for it any more.  A look, which has
     * no token, is answered as well as it can be, and released.
     */
    bool (*put_off) (void *arg, uint64_t token);
    void (*look_put_off) (void *arg, struct hkc_input *in);
    /* The store began (err) or ceased (NULL) to refuse. */
    void (*store_state) (void *arg, const struct hk_error *err);
};

struct hkc_turn;

struct hkc_turn *hkc_turn_create (struct hkc_core *core,
                                  const struct hkc_ops *ops);
void hkc_turn_destroy (struct hkc_turn *turn);

/* 0: went on; 1: went on and there may be more to receive at once; -1 with
 * errno ESTALE: this process must end.
 */
int hkc_turn_run (struct hkc_turn *turn, struct hk_error *err);
/* When to run the next one at the latest (CLOCK_BOOTTIME). */
int64_t hkc_turn_deadline (const struct hkc_turn *turn);
bool hkc_turn_is_stuck (const struct hkc_turn *turn); /* commit fails */

#endif

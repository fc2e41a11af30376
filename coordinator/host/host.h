/* host.h - what a host gives to the engine and gets from it (DESIGN 9) */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HKC_HOST_H
#define HKC_HOST_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>
#include "proto/hostlist.h"
#include "proto/link.h"
#include "proto/rankset.h"
#include "proto/resource.h"
#include "coordinator/core/core.h"

struct hkc_engine;

/* An event on its way to the engine, with all that it points to.  Made by
 * hkc_note_create, filled in (text by hkc_note_text), given to hkc_engine_post,
 * which takes it.  Events of a host:
 *
 *     JOB_END (res or R_text, hold_begin; alloc 0: one is drawn),
 *     JOB_BEGIN, JOB_DROP, JOB_PURGED              a job
 *     HOSTS                                        where ranks are
 *     SCHED_HELLO, SCHED_READY, SCHED_GONE         its scheduler
 *     FREE_OK, DRAIN_DONE, UNDRAIN_DONE            what it was told
 *     KILL                                         an admin's word
 */
struct hkc_note {
    struct hkc_note *next;
    struct hkc_event ev;
    uint64_t tag;                /* for `answered`; 0: no answer is needed */
    struct hk_rankset *active;   /* owned; ev.sched.active */
    struct hk_resource *account; /* owned; ev.sched.account */
    uint64_t *jobs;              /* owned; ev.sched.jobs */
    struct hk_hostlist *hosts;   /* owned; ev.kill.hosts or .inventory.hosts */
    struct hk_rankset *ranks;    /* owned; ev.kill.ranks */
    /* Owned; decoded in the engine's thread, so that a host's need not read
     * the R of 16,384 nodes.  JOB_END where ev.job_end.res is NULL: one that
     * is no R answers the tag with EINVAL.  SCHED_READY where ev.sched.account
     * is NULL: "" is an empty one, and what is none counts as unavailable. */
    char *R_text;
    char *account_text;
    char *texts[4]; /* owned */
    bool asks_list; /* hkc_engine_ask_list; no event */
};

struct hkc_note *hkc_note_create (enum hkc_event_kind kind);
/* A copy that lives as long as the note; NULL stays NULL, and NULL with ENOMEM
 * for want of memory or a fifth text.
 */
const char *hkc_note_text (struct hkc_note *note, const char *text);
void hkc_note_destroy (struct hkc_note *note); /* NULL is fine */

/* Called in the engine's thread; none may block.  What is given is borrowed
 * for the call.
 */
struct hkc_host_ops {
    void *arg;
    /* The scheduler's life ends with its link (Flux). */
    bool life_ends_with_link;
    /* A link that cannot be opened (its port is in use, its key cannot be read)
     * does not fail hkc_engine_create: it is logged and tried again. */
    bool link_may_wait;
    /* HELLO_ENTRY, HELLO_END, FREE, DRAIN, UNDRAIN, LOG: on disk already. */
    void (*action) (void *arg, const struct hkc_action *act);
    /* Of a note with a tag: rc is 0 or an errno, and why in err. */
    void (*answered) (void *arg,
                      uint64_t tag,
                      int rc,
                      const struct hkc_answer *answer,
                      const struct hk_error *err);
    /* Managers that speak over the client port; NULL where there are none. */
    void (*message) (void *arg, struct hk_peer *peer, struct hk_msg *msg);
    void (*gone) (void *arg, struct hk_peer *peer);
    /* The answer to hkc_engine_ask_list: an array, a row for each allocation
     * that is begun and not closed, {alloc, jobid, userid, t_start (the end of
     * its job), ranks, pending (not free yet), R (object)}.  NULL for want of
     * memory.  NULL where nobody asks. */
    void (*list) (void *arg, uint64_t tag, json_t *rows_take);
    /* After each turn; returns when to be called at the latest (CLOCK_BOOTTIME,
     * INT64_MAX: whenever).  NULL where there is nothing to do. */
    int64_t (*tick) (void *arg, int64_t now_ms);
};

/* What a host's manager session is about: its scheduler's life, and the hello
 * that was posted last.  A host drops what is of another (DESIGN 5, S5).
 */
enum { HKC_LIFE_BYTES = 65 };
struct hkc_session {
    char life[HKC_LIFE_BYTES];
    uint64_t tag; /* of its last hello */
    bool awaits;  /* that hello is posted and not answered */
};
void hkc_session_hello (struct hkc_session *session,
                        const char *life,
                        uint64_t tag);
/* Is the action for this session?  A free that was decided before the hello and
 * comes before its answer is not: if the life resumes it comes again, in order.
 */
bool hkc_session_takes (struct hkc_session *session,
                        const struct hkc_action *act);

/* Between hkc_engine_create and hkc_engine_start: what is open, so that a host
 * can settle what it does not know the end of.  Returns the first non-zero
 * result of fn, else 0.
 */
int hkc_engine_each_alloc (struct hkc_engine *engine,
                           hkc_alloc_view_f fn,
                           void *arg);

/* Any thread: takes the note. */
void hkc_engine_post (struct hkc_engine *engine, struct hkc_note *note);
/* Any thread: ask what is held.  While the store cannot be written the answer
 * waits (hkc_engine_trouble tells).  -1 with ENOMEM, or ENOSYS for a host
 * without `list`.
 */
int hkc_engine_ask_list (struct hkc_engine *engine, uint64_t tag);
/* Any thread: what is wrong at present, "" if nothing is. */
void hkc_engine_trouble (struct hkc_engine *engine, char *text, size_t size);
/* Engine's thread: the link, for a host that answers its managers itself; NULL
 * while it waits (link_may_wait).
 */
struct hk_link_server *hkc_engine_link (struct hkc_engine *engine);
/* Engine's thread: the configuration in force; borrowed for the call. */
const struct hk_conf *hkc_engine_conf (const struct hkc_engine *engine);

#endif

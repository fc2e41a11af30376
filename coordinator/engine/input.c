/* input.c - a message or a note becomes an input of the turn */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include "proto/clock.h"
#include "proto/identity.h"
#include "proto/log.h"
#include "coordinator/engine/internal.h"

/* What an input holds until the step is made. */
struct owner {
    struct hk_msg msg;
    uint64_t peer;
    struct hkc_note *note;
    struct hk_resource *res;
    struct hk_hostlist *hosts;
};

struct hk_peer *hkc_peer (struct hkc_engine *e, uint64_t id)
{
    return zhashx_lookup (e->peers, &id);
}

const struct hk_msg *hkc_input_msg (const struct hkc_input *in)
{
    return &((const struct owner *)in->owner)->msg;
}

const struct hkc_note *hkc_input_note (const struct hkc_input *in)
{
    return ((const struct owner *)in->owner)->note;
}

uint64_t hkc_input_peer (const struct hkc_input *in)
{
    return ((const struct owner *)in->owner)->peer;
}

void hkc_release (void *arg, struct hkc_input *in)
{
    struct owner *owner = in->owner;

    (void)arg;
    if (!owner)
        return;
    if (owner->note) {
        if (in->ev.kind == HKC_EV_JOB_END) /* NULL if it was taken */
            owner->note->ev.job_end.res = in->ev.job_end.res;
        hkc_note_destroy (owner->note);
    } else if (in->ev.kind == HKC_EV_JOB_END)
        hk_resource_destroy (in->ev.job_end.res);
    hk_hostlist_destroy (owner->hosts);
    hk_msg_fini (&owner->msg);
    free (owner);
    in->owner = NULL;
}

static int from_note (struct hkc_engine *e,
                      struct hkc_note *note,
                      struct hkc_input *in)
{
    struct owner *owner;
    struct hk_error err;

    if (hkc_note_decode (note, &err) < 0) {
        hkc_note_refuse (e, note, &err);
        return 0;
    }
    if (!(owner = calloc (1, sizeof (*owner))))
        abort (); /* it is out of the queue: losing it would lose a job */
    owner->note = note;
    in->owner = owner;
    if (note->asks_list) {
        in->look = true;
        return 1;
    }
    in->ev = note->ev;
    if (note->tag)
        in->token = hkc_ask_add (e, 0, note->tag, HK_MSG_NONE);
    return 1;
}

/* What a node remembers of us tells whether the store went back. */
static void check_seen (struct hkc_engine *e,
                        const struct hk_peer *peer,
                        const struct hk_msg_state *state)
{
    struct hk_error err;
    struct hkc_note *note;

    if (!state->seen_instance
        || hkc_store_seen (e->store,
                           state->seen_instance,
                           state->seen_start,
                           state->seen_commit,
                           &err)
               == 0)
        return;
    hk_log_throttled (LOG_ALERT, "seen", "%s: %s", peer->host, err.text);
    if (!(note = hkc_note_create (HKC_EV_STORE_BACK)))
        return;
    note->ev.why = hkc_note_text (note, err.text);
    hkc_mailbox_put (&e->mailbox, note);
}

static int from_node (struct hkc_engine *e,
                      struct hk_peer *peer,
                      struct hk_msg *msg,
                      struct hkc_input *in)
{
    switch (msg->type) {
    case HK_MSG_ALIVE:
        in->ev.kind = HKC_EV_NODE_ALIVE;
        in->ev.node.peer = peer->id;
        return 1;
    case HK_MSG_RUN:
        in->ev.kind = HKC_EV_NODE_RUN;
        in->ev.node_run.peer = peer->id;
        in->ev.node_run.run = &msg->run;
        return 1;
    case HK_MSG_STATE:
        check_seen (e, peer, &msg->state);
        in->ev.kind = HKC_EV_NODE_STATE;
        in->ev.node_state.peer = peer->id;
        in->ev.node_state.boot_id = msg->state.boot_id;
        in->ev.node_state.runs = msg->state.runs;
        in->ev.node_state.runs_count = msg->state.runs_count;
        in->ev.node_state.first = msg->state.part == 0;
        in->ev.node_state.last = msg->state.last;
        in->ev.node_state.foreign = msg->state.foreign;
        return 1;
    case HK_MSG_LOG_DATA:
    case HK_MSG_LOG_END:
        hkc_log_back (e, peer, msg);
        return 0;
    default: /* `done` to a stop: the run's own report follows */
        return 0;
    }
}

static int refuse (struct hkc_engine *e,
                   struct hk_peer *peer,
                   const struct hk_msg *msg,
                   const char *text)
{
    hkc_reply_error (e, peer, msg->seq, "bad", text);
    return 0;
}

static int job_end (struct hkc_engine *e,
                    struct hk_peer *peer,
                    struct hk_msg *msg,
                    struct hkc_input *in)
{
    struct hk_error err;
    char *text = json_dumps (msg->job_end.R, JSON_COMPACT);

    if (!text)
        return refuse (e, peer, msg, "out of memory");
    in->ev.job_end.res = hkc_job_resource (text, &err);
    free (text);
    if (!in->ev.job_end.res)
        return refuse (e, peer, msg, err.text);
    in->ev.kind = HKC_EV_JOB_END;
    in->ev.job_end.alloc = hk_random_u63 ();
    in->ev.job_end.jobid = msg->job_end.jobid;
    in->ev.job_end.userid = msg->job_end.userid;
    in->ev.job_end.priority = msg->job_end.priority;
    in->ev.job_end.t_submit = msg->job_end.t_submit;
    in->ev.job_end.t_end = msg->job_end.t_end;
    in->ev.job_end.queue = msg->job_end.queue ? msg->job_end.queue : "";
    return 1;
}

static int kill_ask (struct hkc_engine *e,
                     struct hk_peer *peer,
                     struct hk_msg *msg,
                     struct hkc_input *in)
{
    const struct hk_msg_query *q = &msg->query;
    struct owner *owner = in->owner;
    struct hk_error err;

    if (!q->jobid && !q->hosts && !q->all)
        return refuse (e, peer, msg, "kill: expected a job id, hosts or all");
    if (q->signal < 0 || q->signal >= NSIG)
        return refuse (e, peer, msg, "kill: no such signal");
    if (q->hosts && !(owner->hosts = hk_hostlist_decode (q->hosts, &err)))
        return refuse (e, peer, msg, err.text);
    in->ev.kind = HKC_EV_KILL;
    in->ev.kill.jobid = q->jobid;
    in->ev.kill.hosts = owner->hosts;
    in->ev.kill.signal = q->signal ? q->signal : SIGTERM;
    in->ev.kill.reason = q->reason ? q->reason : "";
    in->ev.kill.userid = peer->uid;
    return 1;
}

static int from_client (struct hkc_engine *e,
                        struct hk_peer *peer,
                        struct hk_msg *msg,
                        struct hkc_input *in)
{
    switch (msg->type) {
    case HK_MSG_JOB_END:
        if (!e->host.message) {
            hkc_reply_error (e,
                             peer,
                             msg->seq,
                             "denied",
                             "the job manager that this coordinator is part "
                             "of tells it of jobs itself");
            return 0;
        }
        if (!job_end (e, peer, msg, in))
            return 0;
        break;
    case HK_MSG_KILL:
        if (!kill_ask (e, peer, msg, in))
            return 0;
        break;
    case HK_MSG_RECOVER:
        in->ev.kind = HKC_EV_RECOVER;
        in->ev.userid = peer->uid;
        break;
    case HK_MSG_ALIVE:
        if (e->host.message)
            e->host.message (e->host.arg, peer, msg);
        return 0;
    case HK_MSG_SCHED_HELLO:
    case HK_MSG_SCHED_READY:
    case HK_MSG_FREE_OK:
    case HK_MSG_DRAIN_DONE:
    case HK_MSG_UNDRAIN_DONE:
        if (e->host.message)
            e->host.message (e->host.arg, peer, msg);
        else
            hkc_reply_error (e,
                             peer,
                             msg->seq,
                             "denied",
                             "this coordinator's manager is not a client");
        return 0;
    default:
        in->look = true;
        return 1;
    }
    in->token = hkc_ask_add (e, peer->id, msg->seq, msg->type);
    return 1;
}

static int from_message (struct hkc_engine *e,
                         struct hk_peer *peer,
                         struct hk_msg *msg,
                         struct hkc_input *in)
{
    struct owner *owner = calloc (1, sizeof (*owner));
    int rc;

    if (!owner) {
        hk_msg_fini (msg); /* it is said again */
        return 0;
    }
    owner->msg = *msg;
    owner->peer = peer->id;
    in->owner = owner;
    rc = peer->role == HK_ROLE_NODE ? from_node (e, peer, &owner->msg, in)
                                    : from_client (e, peer, &owner->msg, in);
    if (!rc) {
        memset (&in->ev, 0, sizeof (in->ev));
        hkc_release (e, in);
        in->look = false;
    }
    return rc;
}

static int from_hello (struct hkc_engine *e,
                       struct hk_peer *peer,
                       struct hkc_input *in)
{
    zhashx_update (e->peers, &peer->id, peer);
    if (peer->role != HK_ROLE_NODE) {
        hk_link_welcome (e->link, peer, hkc_store_commit_number (e->store));
        return 0;
    }
    in->ev.kind = HKC_EV_NODE_HELLO;
    in->ev.node_hello.peer = peer->id;
    in->ev.node_hello.host = peer->host;
    in->ev.node_hello.short_host = peer->short_host;
    in->ev.node_hello.boot_id = peer->boot_id;
    in->ev.node_hello.address = peer->address;
    return 1;
}

static int from_gone (struct hkc_engine *e,
                      struct hk_peer *peer,
                      struct hkc_input *in)
{
    uint64_t id = peer->id;
    enum hk_role role = peer->role;

    if (hkc_peer (e, id) != peer)
        return 0; /* closed by us */
    if (role != HK_ROLE_NODE && e->host.gone)
        e->host.gone (e->host.arg, peer);
    zhashx_delete (e->peers, &id);
    hkc_follow_drop (e, id);
    if (role != HK_ROLE_NODE)
        return 0;
    in->ev.kind = HKC_EV_NODE_GONE;
    in->ev.node.peer = id;
    return 1;
}

/* While the store refuses: a client learns it, a node will say it again. */
static void deaf (struct hkc_engine *e,
                  enum hk_link_event event,
                  struct hk_peer *peer,
                  const struct hk_msg *msg)
{
    if (event == HK_LINK_HELLO && peer->role == HK_ROLE_NODE)
        hk_link_refuse (e->link, peer, "store", e->store_error);
    else if (event == HK_LINK_MESSAGE && peer->role != HK_ROLE_NODE)
        hkc_look_deaf (e, peer, msg);
}

static bool is_managers (const struct hk_msg *msg)
{
    return msg->type == HK_MSG_ALIVE || msg->type == HK_MSG_SCHED_HELLO
           || msg->type == HK_MSG_SCHED_READY || msg->type == HK_MSG_FREE_OK
           || msg->type == HK_MSG_DRAIN_DONE
           || msg->type == HK_MSG_UNDRAIN_DONE;
}

static int from_link (struct hkc_engine *e,
                      enum hkc_collect how,
                      struct hkc_input *in)
{
    enum hk_link_event event;
    struct hk_peer *peer;
    struct hk_msg msg;

    while (e->link
           && hk_link_server_next (e->link, hk_boot_ms (), &event, &peer, &msg)
                  > 0) {
        int rc = 0;
        if (how == HKC_COLLECT_DEAF && event != HK_LINK_GONE
            && !(event == HK_LINK_HELLO && peer->role != HK_ROLE_NODE)
            && !(event == HK_LINK_MESSAGE && peer->role != HK_ROLE_NODE
                 && is_managers (&msg))) {
            deaf (e, event, peer, &msg);
            if (event == HK_LINK_MESSAGE)
                hk_msg_fini (&msg);
            continue;
        }
        if (event == HK_LINK_HELLO)
            rc = from_hello (e, peer, in);
        else if (event == HK_LINK_GONE)
            rc = from_gone (e, peer, in);
        else
            rc = from_message (e, peer, &msg, in);
        if (rc)
            return rc;
    }
    return 0;
}

/* A node that leaves while the store refuses must not be forgotten. */
static void keep_gone (struct hkc_engine *e, const struct hkc_input *in)
{
    struct hkc_note *note = hkc_note_create (in->ev.kind);

    if (!note)
        return;
    note->ev.node = in->ev.node;
    hkc_mailbox_put (&e->mailbox, note);
}

int hkc_receive (void *arg, enum hkc_collect how, struct hkc_input *in)
{
    struct hkc_engine *e = arg;
    struct hkc_note *note;

    if (how == HKC_COLLECT_DEAF) {
        while (from_link (e, how, in))
            if (in->ev.kind == HKC_EV_NODE_GONE)
                keep_gone (e, in);
        return 0;
    }
    while ((note = hkc_mailbox_take (&e->mailbox)))
        if (from_note (e, note, in))
            return 1;
    return from_link (e, how, in);
}

/* manager.c - the one manager session of the standalone host */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include "proto/clock.h"
#include "proto/log.h"
#include "coordinator/host/standalone/manager.h"
#include "coordinator/host/standalone/outbox.h"

enum { FLUSH_MS = 5 };

struct hkc_manager {
    struct hkc_engine *engine;
    struct hkc_outbox *outbox;
    struct hk_peer *peer; /* NULL: no session */
    struct hkc_session session;
    int64_t heard_ms;
    uint64_t hello_seq; /* of the request that is being answered */
};

struct hkc_manager *hkc_manager_create (void)
{
    struct hkc_manager *m = calloc (1, sizeof (*m));

    if (m && !(m->outbox = hkc_outbox_create ())) {
        free (m);
        m = NULL;
    }
    return m;
}

void hkc_manager_destroy (struct hkc_manager *manager)
{
    if (!manager)
        return;
    hkc_outbox_destroy (manager->outbox);
    free (manager);
}

void hkc_manager_engine (struct hkc_manager *manager, struct hkc_engine *engine)
{
    manager->engine = engine;
}

static void refuse (struct hkc_manager *m,
                    struct hk_peer *peer,
                    const struct hk_msg *to,
                    const char *code,
                    const char *text)
{
    struct hk_msg msg = {
        .type = HK_MSG_ERROR,
        .re = to->seq,
        .error = { .code = code, .version = HK_PROTOCOL_VERSION, .text = text },
    };

    hk_link_send (hkc_engine_link (m->engine), peer, &msg);
}

static void post_gone (struct hkc_manager *m)
{
    struct hkc_note *note = hkc_note_create (HKC_EV_SCHED_GONE);

    if (!note)
        abort (); /* frees would be sent to nobody */
    hkc_engine_post (m->engine, note);
}

/* The same life replaces its session silently; another one comes after two
 * silent heartbeats, or with take-over.
 */
static bool session_take (struct hkc_manager *m,
                          struct hk_peer *peer,
                          const struct hk_msg *msg,
                          const char *life,
                          bool take_over)
{
    int64_t beat = hkc_engine_conf (m->engine)->heartbeat_ms;

    if (m->peer && m->peer != peer && strcmp (m->session.life, life)
        && hk_boot_ms () - m->heard_ms < 2 * beat && !take_over) {
        refuse (
            m,
            peer,
            msg,
            "conflict",
            "another manager has the session; take over with --take-over (take_over), or wait");
        return false;
    }
    if (m->peer && m->peer != peer) {
        post_gone (m);
        if (strcmp (m->session.life, life))
            hk_log (LOG_NOTICE,
                    "manager %s (uid %u, %s) takes over from %s",
                    life,
                    peer->uid,
                    peer->address,
                    m->session.life);
    }
    if (m->peer != peer)
        hkc_outbox_clear (m->outbox);
    m->peer = peer;
    m->heard_ms = hk_boot_ms ();
    snprintf (m->session.life, sizeof (m->session.life), "%s", life);
    return true;
}

static struct hk_resource *resource_of (json_t *R, struct hk_error *err)
{
    char *text = json_dumps (R, JSON_COMPACT);
    struct hk_resource *res = NULL;

    if (text)
        res = hk_resource_decode (text, err);
    else
        hk_error_set (err, ENOMEM, "out of memory");
    free (text);
    return res;
}

static int jobs_of (struct hkc_note *note, json_t *ids, struct hk_error *err)
{
    size_t n = json_array_size (ids);

    if (n && !(note->jobs = calloc (n, sizeof (*note->jobs))))
        return hk_error_set (err, ENOMEM, "out of memory");
    for (size_t i = 0; i < n; i++) {
        json_t *id = json_array_get (ids, i);
        if (!json_is_integer (id) || json_integer_value (id) < 0)
            return hk_error_set (err, EINVAL, "jobs: expected job ids");
        note->jobs[i] = (uint64_t)json_integer_value (id);
    }
    note->ev.sched.jobs = note->jobs;
    note->ev.sched.jobs_count = n;
    return 0;
}

static void hello (struct hkc_manager *m,
                   struct hk_peer *peer,
                   struct hk_msg *msg)
{
    struct hkc_note *note = hkc_note_create (HKC_EV_SCHED_HELLO);
    struct hk_error err = { "out of memory" };

    if (!note
        || (msg->sched_hello.active
            && !(note->active = hk_rankset_decode (msg->sched_hello.active,
                                                   &err)))
        || jobs_of (note, msg->sched_hello.jobs, &err) < 0
        || !(note->ev.sched.life = hkc_note_text (note,
                                                  msg->sched_hello.life))) {
        refuse (m, peer, msg, "bad", err.text);
        hkc_note_destroy (note);
        return;
    }
    if (!session_take (
            m, peer, msg, msg->sched_hello.life, msg->sched_hello.take_over)) {
        hkc_note_destroy (note);
        return;
    }
    m->hello_seq = msg->seq;
    hkc_session_hello (&m->session, msg->sched_hello.life, m->session.tag + 1);
    note->ev.sched.tag = m->session.tag;
    note->tag = msg->seq;
    note->ev.sched.partial_ok = msg->sched_hello.partial_ok;
    note->ev.sched.last_free = msg->sched_hello.last_free;
    note->ev.sched.active = note->active;
    hkc_engine_post (m->engine, note);
}

static void ready (struct hkc_manager *m,
                   struct hk_peer *peer,
                   struct hk_msg *msg)
{
    struct hkc_note *note = hkc_note_create (HKC_EV_SCHED_READY);
    struct hk_error err = { "out of memory" };
    json_t *R = msg->sched_ready.allocated;

    if (!note
        || (R && json_object_size (R) > 0
            && !(note->account = resource_of (R, &err)))
        || !(note->ev.sched.life = hkc_note_text (note,
                                                  msg->sched_ready.life))) {
        hk_error_prefix (&err, "allocated");
        refuse (m, peer, msg, "bad", err.text);
        hkc_note_destroy (note);
        return;
    }
    if (!session_take (m, peer, msg, msg->sched_ready.life, false)) {
        hkc_note_destroy (note);
        return;
    }
    note->tag = msg->seq;
    note->ev.sched.account = note->account;
    hkc_engine_post (m->engine, note);
}

static const struct {
    const char *name;
    enum hkc_drain_result result;
} results[] = {
    { "ok", HKC_DRAIN_OK },
    { "already", HKC_DRAIN_ALREADY },
    { "excluded", HKC_DRAIN_EXCLUDED },
    { "unknown", HKC_DRAIN_NOT_FOUND },
    { "failed", HKC_DRAIN_FAILED },
    { "changed", HKC_DRAIN_CHANGED },
    { "not-drained", HKC_DRAIN_NOT_DRAINED },
};

static void drain_done (struct hkc_manager *m,
                        struct hk_peer *peer,
                        struct hk_msg *msg)
{
    bool undrain = msg->type == HK_MSG_UNDRAIN_DONE;
    const char *host;
    json_t *value;

    json_object_foreach (msg->drain_done.hosts, host, value)
    {
        const char *name = NULL, *reason = NULL, *text = NULL;
        struct hkc_note *note;
        size_t i, n = sizeof (results) / sizeof (results[0]);
        json_unpack (value,
                     "{s:s s?s s?s}",
                     "result",
                     &name,
                     "reason",
                     &reason,
                     "text",
                     &text);
        for (i = 0; i < n && (!name || strcmp (name, results[i].name)); i++)
            continue;
        if (i == n) {
            refuse (m,
                    peer,
                    msg,
                    "bad",
                    "result: expected ok, already, "
                    "excluded, unknown, failed, changed or not-drained");
            continue;
        }
        if (!(note = hkc_note_create (undrain ? HKC_EV_UNDRAIN_DONE
                                              : HKC_EV_DRAIN_DONE)))
            return; /* it is asked again in the next session */
        note->ev.done.n = msg->drain_done.n;
        note->ev.done.result = results[i].result;
        note->ev.done.host = hkc_note_text (note, host);
        note->ev.done.reason = hkc_note_text (note, reason);
        note->ev.done.text = hkc_note_text (note, text);
        hkc_engine_post (m->engine, note);
    }
}

static void free_ok (struct hkc_manager *m, uint64_t n)
{
    struct hkc_note *note = hkc_note_create (HKC_EV_FREE_OK);

    if (!note)
        return; /* it comes again in the next session */
    note->ev.done.n = n;
    hkc_engine_post (m->engine, note);
}

static void message (void *arg, struct hk_peer *peer, struct hk_msg *msg)
{
    struct hkc_manager *m = arg;

    if (m->peer == peer)
        m->heard_ms = hk_boot_ms ();
    switch (msg->type) {
    case HK_MSG_SCHED_HELLO:
        hello (m, peer, msg);
        return;
    case HK_MSG_SCHED_READY:
        ready (m, peer, msg);
        return;
    case HK_MSG_ALIVE:
        return;
    default:
        break;
    }
    if (m->peer != peer)
        refuse (m, peer, msg, "denied", "not the manager's session");
    else if (msg->type == HK_MSG_FREE_OK)
        free_ok (m, msg->free_ok.n);
    else
        drain_done (m, peer, msg);
}

static void gone (void *arg, struct hk_peer *peer)
{
    struct hkc_manager *m = arg;

    if (m->peer != peer)
        return;
    m->peer = NULL;
    hkc_outbox_clear (m->outbox);
    post_gone (m);
}

static void answered (void *arg,
                      uint64_t tag,
                      int rc,
                      const struct hkc_answer *answer,
                      const struct hk_error *err)
{
    struct hkc_manager *m = arg;
    struct hk_msg to = { .seq = tag };

    (void)answer;
    if (rc && tag == m->hello_seq)
        m->session.awaits = false;
    if (rc && m->peer)
        refuse (m, m->peer, &to, rc == ESTALE ? "conflict" : "bad", err->text);
}

static void send_msg (struct hkc_manager *m, struct hk_msg *msg)
{
    hkc_outbox_send (m->outbox, hkc_engine_link (m->engine), m->peer, msg);
}

static int64_t tick (void *arg, int64_t now_ms)
{
    struct hkc_manager *m = arg;

    if (!m->peer
        || hkc_outbox_flush (m->outbox, hkc_engine_link (m->engine), m->peer))
        return INT64_MAX;
    return now_ms + FLUSH_MS;
}

static void send_free (struct hkc_manager *m, const struct hkc_row_free *row)
{
    struct hk_msg msg = {
        .type = HK_MSG_FREE,
        .free = {
            .n = row->n,
            .life = row->life,
            .jobid = row->jobid,
            .ranks = row->ranks,
            .R = json_loads (row->R, 0, NULL),
            .final = row->final,
        },
    };

    if (msg.free.R)
        send_msg (m, &msg);
    json_decref (msg.free.R);
}

static void send_entry (struct hkc_manager *m, const struct hkc_action *act)
{
    struct hk_msg msg = {
        .type = HK_MSG_SCHED_ALLOC,
        .re = m->hello_seq,
        .sched_alloc = {
            .life = act->entry.life,
            .jobid = act->entry.jobid,
            .priority = act->entry.priority,
            .userid = act->entry.userid,
            .t_submit = act->entry.t_submit,
            .R = json_loads (act->entry.R, 0, NULL),
            .free = act->entry.free,
        },
    };

    if (msg.sched_alloc.R)
        send_msg (m, &msg);
    json_decref (msg.sched_alloc.R);
}

static void action (void *arg, const struct hkc_action *act)
{
    struct hkc_manager *m = arg;
    struct hk_msg msg = { .type = HK_MSG_NONE };

    if (!m->peer || !hkc_session_takes (&m->session, act))
        return; /* what is still to be said comes again */
    switch (act->kind) {
    case HKC_ACT_FREE:
        send_free (m, &act->free);
        return;
    case HKC_ACT_HELLO_ENTRY:
        send_entry (m, act);
        return;
    case HKC_ACT_HELLO_END:
        msg.type = HK_MSG_SCHED_ALLOC_END;
        msg.re = m->hello_seq;
        msg.sched_alloc_end.life = act->hello_end.life;
        msg.sched_alloc_end.resumed = act->hello_end.resumed;
        break;
    case HKC_ACT_DRAIN:
    case HKC_ACT_UNDRAIN:
        msg.type = act->kind == HKC_ACT_DRAIN ? HK_MSG_DRAIN : HK_MSG_UNDRAIN;
        msg.drain.n = act->drain.n;
        msg.drain.life = act->drain.life;
        msg.drain.hosts = act->drain.host;
        msg.drain.ranks = act->drain.ranks;
        msg.drain.reason = act->drain.reason;
        break;
    default:
        return;
    }
    send_msg (m, &msg);
}

void hkc_manager_ops (struct hkc_manager *manager, struct hkc_host_ops *out)
{
    *out = (struct hkc_host_ops){
        .arg = manager,
        .action = action,
        .answered = answered,
        .message = message,
        .gone = gone,
        .tick = tick,
    };
}

/* output.c - actions and answers become messages */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "proto/jobid.h"
#include "proto/log.h"
#include "coordinator/engine/internal.h"

static void send_node (struct hkc_engine *e, uint64_t id, struct hk_msg *msg)
{
    struct hk_peer *peer = hkc_peer (e, id);

    if (!peer)
        return; /* gone: the next meeting repairs it */
    msg->commit = hkc_store_commit_number (e->store);
    hk_link_send (e->link, peer, msg);
}

static void close_node (struct hkc_engine *e, uint64_t id)
{
    struct hk_peer *peer = hkc_peer (e, id);

    if (!peer)
        return;
    zhashx_delete (e->peers, &id);
    hk_link_close (e->link, peer);
}

void hkc_send_node (void *arg, const struct hkc_action *act)
{
    struct hkc_engine *e = arg;
    struct hk_peer *peer;
    struct hk_msg msg = { .type = HK_MSG_NONE };

    switch (act->kind) {
    case HKC_ACT_WELCOME:
        if ((peer = hkc_peer (e, act->node.peer)))
            hk_link_welcome (e->link, peer, hkc_store_commit_number (e->store));
        break;
    case HKC_ACT_REFUSE:
        if ((peer = hkc_peer (e, act->node.peer))) {
            uint64_t id = peer->id;
            zhashx_delete (e->peers, &id);
            hk_link_refuse (e->link, peer, act->node.code, act->node.text);
        }
        break;
    case HKC_ACT_CLOSE:
        close_node (e, act->node.peer);
        break;
    case HKC_ACT_START:
        msg.type = HK_MSG_START;
        msg.start_run = act->start.start;
        send_node (e, act->start.peer, &msg);
        break;
    case HKC_ACT_STOP:
        msg.type = HK_MSG_STOP;
        msg.stop = act->stop.stop;
        send_node (e, act->stop.peer, &msg);
        break;
    case HKC_ACT_ACK:
        msg.type = HK_MSG_ACK;
        msg.ack = act->ack.ack;
        send_node (e, act->ack.peer, &msg);
        break;
    default:
        break;
    }
}

void hkc_send_host (void *arg, const struct hkc_action *act)
{
    struct hkc_engine *e = arg;

    if (act->kind == HKC_ACT_LOG) {
        struct hk_log_ids ids = {
            .jobid = act->log.jobid,
            .host = act->log.host,
        };
        char id[HK_JOBID_TEXT_BYTES] = "";
        if (act->log.jobid)
            hk_jobid_encode (act->log.jobid, HK_JOBID_F58PLAIN, id);
        hk_log_with (act->log.level,
                     &ids,
                     "%s%s%s%s%s",
                     id,
                     *id && act->log.host ? " " : "",
                     act->log.host ? act->log.host : "",
                     *id || act->log.host ? ": " : "",
                     act->log.text);
        return;
    }
    if (zlistx_size (e->followers))
        hkc_follow_send (e, act);
    e->host.action (e->host.arg, act);
}

void hkc_reply_error (struct hkc_engine *e,
                      struct hk_peer *peer,
                      uint64_t re,
                      const char *code,
                      const char *text)
{
    struct hk_msg msg = {
        .type = HK_MSG_ERROR,
        .re = re,
        .error = { .code = code, .version = HK_PROTOCOL_VERSION, .text = text },
    };

    hk_link_send (e->link, peer, &msg);
}

void hkc_reply_rows (struct hkc_engine *e,
                     struct hk_peer *peer,
                     uint64_t re,
                     json_t *rows,
                     bool more)
{
    struct hk_msg msg = {
        .type = HK_MSG_DATA,
        .re = re,
        .data = { .rows = rows, .more = more },
    };

    hk_link_send (e->link, peer, &msg);
    json_decref (rows);
}

void hkc_reply_done (struct hkc_engine *e,
                     struct hk_peer *peer,
                     uint64_t re,
                     json_t *result,
                     const char *text)
{
    struct hk_msg msg = {
        .type = HK_MSG_DONE,
        .re = re,
        .done = { .result = result, .text = text },
    };

    hk_link_send (e->link, peer, &msg);
    json_decref (result);
}

static void answer_client (struct hkc_engine *e,
                           struct hk_peer *peer,
                           const struct hkc_ask *ask,
                           const struct hkc_answer *answer)
{
    struct hk_msg msg = { .type = HK_MSG_RECORDED, .re = ask->seq };
    json_t *result;

    if (ask->type == HK_MSG_JOB_END) {
        msg.recorded.alloc = answer->alloc;
        msg.recorded.state = answer->state;
        hk_link_send (e->link, peer, &msg);
        return;
    }
    result = json_object ();
    for (size_t i = 0; i < answer->results_count; i++)
        json_object_set_new (result,
                             answer->results[i].host,
                             json_string (answer->results[i].text));
    hkc_reply_done (e,
                    peer,
                    ask->seq,
                    result,
                    ask->type == HK_MSG_KILL && !answer->results_count
                        ? "nothing matched"
                        : NULL);
}

void hkc_answer (void *arg,
                 uint64_t token,
                 int rc,
                 const struct hkc_answer *answer,
                 const struct hk_error *err)
{
    struct hkc_engine *e = arg;
    struct hkc_ask *ask = hkc_ask_take (e, token);
    struct hk_peer *peer;

    if (!ask)
        return;
    if (ask->peer == 0)
        e->host.answered (e->host.arg, ask->seq, rc, answer, err);
    else if ((peer = hkc_peer (e, ask->peer))) {
        if (rc)
            hkc_reply_error (e,
                             peer,
                             ask->seq,
                             rc == ENOENT ? "not-found" : "bad",
                             err->text);
        else
            answer_client (e, peer, ask, answer);
    }
    free (ask);
}

/* A client will ask again; the host's own note waits for its answer. */
bool hkc_put_off (void *arg, uint64_t token)
{
    struct hkc_engine *e = arg;
    struct hkc_ask *ask = zhashx_lookup (e->asks, &token);
    char text[HK_ERROR_BYTES + 128];
    struct hk_peer *peer;

    if (!ask || ask->peer == 0)
        return !ask;
    snprintf (text,
              sizeof (text),
              "not recorded yet: %s; it is tried again until it is%s",
              e->store_error,
              ask->type == HK_MSG_JOB_END
                  ? ", and the same end said again gets the same answer"
                  : "");
    if ((peer = hkc_peer (e, ask->peer)))
        hkc_reply_error (e, peer, ask->seq, "store", text);
    free (hkc_ask_take (e, token));
    return true;
}

/* ---- followers: who only looks ---- */

static json_t *follow_row (const struct hkc_action *act)
{
    switch (act->kind) {
    case HKC_ACT_FREE:
        return json_pack ("{s:s s:I s:I s:s s:b}",
                          "event",
                          "free",
                          "n",
                          (json_int_t)act->free.n,
                          "jobid",
                          (json_int_t)act->free.jobid,
                          "ranks",
                          act->free.ranks,
                          "final",
                          act->free.final);
    case HKC_ACT_DRAIN:
    case HKC_ACT_UNDRAIN:
        return json_pack ("{s:s s:s s:s s:s}",
                          "event",
                          act->kind == HKC_ACT_DRAIN ? "drain" : "undrain",
                          "hosts",
                          act->drain.host,
                          "ranks",
                          act->drain.ranks,
                          "reason",
                          act->drain.reason);
    case HKC_ACT_HELLO_ENTRY:
        return json_pack ("{s:s s:I s:s*}",
                          "event",
                          "hello",
                          "jobid",
                          (json_int_t)act->entry.jobid,
                          "free",
                          act->entry.free);
    default:
        return NULL;
    }
}

void hkc_follow_send (struct hkc_engine *e, const struct hkc_action *act)
{
    json_t *row = follow_row (act);

    if (!row)
        return;
    for (struct hkc_ask *f = zlistx_first (e->followers); f;
         f = zlistx_next (e->followers)) {
        struct hk_peer *peer = hkc_peer (e, f->peer);
        json_t *rows = json_pack ("[O]", row);
        if (peer && rows)
            hkc_reply_rows (e, peer, f->seq, rows, true);
        else
            json_decref (rows);
    }
    json_decref (row);
}

void hkc_follow_drop (struct hkc_engine *e, uint64_t peer)
{
    struct hkc_ask *f = zlistx_first (e->followers);

    while (f) {
        if (f->peer == peer) {
            zlistx_delete (e->followers, zlistx_cursor (e->followers));
            f = zlistx_first (e->followers);
        } else
            f = zlistx_next (e->followers);
    }
}

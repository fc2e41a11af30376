/* look.c - questions of clients that change nothing, answered after a commit */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "coordinator/engine/internal.h"
#include "proto/clock.h"

enum {
    ROWS_EACH = 256,     /* in one data message */
    HISTORY_ROWS = 1000, /* of one page unless asked for fewer */
    HISTORY_MS = 5000,
    FOLLOWERS_LIMIT = 64,
};

/* ---- ping, history, follow ---- */

void hkc_ping (struct hkc_engine *e, struct hk_peer *peer, uint64_t re)
{
    struct hkc_totals t;
    const char *state = "ok", *reason = "";

    hkc_core_totals (e->core, &t);
    if (t.parts_held && !t.manager)
        state = "no-manager",
        reason = "no job manager has a session: nothing is freed";
    if (*t.recover)
        state = "recover", reason = t.recover;
    if (e->store_error[0])
        state = "store", reason = e->store_error;
    hkc_reply_done (
        e,
        peer,
        re,
        json_pack ("{s:i s:s s:I s:s s:f s:s s:I s:s s:s s:I s:I s:I s:s s:i"
                   " s:I}",
                   "version",
                   HK_PROTOCOL_VERSION,
                   "software",
                   HK_VERSION,
                   "uid",
                   (json_int_t)peer->uid,
                   "role",
                   hk_role_name (peer->role),
                   "now",
                   hk_wall (),
                   "instance",
                   hkc_store_instance (e->store),
                   "start",
                   (json_int_t)hkc_store_start (e->store),
                   "state",
                   state,
                   "reason",
                   peer->role == HK_ROLE_GUEST ? "" : reason,
                   "held",
                   (json_int_t)t.parts_held,
                   "nodes",
                   (json_int_t)t.connected,
                   "hosts",
                   (json_int_t)t.hosts,
                   "life",
                   t.life,
                   "life_state",
                   t.life_state,
                   "free_n",
                   (json_int_t)t.free_n),
        NULL);
}

static void history (struct hkc_engine *e,
                     struct hk_peer *peer,
                     const struct hk_msg *msg)
{
    const struct hk_msg_query *q = &msg->query;
    struct hkc_reader_query query = {
        .tag = hkc_ask_add (e, peer->id, msg->seq, msg->type),
        .jobid = q->jobid,
        .hosts = q->hosts ? strdup (q->hosts) : NULL,
        .limit = q->limit && q->limit < HISTORY_ROWS ? q->limit : HISTORY_ROWS,
        .after = q->after ? strtoull (q->after, NULL, 10) : 0,
        .text = peer->role != HK_ROLE_GUEST,
        .deadline_ms = hk_boot_ms () + HISTORY_MS,
    };

    if (!query.tag || (q->hosts && !query.hosts))
        free (query.hosts);
    else if (hkc_reader_ask (e->reader, &query) == 0)
        return; /* hosts are the reader's, also when it refuses */
    hkc_reply_error (
        e, peer, msg->seq, "limit", "too many questions wait; ask again");
    free (hkc_ask_take (e, query.tag));
}

static void page_send (struct hkc_engine *e,
                       struct hk_peer *peer,
                       uint64_t re,
                       const struct hkc_reader_answer *a)
{
    size_t n = json_array_size (a->rows);
    char next[32];

    for (size_t i = 0; i < n; i += ROWS_EACH) {
        json_t *some = json_array ();
        for (size_t j = i; j < n && j < i + ROWS_EACH; j++)
            json_array_append (some, json_array_get (a->rows, j));
        hkc_reply_rows (e, peer, re, some, i + ROWS_EACH < n);
    }
    snprintf (next, sizeof (next), "%llu", (unsigned long long)a->next);
    hkc_reply_done (e,
                    peer,
                    re,
                    a->next ? json_pack ("{s:s}", "next", next)
                            : json_object (),
                    NULL);
}

void hkc_reader_answers (struct hkc_engine *e)
{
    struct hkc_reader_answer a;

    while (hkc_reader_next (e->reader, &a) > 0) {
        struct hkc_ask *ask = hkc_ask_take (e, a.tag);
        struct hk_peer *peer = ask ? hkc_peer (e, ask->peer) : NULL;
        if (peer && a.rows)
            page_send (e, peer, ask->seq, &a);
        else if (peer)
            hkc_reply_error (e, peer, ask->seq, "limit", a.err.text);
        json_decref (a.rows);
        free (ask);
    }
}

static void follow (struct hkc_engine *e,
                    struct hk_peer *peer,
                    const struct hk_msg *msg)
{
    struct hkc_ask *ask;

    ask = zlistx_size (e->followers) < FOLLOWERS_LIMIT
              ? calloc (1, sizeof (*ask))
              : NULL;
    if (!ask) {
        hkc_reply_error (e, peer, msg->seq, "limit", "too many followers");
        return;
    }
    ask->peer = peer->id;
    ask->seq = msg->seq;
    zlistx_add_end (e->followers, ask);
    hkc_reply_rows (e, peer, msg->seq, json_array (), true);
}

static const struct {
    enum hk_msg_type type;
    void (*fn) (struct hkc_engine *e,
                struct hk_peer *peer,
                const struct hk_msg *msg);
} handlers[] = {
    { HK_MSG_LIST, hkc_list },   { HK_MSG_NODES, hkc_nodes },
    { HK_MSG_HISTORY, history }, { HK_MSG_FOLLOW, follow },
    { HK_MSG_LOG, hkc_log_ask },
};

void hkc_look_deaf (struct hkc_engine *e,
                    struct hk_peer *peer,
                    const struct hk_msg *msg)
{
    if (msg->type == HK_MSG_PING)
        hkc_ping (e, peer, msg->seq);
    else
        hkc_reply_error (e, peer, msg->seq, "store", e->store_error);
}

void hkc_look_put_off (void *arg, struct hkc_input *in)
{
    struct hkc_engine *e = arg;
    struct hk_peer *peer = hkc_peer (e, hkc_input_peer (in));

    if (peer)
        hkc_look_deaf (e, peer, hkc_input_msg (in));
    hkc_release (e, in);
}

void hkc_look (void *arg, struct hkc_input *in)
{
    struct hkc_engine *e = arg;
    const struct hkc_note *note = hkc_input_note (in);
    const struct hk_msg *msg = hkc_input_msg (in);
    struct hk_peer *peer = hkc_peer (e, hkc_input_peer (in));

    if (note)
        hkc_host_list (e, note->tag);
    else if (peer && msg->type == HK_MSG_PING)
        hkc_ping (e, peer, msg->seq);
    else if (peer) {
        size_t i, n = sizeof (handlers) / sizeof (handlers[0]);
        for (i = 0; i < n && handlers[i].type != msg->type; i++)
            continue;
        if (i < n)
            handlers[i].fn (e, peer, msg);
        else
            hkc_reply_error (e, peer, msg->seq, "bad", "not a request");
    }
    hkc_release (e, in);
}

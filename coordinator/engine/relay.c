/* relay.c - a client's question for the journal of nodes, there and back */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "coordinator/engine/internal.h"
#include "proto/clock.h"

enum { RELAY_MS = 15000, LOG_NODES_LIMIT = 1024 };

/* One per node that was asked; they share the count of the client's. */
struct node_log {
    struct hkc_relay *relay;
};

struct wanted {
    struct hkc_engine *e;
    const struct hk_hostlist *hosts; /* NULL: of the job */
    struct hk_hostlist *of_job;
    struct hkc_relay *relay;
    const struct hk_msg *msg;
    size_t asked;
    size_t absent;
    char absent_text[256];
};

static void relay_drop (struct hkc_relay *relay)
{
    if (relay->left == 0)
        free (relay);
}

void hkc_relay_free (void **item)
{
    struct node_log *log = *item;

    log->relay->left--;
    relay_drop (log->relay);
    free (log);
    *item = NULL;
}

static int job_host (void *arg, const struct hkc_view *view)
{
    struct wanted *w = arg;

    return hk_hostlist_append (w->of_job, view->host);
}

static int ask_node (void *arg, const struct hkc_host_view *view)
{
    struct wanted *w = arg;
    struct hk_msg msg = { .type = HK_MSG_LOG, .query = w->msg->query };
    struct hk_peer *peer;
    struct node_log *log;
    char key[64];

    if (hk_hostlist_find (w->hosts, view->host) < 0
        || w->asked >= LOG_NODES_LIMIT)
        return 0;
    if (!view->connected || !(peer = hkc_peer (w->e, view->peer))
        || !(log = calloc (1, sizeof (*log)))) {
        size_t n = strlen (w->absent_text);
        w->absent++;
        snprintf (w->absent_text + n,
                  sizeof (w->absent_text) - n,
                  "%s%s",
                  n ? "," : "",
                  view->host);
        return 0;
    }
    msg.query.hosts = NULL;
    msg.commit = hkc_store_commit_number (w->e->store);
    hk_link_send (w->e->link, peer, &msg);
    log->relay = w->relay;
    w->relay->left++;
    w->asked++;
    snprintf (key,
              sizeof (key),
              "%llu/%llu",
              (unsigned long long)peer->id,
              (unsigned long long)msg.seq);
    zhashx_update (w->e->relays, key, log);
    return 0;
}

void hkc_log_ask (struct hkc_engine *e,
                  struct hk_peer *peer,
                  const struct hk_msg *msg)
{
    struct hk_hostlist *hosts = NULL;
    struct hk_error err;
    struct wanted w = { .e = e, .msg = msg };

    if (msg->query.hosts)
        hosts = hk_hostlist_decode (msg->query.hosts, &err);
    else if ((hosts = hk_hostlist_create ())) {
        w.of_job = hosts;
        hkc_core_each_part (e->core, msg->query.jobid, job_host, &w);
        hkc_store_job_hosts (e->store, msg->query.jobid, hosts);
    }
    if (!hosts || !(w.relay = calloc (1, sizeof (*w.relay)))) {
        hkc_reply_error (
            e, peer, msg->seq, "bad", hosts ? "out of memory" : err.text);
        hk_hostlist_destroy (hosts);
        return;
    }
    w.hosts = hosts;
    w.relay->client = peer->id;
    w.relay->client_seq = msg->seq;
    w.relay->follow = msg->query.follow;
    w.relay->deadline_ms = hk_boot_ms () + RELAY_MS;
    w.relay->left = 1; /* ours, so that it lives to the end of this function */
    hkc_core_each_host (e->core, ask_node, &w);
    hk_hostlist_destroy (hosts);
    if (--w.relay->left > 0)
        return;
    if (w.absent) {
        char text[320];
        snprintf (text, sizeof (text), "no contact with %s", w.absent_text);
        hkc_reply_error (e, peer, msg->seq, "not-found", text);
    } else
        hkc_reply_error (
            e, peer, msg->seq, "not-found", "no such job or host is known");
    relay_drop (w.relay);
}

void hkc_log_back (struct hkc_engine *e,
                   struct hk_peer *node,
                   struct hk_msg *msg)
{
    struct node_log *log;
    struct hk_peer *client;
    struct hk_msg out = *msg;
    struct hkc_relay relay;
    char key[64];

    snprintf (key,
              sizeof (key),
              "%llu/%llu",
              (unsigned long long)node->id,
              (unsigned long long)msg->re);
    if (!(log = zhashx_lookup (e->relays, key)))
        return;
    relay = *log->relay;
    client = hkc_peer (e, relay.client);
    log->relay->deadline_ms = hk_boot_ms () + RELAY_MS;
    if (client) {
        out.re = relay.client_seq;
        if (out.type == HK_MSG_LOG_DATA)
            out.log_data.host = node->host;
        else
            out.log_end.host = node->host;
        hk_link_send (e->link, client, &out);
    }
    if (msg->type != HK_MSG_LOG_END)
        return;
    if (client && relay.left == 1)
        hkc_reply_done (e, client, relay.client_seq, json_object (), NULL);
    zhashx_delete (e->relays, key);
}

/* A node that does not answer must not keep the client waiting. */
void hkc_relay_tick (struct hkc_engine *e, int64_t now_ms)
{
    struct node_log *log;

    if (now_ms < e->relay_ms)
        return;
    e->relay_ms = now_ms + 1000;
    log = zhashx_first (e->relays);
    while (log) {
        struct hk_peer *client = hkc_peer (e, log->relay->client);
        bool late = now_ms > log->relay->deadline_ms && !log->relay->follow;
        if (client && !late) {
            log = zhashx_next (e->relays);
            continue;
        }
        if (client && log->relay->left == 1)
            hkc_reply_done (e,
                            client,
                            log->relay->client_seq,
                            json_object (),
                            "a node did not answer in time");
        zhashx_delete (e->relays, zhashx_cursor (e->relays));
        log = zhashx_first (e->relays);
    }
}

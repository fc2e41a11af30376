/* link_session.c - peers: from HELLO to GONE, and what is sent to them */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "proto/clock.h"
#include "proto/link_server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>
#include "proto/log.h"

enum {
    SILENT_HEARTBEATS = 3,
    SILENT_WITHOUT_HEARTBEAT_MS = 300000,
};

void hk_peer_event (struct hk_link_server *link, struct hk_link_peer *peer)
{
    if (peer->is_queued)
        return;
    peer->is_queued = true;
    peer->next = NULL;
    *link->events_end = peer;
    link->events_end = &peer->next;
}

/* The caller may hold the pointer until it calls again.  A peer that is in the
 * list of events stays there and is buried when it is taken out.
 */
static void kill_peer (struct hk_link_server *link, struct hk_link_peer *peer)
{
    peer->state = PEER_DEAD;
    if (peer->is_queued)
        return;
    peer->next = link->dead;
    link->dead = peer;
}

static void forget_key (struct hk_link_server *link, struct hk_link_peer *peer)
{
    if (zhashx_lookup (link->peers, peer->key) == peer)
        zhashx_delete (link->peers, peer->key);
    link->stats.sessions = zhashx_size (link->peers);
}

void hk_peer_leave (struct hk_link_server *link, struct hk_link_peer *peer)
{
    forget_key (link, peer);
    if (peer->state == PEER_QUEUED) {
        kill_peer (link, peer);
        return;
    }
    peer->state = PEER_LEAVING;
    hk_peer_event (link, peer);
}

void hk_peer_bury (struct hk_link_server *link)
{
    while (link->dead) {
        struct hk_link_peer *next = link->dead->next;

        free (link->dead);
        link->dead = next;
    }
}

void hk_peers_fini (struct hk_link_server *link)
{
    struct hk_link_peer *peer;

    while ((peer = link->events)) {
        link->events = peer->next;
        if (zhashx_lookup (link->peers, peer->key) == peer)
            zhashx_delete (link->peers, peer->key);
        free (peer);
    }
    for (peer = zhashx_first (link->peers); peer;
         peer = zhashx_next (link->peers))
        free (peer);
    hk_peer_bury (link);
}

/* A client whose connection is gone cannot be reached: the empty frame that
 * tells it is passed over by those who are there.
 */
static bool is_reachable (const struct hk_link_peer *peer)
{
    return hk_port_send (peer->port->socket, &peer->route, "", 0) == 0
           || errno != EHOSTUNREACH;
}

/* Clients that left; nodes are the caller's to count. */
void hk_peer_sweep (struct hk_link_server *link)
{
    bool probe = link->probe_ms && link->now_ms >= link->probe_ms;
    int64_t silent_ms = link->heartbeat_ms > 0
                            ? SILENT_HEARTBEATS * link->heartbeat_ms
                            : SILENT_WITHOUT_HEARTBEAT_MS;
    zlistx_t *gone = NULL;
    struct hk_link_peer *peer;

    for (peer = zhashx_first (link->peers); peer;
         peer = zhashx_next (link->peers)) {
        if (peer->port->is_node)
            continue;
        if (link->now_ms - peer->last_ms < silent_ms
            && (!probe || is_reachable (peer)))
            continue;
        if (!gone)
            gone = zlistx_new ();
        zlistx_add_end (gone, peer);
    }
    if (probe)
        link->probe_ms = 0;
    if (!gone)
        return;
    for (peer = zlistx_first (gone); peer; peer = zlistx_next (gone))
        hk_peer_leave (link, peer);
    zlistx_destroy (&gone);
}

int hk_route_send (struct hk_link_server *link,
                   void *socket,
                   const struct hk_route *route,
                   struct hk_msg *msg)
{
    struct hk_error err;
    size_t len;
    char *text;
    int rc, saved;

    if (!msg->seq)
        msg->seq = 1;
    text = hk_msg_encode (msg, &len, &err);
    if (!text) {
        hk_log_throttled (LOG_ERR, "encode", "not sent: %s", err.text);
        return -1;
    }
    rc = hk_port_send (socket, route, text, len);
    saved = errno;
    if (rc == 0)
        link->stats.sent++;
    else
        link->stats.dropped_full++;
    free (text);
    errno = saved;
    return rc;
}

void hk_route_error (struct hk_link_server *link,
                     void *socket,
                     const struct hk_route *route,
                     uint64_t re,
                     const char *code,
                     const char *text)
{
    struct hk_msg msg = { .type = HK_MSG_ERROR, .re = re };

    msg.error.code = code;
    msg.error.version = HK_PROTOCOL_VERSION;
    msg.error.text = text;
    hk_route_send (link, socket, route, &msg);
}

void hk_route_rehello (struct hk_link_server *link,
                       void *socket,
                       const struct hk_route *route,
                       const char *key)
{
    struct hk_msg msg = { .type = HK_MSG_REHELLO };

    if (!hk_source_may_rehello (link, key))
        return;
    link->stats.rehellos++;
    msg.rehello.instance = link->instance;
    msg.rehello.start = link->start;
    hk_route_send (link, socket, route, &msg);
}

int hk_link_send (struct hk_link_server *link,
                  struct hk_peer *pub,
                  struct hk_msg *msg)
{
    struct hk_link_peer *peer = (struct hk_link_peer *)pub;

    if (peer->state != PEER_WELCOME) {
        errno = EHOSTUNREACH;
        return -1;
    }
    msg->seq = ++peer->seq;
    msg->session = pub->session;
    msg->start = link->start;
    return hk_route_send (link, peer->port->socket, &peer->route, msg);
}

void hk_link_welcome (struct hk_link_server *link,
                      struct hk_peer *pub,
                      uint64_t commit)
{
    struct hk_link_peer *peer = (struct hk_link_peer *)pub;
    struct hk_msg msg = { .type = HK_MSG_WELCOME, .re = peer->hello_seq };

    if (peer->state != PEER_OFFERED)
        return;
    peer->state = PEER_WELCOME;
    msg.welcome.version = HK_PROTOCOL_VERSION;
    msg.welcome.instance = link->instance;
    msg.welcome.start = link->start;
    msg.welcome.commit = commit;
    msg.welcome.uid = pub->uid;
    msg.welcome.now = hk_wall ();
    msg.welcome.heartbeat_ms = link->heartbeat_ms;
    msg.welcome.reconcile_ms = link->reconcile_ms;
    msg.welcome.role = hk_role_name (pub->role);
    msg.welcome.software = HK_VERSION;
    hk_link_send (link, pub, &msg);
}

void hk_link_refuse (struct hk_link_server *link,
                     struct hk_peer *pub,
                     const char *code,
                     const char *text)
{
    struct hk_link_peer *peer = (struct hk_link_peer *)pub;

    if (peer->state != PEER_OFFERED)
        return;
    hk_route_error (
        link, peer->port->socket, &peer->route, peer->hello_seq, code, text);
    hk_link_close (link, pub);
}

void hk_link_close (struct hk_link_server *link, struct hk_peer *pub)
{
    struct hk_link_peer *peer = (struct hk_link_peer *)pub;

    if (peer->state == PEER_DEAD)
        return;
    forget_key (link, peer);
    kill_peer (link, peer);
}

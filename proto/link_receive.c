/* link_receive.c - what comes to the coordinator, one event after the other */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "proto/link_server.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>
#include "proto/log.h"

enum {
    CREDIT = 64, /* messages between looks at the other sockets */
    STEPS = 512, /* frames in one call that the caller never sees */
};

/* All but the messages: handshakes, connections, answers of MUNGE, time. */
static void serve (struct hk_link_server *link)
{
    uint64_t count;

    link->credit = CREDIT;
    hk_zap_answer (link);
    hk_port_watch (link, &link->node);
    hk_port_watch (link, &link->client);
    if (link->client.seen_closed && !link->probe_ms)
        link->probe_ms = link->now_ms + HK_PROBE_MS;
    link->client.seen_closed = false;
    hk_key_questions (link);
    if (read (link->pool_fd, &count, sizeof (count)) > 0
        || link->node_lane.count || link->client_lane.count
        || link->slow_lane.count)
        hk_jobs_collect (link);
    if (link->now_ms - link->swept_ms >= HK_SWEEP_MS
        || (link->probe_ms && link->now_ms >= link->probe_ms)) {
        link->swept_ms = link->now_ms;
        hk_peer_sweep (link);
        hk_source_sweep (link);
    }
}

/* The next thing that waits to be told; NULL if there is none. */
static struct hk_link_peer *take_event (struct hk_link_server *link,
                                        enum hk_link_event *event)
{
    struct hk_link_peer *peer;

    while ((peer = link->events)) {
        link->events = peer->next;
        if (!link->events)
            link->events_end = &link->events;
        peer->is_queued = false;
        if (peer->state == PEER_QUEUED) {
            peer->state = PEER_OFFERED;
            *event = HK_LINK_HELLO;
            return peer;
        }
        if (peer->state == PEER_LEAVING) {
            *event = HK_LINK_GONE;
            peer->state = PEER_DEAD;
            peer->next = link->dead;
            link->dead = peer;
            return peer;
        }
        free (peer);
    }
    return NULL;
}

/* 0: routing id and text were read; 1: passed over; -1: nothing there. */
static int receive (struct hk_port *port,
                    struct hk_route *route,
                    zmq_msg_t *frame)
{
    int n = zmq_recv (
        port->socket, route->id, sizeof (route->id), ZMQ_DONTWAIT);

    if (n < 0 || zmq_msg_recv (frame, port->socket, ZMQ_DONTWAIT) < 0)
        return -1;
    route->size = (unsigned char)n;
    if (n <= (int)sizeof (route->id) && !zmq_msg_more (frame))
        return 0;
    while (zmq_msg_more (frame)
           && zmq_msg_recv (frame, port->socket, ZMQ_DONTWAIT) >= 0)
        ;
    return 1;
}

static void bad (struct hk_link_server *link,
                 struct hk_port *port,
                 const struct hk_route *route,
                 const char *key,
                 const char *address,
                 const struct hk_error *err)
{
    link->stats.dropped_bad++;
    hk_log_throttled (LOG_WARNING, address, "%s: %s", address, err->text);
    if (hk_source_may_rehello (link, key))
        hk_route_error (link, port->socket, route, 0, "bad", err->text);
}

/* True if the caller gets the message. */
static bool pass (struct hk_link_server *link,
                  struct hk_link_peer *peer,
                  struct hk_msg *msg)
{
    if (!hk_msg_allowed (msg->type, peer->pub.role)) {
        char text[96];

        link->stats.dropped_denied++;
        snprintf (text,
                  sizeof (text),
                  "%s is not for a %s",
                  hk_msg_type_name (msg->type),
                  hk_role_name (peer->pub.role));
        hk_log_throttled (LOG_WARNING,
                          peer->pub.address,
                          "%s uid %u: %s",
                          peer->pub.address,
                          peer->pub.uid,
                          text);
        hk_route_error (
            link, peer->port->socket, &peer->route, msg->seq, "denied", text);
        return false;
    }
    if (!msg->session || strcmp (msg->session, peer->pub.session) != 0) {
        hk_route_rehello (link, peer->port->socket, &peer->route, peer->key);
        return false;
    }
    peer->last_ms = link->now_ms;
    return true;
}

/* One frame: true if *peer and *msg are for the caller. */
static bool dispatch (struct hk_link_server *link,
                      struct hk_port *port,
                      const struct hk_route *route,
                      zmq_msg_t *frame,
                      struct hk_link_peer **peer,
                      struct hk_msg *msg)
{
    const char *key = zmq_msg_gets (frame, "User-Id");
    struct hk_link_peer *found;
    struct hk_error err;
    bool is_bound;

    if (!key || strlen (key) != HK_KEY_TEXT_BYTES - 1) {
        link->stats.dropped_bad++;
        return false;
    }
    found = zhashx_lookup (link->peers, key);
    /* the key on another connection is not the peer: it says HELLO first */
    is_bound = found && found->port == port && found->route.size == route->size
               && memcmp (found->route.id, route->id, route->size) == 0;
    if (hk_msg_decode (
            zmq_msg_data (frame),
            zmq_msg_size (frame),
            hk_msg_max_bytes (is_bound ? found->pub.role : HK_ROLE_NONE),
            msg,
            &err)
        < 0) {
        bad (link, port, route, key, hk_port_address (frame), &err);
        return false;
    }
    if (msg->type == HK_MSG_HELLO) {
        hk_hello_submit (link, port, route, key, hk_port_address (frame), msg);
    } else if (!is_bound) {
        hk_route_rehello (link, port->socket, route, key);
    } else if (found->state == PEER_WELCOME && pass (link, found, msg)) {
        *peer = found;
        return true;
    }
    hk_msg_fini (msg);
    return false;
}

/* In turn; one that was empty not again before the next look at the others:
 * each look at an empty socket is a call to the kernel.
 */
static struct hk_port *next_port (struct hk_link_server *link)
{
    link->client_turn = link->node.is_empty
                        || (!link->client_turn && !link->client.is_empty);
    return link->client_turn ? &link->client : &link->node;
}

int hk_link_server_next (struct hk_link_server *link,
                         int64_t now_ms,
                         enum hk_link_event *event,
                         struct hk_peer **peer,
                         struct hk_msg *msg)
{
    struct hk_link_peer *found;
    zmq_msg_t frame;
    bool served = false;
    int rc = 0;

    link->now_ms = now_ms;
    hk_peer_bury (link);
    zmq_msg_init (&frame);
    for (int i = 0; i < STEPS && rc == 0; i++) {
        struct hk_port *port;
        struct hk_route route;
        int got;

        if (link->credit-- <= 0) {
            serve (link);
            served = true;
            link->node.is_empty = link->client.is_empty = false;
        }
        if (link->events && (found = take_event (link, event))) {
            *peer = &found->pub;
            rc = 1;
            break;
        }
        port = next_port (link);
        got = port->socket ? receive (port, &route, &frame) : -1;
        if (got < 0) {
            port->is_empty = true;
            if (!link->node.is_empty || !link->client.is_empty)
                continue;
            if (served)
                break;
            link->credit = 0;
            continue;
        }
        link->stats.received++;
        if (got > 0) {
            const char *address = hk_port_address (&frame);

            link->stats.dropped_bad++;
            hk_log_throttled (
                LOG_WARNING, address, "%s: more than one frame", address);
        } else if (dispatch (link, port, &route, &frame, &found, msg)) {
            *event = HK_LINK_MESSAGE;
            *peer = &found->pub;
            rc = 1;
        }
    }
    zmq_msg_close (&frame);
    if (rc == 0)
        link->node.is_empty = link->client.is_empty = false;
    return rc;
}

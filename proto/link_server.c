/* link_server.c - the coordinator's end of the link: its life and its loop */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "proto/link_server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <zmq.h>
#include "proto/log.h"

enum {
    POOL_THREADS = 4,
    CREDIT = 64, /* messages between looks at the other sockets */
    STEPS = 512, /* frames in one call that the caller never sees */
    SWEEP_MS = 1000,
    PROBE_MS = 100,
    SOCKETS_MAX = 1023,
};

static int copy_text (char **to, const char *from)
{
    char *copy = from ? strdup (from) : NULL;

    if (from && !copy)
        return -1;
    free (*to);
    *to = copy;
    return 0;
}

/* What may change while the server runs. */
static int take_options (struct hk_link_server *link,
                         const struct hk_link_conf *conf)
{
    size_t count = (size_t)conf->admin_uids_count;
    uid_t *uids = calloc (count ? count : 1, sizeof (*uids));

    if (!uids || copy_text (&link->munge_socket, conf->munge_socket) < 0) {
        free (uids);
        return -1;
    }
    if (count)
        memcpy (uids, conf->admin_uids, count * sizeof (*uids));
    free (link->admin_uids);
    link->admin_uids = uids;
    link->admin_uids_count = conf->admin_uids_count;
    link->manager_uid = conf->manager_uid;
    link->own_uid = conf->own_uid;
    link->guest_access = conf->guest_access;
    link->heartbeat_ms = conf->heartbeat_ms;
    link->reconcile_ms = conf->reconcile_ms;
    link->node.limit = conf->node_connections;
    link->client.limit = conf->client_connections;
    return 0;
}

static void free_source (void **item)
{
    free (*item);
    *item = NULL;
}

static struct hk_link_server *make (const struct hk_link_conf *conf,
                                    struct hk_error *err)
{
    struct hk_link_server *link = calloc (1, sizeof (*link));

    if (!link) {
        hk_error_set (err, ENOMEM, "out of memory");
        return NULL;
    }
    link->pool_fd = -1;
    link->events_end = &link->events;
    link->node.is_node = true;
    link->ports[0] = conf->node_port;
    link->ports[1] = conf->client_port;
    link->ports[2] = conf->key_port;
    link->start = conf->start;
    link->peers = zhashx_new ();
    link->sources = zhashx_new ();
    /* peers bring their key with them */
    zhashx_set_key_duplicator (link->peers, NULL);
    zhashx_set_key_destructor (link->peers, NULL);
    zhashx_set_destructor (link->sources, free_source);
    if (strlen (conf->instance) != HK_ID_BYTES - 1) {
        hk_error_set (err, EINVAL, "link without an instance");
        goto error;
    }
    memcpy (link->instance, conf->instance, HK_ID_BYTES);
    if (copy_text (&link->bind, conf->bind ? conf->bind : "*") < 0
        || copy_text (&link->state_dir, conf->state_dir) < 0
        || take_options (link, conf) < 0) {
        hk_error_set (err, ENOMEM, "out of memory");
        goto error;
    }
    return link;
error:
    hk_link_server_destroy (link);
    return NULL;
}

static int open_pool (struct hk_link_server *link, struct hk_error *err)
{
    link->pool_fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (link->pool_fd < 0)
        return hk_error_errno (err, errno, "eventfd");
    link->pool = hk_pool_create (POOL_THREADS, err);
    if (!link->pool)
        return -1;
    hk_pool_lane_init (&link->node_lane, link->pool, 0, link->pool_fd);
    hk_pool_lane_init (&link->client_lane, link->pool, 1, link->pool_fd);
    hk_pool_lane_init (&link->slow_lane, link->pool, 2, link->pool_fd);
    return 0;
}

static int open_sockets (struct hk_link_server *link,
                         bool client_only,
                         const char *secret,
                         struct hk_error *err)
{
    link->context = zmq_ctx_new ();
    if (!link->context)
        return hk_error_errno (err, errno, "ZeroMQ context");
    zmq_ctx_set (link->context, ZMQ_MAX_SOCKETS, SOCKETS_MAX);
    /* the handler must be there before a port is */
    if (hk_zap_open (link, err) < 0
        || hk_port_open (link, &link->client, secret, err) < 0
        || (!client_only && hk_port_open (link, &link->node, secret, err) < 0))
        return -1;
    link->key_socket = hk_key_socket_open (link, err);
    return link->key_socket ? 0 : -1;
}

struct hk_link_server *hk_link_server_create (const struct hk_link_conf *conf,
                                              struct hk_error *err)
{
    struct hk_link_server *link = make (conf, err);
    char secret[HK_KEY_TEXT_BYTES] = "";
    int rc;

    if (!link)
        return NULL;
    rc = hk_key_load (link, secret, err);
    if (rc == 0)
        rc = open_pool (link, err);
    if (rc == 0)
        rc = open_sockets (link, conf->client_only, secret, err);
    explicit_bzero (secret, sizeof (secret));
    if (rc < 0) {
        int saved = errno;

        hk_link_server_destroy (link);
        errno = saved;
        return NULL;
    }
    return link;
}

void hk_link_server_destroy (struct hk_link_server *link)
{
    if (!link)
        return;
    hk_jobs_fini (link);
    hk_pool_destroy (link->pool);
    if (link->pool_fd >= 0)
        close (link->pool_fd);
    hk_port_close (&link->node);
    hk_port_close (&link->client);
    if (link->key_socket)
        zmq_close (link->key_socket);
    if (link->zap)
        zmq_close (link->zap);
    if (link->context)
        zmq_ctx_term (link->context);
    hk_peers_fini (link);
    zhashx_destroy (&link->peers);
    zhashx_destroy (&link->sources);
    free (link->admin_uids);
    free (link->munge_socket);
    free (link->state_dir);
    free (link->bind);
    free (link);
}

int hk_link_server_reload (struct hk_link_server *link,
                           const struct hk_link_conf *conf,
                           struct hk_error *err)
{
    if (strcmp (link->bind, conf->bind ? conf->bind : "*") != 0
        || link->ports[0] != conf->node_port
        || link->ports[1] != conf->client_port
        || link->ports[2] != conf->key_port)
        return hk_error_set (
            err, EINVAL, "another address or port needs a restart");
    /* threads of the pool read the path of munge's socket */
    if (strcmp (link->munge_socket ? link->munge_socket : "",
                conf->munge_socket ? conf->munge_socket : "")
        != 0)
        return hk_error_set (err, EINVAL, "munge-socket needs a restart");
    if (take_options (link, conf) < 0)
        return hk_error_set (err, ENOMEM, "out of memory");
    return 0;
}

static uint16_t port_of (void *socket)
{
    char endpoint[320];
    size_t size = sizeof (endpoint);
    const char *colon;

    if (!socket
        || zmq_getsockopt (socket, ZMQ_LAST_ENDPOINT, endpoint, &size) < 0)
        return 0;
    colon = strrchr (endpoint, ':');
    return colon ? (uint16_t)strtoul (colon + 1, NULL, 10) : 0;
}

void hk_link_server_ports (const struct hk_link_server *link,
                           uint16_t *node,
                           uint16_t *client,
                           uint16_t *key)
{
    *node = port_of (link->node.socket);
    *client = port_of (link->client.socket);
    *key = port_of (link->key_socket);
}

void hk_link_server_stats (const struct hk_link_server *link,
                           struct hk_link_stats *stats)
{
    *stats = link->stats;
}

int hk_link_server_wait (struct hk_link_server *link, int fd, int timeout_ms)
{
    zmq_pollitem_t items[8];
    int count = 0;
    void *const sockets[] = {
        link->node.socket, link->client.socket, link->key_socket,
        link->zap,         link->node.monitor,  link->client.monitor,
    };
    int rc;

    if (link->events)
        return 1;
    for (size_t i = 0; i < sizeof (sockets) / sizeof (sockets[0]); i++)
        if (sockets[i])
            items[count++] = (zmq_pollitem_t){ sockets[i], 0, ZMQ_POLLIN, 0 };
    items[count++] = (zmq_pollitem_t){ NULL, link->pool_fd, ZMQ_POLLIN, 0 };
    if (fd >= 0)
        items[count++] = (zmq_pollitem_t){ NULL, fd, ZMQ_POLLIN, 0 };
    /* silent clients and closed listeners are looked at in between */
    if (timeout_ms < 0 || timeout_ms > SWEEP_MS)
        timeout_ms = SWEEP_MS;
    if (link->probe_ms && timeout_ms > PROBE_MS)
        timeout_ms = PROBE_MS;
    rc = zmq_poll (items, count, timeout_ms);
    if (rc < 0)
        return errno == EINTR ? 0 : -1;
    return rc > 0 ? 1 : 0;
}

/* All but the messages: handshakes, connections, answers of MUNGE, time. */
static void serve (struct hk_link_server *link)
{
    uint64_t count;

    link->credit = CREDIT;
    hk_zap_answer (link);
    hk_port_watch (link, &link->node);
    hk_port_watch (link, &link->client);
    if (link->client.seen_closed && !link->probe_ms)
        link->probe_ms = link->now_ms + PROBE_MS;
    link->client.seen_closed = false;
    hk_key_questions (link);
    if (read (link->pool_fd, &count, sizeof (count)) > 0
        || link->node_lane.count || link->client_lane.count
        || link->slow_lane.count)
        hk_jobs_collect (link);
    if (link->now_ms - link->swept_ms >= SWEEP_MS
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

int hk_link_server_next (struct hk_link_server *link,
                         int64_t now_ms,
                         enum hk_link_event *event,
                         struct hk_peer **peer,
                         struct hk_msg *msg)
{
    struct hk_link_peer *found;
    zmq_msg_t frame;
    bool served = false;
    int empty = 0;
    int rc = 0;

    link->now_ms = now_ms;
    hk_peer_bury (link);
    zmq_msg_init (&frame);
    for (int i = 0; i < STEPS && rc == 0; i++) {
        struct hk_port *port = link->client_turn ? &link->client : &link->node;
        struct hk_route route;
        int got;

        if (link->credit-- <= 0) {
            serve (link);
            served = true;
            empty = 0;
        }
        if (link->events && (found = take_event (link, event))) {
            *peer = &found->pub;
            rc = 1;
            break;
        }
        got = port->socket ? receive (port, &route, &frame) : -1;
        link->client_turn = !link->client_turn;
        if (got < 0) {
            if (++empty < 2)
                continue;
            if (served)
                break;
            link->credit = 0;
            continue;
        }
        empty = 0;
        link->stats.received++;
        if (got > 0) {
            link->stats.dropped_bad++;
        } else if (dispatch (link, port, &route, &frame, &found, msg)) {
            *event = HK_LINK_MESSAGE;
            *peer = &found->pub;
            rc = 1;
        }
    }
    zmq_msg_close (&frame);
    return rc;
}

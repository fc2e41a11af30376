/* link_port.c - the listeners: options, count of connections, sending */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "proto/link_server.h"

#include <errno.h>
#include <linux/filter.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <zmq.h>
#include "proto/link_socket.h"
#include "proto/log.h"

enum {
    BACKLOG = 4096, /* with less, thousands that connect at once retry */
    NODE_HWM = 100, /* per peer */
    CLIENT_RECV_HWM = 16,
    CLIENT_SEND_HWM = 1000, /* pages of rows */
    HANDSHAKE_MS = 5000,
};

static int set_common (void *socket, struct hk_error *err)
{
    /* no heartbeats from here: with ten thousand peers they take most of a
     * core; silence is found by the peers' messages and by TCP */
    static const struct hk_socket_option options[] = {
        { ZMQ_BACKLOG, BACKLOG },
        { ZMQ_ROUTER_MANDATORY, 1 },
        { ZMQ_ROUTER_HANDOVER, 0 },
        { ZMQ_HANDSHAKE_IVL, HANDSHAKE_MS },
    };

    if (hk_socket_set_common (socket, err) < 0)
        return -1;
    return hk_socket_set (
        socket, options, sizeof (options) / sizeof (options[0]), err);
}

static int set_limits (void *socket,
                       int receive_hwm,
                       int send_hwm,
                       int64_t max_bytes,
                       struct hk_error *err)
{
    const struct hk_socket_option options[] = {
        { ZMQ_RCVHWM, receive_hwm },
        { ZMQ_SNDHWM, send_hwm },
    };

    if (hk_socket_set (socket, options, 2, err) < 0)
        return -1;
    return hk_socket_set_limit (socket, max_bytes, err);
}

static int bind_socket (void *socket,
                        const char *address,
                        uint16_t port,
                        struct hk_error *err)
{
    char endpoint[HK_ENDPOINT_BYTES];

    hk_socket_endpoint (endpoint, address, port);
    if (zmq_bind (socket, endpoint) < 0)
        return hk_error_errno (err, errno, "%s", endpoint);
    return 0;
}

static int set_curve (void *socket, const char *secret, struct hk_error *err)
{
    static const struct hk_socket_option server = { ZMQ_CURVE_SERVER, 1 };

    if (hk_socket_set (socket, &server, 1, err) < 0)
        return -1;
    if (zmq_setsockopt (socket, ZMQ_CURVE_SECRETKEY, secret, HK_KEY_TEXT_BYTES)
            < 0
        || zmq_setsockopt (socket, ZMQ_ZAP_DOMAIN, "flux-hk", 7) < 0)
        return hk_error_errno (err, errno, "CURVE key");
    return 0;
}

/* Events are few and must not be lost nor held up: no limit on their queue. */
static int open_monitor (struct hk_link_server *link,
                         struct hk_port *port,
                         struct hk_error *err)
{
    const char *name = port->is_node ? "inproc://node" : "inproc://client";
    static const struct hk_socket_option options[] = {
        { ZMQ_LINGER, 0 },
        { ZMQ_RCVHWM, 0 },
    };

    if (zmq_socket_monitor (port->socket,
                            name,
                            ZMQ_EVENT_LISTENING | ZMQ_EVENT_ACCEPTED
                                | ZMQ_EVENT_DISCONNECTED)
        < 0)
        return hk_error_errno (err, errno, "monitor");
    port->monitor = zmq_socket (link->context, ZMQ_PAIR);
    if (!port->monitor)
        return hk_error_errno (err, errno, "monitor");
    if (hk_socket_set (port->monitor, options, 2, err) < 0)
        return -1;
    if (zmq_connect (port->monitor, name) < 0)
        return hk_error_errno (err, errno, "monitor");
    return 0;
}

int hk_port_open (struct hk_link_server *link,
                  struct hk_port *port,
                  const char *secret,
                  struct hk_error *err)
{
    int rc;

    port->socket = zmq_socket (link->context, ZMQ_ROUTER);
    if (!port->socket)
        return hk_error_errno (err, errno, "socket");
    if (set_common (port->socket, err) < 0
        || set_curve (port->socket, secret, err) < 0)
        return -1;
    if (port->is_node)
        rc = set_limits (
            port->socket, NODE_HWM, NODE_HWM, HK_MSG_NODE_BYTES, err);
    else
        rc = set_limits (port->socket,
                         CLIENT_RECV_HWM,
                         CLIENT_SEND_HWM,
                         HK_MSG_OWNER_BYTES,
                         err);
    if (rc < 0 || open_monitor (link, port, err) < 0)
        return -1;
    port->listen_fd = -1;
    return bind_socket (
        port->socket, link->bind, link->ports[port->is_node ? 0 : 1], err);
}

void *hk_key_socket_open (struct hk_link_server *link, struct hk_error *err)
{
    void *socket = zmq_socket (link->context, ZMQ_ROUTER);

    if (!socket) {
        hk_error_errno (err, errno, "socket");
        return NULL;
    }
    if (set_common (socket, err) < 0
        || set_limits (socket, NODE_HWM, NODE_HWM, HK_MSG_UNBOUND_BYTES, err)
               < 0
        || bind_socket (socket, link->bind, link->ports[2], err) < 0) {
        int saved = errno;

        zmq_close (socket);
        errno = saved;
        return NULL;
    }
    return socket;
}

void hk_port_close (struct hk_port *port)
{
    if (port->monitor)
        zmq_close (port->monitor);
    if (port->socket) {
        zmq_socket_monitor (port->socket, NULL, 0);
        zmq_close (port->socket);
    }
    port->monitor = port->socket = NULL;
}

/* One event: a frame {event, value} and a frame with the address. */
static int read_event (void *monitor, int32_t *value)
{
    unsigned char event[6];
    char address[HK_ENDPOINT_BYTES];
    uint16_t number;

    if (zmq_recv (monitor, event, sizeof (event), ZMQ_DONTWAIT) < 0)
        return -1;
    if (zmq_recv (monitor, address, sizeof (address), ZMQ_DONTWAIT) < 0)
        return -1;
    memcpy (&number, event, sizeof (number));
    memcpy (value, event + sizeof (number), sizeof (*value));
    return number;
}

/* zmq_unbind would end every connection that the listener accepted.  A filter
 * that takes nothing keeps new ones out and leaves the others alone; those
 * which the kernel completed before (BACKLOG at most) still come.
 */
static int close_door (int fd)
{
    struct sock_filter nothing = BPF_STMT (BPF_RET | BPF_K, 0);
    struct sock_fprog program = { .len = 1, .filter = &nothing };

    return setsockopt (
        fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof (program));
}

static int open_door (int fd)
{
    int unused = 0;

    return setsockopt (
        fd, SOL_SOCKET, SO_DETACH_FILTER, &unused, sizeof (unused));
}

static void check_limit (struct hk_port *port)
{
    bool close = port->connections >= port->limit;
    const char *who = port->is_node ? "nodes" : "clients";

    if (port->listen_fd < 0 || port->is_closed == close)
        return;
    if ((close ? close_door (port->listen_fd) : open_door (port->listen_fd))
        < 0) {
        hk_log_throttled (
            LOG_ERR, who, "port for %s cannot be kept at its limit: %m", who);
        return;
    }
    port->is_closed = close;
    hk_log (close ? LOG_WARNING : LOG_NOTICE,
            "port for %s %s at %" PRIu64 " connections, limit %" PRIu32,
            who,
            close ? "closed" : "open again",
            port->connections,
            port->limit);
}

void hk_port_watch (struct hk_link_server *link, struct hk_port *port)
{
    int event;
    int32_t value;

    if (!port->socket)
        return;
    while ((event = read_event (port->monitor, &value)) >= 0) {
        if (event == ZMQ_EVENT_LISTENING) {
            port->listen_fd = value;
        } else if (event == ZMQ_EVENT_ACCEPTED) {
            port->connections++;
        } else if (event == ZMQ_EVENT_DISCONNECTED) {
            if (port->connections > 0)
                port->connections--;
            port->seen_closed = true;
        }
    }
    check_limit (port);
    if (port->is_node)
        link->stats.connections_node = port->connections;
    else
        link->stats.connections_client = port->connections;
}

const char *hk_port_address (zmq_msg_t *frame)
{
    const char *address = zmq_msg_gets (frame, "Peer-Address");

    if (!address)
        return "?";
    /* the listener is of IPv6, also for those who come by IPv4 */
    if (strncmp (address, "::ffff:", 7) == 0 && strchr (address, '.'))
        return address + 7;
    return address;
}

int hk_port_send (void *socket,
                  const struct hk_route *route,
                  const void *data,
                  size_t len)
{
    if (zmq_send (socket, route->id, route->size, ZMQ_SNDMORE | ZMQ_DONTWAIT)
        < 0)
        return -1;
    return zmq_send (socket, data, len, ZMQ_DONTWAIT) < 0 ? -1 : 0;
}

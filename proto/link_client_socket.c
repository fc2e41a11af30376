/* link_client_socket.c - the client's sockets and descriptors */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "proto/link_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <zmq.h>
#include "proto/link_socket.h"
#include "proto/log.h"

enum {
    RECONNECT_MS = 1000,
    RECONNECT_MAX_MS = 15000,
    CONNECT_MS = 15000,
    HANDSHAKE_MS = 30000, /* a head that thousands come to at once is slow */
    SEND_HWM = 100,
};

static int watch (struct hk_link_client *c, int fd)
{
    struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

    if (c->lean)
        return 0;
    return epoll_ctl (c->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

static int fd_of (void *socket)
{
    int fd = -1;
    size_t size = sizeof (fd);

    return zmq_getsockopt (socket, ZMQ_FD, &fd, &size) < 0 ? -1 : fd;
}

int hk_client_open_fds (struct hk_link_client *c, struct hk_error *err)
{
    if (c->lean)
        return 0;
    c->epoll_fd = epoll_create1 (EPOLL_CLOEXEC);
    c->event_fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (c->epoll_fd < 0 || c->event_fd < 0 || watch (c, c->event_fd) < 0)
        return hk_error_errno (err, errno, "epoll");
    return 0;
}

void hk_client_close_fds (struct hk_link_client *c)
{
    if (c->epoll_fd >= 0)
        close (c->epoll_fd);
    if (c->event_fd >= 0)
        close (c->event_fd);
    c->epoll_fd = c->event_fd = -1;
}

void hk_client_poke (struct hk_link_client *c)
{
    static const uint64_t one = 1;

    if (c->event_fd < 0 || c->poked)
        return;
    c->poked = write (c->event_fd, &one, sizeof (one)) > 0;
}

/* Also what the pool wrote: its jobs are looked at before. */
void hk_client_unpoke (struct hk_link_client *c)
{
    uint64_t count;

    if (c->event_fd >= 0 && read (c->event_fd, &count, sizeof (count)) < 0
        && errno != EAGAIN)
        hk_log_throttled (LOG_ERR, "eventfd", "eventfd: %m");
    c->poked = false;
}

static void close_socket (struct hk_link_client *c, void **socket)
{
    int fd;

    if (!*socket)
        return;
    fd = fd_of (*socket);
    /* libzmq closes it later, from another thread */
    if (!c->lean && fd >= 0)
        epoll_ctl (c->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
    zmq_close (*socket);
    *socket = NULL;
}

void hk_client_close_key_socket (struct hk_link_client *c)
{
    close_socket (c, &c->key_socket);
}

void hk_client_close_socket (struct hk_link_client *c)
{
    close_socket (c, &c->monitor);
    if (c->socket && !c->lean)
        zmq_socket_monitor (c->socket, NULL, 0);
    close_socket (c, &c->socket);
}

static int set_options (void *socket, struct hk_error *err)
{
    /* IMMEDIATE: nothing is queued for a connection that is not there */
    static const struct hk_socket_option options[] = {
        { ZMQ_IMMEDIATE, 1 },
        { ZMQ_SNDHWM, SEND_HWM },
        { ZMQ_RECONNECT_IVL, RECONNECT_MS },
        { ZMQ_RECONNECT_IVL_MAX, RECONNECT_MAX_MS },
        { ZMQ_CONNECT_TIMEOUT, CONNECT_MS },
        { ZMQ_HANDSHAKE_IVL, HANDSHAKE_MS },
    };

    if (hk_socket_set_common (socket, err) < 0
        || hk_socket_set (
               socket, options, sizeof (options) / sizeof (options[0]), err)
               < 0)
        return -1;
    return hk_socket_set_limit (socket, HK_MSG_OWNER_BYTES, err);
}

static int connect_to (struct hk_link_client *c,
                       void *socket,
                       uint16_t port,
                       struct hk_error *err)
{
    const char *host = hk_hostlist_nth (c->head, c->head_at);
    char endpoint[HK_ENDPOINT_BYTES];

    hk_socket_endpoint (endpoint, host, port);
    if (zmq_connect (socket, endpoint) < 0)
        return hk_error_errno (err, errno, "%s", endpoint);
    if (watch (c, fd_of (socket)) < 0)
        return hk_error_errno (err, errno, "epoll");
    return 0;
}

int hk_client_open_key_socket (struct hk_link_client *c, struct hk_error *err)
{
    int zero = 0;

    c->key_socket = zmq_socket (c->context, ZMQ_DEALER);
    if (!c->key_socket)
        return hk_error_errno (err, errno, "socket");
    if (set_options (c->key_socket, err) < 0)
        return -1;
    /* one question waits for the connection */
    zmq_setsockopt (c->key_socket, ZMQ_IMMEDIATE, &zero, sizeof (zero));
    return connect_to (c, c->key_socket, c->key_port, err);
}

static int open_monitor (struct hk_link_client *c, struct hk_error *err)
{
    char name[64];
    int zero = 0;

    /* the address is the context's, which may be shared */
    snprintf (name, sizeof (name), "inproc://monitor-%p", (void *)c);
    if (zmq_socket_monitor (
            c->socket,
            name,
            ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL
                | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL
                | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH | ZMQ_EVENT_DISCONNECTED)
        < 0)
        return hk_error_errno (err, errno, "monitor");
    c->monitor = zmq_socket (c->context, ZMQ_PAIR);
    if (!c->monitor)
        return hk_error_errno (err, errno, "monitor");
    zmq_setsockopt (c->monitor, ZMQ_LINGER, &zero, sizeof (zero));
    if (zmq_connect (c->monitor, name) < 0 || watch (c, fd_of (c->monitor)) < 0)
        return hk_error_errno (err, errno, "monitor");
    return 0;
}

int hk_client_open_socket (struct hk_link_client *c, struct hk_error *err)
{
    c->socket = zmq_socket (c->context, ZMQ_DEALER);
    if (!c->socket)
        return hk_error_errno (err, errno, "socket");
    if (set_options (c->socket, err) < 0)
        return -1;
    if (zmq_setsockopt (
            c->socket, ZMQ_CURVE_SERVERKEY, c->server.key, HK_KEY_TEXT_BYTES)
            < 0
        || zmq_setsockopt (
               c->socket, ZMQ_CURVE_PUBLICKEY, c->who.pub, HK_KEY_TEXT_BYTES)
               < 0
        || zmq_setsockopt (
               c->socket, ZMQ_CURVE_SECRETKEY, c->secret_key, HK_KEY_TEXT_BYTES)
               < 0)
        return hk_error_errno (err, errno, "CURVE key");
    if (!c->lean && open_monitor (c, err) < 0)
        return -1;
    return connect_to (c, c->socket, c->port, err);
}

/* Without a monitor: the queue takes messages only while there is a
 * connection.
 */
static enum hk_client_news lean_news (struct hk_link_client *c)
{
    int events = 0;
    size_t size = sizeof (events);

    if (zmq_getsockopt (c->socket, ZMQ_EVENTS, &events, &size) < 0)
        return CLIENT_NEWS_NONE;
    c->is_empty = !(events & ZMQ_POLLIN);
    if (c->state == CLIENT_CONNECT && (events & ZMQ_POLLOUT))
        return CLIENT_NEWS_SHAKEN;
    if (c->state > CLIENT_CONNECT && !(events & ZMQ_POLLOUT))
        return CLIENT_NEWS_LOST;
    return CLIENT_NEWS_NONE;
}

enum hk_client_news hk_client_news (struct hk_link_client *c)
{
    unsigned char event[6];
    char address[HK_ENDPOINT_BYTES];
    uint16_t number;

    if (!c->socket)
        return CLIENT_NEWS_NONE;
    if (c->lean)
        return lean_news (c);
    if (zmq_recv (c->monitor, event, sizeof (event), ZMQ_DONTWAIT) < 0
        || zmq_recv (c->monitor, address, sizeof (address), ZMQ_DONTWAIT) < 0)
        return CLIENT_NEWS_NONE;
    memcpy (&number, event, sizeof (number));
    if (number == ZMQ_EVENT_HANDSHAKE_SUCCEEDED)
        return CLIENT_NEWS_SHAKEN;
    if (number == ZMQ_EVENT_DISCONNECTED)
        return CLIENT_NEWS_LOST;
    return CLIENT_NEWS_FAILED;
}

int hk_client_receive (struct hk_link_client *c,
                       void *socket,
                       struct hk_msg *msg)
{
    zmq_msg_t frame;
    struct hk_error err;
    int rc = 0;

    zmq_msg_init (&frame);
    while (rc == 0 && zmq_msg_recv (&frame, socket, ZMQ_DONTWAIT) >= 0) {
        /* an empty frame only asks whether we are there */
        if (zmq_msg_size (&frame) == 0)
            continue;
        if (hk_msg_decode (zmq_msg_data (&frame),
                           zmq_msg_size (&frame),
                           HK_MSG_OWNER_BYTES,
                           msg,
                           &err)
            == 0)
            rc = 1;
        else
            hk_log_throttled (LOG_WARNING,
                              "link",
                              "%s: %s",
                              hk_hostlist_nth (c->head, c->head_at),
                              err.text);
    }
    zmq_msg_close (&frame);
    return rc;
}

int hk_client_transmit (void *socket, const struct hk_msg *msg)
{
    struct hk_error err;
    size_t len;
    char *text = hk_msg_encode (msg, &len, &err);
    int rc;

    if (!text) {
        hk_log_throttled (LOG_ERR, "encode", "not sent: %s", err.text);
        return -1;
    }
    rc = zmq_send (socket, text, len, ZMQ_DONTWAIT);
    free (text);
    return rc < 0 ? -1 : 0;
}

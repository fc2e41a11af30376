/* link_socket.c - what sockets of the link have in common, on either side */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "proto/link_socket.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <zmq.h>

enum {
    KEEPALIVE_IDLE_S = 20,
    KEEPALIVE_INTERVAL_S = 5,
    KEEPALIVE_COUNT = 3,
    MAX_UNACKED_MS = 30000,
};

int hk_socket_set (void *socket,
                   const struct hk_socket_option *options,
                   size_t count,
                   struct hk_error *err)
{
    for (size_t i = 0; i < count; i++)
        if (zmq_setsockopt (socket,
                            options[i].name,
                            &options[i].value,
                            sizeof (options[i].value))
            < 0)
            return hk_error_errno (
                err, errno, "socket option %d", options[i].name);
    return 0;
}

int hk_socket_set_common (void *socket, struct hk_error *err)
{
    static const struct hk_socket_option options[] = {
        { ZMQ_LINGER, 0 },
        { ZMQ_IPV6, 1 },
        { ZMQ_TCP_KEEPALIVE, 1 },
        { ZMQ_TCP_KEEPALIVE_IDLE, KEEPALIVE_IDLE_S },
        { ZMQ_TCP_KEEPALIVE_INTVL, KEEPALIVE_INTERVAL_S },
        { ZMQ_TCP_KEEPALIVE_CNT, KEEPALIVE_COUNT },
        { ZMQ_TCP_MAXRT, MAX_UNACKED_MS },
    };

    return hk_socket_set (
        socket, options, sizeof (options) / sizeof (options[0]), err);
}

int hk_socket_set_limit (void *socket, int64_t max_bytes, struct hk_error *err)
{
    if (zmq_setsockopt (socket, ZMQ_MAXMSGSIZE, &max_bytes, sizeof (max_bytes))
        < 0)
        return hk_error_errno (err, errno, "socket option MAXMSGSIZE");
    return 0;
}

void hk_socket_endpoint (char endpoint[HK_ENDPOINT_BYTES],
                         const char *host,
                         uint16_t port)
{
    bool is_v6 = strchr (host, ':') != NULL && *host != '[';

    snprintf (endpoint,
              HK_ENDPOINT_BYTES,
              port ? "tcp://%s%s%s:%u" : "tcp://%s%s%s:*",
              is_v6 ? "[" : "",
              host,
              is_v6 ? "]" : "",
              port);
}

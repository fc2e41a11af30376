/* link_socket.h - what sockets of the link have in common, on either side */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HK_LINK_SOCKET_H
#define HK_LINK_SOCKET_H

#include <stddef.h>
#include <stdint.h>

#include "proto/error.h"

enum { HK_ENDPOINT_BYTES = 320 };

struct hk_socket_option {
    int name; /* ZMQ_... */
    int value;
};

/* Each 0, or -1 with errno and err. */
int hk_socket_set (void *socket,
                   const struct hk_socket_option *options,
                   size_t count,
                   struct hk_error *err);
/* No linger, IPv6 too, and TCP that finds a dead peer in half a minute. */
int hk_socket_set_common (void *socket, struct hk_error *err);
/* A larger message ends its connection. */
int hk_socket_set_limit (void *socket, int64_t max_bytes, struct hk_error *err);

/* "tcp://HOST:PORT", port 0 as "*"; an IPv6 address gets its brackets. */
void hk_socket_endpoint (char endpoint[HK_ENDPOINT_BYTES],
                         const char *host,
                         uint16_t port);

#endif

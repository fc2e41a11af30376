/* link_client.c - the link's client: its life, and what its owner calls */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "proto/link_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

enum { LEAN_POLL_MS = 2 };

int hk_link_client_next (struct hk_link_client *c,
                         int64_t now_ms,
                         enum hk_client_event *event,
                         struct hk_msg *msg,
                         struct hk_error *err)
{
    bool more = true;

    c->now_ms = now_ms;
    if (!c->is_draining)
        hk_client_unpoke (c);
    c->is_draining = true;
    while (more) {
        more = hk_client_step (c);
        if (c->down_waits) {
            c->down_waits = false;
            *event = HK_CLIENT_DOWN;
            if (err)
                *err = c->err;
            return 1;
        }
        if (c->socket && !c->is_empty
            && hk_client_receive (c, c->socket, msg)) {
            if (hk_client_hear (c, msg, event))
                return 1;
            hk_msg_fini (msg);
            more = true;
        }
    }
    c->is_draining = false;
    return 0;
}

int64_t hk_link_client_deadline (const struct hk_link_client *c)
{
    int64_t deadline = c->deadline_ms;

    if (c->state == CLIENT_UP && c->alive_ms < deadline)
        deadline = c->alive_ms;
    /* no descriptor tells a lean one that the pool is done */
    if (c->lean && c->lane.count > 0 && c->now_ms + LEAN_POLL_MS < deadline)
        deadline = c->now_ms + LEAN_POLL_MS;
    return deadline;
}

int hk_link_client_fd (struct hk_link_client *c)
{
    int fd = -1;
    size_t size = sizeof (fd);

    if (!c->lean)
        return c->epoll_fd;
    if (!c->socket || zmq_getsockopt (c->socket, ZMQ_FD, &fd, &size) < 0)
        return -1;
    return fd;
}

int hk_link_client_send (struct hk_link_client *c,
                         struct hk_msg *msg,
                         uint64_t *seq)
{
    int events = 0;
    size_t size = sizeof (events);
    int rc;

    if (c->state != CLIENT_UP) {
        errno = ENOTCONN;
        return -1;
    }
    msg->seq = ++c->seq;
    msg->session = c->session;
    rc = hk_client_transmit (c->socket, msg);
    if (rc == 0 && seq)
        *seq = msg->seq;
    /* sending may have taken the signal that something came */
    if (!c->lean && !c->is_draining) {
        int saved = errno;

        if (zmq_getsockopt (c->socket, ZMQ_EVENTS, &events, &size) == 0
            && (events & ZMQ_POLLIN))
            hk_client_poke (c);
        errno = saved;
    }
    return rc;
}

bool hk_link_client_is_up (const struct hk_link_client *c)
{
    return c->state == CLIENT_UP;
}

int hk_link_client_errno (const struct hk_link_client *c)
{
    return c->errnum;
}

int hk_link_client_set_life (struct hk_link_client *c, const char *life)
{
    char *copy = life ? strdup (life) : NULL;

    if (life && !copy)
        return -1;
    free (c->life);
    c->life = copy;
    return 0;
}

static int copy_who (char *to, size_t size, const char *from)
{
    if (snprintf (to, size, "%s", from ? from : "") < (int)size)
        return 0;
    errno = EINVAL;
    return -1;
}

static int take_options (struct hk_link_client *c,
                         const struct hk_client_conf *conf)
{
    size_t heads = hk_hostlist_count (conf->head);

    c->head = hk_hostlist_create ();
    if (!c->head)
        return -1;
    for (size_t i = 0; i < heads; i++)
        if (hk_hostlist_append (c->head, hk_hostlist_nth (conf->head, i)) < 0)
            return -1;
    if (heads == 0) {
        errno = EINVAL;
        return -1;
    }
    if (conf->munge_socket && !(c->munge_socket = strdup (conf->munge_socket)))
        return -1;
    c->port = conf->port;
    c->key_port = conf->key_port;
    c->server_uid = conf->server_uid;
    c->heartbeat_conf_ms = conf->heartbeat_ms;
    c->jitter_ms = conf->jitter_ms;
    c->lean = conf->lean;
    c->context = conf->zmq_context;
    if (copy_who (c->who.role, sizeof (c->who.role), conf->role) < 0
        || copy_who (c->who.host, sizeof (c->who.host), conf->host) < 0
        || copy_who (
               c->who.short_host, sizeof (c->who.short_host), conf->short_host)
               < 0
        || copy_who (c->who.boot_id, sizeof (c->who.boot_id), conf->boot_id)
               < 0)
        return -1;
    return 0;
}

static int make_context (struct hk_link_client *c)
{
    if (c->context)
        return 0;
    c->context = zmq_ctx_new ();
    if (!c->context)
        return -1;
    c->own_context = true;
    return zmq_ctx_set (c->context, ZMQ_BLOCKY, 0);
}

struct hk_link_client *hk_link_client_create (const struct hk_client_conf *conf,
                                              struct hk_error *err)
{
    struct hk_link_client *c = calloc (1, sizeof (*c));
    struct hk_pool *pool;
    int saved;

    if (!c) {
        hk_error_set (err, ENOMEM, "out of memory");
        return NULL;
    }
    c->epoll_fd = c->event_fd = -1;
    if (take_options (c, conf) < 0 || make_context (c) < 0
        || zmq_curve_keypair (c->who.pub, c->secret_key) < 0) {
        hk_error_errno (err, errno, "link");
        goto error;
    }
    if (hk_client_open_fds (c, err) < 0)
        goto error;
    pool = hk_pool_get_shared (err);
    if (!pool)
        goto error;
    hk_pool_lane_init (&c->lane, pool, 0, c->event_fd);
    /* time 0 is long ago: the first call starts */
    hk_client_poke (c);
    return c;
error:
    saved = errno;
    hk_link_client_destroy (c);
    errno = saved;
    return NULL;
}

void hk_link_client_destroy (struct hk_link_client *c)
{
    if (!c)
        return;
    if (c->lane.pool) {
        hk_client_jobs_fini (c);
        hk_pool_put_shared ();
    }
    hk_client_uncount (c);
    hk_client_close_key_socket (c);
    hk_client_close_socket (c);
    if (c->own_context)
        zmq_ctx_term (c->context);
    hk_client_close_fds (c);
    hk_client_forget_hello (c);
    explicit_bzero (c->secret_key, sizeof (c->secret_key));
    hk_hostlist_destroy (c->head);
    free (c->munge_socket);
    free (c->life);
    free (c);
}

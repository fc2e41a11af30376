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
    if (timeout_ms < 0 || timeout_ms > HK_SWEEP_MS)
        timeout_ms = HK_SWEEP_MS;
    if (link->probe_ms && timeout_ms > HK_PROBE_MS)
        timeout_ms = HK_PROBE_MS;
    rc = zmq_poll (items, count, timeout_ms);
    if (rc < 0)
        return errno == EINTR ? 0 : -1;
    return rc > 0 ? 1 : 0;
}

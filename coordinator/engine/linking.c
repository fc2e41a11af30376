/* linking.c - the link of an engine, which a host may let wait */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>
#include "proto/clock.h"
#include "proto/log.h"
#include "coordinator/engine/internal.h"

enum { LINK_AGAIN_MS = 5000 };

static void link_conf (const struct hkc_engine *e,
                       const struct hk_conf *conf,
                       struct hk_link_conf *out)
{
    *out = (struct hk_link_conf){
        .bind = conf->bind,
        .node_port = conf->node_port,
        .client_port = conf->client_port,
        .key_port = conf->key_port,
        .state_dir = conf->state_dir,
        .munge_socket = conf->munge_socket,
        .node_connections = conf->node_connections,
        .client_connections = conf->client_connections,
        .guest_access = conf->guest_access,
        .own_uid = geteuid (),
        .admin_uids = conf->admin_uids,
        .admin_uids_count = conf->admin_uids_count,
        .manager_uid = conf->manager_uid,
        .instance = hkc_store_instance (e->store),
        .start = hkc_store_start (e->store),
        .heartbeat_ms = conf->heartbeat_ms,
        .reconcile_ms = conf->reconcile_ms,
    };
}

/* Written by the engine's thread alone, which therefore reads it unlocked. */
void hkc_trouble_set (struct hkc_engine *e,
                      char field[HK_ERROR_BYTES],
                      const char *text)
{
    pthread_mutex_lock (&e->trouble_mutex);
    snprintf (field, HK_ERROR_BYTES, "%s", text);
    pthread_mutex_unlock (&e->trouble_mutex);
}

void hkc_engine_trouble (struct hkc_engine *e, char *text, size_t size)
{
    pthread_mutex_lock (&e->trouble_mutex);
    snprintf (text,
              size,
              "%s%s%s%s%s",
              *e->store_error ? "the store cannot be written: " : "",
              e->store_error,
              *e->store_error && *e->link_error ? "; " : "",
              *e->link_error ? "the link is not open: " : "",
              e->link_error);
    pthread_mutex_unlock (&e->trouble_mutex);
}

int hkc_link_open (struct hkc_engine *e, struct hk_error *err)
{
    struct hk_link_conf lc;

    link_conf (e, e->conf, &lc);
    if ((e->link = hk_link_server_create (&lc, err))) {
        hkc_trouble_set (e, e->link_error, "");
        return 0;
    }
    if (!e->host.link_may_wait)
        return -1;
    hk_log_throttled (LOG_ERR,
                      "link",
                      "the link cannot be opened: %s; tried again, and no node "
                      "is heard until then",
                      err->text);
    hkc_trouble_set (e, e->link_error, err->text);
    e->link_ms = hk_boot_ms () + LINK_AGAIN_MS;
    return 0;
}

/* Between turns, while there is no link: nobody's silence counts. */
void hkc_link_tick (struct hkc_engine *e)
{
    struct hkc_event ev = { .kind = HKC_EV_DEAF_ENDS };
    struct hk_error err;

    ev.now_ms = hk_boot_ms ();
    ev.wall = hk_wall ();
    hkc_core_step (e->core, &ev, NULL, NULL);
    if (ev.now_ms < e->link_ms)
        return;
    hkc_link_open (e, &err);
    if (e->link)
        hk_log (LOG_NOTICE, "the link is open now");
}

void hkc_link_reload (struct hkc_engine *e, const struct hk_conf *conf)
{
    struct hk_link_conf lc;
    struct hk_error err;

    if (!e->link) {
        e->link_ms = 0; /* at once, with what is new */
        return;
    }
    link_conf (e, conf, &lc);
    if (hk_link_server_reload (e->link, &lc, &err) < 0)
        hk_log (LOG_ERR, "the link stays as it was: %s", err.text);
}

void hkc_link_wait (struct hkc_engine *e, int timeout_ms)
{
    struct pollfd pfd = { .fd = e->wake_fd, .events = POLLIN };

    if (e->link)
        hk_link_server_wait (e->link, e->wake_fd, timeout_ms);
    else
        poll (&pfd, 1, timeout_ms);
}

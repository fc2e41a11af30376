/* link_world.c - one server of the link and its clients, in one thread */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "proto/clock.h"
#include "proto/log.h"
#include "tests/unit/link_world.h"

const char link_instance[33] = "0123456789abcdef0123456789abcdef";
const char link_boot_id[33] = "b007b007b007b007b007b007b007b007";

struct munged link_munged;
struct hk_hostlist *link_loopback;
struct link_world lw;

void link_open_server (void)
{
    struct hk_error err;

    lw.server = hk_link_server_create (&lw.conf, &err);
    if (!lw.server)
        fail_msg ("%s", err.text);
    hk_link_server_ports (
        lw.server, &lw.node_port, &lw.client_port, &lw.key_port);
    assert_true (lw.node_port && lw.client_port && lw.key_port);
}

void link_begin (void)
{
    static int number;

    memset (&lw, 0, sizeof (lw));
    snprintf (lw.state_dir,
              sizeof (lw.state_dir),
              "%s/%d",
              link_munged.dir,
              number++);
    assert_int_equal (mkdir (lw.state_dir, 0700), 0);
    lw.conf = (struct hk_link_conf){
        .bind = "127.0.0.1",
        .state_dir = lw.state_dir,
        .munge_socket = link_munged.socket,
        .node_connections = 100,
        .client_connections = 100,
        .guest_access = true,
        .own_uid = geteuid (),
        .instance = link_instance,
        .start = 42,
        .heartbeat_ms = 20000,
        .reconcile_ms = 60000,
    };
    link_open_server ();
}

void link_end (void)
{
    for (int i = 0; i < LINK_CLIENTS_MAX; i++)
        hk_link_client_destroy (lw.seats[i].client);
    hk_link_server_destroy (lw.server);
}

void link_keep_ports (void)
{
    lw.conf.node_port = lw.node_port;
    lw.conf.client_port = lw.client_port;
    lw.conf.key_port = lw.key_port;
}

void link_serve (void)
{
    enum hk_link_event event;
    struct hk_peer *peer;
    struct hk_msg msg;

    while (lw.server
           && hk_link_server_next (
               lw.server, hk_boot_ms (), &event, &peer, &msg)) {
        lw.peer = event == HK_LINK_GONE ? NULL : peer;
        if (event == HK_LINK_HELLO) {
            lw.hellos++;
            if (lw.refuse)
                hk_link_refuse (lw.server, peer, "conflict", "another has it");
            else
                hk_link_welcome (lw.server, peer, 7);
        } else if (event == HK_LINK_GONE) {
            lw.gones++;
        } else {
            lw.messages++;
            lw.type = msg.type;
            if (msg.type == HK_MSG_KILL)
                lw.jobid = msg.query.jobid;
            hk_msg_fini (&msg);
        }
    }
}

static void pump_seat (struct link_seat *seat)
{
    enum hk_client_event event;
    struct hk_msg msg;
    struct hk_error err;

    while (
        hk_link_client_next (seat->client, hk_boot_ms (), &event, &msg, &err)) {
        if (event == HK_CLIENT_DOWN) {
            seat->downs++;
            seat->errnum = hk_link_client_errno (seat->client);
            snprintf (seat->text, sizeof (seat->text), "%s", err.text);
            continue;
        }
        if (event == HK_CLIENT_UP) {
            seat->ups++;
            snprintf (seat->role, sizeof (seat->role), "%s", msg.welcome.role);
        } else {
            seat->messages++;
            seat->type = msg.type;
            if (msg.type == HK_MSG_ERROR)
                snprintf (seat->text,
                          sizeof (seat->text),
                          "%s: %s",
                          msg.error.code,
                          msg.error.text);
        }
        hk_msg_fini (&msg);
    }
}

/* As programs do it: wait for the descriptors or the next deadline. */
void link_turn (void)
{
    struct pollfd fds[LINK_CLIENTS_MAX];
    int count = 0;
    int64_t wait = 20;

    for (int i = 0; i < LINK_CLIENTS_MAX; i++) {
        struct hk_link_client *client = lw.seats[i].client;

        if (!client)
            continue;
        pump_seat (&lw.seats[i]);
        fds[count++] = (struct pollfd){ hk_link_client_fd (client), POLLIN, 0 };
        if (hk_link_client_deadline (client) - hk_boot_ms () < wait)
            wait = hk_link_client_deadline (client) - hk_boot_ms ();
    }
    link_serve ();
    poll (fds, (nfds_t)count, wait < 1 ? 1 : wait > 5 ? 5 : (int)wait);
}

struct link_seat *link_join_as (const char *role, const char *host, bool lean)
{
    bool is_node = strcmp (role, "node") == 0;
    struct hk_client_conf conf = {
        .head = link_loopback,
        .port = is_node ? lw.node_port : lw.client_port,
        .key_port = lw.key_port,
        .munge_socket = link_munged.socket,
        .server_uid = geteuid (),
        .role = role,
        .host = host,
        .short_host = host,
        .boot_id = is_node ? link_boot_id : NULL,
        .lean = lean,
    };
    struct hk_error err;
    int i = 0;

    while (lw.seats[i].client)
        assert_true (++i < LINK_CLIENTS_MAX);
    memset (&lw.seats[i], 0, sizeof (lw.seats[i]));
    lw.seats[i].client = hk_link_client_create (&conf, &err);
    if (!lw.seats[i].client)
        fail_msg ("%s", err.text);
    return &lw.seats[i];
}

struct link_seat *link_join (const char *role, const char *host)
{
    return link_join_as (role, host, false);
}

void link_leave (struct link_seat *seat)
{
    hk_link_client_destroy (seat->client);
    seat->client = NULL;
}

int link_start (void **state)
{
    (void)state;
    if (!getenv ("HK_TEST_LOG"))
        hk_log_init ("link", LOG_CRIT, NULL, NULL);
    link_loopback = hk_hostlist_create ();
    hk_hostlist_append (link_loopback, "127.0.0.1");
    return munged_start (&link_munged);
}

int link_stop (void **state)
{
    (void)state;
    hk_hostlist_destroy (link_loopback);
    munged_stop (&link_munged);
    return 0;
}

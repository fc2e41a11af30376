/* test_link.c - sessions of the link over loopback, with a munged */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "proto/clock.h"
#include "proto/hostlist.h"
#include "proto/link.h"
#include "proto/link_socket.h"
#include "tests/unit/link_world.h"

static void a_node_is_welcomed_and_heard (void **state)
{
    struct link_seat *seat;
    struct hk_msg msg = { .type = HK_MSG_STATE };

    (void)state;
    link_begin ();
    seat = link_join ("node", "node1");
    UNTIL (seat->ups == 1);
    assert_int_equal (lw.hellos, 1);
    assert_int_equal (lw.peer->role, HK_ROLE_NODE);
    assert_int_equal (lw.peer->uid, geteuid ());
    assert_string_equal (lw.peer->host, "node1");
    assert_string_equal (lw.peer->boot_id, link_boot_id);
    assert_string_equal (lw.peer->address, "127.0.0.1");
    assert_string_equal (seat->role, "node");
    assert_true (hk_link_client_is_up (seat->client));
    msg.state.boot_id = link_boot_id;
    msg.state.last = true;
    assert_int_equal (hk_link_client_send (seat->client, &msg, NULL), 0);
    UNTIL (lw.messages == 1);
    assert_int_equal (lw.type, HK_MSG_STATE);
    msg = (struct hk_msg){ .type = HK_MSG_ACK };
    msg.ack.alloc = 1;
    msg.ack.attempt = 1;
    hk_link_send (lw.server, lw.peer, &msg);
    UNTIL (seat->messages == 1);
    assert_int_equal (seat->type, HK_MSG_ACK);
    assert_int_equal (seat->downs, 0);
    link_end ();
}

static void a_lean_node_is_welcomed_and_comes_back (void **state)
{
    struct link_seat *seat;

    (void)state;
    link_begin ();
    seat = link_join_as ("node", "node1", true);
    UNTIL (seat->ups == 1);
    lw.conf.node_port = lw.node_port;
    lw.conf.client_port = lw.client_port;
    lw.conf.key_port = lw.key_port;
    lw.conf.start = 43;
    hk_link_server_destroy (lw.server);
    lw.server = NULL;
    UNTIL (seat->downs == 1);
    link_open_server ();
    UNTIL (seat->ups == 2);
    link_end ();
}

static void a_restart_needs_no_new_key_question (void **state)
{
    struct link_seat *seat;
    struct hk_link_stats stats;

    (void)state;
    link_begin ();
    seat = link_join ("node", "node1");
    UNTIL (seat->ups == 1);
    link_keep_ports ();
    lw.conf.start = 43;
    hk_link_server_destroy (lw.server);
    lw.server = NULL;
    UNTIL (seat->downs == 1);
    assert_int_equal (seat->errnum, ECONNREFUSED);
    link_open_server ();
    UNTIL (seat->ups == 2);
    hk_link_server_stats (lw.server, &stats);
    /* the first HELLO named the start before */
    assert_int_equal (stats.rehellos, 1);
    assert_int_equal (stats.hellos, 2);
    assert_int_equal (seat->downs, 1);
    link_end ();
}

static void a_port_in_use_is_named (void **state)
{
    struct hk_error err;
    char text[16];

    (void)state;
    link_begin ();
    link_keep_ports ();
    lw.conf.node_port = 0;
    assert_null (hk_link_server_create (&lw.conf, &err));
    assert_int_equal (errno, EADDRINUSE);
    snprintf (text, sizeof (text), ":%u", lw.client_port);
    assert_non_null (strstr (err.text, text));
    link_end ();
}

static void an_act_reaches_the_caller_and_a_foreign_one_is_denied (void **state)
{
    struct link_seat *seat;
    struct hk_msg msg = { .type = HK_MSG_KILL };
    uint64_t seq = 0;

    (void)state;
    link_begin ();
    seat = link_join ("owner", NULL);
    UNTIL (seat->ups == 1);
    msg.query.jobid = 77;
    assert_int_equal (hk_link_client_send (seat->client, &msg, &seq), 0);
    assert_true (seq > 0);
    UNTIL (lw.messages == 1);
    assert_int_equal (lw.jobid, 77);
    msg = (struct hk_msg){ .type = HK_MSG_ACK };
    hk_link_client_send (seat->client, &msg, NULL);
    UNTIL (seat->messages == 1);
    assert_int_equal (seat->type, HK_MSG_ERROR);
    assert_string_equal (seat->text, "denied: ack is not for a owner");
    assert_int_equal (lw.messages, 1);
    link_end ();
}

static void a_client_that_leaves_is_gone (void **state)
{
    struct link_seat *seat;

    (void)state;
    link_begin ();
    seat = link_join ("owner", NULL);
    UNTIL (seat->ups == 1);
    link_leave (seat);
    UNTIL (lw.gones == 1);
    link_end ();
}

static void a_refused_peer_is_told_why (void **state)
{
    struct link_seat *seat;

    (void)state;
    link_begin ();
    lw.refuse = true;
    seat = link_join ("node", "node1");
    UNTIL (seat->downs == 1);
    assert_int_equal (seat->errnum, EAGAIN);
    assert_non_null (strstr (seat->text, "conflict: another has it"));
    lw.refuse = false;
    UNTIL (seat->ups == 1);
    link_end ();
}

static void a_closed_session_begins_anew (void **state)
{
    struct link_seat *seat;
    struct hk_msg msg = { .type = HK_MSG_PING };

    (void)state;
    link_begin ();
    seat = link_join ("owner", NULL);
    UNTIL (seat->ups == 1);
    hk_link_close (lw.server, lw.peer);
    assert_int_equal (hk_link_client_send (seat->client, &msg, NULL), 0);
    UNTIL (seat->ups == 2);
    assert_int_equal (seat->downs, 1);
    assert_int_equal (lw.messages, 0);
    assert_int_equal (lw.gones, 0);
    link_end ();
}

static void the_next_head_is_tried (void **state)
{
    struct hk_client_conf conf = {
        .munge_socket = link_munged.socket,
        .server_uid = geteuid (),
        .role = "owner",
    };
    struct hk_hostlist *heads = hk_hostlist_create ();

    (void)state;
    link_begin ();
    hk_hostlist_append (heads, "127.0.0.2");
    hk_hostlist_append (heads, "127.0.0.1");
    conf.head = heads;
    conf.port = lw.client_port;
    conf.key_port = lw.key_port;
    lw.seats[0].client = hk_link_client_create (&conf, NULL);
    UNTIL (lw.seats[0].ups == 1);
    assert_int_equal (lw.seats[0].downs, 1);
    assert_non_null (strstr (lw.seats[0].text, "no answer from 127.0.0.2"));
    hk_hostlist_destroy (heads);
    link_end ();
}

static void above_the_limit_nobody_connects (void **state)
{
    struct link_seat *seats[3];
    struct hk_link_stats stats;

    (void)state;
    link_begin ();
    hk_link_server_destroy (lw.server);
    lw.conf.node_connections = 2;
    link_open_server ();
    for (int i = 0; i < 2; i++) {
        seats[i] = link_join ("node", "node1");
        UNTIL (seats[i]->ups == 1);
    }
    UNTIL ((hk_link_server_stats (lw.server, &stats), stats.connections_node)
           == 2);
    seats[2] = link_join ("node", "node3");
    for (int i = 0; i < 200; i++)
        link_turn ();
    assert_int_equal (seats[2]->ups, 0);
    /* those who are there stay there */
    assert_true (hk_link_client_is_up (seats[0]->client));
    link_leave (seats[0]);
    UNTIL (seats[2]->ups == 1);
    link_end ();
}

static void an_endpoint_has_brackets_round_ipv6_only (void **state)
{
    char text[HK_ENDPOINT_BYTES];

    (void)state;
    hk_socket_endpoint (text, "head.site", 8766);
    assert_string_equal (text, "tcp://head.site:8766");
    hk_socket_endpoint (text, "fe80::1", 1);
    assert_string_equal (text, "tcp://[fe80::1]:1");
    hk_socket_endpoint (text, "[::1]", 65535);
    assert_string_equal (text, "tcp://[::1]:65535");
    hk_socket_endpoint (text, "*", 0);
    assert_string_equal (text, "tcp://*:*");
}

static void many_messages_pass_in_a_second (void **state)
{
    enum { COUNT = 100000 };
    struct link_seat *seat;
    struct hk_msg msg = { .type = HK_MSG_ALIVE };
    int64_t start;
    int sent = 0;

    (void)state;
    link_begin ();
    seat = link_join ("node", "node1");
    UNTIL (seat->ups == 1);
    msg.alive.boot_id = link_boot_id;
    start = hk_boot_ms ();
    while (lw.messages < COUNT) {
        assert_true (hk_boot_ms () - start < LINK_LIMIT_MS);
        while (sent < COUNT
               && hk_link_client_send (seat->client, &msg, NULL) == 0)
            sent++;
        link_serve ();
    }
    print_message (
        "%d messages in %d ms\n", lw.messages, (int)(hk_boot_ms () - start));
    link_end ();
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (a_node_is_welcomed_and_heard),
        cmocka_unit_test (a_lean_node_is_welcomed_and_comes_back),
        cmocka_unit_test (a_restart_needs_no_new_key_question),
        cmocka_unit_test (a_port_in_use_is_named),
        cmocka_unit_test (
            an_act_reaches_the_caller_and_a_foreign_one_is_denied),
        cmocka_unit_test (a_client_that_leaves_is_gone),
        cmocka_unit_test (a_refused_peer_is_told_why),
        cmocka_unit_test (a_closed_session_begins_anew),
        cmocka_unit_test (the_next_head_is_tried),
        cmocka_unit_test (above_the_limit_nobody_connects),
        cmocka_unit_test (an_endpoint_has_brackets_round_ipv6_only),
        cmocka_unit_test (many_messages_pass_in_a_second),
    };

    return cmocka_run_group_tests_name ("link", tests, link_start, link_stop);
}

/* link_world.h - one server of the link and its clients, in one thread */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef TESTS_UNIT_LINK_WORLD_H
#define TESTS_UNIT_LINK_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/clock.h"
#include "proto/hostlist.h"
#include "proto/link.h"
#include "tests/unit/munged.h"

enum { LINK_LIMIT_MS = 120000 /* valgrind is slow */, LINK_CLIENTS_MAX = 8 };

/* A client, and what it was told last. */
struct link_seat {
    struct hk_link_client *client;
    int ups;
    int downs;
    int messages;
    int errnum;
    char text[HK_ERROR_BYTES]; /* of the last DOWN or error */
    char role[16];
    enum hk_msg_type type;
};

/* The server and the clients of a test, and what the server was told last. */
struct link_world {
    char state_dir[128];
    struct hk_link_conf conf;
    struct hk_link_server *server;
    uint16_t node_port;
    uint16_t client_port;
    uint16_t key_port;
    struct link_seat seats[LINK_CLIENTS_MAX];
    int hellos;
    int gones;
    int messages;
    bool refuse;
    struct hk_peer *peer; /* of the last HELLO or message */
    enum hk_msg_type type;
    uint64_t jobid;
};

extern struct link_world lw;
extern struct munged link_munged;
extern struct hk_hostlist *link_loopback;
extern const char link_instance[33];
extern const char link_boot_id[33];

/* A group's fixtures: a munged, a quiet log. */
int link_start (void **state);
int link_stop (void **state);

/* A server on ports that are free, and no client. */
void link_begin (void);
void link_end (void);
/* Another server by lw.conf; the one before was destroyed. */
void link_open_server (void);
/* Let lw.conf name the ports that the server has now. */
void link_keep_ports (void);

/* A client to lw's ports; the seat is good until link_end. */
struct link_seat *link_join (const char *role, const char *host);
struct link_seat *link_join_as (const char *role, const char *host, bool lean);
void link_leave (struct link_seat *seat);

/* All that has come to the server. */
void link_serve (void);
/* As programs do it: what has come, then wait for more or the next deadline. */
void link_turn (void);

#define UNTIL(condition)                                                   \
    do {                                                                   \
        int64_t limit_ = hk_boot_ms () + LINK_LIMIT_MS;                    \
        while (!(condition)) {                                             \
            if (hk_boot_ms () > limit_)                                    \
                fail_msg (                                                 \
                    "never: %s (last: %s)", #condition, lw.seats[0].text); \
            link_turn ();                                                  \
        }                                                                  \
    } while (0)

#endif

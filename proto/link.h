/* link.h - the authenticated link, server and client side */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HK_LINK_H
#define HK_LINK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "proto/conf.h"
#include "proto/error.h"
#include "proto/limits.h"
#include "proto/message.h"

/* ---- server: one thread owns it; only the small MUNGE pool is its own.  */

struct hk_link_server;

/* A peer as the server knows it, bound to a CURVE key by a HELLO that MUNGE
 * vouched for.  Valid until the call of hk_link_server_next that follows the
 * one which told its GONE, or that follows hk_link_refuse or hk_link_close
 * (then no GONE is told).  A new HELLO of the same key is a new peer, told
 * after the GONE of the old.  `id` is unique over the life of the server and
 * never used again.
 */
struct hk_peer {
    uint64_t id;
    enum hk_role role;
    uid_t uid;
    char host[HK_HOST_NAME_BYTES]; /* nodes; "" for clients */
    char short_host[HK_HOST_NAME_BYTES];
    char boot_id[HK_ID_BYTES];
    char address[64]; /* for logs and alarms */
    char session[HK_ID_BYTES];
    void *data; /* the caller's */
};

enum hk_link_event {
    /* A HELLO that was vouched for.  The caller decides: hk_link_welcome or
     * hk_link_refuse, before the next call of hk_link_server_next or later.
     */
    HK_LINK_HELLO,
    HK_LINK_MESSAGE, /* of a bound, welcomed peer, role and session checked */
    HK_LINK_GONE,    /* the session was replaced by a newer HELLO with the same
                        key, or, of clients, the connection ended or was silent
                        for 3 heartbeats (without heartbeats 5 min); nodes:
                        never by itself */
};

struct hk_link_conf {
    const char *bind; /* "*" or an address */
    /* 0: any that is free, see hk_link_server_ports */
    uint16_t node_port;
    uint16_t client_port;
    uint16_t key_port;
    const char *state_dir;    /* the key pair: server.key, mode 0600 */
    const char *munge_socket; /* NULL: libmunge's */
    uint32_t node_connections;
    uint32_t client_connections;
    bool guest_access;
    uid_t own_uid;
    const uid_t *admin_uids;
    int admin_uids_count;
    uid_t manager_uid;
    const char *instance; /* HK_ID */
    uint64_t start;
    int64_t heartbeat_ms;
    int64_t reconcile_ms;
    bool client_only; /* no port for nodes */
};

/* Strings and arrays are copied.  Binds all ports; makes the key pair when
 * there is none (temporary file, fsync, rename, 0600).  NULL with errno and
 * which address or path.
 */
struct hk_link_server *hk_link_server_create (const struct hk_link_conf *conf,
                                              struct hk_error *err);
void hk_link_server_destroy (struct hk_link_server *link);
/* Roles, limits and intervals; sessions that exist keep their role.  -1 with
 * EINVAL for what needs a restart: address, ports, munge's socket.
 */
int hk_link_server_reload (struct hk_link_server *link,
                           const struct hk_link_conf *conf,
                           struct hk_error *err);
/* The ports that were bound. */
void hk_link_server_ports (const struct hk_link_server *link,
                           uint16_t *node,
                           uint16_t *client,
                           uint16_t *key);

/* Wait until something can be read from the link or from `fd` (-1: none), at
 * most timeout_ms and at most a second: call hk_link_server_next also after a
 * timeout, handshakes and silent clients need it.  1 ready, 0 timeout or a
 * signal, -1 errno.
 */
int hk_link_server_wait (struct hk_link_server *link, int fd, int timeout_ms);

/* Next event without blocking: 1 and *peer, *msg (MESSAGE only; caller ends it
 * with hk_msg_fini), or 0 when there is none now.  HELLOs of one host come in
 * order of arrival, not of decoding.  Bad, unbound, foreign-session, over-limit
 * and not-allowed messages are answered (rehello, error denied), counted,
 * logged throttled and never seen here.  now_ms: CLOCK_BOOTTIME.
 */
int hk_link_server_next (struct hk_link_server *link,
                         int64_t now_ms,
                         enum hk_link_event *event,
                         struct hk_peer **peer,
                         struct hk_msg *msg);

/* Answer a HELLO.  After welcome messages can be sent to the peer.  `commit`
 * is the store's number, told to nodes.
 */
void hk_link_welcome (struct hk_link_server *link,
                      struct hk_peer *peer,
                      uint64_t commit);
void hk_link_refuse (struct hk_link_server *link,
                     struct hk_peer *peer,
                     const char *code,
                     const char *text);
/* End a session: later messages of it are dropped and answered by rehello. */
void hk_link_close (struct hk_link_server *link, struct hk_peer *peer);

/* Send; fills seq, session, start; to nodes the caller fills commit.  -1 with
 * EAGAIN: the peer's queue is full, with EHOSTUNREACH: it is gone; to a node
 * or a client that is no error to act on, the next meeting repairs it: counted.
 */
int hk_link_send (struct hk_link_server *link,
                  struct hk_peer *peer,
                  struct hk_msg *msg);

struct hk_link_stats {
    uint64_t connections_node;
    uint64_t connections_client;
    uint64_t sessions;
    uint64_t received;
    uint64_t sent;
    uint64_t dropped_bad;
    uint64_t dropped_denied;
    uint64_t dropped_full; /* or gone */
    uint64_t rehellos;
    uint64_t hellos;
    uint64_t hellos_failed;
};
void hk_link_server_stats (const struct hk_link_server *link,
                           struct hk_link_stats *stats);

/* ---- client: hkd, hkctl, the swarm.  Asks for the key when it has none or a
 * handshake fails, connects, says HELLO anew after each handshake (never
 * queued or resent), answers rehello with it, connects again with back-off.
 * One thread owns a client.
 */

struct hk_link_client;

struct hk_client_conf {
    const struct hk_hostlist *head; /* endpoints tried in order */
    uint16_t port;                  /* node_port or client_port */
    uint16_t key_port;
    const char *munge_socket;
    uid_t server_uid;
    const char *role; /* "node", "owner", "guest", "manager" */
    const char *host; /* "" or NULL for clients, as the two below */
    const char *short_host;
    const char *boot_id;
    int64_t heartbeat_ms; /* 0: as welcome says */
    int jitter_ms;        /* first connect is spread over this */
    void *zmq_context;    /* NULL: its own (the swarm shares one) */
    bool lean;            /* thousands in a process: two descriptors each, fewer
                          sockets, some hundred handshakes at a time; one that
                          fails is found by time only; _fd is edge triggered */
};

enum hk_client_event {
    HK_CLIENT_UP,      /* welcome was heard; *msg is it, the caller ends it */
    HK_CLIENT_MESSAGE, /* *msg; of this session; the caller ends it */
    HK_CLIENT_DOWN,    /* session lost; err says why, also before any UP:
                          no key, refused, version, skew ... errno of the
                          attempt is in hk_link_client_errno */
};

/* Strings and lists are copied. */
struct hk_link_client *hk_link_client_create (const struct hk_client_conf *conf,
                                              struct hk_error *err);
void hk_link_client_destroy (struct hk_link_client *client);
/* Readable when _next should be called, until it returned 0; level triggered.
 * Call _next also at the deadline, CLOCK_BOOTTIME in ms, which is never far:
 * and after create at once.  A lean client's fd is edge triggered: call _next
 * after each _send and at the deadline too.
 */
int hk_link_client_fd (struct hk_link_client *client);
int64_t hk_link_client_deadline (const struct hk_link_client *client);
/* As hk_link_server_next: 1 and an event, or 0.  MUNGE is asked in a thread
 * that the clients of a process share.
 */
int hk_link_client_next (struct hk_link_client *client,
                         int64_t now_ms,
                         enum hk_client_event *event,
                         struct hk_msg *msg,
                         struct hk_error *err);
/* Why it is not up: EACCES refused, ECONNREFUSED nobody there or no answer,
 * EPROTO version, EKEYEXPIRED skew, EAGAIN told to come again (conflict,
 * limit) or munge does not answer; 0 when up or not yet known.
 */
int hk_link_client_errno (const struct hk_link_client *client);
/* Fills seq (returned in *seq if not NULL) and session.  -1 with ENOTCONN
 * before UP, EAGAIN when the queue is full.
 */
int hk_link_client_send (struct hk_link_client *client,
                         struct hk_msg *msg,
                         uint64_t *seq);
bool hk_link_client_is_up (const struct hk_link_client *client);
/* A manager's, said with each heartbeat from now on; NULL: none. */
int hk_link_client_set_life (struct hk_link_client *client, const char *life);

#endif

/* link_server.h - what the parts of the link's server share */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HK_LINK_SERVER_H
#define HK_LINK_SERVER_H

#include <czmq.h>
#include "proto/identity.h"
#include "proto/link.h"
#include "proto/link_pool.h"

enum {
    HK_ROUTE_BYTES = 32,  /* of a routing id: libzmq makes five */
    HK_SOURCE_BYTES = 64, /* text of an address */
    HK_REHELLO_SLOTS = 1 << 14,
    HK_HELLOS_WAITING = 32768, /* in a lane of the pool */
    HK_SLOW_WAITING = 4096,    /* of sources that ask too often */
    HK_SWEEP_MS = 1000,        /* silent clients and idle sources */
    HK_PROBE_MS = 100,         /* after a connection ended */
};

/* How a peer is reached: by this connection only. */
struct hk_route {
    unsigned char size;
    unsigned char id[HK_ROUTE_BYTES];
};

/* A listener for nodes or for clients. */
struct hk_port {
    void *socket;
    void *monitor;
    int listen_fd; /* libzmq's */
    uint64_t connections;
    uint32_t limit;
    bool is_closed; /* to new connections, by the limit */
    bool is_node;
    bool seen_closed; /* connections ended since the last look */
    bool is_empty;    /* when it was last read from */
};

/* PEER_QUEUED: its HELLO waits to be read; PEER_OFFERED: the caller has it and
 * has not decided; PEER_WELCOME: messages pass; PEER_LEAVING: its GONE waits
 * to be read; PEER_DEAD: freed when the caller comes again.
 */
enum hk_peer_state {
    PEER_QUEUED,
    PEER_OFFERED,
    PEER_WELCOME,
    PEER_LEAVING,
    PEER_DEAD,
};

struct hk_link_peer {
    struct hk_peer pub; /* first: the caller's view */
    enum hk_peer_state state;
    bool is_queued; /* in the list of events */
    struct hk_link_peer *next;
    struct hk_port *port;
    struct hk_route route;
    char key[HK_KEY_TEXT_BYTES];
    uint64_t hello_seq;
    uint64_t seq; /* of the last message sent */
    int64_t last_ms;
};

/* How often a source may ask for what costs MUNGE. */
struct hk_source {
    double tokens;
    int64_t at_ms;
    size_t slow; /* jobs that wait in the slow lane */
};

/* A HELLO or a key question on its way through the pool. */
struct hk_link_job {
    struct hk_pool_job job;
    struct hk_link_server *link;
    struct hk_port *port; /* NULL: a key question */
    struct hk_route route;
    uint64_t seq;
    char address[HK_SOURCE_BYTES];
    char key[HK_KEY_TEXT_BYTES];
    char asked_role[16];
    bool is_slow;
    char *cred; /* of the HELLO; of the key answer when done */
    struct hk_hello_claim hello;
    struct hk_key_claim question;
    uid_t uid;
    int errnum; /* 0: vouched for */
    struct hk_error err;
};

struct hk_link_server {
    /* options; strings are owned */
    char *bind;
    char *state_dir;
    char *munge_socket;
    uint16_t ports[3]; /* as asked for: nodes, clients, key */
    bool guest_access;
    uid_t own_uid;
    uid_t *admin_uids;
    int admin_uids_count;
    uid_t manager_uid;
    char instance[HK_ID_BYTES];
    uint64_t start;
    int64_t heartbeat_ms;
    int64_t reconcile_ms;

    void *context;
    void *zap;
    void *key_socket;
    struct hk_port node;
    struct hk_port client;
    char public_key[HK_KEY_TEXT_BYTES];

    struct hk_pool *pool;
    int pool_fd; /* eventfd */
    struct hk_pool_lane node_lane;
    struct hk_pool_lane client_lane;
    struct hk_pool_lane slow_lane;

    uint64_t last_id;  /* of a peer */
    zhashx_t *peers;   /* key text -> struct hk_link_peer */
    zhashx_t *sources; /* address -> struct hk_source */
    struct hk_link_peer *events;
    struct hk_link_peer **events_end;
    struct hk_link_peer *dead;
    int64_t now_ms;
    int64_t swept_ms;
    int64_t probe_ms; /* when to look for clients that left; 0: not */
    int credit;       /* messages until the other sockets are looked at */
    bool client_turn;
    struct {
        uint32_t hash;
        int64_t at_ms;
    } rehello[HK_REHELLO_SLOTS];
    struct hk_link_stats stats;
};

/* link_zap.c: every key may connect; what it may do MUNGE says later. */
int hk_zap_open (struct hk_link_server *link, struct hk_error *err);
void hk_zap_answer (struct hk_link_server *link);

/* link_key.c */
int hk_key_load (struct hk_link_server *link,
                 char secret[HK_KEY_TEXT_BYTES],
                 struct hk_error *err);
void hk_key_questions (struct hk_link_server *link);
void hk_key_answer (struct hk_link_server *link, struct hk_link_job *job);

/* link_port.c */
int hk_port_open (struct hk_link_server *link,
                  struct hk_port *port,
                  const char *secret,
                  struct hk_error *err);
void *hk_key_socket_open (struct hk_link_server *link, struct hk_error *err);
void hk_port_close (struct hk_port *port);
/* Count connections; at the limit keep new ones out. */
void hk_port_watch (struct hk_link_server *link, struct hk_port *port);
/* Where a frame came from, as text, valid with the frame; "?" if unknown. */
const char *hk_port_address (zmq_msg_t *frame);
/* One frame to a route; -1 with EHOSTUNREACH or EAGAIN. */
int hk_port_send (void *socket,
                  const struct hk_route *route,
                  const void *data,
                  size_t len);

/* link_source.c */
/* May this source have a job done at once?  Else it goes to the slow lane. */
bool hk_source_take (struct hk_link_server *link, const char *address);
void hk_source_slow_add (struct hk_link_server *link, const char *address);
void hk_source_slow_done (struct hk_link_server *link, const char *address);
void hk_source_sweep (struct hk_link_server *link);
/* At most once a second for each key. */
bool hk_source_may_rehello (struct hk_link_server *link, const char *key);

/* link_hello.c */
/* A job that MUNGE did not answer: logged once for all that come meanwhile, and
 * its error says whose MUNGE it is.  False: it is another error.
 */
bool hk_job_lacks_munge (struct hk_link_job *job);
/* Takes the message's routing and text; the HELLO was decoded already. */
void hk_hello_submit (struct hk_link_server *link,
                      struct hk_port *port,
                      const struct hk_route *route,
                      const char *key,
                      const char *address,
                      const struct hk_msg *msg);
void hk_jobs_collect (struct hk_link_server *link);
void hk_jobs_fini (struct hk_link_server *link);
int hk_job_submit (struct hk_link_server *link,
                   struct hk_pool_lane *lane,
                   struct hk_link_job *job);

/* link_session.c */
void hk_peer_event (struct hk_link_server *link, struct hk_link_peer *peer);
/* Take it out of the table; its GONE is queued if the caller knows it. */
void hk_peer_leave (struct hk_link_server *link, struct hk_link_peer *peer);
void hk_peer_bury (struct hk_link_server *link);
void hk_peer_sweep (struct hk_link_server *link);
void hk_peers_fini (struct hk_link_server *link);
/* Outside a session. */
/* -1 with errno: EAGAIN the queue is full, EHOSTUNREACH gone, EINVAL. */
int hk_route_send (struct hk_link_server *link,
                   void *socket,
                   const struct hk_route *route,
                   struct hk_msg *msg);
void hk_route_error (struct hk_link_server *link,
                     void *socket,
                     const struct hk_route *route,
                     uint64_t re,
                     const char *code,
                     const char *text);
void hk_route_rehello (struct hk_link_server *link,
                       void *socket,
                       const struct hk_route *route,
                       const char *key);

#endif

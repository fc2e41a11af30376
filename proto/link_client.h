/* link_client.h - what the parts of the link's client share */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HK_LINK_CLIENT_H
#define HK_LINK_CLIENT_H

#include "proto/hostlist.h"
#include "proto/identity.h"
#include "proto/link.h"
#include "proto/link_pool.h"

/* What the key answer said, or rehello later. */
struct hk_known_server {
    char key[HK_KEY_TEXT_BYTES];
    char instance[HK_ID_BYTES];
    uint64_t start;
};

/* IDLE: until the deadline; ASK: the key question is out, or another client of
 * the process has asked it; CHECK: MUNGE reads the answer; CONNECT: until the
 * handshake; VOUCH: MUNGE makes the HELLO; SEND: it waits for the connection's
 * queue; HELLO: until welcome; UP.
 */
enum hk_client_state {
    CLIENT_IDLE,
    CLIENT_ASK,
    CLIENT_CHECK,
    CLIENT_CONNECT,
    CLIENT_VOUCH,
    CLIENT_SEND,
    CLIENT_HELLO,
    CLIENT_UP,
};

/* On its way through the pool; everything in it is its own. */
struct hk_client_job {
    struct hk_pool_job job;
    unsigned attempt; /* the client's when it was made: else too late */
    char *munge_socket;
    bool is_key;
    char *cred;
    struct hk_key_claim claim;
    struct hk_hello_claim hello;
    uid_t uid; /* whose claim; whom the HELLO is for */
    int errnum;
    struct hk_error err;
};

struct hk_link_client {
    struct hk_hostlist *head;
    uint16_t port;
    uint16_t key_port;
    char *munge_socket;
    uid_t server_uid;
    struct hk_hello_claim who; /* own key, role, host, boot id */
    char secret_key[HK_KEY_TEXT_BYTES];
    char *life;
    int64_t heartbeat_conf_ms;
    int jitter_ms;
    bool lean;
    bool is_empty; /* a lean one's socket, when it was last looked at */

    void *context;
    bool own_context;
    void *key_socket;
    void *socket;
    void *monitor;
    int epoll_fd;
    int event_fd; /* -1 if lean */
    bool poked;   /* something was written to event_fd */

    struct hk_pool_lane lane;
    unsigned attempt;

    enum hk_client_state state;
    int64_t now_ms;
    int64_t deadline_ms;
    int64_t alive_ms;
    int64_t heartbeat_ms;
    size_t head_at;    /* endpoint in use */
    unsigned failed;   /* in a row */
    unsigned rehellos; /* in a row */
    unsigned waits;    /* in a row, of more than a head has for a step */
    bool started;
    bool is_counted;  /* among the lean ones that connect */
    bool is_draining; /* _next was not yet answered with 0 */
    char nonce[HK_NONCE_TEXT_BYTES];
    struct hk_known_server server;
    char *hello_cred;
    uint64_t hello_seq;
    uint64_t seq;
    char session[HK_ID_BYTES];

    bool down_waits; /* to be told */
    int errnum;
    struct hk_error err;
};

/* link_client_state.c */
/* Whatever can be done now without a message for the caller.  True if there
 * may be more.
 */
bool hk_client_step (struct hk_link_client *c);
/* For link_client_hear.c. */
enum { HK_CLIENT_MUNGE_MS = 15000 }; /* libmunge itself gives up after 10 s */
const char *hk_client_head (const struct hk_link_client *c);
void hk_client_enter (struct hk_link_client *c,
                      enum hk_client_state state,
                      int64_t wait_ms);
void hk_client_say_down (struct hk_link_client *c,
                         int errnum,
                         const char *fmt,
                         ...) __attribute__ ((format (printf, 3, 4)));
/* Everything anew: at the next endpoint, after a while.  wait_ms 0: back off. */
void hk_client_restart (struct hk_link_client *c, int64_t wait_ms);
void hk_client_vouch (struct hk_link_client *c);
/* Between half of it and all of it. */
int64_t hk_client_spread (int64_t ms);
/* link_client_hear.c */
void hk_client_hear_key (struct hk_link_client *c, const struct hk_msg *msg);
/* What came from the coordinator: true if the caller gets it as *event. */
bool hk_client_hear (struct hk_link_client *c,
                     const struct hk_msg *msg,
                     enum hk_client_event *event);
void hk_client_forget_hello (struct hk_link_client *c);
void hk_client_uncount (struct hk_link_client *c);

/* link_client_socket.c */
int hk_client_open_fds (struct hk_link_client *c, struct hk_error *err);
void hk_client_close_fds (struct hk_link_client *c);
int hk_client_open_key_socket (struct hk_link_client *c, struct hk_error *err);
void hk_client_close_key_socket (struct hk_link_client *c);
int hk_client_open_socket (struct hk_link_client *c, struct hk_error *err);
void hk_client_close_socket (struct hk_link_client *c);
/* Make the descriptor readable. */
void hk_client_poke (struct hk_link_client *c);
void hk_client_unpoke (struct hk_link_client *c);
enum hk_client_news {
    CLIENT_NEWS_NONE,
    CLIENT_NEWS_SHAKEN, /* a handshake was done */
    CLIENT_NEWS_LOST,   /* the connection ended */
    CLIENT_NEWS_FAILED, /* a handshake failed */
};
enum hk_client_news hk_client_news (struct hk_link_client *c);
/* 1 and the message, 0: none there; what cannot be read is passed over. */
int hk_client_receive (struct hk_link_client *c,
                       void *socket,
                       struct hk_msg *msg);
/* -1 with EAGAIN, or EINVAL (our mistake). */
int hk_client_transmit (void *socket, const struct hk_msg *msg);

/* link_client_key.c: clients of a process share what one of them learnt. */
bool hk_known_get (const struct hk_link_client *c,
                   struct hk_known_server *known);
void hk_known_put (const struct hk_link_client *c);
/* The key was wrong: the next one asks. */
void hk_known_forget (const struct hk_link_client *c);
/* True if this client is to ask; false if another does at present. */
bool hk_known_ask (const struct hk_link_client *c);

/* link_client_munge.c */
int hk_client_check_key (struct hk_link_client *c, const char *cred);
int hk_client_make_hello (struct hk_link_client *c);
/* The finished job of this attempt, or NULL; the caller frees it. */
struct hk_client_job *hk_client_collect (struct hk_link_client *c);
void hk_client_job_free (struct hk_client_job *job);
void hk_client_jobs_fini (struct hk_link_client *c);

#endif

/* internal.h - what the files of the engine share */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HKC_ENGINE_INTERNAL_H
#define HKC_ENGINE_INTERNAL_H

#include <czmq.h>
#include <pthread.h>
#include <stdatomic.h>
#include "proto/link.h"
#include "coordinator/engine/engine.h"
#include "coordinator/engine/turn.h"
#include "coordinator/store/store.h"

/* Notes from any thread; an eventfd that is readable while there are some. */
struct hkc_mailbox {
    pthread_mutex_t mutex;
    struct hkc_note *first, **end;
    int fd;
    bool is_signalled;
};
int hkc_mailbox_init (struct hkc_mailbox *box, struct hk_error *err);
void hkc_mailbox_fini (struct hkc_mailbox *box);
void hkc_mailbox_put (struct hkc_mailbox *box, struct hkc_note *note);
struct hkc_note *hkc_mailbox_take (struct hkc_mailbox *box); /* or NULL */
/* Make fd readable until the next take that finds nothing. */
void hkc_mailbox_wake (struct hkc_mailbox *box);

/* Who waits for an answer: a client by its session and seq, or the host. */
struct hkc_ask {
    uint64_t id;   /* the token of the turn, the tag of the reader */
    uint64_t peer; /* 0: the host */
    uint64_t seq;  /* or the host's tag */
    enum hk_msg_type type;
};

/* A log that is on its way from nodes to a client. */
struct hkc_relay {
    uint64_t client;
    uint64_t client_seq;
    size_t left; /* nodes that have not ended theirs */
    bool follow;
    int64_t deadline_ms;
};

struct hkc_engine {
    struct hk_conf *conf;
    struct hkc_host_ops host;
    struct hkc_store *store;
    struct hkc_reader *reader;
    struct hkc_checkpoint *checkpoint;
    struct hkc_core *core;
    struct hkc_turn *turn;
    struct hk_link_server *link; /* NULL: not open yet (link_may_wait) */
    struct hkc_mailbox mailbox;
    int wake_fd;      /* epoll over mailbox and reader */
    zhashx_t *peers;  /* id -> struct hk_peer */
    zhashx_t *relays; /* "peer/seq" of a node's log -> struct hkc_relay */
    zhashx_t *asks;   /* id -> struct hkc_ask */
    uint64_t asks_made;
    zlistx_t *followers; /* struct hkc_ask */
    int64_t relay_ms;    /* when relays are looked through next */
    int64_t trim_ms;
    pthread_mutex_t trouble_mutex;    /* over the two that follow */
    char store_error[HK_ERROR_BYTES]; /* "" while it can be written */
    char link_error[HK_ERROR_BYTES];  /* "" while it is open */
    double store_error_t;
    int64_t link_ms; /* when opening the link is tried again */
    _Atomic (struct hk_conf *) next_conf;
    struct hk_conf *old_conf; /* until the core has the new one */
    atomic_uint_fast64_t turns;
    atomic_bool quit, failed;
    pthread_t thread;
    bool started;
};

/* linking.c */
int hkc_link_open (struct hkc_engine *e, struct hk_error *err);
void hkc_link_tick (struct hkc_engine *e); /* while there is none */
void hkc_link_reload (struct hkc_engine *e, const struct hk_conf *conf);
void hkc_link_wait (struct hkc_engine *e, int timeout_ms);
void hkc_trouble_set (struct hkc_engine *e,
                      char field[HK_ERROR_BYTES],
                      const char *text);

/* note.c: R of a job that ended; NULL with what is wrong with it */
struct hk_resource *hkc_job_resource (const char *text, struct hk_error *err);
/* What a host gave as text. -1: the note is refused. */
int hkc_note_decode (struct hkc_note *note, struct hk_error *err);
void hkc_note_refuse (struct hkc_engine *e,
                      struct hkc_note *note,
                      const struct hk_error *err); /* takes note; uses errno */

/* input.c: a message or a note becomes an input of the turn */
int hkc_receive (void *arg, enum hkc_collect how, struct hkc_input *in);
void hkc_release (void *arg, struct hkc_input *in);
const struct hk_msg *hkc_input_msg (const struct hkc_input *in);
const struct hkc_note *hkc_input_note (const struct hkc_input *in); /* NULL */
uint64_t hkc_input_peer (const struct hkc_input *in);
struct hk_peer *hkc_peer (struct hkc_engine *e, uint64_t id);

/* ask.c: 0 when memory is gone; take removes, the caller frees */
uint64_t hkc_ask_add (struct hkc_engine *e,
                      uint64_t peer,
                      uint64_t seq,
                      enum hk_msg_type type);
struct hkc_ask *hkc_ask_take (struct hkc_engine *e, uint64_t id);

/* output.c: actions become messages */
void hkc_send_node (void *arg, const struct hkc_action *act);
void hkc_send_host (void *arg, const struct hkc_action *act);
void hkc_answer (void *arg,
                 uint64_t token,
                 int rc,
                 const struct hkc_answer *answer,
                 const struct hk_error *err);
bool hkc_put_off (void *arg, uint64_t token);
void hkc_reply_error (struct hkc_engine *e,
                      struct hk_peer *peer,
                      uint64_t re,
                      const char *code,
                      const char *text);
void hkc_reply_rows (struct hkc_engine *e,
                     struct hk_peer *peer,
                     uint64_t re,
                     json_t *rows,
                     bool more); /* takes rows */
void hkc_reply_done (struct hkc_engine *e,
                     struct hk_peer *peer,
                     uint64_t re,
                     json_t *result,
                     const char *text); /* takes result */
void hkc_follow_send (struct hkc_engine *e, const struct hkc_action *act);
void hkc_follow_drop (struct hkc_engine *e, uint64_t peer);

/* look.c: questions of clients */
void hkc_look (void *arg, struct hkc_input *in);
void hkc_look_put_off (void *arg, struct hkc_input *in);
/* While the store cannot be written. */
void hkc_look_deaf (struct hkc_engine *e,
                    struct hk_peer *peer,
                    const struct hk_msg *msg);
void hkc_ping (struct hkc_engine *e, struct hk_peer *peer, uint64_t re);
void hkc_reader_answers (struct hkc_engine *e);

/* listing.c */
void hkc_list (struct hkc_engine *e,
               struct hk_peer *peer,
               const struct hk_msg *msg);
void hkc_nodes (struct hkc_engine *e,
                struct hk_peer *peer,
                const struct hk_msg *msg);

void hkc_host_list (struct hkc_engine *e, uint64_t tag);

/* relay.c */
void hkc_log_ask (struct hkc_engine *e,
                  struct hk_peer *peer,
                  const struct hk_msg *msg);
void hkc_log_back (struct hkc_engine *e,
                   struct hk_peer *node,
                   struct hk_msg *msg);
void hkc_relay_tick (struct hkc_engine *e, int64_t now_ms);
void hkc_relay_free (void **item);

#endif

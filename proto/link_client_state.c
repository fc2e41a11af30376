/* link_client_state.c - the client's states, from key question to session */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "proto/link_client.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ASK_MS = 5000,
    OTHER_ASKS_MS = 50,
    NEXT_HEAD_AFTER_MS = 10000, /* where there is another one */
    SAME_HEAD_AFTER_MS = 30000, /* when thousands come at once it takes long */
    SEND_MS = 20,
    NEXT_HEAD_MS = 50,
    RETRY_MIN_MS = 1000,
    RETRY_MAX_MS = 15000,
    WAITS_MAX = 4,
    LEAN_CONNECTING_MAX = 256,
    LEAN_TURN_MS = 20,
};

static void start_attempt (struct hk_link_client *c);

const char *hk_client_head (const struct hk_link_client *c)
{
    return hk_hostlist_nth (c->head, c->head_at);
}

/* Handshakes of lean clients under way: with all of them at once the clients of
 * one process keep each other from ending any before the server gives up.
 */
static atomic_int lean_connecting;

/* How long a head has for a step. */
static int64_t patience_ms (const struct hk_link_client *c)
{
    return hk_hostlist_count (c->head) > 1 ? NEXT_HEAD_AFTER_MS
                                           : SAME_HEAD_AFTER_MS;
}

void hk_client_enter (struct hk_link_client *c,
                      enum hk_client_state state,
                      int64_t wait_ms)
{
    bool is_counted = c->lean && state == CLIENT_CONNECT;

    if (is_counted != c->is_counted)
        lean_connecting += is_counted ? 1 : -1;
    c->is_counted = is_counted;
    c->state = state;
    c->deadline_ms = c->now_ms + wait_ms;
}

void hk_client_uncount (struct hk_link_client *c)
{
    if (c->is_counted)
        lean_connecting--;
    c->is_counted = false;
}

__attribute__ ((format (printf, 3, 4))) void hk_client_say_down (
    struct hk_link_client *c, int errnum, const char *fmt, ...)
{
    va_list ap;

    va_start (ap, fmt);
    vsnprintf (c->err.text, sizeof (c->err.text), fmt, ap);
    va_end (ap);
    c->errnum = errnum;
    c->down_waits = true;
    c->session[0] = '\0';
}

void hk_client_forget_hello (struct hk_link_client *c)
{
    if (c->hello_cred)
        explicit_bzero (c->hello_cred, strlen (c->hello_cred));
    free (c->hello_cred);
    c->hello_cred = NULL;
}

/* Between half of it and all of it, so that thousands do not come at once. */
int64_t hk_client_spread (int64_t ms)
{
    return ms / 2 + (int64_t)(hk_random_u63 () % (uint64_t)(ms / 2 + 1));
}

/* Everything anew: at the next endpoint, after a while.  wait_ms 0: back off. */
void hk_client_restart (struct hk_link_client *c, int64_t wait_ms)
{
    size_t heads = hk_hostlist_count (c->head);

    c->attempt++;
    hk_client_forget_hello (c);
    hk_client_close_key_socket (c);
    hk_client_close_socket (c);
    c->head_at = (c->head_at + 1) % heads;
    c->failed++;
    if (wait_ms == 0 && c->failed % heads != 0) {
        wait_ms = NEXT_HEAD_MS;
    } else if (wait_ms == 0) {
        size_t round = c->failed / heads - 1;

        wait_ms = round < 4 ? RETRY_MIN_MS << round : RETRY_MAX_MS;
    }
    hk_client_enter (c, CLIENT_IDLE, hk_client_spread (wait_ms));
}

static void connect_now (struct hk_link_client *c)
{
    struct hk_error err;

    if (hk_client_open_socket (c, &err) < 0) {
        hk_client_say_down (c, errno, "%s", err.text);
        hk_client_restart (c, 0);
        return;
    }
    hk_client_enter (c, CLIENT_CONNECT, patience_ms (c));
}

static void ask_key (struct hk_link_client *c)
{
    struct hk_msg msg = { .type = HK_MSG_KEY_GET, .seq = ++c->seq };
    struct hk_error err;

    if (hk_client_open_key_socket (c, &err) < 0) {
        hk_client_say_down (c, errno, "%s", err.text);
        hk_client_restart (c, 0);
        return;
    }
    hk_random_nonce (c->nonce);
    msg.key_get.nonce = c->nonce;
    hk_client_transmit (c->key_socket, &msg);
    hk_client_enter (c, CLIENT_ASK, ASK_MS);
}

static void start_attempt (struct hk_link_client *c)
{
    if (c->lean && lean_connecting >= LEAN_CONNECTING_MAX)
        hk_client_enter (c, CLIENT_IDLE, LEAN_TURN_MS);
    else if (hk_known_get (c, &c->server))
        connect_now (c);
    else if (hk_known_ask (c))
        ask_key (c);
    else
        hk_client_enter (c, CLIENT_ASK, OTHER_ASKS_MS);
}

void hk_client_vouch (struct hk_link_client *c)
{
    c->attempt++;
    hk_client_forget_hello (c);
    if (hk_client_make_hello (c) < 0) {
        hk_client_say_down (c, EAGAIN, "no memory or thread to ask munge");
        hk_client_restart (c, 0);
        return;
    }
    hk_client_enter (c, CLIENT_VOUCH, HK_CLIENT_MUNGE_MS);
}

static void send_hello (struct hk_link_client *c)
{
    struct hk_msg msg = { .type = HK_MSG_HELLO, .seq = c->seq + 1 };

    msg.hello.version = HK_PROTOCOL_VERSION;
    msg.hello.role = c->who.role;
    msg.hello.cred = c->hello_cred;
    /* the connection may come a moment after its handshake */
    if (hk_client_transmit (c->socket, &msg) < 0) {
        hk_client_enter (c, CLIENT_SEND, SEND_MS);
        return;
    }
    c->hello_seq = ++c->seq;
    hk_client_forget_hello (c);
    hk_client_enter (c, CLIENT_HELLO, patience_ms (c));
}

static const char no_munge[] = "the munge of this host does not answer";

static void finish_key (struct hk_link_client *c, struct hk_client_job *job)
{
    if (job->errnum == EAGAIN)
        hk_client_say_down (c, EAGAIN, "%s: %s", no_munge, job->err.text);
    else if (job->errnum)
        hk_client_say_down (
            c, job->errnum, "key of %s: %s", hk_client_head (c), job->err.text);
    else if (job->uid != c->server_uid)
        hk_client_say_down (c,
                            EACCES,
                            "key of %s: vouched for by uid %u, not %u",
                            hk_client_head (c),
                            job->uid,
                            c->server_uid);
    else if (strcmp (job->claim.nonce, c->nonce) != 0)
        hk_client_say_down (
            c, EACCES, "key of %s: an old answer", hk_client_head (c));
    if (c->down_waits) {
        hk_client_restart (c, 0);
        return;
    }
    memcpy (c->server.key, job->claim.server_pub, HK_KEY_TEXT_BYTES);
    memcpy (c->server.instance, job->claim.instance, HK_ID_BYTES);
    c->server.start = job->claim.start;
    hk_known_put (c);
    connect_now (c);
}

static void finish_job (struct hk_link_client *c, struct hk_client_job *job)
{
    if (job->is_key && c->state == CLIENT_CHECK) {
        finish_key (c, job);
    } else if (!job->is_key && c->state == CLIENT_VOUCH) {
        if (job->errnum) {
            hk_client_say_down (c,
                                job->errnum,
                                "%s%s%s",
                                job->errnum == EAGAIN ? no_munge : "",
                                job->errnum == EAGAIN ? ": " : "",
                                job->err.text);
            hk_client_restart (c, 0);
        } else {
            c->hello_cred = job->cred;
            job->cred = NULL;
            send_hello (c);
        }
    }
    hk_client_job_free (job);
}

static void hear_news (struct hk_link_client *c, enum hk_client_news news)
{
    switch (news) {
    case CLIENT_NEWS_SHAKEN:
        if (c->state == CLIENT_UP)
            hk_client_say_down (
                c, ECONNREFUSED, "connection to %s lost", hk_client_head (c));
        hk_client_vouch (c);
        break;
    case CLIENT_NEWS_LOST:
        if (c->state == CLIENT_UP)
            hk_client_say_down (
                c, ECONNREFUSED, "connection to %s lost", hk_client_head (c));
        /* libzmq connects again */
        c->attempt++;
        hk_client_forget_hello (c);
        hk_client_enter (c, CLIENT_CONNECT, patience_ms (c));
        break;
    case CLIENT_NEWS_FAILED:
        hk_client_say_down (
            c, ECONNREFUSED, "handshake with %s failed", hk_client_head (c));
        hk_known_forget (c);
        hk_client_restart (c, 0);
        break;
    case CLIENT_NEWS_NONE:
        break;
    }
}

static void say_alive (struct hk_link_client *c)
{
    struct hk_msg msg = { .type = HK_MSG_ALIVE };

    if (c->who.boot_id[0])
        msg.alive.boot_id = c->who.boot_id;
    msg.alive.life = c->life;
    /* a full queue says as much */
    hk_link_client_send (c, &msg, NULL);
    c->alive_ms = c->now_ms + c->heartbeat_ms;
}

/* A head that thousands come to at once is slow, and slower still if they begin
 * anew again and again: where there is no other one the socket stays, and
 * libzmq goes on trying.
 */
static bool is_patient (struct hk_link_client *c)
{
    return hk_hostlist_count (c->head) == 1 && ++c->waits % WAITS_MAX != 0;
}

static void time_out (struct hk_link_client *c)
{
    switch (c->state) {
    case CLIENT_IDLE:
        if (!c->started && c->jitter_ms > 0)
            hk_client_enter (
                c,
                CLIENT_IDLE,
                (int64_t)(hk_random_u63 () % (unsigned)c->jitter_ms));
        else
            start_attempt (c);
        c->started = true;
        return;
    case CLIENT_ASK:
        if (!c->key_socket) {
            start_attempt (c);
            return;
        }
        hk_client_say_down (c,
                            ECONNREFUSED,
                            "no answer from %s port %u",
                            hk_client_head (c),
                            c->key_port);
        break;
    case CLIENT_SEND:
        send_hello (c);
        return;
    case CLIENT_CONNECT:
        hk_client_say_down (c,
                            ECONNREFUSED,
                            "no connection to %s port %u",
                            hk_client_head (c),
                            c->port);
        if (is_patient (c)) {
            hk_client_enter (c, CLIENT_CONNECT, patience_ms (c));
            return;
        }
        if (c->lean)
            hk_known_forget (c);
        break;
    case CLIENT_HELLO:
        hk_client_say_down (
            c, ECONNREFUSED, "no answer to hello by %s", hk_client_head (c));
        if (is_patient (c)) {
            hk_client_vouch (c);
            return;
        }
        break;
    case CLIENT_CHECK:
    case CLIENT_VOUCH:
        hk_client_say_down (c, EAGAIN, "%s", no_munge);
        break;
    case CLIENT_UP:
        return;
    }
    hk_client_restart (c, 0);
}

bool hk_client_step (struct hk_link_client *c)
{
    struct hk_client_job *job = hk_client_collect (c);
    enum hk_client_news news;
    struct hk_msg msg;

    if (job) {
        finish_job (c, job);
        return true;
    }
    news = hk_client_news (c);
    if (news != CLIENT_NEWS_NONE) {
        hear_news (c, news);
        return true;
    }
    if (c->key_socket && hk_client_receive (c, c->key_socket, &msg)) {
        hk_client_hear_key (c, &msg);
        hk_msg_fini (&msg);
        return true;
    }
    if (c->now_ms >= c->deadline_ms) {
        time_out (c);
        return true;
    }
    if (c->state == CLIENT_UP && c->now_ms >= c->alive_ms)
        say_alive (c);
    return false;
}

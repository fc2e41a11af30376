/* link_client_hear.c - what the coordinator says to a client */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "proto/link_client.h"

#include <errno.h>
#include <string.h>

enum {
    BUSY_MS = 5000,     /* the coordinator said: come again */
    RIVAL_MS = 1000,    /* ... while another has the name: to be seen in each of
                           its heartbeats, and in at once when it is gone */
    REFUSED_MS = 15000, /* it said: no */
    VERSION_MS = 60000, /* until somebody installs another version */
    REHELLOS_MAX = 5,
};

void hk_client_hear_key (struct hk_link_client *c, const struct hk_msg *msg)
{
    if (msg->re != c->seq)
        return;
    if (msg->type == HK_MSG_ERROR) {
        hk_client_say_down (
            c, EAGAIN, "key of %s: %s", hk_client_head (c), msg->error.text);
        hk_client_restart (c, 0);
    } else if (msg->type == HK_MSG_KEY) {
        if (hk_client_check_key (c, msg->key.cred) < 0) {
            hk_client_say_down (c, EAGAIN, "no memory or thread to ask munge");
            hk_client_restart (c, 0);
            return;
        }
        hk_client_close_key_socket (c);
        hk_client_enter (c, CLIENT_CHECK, HK_CLIENT_MUNGE_MS);
    }
}

static void hear_refusal (struct hk_link_client *c,
                          const struct hk_msg_error *error)
{
    static const struct {
        const char *code;
        int errnum;
        int wait_ms;
    } codes[] = {
        { "version", EPROTO, VERSION_MS }, { "skew", EKEYEXPIRED, REFUSED_MS },
        { "conflict", EAGAIN, RIVAL_MS },  { "limit", EAGAIN, BUSY_MS },
        { "store", EAGAIN, BUSY_MS },      { "auth", EACCES, REFUSED_MS },
    };
    int errnum = EACCES;
    int wait_ms = REFUSED_MS;

    for (size_t i = 0; i < sizeof (codes) / sizeof (codes[0]); i++)
        if (strcmp (codes[i].code, error->code) == 0) {
            errnum = codes[i].errnum;
            wait_ms = codes[i].wait_ms;
        }
    hk_client_say_down (
        c, errnum, "%s: %s: %s", hk_client_head (c), error->code, error->text);
    hk_client_restart (c, wait_ms);
}

static void hear_rehello (struct hk_link_client *c,
                          const struct hk_msg_rehello *rehello)
{
    memcpy (c->server.instance, rehello->instance, HK_ID_BYTES);
    c->server.start = rehello->start;
    hk_known_put (c);
    if (c->state == CLIENT_UP)
        hk_client_say_down (
            c, ECONNREFUSED, "%s ended the session", hk_client_head (c));
    if (++c->rehellos > REHELLOS_MAX) {
        hk_client_say_down (c, EAGAIN, "%s takes no hello", hk_client_head (c));
        hk_client_restart (c, 0);
        return;
    }
    hk_client_vouch (c);
}

/* True if it is HK_CLIENT_UP. */
static bool hear_welcome (struct hk_link_client *c, const struct hk_msg *msg)
{
    int version = msg->welcome.version;

    if (c->state != CLIENT_HELLO || msg->re != c->hello_seq || !msg->session)
        return false;
    if (version > HK_PROTOCOL_VERSION + 1
        || version < HK_PROTOCOL_VERSION - 1) {
        hk_client_say_down (c,
                            EPROTO,
                            "%s: protocol version %d, ours is %d",
                            hk_client_head (c),
                            version,
                            HK_PROTOCOL_VERSION);
        hk_client_restart (c, VERSION_MS);
        return false;
    }
    memcpy (c->session, msg->session, HK_ID_BYTES);
    c->heartbeat_ms = c->heartbeat_conf_ms ? c->heartbeat_conf_ms
                                           : msg->welcome.heartbeat_ms;
    c->alive_ms = c->heartbeat_ms > 0
                      ? c->now_ms + hk_client_spread (c->heartbeat_ms)
                      : INT64_MAX;
    c->failed = 0;
    c->rehellos = 0;
    c->waits = 0;
    c->errnum = 0;
    c->state = CLIENT_UP;
    c->deadline_ms = INT64_MAX;
    return true;
}

bool hk_client_hear (struct hk_link_client *c,
                     const struct hk_msg *msg,
                     enum hk_client_event *event)
{
    if (msg->type == HK_MSG_WELCOME) {
        *event = HK_CLIENT_UP;
        return hear_welcome (c, msg);
    }
    if (msg->type == HK_MSG_REHELLO) {
        if (c->state > CLIENT_CONNECT)
            hear_rehello (c, &msg->rehello);
        return false;
    }
    if (msg->type == HK_MSG_ERROR && c->state == CLIENT_HELLO) {
        if (msg->re == c->hello_seq)
            hear_refusal (c, &msg->error);
        return false;
    }
    *event = HK_CLIENT_MESSAGE;
    /* an error may be about what cannot be told to be of a session */
    return c->state == CLIENT_UP
           && (msg->session ? strcmp (msg->session, c->session) == 0
                            : msg->type == HK_MSG_ERROR);
}

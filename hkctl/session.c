/* session.c - questions to the coordinator and their answers */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "hkctl/hkctl.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/clock.h"
#include "proto/escape.h"
#include "proto/hostlist.h"

static void say (const char *text)
{
    char safe[HK_ERROR_BYTES * 4];

    fprintf (
        stderr, "hkctl: %s\n", hk_escape (text, SIZE_MAX, safe, sizeof (safe)));
}

/* Until the client has something to tell: 1, or 0 after limit_ms. */
static int wait_client (struct hk_link_client *client, int64_t limit_ms)
{
    int64_t until = hk_link_client_deadline (client);
    int64_t now = hk_boot_ms ();
    struct pollfd fd = {
        .fd = hk_link_client_fd (client),
        .events = POLLIN,
    };

    if (limit_ms >= 0 && now >= limit_ms)
        return 0;
    if (limit_ms >= 0 && limit_ms < until)
        until = limit_ms;
    if (until > now + 60000)
        until = now + 60000;
    poll (&fd, 1, until > now ? (int)(until - now) : 0);
    return 1;
}

/* What no further try would change. */
static bool is_final (int errnum)
{
    return errnum == EACCES || errnum == EPROTO || errnum == EKEYEXPIRED;
}

/* Silence has several causes, and none of them can tell of itself. */
static void say_silence (const struct ctl *ctl, const struct hk_error *err)
{
    char *heads = hk_hostlist_encode (ctl->conf->head);
    char text[HK_ERROR_BYTES * 2];

    snprintf (text,
              sizeof (text),
              "%s; on %s, is hk-coordinator running, is its munged, and does "
              "a firewall let ports %u and %u through?",
              err->text,
              heads ? heads : "the head",
              ctl->conf->key_port,
              ctl->conf->client_port);
    free (heads);
    say (text);
}

int ctl_connect (struct ctl *ctl, const char *role)
{
    const struct hk_conf *conf = ctl->conf;
    struct hk_client_conf options = {
        .head = conf->head,
        .port = conf->client_port,
        .key_port = conf->key_port,
        .munge_socket = conf->munge_socket,
        .server_uid = conf->server_uid,
        .role = role,
    };
    int64_t limit = hk_boot_ms () + ctl->args.timeout_ms;
    enum hk_client_event event;
    struct hk_error err = { "no answer in time" };
    struct hk_msg msg;
    int why;

    ctl->client = hk_link_client_create (&options, &err);
    if (!ctl->client) {
        say (err.text);
        return CTL_NO_WAY;
    }
    do {
        while (hk_link_client_next (
            ctl->client, hk_boot_ms (), &event, &msg, &err))
            if (event == HK_CLIENT_UP) {
                snprintf (ctl->role,
                          sizeof (ctl->role),
                          "%s",
                          msg.welcome.role ? msg.welcome.role : role);
                hk_msg_fini (&msg);
                return CTL_DONE;
            } else if (event == HK_CLIENT_MESSAGE) {
                hk_msg_fini (&msg);
            } else if (is_final (hk_link_client_errno (ctl->client))) {
                say (err.text);
                return CTL_NO_WAY;
            }
    } while (wait_client (ctl->client, limit));
    why = hk_link_client_errno (ctl->client);
    if (!why || why == ECONNREFUSED)
        say_silence (ctl, &err);
    else
        say (err.text);
    return CTL_NO_WAY;
}

void ctl_disconnect (struct ctl *ctl)
{
    hk_link_client_destroy (ctl->client);
    ctl->client = NULL;
}

int ctl_receive (struct ctl *ctl,
                 int64_t timeout_ms,
                 struct hk_msg *msg,
                 int *status)
{
    int64_t limit = timeout_ms < 0 ? -1 : hk_boot_ms () + timeout_ms;
    enum hk_client_event event;
    struct hk_error err = { "no answer in time" };

    *status = CTL_NO_WAY;
    do {
        while (hk_link_client_next (
            ctl->client, hk_boot_ms (), &event, msg, &err)) {
            if (event == HK_CLIENT_MESSAGE)
                return 1;
            if (event == HK_CLIENT_UP) {
                hk_msg_fini (msg);
                return 0;
            }
            say (err.text);
            if (is_final (hk_link_client_errno (ctl->client)))
                return -1;
        }
    } while (wait_client (ctl->client, limit));
    say (err.text);
    return -1;
}

int ctl_error_status (const char *code)
{
    static const char *const not_allowed[] = {
        "denied", "auth", "version", "skew"
    };

    for (size_t i = 0; i < sizeof (not_allowed) / sizeof (not_allowed[0]); i++)
        if (strcmp (code, not_allowed[i]) == 0)
            return CTL_NO_WAY;
    return CTL_NO;
}

/* The exit status, or -1 when there is more to come. */
static int take (struct ctl_answer *answer, struct hk_msg *msg)
{
    int status;

    switch (msg->type) {
    case HK_MSG_ERROR:
        say (msg->error.text);
        snprintf (answer->code, sizeof (answer->code), "%s", msg->error.code);
        return ctl_error_status (msg->error.code);
    case HK_MSG_DATA:
        status = answer->rows ? answer->rows (answer->arg, msg->data.rows)
                              : CTL_DONE;
        return status == CTL_DONE ? -1 : status;
    case HK_MSG_DONE:
        answer->result = json_incref (msg->done.result);
        snprintf (answer->text,
                  sizeof (answer->text),
                  "%s",
                  msg->done.text ? msg->done.text : "");
        return CTL_DONE;
    default:
        status = answer->other ? answer->other (answer->arg, msg) : CTL_DONE;
        if (msg->type == HK_MSG_RECORDED)
            return status;
        return status == CTL_DONE ? -1 : status;
    }
}

int ctl_ask (struct ctl *ctl, struct hk_msg *msg, struct ctl_answer *answer)
{
    int64_t timeout_ms = ctl->args.follow ? -1 : ctl->args.timeout_ms;
    uint64_t seq;
    int status;

    answer->result = NULL;
    answer->text[0] = '\0';
    answer->code[0] = '\0';
    if (hk_link_client_send (ctl->client, msg, &seq) < 0) {
        say (strerror (errno));
        return CTL_NO_WAY;
    }
    for (;;) {
        struct hk_msg reply;
        int rc = ctl_receive (ctl, timeout_ms, &reply, &status);

        if (rc < 0)
            return status;
        if (rc == 0) {
            /* whether it was done is not known: asking again is for people */
            say ("the connection was lost before the answer");
            return CTL_NO_WAY;
        }
        status = -1;
        if (reply.re == seq || (reply.type == HK_MSG_ERROR && !reply.re))
            status = take (answer, &reply);
        hk_msg_fini (&reply);
        if (status >= 0)
            return status;
    }
}

char *ctl_hosts_text (const struct ctl *ctl)
{
    return ctl->args.hosts ? hk_hostlist_encode (ctl->args.hosts) : NULL;
}

/* node_link.c - what the coordinator says, and what it is told */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include "proto/clock.h"
#include "proto/log.h"
#include "hkd/node_impl.h"

enum {
    SEEN_EVERY_MS = 1000,
    STATE_BYTES = HK_MSG_NODE_BYTES - (16 << 10),
};

/* ---- what the coordinator told last ---- */

static void seen_write (struct hkd_node *node)
{
    struct hk_error err;

    node->seen_at_ms = hk_boot_ms ();
    node->seen_changed = false;
    if (hkd_seen_save (node->conf->run_dir, &node->seen, &err) < 0)
        hk_log_throttled (LOG_ERR,
                          "seen",
                          "what the coordinator told is not "
                          "kept: %s",
                          err.text);
}

/* Of welcome it counts only once the coordinator has heard our state: one that
 * has gone back in time must be told what was seen before.
 */
static void seen_set (struct hkd_node *node, uint64_t start, uint64_t commit)
{
    struct hkd_seen *seen = &node->seen;
    bool same = !strcmp (seen->instance, node->instance)
                && seen->start == start;

    if (same && commit <= seen->commit)
        return;
    snprintf (seen->instance, sizeof (seen->instance), "%s", node->instance);
    seen->start = start;
    seen->commit = commit;
    node->seen_changed = true;
    if (!same)
        node->seen_at_ms = 0; /* written before the loop waits again */
}

/* ---- what is sent ---- */

/* What is lost is repaired by the next meeting. */
int hkd_node_send (struct hkd_node *node, struct hk_msg *msg)
{
    if (!node->link || hk_link_client_send (node->link, msg, NULL) == 0
        || errno == ENOTCONN)
        return 0;
    if (errno == EAGAIN)
        return -1;
    hk_log_throttled (LOG_ERR,
                      "send",
                      "a message of type %s is not sent: %s",
                      hk_msg_type_name (msg->type),
                      strerror (errno));
    return 0;
}

struct runs {
    struct hk_run *list;
    size_t count, size;
};

static int add_run (void *arg, const struct hk_run *run)
{
    struct runs *runs = arg;

    if (runs->count == runs->size)
        return -1;
    runs->list[runs->count++] = *run;
    return 0;
}

/* As many of the runs from `at` on as one part can hold, at least one. */
static size_t fit (struct hk_msg *msg)
{
    while (msg->state.runs_count > 1) {
        size_t len = 0;
        char *text = hk_msg_encode (msg, &len, NULL);
        free (text);
        if (text && len <= STATE_BYTES)
            break;
        msg->state.runs_count /= 2;
    }
    return msg->state.runs_count;
}

void hkd_node_send_state (struct hkd_node *node)
{
    struct runs runs = { .size = hkd_runs_count (node->runs) };
    size_t at = 0;
    int part = 0;

    if (node->seen_changed)
        seen_write (node);
    if (!(runs.list = calloc (runs.size + 1, sizeof (*runs.list))))
        return; /* it is sent again */
    hkd_runs_each (node->runs, add_run, &runs);
    do {
        const char *foreign = hkd_units_foreign (node->units);
        struct hk_msg msg = { .type = HK_MSG_STATE,
                              .seq = 1,
                              .state = { .boot_id = node->host.boot_id } };
        size_t left = runs.count - at;
        if (node->seen.instance[0]) {
            msg.state.seen_instance = node->seen.instance;
            msg.state.seen_start = node->seen.start;
            msg.state.seen_commit = node->seen.commit;
        }
        if (part == 0 && *foreign)
            msg.state.foreign = foreign;
        msg.state.runs = runs.list + at;
        msg.state.runs_count = left < HK_RUNS_LIMIT ? left : HK_RUNS_LIMIT;
        at += fit (&msg);
        msg.state.part = part++;
        msg.state.last = at == runs.count;
        hkd_node_send (node, &msg);
    } while (at < runs.count);
    free (runs.list);
    node->reconcile_at_ms = hk_boot_ms () + node->reconcile_ms;
}

/* ---- what is heard ---- */

static void on_up (struct hkd_node *node, const struct hk_msg *msg)
{
    const struct hk_msg_welcome *welcome = &msg->welcome;
    struct hkd_event ev = { .kind = HKD_EV_UP };
    char text[128];

    snprintf (node->instance, sizeof (node->instance), "%s", welcome->instance);
    node->start = welcome->start;
    node->commit = welcome->commit;
    node->reconcile_ms = welcome->reconcile_ms > 0 ? welcome->reconcile_ms
                                                   : node->conf->reconcile_ms;
    hk_log (LOG_INFO, "connected to the coordinator as %s", node->host.name);
    snprintf (text, sizeof (text), "connected as %.100s", node->host.name);
    hkd_node_status (node, text);
    hkd_node_feed (node, &ev, NULL);
}

static void on_down (struct hkd_node *node, const char *why)
{
    struct hkd_event ev = { .kind = HKD_EV_DOWN };
    char text[HK_ERROR_BYTES + 32];

    hk_log_throttled (LOG_WARNING, "link", "no coordinator: %s", why);
    snprintf (text, sizeof (text), "no coordinator: %s", why);
    hkd_node_status (node, text);
    node->reconcile_at_ms = INT64_MAX;
    hkd_journal_cancel (node->journal);
    hkd_node_feed (node, &ev, NULL);
}

static void on_start (struct hkd_node *node, const struct hk_msg *msg)
{
    struct hkd_event ev = { .kind = HKD_EV_START,
                            .alloc = msg->start_run.alloc,
                            .attempt = msg->start_run.attempt,
                            .start = { .start = msg->start_run,
                                       .instance = node->instance } };
    struct hk_log_ids ids = { .jobid = msg->start_run.jobid,
                              .host = node->host.name };
    struct hk_error err;

    hk_log_with (LOG_DEBUG,
                 &ids,
                 "attempt %d of an allocation is to start",
                 msg->start_run.attempt);
    hkd_units_expect (node->units, true);
    if (hkd_node_feed (node, &ev, &err) < 0)
        hk_log_throttled (LOG_ERR, "start", "a start is refused: %s", err.text);
    hkd_units_expect (node->units, false);
}

static void on_stop (struct hkd_node *node, const struct hk_msg *msg)
{
    struct hkd_event ev = { .kind = HKD_EV_STOP,
                            .alloc = msg->stop.alloc,
                            .attempt = msg->stop.attempt,
                            .stop = msg->stop };
    struct hk_error err;

    node->stop_seq = msg->seq;
    if (hkd_node_feed (node, &ev, &err) < 0) {
        struct hk_msg done = { .type = HK_MSG_DONE,
                               .re = msg->seq,
                               .done = { .text = err.text } };
        hkd_node_send (node, &done);
    }
}

static void on_ack (struct hkd_node *node, const struct hk_msg *msg)
{
    struct hkd_event ev = { .kind = HKD_EV_ACK,
                            .alloc = msg->ack.alloc,
                            .attempt = msg->ack.attempt,
                            .ack = msg->ack };

    hkd_node_feed (node, &ev, NULL); /* said twice is no error */
}

static void on_error (const struct hk_msg *msg)
{
    hk_log_throttled (LOG_ERR,
                      "error",
                      "the coordinator says: %s: %s",
                      msg->error.code,
                      msg->error.text);
}

static void on_message (struct hkd_node *node, const struct hk_msg *msg)
{
    static const struct {
        enum hk_msg_type type;
        void (*fn) (struct hkd_node *node, const struct hk_msg *msg);
    } rows[] = {
        { HK_MSG_START, on_start },
        { HK_MSG_STOP, on_stop },
        { HK_MSG_ACK, on_ack },
    };

    if (msg->type == HK_MSG_ERROR) {
        on_error (msg);
        return;
    }
    seen_set (node, msg->start, msg->commit);
    if (msg->type == HK_MSG_LOG)
        hkd_journal_ask (node->journal,
                         msg->seq,
                         msg->query.jobid,
                         msg->query.lines,
                         msg->query.follow);
    for (size_t i = 0; i < sizeof (rows) / sizeof (rows[0]); i++)
        if (rows[i].type == msg->type)
            rows[i].fn (node, msg);
}

static void pump (struct hkd_node *node)
{
    enum hk_client_event event;
    struct hk_error err;
    struct hk_msg msg;

    while (
        node->link
        && hk_link_client_next (node->link, hk_boot_ms (), &event, &msg, &err)
               > 0) {
        if (event == HK_CLIENT_DOWN) {
            on_down (node, err.text);
            continue;
        }
        if (event == HK_CLIENT_UP)
            on_up (node, &msg);
        else
            on_message (node, &msg);
        hk_msg_fini (&msg);
    }
}

/* ---- time ---- */

int64_t hkd_node_link_deadline (const struct hkd_node *node)
{
    int64_t when = node->reconcile_at_ms, at;

    if (node->link && (at = hk_link_client_deadline (node->link)) < when)
        when = at;
    at = node->seen_at_ms + SEEN_EVERY_MS;
    if (node->seen_changed && at < when)
        when = at;
    return when;
}

void hkd_node_link_tick (struct hkd_node *node, int64_t now_ms)
{
    if (node->link && now_ms >= hk_link_client_deadline (node->link))
        pump (node);
    if (node->seen_changed && now_ms >= node->seen_at_ms + SEEN_EVERY_MS)
        seen_write (node);
    if (now_ms < node->reconcile_at_ms)
        return;
    /* the session has lasted: the coordinator has heard an earlier state */
    seen_set (node, node->start, node->commit);
    hkd_units_look (node->units);
    hkd_node_send_state (node);
}

/* ---- open and close ---- */

static int on_readable (sd_event_source *source,
                        int fd,
                        uint32_t events,
                        void *arg)
{
    (void)source;
    (void)fd;
    (void)events;
    pump (arg);
    return 0;
}

int hkd_node_link_open (struct hkd_node *node, struct hk_error *err)
{
    const struct hk_conf *conf = node->conf;
    struct hk_client_conf client = {
        .head = conf->head,
        .port = conf->node_port,
        .key_port = conf->key_port,
        .munge_socket = conf->munge_socket,
        .server_uid = conf->server_uid,
        .role = "node",
        .host = node->host.name,
        .short_host = node->host.short_name,
        .boot_id = node->host.boot_id,
    };
    int rc;

    if (!(node->link = hk_link_client_create (&client, err)))
        return -1;
    rc = sd_event_add_io (node->event,
                          &node->link_io,
                          hk_link_client_fd (node->link),
                          EPOLLIN,
                          on_readable,
                          node);
    if (rc < 0)
        return hk_error_errno (err, -rc, "link");
    pump (node);
    return 0;
}

void hkd_node_link_close (struct hkd_node *node)
{
    node->link_io = sd_event_source_disable_unref (node->link_io);
    hk_link_client_destroy (node->link);
    node->link = NULL;
}

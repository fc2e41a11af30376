/* engine.c - one loop: the link, the store and the mailbox around the core */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <syslog.h>
#include <unistd.h>
#include "proto/clock.h"
#include "proto/duration.h"
#include "proto/log.h"
#include "proto/thread.h"
#include "coordinator/core/idhash.h"
#include "coordinator/engine/internal.h"

enum {
    WAIT_MOST_MS = 1000,
    TRIM_EACH_MS = 60000, /* history is trimmed a little now and then */
    TRIM_AGAIN_MS = 1000,
    TRIM_COUNT = 50,
};

static int64_t turn_boot_ms (void *arg)
{
    (void)arg;
    return hk_boot_ms ();
}

static double turn_wall (void *arg)
{
    (void)arg;
    return hk_wall ();
}

struct put {
    struct hkc_store *store;
    struct hk_error *err;
};

static int put_row (void *arg, const struct hkc_row *row)
{
    struct put *p = arg;

    return hkc_store_put (p->store, row, p->err);
}

static int op_commit (void *arg, struct hkc_core *core, struct hk_error *err)
{
    struct hkc_engine *e = arg;
    struct put p = { e->store, err };
    int saved;

    if (hkc_store_begin (e->store, err) == 0
        && hkc_core_changes (core, put_row, &p) == 0
        && hkc_store_commit (e->store, err) == 0)
        return 0;
    saved = errno;
    hkc_store_rollback (e->store);
    errno = saved;
    return -1;
}

static uint64_t op_find_end (void *arg, const struct hkc_event *ev)
{
    struct hkc_engine *e = arg;
    char digest[65];

    hk_resource_digest (ev->job_end.res, digest);
    return hkc_store_find_end (e->store,
                               ev->job_end.jobid,
                               ev->job_end.t_submit,
                               ev->job_end.t_end,
                               digest);
}

static bool op_find_run (void *arg, uint64_t id, const struct hk_run *run)
{
    struct hkc_engine *e = arg;
    const struct hk_peer *peer = hkc_peer (e, id);

    return peer && !strcmp (run->instance, hkc_store_instance (e->store))
           && (hkc_store_find_run (
                   e->store, run->alloc, peer->host, run->attempt)
               || hkc_store_find_run (
                   e->store, run->alloc, peer->short_host, run->attempt));
}

static void op_store_state (void *arg, const struct hk_error *err)
{
    struct hkc_engine *e = arg;

    if (err) {
        hkc_trouble_set (e, e->store_error, err->text);
        e->store_error_t = hk_wall ();
        hk_log (LOG_ALERT,
                "the store cannot be written: %s; nothing is "
                "recorded, started or freed until it can",
                err->text);
    } else {
        hk_log (LOG_NOTICE,
                "the store can be written again after %.0f s",
                hk_wall () - e->store_error_t);
        hkc_trouble_set (e, e->store_error, "");
    }
}

static const struct hkc_ops ops = {
    .now_ms = turn_boot_ms,
    .wall = turn_wall,
    .receive = hkc_receive,
    .release = hkc_release,
    .commit = op_commit,
    .find_end = op_find_end,
    .find_run = op_find_run,
    .node = hkc_send_node,
    .host = hkc_send_host,
    .answer = hkc_answer,
    .look = hkc_look,
    .put_off = hkc_put_off,
    .look_put_off = hkc_look_put_off,
    .store_state = op_store_state,
};

struct load {
    struct hkc_core *core;
    struct hk_error *err;
};

static int load_row (void *arg, const struct hkc_row *row)
{
    struct load *l = arg;

    if (hkc_core_load (l->core, row, l->err) == 0)
        return 0;
    /* one bad row must not keep all others from being held */
    hk_log (LOG_ALERT,
            "a row of the store cannot be and is set aside: %s",
            l->err->text);
    return 0;
}

static int core_open (struct hkc_engine *e, struct hk_error *err)
{
    struct hkc_setup setup = {
        .conf = e->conf,
        .instance = hkc_store_instance (e->store),
        .life_ends_with_link = e->host.life_ends_with_link,
        .next_pid = hkc_store_next_pid (e->store),
    };
    struct load l = { NULL, err };

    e->core = l.core = hkc_core_create (&setup);
    if (hkc_store_load (e->store, load_row, &l, err) < 0)
        return -1;
    hkc_core_loaded (e->core, hk_boot_ms ());
    return 0;
}

static int wake_open (struct hkc_engine *e, struct hk_error *err)
{
    int fds[] = { e->mailbox.fd, hkc_reader_fd (e->reader) };

    if ((e->wake_fd = epoll_create1 (EPOLL_CLOEXEC)) < 0)
        return hk_error_errno (err, errno, "epoll");
    for (size_t i = 0; i < sizeof (fds) / sizeof (fds[0]); i++) {
        struct epoll_event ev = { .events = EPOLLIN };
        if (epoll_ctl (e->wake_fd, EPOLL_CTL_ADD, fds[i], &ev) < 0)
            return hk_error_errno (err, errno, "epoll");
    }
    return 0;
}

static void ask_free (void **item)
{
    free (*item);
    *item = NULL;
}

static int engine_open (struct hkc_engine *e, struct hk_error *err)
{
    struct hkc_ops bound = ops;

    if (hkc_mailbox_init (&e->mailbox, err) < 0
        || !(e->store = hkc_store_open (e->conf->state_dir, err))
        || !(e->reader = hkc_reader_create (hkc_store_path (e->store), err))
        || !(e->checkpoint = hkc_checkpoint_create (e->store, err))
        || core_open (e, err) < 0 || wake_open (e, err) < 0)
        return -1;
    if (hkc_link_open (e, err) < 0)
        return -1;
    bound.arg = e;
    if (!(e->turn = hkc_turn_create (e->core, &bound)))
        return hk_error_set (err, ENOMEM, "out of memory");
    return 0;
}

struct hkc_engine *hkc_engine_create (struct hk_conf *conf,
                                      const struct hkc_host_ops *host,
                                      struct hk_error *err)
{
    struct hkc_engine *e = calloc (1, sizeof (*e));

    if (!e) {
        hk_error_set (err, ENOMEM, "out of memory");
        return NULL;
    }
    e->conf = conf;
    e->host = *host;
    e->wake_fd = -1;
    pthread_mutex_init (&e->trouble_mutex, NULL);
    e->peers = hkc_idhash_create ();
    e->asks = hkc_idhash_create ();
    e->relays = zhashx_new ();
    zhashx_set_destructor (e->relays, hkc_relay_free);
    e->followers = zlistx_new ();
    zlistx_set_destructor (e->followers, ask_free);
    if (engine_open (e, err) < 0) {
        int saved = errno;
        e->conf = NULL; /* still the caller's */
        hkc_engine_destroy (e);
        errno = saved;
        return NULL;
    }
    return e;
}

void hkc_engine_destroy (struct hkc_engine *e)
{
    if (!e)
        return;
    if (e->started)
        hkc_engine_stop (e);
    hkc_turn_destroy (e->turn);
    hk_link_server_destroy (e->link);
    hkc_reader_destroy (e->reader);
    hkc_checkpoint_destroy (e->checkpoint);
    hkc_core_destroy (e->core);
    hkc_store_close (e->store);
    hkc_mailbox_fini (&e->mailbox);
    if (e->wake_fd >= 0)
        close (e->wake_fd);
    zhashx_destroy (&e->relays);
    zhashx_destroy (&e->peers);
    for (struct hkc_ask *a = zhashx_first (e->asks); a;
         a = zhashx_next (e->asks))
        free (a);
    zhashx_destroy (&e->asks);
    zlistx_destroy (&e->followers);
    hk_conf_destroy (atomic_load (&e->next_conf));
    hk_conf_destroy (e->old_conf);
    hk_conf_destroy (e->conf);
    pthread_mutex_destroy (&e->trouble_mutex);
    free (e);
}

/* Between turns: the core borrows the configuration, so the old one stays
 * until the core was given the new one.
 */
static void reload_take (struct hkc_engine *e)
{
    struct hk_conf *next = atomic_exchange (&e->next_conf, NULL);
    struct hk_error err;
    struct hkc_event ev = { .kind = HKC_EV_CONF };

    if (!next)
        return;
    hkc_link_reload (e, next);
    ev.now_ms = hk_boot_ms ();
    ev.wall = hk_wall ();
    ev.conf = next;
    if (hkc_core_step (e->core, &ev, NULL, &err) < 0) {
        hk_log (LOG_ERR, "configuration is not taken: %s", err.text);
        hk_conf_destroy (next);
        return;
    }
    hk_conf_destroy (e->old_conf);
    e->old_conf = e->conf;
    e->conf = next;
    hk_log (LOG_NOTICE, "configuration reloaded");
}

/* A little at a time, and at once again while there is more. */
static void trim (struct hkc_engine *e)
{
    struct hk_error err;
    int64_t now = hk_boot_ms ();
    double keep = (double)e->conf->history_keep_ms / 1e3;
    int n;

    if (now < e->trim_ms || e->store_error[0])
        return;
    e->trim_ms = now + TRIM_EACH_MS;
    if (e->conf->history_keep_ms == HK_DURATION_INF)
        return;
    n = hkc_store_trim (e->store, hk_wall () - keep, TRIM_COUNT, &err);
    if (n < 0)
        hk_log_throttled (LOG_ERR, "trim", "old history stays: %s", err.text);
    else if (n > 0)
        e->trim_ms = now + TRIM_AGAIN_MS;
}

static int wait_ms (const struct hkc_engine *e, int64_t host_ms)
{
    int64_t when = hkc_turn_deadline (e->turn);
    int64_t left;

    if (host_ms < when)
        when = host_ms;
    left = when == INT64_MAX ? WAIT_MOST_MS : when - hk_boot_ms ();
    return left < 0 ? 0 : left > WAIT_MOST_MS ? WAIT_MOST_MS : (int)left;
}

static void *loop (void *arg)
{
    struct hkc_engine *e = arg;
    struct hk_error err;
    int64_t host_ms = INT64_MAX;
    int rc = 0;

    while (!atomic_load (&e->quit)) {
        hkc_link_wait (e, rc > 0 ? 0 : wait_ms (e, host_ms));
        if (!hkc_turn_is_stuck (e->turn))
            reload_take (e);
        if (!e->link)
            hkc_link_tick (e);
        if ((rc = hkc_turn_run (e->turn, &err)) < 0)
            break;
        if (e->host.tick)
            host_ms = e->host.tick (e->host.arg, hk_boot_ms ());
        hkc_reader_answers (e);
        hkc_relay_tick (e, hk_boot_ms ());
        trim (e);
        atomic_fetch_add (&e->turns, 1);
    }
    if (rc < 0) {
        hk_log (LOG_CRIT, "%s: this process ends", err.text);
        atomic_store (&e->failed, true);
    }
    return NULL;
}

int hkc_engine_each_alloc (struct hkc_engine *e, hkc_alloc_view_f fn, void *arg)
{
    return hkc_core_each_alloc (e->core, fn, arg);
}

int hkc_engine_start (struct hkc_engine *e, struct hk_error *err)
{
    int rc;

    rc = hk_thread_start (&e->thread, 0, loop, e);
    if (rc)
        return hk_error_errno (err, rc, "engine thread");
    e->started = true;
    return 0;
}

void hkc_engine_stop (struct hkc_engine *e)
{
    if (!e->started)
        return;
    atomic_store (&e->quit, true);
    hkc_mailbox_wake (&e->mailbox);
    pthread_join (e->thread, NULL);
    e->started = false;
}

void hkc_engine_reload (struct hkc_engine *e, struct hk_conf *conf)
{
    hk_conf_destroy (atomic_exchange (&e->next_conf, conf));
    hkc_mailbox_wake (&e->mailbox);
}

uint64_t hkc_engine_turns (const struct hkc_engine *e)
{
    return atomic_load (&e->turns);
}

bool hkc_engine_failed (const struct hkc_engine *e)
{
    return atomic_load (&e->failed);
}

struct hk_link_server *hkc_engine_link (struct hkc_engine *e)
{
    return e->link;
}

const struct hk_conf *hkc_engine_conf (const struct hkc_engine *e)
{
    return e->conf;
}

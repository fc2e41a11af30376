/* node.c - the node daemon: link, systemd, timers and signals in one loop */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>
#include "proto/clock.h"
#include "proto/log.h"
#include "hkd/node_impl.h"

void hkd_node_status (struct hkd_node *node, const char *link_text)
{
    if (!strcmp (node->status, link_text))
        return;
    snprintf (node->status, sizeof (node->status), "%s", link_text);
    sd_notifyf (0, "STATUS=%s", node->status);
}

/* ---- the loop ---- */

static void feed_watchdog (struct hkd_node *node, int64_t now_ms)
{
    if (node->watchdog_ms == INT64_MAX
        || now_ms < node->watchdog_at_ms - node->watchdog_ms / 4)
        return;
    sd_notify (0, "WATCHDOG=1");
    node->watchdog_at_ms = now_ms + node->watchdog_ms / 2;
}

static int64_t least (int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t deadline (const struct hkd_node *node)
{
    int64_t when = hkd_runs_deadline (node->runs);

    when = least (when, hkd_units_deadline (node->units));
    when = least (when, hkd_node_link_deadline (node));
    return least (when, node->watchdog_at_ms);
}

static void tick (struct hkd_node *node)
{
    int64_t now_ms = hk_boot_ms ();
    struct hkd_event ev = { .kind = HKD_EV_TICK };

    if (now_ms >= hkd_runs_deadline (node->runs))
        hkd_node_feed (node, &ev, NULL);
    if (now_ms >= hkd_units_deadline (node->units))
        hkd_units_tick (node->units, now_ms);
    hkd_node_link_tick (node, now_ms);
    feed_watchdog (node, now_ms);
}

/* After each event of the loop, whatever it was. */
static int on_post (sd_event_source *source, void *arg)
{
    struct hkd_node *node = arg;
    int64_t when;
    int rc;

    (void)source;
    tick (node);
    when = deadline (node);
    if (when == INT64_MAX)
        return sd_event_source_set_enabled (node->timer, SD_EVENT_OFF);
    rc = sd_event_source_set_time (node->timer,
                                   when > 0 ? (uint64_t)when * 1000 : 0);
    if (rc < 0)
        return rc;
    return sd_event_source_set_enabled (node->timer, SD_EVENT_ONESHOT);
}

static int on_timer (sd_event_source *source, uint64_t usec, void *arg)
{
    (void)source;
    (void)usec;
    (void)arg;
    return 0; /* what is due is found by on_post */
}

static void load_run (void *arg,
                      const struct hk_run *run,
                      const struct hkd_limits *limits)
{
    struct hkd_node *node = arg;
    struct hkd_event ev = { .kind = HKD_EV_FILE,
                            .alloc = run->alloc,
                            .attempt = run->attempt,
                            .file = { run, limits } };

    hkd_node_feed (node, &ev, NULL);
}

/* Now, not before, may the coordinator be heard. */
static void on_adopted (void *arg)
{
    struct hkd_node *node = arg;
    struct hkd_event ev = { .kind = HKD_EV_ADOPTED };
    struct hk_error err;

    hkd_node_feed (node, &ev, NULL);
    node->adopted = true;
    if (hkd_node_link_open (node, &err) < 0) {
        hk_log (LOG_CRIT, "%s", err.text);
        sd_event_exit (node->event, EXIT_FAILURE);
        return;
    }
    hk_log (LOG_INFO, "ready, %zu runs are known", hkd_runs_count (node->runs));
    sd_notify (0, "READY=1");
}

/* ---- reload ---- */

static bool same (const struct hk_conf *a,
                  const struct hk_conf *b,
                  const char *section,
                  const char *name)
{
    char *x = hk_conf_get (a, section, name);
    char *y = hk_conf_get (b, section, name);
    bool equal = x && y && !strcmp (x, y);

    free (x);
    free (y);
    return equal;
}

static int check_reload (const struct hk_conf *old,
                         const struct hk_conf *new,
                         struct hk_error *err)
{
    if (!same (old, new, "hkd", "run-dir"))
        return hk_error_set (err, EINVAL, "run-dir needs a restart");
    if (!same (old, new, "hkd", "host"))
        return hk_error_set (err, EINVAL, "host needs a restart");
    return 0;
}

static bool same_link (const struct hk_conf *old, const struct hk_conf *new)
{
    static const char *const names[] = {
        "head", "node-port", "key-port", "server-uid", "munge-socket",
    };

    for (size_t i = 0; i < sizeof (names) / sizeof (names[0]); i++)
        if (!same (old, new, "link", names[i]))
            return false;
    return true;
}

static int reload (struct hkd_node *node, struct hk_error *err)
{
    struct hk_conf *new = hk_conf_load (node->conf_path, HK_CONF_TRUST, err);
    struct hk_conf *old = node->conf;
    struct hkd_event ev = { .kind = HKD_EV_CONF, .conf = new };

    if (!new)
        return -1;
    if (check_reload (old, new, err) < 0) {
        hk_conf_destroy (new);
        return -1;
    }
    hkd_node_feed (node, &ev, NULL);
    hkd_units_set_conf (node->units, new);
    node->conf = new;
    if (node->link && !same_link (old, new)) {
        struct hkd_event down = { .kind = HKD_EV_DOWN };
        hkd_node_link_close (node);
        hkd_node_feed (node, &down, NULL);
        if (hkd_node_link_open (node, err) < 0) {
            sd_event_exit (node->event, EXIT_FAILURE);
            hk_log (LOG_CRIT, "%s", err->text);
        }
    }
    hk_conf_destroy (old);
    return 0;
}

static int on_hangup (sd_event_source *source,
                      const struct signalfd_siginfo *info,
                      void *arg)
{
    struct hkd_node *node = arg;
    struct hk_error err;

    (void)source;
    (void)info;
    sd_notifyf (0, "RELOADING=1\nMONOTONIC_USEC=%" PRIi64, hk_monotonic_us ());
    if (reload (node, &err) < 0)
        hk_log (LOG_ERR, "the configuration stays as it was: %s", err.text);
    else
        hk_log (LOG_INFO, "the configuration is loaded anew");
    if (node->adopted)
        sd_notify (0, "READY=1");
    return 0;
}

/* ---- life ---- */

static int on_lines (void *arg, uint64_t seq, json_t *lines)
{
    struct hkd_node *node = arg;
    struct hk_msg msg = { .type = HK_MSG_LOG_DATA,
                          .re = seq,
                          .log_data = { .host = node->host.name,
                                        .lines = lines } };

    return hkd_node_send (node, &msg);
}

static void on_lines_end (void *arg,
                          uint64_t seq,
                          bool truncated,
                          const char *text)
{
    struct hkd_node *node = arg;
    struct hk_msg msg = { .type = HK_MSG_LOG_END,
                          .re = seq,
                          .log_end = { .host = node->host.name,
                                       .truncated = truncated,
                                       .text = text } };

    hkd_node_send (node, &msg);
}

static int add_signals (struct hkd_node *node)
{
    sigset_t set;
    int rc;

    sigemptyset (&set);
    sigaddset (&set, SIGTERM);
    sigaddset (&set, SIGINT);
    sigaddset (&set, SIGHUP);
    if (sigprocmask (SIG_BLOCK, &set, NULL) < 0)
        return -errno;
    /* no function: the loop ends */
    if ((rc = sd_event_add_signal (node->event, NULL, SIGTERM, NULL, NULL)) < 0
        || (rc = sd_event_add_signal (node->event, NULL, SIGINT, NULL, NULL))
               < 0)
        return rc;
    return sd_event_add_signal (node->event, NULL, SIGHUP, on_hangup, node);
}

static int loop_create (struct hkd_node *node, struct hk_error *err)
{
    uint64_t watchdog_us;
    int rc;

    if ((rc = sd_event_default (&node->event)) < 0
        || (rc = add_signals (node)) < 0
        || (rc = sd_event_add_time (node->event,
                                    &node->timer,
                                    CLOCK_BOOTTIME,
                                    0,
                                    1000,
                                    on_timer,
                                    node))
               < 0
        || (rc = sd_event_add_post (node->event, NULL, on_post, node)) < 0)
        return hk_error_errno (err, -rc, "event loop");
    node->watchdog_ms = node->watchdog_at_ms = INT64_MAX;
    if (sd_watchdog_enabled (0, &watchdog_us) > 0) {
        node->watchdog_ms = (int64_t)(watchdog_us / 1000);
        node->watchdog_at_ms = 0;
    }
    return 0;
}

static int parts_create (struct hkd_node *node, struct hk_error *err)
{
    static const struct hkd_units_calls units_calls = {
        .event = hkd_node_on_unit,
        .adopted = on_adopted,
        .forgotten = hkd_node_on_forgotten,
    };
    static const struct hkd_journal_calls journal_calls = { on_lines,
                                                            on_lines_end };

    node->runs = hkd_runs_create (
        node->conf, node->host.name, node->host.boot_id);
    node->units = hkd_units_create (
        node->event, node->conf, node->host.name, &units_calls, node);
    node->journal = hkd_journal_create (node->event, &journal_calls, node);
    if (!node->units || !node->journal)
        return hk_error_set (err, ENOMEM, "out of memory");
    return 0;
}

struct hkd_node *hkd_node_create (const char *conf_path, struct hk_error *err)
{
    struct hkd_node *node = calloc (1, sizeof (*node));

    if (!node) {
        hk_error_set (err, ENOMEM, "out of memory");
        return NULL;
    }
    node->conf_path = conf_path;
    node->lock_fd = -1;
    node->work_end = &node->work;
    node->reconcile_at_ms = INT64_MAX;
    if (!(node->conf = hk_conf_load (conf_path, HK_CONF_TRUST, err))
        || hkd_host_read (node->conf, &node->host, err) < 0
        || (node->lock_fd = hkd_runfile_lock (node->conf->run_dir, err)) < 0
        || loop_create (node, err) < 0 || parts_create (node, err) < 0) {
        int errnum = errno;
        hkd_node_destroy (node);
        errno = errnum;
        return NULL;
    }
    return node;
}

void hkd_node_destroy (struct hkd_node *node)
{
    if (!node)
        return;
    hkd_node_link_close (node);
    hkd_journal_destroy (node->journal);
    hkd_units_destroy (node->units);
    hkd_node_drop_work (node);
    hkd_runs_destroy (node->runs);
    sd_event_source_disable_unref (node->timer);
    sd_event_unref (node->event);
    if (node->lock_fd >= 0)
        close (node->lock_fd);
    hk_conf_destroy (node->conf);
    free (node);
}

int hkd_node_run (struct hkd_node *node, struct hk_error *err)
{
    int rc;

    hkd_seen_load (node->conf->run_dir, &node->seen);
    if (hkd_runfile_each (
            node->conf->run_dir, node->host.boot_id, load_run, node, err)
        < 0)
        return -1;
    hkd_units_adopt (node->units);
    rc = sd_event_loop (node->event);
    sd_notify (0, "STOPPING=1");
    if (rc < 0)
        return hk_error_errno (err, -rc, "event loop");
    if (rc > 0)
        return hk_error_set (err, EIO, "ended by a failure");
    if (node->seen_changed
        && hkd_seen_save (node->conf->run_dir, &node->seen, err) < 0)
        return -1;
    return 0;
}

/* plugin.c - hk-coordinator.so, a jobtap plugin of flux-core's job-manager */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include "proto/clock.h"
#include "proto/identity.h"
#include "proto/log.h"
#include "coordinator/host/flux/flux.h"

enum {
    FLUX_MAJOR = 0,
    FLUX_MINOR = 70, /* partial-ok in hello */
    BROKER_FDS = 256,
};

int flux_plugin_init (flux_plugin_t *p); /* no header declares it */

void hkc_flux_trouble (struct hkc_flux *x, const char *fmt, ...)
{
    va_list ap;

    if (x->is_misfit && x->trouble[0])
        return; /* nothing is graver */
    va_start (ap, fmt);
    vsnprintf (x->trouble, sizeof (x->trouble), fmt, ap);
    va_end (ap);
    if (!strcmp (x->trouble, x->said))
        return;
    if (x->trouble[0])
        flux_log (x->h, LOG_CRIT, "hk: %s", x->trouble);
    else
        flux_log (x->h, LOG_NOTICE, "hk: all is well again");
    memcpy (x->said, x->trouble, sizeof (x->said));
}

/* ---- how long the reactor is kept ---- */

int64_t hkc_flux_enter (void)
{
    struct timespec t;

    clock_gettime (CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void hkc_flux_leave (struct hkc_flux *x, int64_t entered_ns, const char *what)
{
    int64_t took = hkc_flux_enter () - entered_ns;

    if (took <= x->longest_ns)
        return;
    x->longest_ns = took;
    x->longest_what = what;
}

/* ---- futures ---- */

int hkc_flux_then (struct hkc_flux *x,
                   flux_future_t *f,
                   double timeout_s,
                   flux_continuation_f cb,
                   void *arg)
{
    void *handle;

    if (flux_future_then (f, timeout_s, cb, arg) < 0
        || !(handle = zlistx_add_end (x->futures, f))
        || flux_future_aux_set (f, "handle", handle, NULL) < 0) {
        flux_future_destroy (f);
        return -1;
    }
    return 0;
}

int hkc_flux_label (flux_future_t *f, uint64_t label)
{
    uint64_t *copy = malloc (sizeof (*copy));

    if (!copy)
        return -1;
    *copy = label;
    if (flux_future_aux_set (f, "label", copy, free) == 0)
        return 0;
    free (copy);
    return -1;
}

uint64_t hkc_flux_label_of (flux_future_t *f)
{
    const uint64_t *label = flux_future_aux_get (f, "label");

    return label ? *label : 0;
}

void hkc_flux_done (struct hkc_flux *x, flux_future_t *f)
{
    zlistx_delete (x->futures, flux_future_aux_get (f, "handle"));
}

static void future_free (void **item)
{
    flux_future_destroy (*item);
    *item = NULL;
}

/* ---- the log: lines of all threads, said by the reactor ---- */

struct line {
    struct hkc_task task;
    int level;
    char text[];
};

static void on_line (struct hkc_flux *x, struct hkc_task *task)
{
    struct line *line = (struct line *)task;

    flux_log (x->h, line->level, "hk: %s", line->text);
}

static void log_sink (void *arg,
                      int level,
                      const struct hk_log_ids *ids,
                      const char *text)
{
    size_t len = strlen (text) + 1;
    struct line *line = calloc (1, sizeof (*line) + len);

    (void)ids; /* the text has them */
    if (!line)
        return;
    line->task.done_f = on_line;
    line->level = level;
    memcpy (line->text, text, len);
    hkc_inbox_put (arg, &line->task);
}

/* ---- time ---- */

static void on_tick (flux_reactor_t *r,
                     flux_watcher_t *w,
                     int revents,
                     void *arg)
{
    struct hkc_flux *x = arg;
    char text[HKC_TROUBLE_BYTES];
    int64_t entered = hkc_flux_enter ();

    (void)r;
    (void)w;
    (void)revents;
    hkc_overrides_probe (x);
    hkc_open_start (x);
    hkc_blind_tick (x);
    if (x->engine) {
        hkc_engine_trouble (x->engine, text, sizeof (text));
        hkc_flux_trouble (x, "%s", text);
    }
    hkc_jobs_advance (x);
    hkc_flux_leave (x, entered, "tick");
}

/* Every descriptor of the nodes' connections is the broker's. */
static void check_descriptors (struct hkc_flux *x)
{
    const char *size = flux_attr_get (x->h, "size");
    unsigned long need = BROKER_FDS + (size ? strtoul (size, NULL, 10) : 0);
    struct rlimit limit;

    if (getrlimit (RLIMIT_NOFILE, &limit) == 0
        && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < need * 2)
        flux_log (x->h,
                  LOG_WARNING,
                  "hk: the broker may open %llu files, and %s nodes connect: "
                  "set LimitNOFILE=%lu or more in flux.service",
                  (unsigned long long)limit.rlim_cur,
                  size ? size : "?",
                  need * 2);
}

/* When the reactor runs, job-manager has its own handlers: ours come last. */
static void on_prepare (flux_reactor_t *r,
                        flux_watcher_t *w,
                        int revents,
                        void *arg)
{
    struct hkc_flux *x = arg;

    (void)r;
    (void)revents;
    flux_watcher_stop (w);
    x->is_loaded = true;
    hkc_overrides_open (x);
    check_descriptors (x);
    hkc_open_start (x);
    flux_watcher_start (x->timer_w);
}

/* ---- what job-manager asks of a plugin ---- */

static int on_conf (flux_plugin_t *p,
                    const char *topic,
                    flux_plugin_arg_t *args,
                    void *arg)
{
    struct hkc_flux *x = arg;
    struct hk_error err;
    json_t *config;

    (void)topic;
    if (flux_plugin_arg_unpack (
            args, FLUX_PLUGIN_ARG_IN, "{s:o}", "conf", &config)
            < 0
        || hkc_flux_reconf (x, config, &err) == 0)
        return 0;
    if (!x->is_loaded) { /* a load that fails would stop the instance */
        hkc_flux_trouble (
            x, "%s: every ended job is held in CLEANUP", err.text);
        return 0;
    }
    return flux_jobtap_error (p, args, "hk-coordinator: %s", err.text);
}

static void unload (void *arg)
{
    struct hkc_flux *x = arg;

    hkc_overrides_close (x);
    flux_watcher_destroy (x->prepare_w);
    flux_watcher_destroy (x->timer_w);
    zlistx_destroy (&x->futures);
    hkc_open_end (x);
    hkc_inbox_close (x);
    hk_log_init ("hk-coordinator", LOG_INFO, NULL, NULL);
    hkc_drains_close (x);
    zhashx_destroy (&x->blind_held);
    hkc_status_close (x);
    zhashx_destroy (&x->kills);
    hkc_sched_close (x);
    hkc_jobs_close (x);
    json_decref (x->conf);
    free (x);
}

static int check_version (flux_error_t *err)
{
    int major, minor;

    flux_core_version (&major, &minor, NULL);
    if (major > FLUX_MAJOR || minor >= FLUX_MINOR)
        return 0;
    snprintf (err->text,
              sizeof (err->text),
              "flux-core %s is too old: expected %d.%d or later",
              flux_core_version_string (),
              FLUX_MAJOR,
              FLUX_MINOR);
    return -1;
}

static int open_parts (struct hkc_flux *x, flux_error_t *err)
{
    const char *conf = flux_plugin_get_conf (x->p);
    char id[HK_ID_BYTES];

    snprintf (err->text, sizeof (err->text), "out of memory");
    hk_random_id (id);
    snprintf (x->epilog, sizeof (x->epilog), "%s%.8s", hkc_epilog_prefix, id);
    if (conf)
        x->conf = json_loads (conf, 0, NULL);
    if (!(x->futures = zlistx_new ()))
        return -1;
    zlistx_set_destructor (x->futures, future_free);
    if (hkc_jobs_open (x) < 0 || hkc_sched_open (x) < 0
        || hkc_drains_open (x) < 0 || hkc_status_open (x) < 0
        || flux_plugin_add_handler (x->p, "conf.update", on_conf, x) < 0
        || hkc_query_open (x) < 0 || hkc_kill_open (x) < 0
        || !(x->prepare_w = flux_prepare_watcher_create (x->r, on_prepare, x))
        || !(x->timer_w = flux_timer_watcher_create (
                 x->r, 0.01, HKC_TICK_MS / 1e3, on_tick, x)))
        return -1;
    if (hkc_inbox_open (x, err) < 0)
        return -1;
    hk_log_init ("hk-coordinator", LOG_INFO, log_sink, x);
    flux_watcher_start (x->prepare_w);
    return 0;
}

int flux_plugin_init (flux_plugin_t *p)
{
    flux_t *h = flux_jobtap_get_flux (p);
    flux_error_t err = { "" };
    struct hkc_flux *x;

    if (!h)
        return -1;
    if (check_version (&err) < 0 || !(x = calloc (1, sizeof (*x)))) {
        flux_log (h, LOG_CRIT, "hk: %s", err.text);
        return -1;
    }
    x->p = p;
    x->h = h;
    x->r = flux_get_reactor (h);
    zsys_handler_set (NULL); /* czmq's signal handling is off */
    if (open_parts (x, &err) < 0
        || flux_plugin_set_name (p, "hk-coordinator") < 0
        || flux_plugin_aux_set (p, "hk-coordinator", x, unload) < 0) {
        flux_log (h, LOG_CRIT, "hk: %s", err.text);
        unload (x);
        return -1;
    }
    return 0;
}

/* open.c - the engine is opened, as often as it takes */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "proto/clock.h"
#include "coordinator/host/flux/flux.h"

enum { AGAIN_MS = 5000 };

struct opening {
    struct hkc_task task;
    struct hk_conf *conf;
    struct hkc_host_ops ops;
    struct hkc_engine *engine;
    struct hk_error err;
};

static void opening_free (struct hkc_task *task)
{
    struct opening *o = (struct opening *)task;

    hkc_engine_destroy (o->engine);
    hk_conf_destroy (o->conf);
    free (o);
}

/* The clerk: the disk, the key and the ports may take their time. */
static void opening_work (struct hkc_flux *x, struct hkc_task *task)
{
    struct opening *o = (struct opening *)task;

    (void)x;
    if ((o->engine = hkc_engine_create (o->conf, &o->ops, &o->err)))
        o->conf = NULL; /* taken */
}

static void opening_done (struct hkc_flux *x, struct hkc_task *task)
{
    struct opening *o = (struct opening *)task;
    struct hk_error err;

    x->is_opening = false;
    if (!o->engine) {
        hkc_flux_trouble (
            x, "%s: every ended job is held in CLEANUP", o->err.text);
        x->open_again_ms = hk_boot_ms () + AGAIN_MS;
        x->open_failed = true;
        if (!x->next_conf) {
            x->next_conf = o->conf;
            o->conf = NULL;
        }
        return;
    }
    hkc_blind_end (x, o->engine);
    hkc_jobs_settle (x, o->engine);
    if (hkc_engine_start (o->engine, &err) < 0) {
        hkc_flux_trouble (x, "%s", err.text);
        x->open_again_ms = hk_boot_ms () + AGAIN_MS;
        x->open_failed = true;
        return; /* the engine ends with the task */
    }
    x->engine = o->engine;
    o->engine = NULL;
    hkc_flux_trouble (x, "%s", "");
    if (x->next_conf) { /* reloaded meanwhile */
        hkc_engine_reload (x->engine, x->next_conf);
        x->next_conf = NULL;
    }
    hkc_sched_opened (x);
    hkc_jobs_advance (x);
}

void hkc_open_start (struct hkc_flux *x)
{
    struct opening *o;
    struct hk_error err;

    if (x->engine || x->is_opening || hk_boot_ms () < x->open_again_ms)
        return;
    if (!x->next_conf && hkc_flux_conf (x->conf, &x->next_conf, &err) < 0) {
        hkc_flux_trouble (
            x, "%s: every ended job is held in CLEANUP", err.text);
        x->open_again_ms = hk_boot_ms () + AGAIN_MS;
        x->open_failed = true;
        return;
    }
    if (!(o = calloc (1, sizeof (*o))))
        return; /* the next tick tries again */
    o->task.work_f = opening_work;
    o->task.done_f = opening_done;
    o->task.free_f = opening_free;
    o->conf = x->next_conf;
    x->next_conf = NULL;
    hkc_flux_ops (x, &o->ops);
    x->is_opening = true;
    hkc_clerk_put (x, &o->task);
}

void hkc_open_end (struct hkc_flux *x)
{
    hkc_engine_destroy (x->engine);
    x->engine = NULL;
    hk_conf_destroy (x->next_conf);
    x->next_conf = NULL;
}

/* unit.c - the transient units of systemd that run the scripts */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "proto/jobid.h"
#include "proto/log.h"
#include "hkd/runfile.h"
#include "hkd/unit_impl.h"

/* ---- the list ---- */

struct hkd_unit *hkd_unit_find (const struct hkd_units *units,
                                uint64_t alloc,
                                int attempt)
{
    struct hkd_unit *u = units->first;

    while (u && (u->alloc != alloc || u->attempt != attempt))
        u = u->next;
    return u;
}

static bool is_known (const struct hkd_unit *u)
{
    return u->state == HKD_UNIT_STARTED || u->state == HKD_UNIT_FORGOTTEN;
}

struct hkd_unit *hkd_unit_by_name (const struct hkd_units *units,
                                   const char *name)
{
    struct hkd_unit *found = NULL;

    for (struct hkd_unit *u = units->first; u; u = u->next)
        if (!strcmp (u->name, name) && (!found || is_known (u)))
            found = u;
    return found;
}

struct hkd_unit *hkd_unit_by_path (const struct hkd_units *units,
                                   const char *path)
{
    struct hkd_unit *found = NULL;

    for (struct hkd_unit *u = units->first; u; u = u->next)
        if (u->path && !strcmp (u->path, path) && (!found || is_known (u)))
            found = u;
    return found;
}

struct hkd_unit *hkd_unit_add (struct hkd_units *units,
                               uint64_t alloc,
                               int attempt)
{
    const struct hk_policy *policy = hk_conf_policy (units->conf, units->host);
    struct hkd_unit *u = calloc (1, sizeof (*u));

    if (!u)
        return NULL;
    u->units = units;
    u->alloc = alloc;
    u->attempt = attempt;
    u->name_no = 1;
    u->kill_grace_ms = policy->kill_grace_ms;
    u->exit_on_first_error = policy->exit_on_first_error;
    u->check_ms = INT64_MAX;
    u->forget_ms = INT64_MAX;
    u->next = units->first;
    units->first = u;
    return u;
}

static void unit_free (struct hkd_unit *u)
{
    hkd_scripts_fini (&u->scripts);
    free (u->results);
    free (u->pids);
    free ((char *)u->start.ranks);
    free (u->path);
    free (u->cgroup);
    free (u->why);
    free (u);
}

void hkd_unit_drop (struct hkd_unit *u)
{
    struct hkd_units *units = u->units;
    struct hkd_unit **p = &units->first;

    while (*p != u)
        p = &(*p)->next;
    *p = u->next;
    unit_free (u);
    hkd_units_want_bus (units);
}

int hkd_unit_set_name (struct hkd_unit *u, const char *name)
{
    char *path;

    if (sd_bus_path_encode (HKD_SYSTEMD_PATH "/unit", name, &path) < 0)
        return -1;
    free (u->path);
    u->path = path;
    snprintf (u->name, sizeof (u->name), "%s", name);
    return 0;
}

int hkd_unit_set_scripts (struct hkd_unit *u, struct hkd_scripts *take)
{
    hkd_scripts_fini (&u->scripts);
    free (u->results);
    free (u->pids);
    u->scripts = *take;
    u->results = calloc (take->count + 1, sizeof (*u->results));
    u->pids = calloc (take->count + 1, sizeof (*u->pids));
    if (!u->results || !u->pids) {
        hkd_scripts_fini (&u->scripts);
        return -1;
    }
    for (size_t i = 0; i < take->count; i++) {
        u->results[i].name = take->list[i].name;
        u->results[i].code = -1;
    }
    return 0;
}

int64_t hkd_units_now (struct hkd_units *units)
{
    uint64_t now = 0;

    sd_event_now (units->event, CLOCK_BOOTTIME, &now);
    return (int64_t)(now / 1000);
}

void hkd_units_want_bus (struct hkd_units *units)
{
    hkd_bus_want (units->bus,
                  units->first || units->adopting || units->looking
                      || units->wanted_list || units->expecting);
}

int hkd_unit_tell (struct hkd_unit *u,
                   enum hkd_event_kind kind,
                   struct hkd_event *ev)
{
    ev->kind = kind;
    ev->alloc = u->alloc;
    ev->attempt = u->attempt;
    return u->units->calls.event (u->units->arg, ev);
}

void hkd_units_expect (struct hkd_units *units, bool expected)
{
    units->expecting = expected;
    hkd_units_want_bus (units);
}

/* ---- from outside ---- */

/* What was under way when the connection went has no answer any more. */
static void on_down (void *arg)
{
    struct hkd_units *units = arg;

    units->looking = false;
    units->looks_left = 0;
    for (struct hkd_unit *u = units->first; u; u = u->next) {
        u->asking = 0;
        if (u->state == HKD_UNIT_ASKED || u->state == HKD_UNIT_CHECKING) {
            u->state = HKD_UNIT_WAITING;
            u->lost = true;
        }
    }
}

static void on_up (void *arg, sd_bus *bus)
{
    struct hkd_units *units = arg;
    bool list = units->adopting || units->wanted_list;
    int rc = hkd_units_match (units, bus);

    if (rc < 0)
        hk_log (
            LOG_ERR, "systemd's signals cannot be heard: %s", strerror (-rc));
    for (struct hkd_unit *u = units->first; u; u = u->next) {
        if (u->state == HKD_UNIT_WAITING)
            hkd_unit_start_now (u);
        else if (u->state != HKD_UNIT_PREPARED)
            list = true;
    }
    units->wanted_list = false;
    if (list)
        hkd_units_list (units);
}

struct hkd_units *hkd_units_create (sd_event *event,
                                    const struct hk_conf *conf,
                                    const char *host,
                                    const struct hkd_units_calls *calls,
                                    void *arg)
{
    static const struct hkd_bus_calls bus_calls = { on_up, on_down };
    struct hkd_units *units = calloc (1, sizeof (*units));

    if (!units)
        return NULL;
    units->event = event;
    units->conf = conf;
    units->calls = *calls;
    units->arg = arg;
    units->host = strdup (host);
    units->bus = hkd_bus_create (event, &bus_calls, units);
    if (!units->host || !units->bus) {
        hkd_units_destroy (units);
        errno = ENOMEM;
        return NULL;
    }
    return units;
}

void hkd_units_destroy (struct hkd_units *units)
{
    if (!units)
        return;
    hkd_bus_destroy (units->bus);
    while (units->first) {
        struct hkd_unit *next = units->first->next;
        unit_free (units->first);
        units->first = next;
    }
    free (units->foreign);
    free (units->foreign_next);
    free (units->host);
    free (units);
}

void hkd_units_set_conf (struct hkd_units *units, const struct hk_conf *conf)
{
    units->conf = conf;
}

int hkd_unit_prepare (struct hkd_units *units,
                      const struct hk_start *start,
                      struct hkd_scripts *scripts_take,
                      struct hk_error *err)
{
    struct hkd_unit *u = hkd_unit_add (units, start->alloc, start->attempt);

    if (!u) {
        hkd_scripts_fini (scripts_take);
        return hk_error_set (err, ENOMEM, "out of memory");
    }
    u->jobid = start->jobid;
    u->start = *start;
    u->start.boot_id = u->start.queue = NULL; /* not needed, not ours */
    u->start.ranks = strdup (start->ranks);
    if (hkd_unit_set_scripts (u, scripts_take) < 0 || !u->start.ranks) {
        hkd_unit_drop (u);
        return hk_error_set (err, ENOMEM, "out of memory");
    }
    if (hkd_go_create (units->conf->run_dir, u->alloc, u->attempt, err) < 0) {
        hkd_unit_drop (u);
        return -1;
    }
    return 0;
}

const struct hkd_scripts *hkd_unit_scripts (const struct hkd_units *units,
                                            uint64_t alloc,
                                            int attempt)
{
    const struct hkd_unit *u = hkd_unit_find (units, alloc, attempt);

    return u ? &u->scripts : NULL;
}

void hkd_unit_start (struct hkd_units *units, uint64_t alloc, int attempt)
{
    struct hkd_unit *u = hkd_unit_find (units, alloc, attempt);

    if (!u || u->state != HKD_UNIT_PREPARED)
        return;
    u->state = HKD_UNIT_WAITING;
    u->since_ms = hkd_units_now (units);
    hkd_units_want_bus (units);
    if (u->state == HKD_UNIT_WAITING && hkd_bus_get (units->bus))
        hkd_unit_start_now (u);
}

void hkd_unit_signal (struct hkd_units *units,
                      uint64_t alloc,
                      int attempt,
                      int signum)
{
    struct hkd_unit *u = hkd_unit_find (units, alloc, attempt);
    struct hk_error err;

    /* first, so that systemd cannot go on with the next script */
    if (hkd_go_remove (units->conf->run_dir, alloc, attempt, &err) < 0)
        hk_log (LOG_CRIT, "later scripts may start: %s", err.text);
    if (!u)
        return;
    u->signum = signum;
    hkd_unit_kill (u);
}

const char *hkd_unit_cgroup (const struct hkd_units *units,
                             uint64_t alloc,
                             int attempt)
{
    const struct hkd_unit *u = hkd_unit_find (units, alloc, attempt);

    if (!u)
        return "";
    return u->cgroup;
}

bool hkd_units_each (const struct hkd_units *units, hkd_unit_f fn, void *arg)
{
    for (const struct hkd_unit *u = units->first; u; u = u->next) {
        struct hkd_unit_view view = {
            u->alloc, u->attempt, u->name, u->cgroup
        };
        if (is_known (u) && fn (arg, &view))
            return true;
    }
    return false;
}

void hkd_unit_forget (struct hkd_units *units, uint64_t alloc, int attempt)
{
    struct hkd_unit *u = hkd_unit_find (units, alloc, attempt);
    bool known = u && (u->state != HKD_UNIT_PREPARED)
                 && (u->state != HKD_UNIT_WAITING || u->lost);

    if (!known) {
        if (u)
            hkd_unit_drop (u);
        units->calls.forgotten (units->arg, alloc, attempt);
        return;
    }
    if (u->state == HKD_UNIT_STARTED)
        hkd_unit_let_go (u);
    u->state = HKD_UNIT_FORGOTTEN;
    u->forget_ms = hkd_units_now (units) + HKD_FORGET_AGAIN_MS;
}

int64_t hkd_units_deadline (const struct hkd_units *units)
{
    int64_t when = INT64_MAX;

    for (const struct hkd_unit *u = units->first; u; u = u->next) {
        int64_t at = u->check_ms < u->forget_ms ? u->check_ms : u->forget_ms;
        if (u->state == HKD_UNIT_WAITING)
            at = u->why ? 0 : u->since_ms + HKD_START_LIMIT_MS;
        if (at < when)
            when = at;
    }
    return when;
}

void hkd_units_tick (struct hkd_units *units, int64_t now_ms)
{
    struct hkd_unit *next;

    for (struct hkd_unit *u = units->first; u; u = next) {
        next = u->next;
        if (now_ms >= u->check_ms) {
            u->check_ms = INT64_MAX;
            hkd_unit_check (u);
        }
        if (now_ms >= u->forget_ms) {
            u->forget_ms = now_ms + HKD_FORGET_AGAIN_MS;
            hkd_unit_let_go (u);
        }
        if (u->state == HKD_UNIT_WAITING
            && (u->why || now_ms >= u->since_ms + HKD_START_LIMIT_MS))
            hkd_unit_start_failed (u,
                                   u->why ? u->why : "systemd does not answer");
    }
}

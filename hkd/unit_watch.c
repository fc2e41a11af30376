/* unit_watch.c - what becomes of a unit: signals of systemd, results */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include "proto/log.h"
#include "hkd/unit_impl.h"

/* ---- results ---- */

static bool all_known (const struct hkd_unit *u)
{
    for (size_t i = 0; i < u->scripts.count; i++)
        if (u->results[i].t_end <= 0)
            return false;
    return true;
}

static bool is_state (const struct hkd_unit *u, const char *state)
{
    return !strcmp (u->active_state, state);
}

static bool under_way (const struct hkd_unit *u)
{
    for (size_t i = 0; i < u->scripts.count; i++)
        if (u->results[i].t_start > 0 && u->results[i].t_end <= 0)
            return true;
    return false;
}

static void set_end (struct hk_script_result *r,
                     double t_end,
                     int code,
                     int status)
{
    r->t_end = t_end;
    r->code = code == CLD_EXITED ? status : -1;
    r->signal = code == CLD_EXITED ? 0 : status;
    if (r->t_start <= 0)
        r->t_start = t_end; /* systemd forgot it over a daemon-reload */
}

/* What is known stays known: daemon-reload makes systemd forget the results of
 * commands, and when the one that runs was started.
 */
static bool take_execs (struct hkd_unit *u, const struct hkd_props *p)
{
    bool news = false;

    for (size_t i = 0; i < p->execs_count && i < u->scripts.count; i++) {
        const struct hkd_exec *x = &p->execs[i];
        struct hk_script_result *r = &u->results[i];
        if (r->t_start <= 0 && x->t_start > 0) {
            r->t_start = x->t_start;
            news = true;
        }
        if (x->pid)
            u->pids[i] = x->pid;
        if (r->t_end <= 0 && x->t_end > 0) {
            set_end (r, x->t_end, x->code, x->status);
            news = true;
        }
    }
    return news;
}

/* The main process of a oneshot unit is the script under way.  With several
 * scripts one that is new may not be the next: signals are joined.
 */
static bool take_main (struct hkd_unit *u, const struct hkd_props *p)
{
    struct hk_script_result *r;
    bool news = false;
    size_t i = 0;

    while (i < u->scripts.count && u->pids[i] != p->main_pid)
        i++;
    if (i == u->scripts.count && u->scripts.count > 1) {
        u->changed |= !p->has_execs;
        return false;
    }
    r = &u->results[i < u->scripts.count ? i : 0];
    if (i == u->scripts.count && r->t_start <= 0) {
        u->pids[0] = p->main_pid;
        r->t_start = (double)p->main_start_us / 1e6;
        news = true;
    }
    if (p->main_code && r->t_end <= 0) {
        set_end (
            r, (double)p->main_exit_us / 1e6, p->main_code, p->main_status);
        news = true;
    }
    return news;
}

void hkd_unit_tell_scripts (struct hkd_unit *u)
{
    struct hkd_event ev = { .scripts = { .results = u->results,
                                         .count = u->scripts.count } };

    hkd_unit_tell (u, HKD_EV_SCRIPTS, &ev);
}

void hkd_unit_take (struct hkd_unit *u, const struct hkd_props *p)
{
    bool news = false;

    if (p->invocation[0] && !u->invocation[0])
        snprintf (u->invocation, sizeof (u->invocation), "%s", p->invocation);
    if (p->active_state[0] && strcmp (p->active_state, u->active_state) != 0) {
        snprintf (
            u->active_state, sizeof (u->active_state), "%s", p->active_state);
        u->changed |= !p->has_execs;
        if (u->state == HKD_UNIT_FORGOTTEN && is_state (u, "failed"))
            hkd_unit_let_go (u); /* it was being ended when it was let go */
    }
    if (p->has_cgroup && p->cgroup && (*p->cgroup || !u->cgroup)) {
        free (u->cgroup);
        u->cgroup = strdup (p->cgroup);
    }
    if (p->has_execs)
        news |= take_execs (u, p);
    if (p->has_main && p->main_pid)
        news |= take_main (u, p);
    if (u->state != HKD_UNIT_STARTED)
        return;
    if (!u->told && u->invocation[0])
        hkd_unit_started (u);
    if (u->told && news)
        hkd_unit_tell_scripts (u);
    if (u->told && u->changed && !u->asking)
        hkd_unit_ask (u);
}

/* The start job is over, and no script is under way or will be. */
void hkd_unit_settle (struct hkd_unit *u)
{
    struct hkd_event ev = { .kind = 0 };

    if (u->finished || !u->told || !u->job_done || u->state != HKD_UNIT_STARTED)
        return;
    if (!is_state (u, "active") && !is_state (u, "failed")
        && !is_state (u, "inactive")
        && !(is_state (u, "deactivating") && !under_way (u)))
        return;
    u->finished = true;
    hkd_unit_tell (u, HKD_EV_FINISHED, &ev);
}

/* ---- questions ---- */

static int on_answer (sd_bus_message *m, void *arg, sd_bus_error *ret)
{
    const struct hkd_call *call = arg;
    struct hkd_unit *u = hkd_call_unit (call);
    const sd_bus_error *error = sd_bus_message_get_error (m);
    struct hkd_props props = { .alloc = 0 };
    int rc;

    (void)ret;
    if (!u || !u->asking)
        return 0;
    u->asking--;
    if (error && hkd_call_lost (error)) {
        hkd_bus_drop (call->units->bus);
        return 0;
    }
    rc = error ? -1
               : (call->method ? hkd_prop_read (m, call->method, &props)
                               : hkd_props_read (m, &props));
    if (rc < 0)
        hkd_unit_verify (u);
    else
        hkd_unit_take (u, &props);
    hkd_props_fini (&props);
    if (!u->asking)
        hkd_unit_settle (u);
    return 0;
}

static void ask (struct hkd_unit *u, const char *property)
{
    struct hkd_call *call = hkd_call_create (u);
    int rc = !call ? -1
             : property
                 ? hkd_units_get (u->units, u->name, property, on_answer, call)
                 : hkd_units_get_all (u->units, u->name, on_answer, call);

    if (rc == 0)
        u->asking++;
}

/* Single properties where they will do: all of them take systemd longer than
 * many a script.
 */
void hkd_unit_ask (struct hkd_unit *u)
{
    if (u->asking)
        return; /* u->changed: again after the answer */
    u->changed = false;
    if (!u->invocation[0]) {
        ask (u, NULL);
        return;
    }
    if (!all_known (u))
        ask (u, "ExecStart");
    if (u->job_done)
        ask (u, "ControlGroup");
    if (!u->asking)
        hkd_unit_settle (u);
}

void hkd_unit_gone (struct hkd_unit *u)
{
    struct hkd_event ev = { .kind = 0 };

    if (u->state == HKD_UNIT_STARTED)
        hkd_unit_tell (u, HKD_EV_GONE, &ev);
    else if (u->state == HKD_UNIT_FORGOTTEN)
        u->units->calls.forgotten (u->units->arg, u->alloc, u->attempt);
    hkd_unit_drop (u);
}

static int on_verified (sd_bus_message *m, void *arg, sd_bus_error *ret)
{
    const struct hkd_call *call = arg;
    struct hkd_unit *u = hkd_call_unit (call);
    const sd_bus_error *error = sd_bus_message_get_error (m);

    (void)ret;
    if (!u || !error)
        return 0;
    if (sd_bus_error_has_name (error, HKD_SYSTEMD ".NoSuchUnit"))
        hkd_unit_gone (u);
    else
        hkd_call_failed (call, error);
    return 0;
}

void hkd_unit_verify (struct hkd_unit *u)
{
    struct hkd_call *call = hkd_call_create (u);
    sd_bus_message *m = NULL;
    int rc = hkd_manager_call (u->units, "GetUnit", &m);

    if (rc >= 0)
        rc = sd_bus_message_append (m, "s", u->name);
    if (call)
        call->method = "GetUnit";
    hkd_call_send (u->units, m, rc, on_verified, call);
}

/* ---- signals ---- */

static int on_properties (sd_bus_message *m, void *arg, sd_bus_error *ret)
{
    struct hkd_units *units = arg;
    const char *path = sd_bus_message_get_path (m);
    struct hkd_unit *u = hkd_unit_by_path (units, path);
    struct hkd_props props = { .alloc = 0 };
    int rc;

    (void)ret;
    if (!u)
        return 0;
    rc = sd_bus_message_skip (m, "s");
    if (rc >= 0)
        rc = hkd_props_read (m, &props);
    if (rc < 0)
        hk_log_throttled (LOG_ERR,
                          "signal",
                          "%s: a signal of systemd cannot be "
                          "read: %s",
                          u->name,
                          strerror (-rc));
    else
        hkd_unit_take (u, &props);
    hkd_props_fini (&props);
    return 0;
}

static int on_job_removed (sd_bus_message *m, void *arg, sd_bus_error *ret)
{
    struct hkd_units *units = arg;
    struct hkd_unit *u;
    const char *name;

    (void)ret;
    if (sd_bus_message_read (m, "uoss", NULL, NULL, &name, NULL) < 0
        || !(u = hkd_unit_by_name (units, name))
        || u->state == HKD_UNIT_FORGOTTEN)
        return 0;
    u->job_done = true;
    u->changed = true;
    if (u->told)
        hkd_unit_ask (u);
    return 0;
}

/* Also said of units that are loaded anew. */
static int on_unit_removed (sd_bus_message *m, void *arg, sd_bus_error *ret)
{
    struct hkd_units *units = arg;
    struct hkd_unit *u;
    const char *name;

    (void)ret;
    if (sd_bus_message_read (m, "so", &name, NULL) < 0
        || !(u = hkd_unit_by_name (units, name)))
        return 0;
    if (u->state == HKD_UNIT_STARTED || u->state == HKD_UNIT_FORGOTTEN)
        hkd_unit_verify (u);
    return 0;
}

int hkd_units_match (struct hkd_units *units, sd_bus *bus)
{
    static const struct {
        const char *rule;
        sd_bus_message_handler_t fn;
    } matches[] = {
        { "interface='org.freedesktop.DBus.Properties',"
          "member='PropertiesChanged',"
          "path_namespace='" HKD_SYSTEMD_PATH "/unit'",
          on_properties },
        { "interface='" HKD_SYSTEMD ".Manager',member='JobRemoved'",
          on_job_removed },
        { "interface='" HKD_SYSTEMD ".Manager',member='UnitRemoved'",
          on_unit_removed },
    };
    const char *sender = hkd_bus_sender (units->bus);
    char rule[256];
    int rc = 0;

    for (size_t i = 0; rc >= 0 && i < sizeof (matches) / sizeof (matches[0]);
         i++) {
        snprintf (rule,
                  sizeof (rule),
                  "type='signal',%s%s%s%s",
                  sender ? "sender='" : "",
                  sender ? sender : "",
                  sender ? "'," : "",
                  matches[i].rule);
        rc = sd_bus_add_match_async (
            bus, NULL, rule, matches[i].fn, NULL, units);
    }
    return rc;
}

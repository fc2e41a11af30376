/* unit_list.c - which units systemd has: adoption, and after a lost connection */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/jobid.h"
#include "proto/log.h"
#include "hkd/unit_impl.h"

enum { FOREIGN_BYTES = 32 << 10, LIST_LIMIT = 4096 };

static int ask_properties (struct hkd_units *units,
                           const char *name,
                           const char *member,
                           sd_bus_message **m)
{
    sd_bus *bus = hkd_bus_get (units->bus);
    char *path = NULL;
    int rc = bus ? sd_bus_path_encode (HKD_SYSTEMD_PATH "/unit", name, &path)
                 : -ENOTCONN;

    if (rc >= 0)
        rc = sd_bus_message_new_method_call (bus,
                                             m,
                                             HKD_SYSTEMD,
                                             path,
                                             "org.freedesktop.DBus.Properties",
                                             member);
    free (path);
    return rc;
}

int hkd_units_get_all (struct hkd_units *units,
                       const char *name,
                       sd_bus_message_handler_t fn,
                       struct hkd_call *call)
{
    sd_bus_message *m = NULL;
    int rc = ask_properties (units, name, "GetAll", &m);

    if (rc >= 0)
        rc = sd_bus_message_append (m, "s", ""); /* of all interfaces */
    if (call)
        call->method = NULL;
    return hkd_call_send (units, m, rc, fn, call);
}

int hkd_units_get (struct hkd_units *units,
                   const char *name,
                   const char *property,
                   sd_bus_message_handler_t fn,
                   struct hkd_call *call)
{
    sd_bus_message *m = NULL;
    int rc = ask_properties (units, name, "Get", &m);

    if (rc >= 0)
        rc = sd_bus_message_append (m, "ss", HKD_SYSTEMD ".Service", property);
    if (call)
        call->method = property;
    return hkd_call_send (units, m, rc, fn, call);
}

const char *hkd_units_foreign (const struct hkd_units *units)
{
    return units->foreign ? units->foreign : "";
}

static void add_foreign (struct hkd_units *units, const char *name)
{
    const char *old = units->foreign_next ? units->foreign_next : "";
    char *text;

    if (strlen (old) + strlen (name) + 2 > FOREIGN_BYTES) {
        hk_log_throttled (LOG_WARNING,
                          "foreign",
                          "%s and more: too many units "
                          "that are not hkd's",
                          name);
        return;
    }
    if (asprintf (&text, "%s%s%s", old, *old ? " " : "", name) < 0)
        return;
    free (units->foreign_next);
    units->foreign_next = text;
}

static void list_done (struct hkd_units *units)
{
    if (units->looks_left > 0 || !units->looking)
        return;
    if (units->foreign_next
        && strcmp (units->foreign_next, hkd_units_foreign (units)) != 0)
        hk_log (
            LOG_WARNING, "units that are not hkd's: %s", units->foreign_next);
    free (units->foreign);
    units->foreign = units->foreign_next;
    units->foreign_next = NULL;
    units->looking = false;
    if (units->adopting) {
        units->adopting = false;
        units->calls.adopted (units->arg);
        /* what ended while nobody watched */
        for (struct hkd_unit *u = units->first; u; u = u->next)
            hkd_unit_settle (u);
    }
    hkd_units_want_bus (units);
}

/* ---- a unit whose run is known by its file only ---- */

static int set_scripts (struct hkd_unit *u, const struct hkd_props *p)
{
    struct hkd_scripts scripts = { .list = NULL };

    scripts.list = calloc (p->execs_count + 1, sizeof (*scripts.list));
    for (size_t i = 0; scripts.list && i < p->execs_count; i++) {
        struct hkd_script *s = &scripts.list[scripts.count++];
        const char *slash = strrchr (p->execs[i].path, '/');
        s->path = strdup (p->execs[i].path);
        s->name = strdup (slash ? slash + 1 : p->execs[i].path);
        s->by_shell = p->execs[i].by_shell;
        if (!s->path || !s->name) {
            hkd_scripts_fini (&scripts);
            return -1;
        }
    }
    return scripts.list ? hkd_unit_set_scripts (u, &scripts) : -1;
}

/* False if the state machine knows no run of it. */
static bool adopt (struct hkd_units *units,
                   const char *name,
                   const struct hkd_props *p,
                   bool job_done)
{
    struct hkd_unit *u = hkd_unit_add (units, p->alloc, p->attempt);
    struct hk_run run = { .alloc = p->alloc, .attempt = p->attempt };
    struct hkd_event ev = { .run = &run };

    if (!u || hkd_unit_set_name (u, name) < 0 || set_scripts (u, p) < 0) {
        hk_log (LOG_ERR, "%s cannot be adopted: out of memory", name);
        if (u)
            hkd_unit_drop (u);
        return false;
    }
    u->job_done = job_done;
    hkd_unit_take (u, p); /* tells nothing yet */
    run.invocation = u->invocation;
    run.unit = u->name;
    run.scripts = u->results;
    run.scripts_count = u->scripts.count;
    if (hkd_unit_tell (u, HKD_EV_UNIT, &ev) < 0) {
        hkd_unit_drop (u);
        return false;
    }
    u->state = HKD_UNIT_STARTED;
    u->told = true;
    return true;
}

struct listed {
    struct hkd_call call; /* must be first: is what answers get */
    bool job_done;
};

static int on_listed_unit (sd_bus_message *m, void *arg, sd_bus_error *ret)
{
    const struct listed *listed = arg;
    struct hkd_units *units = listed->call.units;
    struct hkd_props props = { .alloc = 0 };
    struct hkd_unit *u;
    bool known = false;

    (void)ret;
    if (units->looks_left == 0)
        return 0; /* of a list that was given up */
    units->looks_left--;
    if (!sd_bus_message_get_error (m) && hkd_props_read (m, &props) == 0) {
        u = hkd_unit_find (units, props.alloc, props.attempt);
        if (u) /* its start got no answer yet, and finds it by its name */
            known = true;
        else if (units->adopting && props.attempt > 0)
            known = adopt (units, listed->call.name, &props, listed->job_done);
        if (!known)
            add_foreign (units, listed->call.name);
    }
    hkd_props_fini (&props);
    list_done (units);
    return 0;
}

static void ask_listed (struct hkd_units *units,
                        const char *name,
                        bool job_done)
{
    struct listed *listed = calloc (1, sizeof (*listed));

    if (listed) {
        listed->call.units = units;
        listed->job_done = job_done;
        snprintf (listed->call.name, sizeof (listed->call.name), "%s", name);
    }
    if (hkd_units_get_all (
            units, name, on_listed_unit, (struct hkd_call *)listed)
        == 0)
        units->looks_left++;
    else
        add_foreign (units, name);
}

/* ---- the list ---- */

static void take_listed (struct hkd_units *units,
                         const char *name,
                         const char *active_state,
                         bool job_done)
{
    struct hkd_unit *u = hkd_unit_by_name (units, name);

    if (!u
        || (u->state != HKD_UNIT_STARTED && u->state != HKD_UNIT_FORGOTTEN)) {
        ask_listed (units, name, job_done);
        return;
    }
    u->listed = true;
    if (u->state == HKD_UNIT_FORGOTTEN) {
        hkd_unit_let_go (u);
        return;
    }
    u->job_done |= job_done;
    snprintf (u->active_state, sizeof (u->active_state), "%s", active_state);
    if (u->signum)
        hkd_unit_kill (u);
    u->changed = true;
    hkd_unit_ask (u);
}

static int read_list (sd_bus_message *m, struct hkd_units *units)
{
    const char *name, *load, *active;
    uint32_t job;
    size_t count = 0;
    int rc = sd_bus_message_enter_container (m, 'a', "(ssssssouso)");

    while (rc >= 0
           && (rc = sd_bus_message_read (m,
                                         "(ssssssouso)",
                                         &name,
                                         NULL,
                                         &load,
                                         &active,
                                         NULL,
                                         NULL,
                                         NULL,
                                         &job,
                                         NULL,
                                         NULL))
                  > 0) {
        if (!strcmp (load, "not-found"))
            continue;
        if (++count > LIST_LIMIT)
            return -E2BIG;
        take_listed (units, name, active, job == 0);
    }
    return rc;
}

static int on_list (sd_bus_message *m, void *arg, sd_bus_error *ret)
{
    const struct hkd_call *call = arg;
    struct hkd_units *units = call->units;
    const sd_bus_error *error = sd_bus_message_get_error (m);
    struct hkd_unit *u, *next;
    int rc = 0;

    (void)ret;
    if (!units->looking)
        return 0;
    for (u = units->first; u; u = u->next)
        u->listed = false;
    if (error || (rc = read_list (m, units)) < 0) {
        hk_log_throttled (LOG_ERR,
                          "list",
                          "systemd does not list its units: %s",
                          error ? error->message : strerror (-rc));
        hkd_bus_drop (units->bus); /* and again */
        return 0;
    }
    for (u = units->first; u; u = next) {
        next = u->next;
        if (!u->listed
            && (u->state == HKD_UNIT_STARTED || u->state == HKD_UNIT_FORGOTTEN))
            hkd_unit_verify (u);
    }
    list_done (units);
    return 0;
}

void hkd_units_list (struct hkd_units *units)
{
    struct hkd_call *call;
    sd_bus_message *m = NULL;
    int rc;

    if (units->looking)
        return;
    free (units->foreign_next);
    units->foreign_next = NULL;
    units->looks_left = 0;
    units->looking = true;
    if ((call = calloc (1, sizeof (*call)))) {
        call->units = units;
        call->method = "ListUnitsByPatterns";
    }
    if ((rc = hkd_manager_call (units, "ListUnitsByPatterns", &m)) >= 0)
        rc = sd_bus_message_append (
            m, "asas", 0, 1, HKD_UNIT_PREFIX "*.service");
    if (hkd_call_send (units, m, rc, on_list, call) < 0)
        units->looking = false;
}

void hkd_units_adopt (struct hkd_units *units)
{
    units->adopting = true;
    hkd_units_want_bus (units); /* `up` asks for the list */
    if (hkd_bus_get (units->bus))
        hkd_units_list (units);
}

void hkd_units_look (struct hkd_units *units)
{
    if (units->looking || units->adopting)
        return;
    if (hkd_bus_get (units->bus))
        hkd_units_list (units);
    else {
        units->wanted_list = true;
        hkd_units_want_bus (units);
    }
}

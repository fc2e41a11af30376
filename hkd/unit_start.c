/* unit_start.c - calls to systemd: a unit is started, signalled, let go */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/jobid.h"
#include "proto/log.h"
#include "hkd/runfile.h"
#include "hkd/unit_impl.h"

#define NO_SUCH_UNIT HKD_SYSTEMD ".NoSuchUnit"
#define UNIT_EXISTS HKD_SYSTEMD ".UnitExists"

/* ---- calls ---- */

struct hkd_call *hkd_call_create (const struct hkd_unit *u)
{
    struct hkd_call *call = calloc (1, sizeof (*call));

    if (!call)
        return NULL;
    call->units = u->units;
    call->alloc = u->alloc;
    call->attempt = u->attempt;
    snprintf (call->name, sizeof (call->name), "%s", u->name);
    return call;
}

struct hkd_unit *hkd_call_unit (const struct hkd_call *call)
{
    return hkd_unit_find (call->units, call->alloc, call->attempt);
}

int hkd_manager_call (struct hkd_units *units,
                      const char *method,
                      sd_bus_message **m)
{
    sd_bus *bus = hkd_bus_get (units->bus);

    if (!bus)
        return -ENOTCONN;
    return sd_bus_message_new_method_call (
        bus, m, HKD_SYSTEMD, HKD_SYSTEMD_PATH, HKD_SYSTEMD ".Manager", method);
}

int hkd_call_send (struct hkd_units *units,
                   sd_bus_message *m,
                   int rc,
                   sd_bus_message_handler_t fn,
                   struct hkd_call *take)
{
    if (rc >= 0 && !take)
        rc = -ENOMEM;
    if (rc < 0) {
        free (take);
        errno = -rc;
    } else
        rc = hkd_bus_call (units->bus, m, fn, take);
    sd_bus_message_unref (m);
    if (rc < 0 && errno != ENOTCONN) /* then it is said with the next `up` */
        hk_log_throttled (
            LOG_ERR, "call", "systemd cannot be asked: %s", strerror (errno));
    return rc < 0 ? -1 : 0;
}

bool hkd_call_lost (const sd_bus_error *error)
{
    return sd_bus_error_has_name (error, SD_BUS_ERROR_NO_REPLY)
           || sd_bus_error_has_name (error, SD_BUS_ERROR_TIMEOUT)
           || sd_bus_error_has_name (error, SD_BUS_ERROR_DISCONNECTED);
}

void hkd_call_failed (const struct hkd_call *call, const sd_bus_error *error)
{
    if (hkd_call_lost (error)) /* what is to be done is done with the next up */
        hkd_bus_drop (call->units->bus);
    else if (!sd_bus_error_has_name (error, NO_SUCH_UNIT))
        hk_log_throttled (LOG_ERR,
                          call->name,
                          "%s: %s: %s",
                          call->name,
                          call->method,
                          error->message);
}

/* ---- start ---- */

static void name_make (const struct hkd_unit *u, char *name, size_t size)
{
    char jobid[HK_JOBID_TEXT_BYTES];

    hk_jobid_encode (u->jobid, HK_JOBID_F58PLAIN, jobid);
    if (u->name_no == 1)
        snprintf (name, size, HKD_UNIT_PREFIX "%s.service", jobid);
    else
        snprintf (
            name, size, HKD_UNIT_PREFIX "%s-%u.service", jobid, u->name_no);
}

static void cannot (struct hkd_unit *u, const char *what, int errnum)
{
    char *text;

    if (asprintf (&text, "%s: %s", what, strerror (errnum)) < 0)
        text = NULL; /* then it is tried again */
    free (u->why);
    u->why = text;
    u->state = HKD_UNIT_WAITING;
}

/* The file first: what may have arrived at systemd then starts no script. */
void hkd_unit_start_failed (struct hkd_unit *u, const char *reason)
{
    struct hkd_event ev = { .failed = { .reason = reason } };
    struct hk_error err;

    if (hkd_go_remove (u->units->conf->run_dir, u->alloc, u->attempt, &err) < 0)
        hk_log (LOG_CRIT, "a script may start: %s", err.text);
    hkd_unit_tell (u, HKD_EV_START_FAILED, &ev);
    hkd_unit_drop (u);
}

void hkd_unit_started (struct hkd_unit *u)
{
    struct hkd_event ev = { .started = { .invocation = u->invocation,
                                         .unit = u->name } };

    u->told = true;
    u->check_ms = hkd_units_now (u->units) + HKD_CHECK_MS;
    hkd_unit_tell (u, HKD_EV_STARTED, &ev);
    hkd_unit_tell_scripts (u);
    if (u->changed || u->job_done)
        hkd_unit_ask (u);
}

/* What was heard so far was about another unit. */
static void next_name (struct hkd_unit *u)
{
    u->invocation[0] = u->active_state[0] = '\0';
    u->job_done = false;
    u->name_no++;
    hkd_unit_start_now (u);
}

static int on_checked (sd_bus_message *m, void *arg, sd_bus_error *ret)
{
    const struct hkd_call *call = arg;
    struct hkd_unit *u = hkd_call_unit (call);
    const sd_bus_error *error = sd_bus_message_get_error (m);
    struct hkd_props props = { .alloc = 0 };

    (void)ret;
    if (!u || u->state != HKD_UNIT_CHECKING)
        return 0;
    if (error && hkd_call_lost (error))
        hkd_bus_drop (call->units->bus);
    else if (error || hkd_props_read (m, &props) < 0 || props.alloc != u->alloc
             || props.attempt != u->attempt)
        next_name (u);
    else {
        u->state = HKD_UNIT_STARTED;
        u->job_done = strcmp (props.active_state, "activating") != 0;
        hkd_unit_take (u, &props);
    }
    hkd_props_fini (&props);
    return 0;
}

/* The name is taken: by another run of that job id, or by ours, whose start got
 * no answer.
 */
static void name_taken (struct hkd_unit *u)
{
    struct hkd_call *call;

    if (!u->lost) {
        next_name (u);
        return;
    }
    u->state = HKD_UNIT_CHECKING;
    if (!(call = hkd_call_create (u))
        || hkd_units_get_all (u->units, u->name, on_checked, call) < 0)
        cannot (u, u->name, errno);
}

static int on_started (sd_bus_message *m, void *arg, sd_bus_error *ret)
{
    const struct hkd_call *call = arg;
    struct hkd_unit *u = hkd_call_unit (call);
    const sd_bus_error *error = sd_bus_message_get_error (m);
    char reason[HK_ERROR_BYTES];

    (void)ret;
    if (!u)
        return 0;
    if (u->state == HKD_UNIT_FORGOTTEN) {
        hkd_unit_let_go (u);
        return 0;
    }
    if (u->state != HKD_UNIT_ASKED)
        return 0;
    if (!error) {
        u->state = HKD_UNIT_STARTED;
        if (u->invocation[0])
            hkd_unit_started (u);
        else
            hkd_unit_ask (u);
    } else if (hkd_call_lost (error))
        hkd_bus_drop (call->units->bus);
    else if (sd_bus_error_has_name (error, UNIT_EXISTS))
        name_taken (u);
    else {
        snprintf (reason, sizeof (reason), "systemd: %s", error->message);
        hkd_unit_start_failed (u, reason);
    }
    return 0;
}

void hkd_unit_start_now (struct hkd_unit *u)
{
    char name[HKD_UNIT_NAME_BYTES];
    sd_bus_message *m = NULL;
    struct hkd_call *call;
    int rc;

    if (u->why)
        return;
    name_make (u, name, sizeof (name));
    if (u->name_no > HKD_UNIT_NAMES_LIMIT) {
        cannot (u, "too many units of this job", EEXIST);
        return;
    }
    if (hkd_unit_set_name (u, name) < 0) {
        cannot (u, name, ENOMEM);
        return;
    }
    rc = hkd_unit_message (u, hkd_bus_get (u->units->bus), &m);
    if (rc < 0) {
        cannot (u, "the unit cannot be described", -rc);
        return;
    }
    u->state = HKD_UNIT_ASKED;
    call = hkd_call_create (u);
    if (hkd_call_send (u->units, m, 0, on_started, call) < 0)
        cannot (u, "systemd cannot be asked", errno);
}

/* ---- signals, and the end ---- */

static int on_killed (sd_bus_message *m, void *arg, sd_bus_error *ret)
{
    const sd_bus_error *error = sd_bus_message_get_error (m);

    (void)ret;
    if (error)
        hkd_call_failed (arg, error);
    return 0;
}

void hkd_unit_kill (struct hkd_unit *u)
{
    struct hkd_call *call = hkd_call_create (u);
    sd_bus_message *m = NULL;
    int rc = hkd_manager_call (u->units, "KillUnit", &m);

    if (rc >= 0)
        rc = sd_bus_message_append (m, "ssi", u->name, "all", u->signum);
    if (call)
        call->method = "KillUnit";
    hkd_call_send (u->units, m, rc, on_killed, call);
}

static int on_let_go (sd_bus_message *m, void *arg, sd_bus_error *ret)
{
    const struct hkd_call *call = arg;
    const sd_bus_error *error = sd_bus_message_get_error (m);
    struct hkd_unit *u = hkd_call_unit (call);

    (void)ret;
    if (!u || u->state != HKD_UNIT_FORGOTTEN)
        return 0;
    if (error && !sd_bus_error_has_name (error, NO_SUCH_UNIT)) {
        hkd_call_failed (call, error);
        return 0;
    }
    if (error)
        hkd_unit_gone (u);
    return 0;
}

/* The first ends one that is active (exited), the second one that failed. */
void hkd_unit_let_go (struct hkd_unit *u)
{
    sd_bus_message *m = NULL;
    struct hkd_call *call = hkd_call_create (u);
    int rc = hkd_manager_call (u->units, "StopUnit", &m);

    if (rc >= 0)
        rc = sd_bus_message_append (m, "ss", u->name, "replace");
    if (call)
        call->method = "StopUnit";
    if (hkd_call_send (u->units, m, rc, on_let_go, call) < 0)
        return;
    if (!strcmp (u->active_state, "active"))
        return;
    m = NULL;
    if ((call = hkd_call_create (u)))
        call->method = "ResetFailedUnit";
    if ((rc = hkd_manager_call (u->units, "ResetFailedUnit", &m)) >= 0)
        rc = sd_bus_message_append (m, "s", u->name);
    hkd_call_send (u->units, m, rc, on_let_go, call);
}

/* ---- are its properties as asked? ---- */

static int on_check (sd_bus_message *m, void *arg, sd_bus_error *ret)
{
    const struct hkd_call *call = arg;
    struct hkd_unit *u = hkd_call_unit (call);
    struct hkd_props props = { .alloc = 0 };
    char text[256];

    (void)ret;
    if (!u || u->state != HKD_UNIT_STARTED || sd_bus_message_get_error (m))
        return 0;
    if (hkd_props_read (m, &props) == 0) {
        hkd_props_compare (u, &props, text, sizeof (text));
        if (*text)
            hk_log (LOG_WARNING,
                    "%s: systemd made another unit than was asked "
                    "for: %s",
                    u->name,
                    text);
        hkd_unit_take (u, &props);
    }
    hkd_props_fini (&props);
    return 0;
}

/* systemd has been seen to take limits of time for others; hkd's own count. */
void hkd_unit_check (struct hkd_unit *u)
{
    struct hkd_call *call = hkd_call_create (u);

    if (u->state == HKD_UNIT_STARTED && call)
        hkd_units_get_all (u->units, u->name, on_check, call);
    else
        free (call);
}

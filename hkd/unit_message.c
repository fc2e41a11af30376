/* unit_message.c - the message that starts a unit */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/duration.h"
#include "proto/jobid.h"
#include "hkd/runfile.h"
#include "hkd/unit_impl.h"

/* sd-bus keeps its first failure: what follows fails with it. */
static int put_text (sd_bus_message *m, const char *name, const char *value)
{
    return sd_bus_message_append (m, "(sv)", name, "s", value);
}

static int put_flag (sd_bus_message *m, const char *name, int value)
{
    return sd_bus_message_append (m, "(sv)", name, "b", value);
}

static int put_usec (sd_bus_message *m, const char *name, int64_t ms)
{
    uint64_t usec = ms == HK_DURATION_INF ? UINT64_MAX : (uint64_t)ms * 1000;

    return sd_bus_message_append (m, "(sv)", name, "t", usec);
}

/* An array, the variant around it, and the pair of name and value. */
static int close_value (sd_bus_message *m)
{
    int rc = 0;

    for (int i = 0; i < 3 && rc >= 0; i++)
        rc = sd_bus_message_close_container (m);
    return rc;
}

__attribute__ ((format (printf, 2, 3))) static int put_env (sd_bus_message *m,
                                                            const char *fmt,
                                                            ...)
{
    va_list ap;
    char *text;
    int rc;

    va_start (ap, fmt);
    rc = vasprintf (&text, fmt, ap);
    va_end (ap);
    if (rc < 0)
        return -ENOMEM;
    rc = sd_bus_message_append (m, "s", text);
    free (text);
    return rc;
}

/* What scripts find is made here: nothing else comes from the network. */
static int put_environment (sd_bus_message *m, const struct hkd_unit *u)
{
    const struct hk_conf *conf = u->units->conf;
    char jobid[HK_JOBID_TEXT_BYTES];
    int rc;

    hk_jobid_encode (u->jobid, HK_JOBID_F58PLAIN, jobid);
    if ((rc = sd_bus_message_open_container (m, 'r', "sv")) < 0
        || (rc = sd_bus_message_append (m, "s", "Environment")) < 0
        || (rc = sd_bus_message_open_container (m, 'v', "as")) < 0
        || (rc = sd_bus_message_open_container (m, 'a', "s")) < 0
        || (rc = put_env (m, "PATH=/usr/sbin:/usr/bin:/sbin:/bin")) < 0
        || (rc = put_env (m, "HOME=/root")) < 0
        || (rc = put_env (m, "USER=root")) < 0
        || (rc = put_env (m, "FLUX_JOB_ID=%s", jobid)) < 0
        || (rc = put_env (m, "FLUX_JOB_USERID=%" PRIu32, u->start.userid)) < 0
        || (rc = put_env (m, "FLUX_JOB_RANKS=%s", u->start.ranks)) < 0
        || (rc = put_env (m, "FLUX_URI=%s", conf->flux_uri)) < 0
        || (rc = put_env (
                m, "FLUX_OWNER_USERID=%lu", (unsigned long)conf->flux_owner))
               < 0
        || (rc = put_env (m, "HK_ALLOC=%" PRIu64, u->alloc)) < 0
        || (rc = put_env (m, "HK_ATTEMPT=%d", u->attempt)) < 0
        || (rc = put_env (m, "HK_HOST=%s", u->units->host)) < 0
        || (rc = put_env (m, "HK_RANK=%" PRIu32, u->start.rank)) < 0)
        return rc;
    return close_value (m);
}

/* Read anew before each command: without it none starts. */
static int put_go_file (sd_bus_message *m, const struct hkd_unit *u)
{
    char path[HKD_PATH_BYTES];

    hkd_go_path (u->units->conf->run_dir, u->alloc, u->attempt, path);
    return sd_bus_message_append (
        m, "(sv)", "EnvironmentFiles", "a(sb)", 1, path, 0);
}

/* systemd expands variables in arguments; "$$" is a dollar. */
static char *no_variables (const char *text)
{
    char *out = malloc (2 * strlen (text) + 1), *p = out;

    if (!out)
        return NULL;
    for (; *text; text++) {
        if (*text == '$')
            *p++ = '$';
        *p++ = *text;
    }
    *p = '\0';
    return out;
}

/* Not the script as the command: where failures are ignored systemd passes over
 * a command that is not there, and counts it as a success.  The shell says 127.
 */
static int put_command (sd_bus_message *m,
                        const struct hkd_script *script,
                        bool ignore_failure)
{
    char *arg = no_variables (script->path);
    int rc;

    if (!arg)
        return -ENOMEM;
    if (script->by_shell)
        rc = sd_bus_message_append (
            m, "(sasb)", "/bin/sh", 2, "/bin/sh", arg, ignore_failure);
    else
        rc = sd_bus_message_append (m,
                                    "(sasb)",
                                    "/bin/sh",
                                    4,
                                    "/bin/sh",
                                    "-c",
                                    "exec \"$$0\"",
                                    arg,
                                    ignore_failure);
    free (arg);
    return rc;
}

/* Not ExecStartEx, which knows "no-env-expand": systemd 252 writes that name
 * into the unit's file, and at a daemon-reload does not know it any more; the
 * later scripts would not run.
 */
static int put_commands (sd_bus_message *m, const struct hkd_unit *u)
{
    int rc;

    if ((rc = sd_bus_message_open_container (m, 'r', "sv")) < 0
        || (rc = sd_bus_message_append (m, "s", "ExecStart")) < 0
        || (rc = sd_bus_message_open_container (m, 'v', "a(sasb)")) < 0
        || (rc = sd_bus_message_open_container (m, 'a', "(sasb)")) < 0)
        return rc;
    for (size_t i = 0; i < u->scripts.count; i++)
        if ((rc = put_command (m, &u->scripts.list[i], !u->exit_on_first_error))
            < 0)
            return rc;
    return close_value (m);
}

static int put_log_fields (sd_bus_message *m, const struct hkd_unit *u)
{
    char jobid[HK_JOBID_TEXT_BYTES], field[HK_JOBID_TEXT_BYTES + 16];
    char user[32];
    int rc;

    snprintf (field,
              sizeof (field),
              "HK_JOBID=%s",
              hk_jobid_encode (u->jobid, HK_JOBID_F58PLAIN, jobid));
    snprintf (user, sizeof (user), "HK_USERID=%" PRIu32, u->start.userid);
    if ((rc = sd_bus_message_open_container (m, 'r', "sv")) < 0
        || (rc = sd_bus_message_append (m, "s", "LogExtraFields")) < 0
        || (rc = sd_bus_message_open_container (m, 'v', "aay")) < 0
        || (rc = sd_bus_message_open_container (m, 'a', "ay")) < 0
        || (rc = sd_bus_message_append_array (m, 'y', field, strlen (field)))
               < 0
        || (rc = sd_bus_message_append_array (m, 'y', user, strlen (user))) < 0)
        return rc;
    return close_value (m);
}

/* A unit that ended stays loaded, with its results, whether it is active
 * (exited) or failed, until we let go of it.  The limits of time are hkd's: the
 * one of stopping is for an hkd that is away while systemd ends a unit.
 */
static int put_properties (sd_bus_message *m, const struct hkd_unit *u)
{
    char jobid[HK_JOBID_TEXT_BYTES], text[HK_JOBID_TEXT_BYTES + 64];
    int rc;

    snprintf (text,
              sizeof (text),
              "Housekeeping for Flux job %s",
              hk_jobid_encode (u->jobid, HK_JOBID_F58PLAIN, jobid));
    if ((rc = put_text (m, "Description", text)) < 0
        || (rc = put_text (m, "Slice", HKD_SLICE)) < 0
        || (rc = put_text (m, "Type", "oneshot")) < 0
        || (rc = put_text (m, "CollectMode", "inactive")) < 0
        || (rc = put_text (m, "KillMode", "control-group")) < 0
        || (rc = put_text (m, "SyslogIdentifier", "flux-housekeeping")) < 0
        || (rc = put_flag (m, "RemainAfterExit", 1)) < 0
        || (rc = put_usec (m, "TimeoutStartUSec", HK_DURATION_INF)) < 0
        || (rc = put_usec (m, "TimeoutStopUSec", hkd_unit_stop_ms (u))) < 0
        || (rc = put_usec (m, "RuntimeMaxUSec", HK_DURATION_INF)) < 0
        || (rc = put_go_file (m, u)) < 0 || (rc = put_environment (m, u)) < 0
        || (rc = put_log_fields (m, u)) < 0)
        return rc;
    return put_commands (m, u);
}

/* To systemd 0 would be no limit. */
int64_t hkd_unit_stop_ms (const struct hkd_unit *u)
{
    return u->kill_grace_ms > 0 ? u->kill_grace_ms : 1;
}

int hkd_unit_message (struct hkd_unit *u, sd_bus *bus, sd_bus_message **out)
{
    sd_bus_message *m = NULL;
    int rc;

    if ((rc = sd_bus_message_new_method_call (bus,
                                              &m,
                                              HKD_SYSTEMD,
                                              HKD_SYSTEMD_PATH,
                                              HKD_SYSTEMD ".Manager",
                                              "StartTransientUnit"))
            < 0
        || (rc = sd_bus_message_append (m, "ss", u->name, "fail")) < 0
        || (rc = sd_bus_message_open_container (m, 'a', "(sv)")) < 0
        || (rc = put_properties (m, u)) < 0
        || (rc = sd_bus_message_close_container (m)) < 0
        || (rc = sd_bus_message_append (m, "a(sa(sv))", 0)) < 0) {
        sd_bus_message_unref (m);
        return rc;
    }
    *out = m;
    return 0;
}

/* unit_props.c - what systemd tells of a unit */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/duration.h"
#include "hkd/unit_impl.h"

enum prop_kind {
    PROP_TEXT, /* into an array of size */
    PROP_CGROUP,
    PROP_FLAG,
    PROP_U32,
    PROP_I32,
    PROP_U64,
    PROP_ID,
    PROP_EXECS,
    PROP_ENVIRONMENT,
};

static const struct prop {
    const char *name;
    const char *type;
    enum prop_kind kind;
    size_t offset;
    size_t size;
} props[] = {
#define AT(m) \
    offsetof (struct hkd_props, m), sizeof (((struct hkd_props *)NULL)->m)
    { "ActiveState", "s", PROP_TEXT, AT (active_state) },
    { "KillMode", "s", PROP_TEXT, AT (kill_mode) },
    { "CollectMode", "s", PROP_TEXT, AT (collect_mode) },
    { "Type", "s", PROP_TEXT, AT (type) },
    { "Slice", "s", PROP_TEXT, AT (slice) },
    { "ControlGroup", "s", PROP_CGROUP, AT (cgroup) },
    { "RemainAfterExit", "b", PROP_FLAG, AT (remain_after_exit) },
    { "ExecMainPID", "u", PROP_U32, AT (main_pid) },
    { "ExecMainCode", "i", PROP_I32, AT (main_code) },
    { "ExecMainStatus", "i", PROP_I32, AT (main_status) },
    { "ExecMainStartTimestamp", "t", PROP_U64, AT (main_start_us) },
    { "ExecMainExitTimestamp", "t", PROP_U64, AT (main_exit_us) },
    { "TimeoutStartUSec", "t", PROP_U64, AT (timeout_start_us) },
    { "TimeoutStopUSec", "t", PROP_U64, AT (timeout_stop_us) },
    { "RuntimeMaxUSec", "t", PROP_U64, AT (runtime_max_us) },
    { "InvocationID", "ay", PROP_ID, AT (invocation) },
    { "ExecStart", "a(sasbttttuii)", PROP_EXECS, AT (execs) },
    { "Environment", "as", PROP_ENVIRONMENT, AT (alloc) },
#undef AT
};

static void execs_free (struct hkd_props *p)
{
    for (size_t i = 0; i < p->execs_count; i++)
        free (p->execs[i].path);
    free (p->execs);
    p->execs = NULL;
    p->execs_count = 0;
}

void hkd_props_fini (struct hkd_props *p)
{
    execs_free (p);
    free (p->cgroup);
    p->cgroup = NULL;
}

static int read_id (sd_bus_message *m, char *id)
{
    const unsigned char *bytes;
    size_t n;
    int rc = sd_bus_message_read_array (m, 'y', (const void **)&bytes, &n);

    if (rc < 0)
        return rc;
    id[0] = '\0';
    for (size_t i = 0; n == 16 && i < n; i++)
        snprintf (id + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

/* As unit_message.c wrote it: a dollar is two. */
static char *argument (const char *text)
{
    char *out = strdup (text), *p = out;

    for (; out && *text; text++) {
        if (text[0] == '$' && text[1] == '$')
            text++;
        *p++ = *text;
    }
    if (out)
        *p = '\0';
    return out;
}

/* The script: the command, or what it has /bin/sh run. */
static int read_command (sd_bus_message *m, struct hkd_exec *exec)
{
    const char *path, *arg, *second = NULL, *fourth = NULL;
    int count = 0, rc;

    if ((rc = sd_bus_message_read (m, "s", &path)) < 0
        || (rc = sd_bus_message_enter_container (m, 'a', "s")) < 0)
        return rc;
    while ((rc = sd_bus_message_read (m, "s", &arg)) > 0)
        if (++count == 2)
            second = arg;
        else if (count == 4)
            fourth = arg;
    if (rc < 0 || (rc = sd_bus_message_exit_container (m)) < 0)
        return rc;
    exec->by_shell = second && !fourth && !strcmp (path, "/bin/sh");
    exec->path = exec->by_shell ? argument (second)
                 : fourth       ? argument (fourth)
                                : strdup (path);
    return exec->path ? 0 : -ENOMEM;
}

static int read_exec (sd_bus_message *m, struct hkd_exec *exec)
{
    uint64_t start, exit;
    int rc;

    if ((rc = sd_bus_message_enter_container (m, 'r', "sasbttttuii")) < 0
        || (rc = read_command (m, exec)) < 0
        || (rc = sd_bus_message_read (m,
                                      "bttttuii",
                                      NULL,
                                      &start,
                                      NULL,
                                      &exit,
                                      NULL,
                                      &exec->pid,
                                      &exec->code,
                                      &exec->status))
               < 0)
        return rc;
    exec->t_start = (double)start / 1e6;
    exec->t_end = (double)exit / 1e6;
    return sd_bus_message_exit_container (m);
}

static int read_execs (sd_bus_message *m, struct hkd_props *p)
{
    int rc = sd_bus_message_enter_container (m, 'a', "(sasbttttuii)");

    execs_free (p);
    p->has_execs = true;
    while (rc >= 0 && (rc = sd_bus_message_at_end (m, 0)) == 0) {
        struct hkd_exec *more;
        if (p->execs_count == HK_SCRIPTS_LIMIT)
            return -E2BIG;
        more = realloc (p->execs, (p->execs_count + 1) * sizeof (*more));
        if (!more)
            return -ENOMEM;
        p->execs = more;
        memset (&more[p->execs_count], 0, sizeof (*more));
        rc = read_exec (m, &more[p->execs_count++]);
    }
    return rc < 0 ? rc : sd_bus_message_exit_container (m);
}

static int read_environment (sd_bus_message *m, struct hkd_props *p)
{
    const char *text;
    int rc = sd_bus_message_enter_container (m, 'a', "s");

    if (rc < 0)
        return rc;
    while ((rc = sd_bus_message_read (m, "s", &text)) > 0) {
        if (!strncmp (text, "HK_ALLOC=", 9))
            p->alloc = strtoull (text + 9, NULL, 10);
        else if (!strncmp (text, "HK_ATTEMPT=", 11))
            p->attempt = (int)strtol (text + 11, NULL, 10);
    }
    return rc < 0 ? rc : sd_bus_message_exit_container (m);
}

static int read_text (sd_bus_message *m,
                      const struct prop *prop,
                      struct hkd_props *p)
{
    const char *text;
    int rc = sd_bus_message_read (m, "s", &text);

    if (rc < 0)
        return rc;
    if (prop->kind == PROP_TEXT) {
        snprintf ((char *)p + prop->offset, prop->size, "%s", text);
        return 0;
    }
    free (p->cgroup);
    p->has_cgroup = true;
    p->cgroup = strdup (text);
    return p->cgroup ? 0 : -ENOMEM;
}

static int read_value (sd_bus_message *m,
                       const struct prop *prop,
                       struct hkd_props *p)
{
    void *slot = (char *)p + prop->offset;
    int flag, rc;

    switch (prop->kind) {
    case PROP_TEXT:
    case PROP_CGROUP:
        return read_text (m, prop, p);
    case PROP_FLAG:
        rc = sd_bus_message_read (m, "b", &flag);
        *(bool *)slot = rc > 0 && flag;
        return rc;
    case PROP_U32:
        p->has_main = true;
        return sd_bus_message_read (m, "u", slot);
    case PROP_I32:
        return sd_bus_message_read (m, "i", slot);
    case PROP_U64:
        return sd_bus_message_read (m, "t", slot);
    case PROP_ID:
        return read_id (m, slot);
    case PROP_EXECS:
        return read_execs (m, p);
    case PROP_ENVIRONMENT:
        return read_environment (m, p);
    }
    return -EINVAL;
}

int hkd_prop_read (sd_bus_message *m, const char *name, struct hkd_props *p)
{
    const struct prop *prop = NULL;
    const char *type;
    int rc;

    for (size_t i = 0; !prop && i < sizeof (props) / sizeof (props[0]); i++)
        if (!strcmp (props[i].name, name))
            prop = &props[i];
    if ((rc = sd_bus_message_peek_type (m, NULL, &type)) < 0)
        return rc;
    if (!prop || strcmp (prop->type, type) != 0)
        return sd_bus_message_skip (m, "v");
    if ((rc = sd_bus_message_enter_container (m, 'v', type)) < 0
        || (rc = read_value (m, prop, p)) < 0)
        return rc;
    return sd_bus_message_exit_container (m);
}

int hkd_props_read (sd_bus_message *m, struct hkd_props *p)
{
    const char *name;
    int rc = sd_bus_message_enter_container (m, 'a', "{sv}");

    while (rc >= 0
           && (rc = sd_bus_message_enter_container (m, 'e', "sv")) > 0) {
        if ((rc = sd_bus_message_read (m, "s", &name)) >= 0
            && (rc = hkd_prop_read (m, name, p)) >= 0)
            rc = sd_bus_message_exit_container (m);
    }
    if (rc >= 0)
        rc = sd_bus_message_exit_container (m);
    return rc < 0 ? rc : 0;
}

static void differs (char *text, size_t size, const char *name, bool same)
{
    size_t n = strlen (text);

    if (!same)
        snprintf (text + n, size - n, "%s%s", n ? ", " : "", name);
}

void hkd_props_compare (const struct hkd_unit *u,
                        const struct hkd_props *p,
                        char *text,
                        size_t size)
{
    uint64_t stop = u->kill_grace_ms == HK_DURATION_INF
                        ? UINT64_MAX
                        : (uint64_t)hkd_unit_stop_ms (u) * 1000;

    text[0] = '\0';
    differs (text, size, "Type", !strcmp (p->type, "oneshot"));
    differs (text, size, "Slice", !strcmp (p->slice, HKD_SLICE));
    differs (text, size, "KillMode", !strcmp (p->kill_mode, "control-group"));
    differs (text, size, "CollectMode", !strcmp (p->collect_mode, "inactive"));
    differs (text, size, "RemainAfterExit", p->remain_after_exit);
    differs (text, size, "TimeoutStartUSec", p->timeout_start_us == UINT64_MAX);
    differs (text, size, "TimeoutStopUSec", p->timeout_stop_us == stop);
    differs (text, size, "RuntimeMaxUSec", p->runtime_max_us == UINT64_MAX);
    differs (text, size, "ExecStart", p->execs_count == u->scripts.count);
}

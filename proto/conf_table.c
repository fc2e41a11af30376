/* conf_table.c - every option: section, name, type, default, bounds, help */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "proto/conf_table.h"

#define SECOND INT64_C (1000)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define YEARS_100 INT64_C (3155760000000)

const char hk_conf_class_section[] = "housekeeping.NAME";

/* The order is that of the example file and of `hkctl config`. */
const struct hk_conf_row hk_conf_rows[] = {
    /* [link] */
    {
        .option = { "link",
                    "head",
                    "endpoints",
                    "flux-hk-head",
                    "Where the coordinator is, several tried in this order" },
        .kind = HK_CONF_ENDPOINTS,
        .offset = offsetof (struct hk_conf, head),
    },
    {
        .option = { "link",
                    "bind",
                    "address",
                    "*",
                    "Address or interface the coordinator listens on" },
        .kind = HK_CONF_ADDRESS,
        .offset = offsetof (struct hk_conf, bind),
    },
    {
        .option = { "link",
                    "node-port",
                    "port",
                    "8765",
                    "Port for the nodes' daemons" },
        .kind = HK_CONF_PORT,
        .offset = offsetof (struct hk_conf, node_port),
        .least = 1,
        .most = UINT16_MAX,
    },
    {
        .option = { "link",
                    "client-port",
                    "port",
                    "8766",
                    "Port for hkctl and job managers" },
        .kind = HK_CONF_PORT,
        .offset = offsetof (struct hk_conf, client_port),
        .least = 1,
        .most = UINT16_MAX,
    },
    {
        .option = { "link",
                    "key-port",
                    "port",
                    "8767",
                    "Port that tells the coordinator's public key" },
        .kind = HK_CONF_PORT,
        .offset = offsetof (struct hk_conf, key_port),
        .least = 1,
        .most = UINT16_MAX,
    },
    {
        .option = { "link",
                    "server-uid",
                    "user",
                    "0",
                    "User the coordinator runs as; a key from any other is "
                    "refused" },
        .kind = HK_CONF_USER,
        .offset = offsetof (struct hk_conf, server_uid),
    },
    {
        .option = { "link",
                    "munge-socket",
                    "path",
                    "",
                    "Socket of munged; empty: the one MUNGE was built with" },
        .kind = HK_CONF_PATH,
        .offset = offsetof (struct hk_conf, munge_socket),
        .may_be_empty = true,
    },
    {
        .option = { "link",
                    "heartbeat",
                    "duration",
                    "20s",
                    "How often a node or manager says that it is alive" },
        .kind = HK_CONF_DURATION,
        .offset = offsetof (struct hk_conf, heartbeat_ms),
        .least = SECOND,
        .most = 10 * MINUTE,
    },
    {
        .option = { "link",
                    "reconcile",
                    "duration",
                    "60s",
                    "How often a node tells its full state" },
        .kind = HK_CONF_DURATION,
        .offset = offsetof (struct hk_conf, reconcile_ms),
        .least = SECOND,
        .most = HOUR,
    },
    {
        .option = { "link",
                    "node-connections",
                    "count",
                    "20000",
                    "Most connections on the nodes' port" },
        .kind = HK_CONF_COUNT,
        .offset = offsetof (struct hk_conf, node_connections),
        .least = 1,
        .most = 1000000,
    },
    {
        .option = { "link",
                    "client-connections",
                    "count",
                    "512",
                    "Most connections on the clients' port" },
        .kind = HK_CONF_COUNT,
        .offset = offsetof (struct hk_conf, client_connections),
        .least = 1,
        .most = 100000,
    },
    /* [hkd] */
    {
        .option = { "hkd",
                    "host",
                    "host",
                    "",
                    "Name of this node in R; empty: the machine's own name" },
        .kind = HK_CONF_HOST,
        .offset = offsetof (struct hk_conf, host),
        .may_be_empty = true,
    },
    {
        .option = { "hkd",
                    "libexecdir",
                    "path",
                    "/usr/libexec",
                    "Where packages put scripts: "
                    "LIBEXECDIR/flux/housekeeping.d" },
        .kind = HK_CONF_PATH,
        .offset = offsetof (struct hk_conf, libexecdir),
    },
    {
        .option = { "hkd",
                    "sysconfdir",
                    "path",
                    "/etc",
                    "Where the site puts scripts: "
                    "SYSCONFDIR/flux/system/housekeeping[.d]" },
        .kind = HK_CONF_PATH,
        .offset = offsetof (struct hk_conf, sysconfdir),
    },
    {
        .option = { "hkd",
                    "run-dir",
                    "path",
                    "/run/flux-hk",
                    "Where hkd keeps a file for each run" },
        .kind = HK_CONF_PATH,
        .offset = offsetof (struct hk_conf, run_dir),
    },
    {
        .option = { "hkd",
                    "flux-uri",
                    "uri",
                    "local:///run/flux/local",
                    "FLUX_URI of the scripts" },
        .kind = HK_CONF_URI,
        .offset = offsetof (struct hk_conf, flux_uri),
    },
    {
        .option = { "hkd",
                    "flux-owner",
                    "user",
                    "flux",
                    "FLUX_OWNER_USERID of the scripts; 0 where there is no "
                    "user flux" },
        .kind = HK_CONF_OWNER,
        .offset = offsetof (struct hk_conf, flux_owner),
    },
    /* [coordinator] */
    {
        .option = { "coordinator",
                    "state-dir",
                    "path",
                    "/var/lib/flux-hk",
                    "Where the coordinator keeps its store and its key; a "
                    "local disk" },
        .kind = HK_CONF_PATH,
        .offset = offsetof (struct hk_conf, state_dir),
    },
    {
        .option = { "coordinator",
                    "admin-uids",
                    "users",
                    "",
                    "Users who may act, beside root and the coordinator's "
                    "own" },
        .kind = HK_CONF_USERS,
        .offset = offsetof (struct hk_conf, admin_uids),
        .count_offset = offsetof (struct hk_conf, admin_uids_count),
        .may_be_empty = true,
    },
    {
        .option = { "coordinator",
                    "manager-uid",
                    "user",
                    "0",
                    "User a job manager's bridge runs as, beside root and "
                    "the coordinator's own" },
        .kind = HK_CONF_USER,
        .offset = offsetof (struct hk_conf, manager_uid),
    },
    {
        .option = { "coordinator",
                    "guest-access",
                    "bool",
                    "yes",
                    "May every user look at the state of the nodes" },
        .kind = HK_CONF_BOOL,
        .offset = offsetof (struct hk_conf, guest_access),
    },
    {
        .option = { "coordinator",
                    "history-keep",
                    "duration",
                    "90d",
                    "How long ended runs are remembered" },
        .kind = HK_CONF_DURATION,
        .offset = offsetof (struct hk_conf, history_keep_ms),
        .least = MINUTE,
        .most = YEARS_100,
        .unbounded = true,
    },
    {
        .option = { "coordinator",
                    "hosts",
                    "hosts",
                    "",
                    "Nodes where we act at all; empty: everywhere" },
        .kind = HK_CONF_HOSTS,
        .offset = offsetof (struct hk_conf, hosts),
        .may_be_empty = true,
    },
    /* [housekeeping] */
    {
        .option = { "housekeeping",
                    "release-after",
                    "duration|all",
                    "0s",
                    "Free finished nodes so long after the first one; 0s: "
                    "each at once; all: when the last is done" },
        .kind = HK_CONF_RELEASE,
        .scope = HK_CONF_POLICY,
        .offset = offsetof (struct hk_policy, release_after_ms),
        .most = 30 * DAY,
    },
    {
        .option = { "housekeeping",
                    "free-window",
                    "duration",
                    "50ms",
                    "At most one sched.free an allocation in this time" },
        .kind = HK_CONF_DURATION,
        .scope = HK_CONF_POLICY,
        .offset = offsetof (struct hk_policy, free_window_ms),
        .most = MINUTE,
    },
    {
        .option = { "housekeeping",
                    "timeout",
                    "duration",
                    "1h",
                    "A run that takes longer is ended" },
        .kind = HK_CONF_DURATION,
        .scope = HK_CONF_POLICY,
        .offset = offsetof (struct hk_policy, timeout_ms),
        .least = SECOND,
        .most = 30 * DAY,
        .unbounded = true,
    },
    {
        .option = { "housekeeping",
                    "kill-grace",
                    "duration",
                    "30s",
                    "Time between SIGTERM and SIGKILL" },
        .kind = HK_CONF_DURATION,
        .scope = HK_CONF_POLICY,
        .offset = offsetof (struct hk_policy, kill_grace_ms),
        .most = HOUR,
    },
    {
        .option = { "housekeeping",
                    "give-up",
                    "duration",
                    "5m",
                    "Time after SIGKILL until what is left is given up" },
        .kind = HK_CONF_DURATION,
        .scope = HK_CONF_POLICY,
        .offset = offsetof (struct hk_policy, give_up_ms),
        .most = DAY,
    },
    {
        .option = { "housekeeping",
                    "lost-after",
                    "duration",
                    "5m",
                    "A node of which nothing is heard so long is drained as "
                    "lost" },
        .kind = HK_CONF_DURATION,
        .scope = HK_CONF_POLICY,
        .offset = offsetof (struct hk_policy, lost_after_ms),
        .least = SECOND,
        .most = 30 * DAY,
        .unbounded = true,
    },
    {
        .option = { "housekeeping",
                    "on-failure",
                    "drain|hold|release",
                    "drain",
                    "What becomes of a node whose run failed" },
        .kind = HK_CONF_WORD,
        .scope = HK_CONF_POLICY,
        .offset = offsetof (struct hk_policy, on_failure),
    },
    {
        .option = { "housekeeping",
                    "on-reboot",
                    "rerun|drain",
                    "rerun",
                    "What becomes of a node that rebooted during its run" },
        .kind = HK_CONF_WORD,
        .scope = HK_CONF_POLICY,
        .offset = offsetof (struct hk_policy, on_reboot),
    },
    {
        .option = { "housekeeping",
                    "per-node",
                    "serial|parallel",
                    "serial",
                    "Runs of several jobs on one node: one after the other, "
                    "or at once" },
        .kind = HK_CONF_WORD,
        .scope = HK_CONF_POLICY,
        .offset = offsetof (struct hk_policy, per_node),
    },
    {
        .option = { "housekeeping",
                    "no-scripts",
                    "success|fail",
                    "success",
                    "What a run is on a node that has no scripts" },
        .kind = HK_CONF_WORD,
        .scope = HK_CONF_POLICY,
        .offset = offsetof (struct hk_policy, no_scripts),
    },
    {
        .option = { "housekeeping",
                    "exit-on-first-error",
                    "bool",
                    "no",
                    "Does a failing script keep the later ones from running" },
        .kind = HK_CONF_BOOL,
        .scope = HK_CONF_POLICY,
        .offset = offsetof (struct hk_policy, exit_on_first_error),
    },
    {
        .option = { "housekeeping",
                    "allow-userid-0",
                    "bool",
                    "no",
                    "Are scripts run after jobs of root" },
        .kind = HK_CONF_BOOL,
        .scope = HK_CONF_POLICY,
        .offset = offsetof (struct hk_policy, allow_userid_0),
    },
    /* [housekeeping.NAME] */
    {
        .option = { hk_conf_class_section,
                    "hosts",
                    "hosts",
                    "",
                    "Nodes of this class; each option of [housekeeping] may "
                    "follow" },
        .kind = HK_CONF_HOSTS,
        .scope = HK_CONF_CLASS,
        .offset = offsetof (struct hk_conf_class, hosts),
    },
};

enum { ROWS_COUNT = sizeof (hk_conf_rows) / sizeof (hk_conf_rows[0]) };
const int hk_conf_rows_count = ROWS_COUNT;

const char *hk_conf_class_name (const char *section)
{
    static const char prefix[] = "housekeeping.";

    if (strncmp (section, prefix, sizeof (prefix) - 1) != 0)
        return NULL;
    return section + sizeof (prefix) - 1;
}

bool hk_conf_section_exists (const char *section)
{
    for (int i = 0; i < ROWS_COUNT; i++) {
        if (!strcmp (hk_conf_rows[i].option.section, section))
            return true;
    }
    return false;
}

const struct hk_conf_row *hk_conf_find (const char *section,
                                        const char *name,
                                        bool *class)
{
    *class = hk_conf_class_name (section) != NULL;
    for (int i = 0; i < ROWS_COUNT; i++) {
        const struct hk_conf_row *row = &hk_conf_rows[i];

        if (strcmp (row->option.name, name) != 0)
            continue;
        if (*class ? row->scope != HK_CONF_WHOLE
                   : !strcmp (row->option.section, section))
            return row;
    }
    return NULL;
}

static struct hk_conf_option options[ROWS_COUNT];
static pthread_once_t options_once = PTHREAD_ONCE_INIT;

static void copy_options (void)
{
    for (int i = 0; i < ROWS_COUNT; i++)
        options[i] = hk_conf_rows[i].option;
}

int hk_conf_options (const struct hk_conf_option **table)
{
    pthread_once (&options_once, copy_options);
    *table = options;
    return ROWS_COUNT;
}

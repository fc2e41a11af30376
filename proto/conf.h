/* conf.h - configuration: one table drives parsing, hkctl config, the example
 * file and the check of the manual page */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HK_CONF_H
#define HK_CONF_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include "proto/error.h"
#include "proto/hostlist.h"

enum hk_on_failure {
    HK_ON_FAILURE_DRAIN,
    HK_ON_FAILURE_HOLD,
    HK_ON_FAILURE_RELEASE
};
enum hk_on_reboot { HK_ON_REBOOT_RERUN, HK_ON_REBOOT_DRAIN };
enum hk_per_node { HK_PER_NODE_SERIAL, HK_PER_NODE_PARALLEL };
enum hk_no_scripts { HK_NO_SCRIPTS_SUCCESS, HK_NO_SCRIPTS_FAIL };

#define HK_RELEASE_ALL (-1)

/* What [housekeeping] says; [housekeeping.NAME] sections with `hosts` override
 * single options of it for a class of nodes (the first class that names the
 * host, in order of the files, wins).
 */
struct hk_policy {
    int64_t release_after_ms; /* HK_RELEASE_ALL: when all are done */
    int64_t free_window_ms;
    int64_t timeout_ms; /* or HK_DURATION_INF */
    int64_t kill_grace_ms;
    int64_t give_up_ms;
    int64_t lost_after_ms; /* or HK_DURATION_INF */
    enum hk_on_failure on_failure;
    enum hk_on_reboot on_reboot;
    enum hk_per_node per_node;
    enum hk_no_scripts no_scripts;
    bool exit_on_first_error;
    bool allow_userid_0;
};

/* All durations in ms; strings owned by the conf, never NULL unless said. */
struct hk_conf {
    /* [link] */
    struct hk_hostlist *head;  /* the coordinator's names and addresses, in the
                                * order to try them; IPv6 with its brackets, so
                                * that "tcp://%s:%u" fits all */
    char *bind;                /* address to listen on, default "*"; ditto */
    uint16_t node_port;        /* 8765 */
    uint16_t client_port;      /* 8766 */
    uint16_t key_port;         /* 8767 */
    uid_t server_uid;          /* 0; a number or a name */
    char *munge_socket;        /* NULL: libmunge's own */
    int64_t heartbeat_ms;      /* 20s */
    int64_t reconcile_ms;      /* 60s */
    uint32_t node_connections; /* limit, default 20000 */
    uint32_t client_connections; /* limit, default 512 */
    /* [hkd] */
    char *host;       /* NULL: the machine's own name */
    char *libexecdir; /* /usr/libexec: $libexecdir/flux/housekeeping.d */
    char *sysconfdir; /* /etc: $sysconfdir/flux/system/housekeeping[.d] */
    char *run_dir;    /* /run/flux-hk */
    char *flux_uri; /* FLUX_URI for scripts, default local:///run/flux/local */
    uid_t flux_owner; /* FLUX_OWNER_USERID; default: uid of user flux, else 0 */
    /* [coordinator] */
    char *state_dir;   /* /var/lib/flux-hk */
    uid_t *admin_uids; /* owners besides 0 and the coordinator's uid */
    int admin_uids_count;
    uid_t manager_uid;         /* default 0 */
    bool guest_access;         /* yes */
    int64_t history_keep_ms;   /* 90d; or HK_DURATION_INF */
    struct hk_hostlist *hosts; /* where we act at all; NULL: everywhere */
    /* [housekeeping] and its classes */
    struct hk_policy policy;
    int classes_count;
    struct hk_conf_class *classes;
};

struct hk_conf_class {
    char *name;
    struct hk_hostlist *hosts;
    struct hk_policy policy; /* the general one with this class's changes */
    uint64_t own; /* which of them are its own, by row of the table */
};

/* Read the file and the drop-ins of `PATH.d` (*.conf in byte order); a missing
 * file or folder gives the defaults, an unreadable one an error.  The error
 * names file and line and what was expected.  With HK_CONF_TRUST every file
 * and each folder above it must be root's and writable by root alone.
 * The caller frees the result with hk_conf_destroy.
 */
enum { HK_CONF_TRUST = 1 };
struct hk_conf *hk_conf_load (const char *path,
                              int flags,
                              struct hk_error *err);
void hk_conf_destroy (struct hk_conf *conf); /* NULL is fine */
/* The default path, /etc/flux/hk.conf. */
extern const char *const hk_conf_path;

/* The policy for a host: a class's or the general one; borrowed. A host is
 * looked for by its name as it is, then by its short one.
 */
const struct hk_policy *hk_conf_policy (const struct hk_conf *conf,
                                        const char *host);
bool hk_conf_covers (const struct hk_conf *conf, const char *host);

/* Set one option from text, as the plugin does from TOML: same checks, same
 * texts (without file and line).
 */
int hk_conf_set (struct hk_conf *conf,
                 const char *section,
                 const char *name,
                 const char *value,
                 struct hk_error *err);
/* Do the options fit together? hk_conf_load has asked; whoever used hk_conf_set
 * asks again after the last one. -1 with EINVAL.
 */
int hk_conf_check (const struct hk_conf *conf, struct hk_error *err);

/* The table, for those who print or check it. */
struct hk_conf_option {
    const char *section;
    const char *name;
    const char
        *type; /* "duration", "bool", "host list", "drain|hold|release" ... */
    const char *preset; /* default as text */
    const char *help;   /* one line */
};
int hk_conf_options (const struct hk_conf_option **table); /* returns count */
/* Effective value of an option as text the caller frees, "" where nothing is
 * set; NULL if unknown (ENOENT). section may be one of [housekeeping.NAME].
 */
char *hk_conf_get (const struct hk_conf *conf,
                   const char *section,
                   const char *name);
/* Write the annotated example file that systemd/hk.conf is. */
void hk_conf_example (FILE *f);

#endif

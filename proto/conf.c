/* conf.c - the configuration of all programs: defaults, set, get */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/conf_impl.h"
#include "proto/conf_table.h"
#include "proto/duration.h"
#include "proto/limits.h"

const char *const hk_conf_path = "/etc/flux/hk.conf";

enum { CLASSES_LIMIT = 256, CLASS_NAME_LIMIT = 32 };

void hk_conf_destroy (struct hk_conf *conf)
{
    int saved_errno = errno;

    if (!conf)
        return;
    for (int i = 0; i < hk_conf_rows_count; i++) {
        if (hk_conf_rows[i].scope == HK_CONF_WHOLE)
            hk_conf_value_free (&hk_conf_rows[i], conf);
    }
    for (int i = 0; i < conf->classes_count; i++) {
        free (conf->classes[i].name);
        hk_hostlist_destroy (conf->classes[i].hosts);
    }
    free (conf->classes);
    free (conf);
    errno = saved_errno;
}

struct hk_conf *hk_conf_create (struct hk_error *err)
{
    struct hk_conf *conf = calloc (1, sizeof (*conf));

    if (!conf) {
        hk_error_errno (err, ENOMEM, "configuration");
        return NULL;
    }
    for (int i = 0; i < hk_conf_rows_count; i++) {
        const struct hk_conf_row *row = &hk_conf_rows[i];
        void *base = conf;

        if (row->scope == HK_CONF_CLASS)
            continue;
        if (row->scope == HK_CONF_POLICY)
            base = &conf->policy;
        if (hk_conf_value_parse (row, base, row->option.preset, err) < 0) {
            hk_error_prefix (err,
                             "default of [%s] %s",
                             row->option.section,
                             row->option.name);
            hk_conf_destroy (conf);
            return NULL;
        }
    }
    return conf;
}

static struct hk_conf_class *find_class (const struct hk_conf *conf,
                                         const char *name)
{
    for (int i = 0; i < conf->classes_count; i++) {
        if (!strcmp (conf->classes[i].name, name))
            return &conf->classes[i];
    }
    return NULL;
}

/* As a host's first label, so that it needs no quotes anywhere. */
static bool is_class_name (const char *name)
{
    return strlen (name) <= CLASS_NAME_LIMIT && !strchr (name, '.')
           && hk_host_name_valid (name);
}

static struct hk_conf_class *add_class (struct hk_conf *conf,
                                        const char *name,
                                        struct hk_error *err)
{
    struct hk_conf_class *classes;
    struct hk_conf_class *class;

    if (!is_class_name (name) || conf->classes_count == CLASSES_LIMIT) {
        hk_error_set (err,
                      EINVAL,
                      "expected [housekeeping.NAME], NAME of at most %d "
                      "letters, digits, '-' and '_', and at most %d of them",
                      CLASS_NAME_LIMIT,
                      CLASSES_LIMIT);
        return NULL;
    }
    classes = realloc (conf->classes,
                       ((size_t)conf->classes_count + 1) * sizeof (*classes));
    if (!classes)
        goto no_memory;
    conf->classes = classes;
    class = &classes[conf->classes_count];
    *class = (struct hk_conf_class){
        .name = strdup (name),
        .policy = conf->policy,
    };
    if (!class->name)
        goto no_memory;
    conf->classes_count++;
    return class;
no_memory:
    hk_error_errno (err, ENOMEM, "[housekeeping.%s]", name);
    return NULL;
}

int hk_conf_open_section (struct hk_conf *conf,
                          const char *section,
                          struct hk_error *err)
{
    const char *name = hk_conf_class_name (section);

    if (name)
        return find_class (conf, name) || add_class (conf, name, err) ? 0 : -1;
    if (!hk_conf_section_exists (section))
        return hk_error_set (err,
                             EINVAL,
                             "there is no section [%.60s]; expected [link], "
                             "[hkd], [coordinator], [housekeeping] or "
                             "[housekeeping.NAME]",
                             section);
    return 0;
}

static uint64_t bit_of (const struct hk_conf_row *row)
{
    return UINT64_C (1) << (row - hk_conf_rows);
}

static int set_class (struct hk_conf_class *class,
                      const struct hk_conf_row *row,
                      const char *value,
                      struct hk_error *err)
{
    void *base = &class->policy;

    if (row->scope == HK_CONF_CLASS)
        base = class;
    if (hk_conf_value_parse (row, base, value, err) < 0)
        return -1;
    class->own |= bit_of (row);
    return 0;
}

/* A general option also changes the classes that have none of their own. */
static int set_general (struct hk_conf *conf,
                        const struct hk_conf_row *row,
                        const char *value,
                        struct hk_error *err)
{
    if (row->scope == HK_CONF_WHOLE)
        return hk_conf_value_parse (row, conf, value, err);
    if (hk_conf_value_parse (row, &conf->policy, value, err) < 0)
        return -1;
    for (int i = 0; i < conf->classes_count; i++) {
        struct hk_conf_class *class = &conf->classes[i];

        if (!(class->own & bit_of (row))
            && hk_conf_value_parse (row, &class->policy, value, err) < 0)
            return -1;
    }
    return 0;
}

int hk_conf_set (struct hk_conf *conf,
                 const char *section,
                 const char *name,
                 const char *value,
                 struct hk_error *err)
{
    bool class;
    const struct hk_conf_row *row;
    int rc;

    if (hk_conf_open_section (conf, section, err) < 0)
        return -1;
    row = hk_conf_find (section, name, &class);
    if (!row)
        return hk_error_set (
            err, EINVAL, "[%.60s] has no option %.60s", section, name);
    if (class)
        rc = set_class (
            find_class (conf, hk_conf_class_name (section)), row, value, err);
    else
        rc = set_general (conf, row, value, err);
    if (rc < 0)
        return hk_error_prefix (err, "[%s] %s", section, name);
    return 0;
}

char *hk_conf_get (const struct hk_conf *conf,
                   const char *section,
                   const char *name)
{
    bool is_class;
    const struct hk_conf_row *row = hk_conf_find (section, name, &is_class);
    const struct hk_conf_class *class = NULL;

    if (row && is_class)
        class = find_class (conf, hk_conf_class_name (section));
    if (!row || (row->scope == HK_CONF_CLASS && !class)
        || (is_class && !class)) {
        errno = ENOENT;
        return NULL;
    }
    if (row->scope == HK_CONF_WHOLE)
        return hk_conf_value_print (row, conf);
    if (row->scope == HK_CONF_CLASS)
        return hk_conf_value_print (row, class);
    return hk_conf_value_print (row, class ? &class->policy : &conf->policy);
}

static int check_policy (const struct hk_conf *conf,
                         const struct hk_policy *policy,
                         const char *section,
                         struct hk_error *err)
{
    char lost_after[HK_DURATION_TEXT_BYTES];
    char heartbeat[HK_DURATION_TEXT_BYTES];

    if (policy->lost_after_ms < 2 * conf->heartbeat_ms)
        return hk_error_set (
            err,
            EINVAL,
            "[%s] lost-after: expected twice the heartbeat "
            "of [link] (%s) at least, got %s",
            section,
            hk_duration_encode (conf->heartbeat_ms, heartbeat),
            hk_duration_encode (policy->lost_after_ms, lost_after));
    return 0;
}

int hk_conf_check (const struct hk_conf *conf, struct hk_error *err)
{
    char section[64];

    if (conf->node_port == conf->client_port
        || conf->node_port == conf->key_port
        || conf->client_port == conf->key_port)
        return hk_error_set (err,
                             EINVAL,
                             "[link] node-port, client-port and key-port: "
                             "expected three ports, got one twice");
    if (check_policy (conf, &conf->policy, "housekeeping", err) < 0)
        return -1;
    for (int i = 0; i < conf->classes_count; i++) {
        const struct hk_conf_class *class = &conf->classes[i];

        snprintf (section, sizeof (section), "housekeeping.%s", class->name);
        if (!class->hosts)
            return hk_error_set (err,
                                 EINVAL,
                                 "[%s] hosts: expected a host list, got none",
                                 section);
        if (check_policy (conf, &class->policy, section, err) < 0)
            return -1;
    }
    return 0;
}

static bool list_has (const struct hk_hostlist *hosts, const char *host)
{
    char name[HK_HOST_NAME_BYTES];

    if (hk_hostlist_find (hosts, host) >= 0)
        return true;
    hk_host_name_short (host, name);
    return hk_hostlist_find (hosts, name) >= 0;
}

const struct hk_policy *hk_conf_policy (const struct hk_conf *conf,
                                        const char *host)
{
    for (int i = 0; i < conf->classes_count; i++) {
        if (conf->classes[i].hosts && list_has (conf->classes[i].hosts, host))
            return &conf->classes[i].policy;
    }
    return &conf->policy;
}

bool hk_conf_covers (const struct hk_conf *conf, const char *host)
{
    return !conf->hosts || list_has (conf->hosts, host);
}

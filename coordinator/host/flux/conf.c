/* conf.c - options of the plugin's conf table over those of hk.conf */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "coordinator/host/flux/flux.h"

/* conf = { release-after = "5m", coordinator = { state-dir = "/x" } }: an
 * option by its name alone where one section has it, else in a table that is
 * named as the section.
 */
enum { VALUE_BYTES = 1024 };

static const char *section_of (const char *name, int *found)
{
    static const char *const ours[] = { "link", "coordinator", "housekeeping" };
    const struct hk_conf_option *table;
    int n = hk_conf_options (&table);
    const char *section = NULL;

    *found = 0;
    for (int i = 0; i < n; i++)
        for (size_t k = 0; k < sizeof (ours) / sizeof (ours[0]); k++)
            if (!strcmp (table[i].section, ours[k])
                && !strcmp (table[i].name, name)) {
                section = ours[k];
                ++*found;
            }
    return section;
}

static int join (const json_t *list, char *text, size_t size)
{
    const json_t *value;
    size_t i, len = 0;

    json_array_foreach ((json_t *)list, i, value)
    {
        int n;
        if (json_is_string (value))
            n = snprintf (text + len,
                          size - len,
                          "%s%s",
                          i ? " " : "",
                          json_string_value (value));
        else if (json_is_integer (value))
            n = snprintf (text + len,
                          size - len,
                          "%s%" JSON_INTEGER_FORMAT,
                          i ? " " : "",
                          json_integer_value (value));
        else
            return -1;
        if (n < 0 || (size_t)n >= size - len)
            return -1;
        len += (size_t)n;
    }
    return 0;
}

static int value_text (const json_t *value, char *text, size_t size)
{
    int n;

    text[0] = '\0';
    if (json_is_array (value))
        return join (value, text, size);
    if (json_is_string (value))
        n = snprintf (text, size, "%s", json_string_value (value));
    else if (json_is_integer (value))
        n = snprintf (
            text, size, "%" JSON_INTEGER_FORMAT, json_integer_value (value));
    else if (json_is_real (value))
        n = snprintf (text, size, "%.15g", json_real_value (value));
    else if (json_is_boolean (value))
        n = snprintf (text, size, "%s", json_is_true (value) ? "yes" : "no");
    else
        return -1;
    return n >= 0 && (size_t)n < size ? 0 : -1;
}

static int set (struct hk_conf *conf,
                const char *section,
                const char *name,
                const json_t *value,
                struct hk_error *err)
{
    char text[VALUE_BYTES];

    if (value_text (value, text, sizeof (text)) < 0)
        return hk_error_set (err,
                             EINVAL,
                             "conf.%s.%s: expected a string, a number, a "
                             "boolean or a list",
                             section,
                             name);
    if (hk_conf_set (conf, section, name, text, err) < 0)
        return hk_error_prefix (err, "conf"); /* it names the option */
    return 0;
}

static int apply (struct hk_conf *conf, const json_t *o, struct hk_error *err)
{
    const char *key, *name;
    json_t *value, *inner;

    json_object_foreach ((json_t *)o, key, value)
    {
        int found;
        const char *section = section_of (key, &found);
        if (!strcmp (key, "config-file"))
            continue;
        if (json_is_object (value)) {
            json_object_foreach (value, name, inner)
            {
                if (set (conf, key, name, inner, err) < 0)
                    return -1;
            }
        } else if (found != 1)
            return hk_error_set (
                err,
                EINVAL,
                found ? "conf.%s: several sections have it: expected a table "
                        "{ SECTION = { %s = .. } }"
                      : "conf.%s: unknown option",
                key,
                key);
        else if (set (conf, section, key, value, err) < 0)
            return -1;
    }
    return 0;
}

int hkc_flux_conf (const json_t *o, struct hk_conf **out, struct hk_error *err)
{
    const char *path = hk_conf_path;
    struct hk_conf *conf;

    if (o && !json_is_object (o))
        return hk_error_set (err, EINVAL, "conf: expected a table");
    if (o && json_object_get (o, "config-file")
        && !(path = json_string_value (json_object_get (o, "config-file"))))
        return hk_error_set (err, EINVAL, "conf.config-file: expected a path");
    if (!(conf = hk_conf_load (path, HK_CONF_TRUST, err)))
        return -1;
    if ((o && apply (conf, o, err) < 0) || hk_conf_check (conf, err) < 0) {
        int saved = errno;
        hk_conf_destroy (conf);
        errno = saved;
        return -1;
    }
    *out = conf;
    return 0;
}

static const char *base (const char *path)
{
    const char *slash = strrchr (path, '/');

    return slash ? slash + 1 : path;
}

/* Our entry of [job-manager.plugins]; NULL: we are not in it. */
static const json_t *entry_of (struct hkc_flux *x, const json_t *config)
{
    const char *ours = flux_plugin_get_path (x->p);
    json_t *plugins = NULL, *entry;
    size_t i;

    json_unpack (
        (json_t *)config, "{s?{s?o}}", "job-manager", "plugins", &plugins);
    json_array_foreach (plugins, i, entry)
    {
        const char *load = NULL;
        json_unpack (entry, "{s:s}", "load", &load);
        if (load && ours && !strcmp (base (load), base (ours)))
            return entry;
    }
    return NULL;
}

int hkc_flux_reconf (struct hkc_flux *x,
                     const json_t *config,
                     struct hk_error *err)
{
    const json_t *entry = entry_of (x, config);
    json_t *conf = entry ? json_object_get (entry, "conf") : NULL;
    json_t *builtin = NULL;
    struct hk_conf *parsed = NULL;

    if (entry) {
        if (hkc_flux_conf (conf, &parsed, err) < 0)
            return -1;
        json_decref (x->conf);
        x->conf = json_incref (conf);
    } else if (hkc_flux_conf (x->conf, &parsed, err) < 0)
        return -1;
    json_unpack (
        (json_t *)config, "{s?{s?o}}", "job-manager", "housekeeping", &builtin);
    if (builtin && !x->builtin_said)
        flux_log (x->h,
                  LOG_WARNING,
                  "hk: [job-manager.housekeeping] is configured too: this "
                  "plugin acts, the built-in does not, and takes over if the "
                  "plugin is taken out");
    x->builtin_said = builtin != NULL;
    if (x->engine)
        hkc_engine_reload (x->engine, parsed);
    else {
        hk_conf_destroy (x->next_conf);
        x->next_conf = parsed;
    }
    return 0;
}

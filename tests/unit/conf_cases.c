/* conf_cases.c - configurations against what is expected of them */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "proto/text.h"
#include "tests/unit/cases.h"
#include "tests/unit/conf_cases.h"

struct hk_conf *conf_load (const char *path, int flags)
{
    struct hk_error err = { "" };
    struct hk_conf *conf = hk_conf_load (path, flags, &err);

    if (!conf)
        fail_msg ("%s: %s", path, err.text);
    return conf;
}

struct hk_conf *conf_defaults (void)
{
    return conf_load ("/nonexistent/hk.conf", 0);
}

void conf_assert_value (const struct hk_conf *conf,
                        const char *section,
                        const char *name,
                        const char *want)
{
    char *value = hk_conf_get (conf, section, name);

    if (!value || strcmp (value, want) != 0)
        fail_msg ("[%s] %s is '%s', expected '%s'",
                  section,
                  name,
                  value ? value : "NULL",
                  want);
    free (value);
}

/* The options that are not as `base` has them, a line each. */
static void put_changes (struct hk_text *text,
                         const struct hk_conf *conf,
                         const struct hk_conf *base,
                         const char *section,
                         const char *base_section)
{
    const struct hk_conf_option *options;
    int count = hk_conf_options (&options);

    for (int i = 0; i < count; i++) {
        char *value;
        char *preset;

        if (strcmp (options[i].section, base_section) != 0)
            continue;
        value = hk_conf_get (conf, section, options[i].name);
        preset = hk_conf_get (base, base_section, options[i].name);
        assert_non_null (value);
        assert_non_null (preset);
        if (strcmp (value, preset) != 0) {
            hk_text_put (text, "[");
            hk_text_put (text, section);
            hk_text_put (text, "] ");
            hk_text_put (text, options[i].name);
            hk_text_put (text, " = ");
            hk_text_put (text, value);
            hk_text_put (text, "\n");
        }
        free (value);
        free (preset);
    }
}

static void put_class (struct hk_text *text,
                       const struct hk_conf *conf,
                       const struct hk_conf_class *class)
{
    char section[128];
    char *hosts;

    snprintf (section, sizeof (section), "housekeeping.%s", class->name);
    hosts = hk_conf_get (conf, section, "hosts");
    hk_text_put (text, "[");
    hk_text_put (text, section);
    hk_text_put (text, "] hosts = ");
    hk_text_put (text, hosts);
    hk_text_put (text, "\n");
    free (hosts);
    put_changes (text, conf, conf, section, "housekeeping");
}

void conf_assert_changes (const char *path, const char *text, const char *want)
{
    static const char *const sections[] = {
        "link", "hkd", "coordinator", "housekeeping"
    };
    struct hk_conf *conf = conf_load (path, 0);
    struct hk_conf *base = conf_defaults ();
    struct hk_text changes = { 0 };
    char *got;

    (void)text;
    for (int i = 0; i < 4; i++)
        put_changes (&changes, conf, base, sections[i], sections[i]);
    for (int i = 0; i < conf->classes_count; i++)
        put_class (&changes, conf, &conf->classes[i]);
    got = hk_text_take (&changes);
    if (got[0])
        got[strlen (got) - 1] = '\0';
    case_equal (path, got, want);
    free (got);
    hk_conf_destroy (conf);
    hk_conf_destroy (base);
}

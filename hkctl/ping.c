/* ping.c - ping and config: is it there and well, and what is in effect */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "hkctl/hkctl.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/clock.h"
#include "proto/escape.h"
#include "proto/hostlist.h"

/* More makes credentials fail sooner or later. */
static const double skew_warning_s = 60;

static json_int_t integer (const json_t *result, const char *key)
{
    return json_integer_value (json_object_get (result, key));
}

static void show_ping (const json_t *result, double skew, double took)
{
    char text[1024];

    ctl_cell_text (result, "software", text, sizeof (text));
    printf ("coordinator: flux-hk %s, protocol %" JSON_INTEGER_FORMAT "\n",
            text,
            integer (result, "version"));
    ctl_cell_text (result, "role", text, sizeof (text));
    printf ("you: uid %" JSON_INTEGER_FORMAT ", %s\n",
            integer (result, "uid"),
            text);
    printf ("clocks: apart by %.3f s%s; answer after %.1f ms\n",
            skew,
            fabs (skew) > skew_warning_s ? ", too much for credentials" : "",
            took * 1e3);
    printf ("nodes: %" JSON_INTEGER_FORMAT
            " connected; held: %" JSON_INTEGER_FORMAT "\n",
            integer (result, "nodes"),
            integer (result, "held"));
    ctl_cell_text (result, "state", text, sizeof (text));
    printf ("state: %s", text);
    ctl_cell_text (result, "reason", text, sizeof (text));
    printf ("%s%s\n", text[0] ? ": " : "", text);
}

int ctl_ping (struct ctl *ctl)
{
    struct hk_msg msg = { .type = HK_MSG_PING };
    struct ctl_answer answer = { .arg = NULL };
    int status = ctl_connect (ctl, "owner");
    double before;
    double after;
    double skew;
    const char *state;

    if (status != CTL_DONE)
        return status;
    before = hk_wall ();
    status = ctl_ask (ctl, &msg, &answer);
    after = hk_wall ();
    if (status != CTL_DONE)
        return status;
    skew = json_number_value (json_object_get (answer.result, "now"))
           - (before + after) / 2;
    state = json_string_value (json_object_get (answer.result, "state"));
    /* ranks that wait for a manager are shown; that is no fault of ours */
    if (state && strcmp (state, "ok") != 0 && strcmp (state, "no-manager") != 0)
        status = CTL_NO;
    if (ctl->args.json) {
        json_object_set_new (answer.result, "skew", json_real (skew));
        json_object_set_new (answer.result, "took", json_real (after - before));
        if (ctl_print_json (answer.result) < 0)
            status = CTL_NO;
    } else {
        show_ping (answer.result, skew, after - before);
        if (ctl_flush () != CTL_DONE)
            status = CTL_NO;
    }
    json_decref (answer.result);
    return status;
}

static void show_option (const char *section,
                         const char *name,
                         const char *value,
                         const char **last,
                         json_t *all)
{
    json_t *options;

    if (all) {
        options = json_object_get (all, section);
        if (!options) {
            options = json_object ();
            json_object_set_new (all, section, options);
        }
        json_object_set_new (options, name, json_string (value));
        return;
    }
    if (!*last || strcmp (*last, section) != 0)
        printf ("%s[%s]\n", *last ? "\n" : "", section);
    *last = section;
    printf ("%s%s%s\n", name, *value ? " = " : " =", value);
}

/* What a class changes, and for whom. */
static void show_class (const struct hk_conf *conf,
                        const struct hk_conf_class *class,
                        const char **last,
                        char *section,
                        size_t size,
                        json_t *all)
{
    const struct hk_conf_option *options;
    int count = hk_conf_options (&options);
    char *hosts = hk_hostlist_encode (class->hosts);

    snprintf (section, size, "housekeeping.%s", class->name);
    show_option (section, "hosts", hosts ? hosts : "", last, all);
    free (hosts);
    for (int i = 0; i < count; i++) {
        char *general;
        char *own;

        if (strcmp (options[i].section, "housekeeping") != 0)
            continue;
        general = hk_conf_get (conf, options[i].section, options[i].name);
        own = hk_conf_get (conf, section, options[i].name);
        if (general && own && strcmp (general, own) != 0)
            show_option (section, options[i].name, own, last, all);
        free (general);
        free (own);
    }
}

int ctl_config (struct ctl *ctl)
{
    const struct hk_conf_option *options;
    int count = hk_conf_options (&options);
    json_t *all = ctl->args.json ? json_object () : NULL;
    const char *last = NULL;
    int status = CTL_DONE;

    if (ctl->args.example) {
        json_decref (all);
        hk_conf_example (stdout);
        return ctl_flush ();
    }
    for (int i = 0; i < count; i++) {
        char *value = hk_conf_get (
            ctl->conf, options[i].section, options[i].name);

        show_option (options[i].section,
                     options[i].name,
                     value ? value : "",
                     &last,
                     all);
        free (value);
    }
    for (int i = 0; i < ctl->conf->classes_count; i++) {
        char section[300];

        show_class (ctl->conf,
                    &ctl->conf->classes[i],
                    &last,
                    section,
                    sizeof (section),
                    all);
        last = "";
    }
    if (all && ctl_print_json (all) < 0)
        status = CTL_NO;
    json_decref (all);
    return status == CTL_DONE ? ctl_flush () : status;
}

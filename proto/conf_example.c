/* conf_example.c - the annotated example file, from the option table */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <stdio.h>
#include <string.h>

#include "proto/conf_table.h"

static const char head[] =
    "# hk.conf - configuration of flux-hk: hkd, hk-coordinator and hkctl\n"
    "#\n"
    "# Goes to /etc/flux/hk.conf, the same on every node. Files of\n"
    "# /etc/flux/hk.conf.d/*.conf are read after it; what comes later wins.\n"
    "# Each option stands here with its default. See hk.conf(5).\n";

static const char classes[] =
    "\n"
    "# Classes of nodes: a name of your choice, the nodes, and the options of\n"
    "# [housekeeping] that differ there. The first class that names a node counts.\n"
    "#\n"
    "# [housekeeping.gpu]\n"
    "# hosts = gpu[1-64]\n"
    "# timeout = 2h\n";

/* Wrapped, each line after "# ". */
static void put_comment (FILE *f, const char *text)
{
    enum { WIDTH = 76 };

    while (*text) {
        size_t len = strlen (text);

        if (len > WIDTH) {
            len = WIDTH;
            while (text[len] != ' ')
                len--;
        }
        fprintf (f, "# %.*s\n", (int)len, text);
        text += len;
        text += strspn (text, " ");
    }
}

static void put_option (FILE *f, const struct hk_conf_row *row)
{
    const struct hk_conf_option *option = &row->option;
    char expected[HK_ERROR_BYTES];
    char text[2 * HK_ERROR_BYTES];

    snprintf (text,
              sizeof (text),
              "%s (%s).",
              option->help,
              hk_conf_value_expected (row, expected));
    fputs ("\n", f);
    put_comment (f, text);
    fprintf (f,
             "#%s =%s%s\n",
             option->name,
             option->preset[0] ? " " : "",
             option->preset);
}

void hk_conf_example (FILE *f)
{
    const char *section = "";

    fputs (head, f);
    for (int i = 0; i < hk_conf_rows_count; i++) {
        const struct hk_conf_row *row = &hk_conf_rows[i];

        if (row->scope == HK_CONF_CLASS)
            continue;
        if (strcmp (section, row->option.section) != 0) {
            section = row->option.section;
            fprintf (f, "\n[%s]\n", section);
        }
        put_option (f, row);
    }
    fputs (classes, f);
}

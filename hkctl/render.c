/* render.c - rows as a table for people or as JSON for programs */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "hkctl/hkctl.h"

#include <errno.h>
#include <langinfo.h>
#include <libsmartcols.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "proto/duration.h"
#include "proto/escape.h"
#include "proto/jobid.h"

enum { CELL_BYTES = 1 << 16, COLUMNS_MAX = 16 };

int ctl_flush (void)
{
    if (fflush (stdout) == 0 && !ferror (stdout))
        return CTL_DONE;
    fprintf (stderr, "hkctl: standard output: %s\n", strerror (errno));
    return CTL_NO;
}

int ctl_print_json (const json_t *value)
{
    if (json_dumpf (value, stdout, JSON_COMPACT | JSON_ENCODE_ANY) < 0
        || putchar ('\n') == EOF || fflush (stdout) != 0)
        return -1;
    return 0;
}

static int render_json (const json_t *rows)
{
    json_t *all = json_pack ("{s:O}", "rows", rows);
    int rc = all ? ctl_print_json (all) : -1;

    json_decref (all);
    if (rc < 0)
        fprintf (stderr, "hkctl: standard output: %s\n", strerror (errno));
    return rc < 0 ? CTL_NO : CTL_DONE;
}

/* Whether a column that may be left out has something to say. */
static bool is_wanted (const struct ctl_column *column,
                       const json_t *rows,
                       char *buf)
{
    size_t i;
    json_t *row;

    if (!column->optional)
        return true;
    json_array_foreach (rows, i, row)
    {
        column->cell (row, buf, CELL_BYTES);
        if (buf[0])
            return true;
    }
    return false;
}

static int fill (struct libscols_table *table,
                 const struct ctl_column *columns,
                 const bool *wanted,
                 const json_t *rows,
                 char *buf)
{
    size_t i;
    json_t *row;

    json_array_foreach (rows, i, row)
    {
        struct libscols_line *line = scols_table_new_line (table, NULL);
        size_t at = 0;

        if (!line)
            return -1;
        for (size_t c = 0; columns[c].name; c++) {
            if (!wanted[c])
                continue;
            columns[c].cell (row, buf, CELL_BYTES);
            if (scols_line_set_data (line, at++, buf[0] ? buf : "-") < 0)
                return -1;
        }
    }
    return 0;
}

int ctl_render (const struct ctl *ctl,
                const struct ctl_column *columns,
                const json_t *rows)
{
    struct libscols_table *table;
    bool wanted[COLUMNS_MAX] = { false };
    char *buf;
    int rc = -1;

    if (ctl->args.json)
        return render_json (rows);
    table = scols_new_table ();
    buf = malloc (CELL_BYTES);
    if (!table || !buf)
        goto out;
    scols_table_enable_noheadings (table, ctl->args.no_header);
    /* each cell is escaped by its maker: the library would do it once more,
     * and lets the bidi controls through */
    scols_table_enable_noencoding (table, 1);
    for (size_t c = 0; columns[c].name; c++) {
        int flags = (columns[c].right ? SCOLS_FL_RIGHT : 0)
                    | (columns[c].wrap ? SCOLS_FL_WRAP : 0);

        wanted[c] = is_wanted (&columns[c], rows, buf);
        if (wanted[c]
            && !scols_table_new_column (table, columns[c].name, 0, flags))
            goto out;
    }
    if (fill (table, columns, wanted, rows, buf) == 0)
        rc = scols_print_table (table);
out:
    if (rc < 0)
        fprintf (stderr, "hkctl: out of memory\n");
    free (buf);
    scols_unref_table (table);
    return rc < 0 ? CTL_NO : ctl_flush ();
}

static bool is_utf8 (void)
{
    return strcmp (nl_langinfo (CODESET), "UTF-8") == 0;
}

/* A terminal of another encoding may take bytes of UTF-8 for C1 controls:
 * there each byte is looked at alone.
 */
static void put_text (const char *text, char *buf, size_t size)
{
    size_t used = 0;

    if (is_utf8 ()) {
        hk_escape (text, SIZE_MAX, buf, size);
        return;
    }
    buf[0] = '\0';
    for (size_t put = 1; *text && put > 0; text++, used += put)
        put = strlen (hk_escape (text, 1, buf + used, size - used));
}

void ctl_cell_text (const json_t *row, const char *key, char *buf, size_t size)
{
    const char *text = json_string_value (json_object_get (row, key));

    put_text (text ? text : "", buf, size);
}

void ctl_cell_int (const json_t *row, const char *key, char *buf, size_t size)
{
    const json_t *value = json_object_get (row, key);

    buf[0] = '\0';
    if (json_is_integer (value))
        snprintf (
            buf, size, "%" JSON_INTEGER_FORMAT, json_integer_value (value));
}

void ctl_cell_jobid (const json_t *row, char *buf, size_t size)
{
    json_int_t id = json_integer_value (json_object_get (row, "jobid"));
    char text[HK_JOBID_TEXT_BYTES];

    buf[0] = '\0';
    if (id)
        snprintf (
            buf,
            size,
            "%s",
            hk_jobid_encode ((uint64_t)id,
                             is_utf8 () ? HK_JOBID_F58 : HK_JOBID_F58PLAIN,
                             text));
}

void ctl_cell_user (const json_t *row, char *buf, size_t size)
{
    const json_t *value = json_object_get (row, "userid");
    const struct passwd *pw;

    buf[0] = '\0';
    if (!json_is_integer (value))
        return;
    pw = getpwuid ((uid_t)json_integer_value (value));
    if (pw)
        put_text (pw->pw_name, buf, size);
    else
        ctl_cell_int (row, "userid", buf, size);
}

void ctl_cell_age (const json_t *row, const char *key, char *buf, size_t size)
{
    double since = json_number_value (json_object_get (row, key));
    double age = (double)time (NULL) - since;
    char text[HK_DURATION_TEXT_BYTES];

    buf[0] = '\0';
    if (since <= 0)
        return;
    /* whole seconds; a clock that is ahead makes no negative age */
    age = age < 0 ? 0 : age;
    snprintf (buf, size, "%s", hk_duration_pretty ((int64_t)age * 1000, text));
}

void ctl_cell_time (const json_t *row, const char *key, char *buf, size_t size)
{
    double value = json_number_value (json_object_get (row, key));
    time_t t = (time_t)value;
    struct tm tm;

    buf[0] = '\0';
    if (value > 0 && localtime_r (&t, &tm)
        && !strftime (buf, size, "%F %T", &tm))
        buf[0] = '\0';
}

/* list.c - list, nodes and history: rows that the coordinator tells */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "hkctl/hkctl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/duration.h"

enum { HISTORY_ROWS = 100 };

#define TEXT_CELL(name, key)                                     \
    static void name (const json_t *row, char *buf, size_t size) \
    {                                                            \
        ctl_cell_text (row, key, buf, size);                     \
    }
#define INT_CELL(name, key)                                      \
    static void name (const json_t *row, char *buf, size_t size) \
    {                                                            \
        ctl_cell_int (row, key, buf, size);                      \
    }

TEXT_CELL (cell_host, "host")
TEXT_CELL (cell_hosts, "hosts")
TEXT_CELL (cell_script, "script")
TEXT_CELL (cell_marks, "marks")
TEXT_CELL (cell_outcome, "outcome")
TEXT_CELL (cell_phase, "phase")
TEXT_CELL (cell_reason, "reason")
TEXT_CELL (cell_act, "act")
TEXT_CELL (cell_drain, "drain")
INT_CELL (cell_nnodes, "nnodes")
INT_CELL (cell_attempt, "attempt")

static void cell_since (const json_t *row, char *buf, size_t size)
{
    ctl_cell_age (row, "since", buf, size);
}

static void cell_seen (const json_t *row, char *buf, size_t size)
{
    ctl_cell_age (row, "last_seen", buf, size);
}

static void cell_link (const json_t *row, char *buf, size_t size)
{
    snprintf (buf,
              size,
              "%s",
              json_is_true (json_object_get (row, "connected")) ? "up"
                                                                : "down");
}

static void cell_start (const json_t *row, char *buf, size_t size)
{
    ctl_cell_time (row, "t_start", buf, size);
}

static void cell_took (const json_t *row, char *buf, size_t size)
{
    double start = json_number_value (json_object_get (row, "t_start"));
    double end = json_number_value (json_object_get (row, "t_end"));
    char text[HK_DURATION_TEXT_BYTES];

    buf[0] = '\0';
    if (start > 0 && end >= start)
        snprintf (buf,
                  size,
                  "%s",
                  hk_duration_pretty ((int64_t)((end - start) * 1000), text));
}

/* The script that made it end: the row's own, or the first one that failed. */
static void cell_culprit (const json_t *row, char *buf, size_t size)
{
    const json_t *scripts = json_object_get (row, "scripts");
    size_t i;
    json_t *script;

    ctl_cell_text (row, "script", buf, size);
    json_array_foreach (scripts, i, script)
    {
        if (buf[0])
            return;
        if (json_integer_value (json_object_get (script, "code")) != 0
            || json_integer_value (json_object_get (script, "signal")) != 0)
            ctl_cell_text (script, "name", buf, size);
    }
}

static const struct ctl_column list_columns[] = {
    { .name = "JOBID", .cell = ctl_cell_jobid },
    { .name = "USER", .cell = ctl_cell_user },
    { .name = "PHASE", .cell = cell_phase },
    { .name = "NNODES", .right = true, .cell = cell_nnodes },
    { .name = "AGE", .right = true, .cell = cell_since },
    { .name = "SCRIPT", .cell = cell_script },
    { .name = "NODELIST", .wrap = true, .cell = cell_hosts },
    { .name = "MARKS", .optional = true, .cell = cell_marks },
    { .name = "REASON", .optional = true, .wrap = true, .cell = cell_reason },
    { .name = "ACT", .optional = true, .wrap = true, .cell = cell_act },
    { .name = NULL },
};

static const struct ctl_column nodes_columns[] = {
    { .name = "HOST", .cell = cell_host },
    { .name = "LINK", .cell = cell_link },
    { .name = "SEEN", .right = true, .cell = cell_seen },
    { .name = "JOBID", .cell = ctl_cell_jobid },
    { .name = "USER", .cell = ctl_cell_user },
    { .name = "PHASE", .cell = cell_phase },
    { .name = "TRY", .right = true, .cell = cell_attempt },
    { .name = "AGE", .right = true, .cell = cell_since },
    { .name = "SCRIPT", .cell = cell_script },
    { .name = "OUTCOME", .optional = true, .cell = cell_outcome },
    { .name = "MARKS", .optional = true, .cell = cell_marks },
    { .name = "DRAIN", .optional = true, .wrap = true, .cell = cell_drain },
    { .name = "REASON", .optional = true, .wrap = true, .cell = cell_reason },
    { .name = "ACT", .optional = true, .wrap = true, .cell = cell_act },
    { .name = NULL },
};

static const struct ctl_column history_columns[] = {
    { .name = "JOBID", .cell = ctl_cell_jobid },
    { .name = "USER", .cell = ctl_cell_user },
    { .name = "HOST", .cell = cell_host },
    { .name = "TRY", .right = true, .cell = cell_attempt },
    { .name = "OUTCOME", .cell = cell_outcome },
    { .name = "START", .cell = cell_start },
    { .name = "TOOK", .right = true, .cell = cell_took },
    { .name = "SCRIPT", .optional = true, .cell = cell_culprit },
    { .name = "REASON", .optional = true, .wrap = true, .cell = cell_reason },
    { .name = NULL },
};

static int collect (void *arg, json_t *rows)
{
    return json_array_extend (arg, rows) < 0 ? CTL_NO : CTL_DONE;
}

/* All rows of one question, or of one page of them. */
static int ask_rows (struct ctl *ctl,
                     enum hk_msg_type type,
                     uint32_t limit,
                     const char *after,
                     json_t *rows,
                     json_t **result)
{
    struct ctl_answer answer = { .rows = collect, .arg = rows };
    struct hk_msg msg = { .type = type };
    char *hosts = ctl_hosts_text (ctl);
    int status;

    msg.query.jobid = ctl->args.jobid;
    msg.query.hosts = hosts;
    msg.query.limit = limit;
    msg.query.after = after;
    status = ctl_ask (ctl, &msg, &answer);
    free (hosts);
    *result = answer.result;
    return status;
}

/* The rows as they are asked for; those of a job or of hosts where there are
 * none are a no, as of grep.  All of nothing is nothing, and no fault.
 */
static int show_rows (const struct ctl *ctl,
                      const struct ctl_column *columns,
                      const json_t *rows)
{
    int status = ctl_render (ctl, columns, rows);

    if (status == CTL_DONE && (ctl->args.has_jobid || ctl->args.hosts)
        && json_array_size (rows) == 0)
        return CTL_NO;
    return status;
}

static int show (struct ctl *ctl,
                 enum hk_msg_type type,
                 const struct ctl_column *columns)
{
    json_t *rows = json_array ();
    json_t *result = NULL;
    int status = ctl_connect (ctl, "owner");

    if (status == CTL_DONE)
        status = ask_rows (ctl, type, 0, NULL, rows, &result);
    if (status == CTL_DONE)
        status = show_rows (ctl, columns, rows);
    json_decref (result);
    json_decref (rows);
    return status;
}

int ctl_list (struct ctl *ctl)
{
    return show (ctl, HK_MSG_LIST, list_columns);
}

static int by_host (const void *a, const void *b)
{
    const char *x = json_string_value (
        json_object_get (*(json_t *const *)a, "host"));
    const char *y = json_string_value (
        json_object_get (*(json_t *const *)b, "host"));

    return strverscmp (x ? x : "", y ? y : "");
}

/* The coordinator tells them as they come. */
static json_t *sorted (const json_t *rows)
{
    size_t count = json_array_size (rows);
    json_t **list = calloc (count ? count : 1, sizeof (json_t *));
    json_t *out = json_array ();

    if (!list || !out) {
        free (list);
        json_decref (out);
        return NULL;
    }
    for (size_t i = 0; i < count; i++)
        list[i] = json_array_get (rows, i);
    qsort (list, count, sizeof (json_t *), by_host);
    for (size_t i = 0; i < count; i++)
        json_array_append (out, list[i]);
    free (list);
    return out;
}

int ctl_nodes (struct ctl *ctl)
{
    json_t *rows = json_array ();
    json_t *in_order = NULL;
    json_t *result = NULL;
    int status = ctl_connect (ctl, "owner");

    if (status == CTL_DONE)
        status = ask_rows (ctl, HK_MSG_NODES, 0, NULL, rows, &result);
    if (status == CTL_DONE) {
        in_order = sorted (rows);
        status = show_rows (ctl, nodes_columns, in_order ? in_order : rows);
    }
    json_decref (in_order);
    json_decref (result);
    json_decref (rows);
    return status;
}

/* Page after page, since the coordinator gives no more than it can in one. */
int ctl_history (struct ctl *ctl)
{
    size_t limit = ctl->args.limit ? (size_t)ctl->args.limit : HISTORY_ROWS;
    json_t *rows = json_array ();
    char after[256] = "";
    int status = ctl_connect (ctl, "owner");

    while (status == CTL_DONE && json_array_size (rows) < limit) {
        json_t *result = NULL;
        const char *next;

        status = ask_rows (ctl,
                           HK_MSG_HISTORY,
                           (uint32_t)(limit - json_array_size (rows)),
                           after[0] ? after : NULL,
                           rows,
                           &result);
        next = json_string_value (json_object_get (result, "next"));
        snprintf (after, sizeof (after), "%s", next ? next : "");
        json_decref (result);
        if (!after[0])
            break;
    }
    while (json_array_size (rows) > limit)
        json_array_remove (rows, json_array_size (rows) - 1);
    if (status == CTL_DONE)
        status = show_rows (ctl, history_columns, rows);
    json_decref (rows);
    return status;
}

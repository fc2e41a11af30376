/* store_rows.c - rows of the store: copies, ends and keys */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/sim/sim.h"

static char *dup_text (const char *text)
{
    return text ? strdup (text) : NULL;
}

/* Every text field of a row, so that copies and ends of it agree. */
static size_t texts_of (struct hkc_row *row, const char **out[8])
{
    size_t n = 0;

    switch (row->kind) {
    case HKC_ROW_ALLOC:
        out[n++] = &row->alloc.R;
        out[n++] = &row->alloc.digest;
        out[n++] = &row->alloc.queue;
        break;
    case HKC_ROW_STATE:
        out[n++] = &row->state.done;
        out[n++] = &row->state.known;
        break;
    case HKC_ROW_PART:
        out[n++] = &row->part.host;
        out[n++] = &row->part.boot_id;
        out[n++] = &row->part.invocation;
        out[n++] = &row->part.script;
        out[n++] = &row->part.reason;
        break;
    case HKC_ROW_HOST:
        out[n++] = &row->host.host;
        out[n++] = &row->host.boot_id;
        out[n++] = &row->host.reasons;
        break;
    case HKC_ROW_CAUSE:
    case HKC_ROW_CAUSE_GONE:
        out[n++] = &row->cause.host;
        out[n++] = &row->cause.reason;
        break;
    case HKC_ROW_FREE:
        out[n++] = &row->free.life;
        out[n++] = &row->free.ranks;
        out[n++] = &row->free.R;
        break;
    case HKC_ROW_SCHED:
        out[n++] = &row->sched.life;
        out[n++] = &row->sched.recover;
        out[n++] = &row->sched.active;
        break;
    case HKC_ROW_HISTORY:
        out[n++] = &row->history.host;
        out[n++] = &row->history.invocation;
        out[n++] = &row->history.reason;
        break;
    case HKC_ROW_CLOSED:
    case HKC_ROW_DROPPED:
        out[n++] = &row->closed.digest;
        break;
    case HKC_ROW_FREE_GONE:
        break;
    case HKC_ROW_AUDIT:
        out[n++] = &row->audit.what;
        out[n++] = &row->audit.about;
        out[n++] = &row->audit.reason;
        break;
    }
    return n;
}

struct hkc_row *sim_row_copy (const struct hkc_row *row)
{
    struct hkc_row *copy = malloc (sizeof (*copy));
    const char **texts[8];

    *copy = *row;
    for (size_t i = 0, n = texts_of (copy, texts); i < n; i++)
        *texts[i] = dup_text (*texts[i]);
    if (copy->kind == HKC_ROW_HISTORY) {
        copy->history.scripts = NULL;
        copy->history.scripts_count = 0;
    }
    return copy;
}

void sim_row_free (void **item)
{
    struct hkc_row *row = *item;
    const char **texts[8];

    for (size_t i = 0, n = texts_of (row, texts); i < n; i++)
        free ((char *)*texts[i]);
    free (row);
    *item = NULL;
}

void sim_row_key (const struct hkc_row *row, char key[320])
{
    unsigned long long id = 0;

    switch (row->kind) {
    case HKC_ROW_ALLOC:
        id = row->alloc.alloc;
        break;
    case HKC_ROW_STATE:
        id = row->state.alloc;
        break;
    case HKC_ROW_PART:
        id = row->part.pid;
        break;
    case HKC_ROW_FREE:
    case HKC_ROW_FREE_GONE:
        id = row->free.n;
        break;
    case HKC_ROW_CLOSED:
    case HKC_ROW_DROPPED:
        id = row->closed.alloc;
        break;
    case HKC_ROW_HOST:
        snprintf (key, 320, "%s", row->host.host);
        return;
    case HKC_ROW_CAUSE:
    case HKC_ROW_CAUSE_GONE:
        snprintf (key,
                  320,
                  "%s/%d/%llx",
                  row->cause.host,
                  row->cause.kind,
                  (unsigned long long)row->cause.about);
        return;
    case HKC_ROW_HISTORY:
        snprintf (key,
                  320,
                  "%llx/%d",
                  (unsigned long long)row->history.pid,
                  row->history.attempt);
        return;
    case HKC_ROW_AUDIT:
        id = sim_id ();
        break;
    case HKC_ROW_SCHED:
        break;
    }
    snprintf (key, 320, "%llx", id);
}

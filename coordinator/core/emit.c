/* emit.c - what a turn gathers: rows to commit, actions, borrowed text */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "coordinator/core/internal.h"

struct hkc_chunk {
    struct hkc_chunk *next;
    size_t used, size;
    _Alignas(16) char data[];
};

enum { CHUNK_BYTES = 64 << 10 };

/* A decision that is half made cannot be taken back, and the libraries below
 * end the process in the same case; a crash at any point is survived.
 */
void *hkc_zalloc (size_t size)
{
    void *p = calloc (1, size ? size : 1);

    if (!p)
        abort ();
    return p;
}

char *hkc_strdup (const char *text)
{
    char *copy = strdup (text ? text : "");

    if (!copy)
        abort ();
    return copy;
}

void hkc_strset (char **field, const char *text)
{
    char *copy = text ? hkc_strdup (text) : NULL;

    free (*field);
    *field = copy;
}

void *hkc_grow (void *array, size_t *size, size_t need, size_t item)
{
    if (need <= *size)
        return array;
    size_t more = *size ? *size * 2 : 64;
    if (more < need)
        more = need;
    if (!(array = realloc (array, more * item)))
        abort ();
    *size = more;
    return array;
}

void *hkc_arena (struct hkc_core *core, size_t size)
{
    struct hkc_chunk *c = core->arena;

    size = (size + 15) & ~(size_t)15;
    if (!c || c->size - c->used < size) {
        size_t data = size > CHUNK_BYTES ? size : CHUNK_BYTES;
        if (!(c = malloc (sizeof (*c) + data)))
            abort ();
        c->used = 0;
        c->size = data;
        c->next = core->arena;
        core->arena = c;
    }
    void *p = c->data + c->used;
    c->used += size;
    return p;
}

char *hkc_arena_dup (struct hkc_core *core, const char *text)
{
    size_t n = strlen (text ? text : "") + 1;

    return memcpy (hkc_arena (core, n), text ? text : "", n);
}

__attribute__ ((format (printf, 2, 0))) static char *arena_vfmt (
    struct hkc_core *core, const char *fmt, va_list ap)
{
    char buf[2048];

    vsnprintf (buf, sizeof (buf), fmt, ap);
    return hkc_arena_dup (core, buf);
}

char *hkc_arena_fmt (struct hkc_core *core, const char *fmt, ...)
{
    va_list ap;

    va_start (ap, fmt);
    char *text = arena_vfmt (core, fmt, ap);
    va_end (ap);
    return text;
}

/* One chunk of the common size is kept for the next turn. */
void hkc_arena_clear (struct hkc_core *core)
{
    struct hkc_chunk *c = core->arena;

    core->arena = NULL;
    while (c) {
        struct hkc_chunk *next = c->next;
        if (!core->arena && c->size == CHUNK_BYTES) {
            c->used = 0;
            c->next = NULL;
            core->arena = c;
        } else
            free (c);
        c = next;
    }
}

struct hkc_action *hkc_act (struct hkc_core *core, enum hkc_action_kind kind)
{
    core->actions = hkc_grow (core->actions,
                              &core->actions_size,
                              core->actions_count + 1,
                              sizeof (*core->actions));
    struct hkc_action *act = &core->actions[core->actions_count++];
    memset (act, 0, sizeof (*act));
    act->kind = kind;
    return act;
}

struct hkc_row *hkc_put (struct hkc_core *core, enum hkc_row_kind kind)
{
    core->rows = hkc_grow (core->rows,
                           &core->rows_size,
                           core->rows_count + 1,
                           sizeof (*core->rows));
    struct hkc_row *row = &core->rows[core->rows_count++];
    memset (row, 0, sizeof (*row));
    row->kind = kind;
    return row;
}

void hkc_say (struct hkc_core *core,
              int level,
              uint64_t jobid,
              const char *host,
              const char *fmt,
              ...)
{
    va_list ap;
    struct hkc_action *act = hkc_act (core, HKC_ACT_LOG);

    act->log.level = level;
    act->log.jobid = jobid;
    act->log.host = host ? hkc_arena_dup (core, host) : NULL;
    va_start (ap, fmt);
    act->log.text = arena_vfmt (core, fmt, ap);
    va_end (ap);
}

void hkc_alloc_dirty (struct hkc_core *core, struct hkc_alloc *alloc)
{
    if (alloc->dirty)
        return;
    alloc->dirty = true;
    alloc->dirty_next = core->dirty_allocs;
    core->dirty_allocs = alloc;
}

void hkc_part_dirty (struct hkc_core *core, struct hkc_part *part)
{
    if (part->dirty)
        return;
    part->dirty = true;
    core->dirty_parts = hkc_grow (core->dirty_parts,
                                  &core->dirty_parts_size,
                                  core->dirty_parts_count + 1,
                                  sizeof (*core->dirty_parts));
    core->dirty_parts[core->dirty_parts_count++] = part;
}

void hkc_host_dirty (struct hkc_core *core, struct hkc_host *host)
{
    if (host->dirty)
        return;
    host->dirty = true;
    host->dirty_next = core->dirty_hosts;
    core->dirty_hosts = host;
}

static int change_state (struct hkc_core *core,
                         struct hkc_alloc *alloc,
                         hkc_row_f fn,
                         void *arg)
{
    struct hkc_row row = { .kind = HKC_ROW_STATE };
    char *done = hk_rankset_encode (alloc->done);
    char *known = hk_rankset_encode (alloc->known);
    int rc;

    (void)core;
    if (!done || !known)
        abort ();
    row.state.alloc = alloc->id;
    row.state.begun = alloc->begun;
    row.state.t_first_end = alloc->t_first_end;
    row.state.done = done;
    row.state.known = known;
    rc = fn (arg, &row);
    free (done);
    free (known);
    return rc;
}

static int change_part (const struct hkc_part *part, hkc_row_f fn, void *arg)
{
    struct hkc_row row = {
        .kind = HKC_ROW_PART,
        .part = {
            .pid = part->pid,
            .alloc = part->alloc->id,
            .host = part->host->name,
            .phase = part->phase,
            .attempt = part->attempt,
            .boot_id = part->boot_id,
            .invocation = part->invocation,
            .start_sent = part->start_sent,
            .outcome = part->outcome,
            .stop_signal = part->stop_signal,
            .conflict = part->conflict,
            .t_since = part->t_since,
            .t_start = part->t_start,
            .script = part->script ? part->script : "",
            .reason = part->reason ? part->reason : "",
        },
    };

    return fn (arg, &row);
}

static int change_host (const struct hkc_host *host, hkc_row_f fn, void *arg)
{
    struct hkc_row row = {
        .kind = HKC_ROW_HOST,
        .host = {
            .host = host->name,
            .boot_id = host->boot_id,
            .t_seen = host->t_seen,
            .drain = host->drain,
            .reasons = host->reasons ? host->reasons : "",
        },
    };

    return fn (arg, &row);
}

static int change_sched (struct hkc_core *core, hkc_row_f fn, void *arg)
{
    struct hkc_row row = {
        .kind = HKC_ROW_SCHED,
        .sched = {
            .life = core->life ? core->life : "",
            .state = core->life_state,
            .partial_ok = core->partial_ok,
            .account_spoken = core->account_spoken,
            .free_n = core->free_n,
            .recover = core->recover ? core->recover : "",
        },
    };
    size_t size = zhashx_size (core->active) * 24 + 1;
    char *text = hkc_zalloc (size), *out = text;
    int rc;

    for (void *item = zhashx_first (core->active); item;
         item = zhashx_next (core->active)) {
        out = stpcpy (out, zhashx_cursor (core->active));
        *out++ = ' ';
    }
    row.sched.active = text;
    rc = fn (arg, &row);
    free (text);
    return rc;
}

/* Rows of an allocation that closes in this turn come first, its CLOSED row
 * last of all, so that nothing of it is written after it is gone.
 */
static int change_once (struct hkc_core *core,
                        bool last,
                        hkc_row_f fn,
                        void *arg)
{
    int rc = 0;

    for (size_t i = 0; i < core->rows_count && rc == 0; i++) {
        struct hkc_row *row = &core->rows[i];
        bool ends = row->kind == HKC_ROW_CLOSED || row->kind == HKC_ROW_DROPPED;
        if (ends == last)
            rc = fn (arg, row);
    }
    return rc;
}

int hkc_core_changes (struct hkc_core *core, hkc_row_f fn, void *arg)
{
    int rc = change_once (core, false, fn, arg);

    for (struct hkc_alloc *a = core->dirty_allocs; a && rc == 0;
         a = a->dirty_next)
        if (a->done_count < a->parts_count)
            rc = change_state (core, a, fn, arg);
    for (size_t i = 0; i < core->dirty_parts_count && rc == 0; i++)
        if (core->dirty_parts[i]->phase != HKC_DONE)
            rc = change_part (core->dirty_parts[i], fn, arg);
    for (struct hkc_host *h = core->dirty_hosts; h && rc == 0;
         h = h->dirty_next)
        rc = change_host (h, fn, arg);
    if (rc == 0 && core->sched_dirty)
        rc = change_sched (core, fn, arg);
    if (rc == 0)
        rc = change_once (core, true, fn, arg);
    return rc;
}

bool hkc_core_changed (const struct hkc_core *core)
{
    return core->rows_count || core->dirty_allocs || core->dirty_parts_count
           || core->dirty_hosts || core->sched_dirty;
}

const struct hkc_action *hkc_core_actions (const struct hkc_core *core,
                                           size_t *count)
{
    *count = core->actions_count;
    return core->actions;
}

void hkc_core_settle (struct hkc_core *core)
{
    for (size_t i = 0; i < core->dirty_parts_count; i++)
        core->dirty_parts[i]->dirty = false;
    core->dirty_parts_count = 0;
    while (core->dirty_allocs) {
        core->dirty_allocs->dirty = false;
        core->dirty_allocs = core->dirty_allocs->dirty_next;
    }
    while (core->dirty_hosts) {
        core->dirty_hosts->dirty = false;
        core->dirty_hosts = core->dirty_hosts->dirty_next;
    }
    while (core->closed) {
        struct hkc_alloc *next = core->closed->free_next;
        hkc_alloc_free (core->closed);
        core->closed = next;
    }
    core->sched_dirty = false;
    core->rows_count = 0;
    core->actions_count = 0;
    hkc_arena_clear (core);
}

/* store.c - a model of the store: rows that were committed */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/sim/sim.h"

/* Live tables by kind; the history, closed and audit only grow. */
struct sim_store {
    zhashx_t *tables[HKC_ROW_AUDIT + 1]; /* key text -> struct hkc_row */
    zlistx_t *staged;                    /* struct hkc_row */
};

struct sim_store *sim_store_create (void)
{
    struct sim_store *s = calloc (1, sizeof (*s));

    for (int i = 1; i <= HKC_ROW_AUDIT; i++) {
        s->tables[i] = zhashx_new ();
        zhashx_set_destructor (s->tables[i], sim_row_free);
    }
    s->staged = zlistx_new ();
    zlistx_set_destructor (s->staged, sim_row_free);
    return s;
}

void sim_store_destroy (struct sim_store *s)
{
    if (!s)
        return;
    for (int i = 1; i <= HKC_ROW_AUDIT; i++)
        zhashx_destroy (&s->tables[i]);
    zlistx_destroy (&s->staged);
    free (s);
}

void sim_store_stage (struct sim_store *s, const struct hkc_row *row)
{
    zlistx_add_end (s->staged, sim_row_copy (row));
}

void sim_store_drop (struct sim_store *s)
{
    zlistx_purge (s->staged);
}

static void delete_number (zhashx_t *table, uint64_t id)
{
    char key[32];

    snprintf (key, sizeof (key), "%llx", (unsigned long long)id);
    zhashx_delete (table, key);
}

static void apply_ended (struct sim_store *s, const struct hkc_row *row)
{
    delete_number (s->tables[HKC_ROW_ALLOC], row->closed.alloc);
    delete_number (s->tables[HKC_ROW_STATE], row->closed.alloc);
    for (uint32_t i = 0; i < row->closed.parts_count; i++)
        delete_number (s->tables[HKC_ROW_PART], row->closed.pid + i);
}

/* Success in the history is success in truth. */
static void check_success (const struct hkc_row *row)
{
    char key[96];

    snprintf (key,
              sizeof (key),
              "%llx/%s/%d",
              (unsigned long long)row->history.alloc,
              row->history.host,
              row->history.attempt);
    if (row->history.outcome == HK_OUTCOME_SUCCESS
        && (zhashx_lookup (w.bad, key) || !zhashx_lookup (w.started, key)))
        sim_broken ("success", "run %s is no success", key);
}

/* The story of what is on disk. */
static void tell (const struct hkc_row *row)
{
    if (row->kind == HKC_ROW_PART)
        sim_say ("disk: %llx on %s: %s attempt %d%s",
                 (unsigned long long)row->part.alloc,
                 row->part.host,
                 hkc_phase_name (row->part.phase),
                 row->part.attempt,
                 row->part.conflict ? ", conflict" : "");
    else if (row->kind == HKC_ROW_STATE)
        sim_say ("disk: %llx: %s, done [%s] known [%s]",
                 (unsigned long long)row->state.alloc,
                 row->state.begun ? "begun" : "recorded",
                 row->state.done,
                 row->state.known);
    else if (row->kind == HKC_ROW_CLOSED)
        sim_say ("disk: %llx of job %llu is closed",
                 (unsigned long long)row->closed.alloc,
                 (unsigned long long)row->closed.jobid);
    else if (row->kind == HKC_ROW_ALLOC)
        sim_say ("disk: %llx is job %llu",
                 (unsigned long long)row->alloc.alloc,
                 (unsigned long long)row->alloc.jobid);
}

void sim_store_apply (struct sim_store *s)
{
    struct hkc_row *row;
    char key[320];

    while ((row = zlistx_detach (s->staged, NULL))) {
        void *item = row;
        sim_row_key (row, key);
        tell (row);
        if (row->kind == HKC_ROW_HISTORY
            && zhashx_lookup (s->tables[HKC_ROW_HISTORY], key))
            sim_broken ("H1",
                        "a second outcome of run %s on %s",
                        key,
                        row->history.host);
        if (row->kind == HKC_ROW_HISTORY)
            check_success (row);
        if (row->kind == HKC_ROW_CAUSE_GONE)
            zhashx_delete (s->tables[HKC_ROW_CAUSE], key);
        else if (row->kind == HKC_ROW_FREE_GONE)
            zhashx_delete (s->tables[HKC_ROW_FREE], key);
        else if (row->kind == HKC_ROW_DROPPED)
            apply_ended (s, row);
        else {
            if (row->kind == HKC_ROW_CLOSED)
                apply_ended (s, row);
            zhashx_update (s->tables[row->kind], key, row);
            continue;
        }
        sim_row_free (&item);
    }
}

/* As SQLite gives them: allocations by pid, frees by number. */
static int by_order (const void *a, const void *b)
{
    const struct hkc_row *x = *(struct hkc_row *const *)a;
    const struct hkc_row *y = *(struct hkc_row *const *)b;

    uint64_t a_id = x->kind == HKC_ROW_FREE ? x->free.n : x->alloc.pid;
    uint64_t b_id = y->kind == HKC_ROW_FREE ? y->free.n : y->alloc.pid;

    return a_id < b_id ? -1 : a_id > b_id;
}

void sim_store_load (struct sim_store *s, struct hkc_core *core)
{
    static const enum hkc_row_kind order[] = {
        HKC_ROW_ALLOC, HKC_ROW_STATE, HKC_ROW_PART,  HKC_ROW_HOST,
        HKC_ROW_CAUSE, HKC_ROW_FREE,  HKC_ROW_SCHED,
    };

    for (size_t i = 0; i < sizeof (order) / sizeof (order[0]); i++) {
        zhashx_t *table = s->tables[order[i]];
        size_t n = 0, size = zhashx_size (table);
        struct hkc_row **rows = calloc (size + 1, sizeof (*rows));
        struct hk_error err;
        for (struct hkc_row *r = zhashx_first (table); r;
             r = zhashx_next (table))
            rows[n++] = r;
        if (order[i] == HKC_ROW_ALLOC || order[i] == HKC_ROW_FREE)
            qsort (rows, n, sizeof (*rows), by_order);
        for (size_t j = 0; j < n; j++)
            if (hkc_core_load (core, rows[j], &err) < 0)
                sim_broken ("load", "%s", err.text);
        free (rows);
    }
}

uint64_t sim_store_find_end (struct sim_store *s,
                             uint64_t jobid,
                             double t_submit,
                             double t_end,
                             const char *digest)
{
    zhashx_t *table = s->tables[HKC_ROW_CLOSED];

    for (struct hkc_row *r = zhashx_first (table); r; r = zhashx_next (table))
        if (r->closed.jobid == jobid && r->closed.t_submit == t_submit
            && r->closed.t_end == t_end && !strcmp (r->closed.digest, digest))
            return r->closed.alloc;
    return 0;
}

bool sim_store_find_run (struct sim_store *s,
                         uint64_t alloc,
                         const char *host,
                         int attempt)
{
    char key[64];
    struct hkc_row *closed;

    snprintf (key, sizeof (key), "%llx", (unsigned long long)alloc);
    if (!(closed = zhashx_lookup (s->tables[HKC_ROW_CLOSED], key)))
        return false;
    for (uint32_t i = 0; i < closed->closed.parts_count; i++) {
        struct hkc_row *r;
        snprintf (key,
                  sizeof (key),
                  "%llx/%d",
                  (unsigned long long)closed->closed.pid + i,
                  attempt);
        r = zhashx_lookup (s->tables[HKC_ROW_HISTORY], key);
        if (r && !strcmp (r->history.host, host))
            return true;
    }
    return false;
}

bool sim_store_has_outcome (struct sim_store *s,
                            uint64_t alloc,
                            const char *host,
                            int attempt)
{
    zhashx_t *table = s->tables[HKC_ROW_HISTORY];

    for (struct hkc_row *r = zhashx_first (table); r; r = zhashx_next (table))
        if (r->history.alloc == alloc && r->history.attempt == attempt
            && !strcmp (r->history.host, host))
            return true;
    return false;
}

double sim_store_failed_at (struct sim_store *s,
                            uint64_t jobid,
                            const char *host)
{
    zhashx_t *table = s->tables[HKC_ROW_HISTORY];
    const struct hkc_row *last = NULL;

    for (struct hkc_row *r = zhashx_first (table); r; r = zhashx_next (table))
        if (r->history.jobid == jobid && !strcmp (r->history.host, host)
            && (!last || r->history.attempt > last->history.attempt))
            last = r;
    return last && hk_outcome_is_failure (last->history.outcome)
               ? last->history.t_end
               : 0;
}

bool sim_store_failed_there (struct sim_store *s, const char *host)
{
    zhashx_t *table = s->tables[HKC_ROW_CAUSE];

    for (struct hkc_row *r = zhashx_first (table); r; r = zhashx_next (table))
        if (r->cause.kind == HKC_CAUSE_FAILURE && !strcmp (r->cause.host, host))
            return true;
    return false;
}

uint64_t sim_store_next_pid (struct sim_store *s)
{
    uint64_t next = 1;

    for (int k = 0; k < 2; k++) {
        zhashx_t *t = s->tables[k ? HKC_ROW_CLOSED : HKC_ROW_ALLOC];
        for (struct hkc_row *r = zhashx_first (t); r; r = zhashx_next (t)) {
            uint64_t end = k ? r->closed.pid + r->closed.parts_count
                             : r->alloc.pid + r->alloc.parts_count;
            if (end > next)
                next = end;
        }
    }
    return next;
}

bool sim_store_has_alloc (struct sim_store *s, uint64_t alloc)
{
    char key[32];

    snprintf (key, sizeof (key), "%llx", (unsigned long long)alloc);
    return zhashx_lookup (s->tables[HKC_ROW_ALLOC], key)
           || zhashx_lookup (s->tables[HKC_ROW_CLOSED], key);
}

bool sim_store_has_free (struct sim_store *s, uint64_t n)
{
    char key[32];

    snprintf (key, sizeof (key), "%llx", (unsigned long long)n);
    return zhashx_lookup (s->tables[HKC_ROW_FREE], key) != NULL;
}

size_t sim_store_open (struct sim_store *s)
{
    return zhashx_size (s->tables[HKC_ROW_ALLOC]);
}

/* Not in done?  Parts are in order of R's ranks, as many to each. */
static bool is_not_done (const struct hkc_row *alloc,
                         const struct hkc_row *state,
                         uint64_t pid)
{
    const char *from = strstr (alloc->alloc.R, "\"rank\":\"") + 8;
    char *text = strndup (from, strcspn (from, "\""));
    struct hk_rankset *ranks = hk_rankset_decode (text, NULL);
    struct hk_rankset *done = hk_rankset_decode (state->state.done, NULL);
    uint32_t rank = hk_rankset_first (ranks);
    bool is_not;

    for (uint64_t i = (pid - alloc->alloc.pid) * (uint64_t)w.per_host; i; i--)
        rank = hk_rankset_next (ranks, rank);
    is_not = !hk_rankset_has (done, rank);
    hk_rankset_destroy (ranks);
    hk_rankset_destroy (done);
    free (text);
    return is_not;
}

bool sim_store_holds (struct sim_store *s, int host, uint64_t *jobid)
{
    zhashx_t *parts = s->tables[HKC_ROW_PART];
    char key[32];

    for (struct hkc_row *r = zhashx_first (parts); r; r = zhashx_next (parts)) {
        struct hkc_row *alloc, *state;
        if (host != sim_host_index (r->part.host) || r->part.phase >= HKC_DUE)
            continue;
        snprintf (key, sizeof (key), "%llx", (unsigned long long)r->part.alloc);
        alloc = zhashx_lookup (s->tables[HKC_ROW_ALLOC], key);
        state = zhashx_lookup (s->tables[HKC_ROW_STATE], key);
        if (!alloc || !state || !state->state.begun
            || !is_not_done (alloc, state, r->part.pid))
            continue;
        *jobid = alloc->alloc.jobid;
        return true;
    }
    return false;
}

void sim_store_print (struct sim_store *s)
{
    zhashx_t *t = s->tables[HKC_ROW_PART];

    for (struct hkc_row *r = zhashx_first (s->tables[HKC_ROW_ALLOC]); r;
         r = zhashx_next (s->tables[HKC_ROW_ALLOC]))
        printf ("  alloc %llx job %llu pid %llu+%u\n",
                (unsigned long long)r->alloc.alloc,
                (unsigned long long)r->alloc.jobid,
                (unsigned long long)r->alloc.pid,
                r->alloc.parts_count);
    for (struct hkc_row *r = zhashx_first (s->tables[HKC_ROW_STATE]); r;
         r = zhashx_next (s->tables[HKC_ROW_STATE]))
        printf ("  state %llx begun %d done [%s] known [%s]\n",
                (unsigned long long)r->state.alloc,
                r->state.begun,
                r->state.done,
                r->state.known);
    for (struct hkc_row *r = zhashx_first (t); r; r = zhashx_next (t))
        printf ("  part %llu of %llx on %s: %s attempt %d outcome %s sent %d "
                "conflict %d boot %.8s: %s\n",
                (unsigned long long)r->part.pid,
                (unsigned long long)r->part.alloc,
                r->part.host,
                hkc_phase_name (r->part.phase),
                r->part.attempt,
                hk_outcome_name (r->part.outcome),
                r->part.start_sent,
                r->part.conflict,
                r->part.boot_id,
                r->part.reason);
    t = s->tables[HKC_ROW_CAUSE];
    for (struct hkc_row *r = zhashx_first (t); r; r = zhashx_next (t))
        printf ("  cause %s %s about %llx confirmed %d: %s\n",
                r->cause.host,
                hkc_cause_name (r->cause.kind),
                (unsigned long long)r->cause.about,
                r->cause.confirmed,
                r->cause.reason);
    t = s->tables[HKC_ROW_SCHED];
    for (struct hkc_row *r = zhashx_first (t); r; r = zhashx_next (t))
        printf ("  sched life %s state %d\n", r->sched.life, r->sched.state);
    t = s->tables[HKC_ROW_HOST];
    for (struct hkc_row *r = zhashx_first (t); r; r = zhashx_next (t))
        if (r->host.drain || *r->host.reasons)
            printf ("  host %s drain %d reasons %s\n",
                    r->host.host,
                    r->host.drain,
                    r->host.reasons);
}

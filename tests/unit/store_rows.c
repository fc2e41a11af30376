/* store_rows.c - rows for tests of the store, and what it has as text */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "coordinator/store/schema.h"
#include "tests/unit/store_rows.h"

static const char id_text[] = "0123456789abcdef0123456789abcdef";

struct hkc_row row_alloc (uint64_t alloc,
                          uint64_t jobid,
                          uint64_t pid,
                          uint32_t parts_count)
{
    return (struct hkc_row){
        .kind = HKC_ROW_ALLOC,
        .alloc = {
            .alloc = alloc,
            .jobid = jobid,
            .userid = 1000,
            .priority = 4294967295,
            .t_submit = (double)jobid + 0.25,
            .t_end = (double)jobid + 0.5,
            .R = "{\"version\":1}",
            .digest = "d1",
            .queue = "batch",
            .pid = pid,
            .parts_count = parts_count,
        },
    };
}

struct hkc_row row_part (uint64_t alloc, uint64_t pid, const char *host)
{
    return (struct hkc_row){
        .kind = HKC_ROW_PART,
        .part = {
            .pid = pid,
            .alloc = alloc,
            .host = host,
            .phase = HKC_RUNNING,
            .attempt = 1,
            .boot_id = id_text,
            .invocation = id_text,
            .start_sent = true,
            .outcome = HK_OUTCOME_NONE,
            .stop_signal = 15,
            .conflict = true,
            .t_since = 10.5,
            .t_start = 9.25,
            .script = "10-clean",
            .reason = "because",
        },
    };
}

struct hkc_row row_state (uint64_t alloc, const char *done)
{
    return (struct hkc_row){
        .kind = HKC_ROW_STATE,
        .state = {
            .alloc = alloc,
            .begun = true,
            .t_first_end = 11.75,
            .done = done,
            .known = "0-3",
        },
    };
}

struct hkc_row row_history (
    uint64_t alloc, uint64_t jobid, uint64_t pid, int attempt, const char *host)
{
    static const struct hk_script_result scripts[] = {
        { "10-clean", 0, 0, 1.5, 2.5 },
        { "20-check", -1, 9, 2.5, 3.5 },
    };

    return (struct hkc_row){
        .kind = HKC_ROW_HISTORY,
        .history = {
            .pid = pid,
            .attempt = attempt,
            .alloc = alloc,
            .jobid = jobid,
            .userid = 1000,
            .host = host,
            .outcome = HK_OUTCOME_SIGNAL,
            .t_start = 1.5,
            .t_end = 3.5,
            .invocation = id_text,
            .reason = "killed KILL",
            .scripts_count = 2,
            .scripts = scripts,
        },
    };
}

struct hkc_row row_closed (const struct hkc_row *alloc, double t)
{
    return (struct hkc_row){
        .kind = HKC_ROW_CLOSED,
        .closed = {
            .alloc = alloc->alloc.alloc,
            .jobid = alloc->alloc.jobid,
            .t_submit = alloc->alloc.t_submit,
            .t_end = alloc->alloc.t_end,
            .t_closed = t,
            .pid = alloc->alloc.pid,
            .parts_count = alloc->alloc.parts_count,
            .digest = alloc->alloc.digest,
        },
    };
}

struct hkc_store *store_open (const char *dir)
{
    struct hk_error err = { "" };
    struct hkc_store *store = hkc_store_open (dir, &err);

    if (!store)
        fail_msg ("%s", err.text);
    return store;
}

int store_try (struct hkc_store *store,
               const struct hkc_row *rows,
               size_t count,
               struct hk_error *err)
{
    int rc = hkc_store_begin (store, err);

    for (size_t i = 0; i < count && rc == 0; i++)
        rc = hkc_store_put (store, &rows[i], err);
    if (rc == 0 && hkc_store_commit (store, err) == 0)
        return 0;
    rc = errno;
    hkc_store_rollback (store);
    errno = rc;
    return -1;
}

void store_commit (struct hkc_store *store,
                   const struct hkc_row *rows,
                   size_t count)
{
    struct hk_error err = { "" };

    if (store_try (store, rows, count, &err) < 0)
        fail_msg ("%s", err.text);
}

static void print_part (FILE *f, const struct hkc_row_part *p)
{
    fprintf (f,
             "part %lu of %lu on %s phase %d attempt %d boot %.4s run %.4s "
             "sent %d outcome %d signal %d conflict %d since %g start %g "
             "script %s reason %s\n",
             p->pid,
             p->alloc,
             p->host,
             p->phase,
             p->attempt,
             p->boot_id,
             p->invocation,
             p->start_sent,
             p->outcome,
             p->stop_signal,
             p->conflict,
             p->t_since,
             p->t_start,
             p->script,
             p->reason);
}

static void print_alloc (FILE *f, const struct hkc_row_alloc *a)
{
    fprintf (f,
             "alloc %lu job %lu uid %u priority %ld submit %g end %g R %s "
             "digest %s queue %s pid %lu parts %u\n",
             a->alloc,
             a->jobid,
             a->userid,
             (long)a->priority,
             a->t_submit,
             a->t_end,
             a->R,
             a->digest,
             a->queue,
             a->pid,
             a->parts_count);
}

static int print_row (void *arg, const struct hkc_row *row)
{
    FILE *f = arg;

    switch (row->kind) {
    case HKC_ROW_ALLOC:
        print_alloc (f, &row->alloc);
        break;
    case HKC_ROW_STATE:
        fprintf (f,
                 "state %lu begun %d first %g done '%s' known '%s'\n",
                 row->state.alloc,
                 row->state.begun,
                 row->state.t_first_end,
                 row->state.done,
                 row->state.known);
        break;
    case HKC_ROW_PART:
        print_part (f, &row->part);
        break;
    case HKC_ROW_HOST:
        fprintf (f,
                 "host %s boot %.4s seen %g drain %d reasons %s\n",
                 row->host.host,
                 row->host.boot_id,
                 row->host.t_seen,
                 row->host.drain,
                 row->host.reasons);
        break;
    case HKC_ROW_CAUSE:
        fprintf (f,
                 "cause %s %d about %lu reason %s confirmed %d t %g\n",
                 row->cause.host,
                 row->cause.kind,
                 row->cause.about,
                 row->cause.reason,
                 row->cause.confirmed,
                 row->cause.t);
        break;
    case HKC_ROW_FREE:
        fprintf (f,
                 "free %lu life %s job %lu ranks %s R %s final %d\n",
                 row->free.n,
                 row->free.life,
                 row->free.jobid,
                 row->free.ranks,
                 row->free.R,
                 row->free.final);
        break;
    case HKC_ROW_SCHED:
        fprintf (f,
                 "sched life %s state %d partial %d account %d frees "
                 "%lu recover '%s'\n",
                 row->sched.life,
                 row->sched.state,
                 row->sched.partial_ok,
                 row->sched.account_spoken,
                 row->sched.free_n,
                 row->sched.recover);
        break;
    default:
        fail_msg ("row of kind %d is loaded", row->kind);
    }
    return 0;
}

char *store_text (struct hkc_store *store)
{
    struct hk_error err = { "" };
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream (&text, &size);

    assert_non_null (f);
    if (hkc_store_load (store, print_row, f, &err) != 0)
        fail_msg ("%s", err.text);
    fclose (f);
    return text;
}

void assert_store_text (struct hkc_store *store, const char *want)
{
    char *text = store_text (store);

    assert_string_equal (text, want);
    free (text);
}

long store_count (struct hkc_store *store, const char *what)
{
    struct hk_error err = { "" };
    char sql[512];
    int64_t n;

    snprintf (sql, sizeof (sql), "SELECT count(*) FROM %s", what);
    if (hkc_store_number (store, sql, &n, &err) < 0)
        fail_msg ("%s", err.text);
    return (long)n;
}

/* One of each kind. */
size_t all_rows (struct hkc_row *rows)
{
    size_t n = 0;

    rows[n++] = row_alloc (11, 10, 1, 2);
    rows[n++] = row_state (11, "3");
    rows[n++] = row_part (11, 1, "node0");
    rows[n++] = row_part (11, 2, "node1");
    rows[n++] = (struct hkc_row){
        .kind = HKC_ROW_HOST,
        .host = { "node0", "0123456789abcdef0123456789abcdef", 5.5, 1, "a\nb" },
    };
    rows[n++] = (struct hkc_row){
        .kind = HKC_ROW_CAUSE,
        .cause = { "node0", HKC_CAUSE_LOST, 0, "silent", true, 6.5 },
    };
    rows[n++] = (struct hkc_row){
        .kind = HKC_ROW_FREE,
        .free = { 4, "life-1", 10, "0-1", "{}", true },
    };
    rows[n++] = (struct hkc_row){
        .kind = HKC_ROW_SCHED,
        .sched = { .life = "life-1",
                   .state = HKC_LIFE_READY,
                   .partial_ok = true,
                   .account_spoken = true,
                   .free_n = 4,
                   .recover = "" },
    };
    rows[n++] = row_history (11, 10, 1, 1, "node0");
    rows[n++] = (struct hkc_row){
        .kind = HKC_ROW_AUDIT,
        .audit = { 7.5, 1000, "kill", "job 10", "it hung" },
    };
    return n;
}

const char all_text[] =
    "alloc 11 job 10 uid 1000 priority 4294967295 submit 10.25 end 10.5 "
    "R {\"version\":1} digest d1 queue batch pid 1 parts 2\n"
    "state 11 begun 1 first 11.75 done '3' known '0-3'\n"
    "part 1 of 11 on node0 phase 2 attempt 1 boot 0123 run 0123 sent 1 "
    "outcome 0 signal 15 conflict 1 since 10.5 start 9.25 script 10-clean "
    "reason because\n"
    "part 2 of 11 on node1 phase 2 attempt 1 boot 0123 run 0123 sent 1 "
    "outcome 0 signal 15 conflict 1 since 10.5 start 9.25 script 10-clean "
    "reason because\n"
    "host node0 boot 0123 seen 5.5 drain 1 reasons a\nb\n"
    "cause node0 5 about 0 reason silent confirmed 1 t 6.5\n"
    "free 4 life life-1 job 10 ranks 0-1 R {} final 1\n"
    "sched life life-1 state 3 partial 1 account 1 frees 4 recover ''\n";

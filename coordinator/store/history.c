/* history.c - one page of history as JSON, newest first */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "proto/clock.h"
#include "proto/escape.h"
#include "proto/hostlist.h"
#include "coordinator/store/schema.h"

/* A job's allocations are ranges of pid (a job id may be used again), read in
 * descending order; no job: one range, everything.  There is no index by host:
 * it would cost each report a page of its own.  A search by host therefore
 * reads on until the page is full or its time is nearly up, and the next page
 * goes on from there.  A page ends between two pids, never between attempts of
 * one, so that a pid is all that has to be remembered.
 */
struct page {
    sqlite3 *db;
    sqlite3_stmt *runs, *scripts;
    const struct hkc_reader_query *query;
    const struct hk_hostlist *hosts;
    json_t *rows;
    uint32_t limit;
    int64_t soft_ms;
    int64_t last; /* the pid of the row before */
    uint32_t read;
    bool full;
};

enum { CLOCK_EACH = 256 };

const char *const hkc_history_sql[HKC_HISTORY_COUNT] = {
    [HKC_HISTORY_RANGES] =
        ("SELECT pid, pid + parts_count FROM closed WHERE jobid = ?1 UNION ALL"
         " SELECT pid, pid + parts_count FROM alloc WHERE jobid = ?1"
         " ORDER BY pid DESC"),
    [HKC_HISTORY_RUNS] =
        ("SELECT pid, attempt, alloc, jobid, userid, host, outcome, t_start,"
         " t_end, invocation, reason FROM history WHERE pid >= ?1 AND pid < ?2"
         " ORDER BY pid DESC, attempt DESC"),
    [HKC_HISTORY_SCRIPTS] =
        ("SELECT name, code, signal, t_start, t_end FROM script"
         " WHERE pid = ?1 AND attempt = ?2 ORDER BY seq"),
};

/* JSON has valid UTF-8 only, and a row must not be lost for a bad byte. */
static json_t *text_of (sqlite3_stmt *stmt, int column)
{
    const char *text = (const char *)sqlite3_column_text (stmt, column);
    json_t *json = json_string (text ? text : "");
    char *safe;
    size_t size;

    if (json || !text)
        return json;
    size = 4 * strlen (text) + 1;
    if ((safe = malloc (size)))
        json = json_string (hk_escape (text, SIZE_MAX, safe, size));
    free (safe);
    return json;
}

/* JSON has no infinity either. */
static double time_of (sqlite3_stmt *stmt, int column)
{
    double t = sqlite3_column_double (stmt, column);

    return isfinite (t) ? t : 0;
}

/* SQLITE_DONE, or what went wrong. */
static int scripts_of (struct page *page, json_t *list)
{
    sqlite3_stmt *s = page->scripts;
    int rc;

    sqlite3_bind_int64 (s, 1, sqlite3_column_int64 (page->runs, 0));
    sqlite3_bind_int (s, 2, sqlite3_column_int (page->runs, 1));
    while ((rc = sqlite3_step (s)) == SQLITE_ROW)
        if (json_array_append_new (list,
                                   json_pack ("{s:o s:i s:i s:f s:f}",
                                              "name",
                                              text_of (s, 0),
                                              "code",
                                              sqlite3_column_int (s, 1),
                                              "signal",
                                              sqlite3_column_int (s, 2),
                                              "t_start",
                                              time_of (s, 3),
                                              "t_end",
                                              time_of (s, 4)))
            < 0) {
            rc = SQLITE_NOMEM;
            break;
        }
    sqlite3_reset (s);
    return rc;
}

static int text_add (struct page *page, json_t *row)
{
    json_t *scripts = json_array ();

    if (json_object_set_new (row, "invocation", text_of (page->runs, 9)) < 0
        || json_object_set_new (row, "reason", text_of (page->runs, 10)) < 0
        || json_object_set_new (row, "scripts", scripts) < 0)
        return SQLITE_NOMEM;
    return scripts_of (page, scripts);
}

static int row_add (struct page *page)
{
    sqlite3_stmt *s = page->runs;
    json_t *row = json_pack ("{s:I s:I s:o s:i s:s s:f s:f s:I}",
                             "jobid",
                             (json_int_t)sqlite3_column_int64 (s, 3),
                             "userid",
                             (json_int_t)sqlite3_column_int64 (s, 4),
                             "host",
                             text_of (s, 5),
                             "attempt",
                             sqlite3_column_int (s, 1),
                             "outcome",
                             hk_outcome_name (sqlite3_column_int (s, 6)),
                             "t_start",
                             time_of (s, 7),
                             "t_end",
                             time_of (s, 8),
                             "alloc",
                             (json_int_t)sqlite3_column_int64 (s, 2));

    if (json_array_append_new (page->rows, row) < 0)
        return SQLITE_NOMEM;
    return page->query->text ? text_add (page, row) : SQLITE_DONE;
}

static bool is_wanted (const struct page *page)
{
    const char *host = (const char *)sqlite3_column_text (page->runs, 5);

    return !page->hosts || (host && hk_hostlist_find (page->hosts, host) >= 0);
}

/* Between two pids: is it enough? */
static bool is_full (struct page *page)
{
    if (json_array_size (page->rows) >= page->limit)
        return true;
    return ++page->read % CLOCK_EACH == 0 && hk_boot_ms () >= page->soft_ms;
}

/* The runs of pid in [lo, hi).  SQLITE_DONE, or what went wrong. */
static int range_read (struct page *page, int64_t lo, int64_t hi)
{
    sqlite3_stmt *s = page->runs;
    int rc;

    sqlite3_bind_int64 (s, 1, lo);
    sqlite3_bind_int64 (s, 2, hi);
    while ((rc = sqlite3_step (s)) == SQLITE_ROW) {
        int64_t pid = sqlite3_column_int64 (s, 0);
        if (page->last && pid != page->last && is_full (page)) {
            page->full = true;
            rc = SQLITE_DONE;
            break;
        }
        page->last = pid;
        if (is_wanted (page) && (rc = row_add (page)) != SQLITE_DONE)
            break;
    }
    sqlite3_reset (s);
    return rc;
}

static int prepare (struct page *page,
                    enum hkc_history_stmt which,
                    sqlite3_stmt **stmt)
{
    return sqlite3_prepare_v2 (
        page->db, hkc_history_sql[which], -1, stmt, NULL);
}

static int job_read (struct page *page, int64_t before)
{
    sqlite3_stmt *ranges = NULL;
    int rc = prepare (page, HKC_HISTORY_RANGES, &ranges);

    if (rc != SQLITE_OK)
        return rc;
    sqlite3_bind_int64 (ranges, 1, (int64_t)page->query->jobid);
    while (!page->full && (rc = sqlite3_step (ranges)) == SQLITE_ROW) {
        int64_t lo = sqlite3_column_int64 (ranges, 0);
        int64_t hi = sqlite3_column_int64 (ranges, 1);
        if ((rc = range_read (page, lo, hi < before ? hi : before))
            != SQLITE_DONE)
            break;
    }
    sqlite3_finalize (ranges);
    return page->full ? SQLITE_DONE : rc;
}

/* In one transaction, so that an allocation that closes is seen once. */
static int page_read (struct page *page)
{
    int64_t before = page->query->after ? (int64_t)page->query->after
                                        : INT64_MAX;
    int rc;

    if ((rc = sqlite3_exec (page->db, "BEGIN", NULL, NULL, NULL)) != SQLITE_OK
        || (rc = prepare (page, HKC_HISTORY_RUNS, &page->runs)) != SQLITE_OK
        || (rc = prepare (page, HKC_HISTORY_SCRIPTS, &page->scripts))
               != SQLITE_OK)
        return rc;
    return page->query->jobid ? job_read (page, before)
                              : range_read (page, 0, before);
}

static void fail (const struct page *page, int rc, struct hk_error *err)
{
    if (rc == SQLITE_NOMEM)
        hk_error_set (err, ENOMEM, "history: out of memory");
    else if ((rc & 0xff) == SQLITE_INTERRUPT)
        hk_error_set (err, ETIMEDOUT, "history: it took too long");
    else
        hkc_store_fail (page->db, err, "history");
}

void hkc_history_page (sqlite3 *db,
                       const struct hkc_reader_query *query,
                       struct hkc_reader_answer *answer)
{
    int64_t now = hk_boot_ms ();
    struct hk_hostlist *hosts = NULL;
    struct page page = {
        .db = db,
        .query = query,
        .limit = query->limit && query->limit < HKC_PAGE_ROWS ? query->limit
                                                              : HKC_PAGE_ROWS,
        .soft_ms = now + (query->deadline_ms - now) / 4 * 3,
    };
    int rc;

    answer->tag = query->tag;
    if (query->hosts
        && !(page.hosts = hosts = hk_hostlist_decode (query->hosts,
                                                      &answer->err)))
        return;
    page.rows = json_array ();
    rc = page.rows ? page_read (&page) : SQLITE_NOMEM;
    if (rc == SQLITE_DONE) {
        answer->rows = json_incref (page.rows);
        answer->next = page.full ? (uint64_t)page.last : 0;
    } else
        fail (&page, rc, &answer->err);
    json_decref (page.rows);
    sqlite3_finalize (page.runs);
    sqlite3_finalize (page.scripts);
    if (!sqlite3_get_autocommit (db))
        sqlite3_exec (db, "ROLLBACK", NULL, NULL, NULL);
    hk_hostlist_destroy (hosts);
}

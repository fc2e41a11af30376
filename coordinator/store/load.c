/* load.c - the rows that are given back at start */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <string.h>
#include "coordinator/store/schema.h"

static const char *text (sqlite3_stmt *stmt, int column)
{
    const char *s = (const char *)sqlite3_column_text (stmt, column);

    return s ? s : "";
}

static void get_alloc (sqlite3_stmt *s, struct hkc_row *row)
{
    row->alloc = (struct hkc_row_alloc){
        .alloc = sqlite3_column_int64 (s, 0),
        .jobid = sqlite3_column_int64 (s, 1),
        .userid = sqlite3_column_int64 (s, 2),
        .priority = sqlite3_column_int64 (s, 3),
        .t_submit = sqlite3_column_double (s, 4),
        .t_end = sqlite3_column_double (s, 5),
        .R = text (s, 6),
        .digest = text (s, 7),
        .queue = text (s, 8),
        .pid = sqlite3_column_int64 (s, 9),
        .parts_count = sqlite3_column_int (s, 10),
    };
}

static void get_state (sqlite3_stmt *s, struct hkc_row *row)
{
    row->state = (struct hkc_row_state){
        .alloc = sqlite3_column_int64 (s, 0),
        .begun = sqlite3_column_int (s, 1),
        .t_first_end = sqlite3_column_double (s, 2),
        .done = text (s, 3),
        .known = text (s, 4),
    };
}

static void get_part (sqlite3_stmt *s, struct hkc_row *row)
{
    row->part = (struct hkc_row_part){
        .pid = sqlite3_column_int64 (s, 0),
        .alloc = sqlite3_column_int64 (s, 1),
        .host = text (s, 2),
        .phase = sqlite3_column_int (s, 3),
        .attempt = sqlite3_column_int (s, 4),
        .boot_id = text (s, 5),
        .invocation = text (s, 6),
        .start_sent = sqlite3_column_int (s, 7),
        .outcome = sqlite3_column_int (s, 8),
        .stop_signal = sqlite3_column_int (s, 9),
        .conflict = sqlite3_column_int (s, 10),
        .t_since = sqlite3_column_double (s, 11),
        .t_start = sqlite3_column_double (s, 12),
        .script = text (s, 13),
        .reason = text (s, 14),
    };
}

static void get_host (sqlite3_stmt *s, struct hkc_row *row)
{
    row->host = (struct hkc_row_host){
        .host = text (s, 0),
        .boot_id = text (s, 1),
        .t_seen = sqlite3_column_double (s, 2),
        .drain = sqlite3_column_int (s, 3),
        .reasons = text (s, 4),
    };
}

static void get_cause (sqlite3_stmt *s, struct hkc_row *row)
{
    row->cause = (struct hkc_row_cause){
        .host = text (s, 0),
        .kind = sqlite3_column_int (s, 1),
        .about = sqlite3_column_int64 (s, 2),
        .reason = text (s, 3),
        .confirmed = sqlite3_column_int (s, 4),
        .t = sqlite3_column_double (s, 5),
    };
}

static void get_free (sqlite3_stmt *s, struct hkc_row *row)
{
    row->free = (struct hkc_row_free){
        .n = sqlite3_column_int64 (s, 0),
        .life = text (s, 1),
        .jobid = sqlite3_column_int64 (s, 2),
        .ranks = text (s, 3),
        .R = text (s, 4),
        .final = sqlite3_column_int (s, 5),
    };
}

static void get_sched (sqlite3_stmt *s, struct hkc_row *row)
{
    row->sched = (struct hkc_row_sched){
        .life = text (s, 0),
        .state = sqlite3_column_int (s, 1),
        .partial_ok = sqlite3_column_int (s, 2),
        .account_spoken = sqlite3_column_int (s, 3),
        .free_n = sqlite3_column_int64 (s, 4),
        .recover = text (s, 5),
        .active = text (s, 6),
    };
}

/* In the order of core.h; allocations in order of arrival. */
static const struct {
    enum hkc_row_kind kind;
    const char *sql;
    void (*get) (sqlite3_stmt *stmt, struct hkc_row *row);
} tables[] = {
    { HKC_ROW_ALLOC,
      "SELECT alloc, jobid, userid, priority, t_submit, t_end, R, digest,"
      " queue, pid, parts_count FROM alloc ORDER BY pid",
      get_alloc },
    { HKC_ROW_STATE,
      "SELECT alloc, begun, t_first_end, done, known FROM state",
      get_state },
    { HKC_ROW_PART,
      "SELECT pid, alloc, host, phase, attempt, boot_id, invocation,"
      " start_sent, outcome, stop_signal, conflict, t_since, t_start, script,"
      " reason FROM part",
      get_part },
    { HKC_ROW_HOST,
      "SELECT host, boot_id, t_seen, drain, reasons FROM host",
      get_host },
    { HKC_ROW_CAUSE,
      "SELECT host, kind, about, reason, confirmed, t FROM cause",
      get_cause },
    { HKC_ROW_FREE,
      "SELECT n, life, jobid, ranks, R, final FROM free ORDER BY n",
      get_free },
    { HKC_ROW_SCHED,
      "SELECT life, state, partial_ok, account_spoken, free_n, recover,"
      " active FROM sched",
      get_sched },
};

int hkc_store_load (struct hkc_store *store,
                    hkc_row_f fn,
                    void *arg,
                    struct hk_error *err)
{
    for (size_t i = 0; i < sizeof (tables) / sizeof (tables[0]); i++) {
        struct hkc_row row = { .kind = tables[i].kind };
        sqlite3_stmt *stmt = NULL;
        int rc = SQLITE_OK, result = 0;
        if (sqlite3_prepare_v2 (store->db, tables[i].sql, -1, &stmt, NULL)
            != SQLITE_OK)
            return hkc_store_fail (store->db, err, store->path);
        while (result == 0 && (rc = sqlite3_step (stmt)) == SQLITE_ROW) {
            tables[i].get (stmt, &row);
            result = fn (arg, &row);
        }
        if (result == 0 && rc != SQLITE_DONE)
            result = hkc_store_fail (store->db, err, store->path);
        sqlite3_finalize (stmt);
        if (result)
            return result;
    }
    return 0;
}

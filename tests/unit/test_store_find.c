/* test_store_find.c - look-ups by index, what nodes remember, old history */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "coordinator/store/schema.h"
#include "tests/unit/folder.h"
#include "tests/unit/store_rows.h"

static char folder[64];
static char dir[128];
static struct hkc_store *store;

static int set_up (void **state)
{
    (void)state;
    if (folder_make (folder, sizeof (folder)) < 0)
        return -1;
    snprintf (dir, sizeof (dir), "%s/state", folder);
    store = store_open (dir);
    return 0;
}

static int tear_down (void **state)
{
    (void)state;
    hkc_store_close (store);
    store = NULL;
    return folder_remove (folder);
}

static void restart (void)
{
    hkc_store_close (store);
    store = store_open (dir);
}

/* An allocation of `count` hosts, its runs ended, closed at t. */
static void put_closed (
    uint64_t alloc, uint64_t jobid, uint64_t pid, int count, double t)
{
    struct hkc_row row = row_alloc (alloc, jobid, pid, count), end;
    char host[32];

    end = row_closed (&row, t);
    store_commit (store, &row, 1);
    for (int i = 0; i < count; i++) {
        snprintf (host, sizeof (host), "node%d", i);
        row = row_history (alloc, jobid, pid + i, 1, host);
        store_commit (store, &row, 1);
    }
    store_commit (store, &end, 1);
}

static uint64_t find_end (uint64_t jobid,
                          double t_submit,
                          double t_end,
                          const char *digest)
{
    return hkc_store_find_end (store, jobid, t_submit, t_end, digest);
}

static void the_same_end_of_a_closed_job_is_found (void **state)
{
    struct hkc_row open = row_alloc (30, 12, 9, 1);

    (void)state;
    put_closed (21, 10, 1, 1, 100);
    put_closed (22, 11, 2, 1, 101);
    store_commit (store, &open, 1);
    restart ();
    assert_int_equal (find_end (10, 10.25, 10.5, "d1"), 21);
    assert_int_equal (find_end (11, 11.25, 11.5, "d1"), 22);
    assert_int_equal (find_end (10, 10.25, 10.5, "d2"), 0);
    assert_int_equal (find_end (10, 10.25, 10.75, "d1"), 0);
    assert_int_equal (find_end (10, 10, 10.5, "d1"), 0);
    assert_int_equal (find_end (12, 12.25, 12.5, "d1"), 0); /* is not closed */
    assert_int_equal (find_end (0, 10.25, 10.5, "d1"), 0);
}

static void a_run_of_the_past_is_found (void **state)
{
    struct hkc_row again = row_history (21, 10, 2, 2, "node1");

    (void)state;
    put_closed (21, 10, 1, 3, 100);
    store_commit (store, &again, 1);
    restart ();
    assert_true (hkc_store_find_run (store, 21, "node0", 1));
    assert_true (hkc_store_find_run (store, 21, "node2", 1));
    assert_true (hkc_store_find_run (store, 21, "node1", 2));
    assert_false (hkc_store_find_run (store, 21, "node0", 2));
    assert_false (hkc_store_find_run (store, 21, "node3", 1));
    assert_false (hkc_store_find_run (store, 22, "node0", 1));
    assert_false (hkc_store_find_run (store, 21, "", 1));
}

static void assert_job_hosts (uint64_t jobid, const char *had, const char *want)
{
    struct hk_hostlist *hosts = hk_hostlist_decode (had, NULL);
    char *text;

    assert_non_null (hosts);
    hkc_store_job_hosts (store, jobid, hosts);
    text = hk_hostlist_encode (hosts);
    assert_string_equal (text, want);
    free (text);
    hk_hostlist_destroy (hosts);
}

static void the_hosts_of_a_job_are_found (void **state)
{
    struct hkc_row rows[] = {
        row_alloc (31, 10, 8, 2), /* the same job id again, still open */
        row_history (31, 10, 8, 1, "late0"),
        row_history (31, 10, 8, 2, "late0"),
    };

    (void)state;
    put_closed (21, 10, 1, 3, 100);
    put_closed (22, 11, 4, 4, 100);
    store_commit (store, rows, 3);
    assert_job_hosts (10, "node1", "node1,late0,node[0,2]");
    assert_job_hosts (11, "", "node[0-3]");
    assert_job_hosts (12, "login1", "login1");
}

/* ---- did the store go back in time? ---- */

static int seen (const char *instance, uint64_t start, uint64_t commit)
{
    struct hk_error err = { "" };
    int rc = hkc_store_seen (store, instance, start, commit, &err);

    if (rc < 0) {
        assert_int_equal (errno, ESTALE);
        assert_true (err.text[0]);
    }
    return rc;
}

static void what_a_node_has_seen_must_be_there (void **state)
{
    struct hkc_row row = row_alloc (11, 10, 1, 1);
    uint64_t first = hkc_store_start (store), second;
    char ours[HK_ID_BYTES];

    (void)state;
    strcpy (ours, hkc_store_instance (store));
    store_commit (store, &row, 1);
    store_commit (store, NULL, 0);
    assert_int_equal (seen (ours, first, 0), 0);
    assert_int_equal (seen (ours, first, 2), 0);
    assert_int_equal (seen (ours, first, 3), -1);
    restart ();
    second = hkc_store_start (store);
    restart ();
    for (int twice = 0; twice < 2; twice++) {
        assert_int_equal (seen (ours, first, 2), 0);
        assert_int_equal (seen (ours, first, 3), -1);
        assert_int_equal (seen (ours, second, 0), 0);
        assert_int_equal (seen (ours, second, 1), -1);
        assert_int_equal (seen (ours, hkc_store_start (store), 0), 0);
        assert_int_equal (seen (ours, hkc_store_start (store), 1), -1);
        assert_int_equal (seen (ours, first ^ 1, 0), -1);
        assert_int_equal (seen (ours, 0, 0), -1);
    }
    /* of another instance nothing follows, nor of a node that saw none */
    assert_int_equal (seen ("ffffffffffffffffffffffffffffffff", 1, 99), 0);
    assert_int_equal (seen (NULL, 0, 0), 0);
}

/* The whole story: a backup is taken, the store goes on, the backup is put
 * back.
 */
static void a_backup_that_was_put_back_is_noticed (void **state)
{
    struct hkc_row row = row_alloc (11, 10, 1, 1);
    uint64_t start = hkc_store_start (store), later;
    char sql[256], path[200], ours[HK_ID_BYTES];

    (void)state;
    strcpy (ours, hkc_store_instance (store));
    snprintf (path, sizeof (path), "%s/backup", folder);
    snprintf (sql, sizeof (sql), "VACUUM INTO '%s'", path);
    assert_int_equal (sqlite3_exec (store->db, sql, NULL, NULL, NULL),
                      SQLITE_OK);
    store_commit (store, &row, 1);
    restart ();
    later = hkc_store_start (store);
    hkc_store_close (store);
    assert_int_equal (chmod (path, 0600), 0);
    snprintf (sql, sizeof (sql), "%s/hk.db", dir);
    assert_int_equal (rename (path, sql), 0);
    store = store_open (dir);
    assert_int_equal (seen (ours, start, 0), 0);
    assert_int_equal (seen (ours, start, 1), -1);
    assert_int_equal (seen (ours, later, 0), -1);
}

/* ---- trim ---- */

static void old_history_is_deleted_and_no_other (void **state)
{
    struct hkc_row open[] = {
        row_alloc (31, 13, 20, 1),
        row_history (31, 13, 20, 1, "node0"),
    };

    (void)state;
    put_closed (21, 10, 1, 3, 100);
    put_closed (22, 11, 4, 2, 300);
    put_closed (23, 12, 6, 4, 200);
    store_commit (store, open, 2);
    assert_int_equal (hkc_store_trim (store, 100, 10, NULL), 0);
    assert_int_equal (hkc_store_trim (store, 250, 1, NULL), 1);
    assert_int_equal (store_count (store, "closed WHERE alloc = 21"), 0);
    assert_int_equal (store_count (store, "closed"), 2);
    assert_int_equal (hkc_store_trim (store, 250, 10, NULL), 1);
    assert_int_equal (hkc_store_trim (store, 250, 10, NULL), 0);
    restart ();
    assert_int_equal (store_count (store, "closed"), 1);
    assert_int_equal (store_count (store, "history"), 3);
    assert_int_equal (store_count (store, "history WHERE pid IN (4, 5, 20)"),
                      3);
    assert_int_equal (store_count (store, "script"), 6);
    assert_int_equal (find_end (10, 10.25, 10.5, "d1"), 0);
    assert_int_equal (find_end (11, 11.25, 11.5, "d1"), 22);
    assert_int_equal (hkc_store_trim (store, 250, 0, NULL), 0);
    assert_int_equal (hkc_store_trim (store, 1000, 1 << 30, NULL), 1);
}

static void trimming_takes_a_moment_however_large (void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct hkc_row row = row_alloc (21 + i, i, 1 + i * 16384, 16384);
        struct hkc_row end = row_closed (&row, 100 + i);
        store_commit (store, &row, 1);
        store_commit (store, &end, 1);
    }
    assert_int_equal (hkc_store_trim (store, 1000, 50, NULL), 1);
    assert_int_equal (hkc_store_trim (store, 1000, 50, NULL), 1);
    assert_int_equal (store_count (store, "closed"), 2);
}

/* ---- plans ---- */

static void plan_of (const char *sql, char *plan, size_t size)
{
    sqlite3_stmt *stmt;
    char *explain = sqlite3_mprintf ("EXPLAIN QUERY PLAN %s", sql);

    assert_int_equal (sqlite3_prepare_v2 (store->db, explain, -1, &stmt, NULL),
                      SQLITE_OK);
    plan[0] = '\0';
    while (sqlite3_step (stmt) == SQLITE_ROW) {
        size_t n = strlen (plan);
        snprintf (plan + n,
                  size - n,
                  "%s; ",
                  (const char *)sqlite3_column_text (stmt, 3));
    }
    sqlite3_finalize (stmt);
    sqlite3_free (explain);
}

/* No table is read from end to end, and nothing is sorted but a job's few
 * allocations.
 */
static void assert_by_index (const char *sql)
{
    char plan[1024];

    plan_of (sql, plan, sizeof (plan));
    for (const char *p = plan; (p = strstr (p, "SCAN ")); p++)
        if (strncmp (p, "SCAN c;", 7) != 0 && strncmp (p, "SCAN meta", 9) != 0)
            fail_msg ("%s:\n%s", sql, plan);
    if (strstr (plan, "TEMP B-TREE") && !strstr (sql, "UNION ALL"))
        fail_msg ("%s:\n%s", sql, plan);
}

static void assert_uses (const char *sql, const char *index)
{
    char plan[1024];

    plan_of (sql, plan, sizeof (plan));
    if (!strstr (plan, index))
        fail_msg ("%s does not use %s:\n%s", sql, index, plan);
}

static void every_statement_goes_by_index (void **state)
{
    (void)state;
    for (int i = 0; i < HKC_STMT_COUNT; i++)
        if (i != HKC_STMT_BEGIN && i != HKC_STMT_COMMIT)
            assert_by_index (hkc_stmt_sql[i]);
    for (int i = 0; i < HKC_HISTORY_COUNT; i++)
        assert_by_index (hkc_history_sql[i]);
    assert_uses (hkc_stmt_sql[HKC_STMT_FIND_END], "closed_job (jobid=?)");
    assert_uses (hkc_stmt_sql[HKC_STMT_FIND_RUN],
                 "history_run (alloc=? AND host=?)");
    assert_uses (hkc_stmt_sql[HKC_STMT_JOB_HOSTS], "history_run (alloc=?)");
    assert_uses (hkc_stmt_sql[HKC_STMT_OLD], "closed_time (t_closed<?)");
    assert_uses (hkc_history_sql[HKC_HISTORY_RANGES], "alloc_job (jobid=?)");
    assert_uses (hkc_history_sql[HKC_HISTORY_RUNS],
                 "PRIMARY KEY (pid>? AND pid<?)");
}

#define A_TEST(name) cmocka_unit_test_setup_teardown (name, set_up, tear_down)

int main (void)
{
    const struct CMUnitTest tests[] = {
        A_TEST (the_same_end_of_a_closed_job_is_found),
        A_TEST (a_run_of_the_past_is_found),
        A_TEST (the_hosts_of_a_job_are_found),
        A_TEST (what_a_node_has_seen_must_be_there),
        A_TEST (a_backup_that_was_put_back_is_noticed),
        A_TEST (old_history_is_deleted_and_no_other),
        A_TEST (trimming_takes_a_moment_however_large),
        A_TEST (every_statement_goes_by_index),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}

/* test_reader.c - pages of history from a thread of its own */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "coordinator/store/schema.h"
#include "tests/unit/folder.h"
#include "tests/unit/store_rows.h"
#include "proto/clock.h"

static char folder[64];
static struct hkc_store *store;
static struct hkc_reader *reader;

static int set_up (void **state)
{
    struct hk_error err;
    char dir[128];

    (void)state;
    if (folder_make (folder, sizeof (folder)) < 0)
        return -1;
    snprintf (dir, sizeof (dir), "%s/state", folder);
    store = store_open (dir);
    reader = hkc_reader_create (hkc_store_path (store), &err);
    return reader ? 0 : -1;
}

static int tear_down (void **state)
{
    (void)state;
    hkc_reader_destroy (reader);
    hkc_store_close (store);
    return folder_remove (folder);
}

/* `count` runs of one allocation on node0, node1, ..., closed if t > 0. */
static void put_alloc (
    uint64_t alloc, uint64_t jobid, uint64_t pid, int count, double t)
{
    struct hkc_row *rows = calloc (count + 2, sizeof (*rows));
    char (*hosts)[32] = calloc (count, sizeof (*hosts));

    assert_non_null (rows);
    assert_non_null (hosts);
    rows[0] = row_alloc (alloc, jobid, pid, count);
    for (int i = 0; i < count; i++) {
        snprintf (hosts[i], sizeof (hosts[i]), "node%d", i);
        rows[i + 1] = row_history (alloc, jobid, pid + i, 1, hosts[i]);
        if (count > 10) /* scripts take their time */
            rows[i + 1].history.scripts_count = 0;
    }
    rows[count + 1] = row_closed (&rows[0], t);
    store_commit (store, rows, count + (t > 0 ? 2 : 1));
    free (rows);
    free (hosts);
}

static struct hkc_reader_query query_of (uint64_t jobid, const char *hosts)
{
    return (struct hkc_reader_query){
        .tag = 77,
        .jobid = jobid,
        .hosts = hosts ? strdup (hosts) : NULL,
        .deadline_ms = hk_boot_ms () + 20000,
    };
}

static struct hkc_reader_answer answer_get (void)
{
    struct pollfd p = { .fd = hkc_reader_fd (reader), .events = POLLIN };
    struct hkc_reader_answer answer;

    for (;;) {
        if (hkc_reader_next (reader, &answer))
            return answer;
        if (poll (&p, 1, 30000) <= 0)
            fail_msg ("no answer");
    }
}

static struct hkc_reader_answer ask (struct hkc_reader_query query)
{
    struct hkc_reader_answer answer;

    assert_int_equal (hkc_reader_ask (reader, &query), 0);
    answer = answer_get ();
    assert_int_equal (answer.tag, 77);
    return answer;
}

static void assert_page (struct hkc_reader_answer answer,
                         const char *want,
                         uint64_t next)
{
    char got[4096] = "";
    json_t *row;
    size_t i;

    if (!answer.rows)
        fail_msg ("%s", answer.err.text);
    json_array_foreach (answer.rows, i, row)
    {
        size_t n = strlen (got);
        snprintf (got + n,
                  sizeof (got) - n,
                  "%s%lld %s.%lld",
                  n ? ", " : "",
                  json_integer_value (json_object_get (row, "alloc")),
                  json_string_value (json_object_get (row, "host")),
                  json_integer_value (json_object_get (row, "attempt")));
    }
    json_decref (answer.rows);
    assert_string_equal (got, want);
    assert_int_equal (answer.next, next);
}

static void history_is_told_newest_first (void **state)
{
    (void)state;
    assert_page (ask (query_of (0, NULL)), "", 0);
    put_alloc (21, 10, 1, 2, 100);
    put_alloc (22, 11, 3, 1, 0);
    assert_page (
        ask (query_of (0, NULL)), "22 node0.1, 21 node1.1, 21 node0.1", 0);
}

static void pages_follow_each_other_without_gap (void **state)
{
    struct hkc_row again[] = {
        row_history (21, 10, 3, 2, "node2"),
        row_history (21, 10, 3, 3, "node2"),
    };
    struct hkc_reader_query q;

    (void)state;
    put_alloc (21, 10, 1, 5, 100);
    store_commit (store, again, 2);
    for (int by_job = 0; by_job < 2; by_job++) {
        q = query_of (by_job ? 10 : 0, NULL);
        q.limit = 2;
        assert_page (ask (q), "21 node4.1, 21 node3.1", 4);
        q.after = 4; /* the attempts of one run are never parted */
        assert_page (ask (q), "21 node2.3, 21 node2.2, 21 node2.1", 3);
        q.after = 3;
        assert_page (ask (q), "21 node1.1, 21 node0.1", 0);
        q.after = 1;
        assert_page (ask (q), "", 0);
    }
}

static void a_job_s_runs_are_found_also_where_its_id_came_again (void **state)
{
    struct hkc_reader_query q;

    (void)state;
    put_alloc (21, 10, 1, 2, 100);
    put_alloc (22, 11, 3, 2, 101);
    put_alloc (23, 10, 5, 2, 0);
    assert_page (ask (query_of (10, NULL)),
                 "23 node1.1, 23 node0.1, 21 node1.1, 21 node0.1",
                 0);
    assert_page (ask (query_of (11, NULL)), "22 node1.1, 22 node0.1", 0);
    assert_page (ask (query_of (12, NULL)), "", 0);
    q = query_of (10, NULL);
    q.limit = 3;
    assert_page (ask (q), "23 node1.1, 23 node0.1, 21 node1.1", 2);
    q.after = 2;
    assert_page (ask (q), "21 node0.1", 0);
    q.after = 5;
    q.limit = 2;
    assert_page (ask (q), "21 node1.1, 21 node0.1", 0);
}

static void hosts_are_chosen_by_list (void **state)
{
    struct hkc_reader_query q;
    struct hkc_reader_answer answer;

    (void)state;
    put_alloc (21, 10, 1, 5, 100);
    put_alloc (22, 11, 6, 5, 100);
    assert_page (ask (query_of (0, "node[1-2],other")),
                 "22 node2.1, 22 node1.1, 21 node2.1, 21 node1.1",
                 0);
    assert_page (ask (query_of (11, "node4")), "22 node4.1", 0);
    q = query_of (0, "node3");
    q.limit = 1;
    assert_page (ask (q), "22 node3.1", 9);
    answer = ask (query_of (0, "node[1-"));
    assert_null (answer.rows);
    assert_string_equal (answer.err.text,
                         "host list: expected ']' at character 8");
}

/* Guests see neither reasons nor scripts. */
static void text_is_told_when_it_is_asked_for (void **state)
{
    struct hkc_reader_query q = query_of (10, NULL);
    struct hkc_reader_answer answer;
    json_t *row;
    char *text;

    (void)state;
    put_alloc (21, 10, 1, 1, 100);
    answer = ask (q);
    row = json_array_get (answer.rows, 0);
    text = json_dumps (row, JSON_SORT_KEYS | JSON_REAL_PRECISION (6));
    assert_string_equal (text,
                         "{\"alloc\": 21, \"attempt\": 1, \"host\": \"node0\", "
                         "\"jobid\": 10, \"outcome\": \"signal\", "
                         "\"t_end\": 3.5, \"t_start\": 1.5, "
                         "\"userid\": 1000}");
    free (text);
    json_decref (answer.rows);
    q.text = true;
    answer = ask (q);
    row = json_array_get (answer.rows, 0);
    assert_string_equal (json_string_value (json_object_get (row, "reason")),
                         "killed KILL");
    text = json_dumps (json_object_get (row, "scripts"),
                       JSON_SORT_KEYS | JSON_REAL_PRECISION (6));
    assert_string_equal (text,
                         "[{\"code\": 0, \"name\": \"10-clean\", "
                         "\"signal\": 0, \"t_end\": 2.5, \"t_start\": 1.5}, "
                         "{\"code\": -1, \"name\": \"20-check\", "
                         "\"signal\": 9, \"t_end\": 3.5, \"t_start\": 2.5}]");
    free (text);
    json_decref (answer.rows);
}

/* A cut character, an infinite time, an outcome of a newer version: the row is
 * told all the same.
 */
static void a_row_is_not_lost_for_what_json_cannot_say (void **state)
{
    static const struct hk_script_result odd = { "n\xff", 0, 0, 1e308 * 10, 2 };
    struct hkc_row row = row_history (21, 10, 1, 1, "node0");
    struct hkc_reader_query q = query_of (0, NULL);
    struct hkc_reader_answer answer;
    json_t *got;
    char *text;

    (void)state;
    row.history.reason = "caf\xc3";
    row.history.outcome = 99;
    row.history.t_end = 1e308 * 10;
    row.history.scripts = &odd;
    row.history.scripts_count = 1;
    store_commit (store, &row, 1);
    q.text = true;
    answer = ask (q);
    assert_int_equal (json_array_size (answer.rows), 1);
    got = json_array_get (answer.rows, 0);
    assert_string_equal (json_string_value (json_object_get (got, "reason")),
                         "caf\\xc3");
    assert_true (json_real_value (json_object_get (got, "t_end")) == 0);
    assert_non_null (text = json_dumps (got, 0));
    assert_non_null (strstr (text, "n\\\\xff"));
    free (text);
    json_decref (answer.rows);
}

/* ---- time ---- */

static void put_many (void)
{
    for (int i = 0; i < 20; i++)
        put_alloc (100 + i, 10 + i, 1 + (uint64_t)i * 2000, 2000, 100);
}

/* Time is up before all was read: what was found is told, and where to go on;
 * all pages together are the whole.
 */
static void a_search_that_is_long_is_told_in_pages (void **state)
{
    struct hkc_reader_query q;
    uint64_t after = 0;
    size_t found = 0;
    int pages = 0;

    (void)state;
    put_many ();
    do {
        struct hkc_reader_answer answer;
        q = query_of (0, "node5");
        q.after = after;
        q.deadline_ms = hk_boot_ms () + 4;
        answer = ask (q);
        if (!answer.rows) { /* not even a start was made */
            assert_non_null (strstr (answer.err.text, "took too long"));
            continue;
        }
        pages++;
        found += json_array_size (answer.rows);
        json_decref (answer.rows);
        assert_true (answer.next == 0 || after == 0 || answer.next < after);
        after = answer.next;
    } while (after);
    assert_int_equal (found, 20);
    assert_true (pages > 1);
}

static void a_deadline_that_is_over_ends_it (void **state)
{
    struct hkc_reader_query q = query_of (0, NULL);
    struct hkc_reader_answer answer;

    (void)state;
    put_many ();
    q.deadline_ms = hk_boot_ms () - 1;
    q.hosts = strdup ("none");
    answer = ask (q);
    /* within the first steps nothing is looked at: a page may still come */
    assert_true (!answer.rows || answer.next > 0);
    json_decref (answer.rows);
}

static void too_many_questions_are_refused (void **state)
{
    int asked = 0, answered = 0;
    struct hkc_reader_query q;

    (void)state;
    put_many ();
    do
        q = query_of (0, "node5");
    while (hkc_reader_ask (reader, &q) == 0 && ++asked < 1000);
    assert_int_equal (errno, EAGAIN);
    assert_true (asked >= 64 && asked < 1000);
    while (answered < asked) {
        struct hkc_reader_answer answer = answer_get ();
        assert_non_null (answer.rows);
        json_decref (answer.rows);
        answered++;
    }
    assert_page (ask (query_of (0, "none")), "", 0);
}

static int64_t elapsed_ms (int64_t since)
{
    return hk_boot_ms () - since;
}

/* The end of the program does not wait for a search, nor lose memory. */
static void it_ends_at_once_in_the_middle_of_all (void **state)
{
    struct hk_error err;
    int64_t since;

    (void)state;
    put_many ();
    for (int i = 0; i < 50; i++) {
        struct hkc_reader_query q = query_of (0, "none");
        assert_int_equal (hkc_reader_ask (reader, &q), 0);
    }
    since = hk_boot_ms ();
    hkc_reader_destroy (reader);
    assert_true (elapsed_ms (since) < 2000);
    hkc_reader_destroy (NULL);
    reader = hkc_reader_create (hkc_store_path (store), &err);
    assert_non_null (reader);
    assert_null (hkc_reader_create ("/nowhere/hk.db", &err));
    assert_non_null (strstr (err.text, "/nowhere/hk.db: unable to open"));
}

/* A search does not hold up the writer, and sees whole commits: each
 * allocation with all its runs or not at all.
 */
static void the_writer_goes_on_meanwhile (void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        struct hkc_reader_query q = query_of (0, NULL);
        struct hkc_reader_answer answer;
        q.limit = HKC_PAGE_ROWS;
        assert_int_equal (hkc_reader_ask (reader, &q), 0);
        put_alloc (100 + i, 10 + i, 1 + (uint64_t)i * 8, 8, i % 2 ? 100 : 0);
        answer = answer_get ();
        assert_non_null (answer.rows);
        assert_int_equal (json_array_size (answer.rows) % 8, 0);
        json_decref (answer.rows);
    }
    assert_int_equal (hkc_store_refused (store), 0);
}

static void a_damaged_history_is_said (void **state)
{
    struct hkc_reader_answer answer;
    char path[200], junk[4096];
    FILE *f;

    (void)state;
    put_alloc (21, 10, 1, 2000, 100);
    assert_int_equal (
        sqlite3_exec (
            store->db, "PRAGMA wal_checkpoint (TRUNCATE)", NULL, NULL, NULL),
        SQLITE_OK);
    snprintf (path, sizeof (path), "%s", hkc_store_path (store));
    f = fopen (path, "r+e");
    assert_non_null (f);
    memset (junk, 0x5a, sizeof (junk));
    fseek (f, 4096 * 30, SEEK_SET);
    while (ftell (f) < 4096 * 60)
        assert_int_equal (fwrite (junk, sizeof (junk), 1, f), 1);
    fclose (f);
    answer = ask (query_of (0, NULL));
    assert_null (answer.rows);
    assert_non_null (strstr (answer.err.text, "is damaged"));
}

#define A_TEST(name) cmocka_unit_test_setup_teardown (name, set_up, tear_down)

int main (void)
{
    const struct CMUnitTest tests[] = {
        A_TEST (history_is_told_newest_first),
        A_TEST (pages_follow_each_other_without_gap),
        A_TEST (a_job_s_runs_are_found_also_where_its_id_came_again),
        A_TEST (hosts_are_chosen_by_list),
        A_TEST (text_is_told_when_it_is_asked_for),
        A_TEST (a_row_is_not_lost_for_what_json_cannot_say),
        A_TEST (a_search_that_is_long_is_told_in_pages),
        A_TEST (a_deadline_that_is_over_ends_it),
        A_TEST (too_many_questions_are_refused),
        A_TEST (it_ends_at_once_in_the_middle_of_all),
        A_TEST (the_writer_goes_on_meanwhile),
        A_TEST (a_damaged_history_is_said),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}

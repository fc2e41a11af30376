/* test_store_write.c - what is committed stays, what is not leaves no trace */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "coordinator/store/schema.h"
#include "tests/unit/store_dir.h"
#include "tests/unit/store_rows.h"

static struct hkc_store *again (struct hkc_store *store)
{
    hkc_store_close (store);
    return store_open (dir);
}

static void what_was_committed_is_there_after_a_restart (void **state)
{
    struct hkc_store *store = store_open (dir);
    struct hkc_row rows[16];

    (void)state;
    store_commit (store, rows, all_rows (rows));
    assert_store_text (store, all_text);
    assert_int_equal (hkc_store_commit_number (store), 1);
    store = again (store);
    assert_store_text (store, all_text);
    assert_int_equal (hkc_store_commit_number (store), 0);
    assert_int_equal (store_count (store, "history"), 1);
    assert_int_equal (store_count (store, "script"), 2);
    assert_int_equal (store_count (store,
                                   "script WHERE name = '20-check' AND "
                                   "seq = 1 AND code = -1 AND signal = 9"),
                      1);
    assert_int_equal (store_count (store,
                                   "audit WHERE userid = 1000 AND "
                                   "what = 'kill' AND reason = 'it hung'"),
                      1);
    hkc_store_close (store);
}

static void the_last_state_of_a_row_counts (void **state)
{
    struct hkc_store *store = store_open (dir);
    struct hkc_row rows[16];
    size_t n = all_rows (rows);

    (void)state;
    store_commit (store, rows, n);
    rows[2].part.phase = HKC_ENDED;
    rows[4].host.reasons = "c";
    rows[5].kind = HKC_ROW_CAUSE_GONE;
    rows[6].kind = HKC_ROW_FREE_GONE;
    rows[7].sched.free_n = 9;
    store_commit (store, rows + 1, 7);
    store = again (store);
    assert_int_equal (store_count (store, "part WHERE phase = 4"), 1);
    assert_int_equal (store_count (store, "part"), 2);
    assert_int_equal (store_count (store, "host WHERE reasons = 'c'"), 1);
    assert_int_equal (store_count (store, "cause"), 0);
    assert_int_equal (store_count (store, "free"), 0);
    assert_int_equal (store_count (store, "sched WHERE free_n = 9"), 1);
    hkc_store_close (store);
}

static void a_closed_allocation_leaves_only_its_history (void **state)
{
    struct hkc_store *store = store_open (dir);
    struct hkc_row rows[16], other[3], closed;

    (void)state;
    store_commit (store, rows, all_rows (rows));
    other[0] = row_alloc (12, 10, 3, 1);
    other[1] = row_state (12, "");
    other[2] = row_part (12, 3, "node2");
    store_commit (store, other, 3);
    closed = row_closed (&rows[0], 20);
    store_commit (store, &closed, 1);
    store = again (store);
    assert_int_equal (store_count (store, "alloc WHERE alloc = 12"), 1);
    assert_int_equal (store_count (store, "alloc"), 1);
    assert_int_equal (store_count (store, "state"), 1);
    assert_int_equal (store_count (store, "part"), 1);
    assert_int_equal (store_count (store, "history"), 1);
    assert_int_equal (store_count (store, "closed WHERE t_closed = 20"), 1);
    /* dropped: the job runs again, nothing of it was ever there */
    closed = row_closed (&other[0], 0);
    closed.kind = HKC_ROW_DROPPED;
    store_commit (store, &closed, 1);
    assert_int_equal (store_count (store, "alloc"), 0);
    assert_int_equal (store_count (store, "part"), 0);
    assert_int_equal (store_count (store, "closed"), 1);
    hkc_store_close (store);
}

static void a_rollback_leaves_no_trace (void **state)
{
    struct hkc_store *store = store_open (dir);
    struct hkc_row rows[16];
    size_t n = all_rows (rows);

    (void)state;
    assert_int_equal (hkc_store_begin (store, NULL), 0);
    for (size_t i = 0; i < n; i++)
        assert_int_equal (hkc_store_put (store, &rows[i], NULL), 0);
    hkc_store_rollback (store);
    hkc_store_rollback (store); /* there is none: nothing happens */
    assert_store_text (store, "");
    assert_int_equal (hkc_store_commit_number (store), 0);
    store_commit (store, rows, n);
    assert_store_text (store, all_text);
    hkc_store_close (store);
}

static void a_run_has_one_outcome_the_first (void **state)
{
    struct hkc_store *store = store_open (dir);
    struct hkc_row first = row_history (11, 10, 1, 1, "node0");
    struct hkc_row second = first, other = row_history (11, 10, 2, 1, "node1");
    static const struct hk_script_result more[] = {
        { "10", 0, 0, 1, 2 },
        { "20", 0, 0, 1, 2 },
        { "30", 0, 0, 1, 2 },
    };
    struct hkc_row rows[2];

    (void)state;
    store_commit (store, &first, 1);
    second.history.outcome = HK_OUTCOME_SUCCESS;
    second.history.scripts = more;
    second.history.scripts_count = 3;
    rows[0] = second;
    rows[1] = other;
    store_commit (store, rows, 2); /* what stands beside it is not lost */
    assert_int_equal (hkc_store_refused (store), 1);
    assert_int_equal (store_count (store,
                                   "history WHERE pid = 1 AND outcome ="
                                   " 3"),
                      1);
    assert_int_equal (store_count (store, "script WHERE pid = 1"), 2);
    assert_int_equal (store_count (store, "history WHERE pid = 2"), 1);
    /* another attempt is another run */
    second.history.attempt = 2;
    store_commit (store, &second, 1);
    assert_int_equal (store_count (store, "script WHERE pid = 1"), 5);
    hkc_store_close (store);
}

static void a_row_that_cannot_be_is_set_aside (void **state)
{
    struct hkc_store *store = store_open (dir);
    struct hkc_row rows[] = {
        row_alloc (11, 10, 1, 1),
        row_alloc (12, 11, 1, 1), /* the same pid */
        row_part (11, 1, "node0"),
        row_part (11, 2, "node1"),
    };
    struct hkc_row none = { .kind = 99 };
    struct hk_error err;

    (void)state;
    rows[2].part.t_since = 0.0 / 0.0; /* no number: no value */
    store_commit (store, rows, 4);
    assert_int_equal (hkc_store_refused (store), 2);
    assert_int_equal (store_count (store, "alloc"), 1);
    assert_int_equal (store_count (store, "part"), 1);
    assert_int_equal (store_try (store, &none, 1, &err), -1);
    assert_int_equal (errno, EINVAL);
    hkc_store_close (store);
}

static void a_pid_is_never_used_again (void **state)
{
    struct hkc_store *store = store_open (dir);
    struct hkc_row a = row_alloc (11, 10, 1, 4), b = row_alloc (12, 11, 5, 2);
    struct hkc_row rows[2];

    (void)state;
    store_commit (store, &a, 1);
    store_commit (store, &b, 1);
    assert_int_equal (hkc_store_next_pid (store), 7);
    rows[0] = row_closed (&a, 1);
    rows[1] = row_closed (&b, 1);
    rows[1].kind = HKC_ROW_DROPPED;
    store_commit (store, rows, 2);
    assert_int_equal (hkc_store_trim (store, 100, 10, NULL), 1);
    assert_int_equal (store_count (store, "closed"), 0);
    store = again (store);
    assert_int_equal (hkc_store_next_pid (store), 7);
    hkc_store_close (store);
}

static void one_that_was_replaced_writes_nothing_more (void **state)
{
    struct hkc_store *store = store_open (dir), *next;
    struct hkc_row a = row_alloc (11, 10, 1, 1), b = row_alloc (12, 11, 2, 1);
    struct hkc_row closed;
    char path[256], host[256] = "";
    struct hk_error err;

    (void)state;
    store_commit (store, &a, 1);
    closed = row_closed (&a, 1);
    store_commit (store, &closed, 1);
    /* somebody takes the lock away, and starts another */
    snprintf (path, sizeof (path), "%s/lock", dir);
    assert_int_equal (unlink (path), 0);
    next = store_open (dir);
    assert_int_equal (store_try (store, &b, 1, &err), -1);
    assert_int_equal (errno, ESTALE);
    assert_non_null (strstr (err.text,
                             "another coordinator has taken the "
                             "store, on "));
    gethostname (host, sizeof (host) - 1);
    assert_non_null (strstr (err.text, host));
    assert_int_equal (hkc_store_trim (store, 100, 10, &err), -1);
    assert_int_equal (errno, ESTALE);
    assert_int_equal (store_count (next, "alloc"), 0);
    assert_int_equal (store_count (next, "closed"), 1);
    store_commit (next, &b, 1);
    hkc_store_close (store);
    hkc_store_close (next);
}

#define A_TEST(name) \
    cmocka_unit_test_setup_teardown (name, dir_set_up, dir_tear_down)

int main (void)
{
    const struct CMUnitTest tests[] = {
        A_TEST (what_was_committed_is_there_after_a_restart),
        A_TEST (the_last_state_of_a_row_counts),
        A_TEST (a_closed_allocation_leaves_only_its_history),
        A_TEST (a_rollback_leaves_no_trace),
        A_TEST (a_run_has_one_outcome_the_first),
        A_TEST (a_row_that_cannot_be_is_set_aside),
        A_TEST (a_pid_is_never_used_again),
        A_TEST (one_that_was_replaced_writes_nothing_more),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}

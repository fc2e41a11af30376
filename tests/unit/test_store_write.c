/* test_store_write.c - what is committed stays, what is not leaves no trace */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "coordinator/store/schema.h"
#include "tests/unit/faulty_vfs.h"
#include "tests/unit/folder.h"
#include "tests/unit/fuse_folder.h"
#include "tests/unit/store_rows.h"

static char folder[64];
static char dir[128];

static int set_up (void **state)
{
    (void)state;
    faulty_vfs_end ();
    if (folder_make (folder, sizeof (folder)) < 0)
        return -1;
    snprintf (dir, sizeof (dir), "%s/state", folder);
    return 0;
}

static int tear_down (void **state)
{
    (void)state;
    return folder_remove (folder);
}

static struct hkc_store *again (struct hkc_store *store)
{
    hkc_store_close (store);
    return store_open (dir);
}

/* One of each kind. */
static size_t all_rows (struct hkc_row *rows)
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

static const char all_text[] =
    "alloc 11 job 10 uid 1000 priority 16 submit 10.25 end 10.5 "
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

/* ---- the disk ---- */

static struct hkc_row burst[200];

static size_t burst_rows (void)
{
    size_t n = 0;

    for (int i = 0; i < 50; i++) {
        burst[n++] = row_alloc (100 + i, 10 + i, 100 + i, 1);
        burst[n++] = row_state (100 + i, "");
        burst[n++] = row_part (100 + i, 100 + i, "node0");
        burst[n++] = row_history (100 + i, 10 + i, 100 + i, 1, "node0");
    }
    return n;
}

/* Whatever operation fails: the batch leaves no trace, and the same batch goes
 * through as soon as the disk does its work again.
 */
static void fails_anywhere (enum faulty_kind kind, int errnum)
{
    size_t n = burst_rows ();
    long at = 0;
    bool failed;

    do {
        struct hkc_store *store;
        struct hkc_row rows[16];
        struct hk_error err;
        folder_remove (dir);
        store = store_open (dir);
        store_commit (store, rows, all_rows (rows));
        faulty_vfs_fail_at (++at, kind);
        if (store_try (store, burst, n, &err) < 0) {
            failed = faulty_vfs_end ();
            assert_true (failed);
            if (errno != errnum)
                fail_msg ("operation %ld: errno %d: %s", at, errno, err.text);
            assert_int_equal (hkc_store_commit_number (store), 1);
            assert_store_text (store, all_text);
            store_commit (store, burst, n);
        } else
            failed = faulty_vfs_end ();
        assert_int_equal (hkc_store_commit_number (store), 2);
        assert_int_equal (hkc_store_refused (store), 0);
        store = again (store);
        assert_int_equal (store_count (store, "part"), 52);
        assert_int_equal (store_count (store, "history"), 51);
        hkc_store_close (store);
    } while (failed);
    assert_true (at > 10);
}

static void a_batch_that_fails_anywhere_is_tried_again (void **state)
{
    (void)state;
    fails_anywhere (FAULTY_IO, EIO);
    fails_anywhere (FAULTY_FULL, ENOSPC);
    fails_anywhere (FAULTY_READ_ONLY, EROFS);
}

/* What was committed is there after a crash at any operation; the batch that
 * was under way is there whole or not at all.
 */
static void a_crash_anywhere_loses_nothing_that_was_told (void **state)
{
    size_t n = burst_rows ();
    long at = 0;
    bool failed;

    (void)state;
    do {
        struct hkc_store *store;
        struct hkc_row rows[16];
        int rc;
        long parts;
        folder_remove (dir);
        store = store_open (dir);
        store_commit (store, rows, all_rows (rows));
        faulty_vfs_fail_at (++at, FAULTY_CRASH);
        rc = store_try (store, burst, n, NULL);
        hkc_store_close (store);
        failed = faulty_vfs_end ();
        store = store_open (dir);
        parts = store_count (store, "part");
        assert_true (parts == 52 || (rc < 0 && parts == 2));
        assert_int_equal (store_count (store, "history"), parts - 1);
        assert_int_equal (hkc_store_next_pid (store), parts == 52 ? 150 : 3);
        hkc_store_close (store);
    } while (failed);
    assert_true (at > 10);
}

static void a_start_that_fails_anywhere_can_be_tried_again (void **state)
{
    struct hkc_store *store;
    struct hk_error err;
    long at = 0;

    (void)state;
    for (;;) {
        folder_remove (dir);
        at++;
        faulty_vfs_fail_at (at, at % 2 ? FAULTY_IO : FAULTY_CRASH);
        store = hkc_store_open (dir, &err);
        if (!faulty_vfs_end ())
            break; /* there are no more operations */
        hkc_store_close (store);
        store = store_open (dir);
        assert_store_text (store, "");
        assert_true (store_count (store, "start") <= 2);
        hkc_store_close (store);
    }
    assert_true (at > 10);
    assert_non_null (store);
    hkc_store_close (store);
}

/* The same on real file systems. */

static bool have_mounts;

static void a_full_disk_is_waited_out (void **state)
{
    struct hkc_store *store;
    struct hkc_row row;
    struct hk_error err;
    int n = 0;

    (void)state;
    assert_int_equal (mkdir (dir, 0700), 0);
    if (!have_mounts
        || mount ("test", dir, "tmpfs", 0, "size=512k,mode=0700") < 0) {
        print_message ("# no tmpfs here: %s\n", strerror (errno));
        return;
    }
    store = store_open (dir);
    do {
        n++;
        row = row_history (n, n, n, 1, "node0");
    } while (n < 10000 && store_try (store, &row, 1, &err) == 0);
    assert_int_equal (errno, ENOSPC);
    assert_true (n > 10 && n < 10000);
    assert_int_equal (store_count (store, "history"), n - 1);
    assert_int_equal (store_try (store, &row, 1, &err), -1);
    assert_int_equal (mount (NULL, dir, NULL, MS_REMOUNT, "size=8m"), 0);
    store_commit (store, &row, 1);
    assert_int_equal (hkc_store_commit_number (store), n);
    store = again (store);
    assert_int_equal (store_count (store, "history"), n);
    hkc_store_close (store);
    assert_int_equal (umount2 (dir, MNT_DETACH), 0);
}

static void what_the_system_says_is_told (void **state)
{
    struct hkc_store *store = store_open (dir);
    struct rlimit old, none = { 0, 0 };
    struct hkc_row row = row_alloc (11, 10, 1, 1);
    struct hk_error err;
    int rc, errnum;

    (void)state;
    assert_int_equal (getrlimit (RLIMIT_FSIZE, &old), 0);
    none.rlim_max = old.rlim_max;
    signal (SIGXFSZ, SIG_IGN);
    assert_int_equal (setrlimit (RLIMIT_FSIZE, &none), 0);
    rc = store_try (store, &row, 1, &err);
    errnum = errno;
    assert_int_equal (setrlimit (RLIMIT_FSIZE, &old), 0);
    assert_int_equal (rc, -1);
    assert_int_equal (errnum, EFBIG);
    assert_non_null (strstr (err.text, "disk I/O error: File too large"));
    store_commit (store, &row, 1);
    hkc_store_close (store);
}

/* An admin looks with a program of his own, and holds it for a moment. */
static void a_lock_of_another_program_is_waited_out (void **state)
{
    struct hkc_store *store = store_open (dir);
    struct hkc_row row = row_alloc (11, 10, 1, 1);
    struct hk_error err;
    sqlite3 *db;

    (void)state;
    assert_int_equal (sqlite3_open (hkc_store_path (store), &db), SQLITE_OK);
    assert_int_equal (sqlite3_exec (db, "BEGIN IMMEDIATE", NULL, NULL, NULL),
                      SQLITE_OK);
    assert_int_equal (store_try (store, &row, 1, &err), -1);
    assert_int_equal (errno, EBUSY);
    assert_int_equal (sqlite3_exec (db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    store_commit (store, &row, 1);
    sqlite3_close (db);
    hkc_store_close (store);
}

#define A_TEST(name) cmocka_unit_test_setup_teardown (name, set_up, tear_down)

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
        A_TEST (a_batch_that_fails_anywhere_is_tried_again),
        A_TEST (a_crash_anywhere_loses_nothing_that_was_told),
        A_TEST (a_start_that_fails_anywhere_can_be_tried_again),
        A_TEST (a_full_disk_is_waited_out),
        A_TEST (what_the_system_says_is_told),
        A_TEST (a_lock_of_another_program_is_waited_out),
    };

    have_mounts = mounts_private () == 0;
    if (faulty_vfs_install () < 0)
        return 1;
    return cmocka_run_group_tests (tests, NULL, NULL);
}

/* test_checkpoint.c - the log is copied home by a thread of its own */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "coordinator/store/schema.h"
#include "tests/unit/store_dir.h"

enum { ROW_BYTES = 3000, COMMITS = 3500, LIMIT_MS = 20000 };

static off_t size_of (const struct hkc_store *store)
{
    struct stat st;

    assert_int_equal (stat (hkc_store_path (store), &st), 0);
    return st.st_size;
}

static void commit_one (struct hkc_store *store, const char *text)
{
    struct hkc_row row = {
        .kind = HKC_ROW_AUDIT,
        .audit = { .what = "test", .about = text, .reason = "" },
    };
    struct hk_error err;

    assert_int_equal (hkc_store_begin (store, &err), 0);
    assert_int_equal (hkc_store_put (store, &row, &err), 0);
    assert_int_equal (hkc_store_commit (store, &err), 0);
}

static void no_commit_copies_the_log_home (void **state)
{
    struct hkc_checkpoint *cp;
    struct hkc_store *store;
    struct hk_error err;
    char text[ROW_BYTES + 1];
    off_t before;

    (void)state;
    memset (text, 'x', ROW_BYTES);
    text[ROW_BYTES] = '\0';
    assert_non_null (store = hkc_store_open (dir, &err));
    assert_non_null (cp = hkc_checkpoint_create (store, &err));
    before = size_of (store);
    for (int i = 0; i < COMMITS; i++)
        commit_one (store, text);
    for (int ms = 0; size_of (store) < before + 1000 * ROW_BYTES; ms += 10) {
        assert_true (ms < LIMIT_MS);
        usleep (10000);
    }
    hkc_checkpoint_destroy (cp);
    commit_one (store, text); /* the store goes on without it */
    hkc_store_close (store);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (
            no_commit_copies_the_log_home, dir_set_up, dir_tear_down),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}

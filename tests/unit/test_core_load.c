/* test_core_load.c - stories that are broken off: a restart changes nothing */
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
#include "tests/unit/story.h"
#include "tests/unit/store_rows.h"

/* A day with a bit of everything, in sentences. */

static void jobs_end (struct story *s)
{
    job_ends (s, 10, "node[0-5]");
    job_ends (s, 11, "node[4-7]");
}

static void all_run (struct story *s)
{
    run_runs (s, "node[0-5]", 10);
    run_runs (s, "node[6-7]", 11);
}

static void some_end (struct story *s)
{
    run_ends (s, "node[0,3]", 10, HK_OUTCOME_SUCCESS);
    run_ends (s, "node1", 10, HK_OUTCOME_EXIT_CODE);
}

static void one_is_drained (struct story *s)
{
    drained (s,
             "node1",
             HKC_DRAIN_ALREADY,
             "housekeeping@fB exit-code: exited 1 (10-clean after 1s)");
}

static void one_is_booted (struct story *s)
{
    nodes_boot (s, "node2");
}

static void one_vanishes (struct story *s)
{
    node_forgets (s, "node6", 11);
    nodes_tell (s, "node6");
}

static void it_is_drained (struct story *s)
{
    drained (s, "node6", HKC_DRAIN_OK, NULL);
}

static void the_next_of_a_node_runs (struct story *s)
{
    run_ends (s, "node[4-5]", 10, HK_OUTCOME_SUCCESS);
    run_runs (s, "node[4-5]", 11);
}

static void an_admin_kills (struct story *s)
{
    kill_runs (s, 11, "node5");
    run_ends (s, "node5", 11, HK_OUTCOME_KILLED);
}

static void that_is_drained (struct story *s)
{
    drained (s, "node5", HKC_DRAIN_OK, NULL);
}

static void the_rest_ends (struct story *s)
{
    run_well (s, "node2", 10);
    run_ends (s, "node[4,7]", 11, HK_OUTCOME_SUCCESS);
}

static void time_goes_by (struct story *s)
{
    later (s, 60000);
}

static void (*const day[]) (struct story *s) = {
    jobs_end,       all_run,         some_end,      one_is_drained,
    one_is_booted,  one_vanishes,    it_is_drained, the_next_of_a_node_runs,
    an_admin_kills, that_is_drained, the_rest_ends, time_goes_by,
};
enum { SENTENCES = sizeof (day) / sizeof (day[0]) };

/* Which ranks were freed, and how often each; what history and drains say. */
struct sum {
    char text[8192];
    int freed[2][STORY_HOSTS];
};

static void frees_add (struct story *s, struct sum *sum)
{
    for (int i = 0; i < s->lines_count; i++) {
        char ranks[128];
        struct hk_rankset *set;
        int job;
        if (strcmp (s->lines[i].verb, "free") != 0)
            continue;
        assert_int_equal (sscanf (s->lines[i].rest, "%d %127s", &job, ranks),
                          2);
        assert_non_null (set = hk_rankset_decode (ranks, NULL));
        for (uint32_t r = hk_rankset_first (set); r != HK_RANK_NONE;
             r = hk_rankset_next (set, r))
            sum->freed[job - 10][r]++;
        hk_rankset_destroy (set);
    }
    pass_over (s);
}

static void sum_up (struct story *s, struct sum *sum)
{
    static const char sql[] =
        "SELECT jobid || ' ' || host || '#' || attempt || ' ' || outcome"
        " FROM history UNION ALL"
        " SELECT host || ' ' || kind || ' ' || reason FROM cause UNION ALL"
        " SELECT 'closed ' || jobid FROM closed UNION ALL"
        " SELECT 'held ' || host FROM part ORDER BY 1";
    sqlite3_stmt *stmt;

    assert_int_equal (sqlite3_prepare_v2 (s->store->db, sql, -1, &stmt, NULL),
                      SQLITE_OK);
    while (sqlite3_step (stmt) == SQLITE_ROW) {
        size_t n = strlen (sum->text);
        snprintf (sum->text + n,
                  sizeof (sum->text) - n,
                  "%s\n",
                  (const char *)sqlite3_column_text (stmt, 0));
    }
    sqlite3_finalize (stmt);
}

/* In which sentence the drain of a host is confirmed. */
static int drained_in (const char *host)
{
    void (*sentence) (struct story * s) = that_is_drained;
    int i = 0;

    if (!strcmp (host, "node1"))
        sentence = one_is_drained;
    else if (!strcmp (host, "node6"))
        sentence = it_is_drained;
    while (day[i] != sentence)
        i++;
    return i;
}

/* All that has a session comes back, as after any restart; what was drained is
 * asked for anew and is there already.
 */
static void restart (struct story *s, int broken_off)
{
    story_restart (s);
    sched_hello_after (s, "L1", 0);
    for (int i = 0, n = s->lines_count; i < n; i++) {
        const char *host = s->lines[i].host;
        if (!strcmp (s->lines[i].verb, "drain")
            && broken_off >= drained_in (host))
            drained (s, host, HKC_DRAIN_ALREADY, s->lines[i].rest);
    }
    nodes_up (s, "node[0-7]");
}

static void tell_day (void **state, int broken_off, struct sum *sum)
{
    struct story *s;

    assert_int_equal (story_set_up (state), 0);
    s = *state;
    sched_up (s, "L1");
    nodes_up (s, "node[0-7]");
    for (int i = 0; i < SENTENCES; i++) {
        day[i](s);
        frees_add (s, sum);
        if (i == broken_off) {
            restart (s, i);
            /* resumed: what was not confirmed comes again, and counts once */
            for (int j = 0; j < s->lines_count; j++)
                if (!strcmp (s->lines[j].verb, "free"))
                    s->lines[j].verb[0] = '-';
            frees_add (s, sum);
        }
    }
    sum_up (s, sum);
    story_tear_down (state);
}

static void wherever_it_is_broken_off_the_same_follows (void **state)
{
    struct sum whole = { .text = "" };
    void *story = NULL;

    (void)state;
    tell_day (&story, SENTENCES, &whole); /* not at all */
    for (int r = 0; r < 6; r++)
        assert_int_equal (whole.freed[0][r], 1);
    for (int r = 4; r < 8; r++)
        assert_int_equal (whole.freed[1][r], 1);
    assert_null (strstr (whole.text, "held"));
    for (int i = 0; i < SENTENCES; i++) {
        struct sum sum = { .text = "" };
        tell_day (&story, i, &sum);
        assert_string_equal (sum.text, whole.text);
        assert_memory_equal (sum.freed, whole.freed, sizeof (sum.freed));
    }
}

/* The window and release-after count on after a restart, from its beginning. */
static void time_counts_from_the_restart (void **state)
{
    struct story *s = *state;

    story_conf (s, "release-after=60s");
    sched_up (s, "L1");
    nodes_up (s, "node[0-1]");
    job_ends (s, 10, "node[0-1]");
    run_well (s, "node0", 10);
    later (s, 30000);
    pass_over (s);
    story_restart (s);
    sched_hello_after (s, "L1", 0);
    later (s, 59000);
    expect (s, "resumed L1");
    later (s, 1000);
    expect (s, "free 10 0");
}

/* A hello that was under way had a link, and the link is gone. */
static void a_hello_does_not_outlive_a_restart (void **state)
{
    struct story *s = *state;

    sched_up (s, "L1");
    nodes_up (s, "node[0-1]");
    job_ends (s, 10, "node[0-1]");
    run_well (s, "node0", 10);
    sched_gone (s);
    sched_hello (s, "L2", true, "");
    pass_over (s);
    story_restart (s);
    expect_nothing (s);
    sched_hello (s, "L2", true, "");
    expect (s, "drain node1 housekeeping: held while the scheduler restarts");
    drained (s, "node1", HKC_DRAIN_OK, NULL);
    expect (s, "tell 10 0-1 free 0", "told L2");
}

static void a_row_that_cannot_be_is_refused (void **state)
{
    struct story *s = *state;
    struct hkc_row alloc = row_alloc (11, 10, 1, 1);
    struct hkc_row rows[] = {
        row_state (4711, ""),
        row_part (4711, 1, "node0"),
        { .kind = HKC_ROW_AUDIT },
    };
    struct hk_error err = { "" };

    for (size_t i = 0; i < sizeof (rows) / sizeof (rows[0]); i++) {
        assert_int_equal (hkc_core_load (s->core, &rows[i], &err), -1);
        assert_int_equal (errno, EINVAL);
        assert_true (err.text[0]);
    }
    assert_int_equal (hkc_core_load (s->core, &alloc, &err), -1); /* bad R */
    assert_false (hkc_core_knows (s->core, 11));
}

#define A_TEST(name) \
    cmocka_unit_test_setup_teardown (name, story_set_up, story_tear_down)

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (wherever_it_is_broken_off_the_same_follows),
        A_TEST (time_counts_from_the_restart),
        A_TEST (a_hello_does_not_outlive_a_restart),
        A_TEST (a_row_that_cannot_be_is_refused),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}

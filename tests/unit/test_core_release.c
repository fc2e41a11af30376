/* test_core_release.c - stories of release-after, the window, and failures */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/story.h"

/* Job 10 runs on all of them. */
static void begin (struct story *s, const char *hosts)
{
    sched_up (s, "L1");
    nodes_up (s, hosts);
    job_ends (s, 10, hosts);
    run_runs (s, hosts, 10);
    pass_over (s);
}

static void well (struct story *s, const char *hosts)
{
    run_ends (s, hosts, 10, HK_OUTCOME_SUCCESS);
}

/* ---- the window ---- */

static void frees_are_gathered_within_the_window (void **state)
{
    struct story *s = *state;

    begin (s, "node[0-9]");
    well (s, "node0");
    expect (s, "free 10 0"); /* the first goes at once */
    well (s, "node1");
    well (s, "node2");
    expect_nothing (s);
    expect_phase (s, 10, "node[1-2]", "due");
    later (s, 49);
    expect_nothing (s);
    later (s, 1);
    expect (s, "free 10 1-2");
    well (s, "node3");
    later (s, 30);
    well (s, "node[4-8]");
    later (s, 20);
    expect (s, "free 10 3-8");
    well (s, "node9");
    expect (s, "free 10 9 final"); /* the last never waits */
}

static void each_job_has_a_window_of_its_own (void **state)
{
    struct story *s = *state;

    begin (s, "node[0-2]");
    nodes_up (s, "node[3-5]");
    job_ends (s, 11, "node[3-5]");
    run_runs (s, "node[3-5]", 11);
    pass_over (s);
    well (s, "node0");
    run_ends (s, "node3", 11, HK_OUTCOME_SUCCESS);
    expect (s, "free 10 0", "free 11 3");
}

static void without_a_window_each_is_freed_by_itself (void **state)
{
    struct story *s = *state;

    story_conf (s, "free-window=0");
    begin (s, "node[0-2]");
    well (s, "node1");
    well (s, "node2");
    expect (s, "free 10 1", "free 10 2");
}

/* flux-sched had faults where nodes end in an order of their own: each rank is
 * freed once, `final` once and with the last.
 */
static void in_any_order_each_is_freed_once (void **state)
{
    struct story *s = *state;
    int order[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    unsigned seed = 1;

    sched_up (s, "L1");
    nodes_up (s, "node[0-7]");
    for (uint64_t job = 10; job < 40; job++) {
        struct hk_rankset *freed = hk_rankset_create ();
        int finals = 0, frees = 0;
        job_ends (s, job, "node[0-7]");
        run_runs (s, "node[0-7]", job);
        pass_over (s);
        for (int i = 7; i >= 0; i--) {
            char host[16];
            int j = (int)((seed = seed * 1103515245 + 12345) >> 16) % (i + 1);
            int t = order[i];
            order[i] = order[j];
            order[j] = t;
            snprintf (host, sizeof (host), "node%d", order[i]);
            run_ends (s, host, job, HK_OUTCOME_SUCCESS);
            later (s, seed >> 16 & 31);
        }
        for (; frees < s->lines_count; frees++) {
            char ranks[64] = "", final[16] = "";
            struct hk_rankset *set;
            assert_string_equal (s->lines[frees].verb, "free");
            sscanf (s->lines[frees].rest, "%*d %63s %15s", ranks, final);
            assert_non_null (set = hk_rankset_decode (ranks, NULL));
            assert_false (hk_rankset_intersects (freed, set));
            assert_int_equal (finals, 0);
            finals += *final != '\0';
            hk_rankset_add_set (freed, set);
            hk_rankset_destroy (set);
        }
        assert_int_equal (finals, 1);
        assert_int_equal (hk_rankset_count (freed), 8);
        hk_rankset_destroy (freed);
        pass_over (s);
    }
}

/* ---- release-after ---- */

static void all_are_released_when_all_are_done (void **state)
{
    struct story *s = *state;

    story_conf (s, "release-after=all");
    begin (s, "node[0-3]");
    well (s, "node[0-2]");
    later (s, 3600000);
    expect_nothing (s);
    expect_phase (s, 10, "node[0-2]", "ended");
    well (s, "node3");
    expect (s, "free 10 0-3 final");
}

/* As upstream: the time counts from the first that is done; when it is over
 * all that have ended go, and from then on each as it ends.
 */
static void after_a_time_each_is_released_as_it_ends (void **state)
{
    struct story *s = *state;

    story_conf (s, "release-after=10s");
    begin (s, "node[0-4]");
    later (s, 60000);
    well (s, "node0");
    later (s, 6000);
    well (s, "node1");
    later (s, 3999);
    expect_nothing (s);
    later (s, 1);
    expect (s, "free 10 0-1");
    later (s, 1000);
    well (s, "node2");
    expect (s, "free 10 2");
    later (s, 1000);
    well (s, "node[3-4]");
    expect (s, "free 10 3-4 final");
}

static void the_last_end_releases_all_before_the_time (void **state)
{
    struct story *s = *state;

    story_conf (s, "release-after=10s");
    begin (s, "node[0-1]");
    well (s, "node0");
    well (s, "node1");
    expect (s, "free 10 0-1 final");
}

/* core#6596: what was configured off must not go on. */
static void a_change_of_release_after_counts_for_what_is_held (void **state)
{
    struct story *s = *state;

    begin (s, "node[0-3]");
    well (s, "node0");
    well (s, "node1");
    expect (s, "free 10 0");
    story_conf (s, "release-after=all");
    later (s, 1000);
    expect_nothing (s);
    expect_phase (s, 10, "node1", "ended");
    story_conf (s, "release-after=0");
    later (s, 1000);
    expect (s, "free 10 1");
    well (s, "node[2-3]");
    expect (s, "free 10 2-3 final");
}

/* ---- failures ---- */

static const char failed[] =
    "housekeeping@fB exit-code: exited 1 (10-clean after 1s)";

static void a_failed_node_is_drained_before_it_is_due (void **state)
{
    struct story *s = *state;

    begin (s, "node[0-2]");
    run_ends (s, "node1", 10, HK_OUTCOME_EXIT_CODE);
    expect (s,
            "drain node1 housekeeping@fB exit-code: exited 1 (10-clean "
            "after 1s)");
    expect_phase (s, 10, "node1", "ended");
    well (s, "node0");
    expect (s, "free 10 0"); /* the others do not wait for it */
    later (s, 60000);
    expect_nothing (s);
    drained (s, "node1", HKC_DRAIN_OK, NULL);
    expect (s, "free 10 1");
    expect_history (s, 10, "node1", "exit-code");
    well (s, "node2");
    expect (s, "free 10 2 final");
    later (s, 60000);
    expect_nothing (s); /* a failure is the admin's to undrain */
}

/* Upstream's words, so that what sites match on goes on working; then ours:
 * script and time.  Each names what went wrong.
 */
static void each_failure_has_its_words (void **state)
{
    struct story *s = *state;
    static const enum hk_outcome outcomes[] = {
        HK_OUTCOME_EXIT_CODE, HK_OUTCOME_SIGNAL,       HK_OUTCOME_TIMEOUT,
        HK_OUTCOME_KILLED,    HK_OUTCOME_START_FAILED, HK_OUTCOME_UNKNOWN,
    };
    static const char *const on[] = { "node0", "node1", "node2",
                                      "node3", "node4", "node5" };

    begin (s, "node[0-5]");
    for (size_t i = 0; i < sizeof (outcomes) / sizeof (outcomes[0]); i++)
        run_ends (s, on[i], 10, outcomes[i]);
    expect (s,
            "drain node0 housekeeping@fB exit-code: exited 1 (10-clean after "
            "1s)",
            "drain node1 housekeeping@fB signal: killed KILL (10-clean after "
            "3s)",
            "drain node2 housekeeping@fB timeout: exceeded 1h (after 4s)",
            "drain node3 housekeeping@fB killed: killed by uid 0 (after 4s)",
            "drain node4 housekeeping@fB start-failed: "
            "/etc/flux/system/housekeeping may be written by others (after 4s)",
            "drain node5 housekeeping@fB unknown (after 4s)");
}

static void a_drain_that_fails_is_tried_again (void **state)
{
    struct story *s = *state;

    begin (s, "node[0-1]");
    run_ends (s, "node1", 10, HK_OUTCOME_EXIT_CODE);
    pass_over (s);
    drained (s, "node1", HKC_DRAIN_FAILED, NULL);
    expect_nothing (s);
    expect_phase (s, 10, "node1", "ended");
    expect_act (s, 10, "node1", "drain the node by hand");
    later (s, 1000);
    expect (s,
            "drain node1 housekeeping@fB exit-code: exited 1 (10-clean "
            "after 1s)");
    drained (s, "node1", HKC_DRAIN_FAILED, NULL);
    later (s, 1999);
    expect_nothing (s);
    later (s, 1);
    assert_int_equal (s->lines_count, 1);
    pass_over (s);
    drained (s, "node1", HKC_DRAIN_OK, NULL);
    expect (s, "free 10 1");
}

static void a_drain_of_ours_that_is_there_already_counts (void **state)
{
    struct story *s = *state;

    begin (s, "node[0-1]");
    run_ends (s, "node1", 10, HK_OUTCOME_EXIT_CODE);
    pass_over (s);
    drained (s, "node1", HKC_DRAIN_ALREADY, failed);
    expect (s, "free 10 1");
}

static void a_drain_of_an_admin_s_counts_and_is_never_undone (void **state)
{
    struct story *s = *state;

    story_conf (s, "lost-after=60s");
    begin (s, "node[0-1]");
    nodes_silent (s, "node1", true);
    later (s, 61000);
    pass_over (s);
    drained (s, "node1", HKC_DRAIN_ALREADY, "broken fan");
    nodes_silent (s, "node1", false);
    later (s, 20000);
    expect_nothing (s); /* contact is back, and the fan still broken */
    run_ends (s, "node1", 10, HK_OUTCOME_EXIT_CODE);
    pass_over (s);
    drained (s, "node1", HKC_DRAIN_ALREADY, "broken fan");
    expect (s, "free 10 1");
}

static void nodes_that_cannot_be_drained_count_as_drained (void **state)
{
    struct story *s = *state;

    begin (s, "node[0-2]");
    run_ends (s, "node[0-1]", 10, HK_OUTCOME_EXIT_CODE);
    pass_over (s);
    drained (s, "node0", HKC_DRAIN_EXCLUDED, NULL);
    expect (s, "free 10 0");
    later (s, 100);
    drained (s, "node1", HKC_DRAIN_NOT_FOUND, NULL);
    expect (s, "free 10 1");
}

static void on_failure_hold_keeps_the_node (void **state)
{
    struct story *s = *state;

    story_conf (s, "on-failure=hold");
    begin (s, "node[0-1]");
    run_ends (s, "node1", 10, HK_OUTCOME_EXIT_CODE);
    well (s, "node0");
    expect (s, "free 10 0");
    later (s, 3600000);
    expect_nothing (s);
    expect_phase (s, 10, "node1", "ended hold");
    story_conf (s, "on-failure=drain"); /* the admin decides otherwise */
    expect (s,
            "drain node1 housekeeping@fB exit-code: exited 1 (10-clean "
            "after 1s)");
    drained (s, "node1", HKC_DRAIN_OK, NULL);
    expect (s, "free 10 1 final");
}

static void on_failure_release_gives_it_back (void **state)
{
    struct story *s = *state;

    story_conf (s, "on-failure=release");
    begin (s, "node[0-1]");
    run_ends (s, "node1", 10, HK_OUTCOME_EXIT_CODE);
    expect (s, "free 10 1");
    expect_history (s, 10, "node1", "exit-code");
}

/* With release-after = all a failed node waits for the others and its drain. */
static void all_and_a_failure_go_together (void **state)
{
    struct story *s = *state;

    story_conf (s, "release-after=all");
    begin (s, "node[0-2]");
    run_ends (s, "node1", 10, HK_OUTCOME_SIGNAL);
    pass_over (s);
    drained (s, "node1", HKC_DRAIN_OK, NULL);
    well (s, "node0");
    expect_nothing (s);
    well (s, "node2");
    expect (s, "free 10 0-2 final");
}

#define A_TEST(name) \
    cmocka_unit_test_setup_teardown (name, story_set_up, story_tear_down)

int main (void)
{
    const struct CMUnitTest tests[] = {
        A_TEST (frees_are_gathered_within_the_window),
        A_TEST (each_job_has_a_window_of_its_own),
        A_TEST (without_a_window_each_is_freed_by_itself),
        A_TEST (in_any_order_each_is_freed_once),
        A_TEST (all_are_released_when_all_are_done),
        A_TEST (after_a_time_each_is_released_as_it_ends),
        A_TEST (the_last_end_releases_all_before_the_time),
        A_TEST (a_change_of_release_after_counts_for_what_is_held),
        A_TEST (a_failed_node_is_drained_before_it_is_due),
        A_TEST (each_failure_has_its_words),
        A_TEST (a_drain_that_fails_is_tried_again),
        A_TEST (a_drain_of_ours_that_is_there_already_counts),
        A_TEST (a_drain_of_an_admin_s_counts_and_is_never_undone),
        A_TEST (nodes_that_cannot_be_drained_count_as_drained),
        A_TEST (on_failure_hold_keeps_the_node),
        A_TEST (on_failure_release_gives_it_back),
        A_TEST (all_and_a_failure_go_together),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}

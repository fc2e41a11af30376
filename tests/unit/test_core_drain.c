/* test_core_drain.c - stories of drains: the set of our causes, and admins */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/store_rows.h"
#include "tests/unit/story.h"

#define FAILED(job) \
    "housekeeping@" job " exit-code: exited 1 (10-clean after 1s)"
static const char lost[] = "drain node1 housekeeping: no contact for 1m";

/* Job 10 runs on node0 and node1; lost-after is a minute. */
static void begin (struct story *s)
{
    story_conf (s, "lost-after=60s");
    sched_up (s, "L1");
    nodes_up (s, "node[0-1]");
    job_ends (s, 10, "node[0-1]");
    run_runs (s, "node[0-1]", 10);
    pass_over (s);
}

static void fails (struct story *s, uint64_t jobid)
{
    run_ends (s, "node1", jobid, HK_OUTCOME_EXIT_CODE);
}

static void lose (struct story *s)
{
    nodes_silent (s, "node1", true);
    later (s, 61000);
}

static void comes_back (struct story *s)
{
    nodes_silent (s, "node1", false);
    later (s, 20000);
}

static void a_lost_node_is_drained_and_undrained_when_it_returns (void **state)
{
    struct story *s = *state;

    begin (s);
    lose (s);
    expect (s, lost);
    expect_phase (s, 10, "node1", "running lost");
    expect_act (s, 10, "node1", "repair or boot the node");
    drained (s, "node1", HKC_DRAIN_OK, NULL);
    later (s, 3600000);
    expect_nothing (s); /* it is held as long as it takes */
    comes_back (s);
    expect (s, "undrain node1 housekeeping: no contact for 1m");
    expect_phase (s, 10, "node1", "running");
    undrained (s, "node1", HKC_DRAIN_OK);
    later (s, 3600000);
    expect_nothing (s);
}

static void an_admin_who_changed_the_reason_keeps_it (void **state)
{
    struct story *s = *state;

    begin (s);
    lose (s);
    drained (s, "node1", HKC_DRAIN_OK, NULL);
    comes_back (s);
    pass_over (s);
    undrained (s, "node1", HKC_DRAIN_CHANGED);
    later (s, 3600000);
    expect_nothing (s);
}

static void an_undrain_that_fails_is_tried_again (void **state)
{
    struct story *s = *state;

    begin (s);
    lose (s);
    drained (s, "node1", HKC_DRAIN_OK, NULL);
    comes_back (s);
    pass_over (s);
    undrained (s, "node1", HKC_DRAIN_FAILED);
    expect_nothing (s);
    later (s, 1000);
    expect (s, "undrain node1 housekeeping: no contact for 1m");
    undrained (s, "node1", HKC_DRAIN_NOT_DRAINED);
    later (s, 3600000);
    expect_nothing (s);
}

/* The node is back before the drain was answered: it ends all the same. */
static void a_cause_that_goes_while_it_is_asked_for_is_undone (void **state)
{
    struct story *s = *state;

    begin (s);
    lose (s);
    comes_back (s);
    expect (s, lost);
    drained (s, "node1", HKC_DRAIN_OK, NULL);
    expect (s, "undrain node1 housekeeping: no contact for 1m");
}

/* And a cause that comes while an undrain is under way is asked for anew. */
static void a_cause_that_comes_while_it_is_undone_is_asked_for (void **state)
{
    struct story *s = *state;

    begin (s);
    lose (s);
    drained (s, "node1", HKC_DRAIN_OK, NULL);
    comes_back (s);
    pass_over (s);
    fails (s, 10);
    expect_nothing (s);
    undrained (s, "node1", HKC_DRAIN_OK);
    expect (s, "drain node1 " FAILED ("fB"));
    expect_phase (s, 10, "node1", "ended");
    drained (s, "node1", HKC_DRAIN_OK, NULL);
    expect (s, "free 10 1");
}

/* The drain for the lost contact stands there, and the failure comes on top:
 * our own reason confirms it, and nothing is undrained any more.
 */
static void after_a_failure_nothing_is_undrained (void **state)
{
    struct story *s = *state;

    begin (s);
    lose (s);
    drained (s, "node1", HKC_DRAIN_OK, NULL);
    pass_over (s);
    fails (s, 10);
    expect (s, "drain node1 " FAILED ("fB")); /* the gravest is said */
    drained (s, "node1", HKC_DRAIN_ALREADY, "housekeeping: no contact for 1m");
    expect (s, "free 10 1");
    comes_back (s);
    later (s, 3600000);
    expect_nothing (s);
}

static void two_failures_of_one_node_are_two_causes (void **state)
{
    struct story *s = *state;

    begin (s);
    job_ends (s, 11, "node1");
    fails (s, 10);
    drained (s, "node1", HKC_DRAIN_OK, NULL);
    pass_over (s);
    run_runs (s, "node1", 11);
    fails (s, 11);
    expect (s, "drain node1 " FAILED ("fC"));
    drained (s, "node1", HKC_DRAIN_ALREADY, FAILED ("fB"));
    expect (s, "free 11 1 final");
    assert_int_equal (store_count (s->store, "cause WHERE host = 'node1'"), 2);
}

/* `ok` says that the node was not drained before: an admin had undrained it,
 * and what failed there earlier is over.
 */
static void ok_ends_the_failures_of_before (void **state)
{
    struct story *s = *state;

    begin (s);
    fails (s, 10);
    drained (s, "node1", HKC_DRAIN_OK, NULL);
    job_ends (s, 11, "node1");
    run_runs (s, "node1", 11);
    pass_over (s);
    lose (s);
    expect (s, lost);
    drained (s, "node1", HKC_DRAIN_OK, NULL);
    assert_int_equal (store_count (s->store, "cause WHERE kind = 1"), 0);
    comes_back (s);
    expect (s, "undrain node1 housekeeping: no contact for 1m");
}

static void but_a_drain_that_still_stands_does_not (void **state)
{
    struct story *s = *state;

    begin (s);
    fails (s, 10);
    drained (s, "node1", HKC_DRAIN_OK, NULL);
    job_ends (s, 11, "node1");
    run_runs (s, "node1", 11);
    pass_over (s);
    lose (s);
    drained (s, "node1", HKC_DRAIN_ALREADY, FAILED ("fB"));
    pass_over (s);
    comes_back (s);
    expect_nothing (s);
    assert_int_equal (store_count (s->store, "cause WHERE kind = 1"), 1);
}

/* A run that the coordinator does not know is shown and drained while it is
 * there, never stopped nor acknowledged by itself.
 */
static void an_unknown_run_drains_its_host_while_it_is_there (void **state)
{
    struct story *s = *state;

    sched_up (s, "L1");
    s->tells_acks = true;
    node_has (s, "node1", 4711);
    nodes_up (s, "node[0-1]");
    expect (s,
            "told L1",
            "drain node1 housekeeping@f2i unknown: a run that this "
            "coordinator does not know");
    drained (s, "node1", HKC_DRAIN_OK, NULL);
    job_ends (s, 10, "node1");
    expect_nothing (s); /* it goes first on this node */
    expect_phase (s, 10, "node1", "waiting queued");
    nodes_tell (s, "node1");
    expect_nothing (s);
    node_forgets (s, "node1", 99);
    nodes_tell (s, "node1");
    expect (s,
            "start node1 10",
            "undrain node1 housekeeping@f2i unknown: a run that this "
            "coordinator does not know");
}

/* ---- sessions and restarts ---- */

static void what_is_needed_is_asked_for_anew_in_each_session (void **state)
{
    struct story *s = *state;

    begin (s);
    fails (s, 10);
    pass_over (s);
    sched_gone (s); /* the answer is lost with the link */
    later (s, 3600000);
    expect_nothing (s);
    sched_hello_after (s, "L1", 0);
    expect (s, "resumed L1", "drain node1 " FAILED ("fB"));
    drained (s, "node1", HKC_DRAIN_ALREADY, FAILED ("fB"));
    expect (s, "free 10 1");
}

static void an_answer_to_an_older_request_confirms_nothing (void **state)
{
    struct story *s = *state;
    struct hkc_event ev = { .kind = HKC_EV_DRAIN_DONE };

    begin (s);
    fails (s, 10);
    ev.done.n = s->nodes[1].drain_n;
    ev.done.host = "node1";
    ev.done.result = HKC_DRAIN_OK;
    sched_gone (s);
    sched_hello_after (s, "L1", 0);
    pass_over (s);
    assert_int_equal (story_step (s, &ev, NULL, NULL), 0);
    story_turn (s);
    expect_nothing (s);
    expect_phase (s, 10, "node1", "ended");
}

/* A crash came between the drain and its answer: the reason is known as ours,
 * by what was stored before it was sent.
 */
static void our_reason_is_known_as_ours_after_a_restart (void **state)
{
    struct story *s = *state;

    begin (s);
    lose (s);
    story_restart (s);
    pass_over (s);
    nodes_silent (s, "node1", false);
    nodes_up (s, "node[0-1]"); /* contact: the cause is gone */
    sched_hello_after (s, "L1", 0);
    expect (s, "resumed L1", "undrain node1 housekeeping: no contact for 1m");
}

static void a_lost_node_stays_drained_over_a_restart (void **state)
{
    struct story *s = *state;

    begin (s);
    lose (s);
    drained (s, "node1", HKC_DRAIN_OK, NULL);
    story_restart (s);
    pass_over (s);
    nodes_up (s, "node0");
    sched_hello_after (s, "L1", 0);
    expect (s, "resumed L1", lost);
    drained (s, "node1", HKC_DRAIN_ALREADY, "housekeeping: no contact for 1m");
    expect_phase (s, 10, "node1", "running lost");
    expect_nothing (s);
}

static void nothing_is_undrained_without_a_scheduler (void **state)
{
    struct story *s = *state;

    begin (s);
    lose (s);
    drained (s, "node1", HKC_DRAIN_OK, NULL);
    pass_over (s);
    sched_gone (s);
    comes_back (s);
    expect_nothing (s);
    sched_hello_after (s, "L1", 0);
    expect (s, "resumed L1", "undrain node1 housekeeping: no contact for 1m");
}

#define A_TEST(name) \
    cmocka_unit_test_setup_teardown (name, story_set_up, story_tear_down)

int main (void)
{
    const struct CMUnitTest tests[] = {
        A_TEST (a_lost_node_is_drained_and_undrained_when_it_returns),
        A_TEST (an_admin_who_changed_the_reason_keeps_it),
        A_TEST (an_undrain_that_fails_is_tried_again),
        A_TEST (a_cause_that_goes_while_it_is_asked_for_is_undone),
        A_TEST (a_cause_that_comes_while_it_is_undone_is_asked_for),
        A_TEST (after_a_failure_nothing_is_undrained),
        A_TEST (two_failures_of_one_node_are_two_causes),
        A_TEST (ok_ends_the_failures_of_before),
        A_TEST (but_a_drain_that_still_stands_does_not),
        A_TEST (an_unknown_run_drains_its_host_while_it_is_there),
        A_TEST (what_is_needed_is_asked_for_anew_in_each_session),
        A_TEST (an_answer_to_an_older_request_confirms_nothing),
        A_TEST (our_reason_is_known_as_ours_after_a_restart),
        A_TEST (a_lost_node_stays_drained_over_a_restart),
        A_TEST (nothing_is_undrained_without_a_scheduler),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}

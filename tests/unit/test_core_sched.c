/* test_core_sched.c - stories of hello, ready and the scheduler's account */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/store_rows.h"
#include "tests/unit/story.h"

#define HELLO "housekeeping: held while the scheduler restarts"
#define LACKS "housekeeping: held, and the scheduler lost it"

static const bool partial_ok = true;

/* Job 10 runs on node0 to node3, counted by life L1. */
static void begin (struct story *s)
{
    sched_up (s, "L1");
    nodes_up (s, "node[0-3]");
    job_ends (s, 10, "node[0-3]");
    run_runs (s, "node[0-3]", 10);
    pass_over (s);
}

static void well (struct story *s, const char *hosts)
{
    run_ends (s, hosts, 10, HK_OUTCOME_SUCCESS);
}

/* node3 was freed in L1, and then L1 has gone. */
static void begin_with_a_part_freed (struct story *s)
{
    begin (s);
    well (s, "node3");
    later (s, 100);
    sched_gone (s);
    pass_over (s);
}

/* ---- nothing is done ---- */

static void a_new_scheduler_is_told_what_is_held (void **state)
{
    struct story *s = *state;

    begin (s);
    nodes_up (s, "node4");
    job_ends (s, 11, "node4");
    sched_gone (s);
    pass_over (s);
    sched_hello (s, "L2", partial_ok, "");
    expect (s, "tell 10 0-3", "tell 11 4", "told L2");
    sched_ready (s, "L2", NULL);
    expect_nothing (s);
    well (s, "node1");
    expect (s, "free 10 1");
    well (s, "node[0,2-3]");
    later (s, 100);
    expect (s, "free 10 0,2-3 final");
}

static void due_ranks_are_told_as_free (void **state)
{
    struct story *s = *state;

    begin (s);
    sched_gone (s);
    sched_hello (s, "L1", partial_ok, ""); /* the same life resumes */
    sched_gone (s);
    well (s, "node[1-2]");
    expect_phase (s, 10, "node[1-2]", "due");
    pass_over (s);
    sched_hello (s, "L2", partial_ok, "");
    expect (s, "tell 10 0-3 free 1-2", "told L2");
    expect_phase (s, 10, "node[1-2]", "gone");
    sched_ready (s, "L2", NULL);
    well (s, "node[0,3]");
    later (s, 100);
    expect (s, "free 10 0,3 final");
}

static void without_partial_ok_they_are_freed_after_ready (void **state)
{
    struct story *s = *state;

    begin (s);
    sched_gone (s);
    well (s, "node[1-2]");
    pass_over (s);
    sched_hello (s, "L2", !partial_ok, "");
    expect (s, "tell 10 0-3", "told L2");
    expect_phase (s, 10, "node[1-2]", "due");
    sched_ready (s, "L2", NULL);
    expect (s, "free 10 1-2");
    well (s, "node[0,3]");
    later (s, 100);
    expect (s, "free 10 0,3 final");
}

static void an_allocation_with_nothing_left_gets_no_entry (void **state)
{
    struct story *s = *state;

    begin (s);
    sched_gone (s);
    well (s, "node[0-3]");
    pass_over (s);
    sched_hello (s, "L2", partial_ok, "");
    expect (s, "told L2");
    expect_phase (s, 10, "node[0-3]", "gone");
    assert_int_equal (store_count (s->store, "closed"), 1);
    sched_ready (s, "L2", NULL);
    expect_nothing (s);
}

/* ---- a part is done ---- */

static void what_may_not_be_believed_is_drained_first (void **state)
{
    struct story *s = *state;

    begin_with_a_part_freed (s);
    sched_hello (s, "L2", partial_ok, "");
    expect (s, "drain node[0-2] " HELLO);
    later (s, 60000);
    expect_nothing (s); /* the answer waits for the drains */
    drained (s, "node[0-1]", HKC_DRAIN_OK, NULL);
    expect_nothing (s);
    drained (s, "node2", HKC_DRAIN_OK, NULL);
    expect (s, "tell 10 0-3 free 3", "told L2");
    expect_phase (s, 10, "node[0-2]", "running");
}

static void the_answer_tells_how_it_stands_then (void **state)
{
    struct story *s = *state;

    begin_with_a_part_freed (s);
    sched_hello (s, "L2", partial_ok, "");
    drained (s, "node[0-1]", HKC_DRAIN_OK, NULL);
    pass_over (s);
    well (s, "node[1-2]"); /* it needs no drain any more */
    expect (s, "tell 10 0-3 free 1-3", "told L2");
    expect_phase (s, 10, "node[1-2]", "gone");
    expect_phase (s, 10, "node0", "running");
}

static void an_account_that_has_them_ends_the_drains (void **state)
{
    struct story *s = *state;

    begin_with_a_part_freed (s);
    sched_hello (s, "L2", partial_ok, "");
    drained (s, "node[0-2]", HKC_DRAIN_OK, NULL);
    pass_over (s);
    sched_ready (s, "L2", "0-2,9");
    expect (s, "undrain node[0-2] " HELLO);
    undrained (s, "node[0-2]", HKC_DRAIN_OK);
    well (s, "node0");
    later (s, 100);
    expect (s, "free 10 0");
}

/* sched#1558: told, and lost by the scheduler.  They leave the books, stay
 * drained until they are no longer held, and nothing is sent for them.
 */
static void an_account_that_lacks_them_keeps_them_drained (void **state)
{
    struct story *s = *state;

    begin_with_a_part_freed (s);
    sched_hello (s, "L2", partial_ok, "");
    drained (s, "node[0-2]", HKC_DRAIN_OK, NULL);
    pass_over (s);
    sched_ready (s, "L2", "0-1");
    expect (s, "undrain node[0-1] " HELLO);
    undrained (s, "node[0-1]", HKC_DRAIN_OK);
    well (s, "node2");
    expect (s, "undrain node2 " HELLO); /* closed out: no free */
    expect_phase (s, 10, "node2", "gone");
    well (s, "node[0-1]");
    later (s, 100);
    expect (s, "free 10 0-1 final");
}

/* The same for what was told whole and was not drained before. */
static void what_is_lacking_is_drained_then (void **state)
{
    struct story *s = *state;

    begin (s);
    sched_gone (s);
    sched_hello (s, "L2", partial_ok, "");
    pass_over (s);
    sched_ready (s, "L2", "0-2");
    expect (s, "drain node3 " LACKS);
    drained (s, "node3", HKC_DRAIN_OK, NULL);
    expect_nothing (s);
    well (s, "node3");
    expect (s, "undrain node3 " LACKS);
    well (s, "node[0-2]");
    later (s, 100);
    expect (s, "free 10 0-2 final");
}

/* A rank of which the scheduler has a part only is one that it lost. */
static void an_account_is_compared_by_core (void **state)
{
    struct story *s = *state;

    begin (s);
    sched_gone (s);
    sched_hello (s, "L2", partial_ok, "");
    pass_over (s);
    s->account_cores = "0-2";
    sched_ready (s, "L2", "0-3");
    expect (s, "drain node[0-3] " LACKS);
    sched_gone (s);
    sched_hello (s, "L3", partial_ok, "");
    pass_over (s);
    s->account_cores = "0-7"; /* more than ours is another job's beside it */
    sched_ready (s, "L3", "0-3");
    drained (s, "node[0-3]", HKC_DRAIN_OK, NULL);
    expect (s, "undrain node[0-3] " LACKS);
}

static void without_account_the_drains_stay_until_it_is_done (void **state)
{
    struct story *s = *state;

    begin_with_a_part_freed (s);
    sched_hello (s, "L2", partial_ok, "");
    drained (s, "node[0-2]", HKC_DRAIN_OK, NULL);
    pass_over (s);
    sched_ready (s, "L2", NULL);
    expect_nothing (s);
    well (s, "node1");
    later (s, 100);
    expect (s, "free 10 1", "undrain node1 " HELLO);
}

static void without_partial_ok_a_part_is_not_told (void **state)
{
    struct story *s = *state;

    begin_with_a_part_freed (s);
    sched_hello (s, "L2", !partial_ok, "");
    expect (s, "drain node[0-2] " HELLO);
    drained (s, "node[0-2]", HKC_DRAIN_OK, NULL);
    expect (s, "told L2");
    well (s, "node0");
    expect_nothing (s);
    expect_phase (s, 10, "node0", "due");
    sched_ready (s, "L2", NULL);
    expect (s, "undrain node0 " HELLO); /* closed out, nothing is sent */
    expect_phase (s, 10, "node0", "gone");
    well (s, "node[1-2]");
    expect (s, "undrain node[1-2] " HELLO);
    assert_int_equal (store_count (s->store, "closed"), 1);
}

/* ---- between hello and ready ---- */

static void no_free_is_sent_between_hello_and_ready (void **state)
{
    struct story *s = *state;

    begin (s);
    sched_gone (s);
    sched_hello (s, "L2", partial_ok, "");
    pass_over (s);
    well (s, "node1");
    later (s, 60000);
    expect_nothing (s);
    expect_phase (s, 10, "node1", "due");
    sched_ready (s, "L2", NULL);
    expect (s, "free 10 1"); /* and none is lost */
}

/* The manager itself counts it: it begins after ready, known whole. */
static void an_end_during_hello_begins_after_ready (void **state)
{
    struct story *s = *state;

    begin (s);
    nodes_up (s, "node4");
    sched_gone (s);
    sched_hello (s, "L2", partial_ok, "4");
    pass_over (s);
    job_ends (s, 11, "node4");
    later (s, 60000);
    expect_nothing (s);
    sched_ready (s, "L2", NULL);
    expect (s, "start node4 11");
    run_well (s, "node4", 11);
    expect (s, "free 11 4 final");
}

static void a_hello_that_is_abandoned_leaves_nothing (void **state)
{
    struct story *s = *state;

    begin_with_a_part_freed (s);
    sched_hello (s, "L2", partial_ok, "");
    pass_over (s);
    sched_gone (s);
    sched_hello (s, "L3", partial_ok, "");
    expect (s, "drain node[0-2] " HELLO);
    drained (s, "node[0-2]", HKC_DRAIN_ALREADY, HELLO);
    expect (s, "tell 10 0-3 free 3", "told L3");
    sched_ready (s, "L3", "0-2");
    expect (s, "undrain node[0-2] " HELLO);
}

static void ready_is_of_the_life_that_said_hello (void **state)
{
    struct story *s = *state;
    struct hkc_event ev = { .kind = HKC_EV_SCHED_READY };
    struct hk_error err;

    begin_with_a_part_freed (s);
    sched_hello (s, "L2", partial_ok, "");
    ev.sched.life = "L1";
    assert_int_equal (story_step (s, &ev, NULL, &err), -1);
    assert_int_equal (errno, ESTALE);
    ev.sched.life = "L2"; /* it was not answered yet */
    assert_int_equal (story_step (s, &ev, NULL, &err), -1);
    assert_string_equal (err.text, "hello is not answered yet");
    ev.sched.life = "";
    assert_int_equal (story_step (s, &ev, NULL, &err), -1);
    assert_int_equal (errno, EINVAL);
    story_turn (s);
}

/* ---- lives ---- */

static void a_life_resumes_and_frees_come_again (void **state)
{
    struct story *s = *state;
    struct hkc_event ok = { .kind = HKC_EV_FREE_OK };

    begin (s);
    well (s, "node0");
    later (s, 100);
    well (s, "node1");
    later (s, 100);
    well (s, "node2");
    expect (s, "free 10 0", "free 10 1", "free 10 2");
    ok.done.n = 1;
    assert_int_equal (story_step (s, &ok, NULL, NULL), 0);
    story_turn (s);
    sched_gone (s); /* the link broke; the scheduler lives on */
    sched_hello_after (s, "L1", 2);
    expect (s, "resumed L1", "free 10 2");
    story_restart (s);
    sched_hello_after (s, "L1", 2);
    expect (s, "resumed L1", "free 10 2");
    nodes_up (s, "node[0-3]");
    well (s, "node3");
    expect (s, "free 10 3 final");
}

static void frees_of_a_life_that_ended_are_not_said_again (void **state)
{
    struct story *s = *state;

    begin (s);
    well (s, "node0");
    sched_gone (s);
    pass_over (s);
    sched_hello (s, "L2", partial_ok, "");
    drained (s, "node[1-3]", HKC_DRAIN_OK, NULL);
    pass_over (s);
    sched_ready (s, "L2", "1-3");
    expect (s, "undrain node[1-3] " HELLO);
    assert_int_equal (store_count (s->store, "free"), 0);
}

static void in_flux_a_life_ends_with_its_link (void **state)
{
    struct story *s = *state;

    story_flux (s);
    sched_up (s, "L1");
    nodes_up (s, "node[0-1]");
    job_ends (s, 10, "node[0-1]");
    job_begins (s, 10);
    run_well (s, "node0", 10);
    pass_over (s);
    sched_gone (s);
    well (s, "node1");
    later (s, 60000);
    expect_nothing (s);
    sched_hello (s, "L2", partial_ok, "");
    expect (s, "told L2"); /* all of it is due: nothing is left */
}

static void a_life_without_a_link_keeps_its_frees (void **state)
{
    struct story *s = *state;

    begin (s);
    sched_gone (s);
    well (s, "node1");
    later (s, 60000);
    expect_nothing (s);
    sched_hello_after (s, "L1", 0);
    expect (s, "resumed L1", "free 10 1");
}

#define A_TEST(name) \
    cmocka_unit_test_setup_teardown (name, story_set_up, story_tear_down)

int main (void)
{
    const struct CMUnitTest tests[] = {
        A_TEST (a_new_scheduler_is_told_what_is_held),
        A_TEST (due_ranks_are_told_as_free),
        A_TEST (without_partial_ok_they_are_freed_after_ready),
        A_TEST (an_allocation_with_nothing_left_gets_no_entry),
        A_TEST (what_may_not_be_believed_is_drained_first),
        A_TEST (the_answer_tells_how_it_stands_then),
        A_TEST (an_account_that_has_them_ends_the_drains),
        A_TEST (an_account_that_lacks_them_keeps_them_drained),
        A_TEST (what_is_lacking_is_drained_then),
        A_TEST (an_account_is_compared_by_core),
        A_TEST (without_account_the_drains_stay_until_it_is_done),
        A_TEST (without_partial_ok_a_part_is_not_told),
        A_TEST (no_free_is_sent_between_hello_and_ready),
        A_TEST (an_end_during_hello_begins_after_ready),
        A_TEST (a_hello_that_is_abandoned_leaves_nothing),
        A_TEST (ready_is_of_the_life_that_said_hello),
        A_TEST (a_life_resumes_and_frees_come_again),
        A_TEST (frees_of_a_life_that_ended_are_not_said_again),
        A_TEST (in_flux_a_life_ends_with_its_link),
        A_TEST (a_life_without_a_link_keeps_its_frees),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}

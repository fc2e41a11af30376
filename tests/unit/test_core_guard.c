/* test_core_guard.c - stories of active jobs on held ranks, a scheduler that
 * was online before us, and a store that went back in time */
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
#define CONFLICT \
    "housekeeping: an active job holds a rank whose housekeeping is not done"
#define ONLINE HKC_REASON_UNTOLD

static const bool partial_ok = true;

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

/* ---- an active job holds the rank ---- */

static void an_active_job_s_rank_is_not_ours_to_tell (void **state)
{
    struct story *s = *state;

    begin (s);
    sched_gone (s);
    s->active = 20;
    sched_hello (s, "L2", partial_ok, "2");
    expect (s, "drain node2 " CONFLICT, "drain node[0-1,3] " HELLO);
    drained (s, "node[0-3]", HKC_DRAIN_OK, NULL);
    expect (s, "tell 10 0-3 free 2", "told L2");
    expect_phase (s, 10, "node2", "running conflict");
    expect_act (s, 10, "node2", "end that job");
    sched_ready (s, "L2", "0-1,3");
    expect (s, "undrain node[0-1,3] " HELLO);
    well (s, "node2");
    later (s, 60000);
    expect_nothing (s); /* no free while that job is there */
    expect_phase (s, 10, "node2", "ended conflict");
    well (s, "node[0-1,3]");
    later (s, 100);
    expect (s, "free 10 0-1,3 final");
    expect_phase (s, 10, "node2", "ended conflict");
}

static void until_that_job_ends (void **state)
{
    struct story *s = *state;

    begin (s);
    sched_gone (s);
    s->active = 20;
    sched_hello (s, "L2", partial_ok, "2");
    drained (s, "node[0-3]", HKC_DRAIN_OK, NULL);
    sched_ready (s, "L2", "0-1,3");
    undrained (s, "node[0-1,3]", HKC_DRAIN_OK);
    well (s, "node2");
    pass_over (s);
    job_ends (s, 20, "node2");
    expect (s, "start node2 20", "undrain node2 " CONFLICT);
    expect_phase (s, 10, "node2", "gone"); /* not known: closed out */
    run_well (s, "node2", 20);
    expect (s, "free 20 2 final");
}

static void nothing_is_started_under_an_active_job (void **state)
{
    struct story *s = *state;

    sched_up (s, "L1");
    job_ends (s, 10, "node[0-1]"); /* no node is there yet */
    sched_gone (s);
    s->active = 20;
    sched_hello (s, "L2", partial_ok, "1");
    drained (s, "node[0-1]", HKC_DRAIN_OK, NULL);
    sched_ready (s, "L2", NULL);
    pass_over (s);
    nodes_up (s, "node[0-1]");
    expect (s, "start node0 10");
    story_restart (s);
    nodes_up (s, "node[0-1]");
    pass_over (s);
    later (s, 60000);
    expect_nothing (s);
    expect_phase (s, 10, "node1", "waiting conflict");
    sched_hello_after (s, "L2", 0);
    job_ends (s, 20, "node1");
    drained (s, "node1", HKC_DRAIN_ALREADY, CONFLICT);
    expect_phase (s, 10, "node1", "waiting");
    expect_phase (s, 20, "node1", "waiting queued");
}

static void without_partial_ok_nothing_of_it_is_told (void **state)
{
    struct story *s = *state;

    begin (s);
    sched_gone (s);
    s->active = 20;
    sched_hello (s, "L2", !partial_ok, "2");
    drained (s, "node[0-3]", HKC_DRAIN_OK, NULL);
    sched_ready (s, "L2", NULL);
    pass_over (s);
    well (s, "node0");
    expect (s, "undrain node0 " HELLO);
}

/* Its end was recorded, and the manager had not heard our answer: the active
 * job is our own.
 */
static void a_job_that_is_active_may_be_ours (void **state)
{
    struct story *s = *state;

    begin (s);
    sched_gone (s);
    s->active = 10;
    sched_hello (s, "L2", partial_ok, "0-3");
    /* the manager itself tells it: there is nothing to wait for */
    expect (s, "drain node[0-3] " CONFLICT, "told L2");
    drained (s, "node[0-3]", HKC_DRAIN_OK, NULL);
    sched_ready (s, "L2", NULL);
    expect_nothing (s);
    assert_string_equal (job_ends_again (s, 10), "held");
    expect (s, "undrain node[0-3] " CONFLICT);
    expect_phase (s, 10, "node[0-3]", "running");
    well (s, "node[0-3]");
    expect (s, "free 10 0-3 final"); /* the scheduler counts it whole */
}

/* Closed by the hello, said again before that is on disk: not another one. */
static void an_end_is_said_again_in_the_turn_that_closes_it (void **state)
{
    struct story *s = *state;
    struct hk_rankset *ranks = hk_rankset_decode ("0-3", NULL);
    struct hkc_event ev = { .kind = HKC_EV_SCHED_HELLO };

    begin (s);
    sched_gone (s);
    well (s, "node[0-3]");
    pass_over (s);
    ev.sched.life = "L2";
    ev.sched.active = ranks;
    assert_int_equal (story_step (s, &ev, NULL, NULL), 0);
    assert_string_equal (job_ends_again (s, 10), "done");
    expect (s, "told L2");
    expect_phase (s, 10, "node[0-3]", "gone");
    hk_rankset_destroy (ranks);
}

/* ---- a scheduler that was online before us ---- */

static void what_its_account_shows_is_known (void **state)
{
    struct story *s = *state;

    nodes_up (s, "node[0-3]");
    job_ends (s, 10, "node[0-3]");
    run_runs (s, "node[0-3]", 10);
    pass_over (s);
    sched_online (s, "L1", "", "0-2");
    expect (s, "drain node3 " ONLINE);
    drained (s, "node3", HKC_DRAIN_OK, NULL);
    well (s, "node[0-1]");
    expect (s, "free 10 0-1");
    well (s, "node3");
    later (s, 100);
    expect (s, "undrain node3 " ONLINE); /* closed out */
    well (s, "node2");
    later (s, 100);
    expect (s, "free 10 2 final");
}

static void without_account_it_is_to_be_reloaded (void **state)
{
    struct story *s = *state;

    nodes_up (s, "node[0-4]");
    job_ends (s, 10, "node[0-3]");
    run_runs (s, "node[0-3]", 10);
    pass_over (s);
    sched_online (s, "L1", "", NULL);
    expect (s, "drain node[0-3] " ONLINE);
    drained (s, "node[0-3]", HKC_DRAIN_OK, NULL);
    well (s, "node0");
    later (s, 60000);
    expect_nothing (s);
    expect_phase (s, 10, "node0", "due");
    expect_act (s, 10, "node0", "reload the scheduler");
    job_ends (s, 11, "node4"); /* what begins later is known whole */
    run_well (s, "node4", 11);
    expect (s, "start node4 11", "free 11 4 final");
    sched_gone (s);
    sched_hello (s, "L2", partial_ok, "");
    /* without an account the drains stay until each is done */
    expect (s, "tell 10 0-3 free 0", "told L2", "drain node[1-3] " ONLINE);
}

static void an_active_job_counts_there_too (void **state)
{
    struct story *s = *state;

    nodes_up (s, "node[0-1]");
    job_ends (s, 10, "node[0-1]");
    run_runs (s, "node[0-1]", 10);
    pass_over (s);
    s->active = 20;
    sched_online (s, "L1", "1", "0-1");
    expect (s, "drain node1 " CONFLICT);
    well (s, "node[0-1]");
    expect (s, "free 10 0 final");
    expect_phase (s, 10, "node1", "ended conflict");
}

/* ---- the store went back in time ---- */

static void nothing_is_done_until_an_admin_says_so (void **state)
{
    struct story *s = *state;

    story_conf (s, "lost-after=60s");
    begin (s);
    nodes_up (s, "node4");
    nodes_silent (s, "node0", true);
    later (s, 61000);
    drained (s, "node0", HKC_DRAIN_OK, NULL);
    pass_over (s);
    story_event (s, HKC_EV_STORE_BACK);
    expect (s,
            "alarm the store went back in time: a node has seen more; "
            "nothing is started, freed or undrained until `hkctl recover`");
    well (s, "node[1-2]");
    job_ends (s, 11, "node4");
    nodes_silent (s, "node0", false);
    later (s, 20000);
    story_event (s, HKC_EV_STORE_BACK); /* said once */
    story_restart (s);
    nodes_up (s, "node[0-4]");
    sched_hello_after (s, "L1", 0);
    later (s, 60000);
    expect (s, "resumed L1");
    expect_act (s, 11, "node4", "hkctl recover");
    story_event (s, HKC_EV_RECOVER);
    later (s, 100);
    expect (s,
            "free 10 1-2",
            "start node4 11",
            "undrain node0 housekeeping: no contact for 1m");
    assert_int_equal (store_count (s->store, "audit WHERE what = 'recover'"),
                      1);
}

/* Each rank that is not done is told as held, also one that is due. */
static void hello_is_answered_with_all_as_held (void **state)
{
    struct story *s = *state;

    begin (s);
    sched_gone (s);
    well (s, "node1"); /* due, for all we know */
    story_event (s, HKC_EV_STORE_BACK);
    pass_over (s);
    sched_hello (s, "L2", partial_ok, "");
    expect (s, "drain node[0-3] " HELLO); /* what was due as well */
    drained (s, "node[0-3]", HKC_DRAIN_OK, NULL);
    expect (s, "tell 10 0-3", "told L2");
    sched_ready (s, "L2", "0-3");
    later (s, 60000);
    expect_nothing (s); /* not undrained either */
    story_event (s, HKC_EV_RECOVER);
    later (s, 100);
    expect (s, "free 10 1", "undrain node[0-3] " HELLO);
}

static void a_scheduler_that_was_told_more_frees_says_so_too (void **state)
{
    struct story *s = *state;

    begin (s);
    well (s, "node0");
    sched_gone (s);
    pass_over (s);
    sched_hello_after (s, "L1", 1);
    expect (s, "resumed L1");
    sched_gone (s);
    sched_hello_after (s, "L1", 2); /* we know of one */
    assert_string_equal (s->lines[0].verb, "alarm");
    pass_over (s);
    well (s, "node1");
    later (s, 60000);
    expect_nothing (s);
}

static void nothing_is_concluded_from_a_store_that_went_back (void **state)
{
    struct story *s = *state;

    begin (s);
    story_event (s, HKC_EV_STORE_BACK);
    pass_over (s);
    node_forgets (s, "node0", 10); /* it ended and was acknowledged, later */
    nodes_tell (s, "node0");
    expect_nothing (s);
    expect_phase (s, 10, "node0", "running");
    expect_history (s, 10, "node0", "");
    nodes_boot (s, "node1");
    expect_nothing (s);
}

#define A_TEST(name) \
    cmocka_unit_test_setup_teardown (name, story_set_up, story_tear_down)

int main (void)
{
    const struct CMUnitTest tests[] = {
        A_TEST (an_active_job_s_rank_is_not_ours_to_tell),
        A_TEST (until_that_job_ends),
        A_TEST (nothing_is_started_under_an_active_job),
        A_TEST (without_partial_ok_nothing_of_it_is_told),
        A_TEST (a_job_that_is_active_may_be_ours),
        A_TEST (an_end_is_said_again_in_the_turn_that_closes_it),
        A_TEST (what_its_account_shows_is_known),
        A_TEST (without_account_it_is_to_be_reloaded),
        A_TEST (an_active_job_counts_there_too),
        A_TEST (nothing_is_done_until_an_admin_says_so),
        A_TEST (hello_is_answered_with_all_as_held),
        A_TEST (a_scheduler_that_was_told_more_frees_says_so_too),
        A_TEST (nothing_is_concluded_from_a_store_that_went_back),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}

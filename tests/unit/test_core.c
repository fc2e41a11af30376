/* test_core.c - stories of a job's way: recorded, begun, run, freed, closed */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/story.h"
#include "tests/unit/store_rows.h"

static void each_node_is_given_back_as_it_is_done (void **state)
{
    struct story *s = *state;

    sched_up (s, "L1");
    nodes_up (s, "node[0-3]");
    pass_over (s);
    job_ends (s, 10, "node[0-3]");
    expect (s, "start node[0-3] 10");
    expect_phase (s, 10, "node[0-3]", "waiting");
    run_runs (s, "node[0-3]", 10);
    expect_phase (s, 10, "node[0-3]", "running");
    expect_nothing (s);
    run_ends (s, "node2", 10, HK_OUTCOME_SUCCESS);
    expect (s, "free 10 2"); /* the first at once */
    expect_phase (s, 10, "node2", "gone");
    later (s, 1000);
    run_ends (s, "node[0-1]", 10, HK_OUTCOME_SUCCESS);
    expect (s, "free 10 0-1");
    run_ends (s, "node3", 10, HK_OUTCOME_SUCCESS);
    expect (s, "free 10 3 final");
    expect_history (s, 10, "node0", "success");
    assert_int_equal (store_count (s->store, "closed WHERE jobid = 10"), 1);
    assert_int_equal (store_count (s->store, "alloc"), 0);
}

static void a_run_s_end_is_acknowledged_after_it_is_on_disk (void **state)
{
    struct story *s = *state;

    s->tells_acks = true;
    sched_up (s, "L1");
    nodes_up (s, "node0");
    job_ends (s, 10, "node0");
    run_runs (s, "node0", 10);
    pass_over (s);
    run_ends (s, "node0", 10, HK_OUTCOME_SUCCESS);
    expect (s, "ack node0 10", "free 10 0 final");
    assert_int_equal (s->nodes[0].runs_count, 0);
    assert_int_equal (store_count (s->store, "script WHERE name = '10-clean'"),
                      1);
}

/* The acknowledgement was lost: the node says the end again, and again it is
 * acknowledged; nothing else follows, also when the job is closed.
 */
static void an_end_said_again_is_acknowledged_again (void **state)
{
    struct story *s = *state;
    struct story_run run;

    s->tells_acks = true;
    sched_up (s, "L1");
    nodes_up (s, "node[0-1]");
    job_ends (s, 10, "node[0-1]");
    run_runs (s, "node[0-1]", 10);
    run_ends (s, "node0", 10, HK_OUTCOME_SUCCESS);
    pass_over (s);
    run = (struct story_run){ .alloc = s->jobs[0].alloc,
                              .jobid = 10,
                              .attempt = 1,
                              .phase = HK_RUN_ENDED,
                              .outcome = HK_OUTCOME_EXIT_CODE };
    s->nodes[0].runs[s->nodes[0].runs_count++] = run;
    nodes_tell (s, "node0");
    expect (s, "ack node0 10");
    expect_history (s, 10, "node0", "success"); /* the first one counts */
    run_ends (s, "node1", 10, HK_OUTCOME_SUCCESS);
    later (s, 100);
    pass_over (s);
    s->nodes[0].runs[s->nodes[0].runs_count++] = run;
    nodes_tell (s, "node0");
    expect (s, "ack node0 10");
    expect_history (s, 10, "node0", "success");
}

static void nodes_that_come_later_are_started_then (void **state)
{
    struct story *s = *state;

    sched_up (s, "L1");
    pass_over (s);
    job_ends (s, 10, "node[0-1]");
    expect_nothing (s);
    expect_phase (s, 10, "node[0-1]", "waiting no-hkd");
    expect_act (s, 10, "node0", "install and start flux-hkd");
    nodes_up (s, "node1");
    expect (s, "start node1 10");
    later (s, 3600000);
    expect_phase (
        s, 10, "node0", "waiting no-hkd"); /* never lost: never seen */
    expect_nothing (s);
}

/* Nothing is sent to a node before its full state was heard. */
static void a_node_is_asked_only_after_it_told_all (void **state)
{
    struct story *s = *state;

    sched_up (s, "L1");
    job_ends (s, 10, "node0");
    pass_over (s);
    s->tells_links = true;
    s->nodes[0].peer = node_hello (s, "node0", s->nodes[0].boot);
    assert_int_equal (s->lines_count, 1); /* the welcome */
    pass_over (s);
    nodes_tell (s, "node0");
    expect (s, "start node0 10");
}

static void start_is_sent_again_until_it_is_confirmed (void **state)
{
    struct story *s = *state;

    sched_up (s, "L1");
    nodes_up (s, "node0");
    job_ends (s, 10, "node0");
    pass_over (s);
    nodes_tell (s, "node0"); /* START was lost on its way */
    expect (s, "start node0 10");
    run_runs (s, "node0", 10);
    nodes_tell (s, "node0");
    expect_nothing (s);
}

static void a_run_that_is_no_longer_there_has_vanished (void **state)
{
    struct story *s = *state;

    sched_up (s, "L1");
    nodes_up (s, "node0");
    job_ends (s, 10, "node0");
    run_runs (s, "node0", 10);
    pass_over (s);
    node_forgets (s, "node0", 10);
    nodes_tell (s, "node0");
    assert_non_null (strstr (s->lines[0].rest, "housekeeping@fB vanished"));
    pass_over (s);
    expect_phase (s, 10, "node0", "ended");
    expect_history (s, 10, "node0", "vanished");
    drained (s, "node0", HKC_DRAIN_OK, NULL);
    expect (s, "free 10 0 final");
}

static void success_without_results_is_not_believed (void **state)
{
    struct story *s = *state;

    sched_up (s, "L1");
    nodes_up (s, "node0");
    job_ends (s, 10, "node0");
    run_runs (s, "node0", 10);
    run_ends (s, "node0", 10, HK_OUTCOME_NONE);
    expect_history (s, 10, "node0", "unknown");
    expect_phase (s, 10, "node0", "ended");
}

/* ---- recorded, begun, dropped ---- */

static void what_is_recorded_waits_until_it_is_begun (void **state)
{
    struct story *s = *state;

    story_flux (s);
    sched_up (s, "L1");
    nodes_up (s, "node0");
    pass_over (s);
    job_ends (s, 10, "node0");
    later (s, 3600000);
    expect_nothing (s);
    job_begins (s, 10);
    expect (s, "start node0 10");
    run_well (s, "node0", 10);
    expect (s, "free 10 0 final");
}

static void a_job_that_runs_again_is_dropped_without_a_trace (void **state)
{
    struct story *s = *state;
    struct hkc_event ev = { .kind = HKC_EV_JOB_DROP };
    struct hk_error err;

    story_flux (s);
    sched_up (s, "L1");
    nodes_up (s, "node[0-1]");
    job_ends (s, 10, "node0");
    pass_over (s);
    job_drops (s, 10);
    expect_nothing (s);
    expect_phase (s, 10, "node0", "gone");
    assert_int_equal (store_count (s->store, "alloc"), 0);
    assert_int_equal (store_count (s->store, "closed"), 0);
    ev.job.alloc = job_ends (s, 11, "node1");
    job_begins (s, 11);
    assert_int_equal (story_step (s, &ev, NULL, &err), -1);
    assert_string_equal (err.text, "a begun allocation is never dropped");
    ev.job.alloc = 4711;
    assert_int_equal (story_step (s, &ev, NULL, &err), -1);
    assert_int_equal (errno, ENOENT);
    story_turn (s);
    expect_phase (s, 11, "node1", "waiting");
}

static void the_same_end_said_again_is_the_same_allocation (void **state)
{
    struct story *s = *state;

    sched_up (s, "L1");
    nodes_up (s, "node0");
    job_ends (s, 10, "node0");
    pass_over (s);
    assert_string_equal (job_ends_again (s, 10), "held");
    story_restart (s);
    assert_string_equal (job_ends_again (s, 10), "held");
    expect_nothing (s);
    assert_int_equal (store_count (s->store, "alloc"), 1);
}

static void a_job_id_may_come_again (void **state)
{
    struct story *s = *state;

    sched_up (s, "L1");
    nodes_up (s, "node[0-1]");
    pass_over (s);
    job_ends (s, 10, "node0");
    job_ends (s, 10, "node1"); /* after a KVS that was restored */
    expect (s, "start node[0-1] 10");
    run_well (s, "node1", 10);
    expect (s, "free 10 1 final");
    run_well (s, "node0", 10);
    expect (s, "free 10 0 final");
}

/* ---- hosts that we do not act on, ranks that share a host ---- */

static void hosts_that_are_not_ours_to_clean_go_back_at_once (void **state)
{
    struct story *s = *state;

    story_conf (s, "coordinator.hosts=node[0-1]");
    sched_up (s, "L1");
    nodes_up (s, "node[0-3]");
    pass_over (s);
    job_ends (s, 10, "node[1-2]");
    expect (s, "start node1 10", "free 10 2");
    expect_history (s, 10, "node2", "skipped");
    run_well (s, "node1", 10);
    expect (s, "free 10 1 final");
}

static void ranks_of_one_host_share_a_run (void **state)
{
    struct story *s = *state;

    sched_up (s, "L1");
    nodes_up (s, "node[0-1]");
    pass_over (s);
    job_ends_with (s,
                   10,
                   "{\"version\":1,\"execution\":{\"R_lite\":[{\"rank\":"
                   "\"0-3\",\"children\":{\"core\":\"0-3\"}}],\"starttime\":0,"
                   "\"expiration\":0,\"nodelist\":[\"node0\",\"node1\","
                   "\"node0\",\"node1\"]}}");
    expect (s, "start node[0-1] 10");
    run_well (s, "node1", 10);
    expect (s, "free 10 1,3");
    run_well (s, "node0", 10);
    expect (s, "free 10 0,2 final");
}

/* ---- several jobs on a node ---- */

static void one_run_after_the_other_on_a_node (void **state)
{
    struct story *s = *state;

    sched_up (s, "L1");
    nodes_up (s, "node[0-1]");
    pass_over (s);
    job_ends (s, 10, "node0");
    job_ends (s, 11, "node[0-1]");
    job_ends (s, 12, "node0");
    expect (s, "start node0 10", "start node1 11");
    expect_phase (s, 11, "node0", "waiting queued");
    run_runs (s, "node0", 10);
    nodes_tell (s, "node0");
    expect_nothing (s);
    run_ends (s, "node0", 10, HK_OUTCOME_SUCCESS);
    expect (s, "free 10 0 final", "start node0 11");
    expect_phase (s, 12, "node0", "waiting queued");
    run_well (s, "node0", 11);
    expect (s, "free 11 0", "start node0 12");
}

static void or_all_at_once_where_that_is_wanted (void **state)
{
    struct story *s = *state;

    story_conf (s, "per-node=parallel");
    sched_up (s, "L1");
    nodes_up (s, "node0");
    pass_over (s);
    job_ends (s, 10, "node0");
    job_ends (s, 11, "node0");
    expect (s, "start node0 10", "start node0 11");
    expect_phase (s, 11, "node0", "waiting");
    run_well (s, "node0", 11);
    expect (s, "free 11 0 final");
    run_well (s, "node0", 10);
    expect (s, "free 10 0 final");
}

/* ---- kill ---- */

static void a_run_is_killed_while_it_runs (void **state)
{
    struct story *s = *state;

    sched_up (s, "L1");
    nodes_up (s, "node[0-1]");
    job_ends (s, 10, "node[0-1]");
    run_runs (s, "node[0-1]", 10);
    pass_over (s);
    kill_runs (s, 10, "node1");
    expect (s, "stop node1 10 15");
    assert_string_equal (s->results, "node1: signal sent");
    expect_phase (s, 10, "node1", "running"); /* until the node says */
    nodes_tell (s, "node1");                  /* the signal was lost: again */
    expect (s, "stop node1 10 15");
    run_ends (s, "node1", 10, HK_OUTCOME_KILLED);
    expect_history (s, 10, "node1", "killed");
    expect_phase (s, 10, "node1", "ended");
    assert_string_equal (s->lines[0].verb, "drain");
    pass_over (s);
    kill_runs (s, 10, "node1");
    assert_string_equal (s->results, "");
    assert_int_equal (store_count (s->store, "audit WHERE what = 'kill'"), 2);
    expect_nothing (s);
}

static void a_run_is_killed_before_it_began (void **state)
{
    struct story *s = *state;

    sched_up (s, "L1");
    nodes_up (s, "node0");
    job_ends (s, 10, "node[0-1]"); /* node1 is not there */
    pass_over (s);
    kill_runs (s, 10, "node1");
    assert_string_equal (s->results, "node1: ended before it began");
    expect_history (s, 10, "node1", "killed");
    pass_over (s);
    drained (s, "node1", HKC_DRAIN_OK, NULL);
    expect (s, "free 10 1");
    nodes_up (s, "node1");
    expect_nothing (s); /* it is never started */
}

/* START may have been delivered: only the node's own word ends the run. */
static void a_kill_without_contact_waits_for_the_node (void **state)
{
    struct story *s = *state;

    sched_up (s, "L1");
    nodes_up (s, "node0");
    job_ends (s, 10, "node0");
    run_runs (s, "node0", 10);
    nodes_gone (s, "node0");
    pass_over (s);
    kill_runs (s, 0, NULL);
    assert_string_equal (s->results,
                         "node0: no contact; is stopped when the node returns");
    expect_nothing (s);
    expect_phase (s, 10, "node0", "running");
    story_restart (s);
    nodes_up (s, "node0");
    expect (s, "stop node0 10 15");
}

#define A_TEST(name) \
    cmocka_unit_test_setup_teardown (name, story_set_up, story_tear_down)

int main (void)
{
    const struct CMUnitTest tests[] = {
        A_TEST (each_node_is_given_back_as_it_is_done),
        A_TEST (a_run_s_end_is_acknowledged_after_it_is_on_disk),
        A_TEST (an_end_said_again_is_acknowledged_again),
        A_TEST (nodes_that_come_later_are_started_then),
        A_TEST (a_node_is_asked_only_after_it_told_all),
        A_TEST (start_is_sent_again_until_it_is_confirmed),
        A_TEST (a_run_that_is_no_longer_there_has_vanished),
        A_TEST (success_without_results_is_not_believed),
        A_TEST (what_is_recorded_waits_until_it_is_begun),
        A_TEST (a_job_that_runs_again_is_dropped_without_a_trace),
        A_TEST (the_same_end_said_again_is_the_same_allocation),
        A_TEST (a_job_id_may_come_again),
        A_TEST (hosts_that_are_not_ours_to_clean_go_back_at_once),
        A_TEST (ranks_of_one_host_share_a_run),
        A_TEST (one_run_after_the_other_on_a_node),
        A_TEST (or_all_at_once_where_that_is_wanted),
        A_TEST (a_run_is_killed_while_it_runs),
        A_TEST (a_run_is_killed_before_it_began),
        A_TEST (a_kill_without_contact_waits_for_the_node),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}

/* test_core_host.c - stories of what a host alone knows and asks */
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

#define HELLO "housekeeping: held while the scheduler restarts"

static const bool partial_ok = true;

/* What a host of ours knows by rank it can say by rank. */
static void runs_are_killed_by_rank (void **state)
{
    struct story *s = *state;

    sched_up (s, "L1");
    nodes_up (s, "node[0-3]");
    job_ends (s, 10, "node[0-3]");
    run_runs (s, "node[0-3]", 10);
    pass_over (s);
    kill_ranks (s, 10, "1,3,9");
    expect (s, "stop node[1,3] 10 15");
    kill_ranks (s, 11, "0"); /* of another job */
    expect_nothing (s);
    assert_string_equal (s->results, "");
}

static int look_at_alloc (void *arg, const struct hkc_alloc_view *v)
{
    char *ranks = hk_rankset_encode (v->ranks);
    char *done = hk_rankset_encode (v->done);
    char *text = arg;
    size_t n = strlen (text);

    snprintf (text + n,
              256 - n,
              "%lu uid %u %.1f-%.1f %s %s but %s; ",
              v->jobid,
              v->userid,
              v->t_submit,
              v->t_end,
              v->begun ? "begun" : "recorded",
              ranks,
              done);
    assert_non_null (strstr (v->R, "\"R_lite\""));
    free (ranks);
    free (done);
    return v->jobid == 12;
}

static void what_is_open_can_be_looked_at (void **state)
{
    struct story *s = *state;
    char text[256] = "";

    story_flux (s);
    sched_up (s, "L1");
    nodes_up (s, "node[0-3]");
    for (uint64_t jobid = 10; jobid <= 13; jobid++) {
        char host[16];
        snprintf (host, sizeof (host), "node[0-%lu]", jobid - 10);
        job_ends (s, jobid, host);
    }
    job_begins (s, 11);
    run_well (s, "node1", 11);
    assert_int_equal (hkc_core_each_alloc (s->core, look_at_alloc, text), 1);
    assert_string_equal (text,
                         "10 uid 1000 10.0-10.5 recorded 0 but ; "
                         "11 uid 1000 11.0-11.5 begun 0-1 but 1; "
                         "12 uid 1000 12.0-12.5 recorded 0-2 but ; ");
}

/* ---- recorded, and not begun ---- */

static void what_is_recorded_is_the_managers_to_tell (void **state)
{
    struct story *s = *state;

    story_flux (s);
    sched_up (s, "L1");
    nodes_up (s, "node[0-1]");
    job_ends (s, 10, "node0");
    job_ends (s, 11, "node1");
    job_begins (s, 11);
    sched_gone (s);
    pass_over (s);
    sched_hello (s, "L2", partial_ok, "");
    expect (s, "tell 11 1", "told L2");
    sched_ready (s, "L2", NULL);
    expect_nothing (s);
    job_begins (s, 10); /* it was told to L2 as an active job */
    expect (s, "start node0 10");
    run_well (s, "node0", 10);
    expect (s, "free 10 0 final");
}

static void after_a_restart_the_host_settles_what_is_recorded (void **state)
{
    struct story *s = *state;

    story_flux (s);
    sched_up (s, "L1");
    job_ends (s, 10, "node0");
    job_ends (s, 11, "node1");
    pass_over (s);
    story_restart (s);
    nodes_up (s, "node[0-1]");
    expect_nothing (s);
    job_begins (s, 11);
    expect (s, "start node1 11");
    sched_hello (s, "L2", partial_ok, "");
    expect (s, "tell 11 1", "told L2");
    sched_ready (s, "L2", NULL);
    expect_nothing (s); /* 10 is still in CLEANUP */
    job_drops (s, 10);
    expect_phase (s, 10, "node0", "gone");
}

static void what_begins_between_answer_and_ready_is_known_whole (void **state)
{
    struct story *s = *state;

    story_flux (s);
    sched_up (s, "L1");
    nodes_up (s, "node0");
    job_ends (s, 10, "node0");
    sched_gone (s);
    sched_hello (s, "L2", partial_ok, "0");
    pass_over (s);
    job_begins (s, 10);
    expect_nothing (s);
    sched_ready (s, "L2", NULL);
    expect (s, "start node0 10");
    run_well (s, "node0", 10);
    expect (s, "free 10 0 final");
}

/* ---- a job that the manager has forgotten ---- */

/* Jobs 10 on node0 to node1 and 11 on node2, counted by life L1. */
static void begin (struct story *s)
{
    sched_up (s, "L1");
    nodes_up (s, "node[0-2]");
    job_ends (s, 10, "node[0-1]");
    job_ends (s, 11, "node2");
    run_runs (s, "node[0-1]", 10);
    run_runs (s, "node2", 11);
    pass_over (s);
}

static void purged_is_drained (struct story *s, bool may_tell_part)
{
    begin (s);
    job_purged (s, 10, true);
    expect_nothing (s);
    sched_gone (s);
    sched_hello (s, "L2", may_tell_part, "");
    expect (s, "drain node[0-1] " HELLO);
    drained (s, "node0", HKC_DRAIN_OK, NULL);
    expect_nothing (s);
    drained (s, "node1", HKC_DRAIN_OK, NULL);
    expect (s, "tell 11 2", "told L2");
    expect_phase (s, 10, "node[0-1]", "running purged");
    expect_act (s, 10, "node0", "wait until it is done, or hkctl kill");
    sched_ready (s, "L2", "2");
    expect_nothing (s); /* drained while it is held */
    run_ends (s, "node0", 10, HK_OUTCOME_SUCCESS);
    expect (s, "undrain node0 " HELLO); /* nothing is freed */
    expect_phase (s, 10, "node0", "gone");
    run_ends (s, "node1", 10, HK_OUTCOME_SUCCESS);
    expect (s, "undrain node1 " HELLO);
    expect_phase (s, 10, "node[0-1]", "gone");
}

static void a_purged_job_is_drained_and_not_told (void **state)
{
    purged_is_drained (*state, partial_ok);
}

static void nor_is_it_without_partial_ok (void **state)
{
    purged_is_drained (*state, !partial_ok);
}

static void a_ready_life_goes_on_with_a_purged_job (void **state)
{
    struct story *s = *state;

    begin (s);
    job_purged (s, 10, true);
    run_ends (s, "node[0-1]", 10, HK_OUTCOME_SUCCESS);
    later (s, 100);
    expect (s, "free 10 0-1 final");
}

static void another_job_of_that_id_is_not_purged (void **state)
{
    struct story *s = *state;

    begin (s);
    job_purged (s, 10, false);
    sched_gone (s);
    sched_hello (s, "L2", partial_ok, "");
    expect (s, "tell 10 0-1", "tell 11 2", "told L2");
    expect_phase (s, 10, "node[0-1]", "running");
}

static void a_job_is_purged_while_a_hello_is_under_way (void **state)
{
    struct story *s = *state;

    begin (s);
    run_ends (s, "node1", 10, HK_OUTCOME_SUCCESS);
    sched_gone (s);
    pass_over (s);
    sched_hello (s, "L2", partial_ok, ""); /* node0 is drained first */
    job_purged (s, 11, true);
    expect (s, "drain node[0,2] " HELLO);
    drained (s, "node[0,2]", HKC_DRAIN_OK, NULL);
    expect (s, "tell 10 0-1 free 1", "told L2");
}

/* The host had not heard the end of it: the manager lost the job instead. */
static void what_the_manager_never_told_is_begun_and_drained (void **state)
{
    struct story *s = *state;

    story_flux (s);
    sched_up (s, "L1");
    nodes_up (s, "node[0-1]");
    job_ends (s, 10, "node[0-1]");
    pass_over (s);
    job_purged (s, 10, true);
    job_begins (s, 10);
    expect (s, "start node[0-1] 10", "drain node[0-1] " HELLO);
    drained (s, "node[0-1]", HKC_DRAIN_OK, NULL);
    run_well (s, "node[0-1]", 10);
    expect (s, "undrain node[0-1] " HELLO);
    expect_phase (s, 10, "node[0-1]", "gone");
}

/* ---- ranks that are other hosts than R says ---- */

/* node1 is gone from the inventory, and node2 is rank 1 now. */
static void begin_renumbered (struct story *s)
{
    sched_up (s, "L1");
    nodes_up (s, "node[0-3]");
    job_ends (s, 10, "node[0-2]");
    run_runs (s, "node[0-2]", 10);
    sched_gone (s);
    pass_over (s);
    ranks_are (s, "node[0,2-3]");
    expect_nothing (s);
    expect_phase (s, 10, "node0", "running");
    expect_phase (s, 10, "node[1-2]", "running misplaced");
    expect_act (s, 10, "node1", "wait until it is done, or hkctl kill");
}

static void misplaced_ranks_are_told_as_free (void **state)
{
    struct story *s = *state;

    begin_renumbered (s);
    sched_hello (s, "L2", partial_ok, "");
    expect (s, "drain node[0-2] " HELLO);
    drained (s, "node[0,2]", HKC_DRAIN_OK, NULL);
    expect_nothing (s);
    drained (s, "node1", HKC_DRAIN_NOT_FOUND, NULL);
    expect (s, "tell 10 0-2 free 1-2", "told L2");
    sched_ready (s, "L2", "0");
    expect (s, "undrain node0 " HELLO);
    undrained (s, "node0", HKC_DRAIN_OK);
    run_ends (s, "node2", 10, HK_OUTCOME_SUCCESS);
    expect (s, "undrain node2 " HELLO); /* no free: it is not rank 2 */
    expect_phase (s, 10, "node2", "gone");
    run_ends (s, "node[0-1]", 10, HK_OUTCOME_SUCCESS);
    later (s, 100);
    expect (s, "free 10 0 final");
    expect_phase (s, 10, "node[0-2]", "gone");
}

static void without_partial_ok_nothing_of_it_is_told (void **state)
{
    struct story *s = *state;

    begin_renumbered (s);
    sched_hello (s, "L2", !partial_ok, "");
    expect (s, "drain node[0-2] " HELLO);
    drained (s, "node[0-2]", HKC_DRAIN_OK, NULL);
    expect (s, "told L2");
    sched_ready (s, "L2", NULL);
    expect_nothing (s);
    run_ends (s, "node[0-2]", 10, HK_OUTCOME_SUCCESS);
    later (s, 100);
    expect (s, "undrain node[0-2] " HELLO);
    expect_phase (s, 10, "node[0-2]", "gone");
}

/* Rank 1 is node2 now: a job there conflicts with what node2 still has, not
 * with node1.
 */
static void active_jobs_are_where_ranks_are_now (void **state)
{
    struct story *s = *state;

    begin_renumbered (s);
    sched_hello (s, "L2", partial_ok, "1");
    expect_phase (s, 10, "node1", "running misplaced");
    expect_phase (s, 10, "node2", "running conflict");
    expect (s,
            "drain node[0-1] " HELLO,
            "drain node2 housekeeping: an active job holds a rank whose "
            "housekeeping is not done");
}

static void a_due_rank_that_is_another_host_is_closed_out (void **state)
{
    struct story *s = *state;

    begin_renumbered (s);
    run_ends (s, "node[1-2]", 10, HK_OUTCOME_SUCCESS);
    sched_hello (s, "L2", partial_ok, "");
    expect (s, "drain node0 " HELLO);
    drained (s, "node0", HKC_DRAIN_OK, NULL);
    expect (s, "tell 10 0-2 free 1-2", "told L2");
    expect_phase (s, 10, "node[1-2]", "gone");
}

static void a_ready_life_goes_on_when_ranks_are_said (void **state)
{
    struct story *s = *state;

    begin (s);
    ranks_are (s, "node[2,1,0]");
    expect_nothing (s);
    run_ends (s, "node[0-1]", 10, HK_OUTCOME_SUCCESS);
    later (s, 100);
    expect (s, "free 10 0-1 final");
    run_ends (s, "node2", 11, HK_OUTCOME_SUCCESS);
    expect (s, "free 11 2 final");
}

static void ranks_are_said_while_a_hello_is_under_way (void **state)
{
    struct story *s = *state;

    begin (s);
    run_ends (s, "node1", 10, HK_OUTCOME_SUCCESS);
    sched_gone (s);
    pass_over (s);
    sched_hello (s, "L2", partial_ok, "");
    expect (s, "drain node0 " HELLO);
    ranks_are (s, "node[0-1]");
    expect (s, "drain node2 " HELLO);
    drained (s, "node[0,2]", HKC_DRAIN_OK, NULL);
    expect (s, "tell 10 0-1 free 1", "told L2");
}

static void ranks_where_r_says_change_nothing (void **state)
{
    struct story *s = *state;

    begin (s);
    sched_gone (s);
    ranks_are (s, "node3");
    ranks_are (s, "node[0-9]");
    sched_hello (s, "L2", partial_ok, "");
    expect (s, "tell 10 0-1", "tell 11 2", "told L2");
    sched_gone (s);
    ranks_are (s, "node3");
    ranks_are (s, NULL);
    sched_hello (s, "L3", partial_ok, "");
    expect (s, "tell 10 0-1", "tell 11 2", "told L3");
}

/* Its account is by rank: it says nothing of what is elsewhere. */
static void online_before_us_it_does_not_count_what_is_misplaced (void **state)
{
    struct story *s = *state;

    begin (s);
    sched_gone (s);
    story_flux (s);
    nodes_up (s, "node[0-2]");
    ranks_are (s, "node[0,2,1]");
    pass_over (s);
    sched_online (s, "L2", "", "0-2");
    expect (s, "drain node[1-2] " HKC_REASON_UNTOLD);
    drained (s, "node[1-2]", HKC_DRAIN_OK, NULL);
    run_ends (s, "node[0-1]", 10, HK_OUTCOME_SUCCESS);
    later (s, 100);
    expect (s, "free 10 0 final", "undrain node1 " HKC_REASON_UNTOLD);
}

#define A_TEST(name) \
    cmocka_unit_test_setup_teardown (name, story_set_up, story_tear_down)

int main (void)
{
    const struct CMUnitTest tests[] = {
        A_TEST (runs_are_killed_by_rank),
        A_TEST (what_is_open_can_be_looked_at),
        A_TEST (what_is_recorded_is_the_managers_to_tell),
        A_TEST (after_a_restart_the_host_settles_what_is_recorded),
        A_TEST (what_begins_between_answer_and_ready_is_known_whole),
        A_TEST (a_purged_job_is_drained_and_not_told),
        A_TEST (nor_is_it_without_partial_ok),
        A_TEST (a_ready_life_goes_on_with_a_purged_job),
        A_TEST (another_job_of_that_id_is_not_purged),
        A_TEST (a_job_is_purged_while_a_hello_is_under_way),
        A_TEST (what_the_manager_never_told_is_begun_and_drained),
        A_TEST (misplaced_ranks_are_told_as_free),
        A_TEST (without_partial_ok_nothing_of_it_is_told),
        A_TEST (active_jobs_are_where_ranks_are_now),
        A_TEST (a_due_rank_that_is_another_host_is_closed_out),
        A_TEST (a_ready_life_goes_on_when_ranks_are_said),
        A_TEST (ranks_are_said_while_a_hello_is_under_way),
        A_TEST (ranks_where_r_says_change_nothing),
        A_TEST (online_before_us_it_does_not_count_what_is_misplaced),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}

/* test_core_node.c - stories of contact, boots, and what comes late */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/store_rows.h"
#include "tests/unit/story.h"

/* Job 10 runs on all of them; a heartbeat is 20 s, lost-after a minute. */
static void begin (struct story *s, const char *hosts)
{
    story_conf (s, "lost-after=60s");
    sched_up (s, "L1");
    nodes_up (s, hosts);
    job_ends (s, 10, hosts);
    run_runs (s, hosts, 10);
    pass_over (s);
}

/* ---- contact ---- */

static void a_node_that_returns_goes_on (void **state)
{
    struct story *s = *state;

    begin (s, "node0");
    nodes_gone (s, "node0");
    later (s, 30000);
    expect_phase (s, 10, "node0", "running");
    nodes_up (s, "node0");
    expect_nothing (s);
    run_ends (s, "node0", 10, HK_OUTCOME_SUCCESS);
    expect (s, "free 10 0 final");
}

static void what_ended_meanwhile_is_told_on_return (void **state)
{
    struct story *s = *state;

    begin (s, "node0");
    nodes_gone (s, "node0");
    run_ends (s, "node0", 10, HK_OUTCOME_SUCCESS);
    expect_nothing (s);
    nodes_up (s, "node0");
    expect (s, "free 10 0 final");
}

/* Silence counts for hosts that we wait for alone. */
static void a_node_without_a_run_is_not_lost (void **state)
{
    struct story *s = *state;

    begin (s, "node0");
    nodes_up (s, "node1");
    run_ends (s, "node0", 10, HK_OUTCOME_SUCCESS);
    pass_over (s);
    nodes_silent (s, "node[0-1]", true);
    later (s, 3600000);
    expect_nothing (s);
}

static void lost_counts_from_when_the_coordinator_could_hear (void **state)
{
    struct story *s = *state;

    begin (s, "node[0-1]");
    nodes_silent (s, "node1", true);
    later (s, 40000);
    story_event (s, HKC_EV_DEAF_ENDS); /* the store could not be written */
    later (s, 55000);
    expect_nothing (s);
    later (s, 10000);
    expect (s, "drain node1 housekeeping: no contact for 1m");
}

static void many_that_fall_silent_together_are_the_head_s_fault (void **state)
{
    struct story *s = *state;

    begin (s, "node[0-19]");
    nodes_silent (s, "node[0-9]", true);
    later (s, 70000);
    expect (s,
            "alarm 10 hosts fell silent together: look at the head and its "
            "network; nothing is drained for it");
    later (s, 3600000);
    expect_nothing (s); /* said once */
    nodes_silent (s, "node[1-9]", false);
    later (s, 40000);
    expect (s, "drain node0 housekeeping: no contact for 1h 1m");
}

static void a_few_that_fall_silent_are_lost_each (void **state)
{
    struct story *s = *state;

    begin (s, "node[0-19]");
    nodes_silent (s, "node[0-4]", true);
    later (s, 70000);
    expect (s, "drain node[0-4] housekeeping: no contact for 1m");
}

/* Only with the last part of a state does absence mean anything. */
static void a_part_of_a_state_shows_no_absence (void **state)
{
    struct story *s = *state;
    struct hkc_event ev = { .kind = HKC_EV_NODE_STATE };

    begin (s, "node0");
    ev.node_state.peer = s->nodes[0].peer;
    ev.node_state.boot_id = s->nodes[0].boot;
    ev.node_state.foreign = "";
    ev.node_state.first = true;
    assert_int_equal (story_step (s, &ev, NULL, NULL), 0);
    story_turn (s);
    expect_phase (s, 10, "node0", "running");
    ev.node_state.first = false;
    ev.node_state.last = true;
    assert_int_equal (story_step (s, &ev, NULL, NULL), 0);
    story_turn (s);
    expect_phase (s, 10, "node0", "ended");
    expect_history (s, 10, "node0", "vanished");
}

/* ---- boots ---- */

static void a_reboot_ends_the_run_and_another_attempt_follows (void **state)
{
    struct story *s = *state;

    begin (s, "node0");
    nodes_boot (s, "node0");
    expect (s, "start node0 10#2");
    expect_history (s, 10, "node0", "rebooted");
    run_well (s, "node0", 10);
    expect (s, "free 10 0 final");
    expect_history (s, 10, "node0", "rebooted,success");
}

static void or_the_node_is_drained_if_that_is_wanted (void **state)
{
    struct story *s = *state;

    story_conf (s, "on-reboot=drain");
    begin (s, "node0");
    nodes_boot (s, "node0");
    assert_int_equal (s->lines_count, 1);
    assert_string_equal (s->lines[0].verb, "drain");
    assert_non_null (strstr (s->lines[0].rest, "housekeeping@fB rebooted"));
    pass_over (s);
    drained (s, "node0", HKC_DRAIN_OK, NULL);
    expect (s, "free 10 0 final");
    expect_history (s, 10, "node0", "rebooted");
}

static void a_reboot_before_start_is_no_run_s_end (void **state)
{
    struct story *s = *state;

    sched_up (s, "L1");
    nodes_up (s, "node0");
    nodes_gone (s, "node0");
    job_ends (s, 10, "node0");
    pass_over (s);
    nodes_boot (s, "node0");
    expect (s, "start node0 10");
    expect_history (s, 10, "node0", "");
}

/* START may have been delivered before the boot: it was an attempt. */
static void start_that_may_have_been_delivered_counts (void **state)
{
    struct story *s = *state;

    sched_up (s, "L1");
    nodes_up (s, "node0");
    job_ends (s, 10, "node0");
    pass_over (s);
    nodes_boot (s, "node0");
    expect (s, "start node0 10#2");
    expect_history (s, 10, "node0", "rebooted");
}

/* ---- S6: what is late changes nothing ---- */

static struct story_run late_run (struct story *s, int attempt)
{
    return (struct story_run){ .alloc = s->jobs[0].alloc,
                               .jobid = 10,
                               .attempt = attempt,
                               .phase = HK_RUN_ENDED,
                               .outcome = HK_OUTCOME_SUCCESS };
}

static void an_older_attempt_changes_nothing (void **state)
{
    struct story *s = *state;
    struct story_run run;

    begin (s, "node0");
    nodes_boot (s, "node0");
    pass_over (s);
    run = late_run (s, 1);
    run_report (s, s->nodes[0].peer, s->nodes[0].boot, &run);
    expect_phase (s, 10, "node0", "waiting");
    expect_history (s, 10, "node0", "rebooted");
    expect_nothing (s);
}

static void an_older_boot_changes_nothing (void **state)
{
    struct story *s = *state;
    struct story_run run;
    char boot[HK_ID_BYTES];

    begin (s, "node0");
    strcpy (boot, s->nodes[0].boot);
    nodes_boot (s, "node0");
    pass_over (s);
    run = late_run (s, 2);
    run_report (s, s->nodes[0].peer, boot, &run);
    expect_phase (s, 10, "node0", "waiting");
    expect_nothing (s);
}

/* It is told to say HELLO again. */
static void an_older_session_changes_nothing (void **state)
{
    struct story *s = *state;
    struct story_run run;
    uint64_t peer;

    begin (s, "node0");
    peer = s->nodes[0].peer;
    nodes_up (s, "node0");
    expect (s, "close nobody");
    run = late_run (s, 1);
    run_report (s, peer, s->nodes[0].boot, &run);
    expect (s, "close nobody");
    expect_phase (s, 10, "node0", "running");
}

static void an_unknown_run_changes_no_rank (void **state)
{
    struct story *s = *state;
    struct story_run run;

    begin (s, "node0");
    run = late_run (s, 1);
    run.instance = "ffffffffffffffffffffffffffffffff";
    run_report (s, s->nodes[0].peer, s->nodes[0].boot, &run);
    expect_phase (s, 10, "node0", "running");
    assert_int_equal (s->lines_count, 1);
    assert_string_equal (s->lines[0].verb, "drain");
    pass_over (s);
    run = late_run (s, 7); /* an attempt that was never made */
    run_report (s, s->nodes[0].peer, s->nodes[0].boot, &run);
    expect_phase (s, 10, "node0", "running");
}

static void a_report_before_the_full_state_changes_nothing (void **state)
{
    struct story *s = *state;
    struct story_run run;

    begin (s, "node0");
    nodes_gone (s, "node0");
    s->nodes[0].peer = node_hello (s, "node0", s->nodes[0].boot);
    run = late_run (s, 1);
    run_report (s, s->nodes[0].peer, s->nodes[0].boot, &run);
    expect_phase (s, 10, "node0", "running");
    expect_nothing (s);
}

#define A_TEST(name) \
    cmocka_unit_test_setup_teardown (name, story_set_up, story_tear_down)

/* ---- blocked ---- */

static const char by_it[] = "blocked: 1 process of it is left";

static void blocked_begin (struct story *s)
{
    sched_up (s, "L1");
    nodes_up (s, "node0");
    job_ends (s, 10, "node0");
    job_ends (s, 11, "node0");
    pass_over (s);
    run_waits (s, "node0", 10, by_it);
    expect_phase (s, 10, "node0", "waiting blocked");
    expect_act (s, 10, "node0", "reboot the node");
    expect_phase (s, 11, "node0", "waiting queued");
    expect_nothing (s);
}

static void a_blocked_run_is_shown_and_goes_on (void **state)
{
    struct story *s = *state;

    blocked_begin (s);
    later (s, 600000);
    nodes_tell (s, "node0");
    expect_nothing (s); /* neither lost nor asked for again */
    run_runs (s, "node0", 10);
    expect_phase (s, 10, "node0", "running");
    run_ends (s, "node0", 10, HK_OUTCOME_SUCCESS);
    expect (s, "free 10 0 final", "start node0 11");
}

static void a_blocked_run_is_known_again_after_restarts (void **state)
{
    struct story *s = *state;

    blocked_begin (s);
    story_restart (s);
    sched_up (s, "L1");
    pass_over (s);
    expect_phase (s, 10, "node0", "waiting");
    nodes_up (s, "node0");
    expect_nothing (s);
    expect_phase (s, 10, "node0", "waiting blocked");
    /* hkd's own: it has no file of such a run, which is started once more */
    nodes_gone (s, "node0");
    expect_phase (s, 10, "node0", "waiting");
    node_forgets (s, "node0", 10);
    nodes_up (s, "node0");
    expect (s, "start node0 10");
    expect_phase (s, 10, "node0", "waiting");
    run_waits (s, "node0", 10, by_it);
    expect_phase (s, 10, "node0", "waiting blocked");
}

static void a_blocked_run_can_be_killed (void **state)
{
    struct story *s = *state;

    blocked_begin (s);
    kill_runs (s, 10, "node0");
    expect (s, "stop node0 10 15");
    /* hkd was restarted and did not hear it */
    nodes_gone (s, "node0");
    node_forgets (s, "node0", 10);
    nodes_up (s, "node0");
    expect (s, "start node0 10");
    run_waits (s, "node0", 10, by_it);
    expect (s, "stop node0 10 15");
    nodes_tell (s, "node0");
    expect (s, "stop node0 10 15");
    run_ends (s, "node0", 10, HK_OUTCOME_KILLED);
    expect_phase (s, 10, "node0", "ended");
    expect_history (s, 10, "node0", "killed");
}

static void a_reboot_ends_a_blocked_run (void **state)
{
    struct story *s = *state;

    blocked_begin (s);
    nodes_boot (s, "node0");
    expect (s, "start node0 10#2");
    expect_phase (s, 10, "node0", "waiting");
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        A_TEST (a_node_that_returns_goes_on),
        A_TEST (what_ended_meanwhile_is_told_on_return),
        A_TEST (a_node_without_a_run_is_not_lost),
        A_TEST (lost_counts_from_when_the_coordinator_could_hear),
        A_TEST (many_that_fall_silent_together_are_the_head_s_fault),
        A_TEST (a_few_that_fall_silent_are_lost_each),
        A_TEST (a_part_of_a_state_shows_no_absence),
        A_TEST (a_reboot_ends_the_run_and_another_attempt_follows),
        A_TEST (or_the_node_is_drained_if_that_is_wanted),
        A_TEST (a_reboot_before_start_is_no_run_s_end),
        A_TEST (start_that_may_have_been_delivered_counts),
        A_TEST (an_older_attempt_changes_nothing),
        A_TEST (an_older_boot_changes_nothing),
        A_TEST (an_older_session_changes_nothing),
        A_TEST (an_unknown_run_changes_no_rank),
        A_TEST (a_report_before_the_full_state_changes_nothing),
        A_TEST (a_blocked_run_is_shown_and_goes_on),
        A_TEST (a_blocked_run_is_known_again_after_restarts),
        A_TEST (a_blocked_run_can_be_killed),
        A_TEST (a_reboot_ends_a_blocked_run),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}

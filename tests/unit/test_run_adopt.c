/* test_run_adopt.c - the node's state machine: what is found after a restart */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/run_node.h"

static void a_run_is_adopted_and_goes_on (void **state)
{
    (void)state;
    rn.now_ms += MINUTE;
    assert_int_equal (run_file (HK_RUN_RUNNING, 0, INVOCATION, "0 r"), 0);
    assert_int_equal (run_unit (INVOCATION, "- r"), 0);
    assert_string_equal (rn.acts, "file");
    run_simple (HKD_EV_ADOPTED);
    assert_string_equal (rn.acts, "");
    run_results ("- 0");
    run_simple (HKD_EV_FINISHED);
    run_cgroup (0);
    assert_int_equal (rn.last.outcome, HK_OUTCOME_SUCCESS);
}

static void its_time_limit_counts_from_its_start (void **state)
{
    int64_t began = 0; /* t_start in the file */

    (void)state;
    rn.now_ms = began + 10 * MINUTE;
    run_file (HK_RUN_RUNNING, 0, INVOCATION, "r -");
    run_unit (INVOCATION, "r -");
    run_simple (HKD_EV_ADOPTED);
    run_wait_for_deadline ();
    assert_int_equal (rn.now_ms, began + HOUR);
    assert_int_equal (rn.signum, SIGTERM);
}

static void its_limits_are_those_it_began_with (void **state)
{
    const struct hkd_limits limits = { 5 * MINUTE, 10000, MINUTE };
    int64_t began = 0; /* t_start in the file */

    (void)state;
    rn.now_ms = began + MINUTE;
    rn.limits = &limits;
    run_file (HK_RUN_RUNNING, 0, INVOCATION, "r -");
    run_unit (INVOCATION, "r -");
    run_simple (HKD_EV_ADOPTED);
    run_wait_for_deadline ();
    assert_int_equal (rn.now_ms, began + 5 * MINUTE);
    assert_int_equal (rn.signum, SIGTERM);
    assert_string_equal (rn.reason, "10-a exceeded 5m");
    run_wait_for ("signal", began + HOUR);
    assert_int_equal (rn.now_ms, began + 5 * MINUTE + 10000);
    run_wait_for ("report", began + HOUR);
    assert_int_equal (rn.now_ms, began + 6 * MINUTE + 10000);
    assert_int_equal (rn.last.outcome, HK_OUTCOME_TIMEOUT);
}

static void without_a_limit_it_may_take_any_time (void **state)
{
    const struct hkd_limits limits = { INT64_MAX, 10000, MINUTE };

    (void)state;
    rn.now_ms = 300 * (int64_t)HOUR;
    rn.limits = &limits;
    run_file (HK_RUN_RUNNING, 0, INVOCATION, "r -");
    run_unit (INVOCATION, "r -");
    run_simple (HKD_EV_ADOPTED);
    assert_true (hkd_runs_deadline (rn.runs) == INT64_MAX);
}

static void a_reload_leaves_its_limits_and_so_does_what_is_kept (void **state)
{
    (void)state;
    run_running ("r -");
    assert_int_equal (rn.written.timeout_ms, HOUR);
    assert_int_equal (
        hk_conf_set (rn.conf, "housekeeping", "timeout", "1m", NULL), 0);
    run_feed (&(struct hkd_event){ .kind = HKD_EV_CONF, .conf = rn.conf });
    run_results ("0 r");
    assert_int_equal (rn.written.timeout_ms, HOUR);
    assert_int_equal (rn.written.kill_grace_ms, 30000);
    assert_int_equal (rn.written.give_up_ms, 5 * MINUTE);
}

static void a_file_without_a_unit_has_vanished (void **state)
{
    (void)state;
    run_file (HK_RUN_RUNNING, 0, INVOCATION, "r -");
    run_simple (HKD_EV_ADOPTED);
    assert_string_equal (rn.acts, "file report");
    assert_int_equal (rn.last.outcome, HK_OUTCOME_VANISHED);
}

static void a_file_of_a_start_without_a_unit_has_vanished (void **state)
{
    (void)state;
    run_file (HK_RUN_STARTING, 0, "", "- -");
    run_simple (HKD_EV_ADOPTED);
    assert_int_equal (rn.last.outcome, HK_OUTCOME_VANISHED);
}

static void a_unit_that_was_being_started_is_found (void **state)
{
    (void)state;
    run_file (HK_RUN_STARTING, 0, "", "- -");
    assert_int_equal (run_unit (INVOCATION, "r -"), 0);
    assert_int_equal (rn.last.phase, HK_RUN_RUNNING);
    assert_string_equal (rn.last.invocation, INVOCATION);
}

static void another_unit_of_its_name_is_not_taken_for_it (void **state)
{
    (void)state;
    run_file (HK_RUN_RUNNING, 0, INVOCATION, "r -");
    assert_int_equal (run_unit ("44444444444444444444444444444444", "0 0"), -1);
    run_simple (HKD_EV_ADOPTED);
    assert_int_equal (rn.last.outcome, HK_OUTCOME_VANISHED);
}

static void a_unit_without_a_file_is_nobodys (void **state)
{
    (void)state;
    assert_int_equal (run_unit (INVOCATION, "0 0"), -1);
    assert_int_equal (errno, ENOENT);
    assert_int_equal (hkd_runs_count (rn.runs), 0);
}

static void an_ended_run_waits_for_its_ack (void **state)
{
    (void)state;
    run_file (HK_RUN_ENDED, HK_OUTCOME_EXIT_CODE, INVOCATION, "0 1");
    run_simple (HKD_EV_ADOPTED);
    assert_string_equal (rn.acts, "");
    run_wait_for_deadline ();
    assert_string_equal (rn.acts, "report");
    assert_int_equal (rn.last.outcome, HK_OUTCOME_EXIT_CODE);
    run_ack (INVOCATION);
    assert_string_equal (rn.acts, "forget");
}

static void a_run_that_was_being_ended_is_ended_with_the_same_word (
    void **state)
{
    int64_t began;

    (void)state;
    rn.now_ms = began = 2 * HOUR;
    run_file (HK_RUN_STOPPING, HK_OUTCOME_KILLED, INVOCATION, "r -");
    run_unit (INVOCATION, "r -");
    assert_string_equal (rn.acts, "file signal");
    assert_int_equal (rn.signum, SIGTERM);
    run_simple (HKD_EV_ADOPTED);
    run_wait_for ("signal", began + 30000);
    assert_int_equal (rn.signum, SIGKILL);
    run_results ("k9 -");
    run_simple (HKD_EV_FINISHED);
    run_cgroup (0);
    assert_int_equal (rn.last.outcome, HK_OUTCOME_KILLED);
}

int main (void)
{
#define T(f) cmocka_unit_test_setup_teardown (f, run_set_up, run_tear_down)
    const struct CMUnitTest tests[] = {
        T (a_run_is_adopted_and_goes_on),
        T (its_time_limit_counts_from_its_start),
        T (its_limits_are_those_it_began_with),
        T (without_a_limit_it_may_take_any_time),
        T (a_reload_leaves_its_limits_and_so_does_what_is_kept),
        T (a_file_without_a_unit_has_vanished),
        T (a_file_of_a_start_without_a_unit_has_vanished),
        T (a_unit_that_was_being_started_is_found),
        T (another_unit_of_its_name_is_not_taken_for_it),
        T (a_unit_without_a_file_is_nobodys),
        T (an_ended_run_waits_for_its_ack),
        T (a_run_that_was_being_ended_is_ended_with_the_same_word),
    };

    return cmocka_run_group_tests_name ("run-adopt", tests, NULL, NULL);
}

/* test_run_end.c - the node's state machine: ends that are brought about */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/run_node.h"

static void a_late_run_is_ended (void **state)
{
    int64_t began = rn.now_ms;

    (void)state;
    run_running ("0 r");
    run_wait_for_deadline ();
    assert_int_equal (rn.now_ms - began, HOUR);
    assert_string_equal (rn.acts, "file signal report");
    assert_int_equal (rn.signum, SIGTERM);
    assert_int_equal (rn.last.phase, HK_RUN_STOPPING);
    assert_string_equal (rn.reason, "20-b exceeded 1h");
    run_results ("0 k15");
    run_simple (HKD_EV_FINISHED);
    run_cgroup (0);
    assert_int_equal (rn.last.outcome, HK_OUTCOME_TIMEOUT);
    assert_string_equal (rn.reason, "20-b exceeded 1h");
}

static void what_ignores_term_is_killed_and_at_last_given_up (void **state)
{
    int64_t began = rn.now_ms;

    (void)state;
    run_running ("r -");
    run_wait_for ("signal", began + HOUR);
    assert_int_equal (rn.signum, SIGTERM);
    run_wait_for ("signal", began + HOUR + 30000);
    assert_int_equal (rn.signum, SIGKILL);
    assert_int_equal (rn.now_ms, began + HOUR + 30000);
    run_wait_for ("report", began + HOUR + 30000 + 5 * MINUTE);
    assert_int_equal (rn.now_ms, began + HOUR + 30000 + 5 * MINUTE);
    assert_int_equal (rn.last.phase, HK_RUN_ENDED);
    assert_int_equal (rn.last.outcome, HK_OUTCOME_TIMEOUT);
    assert_int_equal (rn.last.leftovers_count, 1);
    assert_non_null (strstr (rn.reason, "1 process is left after KILL"));
    assert_non_null (strstr (rn.reason, "7 sleep"));
}

static void the_time_before_the_unit_is_there_counts_on_its_own (void **state)
{
    int64_t began;

    (void)state;
    run_start ();
    run_prepared (1);
    rn.now_ms += 10 * MINUTE;
    began = rn.now_ms;
    run_started ();
    run_wait_for_deadline ();
    assert_int_equal (rn.now_ms, began + HOUR);
}

static void a_stop_ends_the_run_as_killed (void **state)
{
    (void)state;
    run_running ("r -");
    run_stop (SIGTERM);
    assert_string_equal (rn.acts, "file signal report stopped");
    assert_int_equal (rn.signum, SIGTERM);
    run_results ("k15 -");
    run_simple (HKD_EV_FINISHED);
    run_cgroup (0);
    assert_int_equal (rn.last.outcome, HK_OUTCOME_KILLED);
    assert_string_equal (rn.reason, "killed by root");
    run_stop (SIGTERM);
    assert_string_equal (rn.acts, "stopped");
}

static void a_stop_before_the_unit_is_there_is_not_lost (void **state)
{
    (void)state;
    run_start ();
    run_prepared (2);
    run_stop (SIGTERM);
    assert_string_equal (rn.acts, "file signal report stopped");
    run_started ();
    assert_string_equal (rn.acts, "file signal report");
    assert_int_equal (rn.signum, SIGTERM);
    assert_int_equal (rn.last.phase, HK_RUN_STOPPING);
    run_simple (HKD_EV_FINISHED);
    run_cgroup (0);
    assert_int_equal (rn.last.outcome, HK_OUTCOME_KILLED);
}

static void a_stop_while_systemd_is_silent_does_not_spin (void **state)
{
    int64_t began = rn.now_ms;
    int steps = 0;

    (void)state;
    run_start ();
    run_prepared (2);
    run_stop (SIGTERM);
    while (rn.last.phase != HK_RUN_ENDED) {
        run_wait_for_deadline ();
        if (strstr (rn.acts, "cgroup"))
            run_cgroup (0);
        assert_true (++steps < 1000);
    }
    assert_int_equal (rn.last.outcome, HK_OUTCOME_KILLED);
    assert_int_equal (rn.now_ms - began, 30000 + 5 * MINUTE);
}

static void a_second_stop_with_kill_does_not_wait (void **state)
{
    int64_t began = rn.now_ms;

    (void)state;
    run_running ("r -");
    run_stop (SIGTERM);
    run_stop (SIGKILL);
    assert_int_equal (rn.signum, SIGKILL);
    run_wait_for ("report", began + 5 * MINUTE);
    assert_int_equal (rn.last.phase, HK_RUN_ENDED);
    assert_int_equal (rn.last.outcome, HK_OUTCOME_KILLED);
}

static void what_scripts_leave_is_ended_and_changes_no_result (void **state)
{
    (void)state;
    run_running ("0 0");
    run_simple (HKD_EV_FINISHED);
    run_cgroup (2);
    assert_string_equal (rn.acts, "file signal report");
    assert_int_equal (rn.signum, SIGTERM);
    assert_int_equal (rn.last.phase, HK_RUN_STOPPING);
    run_wait_for_deadline ();
    assert_string_equal (rn.acts, "cgroup");
    run_cgroup (0);
    assert_int_equal (rn.last.phase, HK_RUN_ENDED);
    assert_int_equal (rn.last.outcome, HK_OUTCOME_SUCCESS);
    assert_int_equal (rn.last.leftovers_count, 0);
}

static void leftovers_that_do_not_die_make_it_a_timeout (void **state)
{
    (void)state;
    run_running ("0 0");
    run_simple (HKD_EV_FINISHED);
    run_cgroup (1);
    run_wait_for ("signal", rn.now_ms + 30000);
    assert_int_equal (rn.signum, SIGKILL);
    run_wait_for ("report", rn.now_ms + 5 * MINUTE);
    assert_int_equal (rn.last.outcome, HK_OUTCOME_TIMEOUT);
}

static void a_run_keeps_the_limits_it_began_with (void **state)
{
    struct hk_conf *new = hk_conf_load ("/nonexistent/hk.conf", 0, NULL);
    int64_t began = rn.now_ms;

    (void)state;
    run_running ("r -");
    assert_int_equal (hk_conf_set (new, "housekeeping", "timeout", "1m", NULL),
                      0);
    run_feed (&(struct hkd_event){ .kind = HKD_EV_CONF, .conf = new });
    hk_conf_destroy (rn.conf);
    rn.conf = new;
    run_wait_for_deadline ();
    assert_int_equal (rn.now_ms - began, HOUR);
}

int main (void)
{
#define T(f) cmocka_unit_test_setup_teardown (f, run_set_up, run_tear_down)
    const struct CMUnitTest tests[] = {
        T (a_late_run_is_ended),
        T (what_ignores_term_is_killed_and_at_last_given_up),
        T (the_time_before_the_unit_is_there_counts_on_its_own),
        T (a_stop_ends_the_run_as_killed),
        T (a_stop_before_the_unit_is_there_is_not_lost),
        T (a_stop_while_systemd_is_silent_does_not_spin),
        T (a_second_stop_with_kill_does_not_wait),
        T (what_scripts_leave_is_ended_and_changes_no_result),
        T (leftovers_that_do_not_die_make_it_a_timeout),
        T (a_run_keeps_the_limits_it_began_with),
    };

    return cmocka_run_group_tests_name ("run-end", tests, NULL, NULL);
}

/* test_run.c - the node's state machine: runs from START to ACK, and outcomes */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/run_node.h"

static void a_run_goes_from_start_to_ack (void **state)
{
    (void)state;
    run_start ();
    assert_string_equal (rn.acts, "prepare");
    run_prepared (2);
    assert_string_equal (rn.acts, "file start");
    assert_int_equal (rn.last.phase, HK_RUN_STARTING);
    run_started ();
    assert_string_equal (rn.acts, "file report");
    assert_int_equal (rn.last.phase, HK_RUN_RUNNING);
    assert_string_equal (rn.last.invocation, INVOCATION);
    run_results ("r -");
    assert_string_equal (rn.acts, "file report");
    assert_string_equal (rn.script, "10-a");
    run_results ("r -");
    assert_string_equal (rn.acts, "");
    run_results ("0 r");
    assert_string_equal (rn.script, "20-b");
    run_results ("0 0");
    assert_string_equal (rn.acts, "file");
    run_simple (HKD_EV_FINISHED);
    assert_string_equal (rn.acts, "cgroup");
    run_cgroup (0);
    assert_string_equal (rn.acts, "file report");
    assert_int_equal (rn.last.outcome, HK_OUTCOME_SUCCESS);
    assert_int_equal (rn.last.phase, HK_RUN_ENDED);
    assert_string_equal (rn.script, "");
    run_ack (INVOCATION);
    assert_string_equal (rn.acts, "forget");
    assert_int_equal (hkd_runs_count (rn.runs), 0);
    assert_true (hkd_runs_deadline (rn.runs) == INT64_MAX);
}

static void a_start_said_again_gives_the_state_and_no_second_run (void **state)
{
    (void)state;
    run_running ("r -");
    run_start ();
    assert_string_equal (rn.acts, "report");
    assert_int_equal (hkd_runs_count (rn.runs), 1);
    run_results ("0 0");
    run_simple (HKD_EV_FINISHED);
    run_cgroup (0);
    run_start ();
    assert_string_equal (rn.acts, "report");
    assert_int_equal (rn.last.phase, HK_RUN_ENDED);
}

static void a_start_for_another_boot_is_refused (void **state)
{
    struct hkd_event ev = { .kind = HKD_EV_START,
                            .start = { .start = { .alloc = ALLOC,
                                                  .attempt = 1,
                                                  .boot_id = OTHER_BOOT,
                                                  .ranks = "0",
                                                  .queue = "" },
                                       .instance = INSTANCE } };

    (void)state;
    assert_int_equal (run_feed (&ev), -1);
    assert_int_equal (errno, EINVAL);
    assert_int_equal (hkd_runs_count (rn.runs), 0);
}

static void an_end_is_repeated_until_it_is_acknowledged (void **state)
{
    int64_t before;

    (void)state;
    run_running ("0 0");
    run_simple (HKD_EV_FINISHED);
    run_cgroup (0);
    for (int i = 0; i < 8; i++) {
        before = rn.now_ms;
        run_wait_for_deadline ();
        assert_string_equal (rn.acts, "report");
        assert_true (rn.now_ms - before >= 2000 && rn.now_ms - before <= 30000);
    }
    run_ack ("33333333333333333333333333333333");
    assert_string_equal (rn.acts, "");
    run_ack (INVOCATION);
    assert_string_equal (rn.acts, "forget");
    assert_int_equal (run_ack (INVOCATION), -1);
    assert_int_equal (errno, ENOENT);
}

static void an_ack_of_a_run_that_goes_on_changes_nothing (void **state)
{
    (void)state;
    run_running ("r -");
    run_ack (INVOCATION);
    assert_string_equal (rn.acts, "");
    assert_int_equal (hkd_runs_count (rn.runs), 1);
}

static void without_a_link_nothing_is_sent_and_the_state_follows (void **state)
{
    (void)state;
    run_simple (HKD_EV_DOWN);
    run_running ("0 0");
    assert_null (strstr (rn.acts, "report"));
    run_simple (HKD_EV_FINISHED);
    run_cgroup (0);
    assert_string_equal (rn.acts, "file");
    run_simple (HKD_EV_UP);
    assert_string_equal (rn.acts, "state");
}

/* ---- blocked ---- */

static void a_run_waits_for_what_is_in_its_way (void **state)
{
    int64_t before, began = rn.now_ms;
    int looks = 0;

    (void)state;
    run_start ();
    run_blocked ("blocked: 2 processes are left");
    assert_string_equal (rn.acts, "report"); /* no file, no unit */
    assert_int_equal (rn.last.phase, HK_RUN_STARTING);
    assert_string_equal (rn.reason, "blocked: 2 processes are left");
    while (rn.now_ms < began + 10 * MINUTE) {
        before = rn.now_ms;
        run_wait_for_deadline ();
        assert_string_equal (rn.acts, "prepare");
        assert_true (rn.now_ms > before && rn.now_ms - before <= 5000);
        run_blocked (looks++ ? "blocked: 1 process is left"
                             : "blocked: 2 processes are left");
        /* told again when it is another reason */
        assert_string_equal (rn.acts, looks == 2 ? "report" : "");
    }
    assert_true (looks > 100 && looks < 200);
    run_wait_for_deadline ();
    run_prepared (1);
    assert_string_equal (rn.acts, "file start");
    assert_string_equal (rn.reason, "");
    run_started ();
    run_results ("0");
    run_simple (HKD_EV_FINISHED);
    run_cgroup (0);
    assert_int_equal (rn.last.outcome, HK_OUTCOME_SUCCESS);
}

static void a_start_said_again_tells_that_it_is_blocked (void **state)
{
    (void)state;
    run_start ();
    run_blocked ("blocked: by it");
    run_start ();
    assert_string_equal (rn.acts, "report");
    assert_string_equal (rn.reason, "blocked: by it");
}

static void a_stop_of_a_blocked_run_begins_nothing (void **state)
{
    (void)state;
    run_start ();
    run_blocked ("blocked: by it");
    run_stop (15);
    assert_string_equal (rn.acts, "file report stopped");
    assert_int_equal (rn.last.phase, HK_RUN_ENDED);
    assert_int_equal (rn.last.outcome, HK_OUTCOME_KILLED);
    assert_string_equal (rn.reason, "killed by root; blocked: by it");
    run_prepared (1); /* what was under way */
    assert_string_equal (rn.acts, "");
    run_blocked ("blocked: by it");
    assert_string_equal (rn.acts, "");
    run_ack ("");
    assert_string_equal (rn.acts, "forget");
}

static void a_blocked_run_has_its_time_limit (void **state)
{
    int64_t began = rn.now_ms;

    (void)state;
    run_start ();
    for (run_blocked ("blocked: by it"); rn.last.phase != HK_RUN_ENDED;) {
        run_wait_for_deadline ();
        assert_true (rn.now_ms <= began + HOUR);
        if (!strcmp (rn.acts, "prepare"))
            run_blocked ("blocked: by it");
    }
    assert_int_equal (rn.now_ms, began + HOUR);
    assert_int_equal (rn.last.outcome, HK_OUTCOME_TIMEOUT);
    assert_string_equal (rn.reason, "did not begin within 1h; blocked: by it");
    assert_null (strstr (rn.acts, "signal"));
}

static void a_blocked_run_may_fail_to_start (void **state)
{
    (void)state;
    run_start ();
    run_blocked ("blocked: by it");
    run_wait_for_deadline ();
    run_failed ("not root's", false);
    assert_int_equal (rn.last.outcome, HK_OUTCOME_START_FAILED);
    assert_string_equal (rn.reason, "not root's");
}

/* ---- outcomes ---- */

static void end_with (const char *text, enum hk_outcome outcome)
{
    run_running (text);
    run_simple (HKD_EV_FINISHED);
    run_cgroup (0);
    assert_int_equal (rn.last.phase, HK_RUN_ENDED);
    assert_int_equal (rn.last.outcome, outcome);
    run_ack (INVOCATION);
}

static void the_outcome_follows_from_the_results (void **state)
{
    (void)state;
    end_with ("0 0", HK_OUTCOME_SUCCESS);
    end_with ("0 1", HK_OUTCOME_EXIT_CODE);
    end_with ("255 0", HK_OUTCOME_EXIT_CODE);
    end_with ("3 -", HK_OUTCOME_EXIT_CODE);
    end_with ("0 k11", HK_OUTCOME_SIGNAL);
    end_with ("1 k9", HK_OUTCOME_SIGNAL);
}

static void success_needs_a_result_of_every_script (void **state)
{
    (void)state;
    end_with ("0 -", HK_OUTCOME_UNKNOWN);
    end_with ("0 r", HK_OUTCOME_UNKNOWN);
    end_with ("- -", HK_OUTCOME_UNKNOWN);
    assert_string_not_equal (rn.reason, "");
}

static void results_that_were_told_stay_when_systemd_forgets_them (void **state)
{
    (void)state;
    run_running ("0 r");
    run_results ("- r");
    run_results ("- 4");
    run_simple (HKD_EV_FINISHED);
    run_cgroup (0);
    assert_int_equal (rn.last.outcome, HK_OUTCOME_EXIT_CODE);
    assert_int_equal (rn.last.scripts[0].code, 0);
    assert_int_equal (rn.last.scripts[1].code, 4);
}

static void a_start_that_fails_ends_the_run_with_its_reason (void **state)
{
    (void)state;
    run_start ();
    run_failed ("/etc/x may be written by others", false);
    assert_string_equal (rn.acts, "file report");
    assert_int_equal (rn.last.outcome, HK_OUTCOME_START_FAILED);
    assert_string_equal (rn.reason, "/etc/x may be written by others");
    assert_string_equal (rn.last.invocation, "");
    run_ack ("");
    assert_string_equal (rn.acts, "forget");
}

static void no_scripts_are_success_or_not_as_configured (void **state)
{
    (void)state;
    run_start ();
    run_failed ("there are no scripts", true);
    assert_int_equal (rn.last.outcome, HK_OUTCOME_SUCCESS);
    run_ack ("");
    assert_int_equal (
        hk_conf_set (rn.conf, "housekeeping", "no-scripts", "fail", NULL), 0);
    run_start ();
    run_failed ("there are no scripts", true);
    assert_int_equal (rn.last.outcome, HK_OUTCOME_START_FAILED);
}

static void a_unit_that_is_gone_has_vanished (void **state)
{
    (void)state;
    run_running ("0 r");
    run_simple (HKD_EV_GONE);
    assert_string_equal (rn.acts, "file report");
    assert_int_equal (rn.last.outcome, HK_OUTCOME_VANISHED);
}

int main (void)
{
#define T(f) cmocka_unit_test_setup_teardown (f, run_set_up, run_tear_down)
    const struct CMUnitTest tests[] = {
        T (a_run_goes_from_start_to_ack),
        T (a_start_said_again_gives_the_state_and_no_second_run),
        T (a_start_for_another_boot_is_refused),
        T (an_end_is_repeated_until_it_is_acknowledged),
        T (an_ack_of_a_run_that_goes_on_changes_nothing),
        T (without_a_link_nothing_is_sent_and_the_state_follows),
        T (a_run_waits_for_what_is_in_its_way),
        T (a_start_said_again_tells_that_it_is_blocked),
        T (a_stop_of_a_blocked_run_begins_nothing),
        T (a_blocked_run_has_its_time_limit),
        T (a_blocked_run_may_fail_to_start),
        T (the_outcome_follows_from_the_results),
        T (success_needs_a_result_of_every_script),
        T (results_that_were_told_stay_when_systemd_forgets_them),
        T (a_start_that_fails_ends_the_run_with_its_reason),
        T (no_scripts_are_success_or_not_as_configured),
        T (a_unit_that_is_gone_has_vanished),
    };

    return cmocka_run_group_tests_name ("run", tests, NULL, NULL);
}

/* test_run.c - the node's state machine: runs from START to ACK */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "hkd/run.h"

#define BOOT "0123456789abcdef0123456789abcdef"
#define OTHER_BOOT "ffffffffffffffffffffffffffffffff"
#define INSTANCE "11111111111111111111111111111111"
#define INVOCATION "22222222222222222222222222222222"
#define UNIT "flux-housekeeping-fNH.service"

enum { ALLOC = 77, MINUTE = 60000, HOUR = 3600000 };

/* A node: its time, and what the last step asked for, as words: "prepare",
 * "file report" ...; LOG actions are left out.
 */
static struct hk_conf *conf;
static struct hkd_runs *runs;
static int64_t now_ms;
static char acts[512];
static struct hk_run last; /* of the last action that has one */
static char reason[1024], script[256];
static int signum;

static const char *word (const struct hkd_action *act)
{
    switch (act->kind) {
    case HKD_ACT_PREPARE:
        return "prepare";
    case HKD_ACT_UNIT_START:
        return "start";
    case HKD_ACT_FILE:
        return "file";
    case HKD_ACT_SIGNAL:
        signum = act->signal;
        return "signal";
    case HKD_ACT_CGROUP:
        return "cgroup";
    case HKD_ACT_FORGET:
        return "forget";
    case HKD_ACT_REPORT:
        return "report";
    case HKD_ACT_STATE:
        return "state";
    case HKD_ACT_STOPPED:
        return "stopped";
    case HKD_ACT_LOG:
        return "";
    }
    return "?";
}

static int feed (struct hkd_event *ev)
{
    const struct hkd_action *list;
    size_t count;
    int rc;

    ev->now_ms = now_ms;
    ev->wall = 1e9 + (double)now_ms / 1000;
    if (!ev->alloc)
        ev->alloc = ALLOC;
    if (!ev->attempt)
        ev->attempt = 1;
    rc = hkd_runs_step (runs, ev, NULL);
    acts[0] = '\0';
    signum = 0;
    list = hkd_runs_actions (runs, &count);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        const char *name = word (&list[i]);
        size_t n = strlen (acts);
        if (*name)
            snprintf (acts + n, sizeof (acts) - n, "%s%s", n ? " " : "", name);
        if (list[i].run) {
            last = *list[i].run;
            snprintf (reason, sizeof (reason), "%s", last.reason);
            snprintf (script, sizeof (script), "%s", last.script);
        }
    }
    return rc;
}

static int simple (enum hkd_event_kind kind)
{
    return feed (&(struct hkd_event){ .kind = kind });
}

static int start (void)
{
    return feed (&(struct hkd_event){ .kind = HKD_EV_START,
                                      .start = { .start = { .alloc = ALLOC,
                                                            .attempt = 1,
                                                            .boot_id = BOOT,
                                                            .jobid = 1234,
                                                            .userid = 1000,
                                                            .ranks = "0-3",
                                                            .queue = "" },
                                                 .instance = INSTANCE } });
}

static int prepared (size_t n)
{
    static const char *const names[] = { "10-a", "20-b", "30-c" };

    return feed (&(struct hkd_event){ .kind = HKD_EV_PREPARED,
                                      .prepared = { names, n } });
}

static int started (void)
{
    return feed (&(struct hkd_event){ .kind = HKD_EV_STARTED,
                                      .started = { INVOCATION, UNIT } });
}

/* As "0 7 k15 r -": exit codes, killed by a signal, running, not begun. */
static size_t parse (const char *text, struct hk_script_result *list)
{
    static const char *const names[] = { "10-a", "20-b", "30-c" };
    size_t n = 0;

    for (; *text && n < 3; n++) {
        struct hk_script_result *r = &list[n];
        *r = (struct hk_script_result){ .name = names[n], .code = -1 };
        if (*text != '-')
            r->t_start = 10;
        if (*text == 'k')
            r->signal = atoi (text + 1);
        else if (*text != 'r' && *text != '-')
            r->code = atoi (text);
        if (*text != 'r' && *text != '-')
            r->t_end = 11;
        text += strcspn (text, " ");
        text += strspn (text, " ");
    }
    return n;
}

static int results (const char *text)
{
    struct hk_script_result list[3];
    size_t n = parse (text, list);

    return feed (
        &(struct hkd_event){ .kind = HKD_EV_SCRIPTS, .scripts = { list, n } });
}

static int cgroup (size_t n)
{
    static const char *const left[] = { "7 sleep -", "8 sh -" };

    return feed (
        &(struct hkd_event){ .kind = HKD_EV_CGROUP, .cgroup = { left, n } });
}

static int stop (int sig)
{
    return feed (&(struct hkd_event){ .kind = HKD_EV_STOP,
                                      .stop = { .alloc = ALLOC,
                                                .attempt = 1,
                                                .signal = sig,
                                                .reason = "killed by root" } });
}

static int ack (const char *invocation)
{
    return feed (&(struct hkd_event){
        .kind = HKD_EV_ACK,
        .ack = { .alloc = ALLOC, .attempt = 1, .invocation = invocation } });
}

static int failed (const char *why, bool no_scripts)
{
    return feed (&(struct hkd_event){ .kind = HKD_EV_START_FAILED,
                                      .failed = { why, no_scripts } });
}

static int file (enum hk_run_phase phase,
                 enum hk_outcome outcome,
                 const char *invocation,
                 const char *text)
{
    struct hk_script_result list[3];
    struct hk_run run = {
        .alloc = ALLOC,
        .attempt = 1,
        .jobid = 1234,
        .instance = INSTANCE,
        .boot_id = BOOT,
        .invocation = invocation,
        .unit = UNIT,
        .phase = phase,
        .outcome = outcome,
        .script = "",
        .reason = "",
        .t_start = 1e9,
        .scripts = list,
        .scripts_count = parse (text, list),
    };

    return feed (&(struct hkd_event){ .kind = HKD_EV_FILE, .run = &run });
}

static int unit (const char *invocation, const char *text)
{
    struct hk_script_result list[3];
    struct hk_run run = { .invocation = invocation,
                          .unit = UNIT,
                          .scripts = list,
                          .scripts_count = parse (text, list) };

    return feed (&(struct hkd_event){ .kind = HKD_EV_UNIT, .run = &run });
}

/* Until the next deadline, which must be there and may be over. */
static void wait_for_deadline (void)
{
    int64_t when = hkd_runs_deadline (runs);

    assert_true (when != INT64_MAX);
    if (when > now_ms)
        now_ms = when;
    simple (HKD_EV_TICK);
}

/* Deadlines, up to `limit`, until the last step asked for `what`. */
static void wait_for (const char *what, int64_t limit)
{
    int steps = 0;

    do {
        wait_for_deadline ();
        assert_true (now_ms <= limit && ++steps < 1000);
        if (!strcmp (acts, "cgroup"))
            cgroup (1); /* something is left */
    } while (!strstr (acts, what));
}

static void running (const char *text)
{
    start ();
    prepared (2);
    started ();
    results (text);
}

static int set_up (void **state)
{
    struct hk_error err;

    (void)state;
    now_ms = 1000;
    if (!(conf = hk_conf_load ("/nonexistent/hk.conf", 0, &err)))
        return -1;
    runs = hkd_runs_create (conf, "node0", BOOT);
    return simple (HKD_EV_UP);
}

static int tear_down (void **state)
{
    (void)state;
    hkd_runs_destroy (runs);
    hk_conf_destroy (conf);
    return 0;
}

/* ---- the way of a run ---- */

static void a_run_goes_from_start_to_ack (void **state)
{
    (void)state;
    start ();
    assert_string_equal (acts, "prepare");
    prepared (2);
    assert_string_equal (acts, "file start");
    assert_int_equal (last.phase, HK_RUN_STARTING);
    started ();
    assert_string_equal (acts, "file report");
    assert_int_equal (last.phase, HK_RUN_RUNNING);
    assert_string_equal (last.invocation, INVOCATION);
    results ("r -");
    assert_string_equal (acts, "file report");
    assert_string_equal (script, "10-a");
    results ("r -");
    assert_string_equal (acts, "");
    results ("0 r");
    assert_string_equal (script, "20-b");
    results ("0 0");
    assert_string_equal (acts, "file");
    simple (HKD_EV_FINISHED);
    assert_string_equal (acts, "cgroup");
    cgroup (0);
    assert_string_equal (acts, "file report");
    assert_int_equal (last.outcome, HK_OUTCOME_SUCCESS);
    assert_int_equal (last.phase, HK_RUN_ENDED);
    assert_string_equal (script, "");
    ack (INVOCATION);
    assert_string_equal (acts, "forget");
    assert_int_equal (hkd_runs_count (runs), 0);
    assert_true (hkd_runs_deadline (runs) == INT64_MAX);
}

static void a_start_said_again_gives_the_state_and_no_second_run (void **state)
{
    (void)state;
    running ("r -");
    start ();
    assert_string_equal (acts, "report");
    assert_int_equal (hkd_runs_count (runs), 1);
    results ("0 0");
    simple (HKD_EV_FINISHED);
    cgroup (0);
    start ();
    assert_string_equal (acts, "report");
    assert_int_equal (last.phase, HK_RUN_ENDED);
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
    assert_int_equal (feed (&ev), -1);
    assert_int_equal (errno, EINVAL);
    assert_int_equal (hkd_runs_count (runs), 0);
}

static void an_end_is_repeated_until_it_is_acknowledged (void **state)
{
    int64_t before;

    (void)state;
    running ("0 0");
    simple (HKD_EV_FINISHED);
    cgroup (0);
    for (int i = 0; i < 8; i++) {
        before = now_ms;
        wait_for_deadline ();
        assert_string_equal (acts, "report");
        assert_true (now_ms - before >= 2000 && now_ms - before <= 30000);
    }
    ack ("33333333333333333333333333333333");
    assert_string_equal (acts, "");
    ack (INVOCATION);
    assert_string_equal (acts, "forget");
    assert_int_equal (ack (INVOCATION), -1);
    assert_int_equal (errno, ENOENT);
}

static void an_ack_of_a_run_that_goes_on_changes_nothing (void **state)
{
    (void)state;
    running ("r -");
    ack (INVOCATION);
    assert_string_equal (acts, "");
    assert_int_equal (hkd_runs_count (runs), 1);
}

static void without_a_link_nothing_is_sent_and_the_state_follows (void **state)
{
    (void)state;
    simple (HKD_EV_DOWN);
    running ("0 0");
    assert_null (strstr (acts, "report"));
    simple (HKD_EV_FINISHED);
    cgroup (0);
    assert_string_equal (acts, "file");
    simple (HKD_EV_UP);
    assert_string_equal (acts, "state");
}

/* ---- outcomes ---- */

static void end_with (const char *text, enum hk_outcome outcome)
{
    running (text);
    simple (HKD_EV_FINISHED);
    cgroup (0);
    assert_int_equal (last.phase, HK_RUN_ENDED);
    assert_int_equal (last.outcome, outcome);
    ack (INVOCATION);
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
    assert_string_not_equal (reason, "");
}

static void results_that_were_told_stay_when_systemd_forgets_them (void **state)
{
    (void)state;
    running ("0 r");
    results ("- r");
    results ("- 4");
    simple (HKD_EV_FINISHED);
    cgroup (0);
    assert_int_equal (last.outcome, HK_OUTCOME_EXIT_CODE);
    assert_int_equal (last.scripts[0].code, 0);
    assert_int_equal (last.scripts[1].code, 4);
}

static void a_start_that_fails_ends_the_run_with_its_reason (void **state)
{
    (void)state;
    start ();
    failed ("/etc/x may be written by others", false);
    assert_string_equal (acts, "file report");
    assert_int_equal (last.outcome, HK_OUTCOME_START_FAILED);
    assert_string_equal (reason, "/etc/x may be written by others");
    assert_string_equal (last.invocation, "");
    ack ("");
    assert_string_equal (acts, "forget");
}

static void no_scripts_are_success_or_not_as_configured (void **state)
{
    (void)state;
    start ();
    failed ("there are no scripts", true);
    assert_int_equal (last.outcome, HK_OUTCOME_SUCCESS);
    ack ("");
    assert_int_equal (
        hk_conf_set (conf, "housekeeping", "no-scripts", "fail", NULL), 0);
    start ();
    failed ("there are no scripts", true);
    assert_int_equal (last.outcome, HK_OUTCOME_START_FAILED);
}

static void a_unit_that_is_gone_has_vanished (void **state)
{
    (void)state;
    running ("0 r");
    simple (HKD_EV_GONE);
    assert_string_equal (acts, "file report");
    assert_int_equal (last.outcome, HK_OUTCOME_VANISHED);
}

/* ---- ends that are brought about ---- */

static void a_late_run_is_ended (void **state)
{
    int64_t began = now_ms;

    (void)state;
    running ("0 r");
    wait_for_deadline ();
    assert_int_equal (now_ms - began, HOUR);
    assert_string_equal (acts, "file signal report");
    assert_int_equal (signum, SIGTERM);
    assert_int_equal (last.phase, HK_RUN_STOPPING);
    assert_string_equal (reason, "20-b exceeded 1h");
    results ("0 k15");
    simple (HKD_EV_FINISHED);
    cgroup (0);
    assert_int_equal (last.outcome, HK_OUTCOME_TIMEOUT);
    assert_string_equal (reason, "20-b exceeded 1h");
}

static void what_ignores_term_is_killed_and_at_last_given_up (void **state)
{
    int64_t began = now_ms;

    (void)state;
    running ("r -");
    wait_for ("signal", began + HOUR);
    assert_int_equal (signum, SIGTERM);
    wait_for ("signal", began + HOUR + 30000);
    assert_int_equal (signum, SIGKILL);
    assert_int_equal (now_ms, began + HOUR + 30000);
    wait_for ("report", began + HOUR + 30000 + 5 * MINUTE);
    assert_int_equal (now_ms, began + HOUR + 30000 + 5 * MINUTE);
    assert_int_equal (last.phase, HK_RUN_ENDED);
    assert_int_equal (last.outcome, HK_OUTCOME_TIMEOUT);
    assert_int_equal (last.leftovers_count, 1);
    assert_non_null (strstr (reason, "1 process is left after KILL"));
    assert_non_null (strstr (reason, "7 sleep"));
}

static void the_time_before_the_unit_is_there_counts_on_its_own (void **state)
{
    int64_t began;

    (void)state;
    start ();
    prepared (1);
    now_ms += 10 * MINUTE;
    began = now_ms;
    started ();
    wait_for_deadline ();
    assert_int_equal (now_ms, began + HOUR);
}

static void a_stop_ends_the_run_as_killed (void **state)
{
    (void)state;
    running ("r -");
    stop (SIGTERM);
    assert_string_equal (acts, "file signal report stopped");
    assert_int_equal (signum, SIGTERM);
    results ("k15 -");
    simple (HKD_EV_FINISHED);
    cgroup (0);
    assert_int_equal (last.outcome, HK_OUTCOME_KILLED);
    assert_string_equal (reason, "killed by root");
    stop (SIGTERM);
    assert_string_equal (acts, "stopped");
}

static void a_stop_before_the_unit_is_there_is_not_lost (void **state)
{
    (void)state;
    start ();
    prepared (2);
    stop (SIGTERM);
    assert_string_equal (acts, "file signal report stopped");
    started ();
    assert_string_equal (acts, "file signal report");
    assert_int_equal (signum, SIGTERM);
    assert_int_equal (last.phase, HK_RUN_STOPPING);
    simple (HKD_EV_FINISHED);
    cgroup (0);
    assert_int_equal (last.outcome, HK_OUTCOME_KILLED);
}

static void a_stop_while_systemd_is_silent_does_not_spin (void **state)
{
    int64_t began = now_ms;
    int steps = 0;

    (void)state;
    start ();
    prepared (2);
    stop (SIGTERM);
    while (last.phase != HK_RUN_ENDED) {
        wait_for_deadline ();
        if (strstr (acts, "cgroup"))
            cgroup (0);
        assert_true (++steps < 1000);
    }
    assert_int_equal (last.outcome, HK_OUTCOME_KILLED);
    assert_int_equal (now_ms - began, 30000 + 5 * MINUTE);
}

static void a_second_stop_with_kill_does_not_wait (void **state)
{
    int64_t began = now_ms;

    (void)state;
    running ("r -");
    stop (SIGTERM);
    stop (SIGKILL);
    assert_int_equal (signum, SIGKILL);
    wait_for ("report", began + 5 * MINUTE);
    assert_int_equal (last.phase, HK_RUN_ENDED);
    assert_int_equal (last.outcome, HK_OUTCOME_KILLED);
}

static void what_scripts_leave_is_ended_and_changes_no_result (void **state)
{
    (void)state;
    running ("0 0");
    simple (HKD_EV_FINISHED);
    cgroup (2);
    assert_string_equal (acts, "file signal report");
    assert_int_equal (signum, SIGTERM);
    assert_int_equal (last.phase, HK_RUN_STOPPING);
    wait_for_deadline ();
    assert_string_equal (acts, "cgroup");
    cgroup (0);
    assert_int_equal (last.phase, HK_RUN_ENDED);
    assert_int_equal (last.outcome, HK_OUTCOME_SUCCESS);
    assert_int_equal (last.leftovers_count, 0);
}

static void leftovers_that_do_not_die_make_it_a_timeout (void **state)
{
    (void)state;
    running ("0 0");
    simple (HKD_EV_FINISHED);
    cgroup (1);
    wait_for ("signal", now_ms + 30000);
    assert_int_equal (signum, SIGKILL);
    wait_for ("report", now_ms + 5 * MINUTE);
    assert_int_equal (last.outcome, HK_OUTCOME_TIMEOUT);
}

static void a_run_keeps_the_limits_it_began_with (void **state)
{
    struct hk_conf *new = hk_conf_load ("/nonexistent/hk.conf", 0, NULL);
    int64_t began = now_ms;

    (void)state;
    running ("r -");
    assert_int_equal (hk_conf_set (new, "housekeeping", "timeout", "1m", NULL),
                      0);
    feed (&(struct hkd_event){ .kind = HKD_EV_CONF, .conf = new });
    hk_conf_destroy (conf);
    conf = new;
    wait_for_deadline ();
    assert_int_equal (now_ms - began, HOUR);
}

/* ---- after a restart ---- */

static void a_run_is_adopted_and_goes_on (void **state)
{
    (void)state;
    now_ms += MINUTE;
    assert_int_equal (file (HK_RUN_RUNNING, 0, INVOCATION, "0 r"), 0);
    assert_int_equal (unit (INVOCATION, "- r"), 0);
    assert_string_equal (acts, "file");
    simple (HKD_EV_ADOPTED);
    assert_string_equal (acts, "");
    results ("- 0");
    simple (HKD_EV_FINISHED);
    cgroup (0);
    assert_int_equal (last.outcome, HK_OUTCOME_SUCCESS);
}

static void its_time_limit_counts_from_its_start (void **state)
{
    int64_t began = 0; /* t_start in the file */

    (void)state;
    now_ms = began + 10 * MINUTE;
    file (HK_RUN_RUNNING, 0, INVOCATION, "r -");
    unit (INVOCATION, "r -");
    simple (HKD_EV_ADOPTED);
    wait_for_deadline ();
    assert_int_equal (now_ms, began + HOUR);
    assert_int_equal (signum, SIGTERM);
}

static void a_file_without_a_unit_has_vanished (void **state)
{
    (void)state;
    file (HK_RUN_RUNNING, 0, INVOCATION, "r -");
    simple (HKD_EV_ADOPTED);
    assert_string_equal (acts, "file report");
    assert_int_equal (last.outcome, HK_OUTCOME_VANISHED);
}

static void a_file_of_a_start_without_a_unit_has_vanished (void **state)
{
    (void)state;
    file (HK_RUN_STARTING, 0, "", "- -");
    simple (HKD_EV_ADOPTED);
    assert_int_equal (last.outcome, HK_OUTCOME_VANISHED);
}

static void a_unit_that_was_being_started_is_found (void **state)
{
    (void)state;
    file (HK_RUN_STARTING, 0, "", "- -");
    assert_int_equal (unit (INVOCATION, "r -"), 0);
    assert_int_equal (last.phase, HK_RUN_RUNNING);
    assert_string_equal (last.invocation, INVOCATION);
}

static void another_unit_of_its_name_is_not_taken_for_it (void **state)
{
    (void)state;
    file (HK_RUN_RUNNING, 0, INVOCATION, "r -");
    assert_int_equal (unit ("44444444444444444444444444444444", "0 0"), -1);
    simple (HKD_EV_ADOPTED);
    assert_int_equal (last.outcome, HK_OUTCOME_VANISHED);
}

static void a_unit_without_a_file_is_nobodys (void **state)
{
    (void)state;
    assert_int_equal (unit (INVOCATION, "0 0"), -1);
    assert_int_equal (errno, ENOENT);
    assert_int_equal (hkd_runs_count (runs), 0);
}

static void an_ended_run_waits_for_its_ack (void **state)
{
    (void)state;
    file (HK_RUN_ENDED, HK_OUTCOME_EXIT_CODE, INVOCATION, "0 1");
    simple (HKD_EV_ADOPTED);
    assert_string_equal (acts, "");
    wait_for_deadline ();
    assert_string_equal (acts, "report");
    assert_int_equal (last.outcome, HK_OUTCOME_EXIT_CODE);
    ack (INVOCATION);
    assert_string_equal (acts, "forget");
}

static void a_run_that_was_being_ended_is_ended_with_the_same_word (
    void **state)
{
    int64_t began;

    (void)state;
    now_ms = began = 2 * HOUR;
    file (HK_RUN_STOPPING, HK_OUTCOME_KILLED, INVOCATION, "r -");
    unit (INVOCATION, "r -");
    assert_string_equal (acts, "file signal");
    assert_int_equal (signum, SIGTERM);
    simple (HKD_EV_ADOPTED);
    wait_for ("signal", began + 30000);
    assert_int_equal (signum, SIGKILL);
    results ("k9 -");
    simple (HKD_EV_FINISHED);
    cgroup (0);
    assert_int_equal (last.outcome, HK_OUTCOME_KILLED);
}

int main (void)
{
#define T(f) cmocka_unit_test_setup_teardown (f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T (a_run_goes_from_start_to_ack),
        T (a_start_said_again_gives_the_state_and_no_second_run),
        T (a_start_for_another_boot_is_refused),
        T (an_end_is_repeated_until_it_is_acknowledged),
        T (an_ack_of_a_run_that_goes_on_changes_nothing),
        T (without_a_link_nothing_is_sent_and_the_state_follows),
        T (the_outcome_follows_from_the_results),
        T (success_needs_a_result_of_every_script),
        T (results_that_were_told_stay_when_systemd_forgets_them),
        T (a_start_that_fails_ends_the_run_with_its_reason),
        T (no_scripts_are_success_or_not_as_configured),
        T (a_unit_that_is_gone_has_vanished),
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
        T (a_run_is_adopted_and_goes_on),
        T (its_time_limit_counts_from_its_start),
        T (a_file_without_a_unit_has_vanished),
        T (a_file_of_a_start_without_a_unit_has_vanished),
        T (a_unit_that_was_being_started_is_found),
        T (another_unit_of_its_name_is_not_taken_for_it),
        T (a_unit_without_a_file_is_nobodys),
        T (an_ended_run_waits_for_its_ack),
        T (a_run_that_was_being_ended_is_ended_with_the_same_word),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}

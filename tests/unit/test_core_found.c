/* test_core_found.c - stories that showed the core to be wrong once */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "tests/unit/story.h"

static void begin (struct story *s, const char *hosts)
{
    story_conf (s, "lost-after=60s");
    sched_up (s, "L1");
    nodes_up (s, hosts);
    job_ends (s, 10, hosts);
    run_runs (s, hosts, 10);
    pass_over (s);
}

static void hosts_taken_out_of_the_option_are_not_stuck (void **state)
{
    struct story *s = *state;

    sched_up (s, "L1");
    nodes_up (s, "node0");
    job_ends (s, 10, "node[0-1]"); /* node1 has no hkd */
    pass_over (s);
    story_conf (s, "coordinator.hosts=node0");
    later (s, 100);
    expect (s, "free 10 1"); /* a reload is looked at, too */
    story_restart (s);
    sched_hello_after (s, "L1", 0);
    nodes_up (s, "node[0-1]");
    later (s, 100);
    expect (s, "resumed L1", "start node0 10", "free 10 1");
}

static void a_run_that_came_back_to_life_is_shown (void **state)
{
    struct story *s = *state;
    struct story_run run;

    begin (s, "node[0-1]");
    run = s->nodes[0].runs[0];
    node_forgets (s, "node0", 10);
    nodes_tell (s, "node0"); /* vanished */
    drained (s, "node0", HKC_DRAIN_OK, NULL);
    expect_phase (s, 10, "node0", "gone"); /* node1 still holds job 10 */
    pass_over (s);
    s->nodes[0].runs[s->nodes[0].runs_count++] = run;
    nodes_tell (s, "node0");
    assert_true (s->lines_count > 0);
    assert_string_equal (s->lines[0].verb, "drain");
}

static void vanished_names_the_script (void **state)
{
    struct story *s = *state;

    begin (s, "node[0-1]");
    node_forgets (s, "node0", 10);
    nodes_tell (s, "node0");
    assert_non_null (strstr (s->lines[0].rest, "10-clean"));
}

static void killed_before_start_was_confirmed (void **state)
{
    struct story *s = *state;

    sched_up (s, "L1");
    nodes_up (s, "node0");
    job_ends (s, 10, "node0");
    pass_over (s);
    kill_runs (s, 10, NULL);
    expect (s, "stop node0 10 15"); /* both were lost */
    nodes_tell (s, "node0");
    pass_over (s);
    run_runs (s, "node0", 10);
    expect (s, "stop node0 10 15");
}

static void silent_together_is_shown (void **state)
{
    struct story *s = *state;

    begin (s, "node[0-19]");
    nodes_silent (s, "node[0-9]", true);
    later (s, 70000);
    expect_act (s, 10, "node0", "look at the head and its network");
}

static void a_third_machine_is_no_better (void **state)
{
    struct story *s = *state;

    begin (s, "node0");
    for (int i = 0; i < 3; i++) {
        node_hello (s, "node0", "99999999999999999999999999999999");
        later (s, 10000);
        node_hello (s, "node0", "88888888888888888888888888888888");
        later (s, 10000);
    }
    expect_phase (s, 10, "node0", "running conflict");
}

#define A_TEST(name) \
    cmocka_unit_test_setup_teardown (name, story_set_up, story_tear_down)

int main (void)
{
    const struct CMUnitTest tests[] = {
        A_TEST (hosts_taken_out_of_the_option_are_not_stuck),
        A_TEST (a_run_that_came_back_to_life_is_shown),
        A_TEST (vanished_names_the_script),
        A_TEST (killed_before_start_was_confirmed),
        A_TEST (silent_together_is_shown),
        A_TEST (a_third_machine_is_no_better),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}

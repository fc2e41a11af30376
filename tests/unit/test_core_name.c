/* test_core_name.c - stories of names, and of machines that share one */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/story.h"

static const char other_boot[] = "99999999999999999999999999999999";

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

/* ---- names ---- */

static uint64_t hello_as (struct story *s, const char *host, const char *brief)
{
    struct hkc_event ev = { .kind = HKC_EV_NODE_HELLO };
    struct hkc_event told = { .kind = HKC_EV_NODE_STATE };

    ev.node_hello.peer = ++s->next_peer;
    ev.node_hello.host = host;
    ev.node_hello.short_host = brief;
    ev.node_hello.boot_id = s->nodes[0].boot;
    ev.node_hello.address = "192.0.2.1";
    s->nodes[0].peer = ev.node_hello.peer;
    assert_int_equal (story_step (s, &ev, NULL, NULL), 0);
    told.node_state.peer = ev.node_hello.peer;
    told.node_state.boot_id = s->nodes[0].boot;
    told.node_state.foreign = "";
    told.node_state.first = told.node_state.last = true;
    assert_int_equal (story_step (s, &told, NULL, NULL), 0);
    story_turn (s);
    return ev.node_hello.peer;
}

static void a_node_has_a_full_name_and_r_the_short_one (void **state)
{
    struct story *s = *state;

    sched_up (s, "L1");
    hello_as (s, "node0.example.org", "node0");
    pass_over (s);
    job_ends (s, 10, "node0");
    expect (s, "start node0 10");
    run_well (s, "node0", 10);
    expect (s, "free 10 0 final");
    expect_history (s, 10, "node0", "success");
}

static void or_r_was_there_before_it (void **state)
{
    struct story *s = *state;

    sched_up (s, "L1");
    pass_over (s);
    job_ends (s, 10, "node0");
    hello_as (s, "node0.example.org", "node0");
    expect (s, "start node0 10");
}

/* A short name that two nodes have is nobody's. */
static void a_short_name_of_two_is_nobody_s (void **state)
{
    struct story *s = *state;

    sched_up (s, "L1");
    hello_as (s, "node0.example.org", "node0");
    hello_as (s, "node0.example.net", "node0");
    pass_over (s);
    job_ends (s, 10, "node0");
    expect_nothing (s);
    expect_phase (s, 10, "node0", "waiting no-hkd");
}

static void what_is_no_name_is_refused (void **state)
{
    struct story *s = *state;
    struct hkc_event ev = { .kind = HKC_EV_NODE_HELLO };
    struct hk_error err;

    ev.node_hello.peer = 1;
    ev.node_hello.host = "not a name";
    ev.node_hello.short_host = "not";
    ev.node_hello.boot_id = other_boot;
    ev.node_hello.address = "192.0.2.1";
    assert_int_equal (story_step (s, &ev, NULL, &err), -1);
    assert_string_equal (err.text, "not a host name");
    story_turn (s);
    expect_nothing (s);
}

/* ---- two machines, one name ---- */

static void another_boot_is_taken_when_the_first_is_silent (void **state)
{
    struct story *s = *state;
    uint64_t peer;

    begin (s, "node0");
    later (s, 20000);
    peer = node_hello (s, "node0", other_boot);
    expect (s, "refuse nobody");
    nodes_silent (s, "node0", true);
    later (s, 39000);
    node_hello (s, "node0", other_boot);
    expect (s, "refuse nobody");
    later (s, 1000);
    s->nodes[0].peer = node_hello (s, "node0", other_boot);
    assert_true (s->nodes[0].peer > peer);
    expect (s, "close node0");
    strcpy (s->nodes[0].boot, other_boot);
    s->nodes[0].runs_count = 0;
    nodes_tell (s, "node0");
    expect (s, "start node0 10#2");
}

/* The same also when the link of the first is gone: it may come back. */
static void another_boot_waits_while_a_run_is_unfinished (void **state)
{
    struct story *s = *state;

    begin (s, "node0");
    nodes_gone (s, "node0");
    node_hello (s, "node0", other_boot);
    expect (s, "refuse nobody");
    later (s, 40000);
    s->tells_links = true;
    node_hello (s, "node0", other_boot);
    expect (s, "welcome nobody");
}

static void both_alive_is_a_conflict (void **state)
{
    struct story *s = *state;

    begin (s, "node0");
    node_hello (s, "node0", other_boot);
    expect (s, "refuse nobody");
    later (s, 20000); /* a heartbeat later the first is heard */
    assert_string_equal (s->lines[0].verb, "alarm");
    assert_non_null (strstr (
        s->lines[0].rest, "two machines say they are this host: 192.0.2.1 "));
    assert_string_equal (s->lines[1].verb, "drain");
    pass_over (s);
    expect_phase (s, 10, "node0", "running conflict");
    expect_act (s, 10, "node0", "stop one of them");
    /* nothing of either is adopted, nothing started */
    run_ends (s, "node0", 10, HK_OUTCOME_SUCCESS);
    nodes_tell (s, "node0");
    job_ends (s, 11, "node0");
    expect_nothing (s);
    expect_phase (s, 10, "node0", "running conflict");
}

static void a_conflict_ends_when_one_is_silent_so_long (void **state)
{
    struct story *s = *state;

    begin (s, "node0");
    node_hello (s, "node0", other_boot);
    later (s, 20000);
    drained (s, "node0", HKC_DRAIN_OK, NULL);
    pass_over (s);
    node_hello (s, "node0", other_boot);
    expect (s, "refuse nobody");
    later (s, 20000);
    expect_phase (s, 10, "node0", "running conflict");
    expect_nothing (s);
    later (s, 20000); /* the other one is silent for two heartbeats */
    expect_phase (s, 10, "node0", "running");
    assert_int_equal (s->lines_count, 1);
    assert_string_equal (s->lines[0].verb, "undrain");
    pass_over (s);
    run_ends (s, "node0", 10, HK_OUTCOME_SUCCESS);
    expect (s, "free 10 0 final");
}

static void the_same_boot_replaces_its_session (void **state)
{
    struct story *s = *state;

    begin (s, "node0");
    s->tells_links = true;
    nodes_up (s, "node0"); /* hkd was restarted */
    expect (s, "close nobody", "welcome node0");
    run_ends (s, "node0", 10, HK_OUTCOME_SUCCESS);
    expect (s, "free 10 0 final");
}

#define A_TEST(name) \
    cmocka_unit_test_setup_teardown (name, story_set_up, story_tear_down)

int main (void)
{
    const struct CMUnitTest tests[] = {
        A_TEST (a_node_has_a_full_name_and_r_the_short_one),
        A_TEST (or_r_was_there_before_it),
        A_TEST (a_short_name_of_two_is_nobody_s),
        A_TEST (what_is_no_name_is_refused),
        A_TEST (another_boot_is_taken_when_the_first_is_silent),
        A_TEST (another_boot_waits_while_a_run_is_unfinished),
        A_TEST (both_alive_is_a_conflict),
        A_TEST (a_conflict_ends_when_one_is_silent_so_long),
        A_TEST (the_same_boot_replaces_its_session),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}

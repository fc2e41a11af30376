/* test_engine_ask.c - what a host asks of the engine, and lets it do */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <jansson.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/engine_world.h"

static int find_open (void *arg, const struct hkc_alloc_view *v)
{
    *(uint64_t *)arg = v->begun ? 0 : v->alloc;
    return v->jobid == 10;
}

/* As a plugin that starts again: what was recorded is looked at and settled. */
static void what_is_open_is_seen_before_the_start (void **state)
{
    struct hkc_host_ops ops = ops_make ();
    uint64_t alloc = 0;

    (void)state;
    engine_begin ();
    post_end (1, 10, R_OF ("0", "node0"));
    UNTIL (host.answered[1]);
    hkc_engine_destroy (host.engine);
    engine_create (conf_make (), &ops);
    assert_int_equal (hkc_engine_each_alloc (host.engine, find_open, &alloc),
                      1);
    assert_true (alloc == host.alloc[1]);
    post_job (HKC_EV_JOB_DROP, alloc);
    engine_start ();
    assert_int_equal (hkc_engine_ask_list (host.engine, 2), 0);
    UNTIL (host.rows[2]);
    assert_string_equal (host.rows[2], "[]");
}

static void what_is_held_is_listed (void **state)
{
    char want[512];

    (void)state;
    engine_begin ();
    post_end (1, 10, R_OF ("0-3", "node[0-3]"));
    post_end (2, 11, R_OF ("4", "node4")); /* recorded alone */
    UNTIL (host.answered[1] && host.answered[2]);
    post_job (HKC_EV_JOB_BEGIN, host.alloc[1]);
    assert_int_equal (hkc_engine_ask_list (host.engine, 3), 0);
    UNTIL (host.rows[3]);
    snprintf (want,
              sizeof (want),
              "[{\"R\":{\"execution\":{\"R_lite\":[{\"children\":"
              "{\"core\":\"0-3\"},\"rank\":\"0-3\"}],\"expiration\":0,"
              "\"nodelist\":[\"node[0-3]\"],\"starttime\":0},"
              "\"version\":1},\"alloc\":%llu,\"jobid\":10,"
              "\"pending\":\"0-3\",\"ranks\":\"0-3\",\"t_start\":2.0,"
              "\"userid\":1000}]",
              (unsigned long long)host.alloc[1]);
    assert_string_equal (host.rows[3], want);
}

static void a_host_without_lists_may_not_ask (void **state)
{
    struct hkc_host_ops ops = ops_make ();

    (void)state;
    ops.list = NULL;
    engine_create (conf_make (), &ops);
    assert_int_equal (hkc_engine_ask_list (host.engine, 1), -1);
    assert_int_equal (errno, ENOSYS);
}

static void runs_are_killed_by_a_note_with_ranks (void **state)
{
    struct hkc_note *note = hkc_note_create (HKC_EV_KILL);

    (void)state;
    engine_begin ();
    post_end (1, 10, R_OF ("0-1", "node[0-1]"));
    UNTIL (host.answered[1]);
    post_job (HKC_EV_JOB_BEGIN, host.alloc[1]);
    note->tag = 2;
    note->ranks = hk_rankset_decode ("1", NULL);
    note->ev.kill.ranks = note->ranks;
    note->ev.kill.signal = SIGTERM;
    note->ev.kill.reason = hkc_note_text (note, "it hangs");
    hkc_engine_post (host.engine, note);
    UNTIL (host.answered[2]);
    assert_int_equal (host.rc[2], 0);
    assert_string_equal (host.text[2], "node1: ended before it began");
}

static void hosts_of_ranks_come_with_a_note (void **state)
{
    struct hkc_note *note = hkc_note_create (HKC_EV_HOSTS);

    (void)state;
    engine_begin ();
    post_end (1, 10, R_OF ("0", "node0"));
    UNTIL (host.answered[1]);
    post_job (HKC_EV_JOB_BEGIN, host.alloc[1]);
    note->hosts = hk_hostlist_decode ("node[1,0]", NULL);
    note->ev.inventory.hosts = note->hosts;
    hkc_engine_post (host.engine, note);
    post_sched (HKC_EV_SCHED_HELLO, 2, NULL);
    UNTIL (host.drains == 1);
}

#define A_TEST(name) \
    cmocka_unit_test_setup_teardown (name, engine_set_up, engine_tear_down)

int main (void)
{
    const struct CMUnitTest tests[] = {
        A_TEST (what_is_open_is_seen_before_the_start),
        A_TEST (what_is_held_is_listed),
        A_TEST (a_host_without_lists_may_not_ask),
        A_TEST (runs_are_killed_by_a_note_with_ranks),
        A_TEST (hosts_of_ranks_come_with_a_note),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}

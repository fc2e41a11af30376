/* test_turn.c - a turn whose commit fails: who learns what, and when */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "coordinator/engine/turn.h"

enum { INPUTS_MAX = 8 };

/* Tokens below it are clients', the others notes of the host. */
static const uint64_t first_note = 100;

/* What comes in, and what was said about it. */
struct world {
    struct hk_conf *conf;
    struct hkc_core *core;
    struct hkc_turn *turn;
    int64_t now_ms;
    struct hkc_input inputs[INPUTS_MAX];
    size_t inputs_count, inputs_read;
    int commit_errno; /* 0: it succeeds */
    int commits;
    char said[512];
};

static void say (struct world *w, const char *what, uint64_t token)
{
    size_t used = strlen (w->said);

    snprintf (w->said + used,
              sizeof (w->said) - used,
              "%s%s %d",
              used ? ", " : "",
              what,
              (int)token);
}

/* What was said since the last look. */
static void expect (struct world *w, const char *text)
{
    assert_string_equal (w->said, text);
    w->said[0] = '\0';
}

static int64_t op_now (void *arg)
{
    return ((struct world *)arg)->now_ms;
}

static double op_wall (void *arg)
{
    (void)arg;
    return 1.7e9;
}

static int op_receive (void *arg, enum hkc_collect how, struct hkc_input *in)
{
    struct world *w = arg;

    if (how == HKC_COLLECT_DEAF || w->inputs_read == w->inputs_count)
        return 0;
    *in = w->inputs[w->inputs_read++];
    return 1;
}

static void op_release (void *arg, struct hkc_input *in)
{
    (void)arg;
    if (in->ev.kind == HKC_EV_JOB_END)
        hk_resource_destroy (in->ev.job_end.res);
}

static int op_commit (void *arg, struct hkc_core *core, struct hk_error *err)
{
    struct world *w = arg;

    (void)core;
    w->commits++;
    if (!w->commit_errno)
        return 0;
    return hk_error_set (err, w->commit_errno, "it is full");
}

static uint64_t op_find_end (void *arg, const struct hkc_event *ev)
{
    (void)arg;
    (void)ev;
    return 0;
}

static bool op_find_run (void *arg, uint64_t peer, const struct hk_run *run)
{
    (void)arg;
    (void)peer;
    (void)run;
    return false;
}

static void op_action (void *arg, const struct hkc_action *act)
{
    (void)arg;
    (void)act;
}

static void op_answer (void *arg,
                       uint64_t token,
                       int rc,
                       const struct hkc_answer *answer,
                       const struct hk_error *err)
{
    (void)err;
    say (arg, rc ? "refused" : answer->state, token);
}

static void op_look (void *arg, struct hkc_input *in)
{
    (void)in;
    say (arg, "seen", 0);
}

static bool op_put_off (void *arg, uint64_t token)
{
    if (token >= first_note)
        return false;
    say (arg, "put off", token);
    return true;
}

static void op_look_put_off (void *arg, struct hkc_input *in)
{
    (void)in;
    say (arg, "look put off", 0);
}

static void op_store_state (void *arg, const struct hk_error *err)
{
    say (arg, err ? "refuses" : "well", 0);
}

static int set_up (void **state)
{
    static const struct hkc_ops ops = {
        .now_ms = op_now,
        .wall = op_wall,
        .receive = op_receive,
        .release = op_release,
        .commit = op_commit,
        .find_end = op_find_end,
        .find_run = op_find_run,
        .node = op_action,
        .host = op_action,
        .answer = op_answer,
        .look = op_look,
        .put_off = op_put_off,
        .look_put_off = op_look_put_off,
        .store_state = op_store_state,
    };
    struct world *w = calloc (1, sizeof (*w));
    struct hkc_setup setup = {
        .instance = "11111111111111111111111111111111",
        .next_pid = 1,
    };
    struct hkc_ops bound = ops;

    assert_non_null (w);
    w->now_ms = 1000000;
    setup.conf = w->conf = hk_conf_load ("/nonexistent/hk.conf", 0, NULL);
    assert_non_null (w->conf);
    w->core = hkc_core_create (&setup);
    hkc_core_loaded (w->core, w->now_ms);
    bound.arg = w;
    assert_non_null (w->turn = hkc_turn_create (w->core, &bound));
    *state = w;
    return 0;
}

static int tear_down (void **state)
{
    struct world *w = *state;

    hkc_turn_destroy (w->turn);
    hkc_core_destroy (w->core);
    hk_conf_destroy (w->conf);
    free (w);
    return 0;
}

static void comes (struct world *w, const struct hkc_input *in)
{
    assert_true (w->inputs_count < INPUTS_MAX);
    w->inputs[w->inputs_count++] = *in;
}

static void job_ends (struct world *w, uint64_t jobid, uint64_t token)
{
    struct hkc_input in = { .token = token, .ev.kind = HKC_EV_JOB_END };

    in.ev.job_end.alloc = token ? token : jobid;
    in.ev.job_end.jobid = jobid;
    in.ev.job_end.queue = "";
    in.ev.job_end.t_end = 1.7e9;
    in.ev.job_end.res = hk_resource_decode (
        "{\"version\":1,\"execution\":{\"R_lite\":[{\"rank\":\"0\","
        "\"children\":{\"core\":\"0\"}}],\"nodelist\":[\"node0\"]}}",
        NULL);
    assert_non_null (in.ev.job_end.res);
    comes (w, &in);
}

static void kills (struct world *w, uint64_t token)
{
    struct hkc_input in = { .token = token, .ev.kind = HKC_EV_KILL };

    in.ev.kill.signal = 15;
    in.ev.kill.reason = "";
    comes (w, &in);
}

static void turn (struct world *w)
{
    struct hk_error err;

    assert_int_equal (hkc_turn_run (w->turn, &err), 0);
}

static void clients_of_a_batch_that_fails_learn_it_at_once (void **state)
{
    struct world *w = *state;
    struct hkc_input look = { .look = true };

    w->commit_errno = ENOSPC;
    job_ends (w, 7, 1);
    kills (w, 2);
    comes (w, &look);
    turn (w);
    expect (w, "refuses 0, put off 1, put off 2, look put off 0");
    w->now_ms += 100; /* tried again, and again in vain: nothing new to say */
    turn (w);
    expect (w, "");
    w->commit_errno = 0;
    w->now_ms += 200;
    turn (w); /* they were answered */
    expect (w, "well 0");
    job_ends (w, 7, 3);
    turn (w);
    expect (w, "held 3");
}

static void a_note_of_the_host_waits_for_its_answer (void **state)
{
    struct world *w = *state;

    w->commit_errno = EIO;
    job_ends (w, 7, 1);
    job_ends (w, 8, first_note);
    turn (w);
    expect (w, "refuses 0, put off 1");
    w->now_ms += 99;
    turn (w); /* not yet tried again */
    expect (w, "");
    w->commit_errno = 0;
    w->now_ms += 1;
    turn (w);
    expect (w, "well 0, new 100");
}

static void nothing_is_said_once_the_store_is_another_s (void **state)
{
    struct world *w = *state;
    struct hk_error err;

    w->commit_errno = ESTALE;
    job_ends (w, 7, 1);
    assert_int_equal (hkc_turn_run (w->turn, &err), -1);
    expect (w, "");
}

static void a_change_that_nobody_is_told_of_waits_a_little (void **state)
{
    struct world *w = *state;

    job_ends (w, 7, 0);
    turn (w);
    assert_int_equal (w->commits, 0);
    assert_true (hkc_turn_deadline (w->turn) <= w->now_ms + 20);
    w->now_ms += 19;
    turn (w);
    assert_int_equal (w->commits, 0);
    w->now_ms += 1;
    turn (w);
    assert_int_equal (w->commits, 1);
    /* with one that somebody waits for it goes at once */
    job_ends (w, 8, 0);
    turn (w);
    assert_int_equal (w->commits, 1);
    job_ends (w, 9, 1);
    turn (w);
    assert_int_equal (w->commits, 2);
    expect (w, "new 1");
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, set_up, tear_down)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (clients_of_a_batch_that_fails_learn_it_at_once),
        TEST (a_note_of_the_host_waits_for_its_answer),
        TEST (nothing_is_said_once_the_store_is_another_s),
        TEST (a_change_that_nobody_is_told_of_waits_a_little),
    };

    return cmocka_run_group_tests_name ("turn", tests, NULL, NULL);
}

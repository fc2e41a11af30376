/* test_engine.c - the engine in its thread, as a host of it sees it */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/unit/engine_world.h"

/* ---- R and accounts as text ---- */

static void an_end_is_recorded_from_the_text_of_R (void **state)
{
    (void)state;
    engine_begin ();
    post_end (1, 10, R_OF ("0", "node0"));
    post_end (2, 11, R_OF ("0", "node0"));
    post_end (3, 10, R_OF ("0", "node0")); /* again */
    UNTIL (host.answered[1] && host.answered[2] && host.answered[3]);
    assert_int_equal (host.rc[1], 0);
    assert_string_equal (host.state[1], "new");
    assert_string_equal (host.state[2], "new");
    assert_string_equal (host.state[3], "held");
    assert_true (host.alloc[1] && host.alloc[2]);
    assert_true (host.alloc[1] != host.alloc[2]);
    assert_true (host.alloc[1] == host.alloc[3]);
}

static void what_is_no_R_is_refused (void **state)
{
    (void)state;
    engine_begin ();
    post_end (1, 10, "{\"version\":2}");
    post_end (2, 10, NULL);
    post_end (3, 10, R_OF ("0-65536", "node[0-65536]"));
    post_end (0, 10, "[");
    post_end (4, 10, R_OF ("0", "node0"));
    UNTIL (host.answered[4]);
    for (int i = 1; i <= 3; i++) {
        assert_true (host.answered[i]);
        assert_int_equal (host.rc[i], EINVAL);
        assert_memory_equal (host.text[i], "R: ", 3);
    }
    assert_string_equal (host.text[2], "R: expected one");
    assert_string_equal (host.text[3], "R: more ranks than a job may have");
    assert_int_equal (host.rc[4], 0);
    assert_true (is_logged ("the end of job 10 is refused: R: "));
}

static void ready_with (const char *account)
{
    engine_begin ();
    post_end (1, 10, R_OF ("0", "node0"));
    UNTIL (host.answered[1]);
    post_job (HKC_EV_JOB_BEGIN, host.alloc[1]);
    post_sched (HKC_EV_SCHED_HELLO, 2, NULL);
    UNTIL (host.ends == 1);
    post_sched (HKC_EV_SCHED_READY, 3, account);
    UNTIL (host.answered[3]);
    assert_int_equal (host.rc[3], 0);
}

static void an_account_is_compared_from_its_text (void **state)
{
    (void)state;
    ready_with (R_OF ("1", "node1"));
    UNTIL (host.drains == 1); /* rank 0 was told and is not there */
}

static void an_empty_account_lacks_all_that_was_told (void **state)
{
    (void)state;
    ready_with ("");
    UNTIL (host.drains == 1);
    assert_false (is_logged ("unavailable"));
}

static void what_is_no_account_is_unavailable (void **state)
{
    (void)state;
    ready_with ("{\"version\":1,\"execution\":7}");
    assert_true (is_logged ("the scheduler's account counts as unavailable: "));
    assert_int_equal (host.drains, 0);
}

/* ---- a link that cannot be opened ---- */

/* A port of the loopback that is in use. */
static int port_take (uint16_t *port)
{
    struct sockaddr_in addr = { .sin_family = AF_INET };
    socklen_t size = sizeof (addr);
    int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    addr.sin_addr.s_addr = htonl (INADDR_LOOPBACK);
    assert_true (fd >= 0);
    assert_int_equal (bind (fd, (struct sockaddr *)&addr, sizeof (addr)), 0);
    assert_int_equal (listen (fd, 1), 0);
    assert_int_equal (getsockname (fd, (struct sockaddr *)&addr, &size), 0);
    *port = ntohs (addr.sin_port);
    return fd;
}

static void trouble_ends (void)
{
    char text[512];

    for (int i = 0; i < ENGINE_WAIT_S * 20; i++) {
        hkc_engine_trouble (host.engine, text, sizeof (text));
        if (!*text)
            return;
        usleep (50000);
    }
    fail_msg ("still: %s", text);
}

static void an_engine_works_until_its_link_can_be_opened (void **state)
{
    struct hkc_host_ops ops = ops_make ();
    struct hk_conf *conf = conf_make ();
    char text[512];
    int fd = port_take (&conf->node_port);

    (void)state;
    ops.link_may_wait = true;
    engine_create (conf, &ops);
    assert_true (is_logged ("the link cannot be opened: "));
    engine_start ();
    post_end (1, 10, R_OF ("0", "node0"));
    UNTIL (host.answered[1]);
    assert_int_equal (host.rc[1], 0);
    hkc_engine_trouble (host.engine, text, sizeof (text));
    assert_memory_equal (text, "the link is not open: ", 22);
    hkc_engine_trouble (host.engine, text, 5);
    assert_string_equal (text, "the ");
    close (fd);
    trouble_ends ();
    UNTIL (strstr (host.log, "the link is open now"));
    post_end (2, 11, R_OF ("1", "node1"));
    UNTIL (host.answered[2]);
}

static void another_configuration_opens_it_at_once (void **state)
{
    struct hkc_host_ops ops = ops_make ();
    struct hk_conf *conf = conf_make ();
    struct timespec begin, end;
    int fd = port_take (&conf->key_port);

    (void)state;
    ops.link_may_wait = true;
    engine_create (conf, &ops);
    engine_start ();
    clock_gettime (CLOCK_MONOTONIC, &begin);
    hkc_engine_reload (host.engine, conf_make ());
    trouble_ends ();
    clock_gettime (CLOCK_MONOTONIC, &end);
    assert_true (end.tv_sec - begin.tv_sec < 4);
    close (fd);
}

static void other_hosts_fail_without_their_link (void **state)
{
    struct hkc_host_ops ops = ops_make ();
    struct hk_conf *conf = conf_make ();
    struct hk_error err;
    int fd = port_take (&conf->client_port);

    (void)state;
    assert_null (hkc_engine_create (conf, &ops, &err));
    hk_conf_destroy (conf); /* still ours */
    close (fd);
}

#define A_TEST(name) \
    cmocka_unit_test_setup_teardown (name, engine_set_up, engine_tear_down)

int main (void)
{
    const struct CMUnitTest tests[] = {
        A_TEST (an_end_is_recorded_from_the_text_of_R),
        A_TEST (what_is_no_R_is_refused),
        A_TEST (an_account_is_compared_from_its_text),
        A_TEST (an_empty_account_lacks_all_that_was_told),
        A_TEST (what_is_no_account_is_unavailable),
        A_TEST (an_engine_works_until_its_link_can_be_opened),
        A_TEST (another_configuration_opens_it_at_once),
        A_TEST (other_hosts_fail_without_their_link),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}

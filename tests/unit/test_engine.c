/* test_engine.c - the engine in its thread, as a host of it sees it */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "coordinator/engine/engine.h"
#include "proto/log.h"
#include "tests/unit/folder.h"

#define R_OF(rank, host)                                          \
    "{\"version\":1,\"execution\":{\"R_lite\":[{\"rank\":\"" rank \
    "\",\"children\":{\"core\":\"0-3\"}}],\"starttime\":0,"       \
    "\"expiration\":0,\"nodelist\":[\"" host "\"]}}"

enum { WAIT_S = 20, TAGS = 16 };

/* What the host was told; the mutex is over all of it. */
struct host {
    struct hkc_engine *engine;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool answered[TAGS];
    int rc[TAGS];
    uint64_t alloc[TAGS];
    char state[TAGS][16], text[TAGS][HK_ERROR_BYTES];
    int ends, drains;
    char log[1024];
};

static struct host host;

static void on_answered (void *arg,
                         uint64_t tag,
                         int rc,
                         const struct hkc_answer *answer,
                         const struct hk_error *err)
{
    struct host *h = arg;

    pthread_mutex_lock (&h->mutex);
    h->answered[tag] = true;
    h->rc[tag] = rc;
    h->alloc[tag] = answer->alloc;
    snprintf (h->state[tag],
              sizeof (h->state[tag]),
              "%s",
              answer->state ? answer->state : "");
    snprintf (h->text[tag], sizeof (h->text[tag]), "%s", rc ? err->text : "");
    pthread_cond_broadcast (&h->changed);
    pthread_mutex_unlock (&h->mutex);
}

static void on_action (void *arg, const struct hkc_action *act)
{
    struct host *h = arg;

    pthread_mutex_lock (&h->mutex);
    h->ends += act->kind == HKC_ACT_HELLO_END;
    h->drains += act->kind == HKC_ACT_DRAIN;
    pthread_cond_broadcast (&h->changed);
    pthread_mutex_unlock (&h->mutex);
}

static void on_log (void *arg,
                    int level,
                    const struct hk_log_ids *ids,
                    const char *text)
{
    struct host *h = arg;
    size_t n;

    (void)level;
    (void)ids;
    pthread_mutex_lock (&h->mutex);
    n = strlen (h->log);
    snprintf (h->log + n, sizeof (h->log) - n, "%s\n", text);
    pthread_cond_broadcast (&h->changed);
    pthread_mutex_unlock (&h->mutex);
}

/* A loop's body that holds the mutex when its condition is looked at. */
#define UNTIL(condition)                                                      \
    do {                                                                      \
        struct timespec end;                                                  \
        int late = 0;                                                         \
        clock_gettime (CLOCK_REALTIME, &end);                                 \
        end.tv_sec += WAIT_S;                                                 \
        pthread_mutex_lock (&host.mutex);                                     \
        while (!(condition) && !late)                                         \
            late = pthread_cond_timedwait (&host.changed, &host.mutex, &end); \
        pthread_mutex_unlock (&host.mutex);                                   \
        if (late)                                                             \
            fail_msg ("not within %d s: %s", WAIT_S, #condition);             \
    } while (0)

static struct hk_conf *conf_make (void)
{
    struct hk_error err;
    struct hk_conf *conf = hk_conf_load ("/nonexistent/hk.conf", 0, &err);

    assert_non_null (conf);
    assert_int_equal (
        hk_conf_set (
            conf, "coordinator", "state-dir", folder_at ("state"), &err),
        0);
    assert_int_equal (hk_conf_set (conf, "link", "bind", "127.0.0.1", &err), 0);
    conf->node_port = conf->client_port = conf->key_port = 0; /* any */
    return conf;
}

static struct hkc_host_ops ops_make (void)
{
    return (struct hkc_host_ops){
        .arg = &host,
        .life_ends_with_link = true,
        .action = on_action,
        .answered = on_answered,
    };
}

static void engine_create (struct hk_conf *conf, const struct hkc_host_ops *ops)
{
    struct hk_error err;

    if (!(host.engine = hkc_engine_create (conf, ops, &err)))
        fail_msg ("%s", err.text);
}

static void engine_start (void)
{
    struct hk_error err;

    assert_int_equal (hkc_engine_start (host.engine, &err), 0);
}

static void engine_begin (void)
{
    struct hkc_host_ops ops = ops_make ();

    engine_create (conf_make (), &ops);
    engine_start ();
}

static int set_up (void **state)
{
    memset (&host, 0, sizeof (host));
    pthread_mutex_init (&host.mutex, NULL);
    pthread_cond_init (&host.changed, NULL);
    hk_log_init ("test_engine", LOG_INFO, on_log, &host);
    return folder_set_up (state);
}

static int tear_down (void **state)
{
    hkc_engine_destroy (host.engine);
    hk_log_init ("test_engine", LOG_EMERG, NULL, NULL);
    pthread_cond_destroy (&host.changed);
    pthread_mutex_destroy (&host.mutex);
    return folder_tear_down (state);
}

static bool is_logged (const char *text)
{
    bool is;

    pthread_mutex_lock (&host.mutex);
    is = strstr (host.log, text) != NULL;
    pthread_mutex_unlock (&host.mutex);
    return is;
}

/* ---- what a host says ---- */

static void post_end (uint64_t tag, uint64_t jobid, const char *R)
{
    struct hkc_note *note = hkc_note_create (HKC_EV_JOB_END);

    assert_non_null (note);
    note->tag = tag;
    note->ev.job_end.jobid = jobid;
    note->ev.job_end.userid = 1000;
    note->ev.job_end.t_submit = 1;
    note->ev.job_end.t_end = 2;
    note->ev.job_end.hold_begin = true;
    note->R_text = R ? strdup (R) : NULL;
    hkc_engine_post (host.engine, note);
}

static void post_job (enum hkc_event_kind kind, uint64_t alloc)
{
    struct hkc_note *note = hkc_note_create (kind);

    assert_non_null (note);
    note->ev.job.alloc = alloc;
    hkc_engine_post (host.engine, note);
}

static void post_sched (enum hkc_event_kind kind,
                        uint64_t tag,
                        const char *account)
{
    struct hkc_note *note = hkc_note_create (kind);

    assert_non_null (note);
    note->tag = tag;
    note->ev.sched.life = hkc_note_text (note, "L1");
    note->ev.sched.partial_ok = true;
    note->account_text = account ? strdup (account) : NULL;
    hkc_engine_post (host.engine, note);
}

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

    for (int i = 0; i < WAIT_S * 20; i++) {
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

#define A_TEST(name) cmocka_unit_test_setup_teardown (name, set_up, tear_down)

int main (void)
{
    const struct CMUnitTest tests[] = {
        A_TEST (an_end_is_recorded_from_the_text_of_R),
        A_TEST (what_is_no_R_is_refused),
        A_TEST (an_account_is_compared_from_its_text),
        A_TEST (what_is_no_account_is_unavailable),
        A_TEST (an_engine_works_until_its_link_can_be_opened),
        A_TEST (another_configuration_opens_it_at_once),
        A_TEST (other_hosts_fail_without_their_link),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}

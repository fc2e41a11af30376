/* test_log.c - the log sink: what comes through, escaped, throttled */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "proto/log.h"

struct heard {
    pthread_mutex_t lock;
    int count;
    int level;
    uint64_t jobid;
    char host[64];
    char text[4096];
};
static struct heard heard = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void sink (void *arg,
                  int level,
                  const struct hk_log_ids *ids,
                  const char *text)
{
    struct heard *h = arg;

    pthread_mutex_lock (&h->lock);
    h->count++;
    h->level = level;
    h->jobid = ids ? ids->jobid : 0;
    snprintf (
        h->host, sizeof (h->host), "%s", ids && ids->host ? ids->host : "");
    snprintf (h->text, sizeof (h->text), "%s", text);
    pthread_mutex_unlock (&h->lock);
}

static int set_up (void **state)
{
    (void)state;
    heard.count = 0;
    heard.text[0] = '\0';
    hk_log_init ("test", LOG_INFO, sink, &heard);
    return 0;
}

static void a_line_reaches_the_sink_escaped (void **state)
{
    (void)state;
    errno = EBUSY;
    hk_log (LOG_ERR, "node%d: %s", 1, "a\x1b[0m\n");
    assert_int_equal (errno, EBUSY);
    assert_int_equal (heard.count, 1);
    assert_int_equal (heard.level, LOG_ERR);
    assert_string_equal (heard.text, "node1: a\\x1b[0m\\x0a");
}

static void identifiers_go_with_the_line (void **state)
{
    struct hk_log_ids ids = { .jobid = 42, .host = "node7" };

    (void)state;
    hk_log_with (LOG_INFO, &ids, "started");
    assert_int_equal (heard.jobid, 42);
    assert_string_equal (heard.host, "node7");
    assert_string_equal (heard.text, "started");
}

static void lines_above_the_level_are_dropped (void **state)
{
    struct hk_log_ids ids = { .jobid = 42 };

    (void)state;
    hk_log (LOG_DEBUG, "x");
    hk_log_with (LOG_DEBUG, &ids, "x");
    hk_log_throttled (LOG_DEBUG, "debug", "x");
    assert_int_equal (heard.count, 0);
}

static void a_long_line_is_cut (void **state)
{
    char text[8192];

    (void)state;
    memset (text, 'x', sizeof (text) - 1);
    text[sizeof (text) - 1] = '\0';
    hk_log (LOG_INFO, "%s", text);
    assert_int_equal (heard.count, 1);
    assert_in_range (strlen (heard.text), 1000, 2047);
}

static void a_cause_is_heard_once_in_a_while (void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++)
        hk_log_throttled (LOG_INFO, "cause-a", "line %d", i);
    assert_int_equal (heard.count, 1);
    assert_string_equal (heard.text, "line 0");
    hk_log_throttled (LOG_INFO, "cause-b", "other");
    assert_int_equal (heard.count, 2);
    assert_string_equal (heard.text, "other");
}

/* A flood of senders may push a cause out, never break the table. */
static void many_causes_have_room (void **state)
{
    char cause[128];

    (void)state;
    memset (cause, 'c', sizeof (cause));
    for (int i = 0; i < 1000; i++) {
        snprintf (cause, sizeof (cause), "flood-%d", i);
        hk_log_throttled (LOG_INFO, cause, "line");
    }
    assert_int_equal (heard.count, 1000);
    memset (cause, 'c', sizeof (cause) - 1);
    cause[sizeof (cause) - 1] = '\0';
    hk_log_throttled (LOG_INFO, cause, "line");
    hk_log_throttled (LOG_INFO, cause, "line");
    assert_int_equal (heard.count, 1001);
}

/* The causes in a full table that were heard last stay in it, within one tick
 * of the clock as well.
 */
static void a_full_table_forgets_the_oldest_cause (void **state)
{
    char cause[32];

    (void)state;
    for (int i = 0; i < 64; i++) {
        snprintf (cause, sizeof (cause), "full-%d", i);
        hk_log_throttled (LOG_INFO, cause, "line");
    }
    for (int i = 0; i < 10; i++) {
        hk_log_throttled (LOG_INFO, "new-a", "line");
        hk_log_throttled (LOG_INFO, "new-b", "line");
        hk_log_throttled (LOG_INFO, "full-63", "line");
    }
    assert_int_equal (heard.count, 66);
}

static void *log_much (void *arg)
{
    for (int i = 0; i < 1000; i++) {
        hk_log (LOG_INFO, "line %d", i);
        hk_log_throttled (LOG_INFO, arg, "line %d", i);
    }
    return NULL;
}

static void threads_may_log_at_once (void **state)
{
    static char causes[][16] = {
        "thread-a", "thread-b", "thread-a", "thread-c"
    };
    pthread_t threads[4];

    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal (
            pthread_create (&threads[i], NULL, log_much, causes[i]), 0);
    for (int i = 0; i < 4; i++)
        pthread_join (threads[i], NULL);
    assert_int_equal (heard.count, 4003);
}

/* Returns what was written to stderr meanwhile. */
static size_t capture (void (*f) (void), char *buf, size_t size)
{
    int saved = dup (STDERR_FILENO);
    int fds[2];
    ssize_t n;

    assert_int_equal (pipe2 (fds, O_CLOEXEC), 0);
    dup2 (fds[1], STDERR_FILENO);
    f ();
    dup2 (saved, STDERR_FILENO);
    close (saved);
    close (fds[1]);
    n = read (fds[0], buf, size - 1);
    close (fds[0]);
    assert_true (n >= 0);
    buf[n] = '\0';
    return (size_t)n;
}

static void log_to_stderr (void)
{
    /* a stream that stderr is not connected to */
    setenv ("JOURNAL_STREAM", "1:2", 1);
    hk_log_init ("prog", LOG_INFO, NULL, NULL);
    hk_log (LOG_INFO, "first");
    hk_log (LOG_DEBUG, "not this");
    hk_log (LOG_ERR, "second");
    unsetenv ("JOURNAL_STREAM");
}

static void without_a_sink_lines_go_to_stderr (void **state)
{
    char buf[256];

    (void)state;
    capture (log_to_stderr, buf, sizeof (buf));
    assert_string_equal (buf, "prog: first\nprog: second\n");
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup (a_line_reaches_the_sink_escaped, set_up),
        cmocka_unit_test_setup (identifiers_go_with_the_line, set_up),
        cmocka_unit_test_setup (lines_above_the_level_are_dropped, set_up),
        cmocka_unit_test_setup (a_long_line_is_cut, set_up),
        cmocka_unit_test_setup (a_cause_is_heard_once_in_a_while, set_up),
        cmocka_unit_test_setup (many_causes_have_room, set_up),
        cmocka_unit_test_setup (a_full_table_forgets_the_oldest_cause, set_up),
        cmocka_unit_test_setup (threads_may_log_at_once, set_up),
        cmocka_unit_test (without_a_sink_lines_go_to_stderr),
    };

    return cmocka_run_group_tests_name ("log", tests, NULL, NULL);
}

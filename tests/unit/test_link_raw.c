/* test_link_raw.c - what our own client would never say over the link */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>
#include <cmocka.h>

#include "proto/identity.h"
#include "proto/link.h"
#include "proto/log.h"
#include "tests/unit/link_world.h"

struct raw {
    void *context;
    void *socket;
    char public_key[HK_KEY_TEXT_BYTES];
    char answer[4096];
};

static char server_key[HK_KEY_TEXT_BYTES];

/* The server's public key, from its file. */
static void read_server_key (void)
{
    char path[256];
    char secret[64] = "";
    FILE *f;

    snprintf (path, sizeof (path), "%s/server.key", lw.state_dir);
    f = fopen (path, "re");
    assert_non_null (f);
    assert_non_null (fgets (secret, 41, f));
    fclose (f);
    assert_int_equal (zmq_curve_public (server_key, secret), 0);
}

static void raw_open (struct raw *raw)
{
    char secret[HK_KEY_TEXT_BYTES];
    char endpoint[64];
    int zero = 0;

    read_server_key ();
    raw->context = zmq_ctx_new ();
    raw->socket = zmq_socket (raw->context, ZMQ_DEALER);
    assert_int_equal (zmq_curve_keypair (raw->public_key, secret), 0);
    zmq_setsockopt (raw->socket, ZMQ_LINGER, &zero, sizeof (zero));
    zmq_setsockopt (raw->socket, ZMQ_CURVE_SERVERKEY, server_key, 41);
    zmq_setsockopt (raw->socket, ZMQ_CURVE_PUBLICKEY, raw->public_key, 41);
    zmq_setsockopt (raw->socket, ZMQ_CURVE_SECRETKEY, secret, 41);
    snprintf (
        endpoint, sizeof (endpoint), "tcp://127.0.0.1:%u", lw.client_port);
    assert_int_equal (zmq_connect (raw->socket, endpoint), 0);
}

static void raw_close (struct raw *raw)
{
    zmq_close (raw->socket);
    zmq_ctx_term (raw->context);
}

static bool raw_receive (struct raw *raw)
{
    int n = zmq_recv (
        raw->socket, raw->answer, sizeof (raw->answer) - 1, ZMQ_DONTWAIT);

    if (n < 0)
        return false;
    raw->answer[n] = '\0';
    return true;
}

static void raw_send (struct raw *raw, const char *text)
{
    assert_true (zmq_send (raw->socket, text, strlen (text), 0) >= 0);
}

static void raw_ask (struct raw *raw, const char *text, const char *expected)
{
    raw->answer[0] = '\0';
    raw_send (raw, text);
    UNTIL (raw_receive (raw));
    if (!strstr (raw->answer, expected))
        fail_msg ("%s instead of %s", raw->answer, expected);
}

static char *raw_hello (const struct raw *raw,
                        const char *role,
                        const char *claimed_role,
                        uint64_t start,
                        char **cred)
{
    struct hk_hello_claim claim = { .start = start };
    struct hk_msg msg = { .type = HK_MSG_HELLO, .seq = 1 };
    size_t len;
    char *text;

    memcpy (claim.pub, raw->public_key, sizeof (claim.pub));
    memcpy (claim.instance, link_instance, sizeof (claim.instance));
    snprintf (claim.role, sizeof (claim.role), "%s", claimed_role);
    if (!*cred)
        *cred = hk_hello_claim_encode (
            link_munged.socket, &claim, geteuid (), NULL);
    msg.hello.version = 1;
    msg.hello.role = role;
    msg.hello.cred = *cred;
    text = hk_msg_encode (&msg, &len, NULL);
    assert_non_null (text);
    return text;
}

static void what_comes_before_hello_is_told_to_say_hello (void **state)
{
    struct raw raw;
    struct hk_link_stats stats;

    (void)state;
    link_begin ();
    raw_open (&raw);
    raw_ask (&raw, "{\"type\":\"ping\",\"seq\":1}", "\"rehello\"");
    /* but not each time */
    for (int i = 0; i < 50; i++)
        raw_send (&raw, "{\"type\":\"ping\",\"seq\":1}");
    UNTIL ((hk_link_server_stats (lw.server, &stats), stats.received) == 51);
    assert_int_equal (stats.rehellos, 1);
    assert_int_equal (lw.messages, 0);
    raw_close (&raw);
    link_end ();
}

static void versions_two_apart_do_not_talk (void **state)
{
    struct raw raw;

    (void)state;
    link_begin ();
    raw_open (&raw);
    raw_ask (&raw,
             "{\"type\":\"hello\",\"seq\":1,\"version\":3,\"role\":\"owner\","
             "\"cred\":\"x\"}",
             "protocol version 3, the coordinator's is 1");
    /* one apart goes on to the credential */
    raw_ask (&raw,
             "{\"type\":\"hello\",\"seq\":2,\"version\":2,\"role\":\"owner\","
             "\"cred\":\"x\"}",
             "\"code\":\"auth\"");
    raw_close (&raw);
    link_end ();
}

static void a_credential_is_good_for_its_key_role_and_once (void **state)
{
    struct raw raw;
    struct raw thief;
    char *cred = NULL;
    char *text;

    (void)state;
    link_begin ();
    raw_open (&raw);
    raw_open (&thief);
    text = raw_hello (&raw, "owner", "guest", 42, &cred);
    raw_ask (&raw, text, "another key or role");
    free (text);
    free (cred);
    cred = NULL;
    text = raw_hello (&raw, "owner", "owner", 42, &cred);
    raw_ask (&raw, text, "\"welcome\"");
    free (text);
    text = raw_hello (&raw, "owner", "owner", 42, &cred);
    raw_ask (&thief, text, "Replayed");
    free (text);
    free (cred);
    cred = NULL;
    text = raw_hello (&raw, "owner", "owner", 42, &cred);
    raw_ask (&thief, text, "another key or role");
    free (text);
    free (cred);
    cred = NULL;
    /* another start: the present one is told */
    text = raw_hello (&raw, "owner", "owner", 41, &cred);
    raw_ask (&raw, text, "\"start\":42");
    assert_non_null (strstr (raw.answer, "rehello"));
    free (text);
    free (cred);
    raw_close (&raw);
    raw_close (&thief);
    link_end ();
}

static void a_foreign_session_is_not_heard (void **state)
{
    struct raw raw;
    char *cred = NULL;
    char *text;

    (void)state;
    link_begin ();
    raw_open (&raw);
    text = raw_hello (&raw, "owner", "owner", 42, &cred);
    raw_ask (&raw, text, "\"welcome\"");
    raw_ask (&raw,
             "{\"type\":\"ping\",\"seq\":1,"
             "\"session\":\"0123456789abcdef0123456789abcdef\"}",
             "\"rehello\"");
    assert_int_equal (lw.messages, 0);
    free (text);
    free (cred);
    raw_close (&raw);
    link_end ();
}

static void rubbish_and_size_end_nothing (void **state)
{
    static char large[HK_MSG_UNBOUND_BYTES + 100];
    struct raw raw;
    struct link_seat *seat;
    struct hk_link_stats stats;

    (void)state;
    link_begin ();
    raw_open (&raw);
    raw_ask (&raw, "rubbish", "\"code\":\"bad\"");
    memset (large, ' ', sizeof (large) - 1);
    raw_send (&raw, large);
    zmq_send (raw.socket, "a", 1, ZMQ_SNDMORE);
    raw_send (&raw, "{\"type\":\"ping\",\"seq\":1}");
    raw_send (&raw, "");
    raw_send (&raw, "{\"type\":\"welcome\",\"seq\":1}");
    UNTIL ((hk_link_server_stats (lw.server, &stats), stats.dropped_bad) >= 5);
    seat = link_join ("owner", NULL);
    UNTIL (seat->ups == 1);
    raw_close (&raw);
    link_end ();
}

struct lines {
    int count;
    char last[256];
};

static void keep_line (void *arg,
                       int level,
                       const struct hk_log_ids *ids,
                       const char *text)
{
    struct lines *lines = arg;

    (void)ids;
    assert_true (level == LOG_WARNING || level == LOG_ERR);
    lines->count++;
    snprintf (lines->last, sizeof (lines->last), "%s", text);
}

/* Each from an address of its own: a sender's lines are throttled. */
static void the_key_port_is_told (const char *from,
                                  const char *first,
                                  const char *text,
                                  const char *line)
{
    struct lines lines = { .count = 0 };
    struct hk_link_stats before, now;
    void *context = zmq_ctx_new ();
    void *socket = zmq_socket (context, ZMQ_DEALER);
    char endpoint[64], expected[256];
    int zero = 0;

    hk_log_init ("link", LOG_WARNING, keep_line, &lines);
    hk_link_server_stats (lw.server, &before);
    zmq_setsockopt (socket, ZMQ_LINGER, &zero, sizeof (zero));
    snprintf (endpoint,
              sizeof (endpoint),
              "tcp://%s:0;127.0.0.1:%u",
              from,
              lw.key_port);
    assert_int_equal (zmq_connect (socket, endpoint), 0);
    for (int i = 0; i < 3; i++) {
        if (first)
            zmq_send (socket, first, strlen (first), ZMQ_SNDMORE);
        zmq_send (socket, text, strlen (text), 0);
    }
    UNTIL ((hk_link_server_stats (lw.server, &now), now.dropped_bad)
           == before.dropped_bad + 3);
    assert_int_equal (lines.count, 1);
    snprintf (expected, sizeof (expected), "%s: key question: %s", from, line);
    if (!strstr (lines.last, expected))
        fail_msg ("%s instead of %s", lines.last, expected);
    zmq_close (socket);
    zmq_ctx_term (context);
    hk_log_init ("link", LOG_CRIT, NULL, NULL);
}

static void what_is_no_key_question_is_counted_and_logged (void **state)
{
    (void)state;
    link_begin ();
    the_key_port_is_told ("127.0.0.2", NULL, "rubbish", "");
    the_key_port_is_told ("127.0.0.3", "a", "b", "more than one frame");
    the_key_port_is_told (
        "127.0.0.4", NULL, "{\"type\":\"ping\",\"seq\":1}", "another message");
    the_key_port_is_told ("127.0.0.5",
                          NULL,
                          "{\"type\":\"key-get\",\"seq\":1,\"nonce\":\"12\"}",
                          "nonce");
    link_end ();
}

/* Neither a key nor a HELLO can be vouched for. */
static void whose_munge_does_not_answer_is_told_and_logged (void **state)
{
    struct lines lines = { .count = 0 };
    struct link_seat *seat;
    struct raw raw;
    char *cred = NULL;
    char *text;

    (void)state;
    link_begin ();
    hk_link_server_destroy (lw.server);
    lw.conf.munge_socket = "/nonexistent/munge";
    link_open_server ();
    hk_log_init ("link", LOG_WARNING, keep_line, &lines);
    seat = link_join ("owner", NULL);
    UNTIL (seat->downs > 0);
    if (!strstr (seat->text, "the coordinator's munge does not answer"))
        fail_msg ("%s", seat->text);
    raw_open (&raw);
    text = raw_hello (&raw, "owner", "owner", 42, &cred);
    raw_ask (&raw, text, "the coordinator's munge does not answer");
    if (!strstr (lines.last, "munge does not answer, so nobody new is let in"))
        fail_msg ("%s", lines.last);
    assert_int_equal (lines.count, 1);
    free (text);
    free (cred);
    raw_close (&raw);
    hk_log_init ("link", LOG_CRIT, NULL, NULL);
    link_end ();
}

static void a_munge_of_one_s_own_that_does_not_answer_is_told (void **state)
{
    char good[sizeof (link_munged.socket)];
    struct link_seat *seat;

    (void)state;
    link_begin ();
    memcpy (good, link_munged.socket, sizeof (good));
    snprintf (
        link_munged.socket, sizeof (link_munged.socket), "/nonexistent/munge");
    seat = link_join ("owner", NULL);
    memcpy (link_munged.socket, good, sizeof (good));
    UNTIL (seat->downs > 0);
    if (!strstr (seat->text, "the munge of this host does not answer"))
        fail_msg ("%s", seat->text);
    link_end ();
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (what_comes_before_hello_is_told_to_say_hello),
        cmocka_unit_test (versions_two_apart_do_not_talk),
        cmocka_unit_test (a_credential_is_good_for_its_key_role_and_once),
        cmocka_unit_test (a_foreign_session_is_not_heard),
        cmocka_unit_test (rubbish_and_size_end_nothing),
        cmocka_unit_test (what_is_no_key_question_is_counted_and_logged),
        cmocka_unit_test (whose_munge_does_not_answer_is_told_and_logged),
        cmocka_unit_test (a_munge_of_one_s_own_that_does_not_answer_is_told),
    };

    return cmocka_run_group_tests_name (
        "link-raw", tests, link_start, link_stop);
}

/* test_link.c - server and clients of the link over loopback, with a munged */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>
#include <cmocka.h>

#include "proto/clock.h"
#include "proto/hostlist.h"
#include "proto/identity.h"
#include "proto/link.h"
#include "proto/log.h"
#include "tests/unit/munged.h"

enum { LIMIT_MS = 20000, CLIENTS_MAX = 8 };

static const char instance[] = "0123456789abcdef0123456789abcdef";
static const char boot_id[] = "b007b007b007b007b007b007b007b007";

static struct munged munged;
static struct hk_hostlist *loopback;

/* One server and the clients of a test; what they told last. */
struct seat {
    struct hk_link_client *client;
    int ups;
    int downs;
    int messages;
    int errnum;
    char text[HK_ERROR_BYTES]; /* of the last DOWN or error */
    char role[16];
    enum hk_msg_type type;
};

static struct world {
    char state_dir[128];
    struct hk_link_conf conf;
    struct hk_link_server *server;
    uint16_t node_port;
    uint16_t client_port;
    uint16_t key_port;
    struct seat seats[CLIENTS_MAX];
    int hellos;
    int gones;
    int messages;
    bool refuse;
    struct hk_peer *peer; /* of the last HELLO or message */
    enum hk_msg_type type;
    uint64_t jobid;
} w;

static void open_server (void)
{
    struct hk_error err;

    w.server = hk_link_server_create (&w.conf, &err);
    if (!w.server)
        fail_msg ("%s", err.text);
    hk_link_server_ports (w.server, &w.node_port, &w.client_port, &w.key_port);
    assert_true (w.node_port && w.client_port && w.key_port);
}

static void begin (void)
{
    static int number;

    memset (&w, 0, sizeof (w));
    snprintf (w.state_dir, sizeof (w.state_dir), "%s/%d", munged.dir, number++);
    assert_int_equal (mkdir (w.state_dir, 0700), 0);
    w.conf = (struct hk_link_conf){
        .bind = "127.0.0.1",
        .state_dir = w.state_dir,
        .munge_socket = munged.socket,
        .node_connections = 100,
        .client_connections = 100,
        .guest_access = true,
        .own_uid = geteuid (),
        .instance = instance,
        .start = 42,
        .heartbeat_ms = 20000,
        .reconcile_ms = 60000,
    };
    open_server ();
}

static void end (void)
{
    for (int i = 0; i < CLIENTS_MAX; i++)
        hk_link_client_destroy (w.seats[i].client);
    hk_link_server_destroy (w.server);
}

static void pump_server (void)
{
    enum hk_link_event event;
    struct hk_peer *peer;
    struct hk_msg msg;

    while (
        w.server
        && hk_link_server_next (w.server, hk_boot_ms (), &event, &peer, &msg)) {
        w.peer = event == HK_LINK_GONE ? NULL : peer;
        if (event == HK_LINK_HELLO) {
            w.hellos++;
            if (w.refuse)
                hk_link_refuse (w.server, peer, "conflict", "another has it");
            else
                hk_link_welcome (w.server, peer, 7);
        } else if (event == HK_LINK_GONE) {
            w.gones++;
        } else {
            w.messages++;
            w.type = msg.type;
            if (msg.type == HK_MSG_KILL)
                w.jobid = msg.query.jobid;
            hk_msg_fini (&msg);
        }
    }
}

static void pump_seat (struct seat *seat)
{
    enum hk_client_event event;
    struct hk_msg msg;
    struct hk_error err;

    while (
        hk_link_client_next (seat->client, hk_boot_ms (), &event, &msg, &err)) {
        if (event == HK_CLIENT_DOWN) {
            seat->downs++;
            seat->errnum = hk_link_client_errno (seat->client);
            snprintf (seat->text, sizeof (seat->text), "%s", err.text);
            continue;
        }
        if (event == HK_CLIENT_UP) {
            seat->ups++;
            snprintf (seat->role, sizeof (seat->role), "%s", msg.welcome.role);
        } else {
            seat->messages++;
            seat->type = msg.type;
            if (msg.type == HK_MSG_ERROR)
                snprintf (seat->text,
                          sizeof (seat->text),
                          "%s: %s",
                          msg.error.code,
                          msg.error.text);
        }
        hk_msg_fini (&msg);
    }
}

/* As programs do it: wait for the descriptors or the next deadline. */
static void turn (void)
{
    struct pollfd fds[CLIENTS_MAX];
    int count = 0;
    int64_t wait = 20;

    for (int i = 0; i < CLIENTS_MAX; i++) {
        struct hk_link_client *client = w.seats[i].client;

        if (!client)
            continue;
        pump_seat (&w.seats[i]);
        fds[count++] = (struct pollfd){ hk_link_client_fd (client), POLLIN, 0 };
        if (hk_link_client_deadline (client) - hk_boot_ms () < wait)
            wait = hk_link_client_deadline (client) - hk_boot_ms ();
    }
    pump_server ();
    poll (fds, (nfds_t)count, wait < 1 ? 1 : wait > 5 ? 5 : (int)wait);
}

#define UNTIL(condition)                                                  \
    do {                                                                  \
        int64_t limit_ = hk_boot_ms () + LIMIT_MS;                        \
        while (!(condition)) {                                            \
            if (hk_boot_ms () > limit_)                                   \
                fail_msg (                                                \
                    "never: %s (last: %s)", #condition, w.seats[0].text); \
            turn ();                                                      \
        }                                                                 \
    } while (0)

static struct seat *join_as (const char *role, const char *host, bool lean)
{
    bool is_node = strcmp (role, "node") == 0;
    struct hk_client_conf conf = {
        .head = loopback,
        .port = is_node ? w.node_port : w.client_port,
        .key_port = w.key_port,
        .munge_socket = munged.socket,
        .server_uid = geteuid (),
        .role = role,
        .host = host,
        .short_host = host,
        .boot_id = is_node ? boot_id : NULL,
        .lean = lean,
    };
    struct hk_error err;
    int i = 0;

    while (w.seats[i].client)
        assert_true (++i < CLIENTS_MAX);
    memset (&w.seats[i], 0, sizeof (w.seats[i]));
    w.seats[i].client = hk_link_client_create (&conf, &err);
    if (!w.seats[i].client)
        fail_msg ("%s", err.text);
    return &w.seats[i];
}

static struct seat *join (const char *role, const char *host)
{
    return join_as (role, host, false);
}

static void leave (struct seat *seat)
{
    hk_link_client_destroy (seat->client);
    seat->client = NULL;
}

static void a_node_is_welcomed_and_heard (void **state)
{
    struct seat *seat;
    struct hk_msg msg = { .type = HK_MSG_STATE };

    (void)state;
    begin ();
    seat = join ("node", "node1");
    UNTIL (seat->ups == 1);
    assert_int_equal (w.hellos, 1);
    assert_int_equal (w.peer->role, HK_ROLE_NODE);
    assert_int_equal (w.peer->uid, geteuid ());
    assert_string_equal (w.peer->host, "node1");
    assert_string_equal (w.peer->boot_id, boot_id);
    assert_string_equal (w.peer->address, "127.0.0.1");
    assert_string_equal (seat->role, "node");
    assert_true (hk_link_client_is_up (seat->client));
    msg.state.boot_id = boot_id;
    msg.state.last = true;
    assert_int_equal (hk_link_client_send (seat->client, &msg, NULL), 0);
    UNTIL (w.messages == 1);
    assert_int_equal (w.type, HK_MSG_STATE);
    msg = (struct hk_msg){ .type = HK_MSG_ACK };
    msg.ack.alloc = 1;
    msg.ack.attempt = 1;
    hk_link_send (w.server, w.peer, &msg);
    UNTIL (seat->messages == 1);
    assert_int_equal (seat->type, HK_MSG_ACK);
    assert_int_equal (seat->downs, 0);
    end ();
}

static void a_lean_node_is_welcomed_and_comes_back (void **state)
{
    struct seat *seat;

    (void)state;
    begin ();
    seat = join_as ("node", "node1", true);
    UNTIL (seat->ups == 1);
    w.conf.node_port = w.node_port;
    w.conf.client_port = w.client_port;
    w.conf.key_port = w.key_port;
    w.conf.start = 43;
    hk_link_server_destroy (w.server);
    w.server = NULL;
    UNTIL (seat->downs == 1);
    open_server ();
    UNTIL (seat->ups == 2);
    end ();
}

static void roles_are_granted_by_uid (void **state)
{
    struct seat *owner;
    struct seat *manager;
    struct seat *node;

    (void)state;
    begin ();
    owner = join ("owner", NULL);
    manager = join ("manager", NULL);
    UNTIL (owner->ups == 1 && manager->ups == 1);
    assert_string_equal (owner->role, "owner");
    assert_string_equal (manager->role, "manager");
    /* a node has no business at the clients' port */
    node = join ("node", "node1");
    leave (node);
    w.node_port = w.client_port;
    node = join ("node", "node1");
    UNTIL (node->downs == 1);
    assert_int_equal (node->errnum, EACCES);
    assert_non_null (strstr (node->text, "denied: uid"));
    end ();
}

/* A client of another uid, in a program of its own; what it was told is its
 * output.
 */
static int run_asker (char **argv)
{
    struct hk_client_conf conf = {
        .port = (uint16_t)atoi (argv[4]),
        .key_port = (uint16_t)atoi (argv[5]),
        .munge_socket = argv[6],
        .role = argv[3],
        .host = "node9",
        .short_host = "node9",
        .boot_id = boot_id,
    };
    struct seat *seat = &w.seats[0];
    int64_t limit = hk_boot_ms () + LIMIT_MS;

    hk_log_init ("test_link", LOG_CRIT, NULL, NULL);
    if (setuid ((uid_t)atoi (argv[2])) < 0)
        return 2;
    conf.head = loopback = hk_hostlist_decode ("127.0.0.1", NULL);
    seat->client = hk_link_client_create (&conf, NULL);
    while (seat->client && !seat->ups && !seat->downs && hk_boot_ms () < limit)
        turn ();
    printf ("%s", seat->ups ? seat->role : seat->text);
    hk_link_client_destroy (seat->client);
    hk_hostlist_destroy (loopback);
    return 0;
}

static void ask_as (uid_t uid, const char *role, char *text, size_t size)
{
    char numbers[3][16];
    char role_text[16];
    bool is_node = strcmp (role, "node") == 0;
    char *argv[] = { "test_link", "ask",      numbers[0],    role_text,
                     numbers[1],  numbers[2], munged.socket, NULL };
    int fds[2];
    pid_t pid;
    int status;

    snprintf (role_text, sizeof (role_text), "%s", role);
    snprintf (numbers[0], sizeof (numbers[0]), "%u", uid);
    snprintf (numbers[1],
              sizeof (numbers[1]),
              "%u",
              (unsigned)(is_node ? w.node_port : w.client_port));
    snprintf (numbers[2], sizeof (numbers[2]), "%u", w.key_port);
    assert_int_equal (pipe2 (fds, O_CLOEXEC), 0);
    pid = fork ();
    assert_true (pid >= 0);
    if (pid == 0) {
        dup2 (fds[1], STDOUT_FILENO);
        execv ("/proc/self/exe", argv);
        _exit (127);
    }
    close (fds[1]);
    while (waitpid (pid, &status, WNOHANG) == 0) {
        pump_server ();
        poll (NULL, 0, 2);
    }
    memset (text, 0, size);
    assert_true (read (fds[0], text, size - 1) >= 0);
    close (fds[0]);
    assert_int_equal (status, 0);
}

static void another_uid_is_a_guest_or_nobody (void **state)
{
    static const uid_t admins[] = { 1001, 1002 };
    char text[512];

    (void)state;
    if (geteuid () != 0) {
        print_message ("needs root\n");
        return;
    }
    begin ();
    ask_as (1000, "owner", text, sizeof (text));
    assert_string_equal (text, "guest");
    ask_as (1000, "manager", text, sizeof (text));
    assert_string_equal (text, "guest");
    ask_as (1000, "node", text, sizeof (text));
    assert_non_null (strstr (text, "denied: uid 1000 may not be node"));
    w.conf.admin_uids = admins;
    w.conf.admin_uids_count = 2;
    w.conf.manager_uid = 1003;
    w.conf.guest_access = false;
    w.conf.node_port = 1;
    assert_int_equal (hk_link_server_reload (w.server, &w.conf, NULL), -1);
    w.conf.node_port = 0;
    assert_int_equal (hk_link_server_reload (w.server, &w.conf, NULL), 0);
    ask_as (1002, "owner", text, sizeof (text));
    assert_string_equal (text, "owner");
    ask_as (1003, "manager", text, sizeof (text));
    assert_string_equal (text, "manager");
    ask_as (1000, "guest", text, sizeof (text));
    assert_non_null (strstr (text, "denied"));
    end ();
}

static void a_wrong_server_uid_is_not_believed (void **state)
{
    struct hk_client_conf conf = {
        .head = loopback,
        .munge_socket = munged.socket,
        .server_uid = geteuid () + 1,
        .role = "owner",
    };

    (void)state;
    begin ();
    conf.port = w.client_port;
    conf.key_port = w.key_port;
    w.seats[0].client = hk_link_client_create (&conf, NULL);
    UNTIL (w.seats[0].downs == 1);
    assert_int_equal (w.seats[0].errnum, EACCES);
    assert_non_null (strstr (w.seats[0].text, "vouched for by uid"));
    assert_int_equal (w.hellos, 0);
    end ();
}

static void keep_ports (void)
{
    w.conf.node_port = w.node_port;
    w.conf.client_port = w.client_port;
    w.conf.key_port = w.key_port;
}

static void a_restart_needs_no_new_key_question (void **state)
{
    struct seat *seat;
    struct hk_link_stats stats;

    (void)state;
    begin ();
    seat = join ("node", "node1");
    UNTIL (seat->ups == 1);
    keep_ports ();
    w.conf.start = 43;
    hk_link_server_destroy (w.server);
    w.server = NULL;
    UNTIL (seat->downs == 1);
    assert_int_equal (seat->errnum, ECONNREFUSED);
    open_server ();
    UNTIL (seat->ups == 2);
    hk_link_server_stats (w.server, &stats);
    /* the first HELLO named the start before */
    assert_int_equal (stats.rehellos, 1);
    assert_int_equal (stats.hellos, 2);
    assert_int_equal (seat->downs, 1);
    end ();
}

static void a_new_key_is_asked_for (void **state)
{
    struct seat *seat;
    char path[256];

    (void)state;
    begin ();
    seat = join ("node", "node1");
    UNTIL (seat->ups == 1);
    keep_ports ();
    hk_link_server_destroy (w.server);
    w.server = NULL;
    snprintf (path, sizeof (path), "%s/server.key", w.state_dir);
    assert_int_equal (unlink (path), 0);
    open_server ();
    UNTIL (seat->ups == 2);
    end ();
}

static void the_key_file_is_the_server_s_alone (void **state)
{
    char path[256];
    struct stat st;
    struct hk_error err;

    (void)state;
    begin ();
    snprintf (path, sizeof (path), "%s/server.key", w.state_dir);
    assert_int_equal (stat (path, &st), 0);
    assert_int_equal (st.st_mode & 07777, 0600);
    assert_int_equal (st.st_size, 41);
    hk_link_server_destroy (w.server);
    assert_int_equal (chmod (path, 0640), 0);
    w.server = hk_link_server_create (&w.conf, &err);
    assert_null (w.server);
    assert_int_equal (errno, EPERM);
    assert_non_null (strstr (err.text, "mode 0640"));
    assert_int_equal (chmod (path, 0600), 0);
    assert_int_equal (truncate (path, 20), 0);
    assert_null (hk_link_server_create (&w.conf, &err));
    assert_int_equal (errno, EINVAL);
    end ();
}

static void a_port_in_use_is_named (void **state)
{
    struct hk_error err;
    char text[16];

    (void)state;
    begin ();
    keep_ports ();
    w.conf.node_port = 0;
    assert_null (hk_link_server_create (&w.conf, &err));
    assert_int_equal (errno, EADDRINUSE);
    snprintf (text, sizeof (text), ":%u", w.client_port);
    assert_non_null (strstr (err.text, text));
    end ();
}

static void an_act_reaches_the_caller_and_a_foreign_one_is_denied (void **state)
{
    struct seat *seat;
    struct hk_msg msg = { .type = HK_MSG_KILL };
    uint64_t seq = 0;

    (void)state;
    begin ();
    seat = join ("owner", NULL);
    UNTIL (seat->ups == 1);
    msg.query.jobid = 77;
    assert_int_equal (hk_link_client_send (seat->client, &msg, &seq), 0);
    assert_true (seq > 0);
    UNTIL (w.messages == 1);
    assert_int_equal (w.jobid, 77);
    msg = (struct hk_msg){ .type = HK_MSG_ACK };
    hk_link_client_send (seat->client, &msg, NULL);
    UNTIL (seat->messages == 1);
    assert_int_equal (seat->type, HK_MSG_ERROR);
    assert_string_equal (seat->text, "denied: ack is not for a owner");
    assert_int_equal (w.messages, 1);
    end ();
}

static void a_client_that_leaves_is_gone (void **state)
{
    struct seat *seat;

    (void)state;
    begin ();
    seat = join ("owner", NULL);
    UNTIL (seat->ups == 1);
    leave (seat);
    UNTIL (w.gones == 1);
    end ();
}

static void a_refused_peer_is_told_why (void **state)
{
    struct seat *seat;

    (void)state;
    begin ();
    w.refuse = true;
    seat = join ("node", "node1");
    UNTIL (seat->downs == 1);
    assert_int_equal (seat->errnum, EAGAIN);
    assert_non_null (strstr (seat->text, "conflict: another has it"));
    w.refuse = false;
    UNTIL (seat->ups == 1);
    end ();
}

static void a_closed_session_begins_anew (void **state)
{
    struct seat *seat;
    struct hk_msg msg = { .type = HK_MSG_PING };

    (void)state;
    begin ();
    seat = join ("owner", NULL);
    UNTIL (seat->ups == 1);
    hk_link_close (w.server, w.peer);
    assert_int_equal (hk_link_client_send (seat->client, &msg, NULL), 0);
    UNTIL (seat->ups == 2);
    assert_int_equal (seat->downs, 1);
    assert_int_equal (w.messages, 0);
    assert_int_equal (w.gones, 0);
    end ();
}

static void the_next_head_is_tried (void **state)
{
    struct hk_client_conf conf = {
        .munge_socket = munged.socket,
        .server_uid = geteuid (),
        .role = "owner",
    };
    struct hk_hostlist *heads = hk_hostlist_create ();

    (void)state;
    begin ();
    hk_hostlist_append (heads, "127.0.0.2");
    hk_hostlist_append (heads, "127.0.0.1");
    conf.head = heads;
    conf.port = w.client_port;
    conf.key_port = w.key_port;
    w.seats[0].client = hk_link_client_create (&conf, NULL);
    UNTIL (w.seats[0].ups == 1);
    assert_int_equal (w.seats[0].downs, 1);
    assert_non_null (strstr (w.seats[0].text, "no answer from 127.0.0.2"));
    hk_hostlist_destroy (heads);
    end ();
}

static void above_the_limit_nobody_connects (void **state)
{
    struct seat *seats[3];
    struct hk_link_stats stats;

    (void)state;
    begin ();
    hk_link_server_destroy (w.server);
    w.conf.node_connections = 2;
    open_server ();
    for (int i = 0; i < 2; i++) {
        seats[i] = join ("node", "node1");
        UNTIL (seats[i]->ups == 1);
    }
    UNTIL ((hk_link_server_stats (w.server, &stats), stats.connections_node)
           == 2);
    seats[2] = join ("node", "node3");
    for (int i = 0; i < 200; i++)
        turn ();
    assert_int_equal (seats[2]->ups, 0);
    /* those who are there stay there */
    assert_true (hk_link_client_is_up (seats[0]->client));
    leave (seats[0]);
    UNTIL (seats[2]->ups == 1);
    end ();
}

/* ---- what our client would never say */

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

    snprintf (path, sizeof (path), "%s/server.key", w.state_dir);
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
    snprintf (endpoint, sizeof (endpoint), "tcp://127.0.0.1:%u", w.client_port);
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
    memcpy (claim.instance, instance, sizeof (claim.instance));
    snprintf (claim.role, sizeof (claim.role), "%s", claimed_role);
    if (!*cred)
        *cred = hk_hello_claim_encode (munged.socket, &claim, geteuid (), NULL);
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
    begin ();
    raw_open (&raw);
    raw_ask (&raw, "{\"type\":\"ping\",\"seq\":1}", "\"rehello\"");
    /* but not each time */
    for (int i = 0; i < 50; i++)
        raw_send (&raw, "{\"type\":\"ping\",\"seq\":1}");
    UNTIL ((hk_link_server_stats (w.server, &stats), stats.received) == 51);
    assert_int_equal (stats.rehellos, 1);
    assert_int_equal (w.messages, 0);
    raw_close (&raw);
    end ();
}

static void versions_two_apart_do_not_talk (void **state)
{
    struct raw raw;

    (void)state;
    begin ();
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
    end ();
}

static void a_credential_is_good_for_its_key_role_and_once (void **state)
{
    struct raw raw;
    struct raw thief;
    char *cred = NULL;
    char *text;

    (void)state;
    begin ();
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
    end ();
}

static void a_foreign_session_is_not_heard (void **state)
{
    struct raw raw;
    char *cred = NULL;
    char *text;

    (void)state;
    begin ();
    raw_open (&raw);
    text = raw_hello (&raw, "owner", "owner", 42, &cred);
    raw_ask (&raw, text, "\"welcome\"");
    raw_ask (&raw,
             "{\"type\":\"ping\",\"seq\":1,"
             "\"session\":\"0123456789abcdef0123456789abcdef\"}",
             "\"rehello\"");
    assert_int_equal (w.messages, 0);
    free (text);
    free (cred);
    raw_close (&raw);
    end ();
}

static void rubbish_and_size_end_nothing (void **state)
{
    static char large[HK_MSG_UNBOUND_BYTES + 100];
    struct raw raw;
    struct seat *seat;
    struct hk_link_stats stats;

    (void)state;
    begin ();
    raw_open (&raw);
    raw_ask (&raw, "rubbish", "\"code\":\"bad\"");
    memset (large, ' ', sizeof (large) - 1);
    raw_send (&raw, large);
    zmq_send (raw.socket, "a", 1, ZMQ_SNDMORE);
    raw_send (&raw, "{\"type\":\"ping\",\"seq\":1}");
    raw_send (&raw, "");
    raw_send (&raw, "{\"type\":\"welcome\",\"seq\":1}");
    UNTIL ((hk_link_server_stats (w.server, &stats), stats.dropped_bad) >= 5);
    seat = join ("owner", NULL);
    UNTIL (seat->ups == 1);
    raw_close (&raw);
    end ();
}

static void many_messages_pass_in_a_second (void **state)
{
    enum { COUNT = 100000 };
    struct seat *seat;
    struct hk_msg msg = { .type = HK_MSG_ALIVE };
    int64_t start;
    int sent = 0;

    (void)state;
    begin ();
    seat = join ("node", "node1");
    UNTIL (seat->ups == 1);
    msg.alive.boot_id = boot_id;
    start = hk_boot_ms ();
    while (w.messages < COUNT) {
        assert_true (hk_boot_ms () - start < LIMIT_MS);
        while (sent < COUNT
               && hk_link_client_send (seat->client, &msg, NULL) == 0)
            sent++;
        pump_server ();
    }
    print_message (
        "%d messages in %d ms\n", w.messages, (int)(hk_boot_ms () - start));
    end ();
}

static int start (void **state)
{
    (void)state;
    if (!getenv ("HK_TEST_LOG"))
        hk_log_init ("test_link", LOG_CRIT, NULL, NULL);
    loopback = hk_hostlist_create ();
    hk_hostlist_append (loopback, "127.0.0.1");
    return munged_start (&munged);
}

static int stop (void **state)
{
    (void)state;
    hk_hostlist_destroy (loopback);
    munged_stop (&munged);
    return 0;
}

int main (int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (a_node_is_welcomed_and_heard),
        cmocka_unit_test (a_lean_node_is_welcomed_and_comes_back),
        cmocka_unit_test (roles_are_granted_by_uid),
        cmocka_unit_test (another_uid_is_a_guest_or_nobody),
        cmocka_unit_test (a_wrong_server_uid_is_not_believed),
        cmocka_unit_test (a_restart_needs_no_new_key_question),
        cmocka_unit_test (a_new_key_is_asked_for),
        cmocka_unit_test (the_key_file_is_the_server_s_alone),
        cmocka_unit_test (a_port_in_use_is_named),
        cmocka_unit_test (
            an_act_reaches_the_caller_and_a_foreign_one_is_denied),
        cmocka_unit_test (a_client_that_leaves_is_gone),
        cmocka_unit_test (a_refused_peer_is_told_why),
        cmocka_unit_test (a_closed_session_begins_anew),
        cmocka_unit_test (the_next_head_is_tried),
        cmocka_unit_test (above_the_limit_nobody_connects),
        cmocka_unit_test (what_comes_before_hello_is_told_to_say_hello),
        cmocka_unit_test (versions_two_apart_do_not_talk),
        cmocka_unit_test (a_credential_is_good_for_its_key_role_and_once),
        cmocka_unit_test (a_foreign_session_is_not_heard),
        cmocka_unit_test (rubbish_and_size_end_nothing),
        cmocka_unit_test (many_messages_pass_in_a_second),
    };

    if (argc == 7 && strcmp (argv[1], "ask") == 0)
        return run_asker (argv);
    return cmocka_run_group_tests_name ("link", tests, start, stop);
}

/* test_link_identity.c - who may do what over the link, and whose key it is */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "proto/clock.h"
#include "proto/hostlist.h"
#include "proto/link.h"
#include "proto/log.h"
#include "tests/unit/link_world.h"

static const char *own_path;

static void roles_are_granted_by_uid (void **state)
{
    struct link_seat *owner;
    struct link_seat *manager;
    struct link_seat *node;

    (void)state;
    link_begin ();
    owner = link_join ("owner", NULL);
    manager = link_join ("manager", NULL);
    UNTIL (owner->ups == 1 && manager->ups == 1);
    assert_string_equal (owner->role, "owner");
    assert_string_equal (manager->role, "manager");
    /* a node has no business at the clients' port */
    node = link_join ("node", "node1");
    link_leave (node);
    lw.node_port = lw.client_port;
    node = link_join ("node", "node1");
    UNTIL (node->downs == 1);
    assert_int_equal (node->errnum, EACCES);
    assert_non_null (strstr (node->text, "denied: uid"));
    link_end ();
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
        .boot_id = link_boot_id,
    };
    struct link_seat *seat = &lw.seats[0];
    int64_t limit = hk_boot_ms () + LINK_LIMIT_MS;

    hk_log_init ("link", LOG_CRIT, NULL, NULL);
    if (setuid ((uid_t)atoi (argv[2])) < 0)
        return 2;
    conf.head = link_loopback = hk_hostlist_decode ("127.0.0.1", NULL);
    seat->client = hk_link_client_create (&conf, NULL);
    while (seat->client && !seat->ups && !seat->downs && hk_boot_ms () < limit)
        link_turn ();
    printf ("%s", seat->ups ? seat->role : seat->text);
    hk_link_client_destroy (seat->client);
    hk_hostlist_destroy (link_loopback);
    return 0;
}

static void ask_as (uid_t uid, const char *role, char *text, size_t size)
{
    char numbers[3][16];
    char role_text[16];
    bool is_node = strcmp (role, "node") == 0;
    char *argv[] = { "link",     "ask",      numbers[0],         role_text,
                     numbers[1], numbers[2], link_munged.socket, NULL };
    int fds[2];
    pid_t pid;
    int status;

    snprintf (role_text, sizeof (role_text), "%s", role);
    snprintf (numbers[0], sizeof (numbers[0]), "%u", uid);
    snprintf (numbers[1],
              sizeof (numbers[1]),
              "%u",
              (unsigned)(is_node ? lw.node_port : lw.client_port));
    snprintf (numbers[2], sizeof (numbers[2]), "%u", lw.key_port);
    assert_int_equal (pipe2 (fds, O_CLOEXEC), 0);
    pid = fork ();
    assert_true (pid >= 0);
    if (pid == 0) {
        dup2 (fds[1], STDOUT_FILENO);
        execv (own_path, argv);
        _exit (127);
    }
    close (fds[1]);
    while (waitpid (pid, &status, WNOHANG) == 0) {
        link_serve ();
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
    link_begin ();
    ask_as (1000, "owner", text, sizeof (text));
    assert_string_equal (text, "guest");
    ask_as (1000, "manager", text, sizeof (text));
    assert_string_equal (text, "guest");
    ask_as (1000, "node", text, sizeof (text));
    assert_non_null (strstr (text, "denied: uid 1000 may not be node"));
    lw.conf.admin_uids = admins;
    lw.conf.admin_uids_count = 2;
    lw.conf.manager_uid = 1003;
    lw.conf.guest_access = false;
    lw.conf.node_port = 1;
    assert_int_equal (hk_link_server_reload (lw.server, &lw.conf, NULL), -1);
    lw.conf.node_port = 0;
    assert_int_equal (hk_link_server_reload (lw.server, &lw.conf, NULL), 0);
    ask_as (1002, "owner", text, sizeof (text));
    assert_string_equal (text, "owner");
    ask_as (1003, "manager", text, sizeof (text));
    assert_string_equal (text, "manager");
    ask_as (1000, "guest", text, sizeof (text));
    assert_non_null (strstr (text, "denied"));
    link_end ();
}

static void a_wrong_server_uid_is_not_believed (void **state)
{
    struct hk_client_conf conf = {
        .head = link_loopback,
        .munge_socket = link_munged.socket,
        .server_uid = geteuid () + 1,
        .role = "owner",
    };

    (void)state;
    link_begin ();
    conf.port = lw.client_port;
    conf.key_port = lw.key_port;
    lw.seats[0].client = hk_link_client_create (&conf, NULL);
    UNTIL (lw.seats[0].downs == 1);
    assert_int_equal (lw.seats[0].errnum, EACCES);
    assert_non_null (strstr (lw.seats[0].text, "vouched for by uid"));
    assert_int_equal (lw.hellos, 0);
    link_end ();
}

static void the_key_file_is_the_server_s_alone (void **state)
{
    char path[256];
    struct stat st;
    struct hk_error err;

    (void)state;
    link_begin ();
    snprintf (path, sizeof (path), "%s/server.key", lw.state_dir);
    assert_int_equal (stat (path, &st), 0);
    assert_int_equal (st.st_mode & 07777, 0600);
    assert_int_equal (st.st_size, 41);
    hk_link_server_destroy (lw.server);
    assert_int_equal (chmod (path, 0640), 0);
    lw.server = hk_link_server_create (&lw.conf, &err);
    assert_null (lw.server);
    assert_int_equal (errno, EPERM);
    assert_non_null (strstr (err.text, "mode 0640"));
    assert_int_equal (chmod (path, 0600), 0);
    assert_int_equal (truncate (path, 20), 0);
    assert_null (hk_link_server_create (&lw.conf, &err));
    assert_int_equal (errno, EINVAL);
    link_end ();
}

static void a_new_key_is_asked_for (void **state)
{
    struct link_seat *seat;
    char path[256];

    (void)state;
    link_begin ();
    seat = link_join ("node", "node1");
    UNTIL (seat->ups == 1);
    link_keep_ports ();
    hk_link_server_destroy (lw.server);
    lw.server = NULL;
    snprintf (path, sizeof (path), "%s/server.key", lw.state_dir);
    assert_int_equal (unlink (path), 0);
    link_open_server ();
    UNTIL (seat->ups == 2);
    link_end ();
}

int main (int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (roles_are_granted_by_uid),
        cmocka_unit_test (another_uid_is_a_guest_or_nobody),
        cmocka_unit_test (a_wrong_server_uid_is_not_believed),
        cmocka_unit_test (the_key_file_is_the_server_s_alone),
        cmocka_unit_test (a_new_key_is_asked_for),
    };

    /* not /proc/self/exe, which is valgrind when that runs us */
    own_path = argv[0];
    if (argc == 7 && strcmp (argv[1], "ask") == 0)
        return run_asker (argv);
    return cmocka_run_group_tests_name (
        "link-identity", tests, link_start, link_stop);
}

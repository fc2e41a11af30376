/* say.c - a peer by hand: messages in on stdin, out on stdout, a line each */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <czmq.h>
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "proto/clock.h"
#include <zmq.h>
#include "proto/conf.h"
#include "proto/link.h"
#include "proto/link_client.h"
#include "proto/log.h"

/* say --role ROLE [--host NAME --boot ID] [--config FILE] [--raw]: says HELLO
 * as ROLE, then sends each line of standard input as a message (without seq and
 * session, which the link fills in) and prints each message that comes.  With
 * --raw the line is a frame as it stands, but that the session takes the place
 * of a first $S.  Ends at the end of input, after the answers of a second.
 */

enum {
    LINGER_MS = 1000,
    NO_SESSION_MS = 60000, /* then it gives up */
    CHUNK_BYTES = 64 << 10,
};

static void print (const char *event,
                   const struct hk_msg *msg,
                   const char *text)
{
    struct hk_error err;
    size_t len;
    char *line = msg ? hk_msg_encode (msg, &len, &err) : NULL;

    if (line)
        puts (line);
    else
        printf ("{\"event\":\"%s\",\"text\":\"%s\"}\n", event, text);
    fflush (stdout);
    free (line);
}

static void hear (struct hk_link_client *client)
{
    enum hk_client_event event;
    struct hk_msg msg;
    struct hk_error err;

    while (hk_link_client_next (client, hk_boot_ms (), &event, &msg, &err)
           > 0) {
        if (event == HK_CLIENT_DOWN) {
            print ("down", NULL, err.text);
            continue;
        }
        print ("up", &msg, "");
        hk_msg_fini (&msg);
    }
}

/* The line has what the table asks for but seq and session.  False if the queue
 * is full: it is to be said again.
 */
static bool say (struct hk_link_client *client, const char *line)
{
    struct hk_msg msg;
    struct hk_error err;
    char *whole;
    bool said = true;

    if (*line != '{'
        || asprintf (&whole,
                     "{\"seq\":1,\"session\":"
                     "\"00000000000000000000000000000000\",%s",
                     line + 1)
               < 0) {
        print ("bad", NULL, "expected a JSON object on one line");
        return true;
    }
    if (hk_msg_decode (whole, strlen (whole), HK_MSG_OWNER_BYTES, &msg, &err)
        < 0)
        print ("bad", NULL, err.text);
    else {
        said = hk_link_client_send (client, &msg, NULL) == 0 || errno != EAGAIN;
        hk_msg_fini (&msg);
    }
    free (whole);
    return said;
}

/* As say, of a frame. */
static bool say_raw (struct hk_link_client *client, const char *line)
{
    const char *mark = strstr (line, "$S");
    char *frame;
    bool said;

    if (asprintf (&frame,
                  "%.*s%s%s",
                  mark ? (int)(mark - line) : 0,
                  line,
                  mark ? client->session : "",
                  mark ? mark + 2 : line)
        < 0)
        abort ();
    said = zmq_send (client->socket, frame, strlen (frame), ZMQ_DONTWAIT) >= 0
           || errno != EAGAIN;
    free (frame);
    hk_client_poke (client);
    return said;
}

struct input {
    char *text;
    size_t len, size;
    bool ended;
};

static void input_read (struct input *in)
{
    ssize_t n;

    if (in->size - in->len < CHUNK_BYTES) {
        in->size = 2 * in->size + CHUNK_BYTES + 1;
        if (!(in->text = realloc (in->text, in->size)))
            abort ();
    }
    n = read (STDIN_FILENO, in->text + in->len, CHUNK_BYTES);
    if (n > 0)
        in->len += (size_t)n;
    else
        in->ended = true;
}

/* Says the first line; false if there is none yet, or no room for it. */
static bool input_say (struct input *in,
                       struct hk_link_client *client,
                       bool is_raw)
{
    char *end = in->len ? memchr (in->text, '\n', in->len) : NULL;

    if (!end)
        return false;
    *end = '\0';
    if (!(is_raw ? say_raw : say) (client, in->text)) {
        *end = '\n';
        return false;
    }
    end++;
    in->len -= (size_t)(end - in->text);
    memmove (in->text, end, in->len);
    return true;
}

static void run (struct hk_link_client *client, bool is_raw)
{
    struct pollfd fds[2] = {
        { .fd = STDIN_FILENO, .events = POLLIN },
        { .fd = hk_link_client_fd (client), .events = POLLIN },
    };
    struct input in = { .text = NULL };
    int64_t end = INT64_MAX, up_ms = hk_boot_ms ();

    while (hk_boot_ms () < end) {
        bool up = hk_link_client_is_up (client);
        bool more = up && input_say (&in, client, is_raw);

        if (up)
            up_ms = hk_boot_ms ();
        else if (hk_boot_ms () - up_ms > NO_SESSION_MS)
            break;
        fds[0].fd = up && !in.ended ? STDIN_FILENO : -1;
        if (poll (fds, 2, more ? 0 : 50) < 0 && errno != EINTR)
            break;
        hear (client);
        if (fds[0].fd >= 0 && (fds[0].revents & (POLLIN | POLLHUP)))
            input_read (&in);
        if (in.ended && (in.len == 0 || !up) && end == INT64_MAX)
            end = hk_boot_ms () + LINGER_MS;
    }
    free (in.text);
}

int main (int argc, char **argv)
{
    static const struct option longs[] = {
        { "role", required_argument, NULL, 'r' },
        { "host", required_argument, NULL, 'h' },
        { "boot", required_argument, NULL, 'b' },
        { "config", required_argument, NULL, 'c' },
        { "raw", no_argument, NULL, 'R' },
        { NULL, 0, NULL, 0 },
    };
    const char *role = "guest", *host = "", *boot = "", *path = hk_conf_path;
    struct hk_client_conf cc;
    struct hk_link_client *client;
    struct hk_conf *conf;
    struct hk_error err;
    bool is_raw = false;
    int c;

    while ((c = getopt_long (argc, argv, "", longs, NULL)) >= 0) {
        switch (c) {
        case 'r':
            role = optarg;
            break;
        case 'h':
            host = optarg;
            break;
        case 'b':
            boot = optarg;
            break;
        case 'c':
            path = optarg;
            break;
        case 'R':
            is_raw = true;
            break;
        default:
            return 2;
        }
    }
    hk_log_init ("say", LOG_WARNING, NULL, NULL);
    zsys_handler_set (NULL);
    if (!(conf = hk_conf_load (path, 0, &err))) {
        fprintf (stderr, "say: %s\n", err.text);
        return 1;
    }
    cc = (struct hk_client_conf){
        .head = conf->head,
        .port = strcmp (role, "node") ? conf->client_port : conf->node_port,
        .key_port = conf->key_port,
        .munge_socket = conf->munge_socket,
        .server_uid = conf->server_uid,
        .role = role,
        .host = host,
        .short_host = host,
        .boot_id = boot,
    };
    if (!(client = hk_link_client_create (&cc, &err))) {
        fprintf (stderr, "say: %s\n", err.text);
        hk_conf_destroy (conf);
        return 1;
    }
    run (client, is_raw);
    hk_link_client_destroy (client);
    hk_conf_destroy (conf);
    return 0;
}

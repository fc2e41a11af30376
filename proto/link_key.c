/* link_key.c - the server's key: its file, and the question for it */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "proto/file.h"
#include "proto/link_server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>
#include "proto/log.h"

/* The file holds the secret key as text; the public one follows from it. */
static const char file_name[] = "server.key";
static const char temp_name[] = "server.key.tmp";

enum { KEY_CHARS = HK_KEY_TEXT_BYTES - 1, QUESTIONS_AT_ONCE = 256 };

static bool is_secret (const char *text)
{
    uint8_t raw[32];
    bool ok = strlen (text) == KEY_CHARS && zmq_z85_decode (raw, text) != NULL;

    explicit_bzero (raw, sizeof (raw));
    return ok;
}

/* 1: read, 0: there is none, -1: an error. */
static int read_secret (int dir,
                        const char *dir_name,
                        char secret[HK_KEY_TEXT_BYTES],
                        struct hk_error *err)
{
    int fd = openat (dir, file_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct stat st;
    ssize_t n;
    int rc = -1;

    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0)
        return hk_error_errno (err, errno, "%s/%s", dir_name, file_name);
    if (fstat (fd, &st) < 0) {
        hk_error_errno (err, errno, "%s/%s", dir_name, file_name);
    } else if (!S_ISREG (st.st_mode) || st.st_uid != geteuid ()
               || (st.st_mode & 077) != 0) {
        hk_error_set (err,
                      EPERM,
                      "%s/%s: owner %u, mode %04o, but it must be a file of "
                      "uid %u alone, mode 0600",
                      dir_name,
                      file_name,
                      st.st_uid,
                      st.st_mode & 07777U,
                      geteuid ());
    } else {
        n = read (fd, secret, KEY_CHARS);
        secret[n < 0 ? 0 : n] = '\0';
        if (n < 0)
            hk_error_errno (err, errno, "%s/%s", dir_name, file_name);
        else if (!is_secret (secret))
            hk_error_set (err, EINVAL, "%s/%s: no key", dir_name, file_name);
        else
            rc = 1;
    }
    close (fd);
    return rc;
}

/* Whole or not at all, also when the power goes. */
static int write_secret (int dir,
                         const char *dir_name,
                         const char *secret,
                         struct hk_error *err)
{
    int fd;

    if (unlinkat (dir, temp_name, 0) < 0 && errno != ENOENT)
        return hk_error_errno (err, errno, "%s/%s", dir_name, temp_name);
    fd = openat (dir,
                 temp_name,
                 O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                 0600);
    if (fd < 0)
        return hk_error_errno (err, errno, "%s/%s", dir_name, temp_name);
    if (fchmod (fd, 0600) < 0 || hk_write_all (fd, secret, KEY_CHARS) < 0
        || hk_write_all (fd, "\n", 1) < 0 || fsync (fd) < 0) {
        hk_error_errno (err, errno, "%s/%s", dir_name, temp_name);
        close (fd);
        return -1;
    }
    if (close (fd) < 0 || renameat (dir, temp_name, dir, file_name) < 0
        || fsync (dir) < 0)
        return hk_error_errno (err, errno, "%s/%s", dir_name, file_name);
    return 0;
}

int hk_key_load (struct hk_link_server *link,
                 char secret[HK_KEY_TEXT_BYTES],
                 struct hk_error *err)
{
    int dir = open (link->state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc;

    if (dir < 0)
        return hk_error_errno (err, errno, "%s", link->state_dir);
    rc = read_secret (dir, link->state_dir, secret, err);
    if (rc == 0) {
        rc = -1;
        if (zmq_curve_keypair (link->public_key, secret) < 0)
            hk_error_errno (err, errno, "CURVE key pair");
        else if (write_secret (dir, link->state_dir, secret, err) == 0)
            rc = 1;
    }
    close (dir);
    if (rc == 1 && zmq_curve_public (link->public_key, secret) < 0)
        rc = hk_error_errno (err, errno, "CURVE public key");
    return rc < 0 ? -1 : 0;
}

/* In a thread of the pool: only the job is its own. */
static void vouch (struct hk_pool_job *pool_job)
{
    struct hk_link_job *job = (struct hk_link_job *)pool_job;

    job->cred = hk_key_claim_encode (
        job->link->munge_socket, &job->question, &job->err);
    job->errnum = job->cred ? 0 : errno;
}

/* Not answered: whoever sends it has no key yet to be told apart by. */
static void bad (struct hk_link_server *link,
                 const char *address,
                 const char *text)
{
    link->stats.dropped_bad++;
    hk_log_throttled (
        LOG_WARNING, address, "%s: key question: %s", address, text);
}

static void ask (struct hk_link_server *link,
                 const struct hk_route *route,
                 const char *address,
                 const struct hk_msg *msg)
{
    struct hk_link_job *job;
    size_t len = strlen (msg->key_get.nonce);

    if (len != HK_NONCE_TEXT_BYTES - 1
        || strspn (msg->key_get.nonce, "0123456789abcdef") != len) {
        bad (link, address, "nonce: expected 64 hex digits");
        return;
    }
    job = calloc (1, sizeof (*job));
    if (!job)
        return;
    job->job.work = vouch;
    job->link = link;
    job->route = *route;
    job->seq = msg->seq;
    snprintf (job->address, sizeof (job->address), "%s", address);
    memcpy (job->question.server_pub, link->public_key, HK_KEY_TEXT_BYTES);
    memcpy (job->question.instance, link->instance, HK_ID_BYTES);
    job->question.start = link->start;
    memcpy (job->question.nonce, msg->key_get.nonce, HK_NONCE_TEXT_BYTES);
    hk_job_submit (link, &link->client_lane, job);
}

/* One frame from a route. */
static void hear (struct hk_link_server *link,
                  const struct hk_route *route,
                  const char *address,
                  zmq_msg_t *frame)
{
    struct hk_error err;
    struct hk_msg msg;

    if (hk_msg_decode (zmq_msg_data (frame),
                       zmq_msg_size (frame),
                       HK_MSG_UNBOUND_BYTES,
                       &msg,
                       &err)
        < 0) {
        bad (link, address, err.text);
        return;
    }
    if (msg.type == HK_MSG_KEY_GET)
        ask (link, route, address, &msg);
    else
        bad (link, address, "another message");
    hk_msg_fini (&msg);
}

/* 1: a question was taken or passed over, 0: there is none. */
static int receive (struct hk_link_server *link)
{
    struct hk_route route;
    char address[HK_SOURCE_BYTES];
    zmq_msg_t frame;
    int n = zmq_recv (
        link->key_socket, route.id, sizeof (route.id), ZMQ_DONTWAIT);

    if (n < 0)
        return 0;
    route.size = (unsigned char)n;
    zmq_msg_init (&frame);
    if (zmq_msg_recv (&frame, link->key_socket, ZMQ_DONTWAIT) < 0) {
        zmq_msg_close (&frame);
        return 0;
    }
    snprintf (address, sizeof (address), "%s", hk_port_address (&frame));
    if (n <= (int)sizeof (route.id) && !zmq_msg_more (&frame)) {
        hear (link, &route, address, &frame);
    } else {
        bad (link, address, "more than one frame");
        while (zmq_msg_more (&frame)
               && zmq_msg_recv (&frame, link->key_socket, ZMQ_DONTWAIT) >= 0)
            ;
    }
    zmq_msg_close (&frame);
    return 1;
}

void hk_key_questions (struct hk_link_server *link)
{
    for (int i = 0; i < QUESTIONS_AT_ONCE && receive (link); i++)
        ;
}

void hk_key_answer (struct hk_link_server *link, struct hk_link_job *job)
{
    struct hk_msg msg = { .type = HK_MSG_KEY, .re = job->seq };

    if (job->errnum) {
        if (!hk_job_lacks_munge (job))
            hk_log_throttled (LOG_ERR, "key", "key answer: %s", job->err.text);
        hk_route_error (link,
                        link->key_socket,
                        &job->route,
                        job->seq,
                        "auth",
                        job->err.text);
        return;
    }
    msg.key.cred = job->cred;
    hk_route_send (link, link->key_socket, &job->route, &msg);
}

/* link_hello.c - a HELLO: through MUNGE to a peer with uid and role */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "proto/link_server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "proto/log.h"

enum { SESSIONS_OF_A_UID = 64 };

static void job_free (struct hk_link_job *job)
{
    if (!job)
        return;
    if (job->cred)
        explicit_bzero (job->cred, strlen (job->cred));
    free (job->cred);
    free (job);
}

static void job_drop (struct hk_pool_job *job)
{
    job_free ((struct hk_link_job *)job);
}

void hk_jobs_fini (struct hk_link_server *link)
{
    hk_pool_lane_fini (&link->node_lane, job_drop);
    hk_pool_lane_fini (&link->client_lane, job_drop);
    hk_pool_lane_fini (&link->slow_lane, job_drop);
}

/* Takes the job.  The asker comes again if it is dropped. */
int hk_job_submit (struct hk_link_server *link,
                   struct hk_pool_lane *lane,
                   struct hk_link_job *job)
{
    size_t limit = HK_HELLOS_WAITING;

    job->is_slow = !hk_source_take (link, job->address);
    if (job->is_slow) {
        lane = &link->slow_lane;
        limit = HK_SLOW_WAITING;
    }
    if (lane->count >= limit || hk_pool_submit (lane, &job->job) < 0) {
        hk_log_throttled (LOG_WARNING,
                          "hello",
                          "%s: dropped, %zu wait for munge",
                          job->address,
                          lane->count);
        link->stats.hellos_failed++;
        job_free (job);
        return -1;
    }
    if (job->is_slow)
        hk_source_slow_add (link, job->address);
    return 0;
}

/* In a thread of the pool: only the job is its own. */
static void verify (struct hk_pool_job *pool_job)
{
    struct hk_link_job *job = (struct hk_link_job *)pool_job;

    job->errnum = 0;
    if (hk_hello_claim_decode (job->link->munge_socket,
                               job->cred,
                               &job->hello,
                               &job->uid,
                               &job->err)
        < 0)
        job->errnum = errno;
}

void hk_hello_submit (struct hk_link_server *link,
                      struct hk_port *port,
                      const struct hk_route *route,
                      const char *key,
                      const char *address,
                      const struct hk_msg *msg)
{
    const struct hk_msg_hello *hello = &msg->hello;
    struct hk_link_job *job;

    link->stats.hellos++;
    if (hello->version > HK_PROTOCOL_VERSION + 1
        || hello->version < HK_PROTOCOL_VERSION - 1) {
        char text[128];

        snprintf (text,
                  sizeof (text),
                  "protocol version %d, the coordinator's is %d",
                  hello->version,
                  HK_PROTOCOL_VERSION);
        hk_log_throttled (LOG_WARNING, address, "%s: %s", address, text);
        link->stats.hellos_failed++;
        hk_route_error (link, port->socket, route, msg->seq, "version", text);
        return;
    }
    job = calloc (1, sizeof (*job));
    if (!job || !(job->cred = strdup (hello->cred))) {
        free (job);
        return;
    }
    job->job.work = verify;
    job->link = link;
    job->port = port;
    job->route = *route;
    job->seq = msg->seq;
    snprintf (job->address, sizeof (job->address), "%s", address);
    memcpy (job->key, key, HK_KEY_TEXT_BYTES);
    snprintf (job->asked_role, sizeof (job->asked_role), "%s", hello->role);
    hk_job_submit (
        link, port->is_node ? &link->node_lane : &link->client_lane, job);
}

bool hk_job_lacks_munge (struct hk_link_job *job)
{
    if (job->errnum != EAGAIN)
        return false;
    hk_log_throttled (LOG_ERR,
                      "munge",
                      "munge does not answer, so nobody new is let in: %s",
                      job->err.text);
    hk_error_prefix (&job->err, "the coordinator's munge does not answer");
    return true;
}

static void refuse (struct hk_link_server *link,
                    struct hk_link_job *job,
                    const char *code,
                    const char *text)
{
    link->stats.hellos_failed++;
    hk_log_throttled (LOG_WARNING,
                      job->address,
                      "hello of %s %s uid %u: %s",
                      job->address,
                      job->hello.host,
                      job->uid,
                      text);
    hk_route_error (link, job->port->socket, &job->route, job->seq, code, text);
}

static bool is_owner (const struct hk_link_server *link, uid_t uid)
{
    if (uid == 0 || uid == link->own_uid)
        return true;
    for (int i = 0; i < link->admin_uids_count; i++)
        if (link->admin_uids[i] == uid)
            return true;
    return false;
}

/* The role that a uid may have of what it asks for; NONE: refused. */
static enum hk_role grant (const struct hk_link_server *link,
                           bool is_node_port,
                           const char *asked,
                           uid_t uid)
{
    int role = hk_role_decode (asked);

    if (is_node_port)
        return role == HK_ROLE_NODE && uid == 0 ? HK_ROLE_NODE : HK_ROLE_NONE;
    if (role == HK_ROLE_OWNER && is_owner (link, uid))
        return HK_ROLE_OWNER;
    if (role == HK_ROLE_MANAGER
        && (uid == 0 || uid == link->own_uid || uid == link->manager_uid))
        return HK_ROLE_MANAGER;
    if (role < 0 || role == HK_ROLE_NODE || !link->guest_access)
        return HK_ROLE_NONE;
    return HK_ROLE_GUEST;
}

static bool has_too_many (struct hk_link_server *link, uid_t uid)
{
    struct hk_link_peer *peer;
    int count = 0;

    for (peer = zhashx_first (link->peers); peer;
         peer = zhashx_next (link->peers))
        if (!peer->port->is_node && peer->pub.uid == uid
            && ++count >= SESSIONS_OF_A_UID)
            return true;
    return false;
}

static struct hk_link_peer *make_peer (struct hk_link_server *link,
                                       const struct hk_link_job *job,
                                       enum hk_role role)
{
    struct hk_link_peer *peer = calloc (1, sizeof (*peer));

    if (!peer)
        return NULL;
    peer->pub.id = ++link->last_id;
    peer->pub.role = role;
    peer->pub.uid = job->uid;
    if (role == HK_ROLE_NODE) {
        memcpy (peer->pub.host, job->hello.host, HK_HOST_NAME_BYTES);
        memcpy (
            peer->pub.short_host, job->hello.short_host, HK_HOST_NAME_BYTES);
        memcpy (peer->pub.boot_id, job->hello.boot_id, HK_ID_BYTES);
    }
    memcpy (peer->pub.address, job->address, sizeof (peer->pub.address));
    hk_random_id (peer->pub.session);
    peer->port = job->port;
    peer->route = job->route;
    memcpy (peer->key, job->key, HK_KEY_TEXT_BYTES);
    peer->hello_seq = job->seq;
    peer->last_ms = link->now_ms;
    return peer;
}

static const char *code_of (int errnum)
{
    return errnum == EKEYEXPIRED ? "skew" : "auth";
}

/* False after an answer that says what is wrong. */
static bool check (struct hk_link_server *link, struct hk_link_job *job)
{
    const struct hk_hello_claim *hello = &job->hello;

    if (hk_job_lacks_munge (job)) {
        link->stats.hellos_failed++;
        hk_route_error (link,
                        job->port->socket,
                        &job->route,
                        job->seq,
                        "auth",
                        job->err.text);
        return false;
    }
    if (job->errnum) {
        refuse (link, job, code_of (job->errnum), job->err.text);
        return false;
    }
    if (strcmp (hello->pub, job->key) != 0
        || strcmp (hello->role, job->asked_role) != 0) {
        refuse (link, job, "auth", "credential for another key or role");
        return false;
    }
    /* an older start of ours, or another store: it learns the present one */
    if (strcmp (hello->instance, link->instance) != 0
        || hello->start != link->start) {
        hk_route_rehello (link, job->port->socket, &job->route, job->key);
        return false;
    }
    if (job->port->is_node
        && (!hello->host[0] || !hello->short_host[0] || !hello->boot_id[0])) {
        refuse (link, job, "bad", "no host name or no boot id");
        return false;
    }
    return true;
}

static void finish (struct hk_link_server *link, struct hk_link_job *job)
{
    enum hk_role role;
    struct hk_link_peer *old;
    struct hk_link_peer *peer;

    if (!check (link, job))
        return;
    role = grant (link, job->port->is_node, job->asked_role, job->uid);
    if (role == HK_ROLE_NONE) {
        char text[128];

        snprintf (text,
                  sizeof (text),
                  "uid %u may not be %.15s here",
                  job->uid,
                  job->asked_role);
        refuse (link, job, "denied", text);
        return;
    }
    old = zhashx_lookup (link->peers, job->key);
    if (old)
        hk_peer_leave (link, old);
    if (role == HK_ROLE_GUEST && has_too_many (link, job->uid)) {
        refuse (link, job, "limit", "too many sessions of this user");
        return;
    }
    peer = make_peer (link, job, role);
    if (!peer)
        return;
    zhashx_insert (link->peers, peer->key, peer);
    link->stats.sessions = zhashx_size (link->peers);
    peer->state = PEER_QUEUED;
    hk_peer_event (link, peer);
}

static void collect (struct hk_link_server *link, struct hk_pool_lane *lane)
{
    struct hk_link_job *job;

    while (lane->count > 0
           && (job = (struct hk_link_job *)hk_pool_collect (lane))) {
        if (job->is_slow)
            hk_source_slow_done (link, job->address);
        if (job->port)
            finish (link, job);
        else
            hk_key_answer (link, job);
        job_free (job);
    }
}

void hk_jobs_collect (struct hk_link_server *link)
{
    collect (link, &link->node_lane);
    collect (link, &link->client_lane);
    collect (link, &link->slow_lane);
}

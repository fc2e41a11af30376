/* common_manager.c - a job manager and its scheduler, for benchmarks */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/clock.h"
#include "proto/rankset.h"
#include "tests/bench/common.h"

enum { HELLO_LIMIT_S = 60 };

static void freed (struct bench_manager *m, const struct hk_msg *msg)
{
    struct hk_rankset *ranks = hk_rankset_decode (msg->free.ranks, NULL);
    struct hk_msg ok = { .type = HK_MSG_FREE_OK, .free_ok = { msg->free.n } };
    double now = bench_now ();
    uint64_t job = msg->free.jobid - m->job_base;

    m->frees++;
    m->last_free = now;
    m->ranks_freed += hk_rankset_count (ranks);
    if (msg->free.jobid >= m->job_base && job < (uint64_t)m->jobs)
        for (uint32_t r = hk_rankset_first (ranks); r != HK_RANK_NONE;
             r = hk_rankset_next (ranks, r))
            m->freed[job * (uint64_t)m->ranks + r] = now;
    hk_rankset_destroy (ranks);
    hk_link_client_send (m->client, &ok, NULL);
}

static void on_message (struct bench_manager *m, const struct hk_msg *msg)
{
    struct hk_msg ready = {
        .type = HK_MSG_SCHED_READY,
        .sched_ready = { .life = "bench" },
    };

    switch (msg->type) {
    case HK_MSG_FREE:
        freed (m, msg);
        break;
    case HK_MSG_RECORDED:
        m->recorded++;
        break;
    case HK_MSG_SCHED_ALLOC_END:
        if (!msg->sched_alloc_end.resumed)
            hk_link_client_send (m->client, &ready, NULL);
        m->answered = true;
        break;
    case HK_MSG_DRAIN:
        bench_fail ("a node is drained: %s", msg->drain.reason);
    case HK_MSG_ERROR:
        bench_fail ("error %s: %s", msg->error.code, msg->error.text);
    case HK_MSG_DONE: /* a ping's */
        m->answered = true;
        break;
    default:
        break;
    }
}

static void hello (struct bench_manager *m)
{
    struct hk_msg msg = {
        .type = HK_MSG_SCHED_HELLO,
        .sched_hello = { .life = "bench", .partial_ok = true },
    };

    hk_link_client_set_life (m->client, "bench");
    if (hk_link_client_send (m->client, &msg, NULL) < 0)
        bench_fail ("hello: %s", strerror (errno));
}

void bench_manager_turn (struct bench_manager *m)
{
    enum hk_client_event what;
    struct hk_msg msg;
    struct hk_error err;

    while (hk_link_client_next (m->client, hk_boot_ms (), &what, &msg, &err)
           > 0) {
        m->up = what != HK_CLIENT_DOWN;
        if (what == HK_CLIENT_UP)
            hello (m);
        else if (what == HK_CLIENT_MESSAGE)
            on_message (m, &msg);
        if (what != HK_CLIENT_DOWN)
            hk_msg_fini (&msg);
    }
}

void bench_manager_open (struct bench_manager *m,
                         const struct hk_conf *conf,
                         int ranks,
                         int jobs)
{
    double t0;
    struct hk_error err;
    struct hk_client_conf cc = {
        .head = conf->head,
        .port = conf->client_port,
        .key_port = conf->key_port,
        .munge_socket = conf->munge_socket,
        .server_uid = conf->server_uid,
        .role = "owner",
    };

    memset (m, 0, sizeof (*m));
    m->ranks = ranks;
    m->jobs = jobs;
    m->freed = calloc ((size_t)ranks * (size_t)jobs, sizeof (*m->freed));
    if (!(m->client = hk_link_client_create (&cc, &err)))
        bench_fail ("manager: %s", err.text);
    t0 = bench_now ();
    while (!m->answered) {
        struct pollfd fd = { hk_link_client_fd (m->client), POLLIN, 0 };
        poll (&fd, 1, 20);
        bench_manager_turn (m);
        if (bench_now () - t0 > HELLO_LIMIT_S)
            bench_fail ("manager: its hello is not answered");
    }
}

void bench_manager_close (struct bench_manager *m)
{
    hk_link_client_destroy (m->client);
    free (m->freed);
}

void bench_manager_phase (struct bench_manager *m, uint64_t job_base)
{
    m->frees = m->ranks_freed = m->recorded = 0;
    m->last_free = 0;
    m->job_base = job_base;
    memset (
        m->freed, 0, (size_t)m->ranks * (size_t)m->jobs * sizeof (*m->freed));
}

void bench_manager_job_end (struct bench_manager *m, uint64_t jobid)
{
    char text[512];
    struct hk_msg msg = {
        .type = HK_MSG_JOB_END,
        .job_end = { .jobid = jobid, .userid = 1000, .t_submit = 1 },
    };

    snprintf (
        text,
        sizeof (text),
        "{\"version\":1,\"execution\":{\"R_lite\":[{\"rank\":\"0-%d\","
        "\"children\":{\"core\":\"0-63\"}}],\"nodelist\":[\"node[0-%d]\"],"
        "\"starttime\":1,\"expiration\":0}}",
        m->ranks - 1,
        m->ranks - 1);
    msg.job_end.R = json_loads (text, 0, NULL);
    msg.job_end.t_end = bench_now ();
    if (hk_link_client_send (m->client, &msg, NULL) < 0)
        bench_fail ("job-end: %s", strerror (errno));
    json_decref (msg.job_end.R);
}

double bench_manager_ping (struct bench_manager *m)
{
    struct hk_msg msg = { .type = HK_MSG_PING };
    double t0 = bench_now ();

    m->answered = false;
    if (hk_link_client_send (m->client, &msg, NULL) < 0)
        return -1;
    while (!m->answered && bench_now () - t0 < 30) {
        struct pollfd fd = { hk_link_client_fd (m->client), POLLIN, 0 };
        poll (&fd, 1, 5);
        bench_manager_turn (m);
    }
    return bench_now () - t0;
}

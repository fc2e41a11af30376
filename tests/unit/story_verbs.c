/* story_verbs.c - what happens: jobs end, nodes report, a scheduler asks */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/story.h"

/* Feed it, and fail if it is refused. */
static void feed (struct story *s, struct hkc_event *ev)
{
    struct hk_error err = { "" };

    if (story_step (s, ev, NULL, &err) < 0)
        fail_msg ("refused: %s", err.text);
}

static int number_of (const char *host)
{
    int i = atoi (host + 4);

    if (strncmp (host, "node", 4) != 0 || i < 0 || i >= STORY_HOSTS)
        fail_msg ("%s is no host of a story", host);
    return i;
}

typedef void (*host_f) (struct story *s, int i, const void *arg);

static void each (struct story *s,
                  const char *hosts,
                  host_f fn,
                  const void *arg)
{
    struct hk_hostlist *list = hk_hostlist_decode (hosts, NULL);

    if (!list)
        fail_msg ("%s is no host list", hosts);
    for (size_t i = 0; i < hk_hostlist_count (list); i++)
        fn (s, number_of (hk_hostlist_nth (list, i)), arg);
    hk_hostlist_destroy (list);
}

/* ---- jobs ---- */

static void add_rank (struct story *s, int i, const void *arg)
{
    (void)s;
    hk_rankset_add (*(struct hk_rankset *const *)arg, (uint32_t)i);
}

static char *R_of (const char *ranks, const char *hosts)
{
    char *R;

    if (asprintf (&R,
                  "{\"version\":1,\"execution\":{\"R_lite\":[{\"rank\":\"%s\","
                  "\"children\":{\"core\":\"0-3\"}}],\"starttime\":0,"
                  "\"expiration\":0,\"nodelist\":[\"%s\"]}}",
                  ranks,
                  hosts)
        < 0)
        R = NULL;
    assert_non_null (R);
    return R;
}

static char *R_on (struct story *s, const char *hosts)
{
    struct hk_rankset *set = hk_rankset_create ();
    char *ranks, *R;

    each (s, hosts, add_rank, &set);
    ranks = hk_rankset_encode (set);
    R = R_of (ranks, hosts);
    free (ranks);
    hk_rankset_destroy (set);
    return R;
}

static const char *end_say (struct story *s,
                            uint64_t jobid,
                            const char *R,
                            uint64_t *alloc)
{
    struct hkc_event ev = { .kind = HKC_EV_JOB_END };
    struct hkc_answer answer;
    struct hk_error err = { "" };

    ev.job_end.alloc = ++s->next_alloc;
    ev.job_end.jobid = jobid;
    ev.job_end.userid = 1000;
    ev.job_end.priority = 16;
    ev.job_end.t_submit = (double)jobid;
    ev.job_end.t_end = (double)jobid + 0.5;
    ev.job_end.queue = "batch";
    ev.job_end.hold_begin = s->flux;
    if (!(ev.job_end.res = hk_resource_decode (R, &err))
        || story_step (s, &ev, &answer, &err) < 0)
        fail_msg ("%s", err.text);
    *alloc = answer.alloc;
    return answer.state;
}

uint64_t job_ends_with (struct story *s, uint64_t jobid, const char *R)
{
    struct story_job *job = &s->jobs[s->jobs_count++];

    assert_true (s->jobs_count <= STORY_JOBS);
    job->jobid = jobid;
    assert_string_equal (end_say (s, jobid, R, &job->alloc), "new");
    story_turn (s);
    return job->alloc;
}

uint64_t job_ends (struct story *s, uint64_t jobid, const char *hosts)
{
    char *R = R_on (s, hosts);
    uint64_t alloc = job_ends_with (s, jobid, R);

    snprintf (s->jobs[s->jobs_count - 1].hosts,
              sizeof (s->jobs[0].hosts),
              "%s",
              hosts);
    free (R);
    return alloc;
}

static struct story_job *job_find (struct story *s, uint64_t jobid)
{
    for (int i = s->jobs_count - 1; i >= 0; i--)
        if (s->jobs[i].jobid == jobid)
            return &s->jobs[i];
    fail_msg ("job %lu has not ended", jobid);
    return NULL;
}

const char *job_ends_again (struct story *s, uint64_t jobid)
{
    struct story_job *job = job_find (s, jobid);
    char *R = R_on (s, job->hosts);
    uint64_t alloc;
    const char *state = end_say (s, jobid, R, &alloc);

    free (R);
    if (!strcmp (state, "held"))
        assert_int_equal (alloc, job->alloc);
    story_turn (s);
    return state;
}

static void job_event (struct story *s,
                       uint64_t jobid,
                       enum hkc_event_kind kind)
{
    struct hkc_event ev = { .kind = kind };

    ev.job.alloc = job_find (s, jobid)->alloc;
    feed (s, &ev);
    story_turn (s);
}

void job_begins (struct story *s, uint64_t jobid)
{
    job_event (s, jobid, HKC_EV_JOB_BEGIN);
}

void job_drops (struct story *s, uint64_t jobid)
{
    job_event (s, jobid, HKC_EV_JOB_DROP);
}

void job_purged (struct story *s, uint64_t jobid, bool ours)
{
    struct hkc_event ev = { .kind = HKC_EV_JOB_PURGED };

    ev.purged.jobid = jobid;
    ev.purged.t_submit = (double)jobid + (ours ? 0 : 1);
    feed (s, &ev);
    story_turn (s);
}

/* ---- nodes ---- */

static uint64_t hello (struct story *s, int i, const char *boot)
{
    struct hkc_event ev = { .kind = HKC_EV_NODE_HELLO };
    char host[16];

    snprintf (host, sizeof (host), "node%d", i);
    ev.node_hello.peer = ++s->next_peer;
    ev.node_hello.host = host;
    ev.node_hello.short_host = host;
    ev.node_hello.boot_id = boot;
    ev.node_hello.address = "192.0.2.1";
    feed (s, &ev);
    return ev.node_hello.peer;
}

/* What hkd says of a run that ended so. */
static const struct {
    enum hk_outcome outcome;
    struct hk_script_result script; /* name NULL: no result */
    const char *reason;
} ends[] = {
    { HK_OUTCOME_SUCCESS, { "10-clean", 0, 0, 100, 101 }, "" },
    { HK_OUTCOME_EXIT_CODE, { "10-clean", 1, 0, 100, 101 }, "" },
    { HK_OUTCOME_SIGNAL, { "10-clean", -1, 9, 100, 103 }, "" },
    { HK_OUTCOME_TIMEOUT, { NULL, 0, 0, 0, 0 }, "exceeded 1h" },
    { HK_OUTCOME_KILLED, { NULL, 0, 0, 0, 0 }, "killed by uid 0" },
    { HK_OUTCOME_START_FAILED,
      { NULL, 0, 0, 0, 0 },
      "/etc/flux/system/housekeeping may be written by others" },
};

static struct hk_run run_of (const struct story *s,
                             const struct story_run *run,
                             const char *boot)
{
    struct hk_run out = {
        .alloc = run->alloc,
        .instance = run->instance ? run->instance
                                  : hkc_store_instance (s->store),
        .attempt = run->attempt,
        .jobid = run->jobid,
        .boot_id = boot,
        .invocation = "00112233445566778899aabbccddeeff",
        .unit = "flux-housekeeping-x.service",
        .phase = run->phase,
        .script = run->phase == HK_RUN_ENDED ? "" : "10-clean",
        .outcome = run->outcome,
        .reason = run->blocked ? run->blocked : "",
        .t_start = 1.7e9,
        .t_end = run->phase == HK_RUN_ENDED ? 1.7e9 + 4 : 0,
    };

    for (size_t i = 0; i < sizeof (ends) / sizeof (ends[0]); i++)
        if (run->phase == HK_RUN_ENDED && ends[i].outcome == run->outcome) {
            out.scripts = &ends[i].script;
            out.scripts_count = ends[i].script.name ? 1 : 0;
            out.reason = ends[i].reason;
        }
    return out;
}

static void state_tell (struct story *s, int i, const void *arg)
{
    struct hkc_event ev = { .kind = HKC_EV_NODE_STATE };
    struct story_node *node = &s->nodes[i];
    struct hk_run runs[STORY_RUNS];
    bool closed[STORY_RUNS];
    size_t n = 0;

    (void)arg;
    for (int j = 0; j < node->runs_count; j++) {
        if (!node->runs[j].phase)
            continue;
        closed[n] = !hkc_core_knows (s->core, node->runs[j].alloc);
        runs[n++] = run_of (s, &node->runs[j], node->boot);
    }
    for (size_t j = 0; j < n; j++) {
        char host[16];
        snprintf (host, sizeof (host), "node%d", i);
        closed[j] &= hkc_store_find_run (
            s->store, runs[j].alloc, host, runs[j].attempt);
    }
    ev.node_state.peer = node->peer;
    ev.node_state.boot_id = node->boot;
    ev.node_state.runs = runs;
    ev.node_state.closed = closed;
    ev.node_state.runs_count = n;
    ev.node_state.first = ev.node_state.last = true;
    ev.node_state.foreign = "";
    feed (s, &ev);
}

static void node_up (struct story *s, int i, const void *arg)
{
    s->nodes[i].peer = hello (s, i, s->nodes[i].boot);
    state_tell (s, i, arg);
}

void nodes_up (struct story *s, const char *hosts)
{
    each (s, hosts, node_up, NULL);
    story_turn (s);
}

void nodes_tell (struct story *s, const char *hosts)
{
    each (s, hosts, state_tell, NULL);
    story_turn (s);
}

static void node_gone (struct story *s, int i, const void *arg)
{
    struct hkc_event ev = { .kind = HKC_EV_NODE_GONE };

    (void)arg;
    ev.node.peer = s->nodes[i].peer;
    s->nodes[i].peer = 0;
    feed (s, &ev);
}

void nodes_gone (struct story *s, const char *hosts)
{
    each (s, hosts, node_gone, NULL);
    story_turn (s);
}

static void node_silent (struct story *s, int i, const void *arg)
{
    s->nodes[i].silent = *(const bool *)arg;
}

void nodes_silent (struct story *s, const char *hosts, bool silent)
{
    each (s, hosts, node_silent, &silent);
}

static void node_off (struct story *s, int i, const void *arg)
{
    struct story_node *node = &s->nodes[i];

    node->runs_count = 0;
    snprintf (
        node->boot, sizeof (node->boot), "%016x%016x", 2 + node->boots++, i);
    if (node->peer)
        node_gone (s, i, arg);
}

void nodes_boot (struct story *s, const char *hosts)
{
    each (s, hosts, node_off, NULL);
    later (s, 2 * s->conf->heartbeat_ms);
    nodes_up (s, hosts);
}

uint64_t node_hello (struct story *s, const char *host, const char *boot)
{
    uint64_t peer = hello (s, number_of (host), boot);

    story_turn (s);
    return peer;
}

static struct story_run *run_find (struct story *s, int i, uint64_t jobid)
{
    struct story_node *node = &s->nodes[i];
    struct story_run *run = NULL;

    for (int j = 0; j < node->runs_count; j++)
        if (node->runs[j].jobid == jobid
            && (!run || node->runs[j].attempt > run->attempt))
            run = &node->runs[j];
    if (!run)
        fail_msg ("node%d was not asked to run for job %lu", i, jobid);
    return run;
}

void node_forgets (struct story *s, const char *host, uint64_t jobid)
{
    struct story_node *node = &s->nodes[number_of (host)];
    struct story_run *run = run_find (s, number_of (host), jobid);

    *run = node->runs[--node->runs_count];
}

void node_has (struct story *s, const char *host, uint64_t alloc)
{
    struct story_node *node = &s->nodes[number_of (host)];

    node->runs[node->runs_count++] = (struct story_run){
        .alloc = alloc,
        .jobid = 99,
        .attempt = 1,
        .phase = HK_RUN_RUNNING,
        .instance = "ffffffffffffffffffffffffffffffff",
    };
}

static void report (struct story *s,
                    uint64_t peer,
                    const char *boot,
                    const struct story_run *run)
{
    struct hkc_event ev = { .kind = HKC_EV_NODE_RUN };
    struct hk_run is = run_of (s, run, boot);

    ev.node_run.peer = peer;
    ev.node_run.run = &is;
    feed (s, &ev);
}

void run_report (struct story *s,
                 uint64_t peer,
                 const char *boot,
                 const struct story_run *run)
{
    report (s, peer, boot, run);
    story_turn (s);
}

static void run_now (struct story *s, int i, const void *arg)
{
    struct story_run *run = run_find (s, i, *(const uint64_t *)arg);

    run->phase = HK_RUN_RUNNING;
    run->blocked = NULL;
    report (s, s->nodes[i].peer, s->nodes[i].boot, run);
}

void run_runs (struct story *s, const char *hosts, uint64_t jobid)
{
    each (s, hosts, run_now, &jobid);
    story_turn (s);
}

struct wait {
    uint64_t jobid;
    const char *blocked;
};

static void run_wait (struct story *s, int i, const void *arg)
{
    const struct wait *wait = arg;
    struct story_run *run = run_find (s, i, wait->jobid);

    run->phase = HK_RUN_STARTING;
    run->blocked = wait->blocked;
    report (s, s->nodes[i].peer, s->nodes[i].boot, run);
}

void run_waits (struct story *s,
                const char *hosts,
                uint64_t jobid,
                const char *blocked)
{
    struct wait wait = { jobid, blocked };

    each (s, hosts, run_wait, &wait);
    story_turn (s);
}

struct end {
    uint64_t jobid;
    enum hk_outcome outcome;
};

static void run_end (struct story *s, int i, const void *arg)
{
    const struct end *end = arg;
    struct story_run *run = run_find (s, i, end->jobid);

    run->phase = HK_RUN_ENDED;
    run->outcome = end->outcome;
    run->blocked = NULL;
    if (s->nodes[i].peer)
        report (s, s->nodes[i].peer, s->nodes[i].boot, run);
}

void run_ends (struct story *s,
               const char *hosts,
               uint64_t jobid,
               enum hk_outcome outcome)
{
    struct end end = { jobid, outcome };

    each (s, hosts, run_end, &end);
    story_turn (s);
}

void run_well (struct story *s, const char *hosts, uint64_t jobid)
{
    run_runs (s, hosts, jobid);
    run_ends (s, hosts, jobid, HK_OUTCOME_SUCCESS);
}

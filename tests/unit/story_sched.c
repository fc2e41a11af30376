/* story_sched.c - what happens: the scheduler's side, and an admin's */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/story.h"

static void feed (struct story *s, struct hkc_event *ev)
{
    struct hk_error err = { "" };

    if (story_step (s, ev, NULL, &err) < 0)
        fail_msg ("refused: %s", err.text);
    story_turn (s);
}

void sched_hello (struct story *s,
                  const char *life,
                  bool partial_ok,
                  const char *active)
{
    struct hkc_event ev = { .kind = HKC_EV_SCHED_HELLO };
    struct hk_rankset *ranks = hk_rankset_decode (active, NULL);

    assert_non_null (ranks);
    ev.sched.life = life;
    ev.sched.partial_ok = partial_ok;
    ev.sched.active = ranks;
    ev.sched.jobs = &s->active;
    ev.sched.jobs_count = s->active ? 1 : 0;
    feed (s, &ev);
    s->active = 0;
    hk_rankset_destroy (ranks);
}

void sched_hello_after (struct story *s, const char *life, uint64_t last_free)
{
    struct hkc_event ev = { .kind = HKC_EV_SCHED_HELLO };

    ev.sched.life = life;
    ev.sched.partial_ok = true;
    ev.sched.last_free = last_free;
    feed (s, &ev);
}

/* Hosts nodeN of these ranks, with those cores of each. */
static struct hk_resource *account_of (const char *ranks, const char *cores)
{
    struct hk_error err = { "" };
    struct hk_resource *res;
    char *text;

    if (asprintf (&text,
                  "{\"version\":1,\"execution\":{\"R_lite\":[{\"rank\":\"%s\","
                  "\"children\":{\"core\":\"%s\"}}],\"starttime\":0,"
                  "\"expiration\":0,\"nodelist\":[\"node[%s]\"]}}",
                  ranks,
                  cores,
                  ranks)
        < 0)
        text = NULL;
    assert_non_null (text);
    if (!(res = hk_resource_decode (text, &err)))
        fail_msg ("%s", err.text);
    free (text);
    return res;
}

void sched_online (struct story *s,
                   const char *life,
                   const char *active,
                   const char *account)
{
    struct hkc_event ev = { .kind = HKC_EV_SCHED_READY };
    const char *cores = s->account_cores ? s->account_cores : "0-3";
    struct hk_resource *res = account ? account_of (account, cores) : NULL;
    struct hk_rankset *ranks = hk_rankset_decode (active, NULL);

    ev.sched.life = life;
    ev.sched.account = res;
    ev.sched.active = ranks;
    ev.sched.jobs = &s->active;
    ev.sched.jobs_count = s->active ? 1 : 0;
    feed (s, &ev);
    s->active = 0;
    hk_resource_destroy (res);
    hk_rankset_destroy (ranks);
}

void sched_ready (struct story *s, const char *life, const char *account)
{
    sched_online (s, life, "", account);
}

void sched_gone (struct story *s)
{
    struct hkc_event ev = { .kind = HKC_EV_SCHED_GONE };

    feed (s, &ev);
}

void ranks_are (struct story *s, const char *hosts)
{
    struct hkc_event ev = { .kind = HKC_EV_HOSTS };
    struct hk_hostlist *list = hosts ? hk_hostlist_decode (hosts, NULL) : NULL;

    ev.inventory.hosts = list;
    feed (s, &ev);
    hk_hostlist_destroy (list);
}

void sched_up (struct story *s, const char *life)
{
    sched_hello (s, life, true, "");
    sched_ready (s, life, NULL);
}

struct done {
    enum hkc_event_kind kind;
    enum hkc_drain_result result;
    const char *reason;
};

static void answer_one (struct story *s,
                        const char *host,
                        const struct done *done)
{
    struct story_node *node = &s->nodes[atoi (host + 4)];
    bool undrain = done->kind == HKC_EV_UNDRAIN_DONE;
    struct hkc_event ev = { .kind = done->kind };
    struct hk_error err = { "" };

    ev.done.n = undrain ? node->undrain_n : node->drain_n;
    ev.done.host = host;
    ev.done.result = done->result;
    ev.done.reason = done->reason;
    ev.done.text = "no such file or directory";
    if (ev.done.n == 0)
        fail_msg (
            "%s was not asked to be %sdrained", host, undrain ? "un" : "");
    *(undrain ? &node->undrain_n : &node->drain_n) = 0;
    if (story_step (s, &ev, NULL, &err) < 0)
        fail_msg ("refused: %s", err.text);
}

static void answer_all (struct story *s,
                        const char *hosts,
                        const struct done *done)
{
    struct hk_hostlist *list = hk_hostlist_decode (hosts, NULL);

    assert_non_null (list);
    for (size_t i = 0; i < hk_hostlist_count (list); i++)
        answer_one (s, hk_hostlist_nth (list, i), done);
    hk_hostlist_destroy (list);
    story_turn (s);
}

void drained (struct story *s,
              const char *hosts,
              enum hkc_drain_result result,
              const char *reason)
{
    struct done done = { HKC_EV_DRAIN_DONE, result, reason };

    answer_all (s, hosts, &done);
}

void undrained (struct story *s,
                const char *hosts,
                enum hkc_drain_result result)
{
    struct done done = { HKC_EV_UNDRAIN_DONE, result, NULL };

    answer_all (s, hosts, &done);
}

static void kill_say (struct story *s, struct hkc_event *ev)
{
    struct hkc_answer answer;
    struct hk_error err = { "" };

    ev->kill.signal = 15;
    ev->kill.reason = "it hangs";
    ev->kill.userid = 0;
    if (story_step (s, ev, &answer, &err) < 0)
        fail_msg ("refused: %s", err.text);
    s->results[0] = '\0';
    for (size_t i = 0; i < answer.results_count; i++) {
        size_t n = strlen (s->results);
        snprintf (s->results + n,
                  sizeof (s->results) - n,
                  "%s%s: %s",
                  n ? "; " : "",
                  answer.results[i].host,
                  answer.results[i].text);
    }
    story_turn (s);
}

void kill_runs (struct story *s, uint64_t jobid, const char *hosts)
{
    struct hkc_event ev = { .kind = HKC_EV_KILL };
    struct hk_hostlist *list = hosts ? hk_hostlist_decode (hosts, NULL) : NULL;

    ev.kill.jobid = jobid;
    ev.kill.hosts = list;
    kill_say (s, &ev);
    hk_hostlist_destroy (list);
}

void kill_ranks (struct story *s, uint64_t jobid, const char *ranks)
{
    struct hkc_event ev = { .kind = HKC_EV_KILL };
    struct hk_rankset *set = hk_rankset_decode (ranks, NULL);

    assert_non_null (set);
    ev.kill.jobid = jobid;
    ev.kill.ranks = set;
    kill_say (s, &ev);
    hk_rankset_destroy (set);
}

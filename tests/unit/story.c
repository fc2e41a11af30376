/* story.c - a core, its store and a clock; what went out as lines of text */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <cmocka.h>

#include "coordinator/store/schema.h"
#include "tests/unit/folder.h"
#include "tests/unit/story.h"

struct load {
    struct story *story;
    struct hk_error err;
};

static int load_row (void *arg, const struct hkc_row *row)
{
    struct load *l = arg;

    return hkc_core_load (l->story->core, row, &l->err);
}

static void core_start (struct story *s)
{
    struct load l = { .story = s };
    struct hkc_setup setup = { .conf = s->conf };

    if (!(s->store = hkc_store_open (s->dir, &l.err)))
        fail_msg ("%s", l.err.text);
    setup.instance = hkc_store_instance (s->store);
    setup.life_ends_with_link = s->flux;
    setup.next_pid = hkc_store_next_pid (s->store);
    s->core = hkc_core_create (&setup);
    if (hkc_store_load (s->store, load_row, &l, &l.err) != 0)
        fail_msg ("%s", l.err.text);
    hkc_core_loaded (s->core, s->now_ms);
}

static void core_stop (struct story *s)
{
    hkc_core_destroy (s->core);
    hkc_store_close (s->store);
    s->core = NULL;
    s->store = NULL;
}

int story_set_up (void **state)
{
    struct story *s = calloc (1, sizeof (*s));
    struct hk_error err;

    if (!s || folder_make (s->folder, sizeof (s->folder)) < 0)
        return -1;
    snprintf (s->dir, sizeof (s->dir), "%s/state", s->folder);
    s->conf = hk_conf_load ("/nonexistent/hk.conf", 0, &err);
    s->now_ms = 1000000;
    s->wall = 1.7e9;
    for (int i = 0; i < STORY_HOSTS; i++)
        snprintf (s->nodes[i].boot, HK_ID_BYTES, "%016x%016x", 1, i);
    *state = s;
    if (!s->conf)
        return -1;
    core_start (s);
    return 0;
}

int story_tear_down (void **state)
{
    struct story *s = *state;

    core_stop (s);
    hk_conf_destroy (s->conf);
    hk_conf_destroy (s->old_conf);
    folder_remove (s->folder);
    free (s);
    return 0;
}

void story_flux (struct story *s)
{
    s->flux = true;
    core_stop (s);
    core_start (s);
}

void story_restart (struct story *s)
{
    core_stop (s);
    for (int i = 0; i < STORY_HOSTS; i++)
        s->nodes[i].peer = s->nodes[i].drain_n = s->nodes[i].undrain_n = 0;
    core_start (s);
    story_turn (s);
}

/* A reload, as SIGHUP makes it: a configuration of its own. */
void story_conf (struct story *s, const char *option)
{
    struct hkc_event ev = { .kind = HKC_EV_CONF };
    struct hk_conf *conf = hk_conf_load ("/nonexistent/hk.conf", 0, NULL);
    const struct hk_conf_option *table;
    int count = hk_conf_options (&table);
    struct hk_error err;
    char name[128];
    char *dot, *equal;

    assert_non_null (conf);
    for (int i = 0; i < count; i++) { /* what was set before stays */
        char *old = hk_conf_get (s->conf, table[i].section, table[i].name);
        if (old && *old)
            hk_conf_set (conf, table[i].section, table[i].name, old, NULL);
        free (old);
    }
    snprintf (name, sizeof (name), "%s", option);
    assert_non_null (equal = strchr (name, '='));
    *equal = '\0';
    if ((dot = strchr (name, '.')))
        *dot = '\0';
    if (hk_conf_set (conf,
                     dot ? name : "housekeeping",
                     dot ? dot + 1 : name,
                     equal + 1,
                     &err)
        < 0)
        fail_msg ("%s", err.text);
    ev.conf = conf;
    assert_int_equal (story_step (s, &ev, NULL, &err), 0);
    hk_conf_destroy (s->old_conf);
    s->old_conf = s->conf;
    s->conf = conf;
    story_turn (s);
}

/* ---- a turn ---- */

int story_step (struct story *s,
                struct hkc_event *ev,
                struct hkc_answer *answer,
                struct hk_error *err)
{
    ev->now_ms = s->now_ms;
    ev->wall = s->wall;
    return hkc_core_step (s->core, ev, answer, err);
}

static struct story_line *line (struct story *s,
                                const char *verb,
                                const char *host)
{
    struct story_line *l = &s->lines[s->lines_count++];

    if (s->lines_count > STORY_LINES)
        fail_msg ("more than %d lines went out", STORY_LINES);
    snprintf (l->verb, sizeof (l->verb), "%s", verb);
    snprintf (l->host, sizeof (l->host), "%s", host ? host : "");
    l->rest[0] = '\0';
    return l;
}

static void rest (struct story_line *l, const char *fmt, ...)
    __attribute__ ((format (printf, 2, 3)));
static void rest (struct story_line *l, const char *fmt, ...)
{
    va_list ap;

    va_start (ap, fmt);
    vsnprintf (l->rest, sizeof (l->rest), fmt, ap);
    va_end (ap);
}

static int node_of (const struct story *s, uint64_t peer)
{
    for (int i = 0; i < STORY_HOSTS; i++)
        if (peer && s->nodes[i].peer == peer)
            return i;
    return -1;
}

static const char *host_of (const struct story *s, uint64_t peer)
{
    static char name[16];
    int i = node_of (s, peer);

    if (i < 0)
        return "nobody";
    snprintf (name, sizeof (name), "node%d", i);
    return name;
}

static uint64_t job_of (const struct story *s, uint64_t alloc)
{
    for (int i = 0; i < s->jobs_count; i++)
        if (s->jobs[i].alloc == alloc)
            return s->jobs[i].jobid;
    return 0;
}

static void node_start (struct story *s,
                        uint64_t peer,
                        const struct hk_start *start)
{
    int i = node_of (s, peer);
    struct story_node *node;
    struct story_line *l = line (s, "start", host_of (s, peer));

    rest (
        l, start->attempt > 1 ? "%lu#%d" : "%lu", start->jobid, start->attempt);
    assert_true (i >= 0);
    node = &s->nodes[i];
    assert_string_equal (start->boot_id, node->boot);
    for (int j = 0; j < node->runs_count; j++)
        if (node->runs[j].alloc == start->alloc
            && node->runs[j].attempt == start->attempt)
            return; /* asked for again */
    assert_true (node->runs_count < STORY_RUNS);
    node->runs[node->runs_count++] = (struct story_run){
        .alloc = start->alloc,
        .jobid = start->jobid,
        .attempt = start->attempt,
    };
}

static void node_ack (struct story *s, uint64_t peer, const struct hk_ack *ack)
{
    int i = node_of (s, peer);

    if (s->tells_acks)
        rest (
            line (s, "ack", host_of (s, peer)), "%lu", job_of (s, ack->alloc));
    for (int j = 0; i >= 0 && j < s->nodes[i].runs_count; j++) {
        struct story_run *run = &s->nodes[i].runs[j];
        if (run->alloc == ack->alloc && run->attempt == ack->attempt) {
            assert_int_equal (run->phase, HK_RUN_ENDED);
            *run = s->nodes[i].runs[--s->nodes[i].runs_count];
            return;
        }
    }
}

static void tell (struct story *s, const struct hkc_action *act)
{
    struct hk_resource *R = hk_resource_decode (act->entry.R, NULL);
    char *ranks;

    assert_non_null (R);
    ranks = hk_rankset_encode (hk_resource_ranks (R));
    rest (line (s, "tell", ""),
          act->entry.free ? "%lu %s free %s" : "%lu %s",
          act->entry.jobid,
          ranks,
          act->entry.free);
    free (ranks);
    hk_resource_destroy (R);
}

/* Each number of a request is above all before it. */
static void drain (struct story *s, const struct hkc_action *act)
{
    bool undrain = act->kind == HKC_ACT_UNDRAIN;
    int i = atoi (act->drain.host + 4);
    struct story_node *node = &s->nodes[i];

    rest (line (s, undrain ? "undrain" : "drain", act->drain.host),
          "%s",
          act->drain.reason);
    *(undrain ? &node->undrain_n : &node->drain_n) = act->drain.n;
}

static void carry_out (struct story *s, const struct hkc_action *act)
{
    switch (act->kind) {
    case HKC_ACT_WELCOME:
        if (s->tells_links)
            line (s, "welcome", host_of (s, act->node.peer));
        break;
    case HKC_ACT_REFUSE:
        line (s, "refuse", host_of (s, act->node.peer));
        break;
    case HKC_ACT_CLOSE:
        line (s, "close", host_of (s, act->node.peer));
        break;
    case HKC_ACT_START:
        node_start (s, act->start.peer, &act->start.start);
        break;
    case HKC_ACT_STOP:
        rest (line (s, "stop", host_of (s, act->stop.peer)),
              "%lu %d",
              job_of (s, act->stop.stop.alloc),
              act->stop.stop.signal);
        break;
    case HKC_ACT_ACK:
        node_ack (s, act->ack.peer, &act->ack.ack);
        break;
    case HKC_ACT_HELLO_ENTRY:
        tell (s, act);
        break;
    case HKC_ACT_HELLO_END:
        rest (line (s, act->hello_end.resumed ? "resumed" : "told", ""),
              "%s",
              act->hello_end.life);
        break;
    case HKC_ACT_FREE:
        rest (line (s, "free", ""),
              "%lu %s%s",
              act->free.jobid,
              act->free.ranks,
              act->free.final ? " final" : "");
        break;
    case HKC_ACT_DRAIN:
    case HKC_ACT_UNDRAIN:
        drain (s, act);
        break;
    case HKC_ACT_LOG:
        if (act->log.level <= LOG_ALERT)
            rest (line (s, "alarm", ""), "%s", act->log.text);
        break;
    }
}

static int put_row (void *arg, const struct hkc_row *row)
{
    struct load *l = arg;

    return hkc_store_put (l->story->store, row, &l->err);
}

static void commit (struct story *s)
{
    struct load l = { .story = s };

    if (hkc_store_begin (s->store, &l.err) < 0
        || hkc_core_changes (s->core, put_row, &l) < 0
        || hkc_store_commit (s->store, &l.err) < 0)
        fail_msg ("%s", l.err.text);
    if (hkc_store_refused (s->store) > 0)
        fail_msg ("a row was refused");
}

void story_turn (struct story *s)
{
    struct hkc_event tick = { .kind = HKC_EV_TICK };
    const struct hkc_action *acts;
    size_t count;

    assert_int_equal (story_step (s, &tick, NULL, NULL), 0);
    if (hkc_core_changed (s->core))
        commit (s);
    acts = hkc_core_actions (s->core, &count);
    for (size_t i = 0; i < count; i++)
        carry_out (s, &acts[i]);
    hkc_core_settle (s->core);
    if (hkc_core_deadline (s->core) <= s->now_ms)
        fail_msg ("after its tick the core wants another at once");
}

static void all_alive (struct story *s)
{
    for (int i = 0; i < STORY_HOSTS; i++) {
        struct hkc_event ev = { .kind = HKC_EV_NODE_ALIVE };
        if (!s->nodes[i].peer || s->nodes[i].silent)
            continue;
        ev.node.peer = s->nodes[i].peer;
        assert_int_equal (story_step (s, &ev, NULL, NULL), 0);
    }
}

/* From one deadline or heartbeat to the next. */
void later (struct story *s, int64_t ms)
{
    int64_t end = s->now_ms + ms;
    int64_t beat = s->conf->heartbeat_ms;

    while (s->now_ms < end) {
        int64_t next = hkc_core_deadline (s->core);
        int64_t heart = s->now_ms - s->now_ms % beat + beat;
        if (next > heart)
            next = heart;
        if (next > end)
            next = end;
        s->wall += (double)(next - s->now_ms) / 1e3;
        s->now_ms = next;
        if (next == heart)
            all_alive (s);
        story_turn (s);
    }
}

void story_event (struct story *s, enum hkc_event_kind kind)
{
    struct hkc_event ev = { .kind = kind };
    struct hk_error err;

    if (kind == HKC_EV_STORE_BACK)
        ev.why = "a node has seen more";
    if (story_step (s, &ev, NULL, &err) < 0)
        fail_msg ("%s", err.text);
    story_turn (s);
}

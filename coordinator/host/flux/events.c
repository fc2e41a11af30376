/* events.c - what the engine says, carried to the reactor */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <stdlib.h>
#include <string.h>
#include "coordinator/host/flux/flux.h"

/* Filled in the engine's thread, where what it is told is borrowed. */
struct news {
    struct hkc_task task;
    enum hkc_action_kind kind;
    uint64_t n; /* also tag */
    int rc;
    uint64_t id;
    int64_t priority;
    uint32_t userid;
    double t_submit;
    bool final;
    char *life, *text, *more;
    json_t *json;
};

static void news_free (struct hkc_task *task)
{
    struct news *news = (struct news *)task;

    free (news->life);
    free (news->text);
    free (news->more);
    json_decref (news->json);
    free (news);
}

static struct news *news_create (void (*done_f) (struct hkc_flux *,
                                                 struct hkc_task *))
{
    struct news *news = calloc (1, sizeof (*news));

    if (!news)
        abort (); /* what is on disk must be said; a restart says it again */
    news->task.done_f = done_f;
    news->task.free_f = news_free;
    return news;
}

static char *copy (const char *text)
{
    char *s = text ? strdup (text) : NULL;

    if (text && !s)
        abort ();
    return s;
}

static void on_action (struct hkc_flux *x, struct hkc_task *task)
{
    struct news *n = (struct news *)task;

    switch (n->kind) {
    case HKC_ACT_HELLO_ENTRY:
        hkc_sched_entry (
            x, n->n, n->id, n->priority, n->userid, n->t_submit, n->text);
        break;
    case HKC_ACT_HELLO_END:
        hkc_sched_told (x, n->n);
        break;
    case HKC_ACT_FREE:
        hkc_sched_free (x, n->n, n->life, n->id, n->json, n->final);
        break;
    case HKC_ACT_DRAIN:
    case HKC_ACT_UNDRAIN:
        hkc_drain_ask (
            x, n->kind == HKC_ACT_UNDRAIN, n->n, n->life, n->text, n->more);
        break;
    default:
        break;
    }
}

static void action (void *arg, const struct hkc_action *act)
{
    struct news *n = news_create (on_action);

    n->kind = act->kind;
    switch (act->kind) {
    case HKC_ACT_HELLO_ENTRY:
        n->n = act->entry.tag;
        n->id = act->entry.jobid;
        n->priority = act->entry.priority;
        n->userid = act->entry.userid;
        n->t_submit = act->entry.t_submit;
        n->text = copy (act->entry.free);
        break;
    case HKC_ACT_HELLO_END:
        n->n = act->hello_end.tag;
        break;
    case HKC_ACT_FREE:
        n->n = act->free.n;
        n->life = copy (act->free.life);
        n->id = act->free.jobid;
        n->final = act->free.final;
        if (!(n->json = json_loads (act->free.R, 0, NULL)))
            abort ();
        break;
    case HKC_ACT_DRAIN:
    case HKC_ACT_UNDRAIN:
        n->n = act->drain.n;
        n->life = copy (act->drain.life ? act->drain.life : "");
        n->text = copy (act->drain.host);
        n->more = copy (act->drain.reason);
        break;
    default:
        news_free (&n->task);
        return;
    }
    hkc_inbox_put (arg, &n->task);
}

static void on_answered (struct hkc_flux *x, struct hkc_task *task)
{
    struct news *n = (struct news *)task;

    if (n->n & HKC_TAG_KILL)
        hkc_kill_done (x, n->n, n->rc ? 0 : (size_t)n->id);
    else if (n->n)
        hkc_job_answered (x, n->n, n->rc, n->id, n->text);
}

static void answered (void *arg,
                      uint64_t tag,
                      int rc,
                      const struct hkc_answer *answer,
                      const struct hk_error *err)
{
    struct news *n = news_create (on_answered);

    n->n = tag;
    n->rc = rc;
    if (rc == 0 && tag & HKC_TAG_KILL)
        n->id = answer->results_count;
    else if (rc == 0 && strcmp (answer->state, "done") != 0)
        n->id = answer->alloc;
    n->text = copy (rc ? err->text : "");
    hkc_inbox_put (arg, &n->task);
}

static void on_list (struct hkc_flux *x, struct hkc_task *task)
{
    struct news *n = (struct news *)task;

    hkc_status_list (x, n->n, n->json);
}

static void list (void *arg, uint64_t tag, json_t *rows)
{
    struct news *n = news_create (on_list);

    n->n = tag;
    n->json = rows;
    hkc_inbox_put (arg, &n->task);
}

void hkc_flux_ops (struct hkc_flux *x, struct hkc_host_ops *out)
{
    *out = (struct hkc_host_ops){
        .arg = x,
        .life_ends_with_link = true,
        .link_may_wait = true,
        .action = action,
        .answered = answered,
        .list = list,
    };
}

/* view.c - what a person is shown of the core */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <string.h>
#include "coordinator/core/internal.h"

static bool is_queued (const struct hkc_core *core, const struct hkc_part *part)
{
    const struct hk_policy *policy = hk_conf_policy (core->conf,
                                                     part->host->shown);

    if (part->phase != HKC_WAITING || part->start_sent
        || policy->per_node != HK_PER_NODE_SERIAL)
        return false;
    for (const struct hkc_stray *s = part->host->strays; s; s = s->next)
        if (!s->ended)
            return true;
    for (const struct hkc_part *p = part->host->parts; p && p != part;
         p = p->next_on_host)
        if (p->phase < HKC_ENDED)
            return true;
    return false;
}

const char *hkc_part_marks (struct hkc_core *core, const struct hkc_part *part)
{
    const struct hkc_host *host = part->host;

    if (part->conflict || host->conflict)
        return "conflict";
    if (part->phase < HKC_ENDED) {
        if (host->lost)
            return "lost";
        if (host->t_seen == 0)
            return "no-hkd";
        if (part->blocked && host->heard)
            return "blocked";
        if (is_queued (core, part))
            return "queued";
    }
    if (part->phase == HKC_ENDED && hk_outcome_is_failure (part->outcome)
        && hk_conf_policy (core->conf, host->shown)->on_failure
               == HK_ON_FAILURE_HOLD)
        return "hold";
    if (part->misplaced)
        return "misplaced";
    return part->alloc->purged ? "purged" : "";
}

enum { SILENT_HEARTBEATS = 3 };

/* The session of a machine that lost its power has no end of its own. */
static bool is_heard (const struct hkc_core *core, const struct hkc_host *host)
{
    return host->peer
           && core->now_ms - host->contact_ms
                  < SILENT_HEARTBEATS * core->conf->heartbeat_ms;
}

static void explain (const struct hkc_core *core,
                     const struct hkc_part *part,
                     struct hkc_view *v)
{
    const struct hkc_host *host = part->host;

    v->act = "";
    if (core->recover) {
        v->reason = core->recover;
        v->act = "hkctl recover";
    } else if (!part->alloc->begun)
        v->reason = part->alloc->hold_begin ? "the job manager still owns it"
                                            : "begins after the scheduler is "
                                              "ready";
    else if (part->conflict)
        v->reason = "an active job holds the rank", v->act = "end that job";
    else if (host->conflict)
        v->reason = "two machines say they are this host",
        v->act = "stop one of them";
    else if (part->phase < HKC_ENDED && host->lost)
        v->reason = "no contact", v->act = "repair or boot the node";
    else if (part->phase < HKC_ENDED && core->silence_alarm
             && hkc_is_silent (core, host))
        v->reason = "fell silent together with others",
        v->act = "look at the head and its network";
    else if (part->phase < HKC_ENDED && host->t_seen == 0)
        v->reason = "hkd was never seen there",
        v->act = "install and start flux-hkd";
    else if (part->phase == HKC_WAITING && is_queued (core, part))
        v->reason = "another run goes first on this node";
    else if (part->phase == HKC_WAITING && !is_heard (core, host))
        v->reason = "not connected";
    else if (!strcmp (v->marks, "blocked"))
        v->reason = part->blocked, v->act = "reboot the node";
    else if (!strcmp (v->marks, "hold"))
        v->act = "repair the node, then set on-failure to drain or release";
    else if (part->phase >= HKC_ENDED && !core->manager)
        v->reason = "no job manager has a session",
        v->act = "connect the job manager";
    else if (part->phase == HKC_ENDED && host->failed)
        v->reason = host->failed, v->act = "drain the node by hand";
    else if (part->phase == HKC_DUE && core->life_state != HKC_LIFE_READY)
        v->reason = "no scheduler is ready";
    else if (part->phase == HKC_DUE && !v->in_known && !core->account_spoken)
        v->reason = "the scheduler said nothing of it",
        v->act = "reload the scheduler";
    else if (part->misplaced && part->phase < HKC_ENDED)
        v->reason = "its rank is another host now: drained by name while it "
                    "is held",
        v->act = "wait until it is done, or hkctl kill";
    else if (part->alloc->purged && part->phase < HKC_ENDED)
        v->reason = "its job is purged: drained while it is held, since no "
                    "scheduler is told of it",
        v->act = "wait until it is done, or hkctl kill";
}

int hkc_core_each_part (struct hkc_core *core,
                        uint64_t jobid,
                        hkc_view_f fn,
                        void *arg)
{
    int rc = 0;

    for (struct hkc_alloc *a = core->first; a && rc == 0; a = a->next) {
        if (jobid && a->jobid != jobid)
            continue;
        for (uint32_t i = 0; i < a->parts_count && rc == 0; i++) {
            const struct hkc_part *p = &a->parts[i];
            if (p->phase == HKC_DONE)
                continue;
            struct hkc_view v = {
                .alloc = a->id,
                .jobid = a->jobid,
                .userid = a->userid,
                .begun = a->begun,
                .host = p->host->shown,
                .rank = hk_rankset_first (p->ranks),
                .phase = p->phase,
                .attempt = p->attempt,
                .outcome = p->outcome,
                .script = p->script ? p->script : "",
                .t_since = p->t_since,
                .marks = hkc_part_marks (core, p),
                .reason = p->reason ? p->reason : "",
                .in_known = hk_rankset_contains (a->known, p->ranks),
                .ranks = p->ranks,
            };
            explain (core, p, &v);
            rc = fn (arg, &v);
        }
    }
    return rc;
}

int hkc_core_each_alloc (const struct hkc_core *core,
                         hkc_alloc_view_f fn,
                         void *arg)
{
    int rc = 0;

    for (const struct hkc_alloc *a = core->first; a && rc == 0; a = a->next) {
        struct hkc_alloc_view v = {
            .alloc = a->id,
            .jobid = a->jobid,
            .userid = a->userid,
            .t_submit = a->t_submit,
            .t_end = a->t_end,
            .begun = a->begun,
            .R = a->R,
            .ranks = hk_resource_ranks (a->res),
            .done = a->done,
        };
        rc = fn (arg, &v);
    }
    return rc;
}

int hkc_core_each_host (struct hkc_core *core, hkc_host_view_f fn, void *arg)
{
    int rc = 0;

    for (struct hkc_host *h = zhashx_first (core->hosts); h && rc == 0;
         h = zhashx_next (core->hosts)) {
        struct hkc_host_view v = {
            .host = h->shown,
            .boot_id = h->boot_id,
            .connected = is_heard (core, h),
            .state_heard = h->heard,
            .peer = h->peer,
            .contact_ms = h->contact_ms,
            .drain = h->causes ? h->causes->reason : "",
            .drain_confirmed = h->causes && h->causes->confirmed,
            .marks = h->conflict ? "conflict"
                     : h->lost   ? "lost"
                                 : "",
            .foreign = h->foreign ? h->foreign : "",
        };
        rc = fn (arg, &v);
    }
    return rc;
}

void hkc_core_totals (const struct hkc_core *core, struct hkc_totals *out)
{
    out->allocs = zhashx_size (core->allocs);
    out->parts_held = core->held_count;
    out->hosts = zhashx_size (core->hosts);
    out->connected = 0;
    for (const struct hkc_host *h = zhashx_first (core->peers); h;
         h = zhashx_next (core->peers))
        out->connected += is_heard (core, h);
    out->life_state = core->life_state;
    out->life = core->life ? core->life : "";
    out->recover = core->recover ? core->recover : "";
    out->manager = core->manager;
    out->free_n = core->free_n;
}

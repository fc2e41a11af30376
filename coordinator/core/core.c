/* core.c - the coordinator's decisions: no I/O, no clock, no threads */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include "coordinator/core/idhash.h"
#include "coordinator/core/internal.h"

const char *hkc_phase_name (enum hkc_phase phase)
{
    static const char *const names[] = {
        "", "waiting", "running", "stopping", "ended", "due", "done",
    };

    return names[phase];
}

struct hkc_core *hkc_core_create (const struct hkc_setup *setup)
{
    struct hkc_core *core = hkc_zalloc (sizeof (*core));

    core->conf = setup->conf;
    snprintf (core->instance, sizeof (core->instance), "%s", setup->instance);
    core->life_ends_with_link = setup->life_ends_with_link;
    core->next_pid = setup->next_pid ? setup->next_pid : 1;
    core->hosts = zhashx_new ();
    core->aliases = zhashx_new ();
    core->allocs = hkc_idhash_create ();
    core->jobs = hkc_idhash_create ();
    core->peers = hkc_idhash_create ();
    core->frees = zlistx_new ();
    core->active = zhashx_new ();
    return core;
}

void hkc_core_destroy (struct hkc_core *core)
{
    struct hkc_row_free *row;

    if (!core)
        return;
    hkc_core_settle (core);
    while (core->first) {
        struct hkc_alloc *next = core->first->next;
        hkc_alloc_free (core->first);
        core->first = next;
    }
    for (struct hkc_host *h = zhashx_first (core->hosts); h;
         h = zhashx_next (core->hosts))
        hkc_host_free (h);
    while ((row = zlistx_detach (core->frees, NULL)))
        hkc_free_row_destroy (row);
    zlistx_destroy (&core->frees);
    zhashx_destroy (&core->active);
    zhashx_destroy (&core->hosts);
    zhashx_destroy (&core->aliases);
    zhashx_destroy (&core->allocs);
    zhashx_destroy (&core->jobs);
    zhashx_destroy (&core->peers);
    hk_hostlist_destroy (core->inventory);
    free (core->life);
    free (core->recover);
    free (core->actions);
    free (core->rows);
    free (core->dirty_parts);
    free (core->arena);
    free (core);
}

static void tick (struct hkc_core *core)
{
    hkc_silence_tick (core);
    hkc_sched_tick (core);
    hkc_release_tick (core);
    hkc_drain_tick (core);
}

static int alive (struct hkc_core *core, uint64_t peer)
{
    struct hkc_host *host = hkc_host_of_peer (core, peer);

    if (!host)
        return hkc_node_unknown (core, peer);
    hkc_node_heard (core, host);
    return 0;
}

static int recovered (struct hkc_core *core, const struct hkc_event *ev)
{
    struct hkc_row *row = hkc_put (core, HKC_ROW_AUDIT);

    row->audit.t = ev->wall;
    row->audit.userid = ev->userid;
    row->audit.what = "recover";
    row->audit.about = core->recover ? hkc_arena_dup (core, core->recover)
                                     : "there was nothing to recover";
    row->audit.reason = "";
    if (!core->recover)
        return 0;
    hkc_strset (&core->recover, NULL);
    core->sched_dirty = true;
    hkc_say (
        core, LOG_NOTICE, 0, NULL, "recovered by uid %u, going on", ev->userid);
    for (struct hkc_alloc *a = core->first; a; a = a->next)
        hkc_release_sweep (core, a);
    for (struct hkc_host *h = zhashx_first (core->hosts); h;
         h = zhashx_next (core->hosts))
        hkc_drain_review (core, h);
    return 0;
}

void hkc_core_covers_anew (struct hkc_core *core)
{
    for (struct hkc_alloc *a = core->first; a; a = a->next)
        hkc_skip_uncovered (core, a);
}

int hkc_core_step (struct hkc_core *core,
                   const struct hkc_event *ev,
                   struct hkc_answer *answer,
                   struct hk_error *err)
{
    struct hkc_answer none;

    if (!answer)
        answer = &none;
    memset (answer, 0, sizeof (*answer));
    core->now_ms = ev->now_ms;
    core->wall = ev->wall;
    switch (ev->kind) {
    case HKC_EV_TICK:
        tick (core);
        return 0;
    case HKC_EV_JOB_END:
        return hkc_job_end (core, ev, answer, err);
    case HKC_EV_JOB_END_AGAIN:
        hkc_job_end_again (core, ev->job_end.jobid, ev->job_end.res);
        return 0;
    case HKC_EV_JOB_BEGIN:
        return hkc_job_begin (core, ev->job.alloc, err);
    case HKC_EV_JOB_DROP:
        return hkc_job_drop (core, ev->job.alloc, err);
    case HKC_EV_JOB_PURGED:
        return hkc_job_purged (core, ev);
    case HKC_EV_HOSTS:
        return hkc_inventory (core, ev->inventory.hosts, err);
    case HKC_EV_NODE_HELLO:
        return hkc_node_hello (core, ev, err);
    case HKC_EV_NODE_STATE:
        return hkc_node_state (core, ev, err);
    case HKC_EV_NODE_RUN:
        return hkc_node_run (core, ev);
    case HKC_EV_NODE_ALIVE:
        return alive (core, ev->node.peer);
    case HKC_EV_NODE_GONE:
        return hkc_node_gone (core, ev->node.peer);
    case HKC_EV_SCHED_HELLO:
        return hkc_sched_hello (core, ev, err);
    case HKC_EV_SCHED_READY:
        return hkc_sched_ready (core, ev, err);
    case HKC_EV_SCHED_GONE:
        return hkc_sched_gone (core);
    case HKC_EV_FREE_OK:
        return hkc_free_ok (core, ev->done.n);
    case HKC_EV_DRAIN_DONE:
        return hkc_drain_done (core, ev);
    case HKC_EV_UNDRAIN_DONE:
        return hkc_undrain_done (core, ev);
    case HKC_EV_KILL:
        return hkc_kill (core, ev, answer);
    case HKC_EV_CONF:
        core->conf = ev->conf;
        hkc_release_all (core);
        hkc_core_covers_anew (core);
        return 0;
    case HKC_EV_STORE_BACK:
        hkc_recover_set (core, ev->why);
        return 0;
    case HKC_EV_RECOVER:
        return recovered (core, ev);
    case HKC_EV_DEAF_ENDS:
        core->ready_ms = ev->now_ms;
        return 0;
    }
    return hk_error_set (err, EINVAL, "unknown event %d", ev->kind);
}

int64_t hkc_core_deadline (const struct hkc_core *core)
{
    int64_t when = hkc_release_deadline (core);
    int64_t other = hkc_drain_deadline (core);

    if (other < when)
        when = other;
    other = hkc_silence_deadline (core);
    return other < when ? other : when;
}

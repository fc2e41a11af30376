/* query.c - flux jobtap query */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "coordinator/host/flux/flux.h"

static const char *sched_name (enum hkc_sched_state state)
{
    switch (state) {
    case HKC_SCHED_HELLO:
        return "hello";
    case HKC_SCHED_ANSWERED:
        return "answered";
    case HKC_SCHED_ACCOUNT:
        return "account";
    case HKC_SCHED_BLIND:
        return "blind";
    case HKC_SCHED_READY:
        return "ready";
    default:
        return "none";
    }
}

static json_t *query (struct hkc_flux *x)
{
    int held = 0, recorded = 0, flagged = 0;

    for (struct hkc_job *job = zhashx_first (x->jobs); job;
         job = zhashx_next (x->jobs)) {
        held += job->state == HKC_JOB_HELD || job->state == HKC_JOB_SENT;
        recorded += job->state == HKC_JOB_RECORDED;
        flagged += job->state == HKC_JOB_FLAGGED;
    }
    return json_pack (
        "{s:s s:b s:s s:s s:s s:{s:i s:i s:i s:i} s:I s:{s:f s:s}}",
        "version",
        HK_VERSION,
        "open",
        x->engine != NULL,
        "trouble",
        x->trouble,
        "scheduler",
        sched_name (x->sched.state),
        "life",
        x->sched.life,
        "jobs",
        "active",
        (int)zhashx_size (x->jobs),
        "held",
        held,
        "recorded",
        recorded,
        "flagged",
        flagged,
        "frees",
        (json_int_t)x->frees_sent,
        "reactor",
        "longest_ms",
        (double)x->longest_ns / 1e6,
        "in",
        x->longest_what ? x->longest_what : "");
}

static int on_query (flux_plugin_t *p,
                     const char *topic,
                     flux_plugin_arg_t *args,
                     void *arg)
{
    json_t *o = query (arg);
    int rc;

    (void)p;
    (void)topic;
    rc = flux_plugin_arg_pack (
        args, FLUX_PLUGIN_ARG_OUT, "{s:O}", "hk-coordinator", o);
    json_decref (o);
    return rc;
}

int hkc_query_open (struct hkc_flux *x)
{
    return flux_plugin_add_handler (x->p, "plugin.query", on_query, x);
}

/* status.c - our holds in what flux resource and flux housekeeping show */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "proto/jobid.h"
#include "coordinator/core/idhash.h"
#include "coordinator/host/flux/flux.h"
#include "coordinator/host/flux/override.h"

/* A request is asked of job-manager itself, by a request of ours that its own
 * handler gets, and of the engine; when both have answered, the clerk puts the
 * two together.
 */
enum { ANSWER_S = 60 };

static const char own_key[] = "hk-coordinator-own";

struct ask {
    uint64_t tag;
    const flux_msg_t *msg;
    bool is_stats;
    char *own; /* job-manager's answer, as text */
    json_t *rows;
};

struct merge {
    struct hkc_task task;
    uint64_t tag;
    char *own;
    json_t *rows;
    char **stale, **between; /* R's */
    size_t stale_count, between_count;
    json_t *result;
    char error[HKC_TROUBLE_BYTES];
};

static void ask_free (void **item)
{
    struct ask *ask = *item;

    if (ask) {
        flux_msg_decref (ask->msg);
        free (ask->own);
        json_decref (ask->rows);
        free (ask);
    }
    *item = NULL;
}

static struct ask *ask_find (struct hkc_flux *x, uint64_t tag)
{
    return zhashx_lookup (x->asks, &tag);
}

static void ask_end (struct hkc_flux *x, struct ask *ask)
{
    zhashx_delete (x->asks, &ask->tag);
}

static void respond_error (struct hkc_flux *x,
                           struct ask *ask,
                           int errnum,
                           const char *text)
{
    if (flux_respond_error (x->h, ask->msg, errnum, text) < 0)
        flux_log_error (x->h, "hk: respond");
    ask_end (x, ask);
}

/* ---- R's that job-manager may still count, or does not count yet ---- */

void hkc_status_stale (struct hkc_flux *x, const char *R)
{
    zlistx_add_end (x->stale, (void *)R);
}

void hkc_status_fresh (struct hkc_flux *x)
{
    zlistx_purge (x->stale);
}

static void *dup_text (const void *item)
{
    return strdup (item);
}

static void free_text (void **item)
{
    free (*item);
    *item = NULL;
}

static void lists_take (struct hkc_flux *x, struct merge *m)
{
    m->stale = calloc (zlistx_size (x->stale) + 1, sizeof (*m->stale));
    m->between = calloc (zhashx_size (x->jobs) + 1, sizeof (*m->between));
    if (!m->stale || !m->between)
        abort ();
    for (const char *R = zlistx_first (x->stale); R; R = zlistx_next (x->stale))
        m->stale[m->stale_count++] = strdup (R);
    for (struct hkc_job *job = zhashx_first (x->jobs); job;
         job = zhashx_next (x->jobs))
        if (hkc_job_is_between (job))
            m->between[m->between_count++] = strdup (job->R);
}

/* ---- the clerk ---- */

static void merge_free (struct hkc_task *task)
{
    struct merge *m = (struct merge *)task;

    for (size_t i = 0; i < m->stale_count; i++)
        free (m->stale[i]);
    for (size_t i = 0; i < m->between_count; i++)
        free (m->between[i]);
    free (m->stale);
    free (m->between);
    free (m->own);
    json_decref (m->rows);
    json_decref (m->result);
    free (m);
}

static void text_count (struct hkc_count *count, const char *text, bool add)
{
    json_t *R = text ? json_loads (text, 0, NULL) : NULL;
    struct hk_error err;

    if (R && add)
        hkc_count_add (count, R, NULL, &err);
    else if (R)
        hkc_count_remove (count, R, &err);
    json_decref (R);
}

static void row_count (struct merge *m, struct hkc_count *count, json_t *row)
{
    const char *pending;
    struct hk_rankset *ranks;
    struct hk_error err;
    json_t *R;

    if (json_unpack (row, "{s:s s:o}", "pending", &pending, "R", &R)
        || !(ranks = hk_rankset_decode (pending, &err)))
        return;
    /* one bad record must not break the answer for everybody */
    if (hkc_count_add (count, R, ranks, &err) < 0)
        snprintf (m->error, sizeof (m->error), "%s", err.text);
    hk_rankset_destroy (ranks);
}

static void resource_work (struct hkc_flux *x, struct hkc_task *task)
{
    struct merge *m = (struct merge *)task;
    struct hkc_count *count = hkc_count_create ();
    json_t *own = json_loads (m->own, 0, NULL), *R = NULL, *row;
    struct hk_error err = { "out of memory" };
    size_t i;

    (void)x;
    if (!count || json_unpack (own, "{s:o}", "allocated", &R)
        || hkc_count_add (count, R, NULL, &err) < 0) {
        /* what is not understood is given on as it came */
        snprintf (m->error, sizeof (m->error), "%s", err.text);
        m->result = json_incref (own);
        goto out;
    }
    for (i = 0; i < m->stale_count; i++)
        text_count (count, m->stale[i], false);
    for (i = 0; i < m->between_count; i++)
        text_count (count, m->between[i], true);
    json_array_foreach (m->rows, i, row)
    {
        row_count (m, count, row);
    }
    m->result = json_pack ("{s:o}", "allocated", hkc_count_R (count));
out:
    json_decref (own);
    hkc_count_destroy (count);
}

static void stats_work (struct hkc_flux *x, struct hkc_task *task)
{
    struct merge *m = (struct merge *)task;
    json_t *running = NULL, *row;
    size_t i;

    (void)x;
    m->result = json_loads (m->own, 0, NULL);
    json_unpack (m->result, "{s:{s:o}}", "housekeeping", "running", &running);
    json_array_foreach (m->rows, i, row)
    {
        const char *pending;
        char id[HK_JOBID_TEXT_BYTES];
        json_int_t jobid;
        double t_start;
        if (json_unpack (row,
                         "{s:I s:f s:s}",
                         "jobid",
                         &jobid,
                         "t_start",
                         &t_start,
                         "pending",
                         &pending))
            continue;
        hk_jobid_encode ((uint64_t)jobid, HK_JOBID_F58, id);
        json_object_set_new (running,
                             id,
                             json_pack ("{s:f s:s s:s}",
                                        "t_start",
                                        t_start,
                                        "pending",
                                        pending,
                                        "allocated", /* what is freed left it */
                                        pending));
    }
}

static void merge_done (struct hkc_flux *x, struct hkc_task *task)
{
    struct merge *m = (struct merge *)task;
    struct ask *ask = ask_find (x, m->tag);

    if (m->error[0])
        flux_log (x->h, LOG_ERR, "hk: status: %s", m->error);
    if (!ask)
        return;
    if (!m->result)
        respond_error (x, ask, ENOMEM, NULL);
    else {
        if (flux_respond_pack (x->h, ask->msg, "O", m->result) < 0)
            flux_log_error (x->h, "hk: respond");
        ask_end (x, ask);
    }
}

/* ---- the reactor ---- */

static void both (struct hkc_flux *x, struct ask *ask)
{
    struct merge *m;

    if (!ask->own || !ask->rows)
        return;
    if (!(m = calloc (1, sizeof (*m)))) {
        respond_error (x, ask, ENOMEM, NULL);
        return;
    }
    m->task.work_f = ask->is_stats ? stats_work : resource_work;
    m->task.done_f = merge_done;
    m->task.free_f = merge_free;
    m->tag = ask->tag;
    m->own = ask->own;
    m->rows = ask->rows;
    ask->own = NULL;
    ask->rows = NULL;
    lists_take (x, m);
    hkc_clerk_put (x, &m->task);
}

void hkc_status_list (struct hkc_flux *x, uint64_t tag, json_t *rows)
{
    struct ask *ask = ask_find (x, tag);

    if (!ask)
        return;
    ask->rows = json_incref (rows);
    both (x, ask);
}

static void on_own (flux_future_t *f, void *arg)
{
    struct hkc_flux *x = arg;
    struct ask *ask = ask_find (x, hkc_flux_label_of (f));
    const char *text;

    if (ask && flux_rpc_get (f, &text) == 0 && text
        && (ask->own = strdup (text)))
        both (x, ask);
    else if (ask)
        respond_error (x, ask, errno, future_strerror (f, errno));
    hkc_flux_done (x, f);
}

static bool is_own (const flux_msg_t *msg)
{
    int value;

    return flux_msg_unpack (msg, "{s:i}", own_key, &value) == 0;
}

static void ask_start (struct hkc_flux *x,
                       const flux_msg_t *msg,
                       const char *topic,
                       bool is_stats)
{
    struct ask *ask = calloc (1, sizeof (*ask));
    flux_future_t *f = NULL;

    if (!ask) {
        flux_respond_error (x->h, msg, ENOMEM, NULL);
        return;
    }
    ask->tag = ++x->last_tag;
    ask->msg = flux_msg_incref (msg);
    ask->is_stats = is_stats;
    zhashx_insert (x->asks, &ask->tag, ask);
    if (!(f = flux_rpc_pack (
              x->h, topic, FLUX_NODEID_ANY, 0, "{s:i}", own_key, 1))
        || hkc_flux_label (f, ask->tag) < 0
        || hkc_flux_then (x, f, ANSWER_S, on_own, x) < 0) {
        respond_error (x, ask, errno, NULL);
        return;
    }
    if (hkc_engine_ask_list (x->engine, ask->tag) < 0)
        respond_error (x, ask, errno, NULL);
}

void hkc_status_resource (flux_t *h,
                          flux_msg_handler_t *mh,
                          const flux_msg_t *msg,
                          void *arg)
{
    struct hkc_flux *x = arg;

    (void)h;
    (void)mh;
    if (hkc_is_probe (x, msg))
        return;
    if (is_own (msg) || !x->engine)
        hkc_pass_on (x, msg);
    else
        ask_start (x, msg, "job-manager.resource-status", false);
}

/* What job-manager would refuse to a guest it must refuse here, too: our own
 * request has the owner's rights.
 */
static bool is_refused (struct hkc_flux *x, const flux_msg_t *msg)
{
    const flux_conf_t *conf = flux_get_conf (x->h);
    struct flux_msg_cred cred;
    int is_private = 0;

    if (flux_msg_get_cred (msg, &cred) < 0)
        return true;
    if (cred.rolemask & FLUX_ROLE_OWNER)
        return false;
    return flux_conf_unpack (
               conf, NULL, "{s?{s?b}}", "access", "private-mode", &is_private)
               < 0
           || is_private;
}

void hkc_status_stats (flux_t *h,
                       flux_msg_handler_t *mh,
                       const flux_msg_t *msg,
                       void *arg)
{
    struct hkc_flux *x = arg;

    (void)h;
    (void)mh;
    if (hkc_is_probe (x, msg))
        return;
    if (is_own (msg) || !x->engine || is_refused (x, msg))
        hkc_pass_on (x, msg);
    else
        ask_start (x, msg, "job-manager.stats-get", true);
}

int hkc_status_open (struct hkc_flux *x)
{
    x->asks = hkc_idhash_create ();
    x->stale = zlistx_new ();
    if (!x->asks || !x->stale)
        return -1;
    zhashx_set_destructor (x->asks, ask_free);
    zlistx_set_duplicator (x->stale, dup_text);
    zlistx_set_destructor (x->stale, free_text);
    return 0;
}

void hkc_status_close (struct hkc_flux *x)
{
    zhashx_destroy (&x->asks);
    zlistx_destroy (&x->stale);
}

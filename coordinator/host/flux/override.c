/* override.c - job-manager's message handlers, and ours before them */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <string.h>
#include "coordinator/host/flux/flux.h"
#include "coordinator/host/flux/override.h"

/* Of two handlers for one exact topic the later one is called
 * (flux_msg_handler_create(3)).  To pass a message on, ours is destroyed and
 * two messages are put at the head of the queue: the message, which the other
 * then gets, and behind it one of our own, whose handler registers ours anew.
 */
static const char again_topic[] = "job-manager.hk-coordinator-again";
static const char probe_key[] = "hk-coordinator-probe";

enum { PROBE_S = 10 };

static struct hkc_override overrides[] = {
    { .topic = "job-manager.sched-hello", .cb = hkc_on_hello },
    { .topic = "job-manager.sched-ready", .cb = hkc_on_ready },
    { .topic = "job-manager.disconnect", .cb = hkc_on_disconnect },
    { .topic = "job-manager.resource-status", .cb = hkc_status_resource },
    { .topic = "job-manager.stats-get",
      .rolemask = FLUX_ROLE_USER,
      .cb = hkc_status_stats },
    { .topic = "job-manager.housekeeping-kill", .cb = hkc_kill_asked },
};

static flux_msg_handler_t *again;

enum { COUNT = sizeof (overrides) / sizeof (overrides[0]) };

static flux_msg_handler_t *handle (struct hkc_flux *x,
                                   const char *topic,
                                   uint32_t rolemask,
                                   flux_msg_handler_f cb)
{
    struct flux_match match = FLUX_MATCH_REQUEST;
    flux_msg_handler_t *mh;

    match.topic_glob = (char *)topic;
    if (!(mh = flux_msg_handler_create (x->h, match, cb, x)))
        return NULL;
    if (rolemask)
        flux_msg_handler_allow_rolemask (mh, rolemask);
    flux_msg_handler_start (mh);
    return mh;
}

static void on_message (flux_t *h,
                        flux_msg_handler_t *mh,
                        const flux_msg_t *msg,
                        void *arg)
{
    int64_t entered = hkc_flux_enter ();
    const char *topic = "";

    flux_msg_get_topic (msg, &topic);
    for (int i = 0; i < COUNT; i++)
        if (!strcmp (overrides[i].topic, topic)) {
            overrides[i].cb (h, mh, msg, arg);
            hkc_flux_leave (arg, entered, overrides[i].topic);
            return;
        }
}

static int take (struct hkc_flux *x, struct hkc_override *o)
{
    if (!o->mh && !(o->mh = handle (x, o->topic, o->rolemask, on_message))) {
        hkc_flux_trouble (
            x, "cannot take over %s: %s", o->topic, strerror (errno));
        return -1;
    }
    return 0;
}

/* Whoever sends it from outside does no harm: what is ours stays ours. */
static void on_again (flux_t *h,
                      flux_msg_handler_t *mh,
                      const flux_msg_t *msg,
                      void *arg)
{
    struct hkc_flux *x = arg;

    (void)h;
    (void)mh;
    (void)msg;
    for (int i = 0; i < COUNT; i++)
        take (x, &overrides[i]);
}

void hkc_pass_on (struct hkc_flux *x, const flux_msg_t *msg)
{
    const char *topic;
    flux_msg_t *mark = NULL;

    if (flux_msg_get_topic (msg, &topic) < 0
        || !(mark = flux_request_encode (again_topic, NULL))
        || flux_msg_set_rolemask (mark, FLUX_ROLE_OWNER) < 0)
        goto error;
    for (int i = 0; i < COUNT; i++) {
        struct hkc_override *o = &overrides[i];
        if (strcmp (o->topic, topic))
            continue;
        flux_msg_handler_destroy (o->mh);
        o->mh = NULL;
    }
    if (flux_requeue (x->h, mark, FLUX_RQ_HEAD) < 0
        || flux_requeue (x->h, msg, FLUX_RQ_HEAD) < 0) {
        on_again (x->h, NULL, NULL, x);
        goto error;
    }
    flux_msg_decref (mark);
    return;
error:
    flux_log (x->h, LOG_ERR, "hk: passing on: %s", strerror (errno));
    if (!flux_msg_is_noresponse (msg))
        flux_respond_error (x->h, msg, errno, NULL);
    flux_msg_decref (mark);
}

bool hkc_is_probe (struct hkc_flux *x, const flux_msg_t *msg)
{
    const char *topic, *key;

    if (flux_msg_get_topic (msg, &topic) < 0
        || flux_msg_unpack (msg, "{s:s}", probe_key, &key) < 0)
        return false;
    if (flux_respond_pack (x->h, msg, "{s:s}", probe_key, topic) < 0)
        flux_log (x->h, LOG_ERR, "hk: probe: %s", strerror (errno));
    return true;
}

static void on_probed (flux_future_t *f, void *arg)
{
    struct hkc_flux *x = arg;
    struct hkc_override *o = flux_future_aux_get (f, "override");
    const char *topic;

    if (flux_rpc_get_unpack (f, "{s:s}", probe_key, &topic) == 0)
        o->is_proven = true;
    else {
        hkc_flux_trouble (
            x,
            "%s does not come to this plugin (%s): flux-core %s does not fit, "
            "every ended job is held",
            o->topic,
            future_strerror (f, errno),
            flux_core_version_string ());
        x->is_misfit = true;
    }
    hkc_jobs_advance (x);
    hkc_flux_done (x, f);
}

static void probe (struct hkc_flux *x, struct hkc_override *o)
{
    flux_future_t *f = flux_rpc_pack (
        x->h, o->topic, FLUX_NODEID_ANY, 0, "{s:s}", probe_key, o->topic);

    o->is_probed = true;
    if (!f || flux_future_aux_set (f, "override", o, NULL) < 0
        || hkc_flux_then (x, f, PROBE_S, on_probed, x) < 0)
        hkc_flux_trouble (x, "cannot probe %s: %s", o->topic, strerror (errno));
}

bool hkc_overrides_proven (void)
{
    for (int i = 0; i < COUNT; i++) {
        struct hkc_override *o = &overrides[i];
        if (!o->is_proven)
            return false;
    }
    return true;
}

int hkc_overrides_open (struct hkc_flux *x)
{
    if (!(again = handle (x, again_topic, FLUX_ROLE_OWNER, on_again))) {
        hkc_flux_trouble (x, "cannot take over: %s", strerror (errno));
        return -1;
    }
    for (int i = 0; i < COUNT; i++) {
        struct hkc_override *o = &overrides[i];
        o->is_proven = o->is_probed = false;
        if (take (x, o) < 0)
            return -1;
    }
    return 0;
}

void hkc_overrides_probe (struct hkc_flux *x)
{
    for (int i = 0; i < COUNT; i++) {
        struct hkc_override *o = &overrides[i];
        if (!o->is_probed)
            probe (x, o);
    }
}

void hkc_overrides_close (struct hkc_flux *x)
{
    (void)x;
    for (int i = 0; i < COUNT; i++) {
        struct hkc_override *o = &overrides[i];
        flux_msg_handler_destroy (o->mh);
        o->mh = NULL;
    }
    flux_msg_handler_destroy (again);
    again = NULL;
}

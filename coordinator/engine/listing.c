/* listing.c - what is held and which nodes there are, for clients */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "coordinator/engine/internal.h"
#include "proto/clock.h"

enum { ROWS_EACH = 256 }; /* in one data message */

/* Parts that look the same to a person are one row with a host list. */
struct listed {
    struct hkc_view view;
    struct hk_hostlist *hosts;
    char *script, *reason;
    size_t count;
};

struct listing {
    struct hkc_engine *e;
    const struct hk_hostlist *hosts; /* filter, or NULL */
    zhashx_t *groups;
    zlistx_t *order;
    struct listed *last; /* neighbours mostly belong together */
};

static void listed_free (void **item)
{
    struct listed *g = *item;

    hk_hostlist_destroy (g->hosts);
    free (g->script);
    free (g->reason);
    free (g);
    *item = NULL;
}

static bool same_group (const struct listed *g, const struct hkc_view *v)
{
    return g && g->view.alloc == v->alloc && g->view.phase == v->phase
           && g->view.outcome == v->outcome && g->view.attempt == v->attempt
           && !strcmp (g->view.marks, v->marks)
           && !strcmp (g->script, v->script) && !strcmp (g->reason, v->reason);
}

static int list_part (void *arg, const struct hkc_view *v)
{
    struct listing *l = arg;
    struct listed *g = l->last;
    char key[2048];

    if (l->hosts && hk_hostlist_find (l->hosts, v->host) < 0)
        return 0;
    if (!same_group (g, v)) {
        snprintf (key,
                  sizeof (key),
                  "%llx %d %d %d %s/%s/%s",
                  (unsigned long long)v->alloc,
                  v->phase,
                  v->outcome,
                  v->attempt,
                  v->marks,
                  v->script,
                  v->reason);
        if (!(g = zhashx_lookup (l->groups, key))) {
            g = calloc (1, sizeof (*g));
            if (!g)
                return -1;
            g->view = *v;
            g->script = strdup (v->script);
            g->reason = strdup (v->reason);
            g->hosts = hk_hostlist_create ();
            zlistx_add_end (l->order, g);
            if (!g->script || !g->reason || !g->hosts)
                return -1;
            zhashx_insert (l->groups, key, g);
        }
        l->last = g;
    }
    if (v->t_since < g->view.t_since)
        g->view.t_since = v->t_since;
    g->count++;
    return hk_hostlist_append (g->hosts, v->host);
}

static json_t *listed_row (const struct listed *g, bool full)
{
    char *hosts = hk_hostlist_encode (g->hosts);
    json_t *row = json_pack ("{s:I s:I s:I s:s s:s s:f s:s? s:I s:s s:i s:s}",
                             "jobid",
                             (json_int_t)g->view.jobid,
                             "alloc",
                             (json_int_t)g->view.alloc,
                             "userid",
                             (json_int_t)g->view.userid,
                             "phase",
                             g->view.begun ? hkc_phase_name (g->view.phase)
                                           : "recorded",
                             "script",
                             g->script,
                             "since",
                             g->view.t_since,
                             "hosts",
                             hosts,
                             "nnodes",
                             (json_int_t)g->count,
                             "marks",
                             g->view.marks,
                             "attempt",
                             g->view.attempt,
                             "outcome",
                             hk_outcome_name (g->view.outcome));

    free (hosts);
    if (row && full) {
        json_object_set_new (row, "reason", json_string (g->reason));
        json_object_set_new (row, "act", json_string (g->view.act));
    }
    return row;
}

static void send_all (struct hkc_engine *e,
                      struct hk_peer *peer,
                      uint64_t re,
                      json_t *all)
{
    size_t n = json_array_size (all);
    json_t *rows = json_array ();

    for (size_t i = 0; i < n; i++) {
        json_array_append (rows, json_array_get (all, i));
        if (json_array_size (rows) == ROWS_EACH && i + 1 < n) {
            hkc_reply_rows (e, peer, re, rows, true);
            rows = json_array ();
        }
    }
    hkc_reply_rows (e, peer, re, rows, false);
    hkc_reply_done (e, peer, re, NULL, NULL);
    json_decref (all);
}

static struct hk_hostlist *filter_of (struct hkc_engine *e,
                                      struct hk_peer *peer,
                                      const struct hk_msg *msg,
                                      bool *bad)
{
    struct hk_hostlist *hosts = NULL;
    struct hk_error err;

    *bad = false;
    if (msg->query.hosts
        && !(hosts = hk_hostlist_decode (msg->query.hosts, &err))) {
        *bad = true;
        hkc_reply_error (e, peer, msg->seq, "bad", err.text);
    }
    return hosts;
}

void hkc_list (struct hkc_engine *e,
               struct hk_peer *peer,
               const struct hk_msg *msg)
{
    bool bad, full = peer->role != HK_ROLE_GUEST;
    struct hk_hostlist *hosts = filter_of (e, peer, msg, &bad);
    struct listing l = { .e = e, .hosts = hosts };
    json_t *rows;

    if (bad)
        return;
    rows = json_array ();
    l.groups = zhashx_new ();
    l.order = zlistx_new ();
    zlistx_set_destructor (l.order, listed_free);
    if (hkc_core_each_part (e->core, msg->query.jobid, list_part, &l) < 0) {
        hkc_reply_error (e, peer, msg->seq, "limit", "out of memory");
        json_decref (rows);
    } else {
        for (struct listed *g = zlistx_first (l.order); g;
             g = zlistx_next (l.order))
            json_array_append_new (rows, listed_row (g, full));
        send_all (e, peer, msg->seq, rows);
    }
    zhashx_destroy (&l.groups);
    zlistx_destroy (&l.order);
    hk_hostlist_destroy (hosts);
}

/* ---- nodes: a row a part, and one for a host without any ---- */

struct nodes {
    struct hkc_engine *e;
    const struct hk_hostlist *hosts;
    zhashx_t *views; /* host -> copy of its view's numbers */
    json_t *rows;
    bool full;
    bool all;
};

static int node_host (void *arg, const struct hkc_host_view *v)
{
    struct nodes *n = arg;
    double wall = n->e->turn ? (double)time (NULL) : 0;
    double age = v->contact_ms ? (hk_boot_ms () - v->contact_ms) / 1e3 : 0;
    json_t *row;

    if (n->hosts && hk_hostlist_find (n->hosts, v->host) < 0)
        return 0;
    row = json_pack ("{s:s s:b s:b s:f s:s s:s}",
                     "host",
                     v->host,
                     "connected",
                     v->connected,
                     "state_heard",
                     v->state_heard,
                     "last_seen",
                     v->contact_ms ? wall - age : 0.0,
                     "boot_id",
                     v->boot_id,
                     "marks",
                     v->marks);
    if (row && n->full) {
        json_object_set_new (row, "drain", json_string (v->drain));
        json_object_set_new (
            row, "drain_confirmed", json_boolean (v->drain_confirmed));
        json_object_set_new (row, "foreign", json_string (v->foreign));
    }
    zhashx_update (n->views, v->host, row);
    return 0;
}

static int node_part (void *arg, const struct hkc_view *v)
{
    struct nodes *n = arg;
    json_t *host = zhashx_lookup (n->views, v->host);
    json_t *row;

    if (!host)
        return 0;
    row = json_copy (host);
    json_object_set_new (host, "used", json_true ());
    json_object_del (row, "used");
    json_object_update_new (row,
                            json_pack ("{s:I s:I s:I s:s s:i s:s s:f s:s s:s}",
                                       "jobid",
                                       (json_int_t)v->jobid,
                                       "alloc",
                                       (json_int_t)v->alloc,
                                       "userid",
                                       (json_int_t)v->userid,
                                       "phase",
                                       hkc_phase_name (v->phase),
                                       "attempt",
                                       v->attempt,
                                       "script",
                                       v->script,
                                       "since",
                                       v->t_since,
                                       "outcome",
                                       hk_outcome_name (v->outcome),
                                       "marks",
                                       v->marks));
    if (n->full) {
        json_object_set_new (row, "reason", json_string (v->reason));
        json_object_set_new (row, "act", json_string (v->act));
    }
    json_array_append_new (n->rows, row);
    return 0;
}

static void json_free (void **item)
{
    json_decref (*item);
    *item = NULL;
}

void hkc_nodes (struct hkc_engine *e,
                struct hk_peer *peer,
                const struct hk_msg *msg)
{
    bool bad;
    struct hk_hostlist *hosts = filter_of (e, peer, msg, &bad);
    struct nodes n = {
        .e = e,
        .hosts = hosts,
        .full = peer->role != HK_ROLE_GUEST,
    };

    if (bad)
        return;
    n.rows = json_array ();
    n.views = zhashx_new ();
    zhashx_set_destructor (n.views, json_free);
    hkc_core_each_host (e->core, node_host, &n);
    hkc_core_each_part (e->core, msg->query.jobid, node_part, &n);
    if (!msg->query.jobid)
        for (json_t *row = zhashx_first (n.views); row;
             row = zhashx_next (n.views))
            if (!json_object_get (row, "used"))
                json_array_append (n.rows, row);
    send_all (e, peer, msg->seq, n.rows);
    zhashx_destroy (&n.views);
    hk_hostlist_destroy (hosts);
}

/* ---- for a host: a row an allocation ---- */

static int alloc_row (void *arg, const struct hkc_alloc_view *v)
{
    struct hk_rankset *pending;
    char *ranks, *left;
    json_t *row = NULL, *R;

    if (!v->begun)
        return 0;
    pending = hk_rankset_copy (v->ranks);
    hk_rankset_remove_set (pending, v->done);
    ranks = hk_rankset_encode (v->ranks);
    left = hk_rankset_encode (pending);
    R = json_loads (v->R, 0, NULL);
    if (ranks && left && R)
        row = json_pack ("{s:I s:I s:I s:f s:s s:s s:O}",
                         "alloc",
                         (json_int_t)v->alloc,
                         "jobid",
                         (json_int_t)v->jobid,
                         "userid",
                         (json_int_t)v->userid,
                         "t_start",
                         v->t_end,
                         "ranks",
                         ranks,
                         "pending",
                         left,
                         "R",
                         R);
    json_decref (R);
    free (left);
    free (ranks);
    hk_rankset_destroy (pending);
    return json_array_append_new (arg, row);
}

void hkc_host_list (struct hkc_engine *e, uint64_t tag)
{
    json_t *rows = json_array ();

    if (rows && hkc_core_each_alloc (e->core, alloc_row, rows) < 0) {
        json_decref (rows);
        rows = NULL;
    }
    e->host.list (e->host.arg, tag, rows);
}

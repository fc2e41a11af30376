/* node.c - hosts: their sessions, boots, and two machines with one name */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include "coordinator/core/internal.h"

/* Marks a short name that more than one host has. */
static char ambiguous;

struct hkc_host *hkc_host_find (struct hkc_core *core, const char *name)
{
    struct hkc_host *host = zhashx_lookup (core->hosts, name);

    if (host)
        return host;
    host = zhashx_lookup (core->aliases, name);
    return host == (void *)&ambiguous ? NULL : host;
}

struct hkc_host *hkc_host_need (struct hkc_core *core, const char *name)
{
    struct hkc_host *host = hkc_host_find (core, name);

    if (host)
        return host;
    host = hkc_zalloc (sizeof (*host));
    host->name = hkc_strdup (name);
    host->shown = hkc_strdup (name);
    host->parts_end = &host->parts;
    zhashx_insert (core->hosts, host->name, host);
    return host;
}

struct hkc_host *hkc_host_of_peer (struct hkc_core *core, uint64_t peer)
{
    return zhashx_lookup (core->peers, &peer);
}

int hkc_node_unknown (struct hkc_core *core, uint64_t peer)
{
    hkc_act (core, HKC_ACT_CLOSE)->node.peer = peer;
    return 0;
}

void hkc_host_free (struct hkc_host *host)
{
    while (host->strays) {
        struct hkc_stray *next = host->strays->next;
        free (host->strays);
        host->strays = next;
    }
    while (host->causes) {
        struct hkc_cause *next = host->causes->next;
        free (host->causes->reason);
        free (host->causes);
        host->causes = next;
    }
    free (host->name);
    free (host->shown);
    free (host->short_name);
    free (host->foreign);
    free (host->reason);
    free (host->asked);
    free (host->reasons);
    free (host->failed);
    free (host);
}

/* A node says its full and its short name: the exact one that R uses, else the
 * short one if no other node has it too.
 */
static struct hkc_host *host_of_hello (struct hkc_core *core,
                                       const char *full,
                                       const char *brief)
{
    struct hkc_host *host = zhashx_lookup (core->hosts, full);
    bool differ = *brief && strcmp (full, brief) != 0;

    if (!host && differ) {
        struct hkc_host *other = zhashx_lookup (core->aliases, brief);
        if (!other) /* R or a job named it short before */
            host = zhashx_lookup (core->hosts, brief);
        if (host && host->short_name) /* ... and it was another's already */
            host = NULL;
    }
    if (!host)
        host = hkc_host_need (core, full);
    if (differ && !host->short_name) {
        struct hkc_host *other = zhashx_lookup (core->aliases, brief);
        hkc_strset (&host->short_name, brief);
        zhashx_update (core->aliases,
                       brief,
                       other && other != host ? (void *)&ambiguous : host);
        zhashx_update (core->aliases, full, host);
    }
    return host;
}

static bool has_unfinished (const struct hkc_host *host)
{
    for (const struct hkc_part *p = host->parts; p; p = p->next_on_host)
        if (p->start_sent && p->phase < HKC_ENDED)
            return true;
    return false;
}

static int64_t silent_since (const struct hkc_core *core,
                             const struct hkc_host *host)
{
    return host->contact_ms > core->ready_ms ? host->contact_ms
                                             : core->ready_ms;
}

static void refuse (struct hkc_core *core, uint64_t peer, const char *text)
{
    struct hkc_action *act = hkc_act (core, HKC_ACT_REFUSE);

    act->node.peer = peer;
    act->node.code = "conflict";
    act->node.text = text;
}

static void conflict_end (struct hkc_core *core, struct hkc_host *host)
{
    host->rival_boot[0] = '\0';
    host->rival_first_ms = host->rival_last_ms = 0;
    if (!host->conflict)
        return;
    host->conflict = false;
    hkc_say (core,
             LOG_NOTICE,
             0,
             host->shown,
             "one machine alone has this name again");
    hkc_cause_remove (core, host, HKC_CAUSE_CONFLICT, 0);
    hkc_host_start_next (core, host);
}

/* DESIGN 7: the boot that the host has replaces its session.  Another is taken
 * only after two heartbeats without the first.
 */
static bool may_take (struct hkc_core *core,
                      struct hkc_host *host,
                      const struct hkc_event *ev)
{
    int64_t two = 2 * core->conf->heartbeat_ms;
    const char *boot = ev->node_hello.boot_id;

    if (host->peer ? !strcmp (host->session_boot, boot)
                   : host->boot_id[0] == '\0')
        return true;
    if (!strcmp (host->boot_id, boot))
        return true;
    if (!host->peer && !has_unfinished (host))
        return true;
    if (core->now_ms - silent_since (core, host) >= two)
        return true;
    if (host->rival_first_ms == 0 || core->now_ms - host->rival_last_ms >= two)
        host->rival_first_ms = core->now_ms;
    snprintf (host->rival_boot, sizeof (host->rival_boot), "%s", boot);
    snprintf (host->rival_address,
              sizeof (host->rival_address),
              "%s",
              ev->node_hello.address);
    host->rival_last_ms = core->now_ms;
    return false;
}

static void session_take (struct hkc_core *core,
                          struct hkc_host *host,
                          const struct hkc_event *ev)
{
    if (host->peer) {
        hkc_act (core, HKC_ACT_CLOSE)->node.peer = host->peer;
        zhashx_delete (core->peers, &host->peer);
    }
    conflict_end (core, host);
    host->peer = ev->node_hello.peer;
    host->heard = false;
    snprintf (host->session_boot,
              sizeof (host->session_boot),
              "%s",
              ev->node_hello.boot_id);
    snprintf (
        host->address, sizeof (host->address), "%s", ev->node_hello.address);
    zhashx_insert (core->peers, &host->peer, host);
    if (host->t_seen == 0) {
        host->t_seen = core->wall;
        hkc_host_dirty (core, host);
    }
}

int hkc_node_hello (struct hkc_core *core,
                    const struct hkc_event *ev,
                    struct hk_error *err)
{
    struct hkc_host *host;

    if (!hk_host_name_valid (ev->node_hello.host))
        return hk_error_set (err, EINVAL, "not a host name");
    if (hkc_host_of_peer (core, ev->node_hello.peer))
        return hk_error_set (err, EINVAL, "peer has a session");
    host = host_of_hello (core, ev->node_hello.host, ev->node_hello.short_host);
    if (!may_take (core, host, ev)) {
        refuse (core,
                ev->node_hello.peer,
                hkc_arena_fmt (core,
                               "host %s is %s with boot %.8s; ask again",
                               host->shown,
                               host->address,
                               host->boot_id));
        return 0;
    }
    session_take (core, host, ev);
    hkc_node_heard (core, host);
    hkc_act (core, HKC_ACT_WELCOME)->node.peer = ev->node_hello.peer;
    return 0;
}

int hkc_node_gone (struct hkc_core *core, uint64_t peer)
{
    struct hkc_host *host = hkc_host_of_peer (core, peer);

    if (!host)
        return 0;
    zhashx_delete (core->peers, &host->peer);
    host->peer = 0;
    host->heard = false;
    return 0;
}

/* Any message of the session: the host is there. */
void hkc_node_heard (struct hkc_core *core, struct hkc_host *host)
{
    int64_t beat = core->conf->heartbeat_ms;

    host->contact_ms = core->now_ms;
    if (host->lost) {
        host->lost = false;
        hkc_say (core, LOG_NOTICE, 0, host->shown, "contact returned");
        hkc_cause_remove (core, host, HKC_CAUSE_LOST, 0);
    }
    if (!host->rival_first_ms)
        return;
    if (core->now_ms - host->rival_last_ms >= 2 * beat) {
        conflict_end (core, host);
        return;
    }
    /* heard in the second heartbeat after another machine said the name */
    if (host->conflict || core->now_ms - host->rival_first_ms < beat)
        return;
    host->conflict = true;
    hkc_say (core,
             LOG_ALERT,
             0,
             host->shown,
             "two machines say they are this host: %s boot %.8s and %s boot "
             "%.8s",
             host->address,
             host->boot_id,
             host->rival_address,
             host->rival_boot);
    hkc_cause_add (core,
                   host,
                   HKC_CAUSE_CONFLICT,
                   0,
                   hkc_arena_fmt (core,
                                  "housekeeping: two machines say they "
                                  "are %s: %s and %s",
                                  host->shown,
                                  host->address,
                                  host->rival_address));
}

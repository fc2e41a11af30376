/* node_impl.h - what the files about the node share */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HKD_NODE_IMPL_H
#define HKD_NODE_IMPL_H

#include <stdbool.h>
#include <systemd/sd-event.h>
#include "proto/conf.h"
#include "proto/link.h"
#include "hkd/host.h"
#include "hkd/journal.h"
#include "hkd/node.h"
#include "hkd/run.h"
#include "hkd/runfile.h"
#include "hkd/unit.h"

enum hkd_work_kind {
    HKD_WORK_PREPARE = 1,
    HKD_WORK_CGROUP,
    HKD_WORK_FAILED, /* the start could not be made */
};

/* What an action asks for and an event answers: done after the step's other
 * actions, since those are borrowed until the next step.
 */
struct hkd_work {
    struct hkd_work *next;
    enum hkd_work_kind kind;
    uint64_t alloc;
    int attempt;
    char *text; /* FAILED */
};

struct hkd_node {
    const char *conf_path;
    struct hk_conf *conf;
    struct hkd_host host;
    int lock_fd;
    sd_event *event;
    sd_event_source *timer;
    sd_event_source *link_io;
    struct hkd_runs *runs;
    struct hkd_units *units;
    struct hkd_journal *journal;
    bool adopted;
    bool feeding;
    struct hkd_work *work, **work_end;
    /* the link; NULL until units are adopted */
    struct hk_link_client *link;
    char instance[HK_ID_BYTES]; /* of this session, from welcome */
    uint64_t start, commit;
    int64_t reconcile_ms, reconcile_at_ms;
    uint64_t stop_seq; /* of the stop that is being answered */
    struct hkd_seen seen;
    bool seen_changed;
    int64_t seen_at_ms; /* written last */
    /* systemd's watchdog of us; INT64_MAX: none */
    int64_t watchdog_ms, watchdog_at_ms;
    char status[256];
};

/* ---- node.c ---- */

void hkd_node_status (struct hkd_node *node, const char *link_text);

/* ---- node_act.c ---- */

/* Sets the times; carries out what comes of it.  -1: no such run, or refused. */
int hkd_node_feed (struct hkd_node *node,
                   struct hkd_event *ev,
                   struct hk_error *err);
int hkd_node_on_unit (void *arg, struct hkd_event *ev);
void hkd_node_on_forgotten (void *arg, uint64_t alloc, int attempt);
void hkd_node_drop_work (struct hkd_node *node);

/* ---- node_link.c ---- */

int hkd_node_link_open (struct hkd_node *node, struct hk_error *err);
void hkd_node_link_close (struct hkd_node *node);
void hkd_node_link_tick (struct hkd_node *node, int64_t now_ms);
int64_t hkd_node_link_deadline (const struct hkd_node *node);
/* -1 if there is no room for it now; where there is no link it is dropped. */
int hkd_node_send (struct hkd_node *node, struct hk_msg *msg);
void hkd_node_send_state (struct hkd_node *node);

#endif

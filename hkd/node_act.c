/* node_act.c - the state machine's actions are carried out */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/clock.h"
#include "proto/log.h"
#include "hkd/cgroup.h"
#include "hkd/node_impl.h"
#include "hkd/scripts.h"

static void work_add (struct hkd_node *node,
                      enum hkd_work_kind kind,
                      const struct hk_run *run,
                      const char *text)
{
    struct hkd_work *work = calloc (1, sizeof (*work));

    if (!work || (text && !(work->text = strdup (text))))
        abort (); /* files and units outlive the process */
    work->kind = kind;
    work->alloc = run->alloc;
    work->attempt = run->attempt;
    *node->work_end = work;
    node->work_end = &work->next;
}

static struct hkd_work *work_take (struct hkd_node *node)
{
    struct hkd_work *work = node->work;

    if (work && !(node->work = work->next))
        node->work_end = &node->work;
    return work;
}

static void work_free (struct hkd_work *work)
{
    free (work->text);
    free (work);
}

void hkd_node_drop_work (struct hkd_node *node)
{
    struct hkd_work *work;

    while ((work = work_take (node)))
        work_free (work);
}

/* ---- work ---- */

static void tell_failed (struct hkd_node *node,
                         const struct hkd_work *work,
                         const char *reason,
                         bool no_scripts)
{
    struct hkd_event ev = { .kind = HKD_EV_START_FAILED,
                            .alloc = work->alloc,
                            .attempt = work->attempt,
                            .failed = { .reason = reason,
                                        .no_scripts = no_scripts } };

    hkd_node_feed (node, &ev, NULL);
}

static void tell_prepared (struct hkd_node *node,
                           const struct hkd_work *work,
                           const struct hkd_scripts *scripts)
{
    struct hkd_event ev = { .kind = HKD_EV_PREPARED,
                            .alloc = work->alloc,
                            .attempt = work->attempt };
    const char **names = calloc (scripts->count + 1, sizeof (*names));

    if (!names)
        abort ();
    for (size_t i = 0; i < scripts->count; i++)
        names[i] = scripts->list[i].name;
    ev.prepared.names = names;
    ev.prepared.count = scripts->count;
    hkd_node_feed (node, &ev, NULL);
    free (names);
}

/* What an ended run has left in its cgroup is in the way of the next: of every
 * run where they go one by one, else of its allocation's.
 */
struct blocked {
    const struct hkd_node *node;
    const struct hkd_work *work;
    bool serial;
    char reason[HK_REASON_BYTES];
};

static bool blocks (void *arg, const struct hkd_unit_view *unit)
{
    struct blocked *b = arg;
    struct hkd_leftovers left;
    size_t count;

    if ((!b->serial && unit->alloc != b->work->alloc)
        || (unit->alloc == b->work->alloc && unit->attempt == b->work->attempt)
        || hkd_runs_has (b->node->runs, unit->alloc, unit->attempt))
        return false;
    if (!unit->cgroup) {
        snprintf (b->reason,
                  sizeof (b->reason),
                  "blocked: it is not known what is left of %s",
                  unit->name);
        return true;
    }
    hkd_leftovers_read (unit->cgroup, &left);
    if ((count = left.count) > 0)
        snprintf (b->reason,
                  sizeof (b->reason),
                  "blocked: %zu %s of %s %s left, the first is %s",
                  count,
                  count == 1 ? "process" : "processes",
                  unit->name,
                  count == 1 ? "is" : "are",
                  left.list[0]);
    hkd_leftovers_fini (&left);
    return count > 0;
}

static bool is_blocked (struct hkd_node *node,
                        const struct hk_policy *policy,
                        const struct hkd_work *work)
{
    struct blocked b = { .node = node,
                         .work = work,
                         .serial = policy->per_node == HK_PER_NODE_SERIAL };
    struct hkd_event ev = { .kind = HKD_EV_BLOCKED,
                            .alloc = work->alloc,
                            .attempt = work->attempt,
                            .blocked = { b.reason } };

    if (!hkd_units_each (node->units, blocks, &b))
        return false;
    hkd_node_feed (node, &ev, NULL);
    return true;
}

static void prepare (struct hkd_node *node, const struct hkd_work *work)
{
    const struct hk_policy *policy = hk_conf_policy (node->conf,
                                                     node->host.name);
    const struct hk_start *start = hkd_runs_start (
        node->runs, work->alloc, work->attempt);
    struct hkd_scripts scripts;
    struct hk_error err;

    if (!start || is_blocked (node, policy, work))
        return;
    if (hkd_scripts_find (node->conf, policy, start->userid, &scripts, &err)
        < 0) {
        tell_failed (node, work, err.text, false);
        return;
    }
    if (scripts.count == 0)
        tell_failed (node, work, "there are no scripts", true);
    else if (hkd_unit_prepare (node->units, start, &scripts, &err) < 0)
        tell_failed (node, work, err.text, false);
    else
        tell_prepared (
            node,
            work,
            hkd_unit_scripts (node->units, work->alloc, work->attempt));
}

static void look (struct hkd_node *node, const struct hkd_work *work)
{
    const char *cgroup = hkd_unit_cgroup (
        node->units, work->alloc, work->attempt);
    static const char *const unknown[] = { "? the cgroup is not known yet" };
    struct hkd_leftovers left = { .count = 0 };
    struct hkd_event ev = { .kind = HKD_EV_CGROUP,
                            .alloc = work->alloc,
                            .attempt = work->attempt };

    if (cgroup) {
        hkd_leftovers_read (cgroup, &left);
        ev.cgroup.leftovers = (const char *const *)left.list;
        ev.cgroup.count = left.count;
    } else {
        ev.cgroup.leftovers = unknown;
        ev.cgroup.count = 1;
    }
    hkd_node_feed (node, &ev, NULL);
    hkd_leftovers_fini (&left);
}

static void do_work (struct hkd_node *node)
{
    struct hkd_work *work;

    while ((work = work_take (node))) {
        if (work->kind == HKD_WORK_PREPARE)
            prepare (node, work);
        else if (work->kind == HKD_WORK_CGROUP)
            look (node, work);
        else
            tell_failed (node, work, work->text, false);
        work_free (work);
    }
}

/* ---- actions ---- */

static void report (struct hkd_node *node, const struct hk_run *run)
{
    struct hk_msg msg = { .type = HK_MSG_RUN, .run = *run };

    hkd_node_send (node, &msg);
}

static void stopped (struct hkd_node *node, const char *text)
{
    struct hk_msg msg = { .type = HK_MSG_DONE,
                          .re = node->stop_seq,
                          .done = { .text = text } };

    hkd_node_send (node, &msg);
}

static void say (struct hkd_node *node, const struct hkd_action *act)
{
    struct hk_log_ids ids = { .host = node->host.name };

    if (act->run)
        ids.jobid = act->run->jobid;
    hk_log_with (act->level, &ids, "%s", act->text);
}

/* A run that has no file is not started: nobody would know it again. */
static void carry_out (struct hkd_node *node,
                       const struct hkd_action *act,
                       struct hk_error *file_err)
{
    const struct hk_run *run = act->run;

    switch (act->kind) {
    case HKD_ACT_PREPARE:
        work_add (node, HKD_WORK_PREPARE, run, NULL);
        break;
    case HKD_ACT_UNIT_START:
        if (file_err->text[0])
            work_add (node, HKD_WORK_FAILED, run, file_err->text);
        else
            hkd_unit_start (node->units, run->alloc, run->attempt);
        break;
    case HKD_ACT_FILE:
        if (hkd_runfile_write (node->conf->run_dir, run, act->limits, file_err)
            < 0)
            hk_log_throttled (
                LOG_ERR, "file", "a run cannot be kept: %s", file_err->text);
        break;
    case HKD_ACT_SIGNAL:
        hkd_unit_signal (node->units, run->alloc, run->attempt, act->signal);
        break;
    case HKD_ACT_CGROUP:
        work_add (node, HKD_WORK_CGROUP, run, NULL);
        break;
    case HKD_ACT_FORGET:
        hkd_unit_forget (node->units, run->alloc, run->attempt);
        break;
    case HKD_ACT_REPORT:
        report (node, run);
        break;
    case HKD_ACT_STATE:
        hkd_node_send_state (node);
        break;
    case HKD_ACT_STOPPED:
        stopped (node, act->text);
        break;
    case HKD_ACT_LOG:
        say (node, act);
        break;
    }
}

int hkd_node_feed (struct hkd_node *node,
                   struct hkd_event *ev,
                   struct hk_error *err)
{
    struct hk_error file_err = { .text = "" };
    const struct hkd_action *acts;
    bool outer = !node->feeding;
    size_t count;

    ev->now_ms = hk_boot_ms ();
    ev->wall = hk_wall ();
    if (hkd_runs_step (node->runs, ev, err) < 0)
        return -1;
    node->feeding = true;
    acts = hkd_runs_actions (node->runs, &count);
    for (size_t i = 0; i < count; i++)
        carry_out (node, &acts[i], &file_err);
    if (outer) {
        do_work (node);
        node->feeding = false;
    }
    return 0;
}

int hkd_node_on_unit (void *arg, struct hkd_event *ev)
{
    return hkd_node_feed (arg, ev, NULL);
}

void hkd_node_on_forgotten (void *arg, uint64_t alloc, int attempt)
{
    struct hkd_node *node = arg;
    struct hk_error err;

    if (hkd_runfile_remove (node->conf->run_dir, alloc, attempt, &err) < 0)
        hk_log (LOG_ERR, "a run's file stays: %s", err.text);
}

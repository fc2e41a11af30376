/* unit.c - a model of systemd on a node, and the files that hkd leaves */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/sim/sim.h"

const char *const sim_script_names[SIM_SCRIPTS] = { "10-a", "20-b", "30-c" };

struct sim_unit *sim_unit_find (struct sim_node *n, uint64_t alloc, int attempt)
{
    struct sim_unit *u = n->units;

    while (u && (u->alloc != alloc || u->attempt != attempt))
        u = u->next;
    return u;
}

void sim_unit_remove (struct sim_node *n, struct sim_unit *unit)
{
    struct sim_unit **p = &n->units;

    while (*p && *p != unit)
        p = &(*p)->next;
    if (*p) {
        *p = unit->next;
        free (unit);
    }
}

/* The ground truth of S6: an attempt is really started once. */
static void count_start (struct sim_node *n, uint64_t alloc, int attempt)
{
    char key[96];

    snprintf (key,
              sizeof (key),
              "%llx/%s/%d",
              (unsigned long long)alloc,
              n->name,
              attempt);
    w.runs++;
    if (zhashx_lookup (w.started, key))
        sim_broken ("S6", "%s is started a second time", key);
    zhashx_insert (w.started, key, n);
}

bool sim_unit_left (const struct sim_unit *u)
{
    return u->at < SIM_SCRIPTS || u->child;
}

static bool has_ended (const struct sim_node *n, const struct sim_unit *u)
{
    for (const struct sim_file *f = n->files; f; f = f->next)
        if (f->run.alloc == u->alloc && f->run.attempt == u->attempt)
            return f->run.phase == HK_RUN_ENDED;
    return false;
}

bool sim_unit_in_way (const struct sim_node *n, uint64_t alloc, int attempt)
{
    for (const struct sim_unit *u = n->units; u; u = u->next)
        if ((u->alloc != alloc || u->attempt != attempt) && sim_unit_left (u)
            && has_ended (n, u))
            return true;
    return w.now_ms < n->left_ms;
}

struct sim_unit *sim_unit_create (struct sim_node *n,
                                  uint64_t alloc,
                                  int attempt)
{
    struct sim_unit *u = calloc (1, sizeof (*u));
    int64_t at = w.now_ms;

    if (sim_unit_in_way (n, alloc, attempt))
        sim_broken ("S6", "%s begins a run beside what is left", n->name);
    u->alloc = alloc;
    u->attempt = attempt;
    sim_id_text (u->invocation);
    for (int i = 0; i < SIM_SCRIPTS; i++) {
        u->results[i].name = sim_script_names[i];
        u->results[i].code = -1;
        at += 1 + sim_below (400);
        if (w.faults && sim_chance (1))
            at += 60000;
        u->ends[i] = at;
        if (w.faults && sim_chance (2))
            u->will[i] = sim_chance (50) ? 3 : -SIGSEGV;
    }
    u->results[0].t_start = w.wall;
    u->ignores_term = sim_chance (20);
    u->leaves_child = sim_chance (5);
    u->unkillable = sim_chance (u->leaves_child ? 30 : 2);
    u->next = n->units;
    n->units = u;
    count_start (n, alloc, attempt);
    return u;
}

void sim_file_write (struct sim_node *n, const struct hk_run *run)
{
    struct sim_file *f = n->files;
    struct hk_run *copy = sim_run_copy (run);

    while (f && (f->run.alloc != run->alloc || f->run.attempt != run->attempt))
        f = f->next;
    if (f)
        sim_run_fini (&f->run);
    else {
        f = calloc (1, sizeof (*f));
        f->next = n->files;
        n->files = f;
    }
    f->run = *copy;
    free (copy);
}

void sim_file_remove (struct sim_node *n, const struct hk_run *run)
{
    for (struct sim_file **p = &n->files; *p; p = &(*p)->next) {
        struct sim_file *f = *p;
        if (f->run.alloc != run->alloc || f->run.attempt != run->attempt)
            continue;
        *p = f->next;
        sim_run_fini (&f->run);
        free (f);
        return;
    }
}

void sim_unit_signal (struct sim_unit *u, int signum)
{
    u->stopped = true;
    if (u->unkillable || (signum == SIGTERM && u->ignores_term))
        return;
    u->child = false;
    if (u->at < SIM_SCRIPTS) {
        u->results[u->at].signal = signum;
        u->results[u->at].t_end = w.wall;
        u->at = SIM_SCRIPTS;
    }
}

static void mark_bad (struct sim_node *n, const struct sim_unit *u)
{
    char key[96];

    snprintf (key,
              sizeof (key),
              "%llx/%s/%d",
              (unsigned long long)u->alloc,
              n->name,
              u->attempt);
    zhashx_update (w.bad, key, n);
}
bool sim_unit_run (struct sim_node *n, struct sim_unit *u)
{
    bool changed = false;

    while (u->at < SIM_SCRIPTS && w.now_ms >= u->ends[u->at]) {
        struct hk_script_result *r = &u->results[u->at];
        int will = u->will[u->at];
        r->t_end = w.wall;
        r->code = will < 0 ? -1 : will;
        r->signal = will < 0 ? -will : 0;
        changed = true;
        if (will)
            mark_bad (n, u);
        if (++u->at < SIM_SCRIPTS && !u->stopped)
            u->results[u->at].t_start = w.wall;
        else {
            u->at = SIM_SCRIPTS;
            u->child = u->leaves_child;
        }
    }
    return changed;
}

/* run_memory.c - the node's runs, and what a step asks for, in memory */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "hkd/run_impl.h"

/* Files and units outlive the process: an end at any point is survived, half a
 * step is not.
 */
static void *need (void *p)
{
    if (!p)
        abort ();
    return p;
}

void hkd_text_set (const char **field, const char *text)
{
    char *copy = need (strdup (text ? text : ""));

    free ((char *)*field);
    *field = copy;
}

struct hkd_action *hkd_act (struct hkd_runs *runs,
                            enum hkd_action_kind kind,
                            const struct hkd_run *run)
{
    if (runs->actions_count == runs->actions_size) {
        runs->actions_size = runs->actions_size ? runs->actions_size * 2 : 16;
        runs->actions = need (realloc (
            runs->actions, runs->actions_size * sizeof (*runs->actions)));
    }
    struct hkd_action *act = &runs->actions[runs->actions_count++];
    memset (act, 0, sizeof (*act));
    act->kind = kind;
    if (run) {
        act->run = &run->pub;
        act->start = &run->start;
        act->limits = &run->limits;
    }
    return act;
}

void hkd_say (struct hkd_runs *runs,
              int level,
              const struct hkd_run *run,
              const char *fmt,
              ...)
{
    struct hkd_action *act;
    va_list ap;
    char *text;

    if (runs->texts_count == sizeof (runs->texts) / sizeof (runs->texts[0]))
        return; /* a step says a line or two */
    va_start (ap, fmt);
    if (vasprintf (&text, fmt, ap) < 0)
        abort ();
    va_end (ap);
    runs->texts[runs->texts_count++] = text;
    act = hkd_act (runs, HKD_ACT_LOG, run);
    act->level = level;
    act->text = text;
}

static void scripts_free (struct hkd_run *run)
{
    for (size_t i = 0; i < run->pub.scripts_count; i++)
        free ((char *)run->pub.scripts[i].name);
    free ((void *)run->pub.scripts);
    run->pub.scripts = NULL;
    run->pub.scripts_count = 0;
}

static void run_free (struct hkd_run *run)
{
    scripts_free (run);
    for (size_t i = 0; i < run->pub.leftovers_count; i++)
        free ((char *)run->pub.leftovers[i]);
    free ((void *)run->pub.leftovers);
    free ((char *)run->pub.instance);
    free ((char *)run->pub.boot_id);
    free ((char *)run->pub.invocation);
    free ((char *)run->pub.unit);
    free ((char *)run->pub.script);
    free ((char *)run->pub.reason);
    free ((char *)run->start.boot_id);
    free ((char *)run->start.ranks);
    free ((char *)run->start.queue);
    free (run);
}

struct hkd_runs *hkd_runs_create (const struct hk_conf *conf,
                                  const char *host,
                                  const char *boot_id)
{
    struct hkd_runs *runs = need (calloc (1, sizeof (*runs)));

    runs->conf = conf;
    runs->host = need (strdup (host));
    snprintf (runs->boot_id, sizeof (runs->boot_id), "%s", boot_id);
    return runs;
}

void hkd_runs_settle (struct hkd_runs *runs)
{
    while (runs->forgotten) {
        struct hkd_run *next = runs->forgotten->next;
        run_free (runs->forgotten);
        runs->forgotten = next;
    }
    while (runs->texts_count)
        free (runs->texts[--runs->texts_count]);
    runs->actions_count = 0;
}

void hkd_runs_destroy (struct hkd_runs *runs)
{
    if (!runs)
        return;
    hkd_runs_settle (runs);
    while (runs->first) {
        struct hkd_run *next = runs->first->next;
        run_free (runs->first);
        runs->first = next;
    }
    free (runs->actions);
    free (runs->host);
    free (runs);
}

struct hkd_run *hkd_run_find (const struct hkd_runs *runs,
                              uint64_t alloc,
                              int attempt)
{
    struct hkd_run *run = runs->first;

    while (run && (run->pub.alloc != alloc || run->pub.attempt != attempt))
        run = run->next;
    return run;
}

/* In order of arrival, which is the order in which a person sees them. */
struct hkd_run *hkd_run_add (struct hkd_runs *runs, uint64_t alloc, int attempt)
{
    const struct hk_policy *policy = hk_conf_policy (runs->conf, runs->host);
    struct hkd_run *run = need (calloc (1, sizeof (*run)));
    struct hkd_run **p = &runs->first;

    run->pub.alloc = alloc;
    run->pub.attempt = attempt;
    run->pub.phase = HK_RUN_STARTING;
    hkd_text_set (&run->pub.instance, "");
    hkd_text_set (&run->pub.boot_id, runs->boot_id);
    hkd_text_set (&run->pub.invocation, "");
    hkd_text_set (&run->pub.unit, "");
    hkd_text_set (&run->pub.script, "");
    hkd_text_set (&run->pub.reason, "");
    hkd_text_set (&run->start.boot_id, runs->boot_id);
    hkd_text_set (&run->start.ranks, "");
    hkd_text_set (&run->start.queue, "");
    run->limits.timeout_ms = policy->timeout_ms;
    run->limits.kill_grace_ms = policy->kill_grace_ms;
    run->limits.give_up_ms = policy->give_up_ms;
    run->no_scripts = policy->no_scripts;
    run->start_ms = runs->now_ms;
    while (*p)
        p = &(*p)->next;
    *p = run;
    return run;
}

/* Results that are known stay known: daemon-reload makes systemd forget those
 * of a unit that has finished.
 */
void hkd_scripts_set (struct hkd_run *run,
                      const struct hk_script_result *results,
                      size_t count)
{
    struct hk_script_result *mine = (void *)run->pub.scripts;

    if (run->pub.scripts_count == 0 && count > 0) {
        mine = need (calloc (count, sizeof (*mine)));
        for (size_t i = 0; i < count; i++) {
            mine[i] = results[i];
            mine[i].name = need (strdup (results[i].name));
        }
        run->pub.scripts = mine;
        run->pub.scripts_count = count;
        return;
    }
    for (size_t i = 0; i < count && i < run->pub.scripts_count; i++) {
        if (mine[i].t_end > 0 || results[i].t_start <= 0)
            continue;
        const char *name = mine[i].name;
        mine[i] = results[i];
        mine[i].name = name;
    }
}

const struct hkd_action *hkd_runs_actions (const struct hkd_runs *runs,
                                           size_t *count)
{
    *count = runs->actions_count;
    return runs->actions;
}

int64_t hkd_runs_deadline (const struct hkd_runs *runs)
{
    int64_t when = INT64_MAX;

    for (const struct hkd_run *run = runs->first; run; run = run->next) {
        int64_t at = hkd_run_deadline (run);
        if (at < when)
            when = at;
    }
    return when;
}

int hkd_runs_each (const struct hkd_runs *runs, hkd_run_f fn, void *arg)
{
    int rc = 0;

    for (const struct hkd_run *run = runs->first; run && rc == 0;
         run = run->next)
        rc = fn (arg, &run->pub);
    return rc;
}

size_t hkd_runs_count (const struct hkd_runs *runs)
{
    size_t n = 0;

    for (const struct hkd_run *run = runs->first; run; run = run->next)
        n++;
    return n;
}

bool hkd_runs_has (const struct hkd_runs *runs, uint64_t alloc, int attempt)
{
    const struct hkd_run *run = hkd_run_find (runs, alloc, attempt);

    return run && run->pub.phase != HK_RUN_ENDED;
}

const struct hk_start *hkd_runs_start (const struct hkd_runs *runs,
                                       uint64_t alloc,
                                       int attempt)
{
    const struct hkd_run *run = hkd_run_find (runs, alloc, attempt);

    return run ? &run->start : NULL;
}

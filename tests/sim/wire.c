/* wire.c - messages of the simulation, their copies and their queues */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <stdlib.h>
#include <string.h>
#include "tests/sim/sim.h"

static uint64_t state = 1;

void sim_seed (uint64_t seed);
void sim_seed (uint64_t seed)
{
    state = seed * 0x9e3779b97f4a7c15ULL + 0x1234567;
    for (int i = 0; i < 8; i++)
        sim_random ();
}

/* xorshift64*: the same on every machine */
uint64_t sim_random (void)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 0x2545f4914f6cdd1dULL;
}

uint32_t sim_below (uint32_t n)
{
    return (uint32_t)((sim_random () >> 33) % n);
}

bool sim_chance (uint32_t percent)
{
    return sim_below (100) < percent;
}

static char *dup_text (const char *text)
{
    return text ? strdup (text) : NULL;
}

static void run_copy (struct hk_run *out, const struct hk_run *run)
{
    struct hk_script_result *list;
    const char **left;

    *out = *run;
    out->instance = strdup (run->instance);
    out->boot_id = strdup (run->boot_id);
    out->invocation = strdup (run->invocation);
    out->unit = strdup (run->unit);
    out->script = strdup (run->script);
    out->reason = strdup (run->reason ? run->reason : "");
    list = calloc (run->scripts_count + 1, sizeof (*list));
    for (size_t i = 0; i < run->scripts_count; i++) {
        list[i] = run->scripts[i];
        list[i].name = strdup (run->scripts[i].name);
    }
    out->scripts = list;
    left = calloc (run->leftovers_count + 1, sizeof (*left));
    for (size_t i = 0; i < run->leftovers_count; i++)
        left[i] = strdup (run->leftovers[i]);
    out->leftovers = left;
}

struct hk_run *sim_run_copy (const struct hk_run *run)
{
    struct hk_run *copy = calloc (1, sizeof (*copy));

    run_copy (copy, run);
    return copy;
}

void sim_run_fini (struct hk_run *run)
{
    free ((char *)run->instance);
    free ((char *)run->boot_id);
    free ((char *)run->invocation);
    free ((char *)run->unit);
    free ((char *)run->script);
    free ((char *)run->reason);
    for (size_t i = 0; i < run->scripts_count; i++)
        free ((char *)run->scripts[i].name);
    free ((void *)run->scripts);
    for (size_t i = 0; i < run->leftovers_count; i++)
        free ((char *)run->leftovers[i]);
    free ((void *)run->leftovers);
}

struct sim_msg *sim_msg (enum sim_kind kind)
{
    struct sim_msg *msg = calloc (1, sizeof (*msg));

    msg->kind = kind;
    msg->node = -1;
    msg->job = -1;
    return msg;
}

void sim_msg_free (struct sim_msg *msg)
{
    if (!msg)
        return;
    for (size_t i = 0; i < msg->runs_count; i++)
        sim_run_fini (&msg->runs[i]);
    free (msg->runs);
    free (msg->ranks);
    free (msg->text);
    free (msg);
}

struct sim_msg *sim_msg_copy (const struct sim_msg *msg)
{
    struct sim_msg *copy = calloc (1, sizeof (*copy));

    *copy = *msg;
    copy->next = NULL;
    copy->ranks = dup_text (msg->ranks);
    copy->text = dup_text (msg->text);
    copy->runs = calloc (msg->runs_count + 1, sizeof (*copy->runs));
    for (size_t i = 0; i < msg->runs_count; i++)
        run_copy (&copy->runs[i], &msg->runs[i]);
    return copy;
}

void sim_queue_init (struct sim_queue *queue)
{
    queue->first = NULL;
    queue->end = &queue->first;
    queue->count = 0;
}

void sim_put (struct sim_queue *queue, struct sim_msg *msg)
{
    msg->next = NULL;
    *queue->end = msg;
    queue->end = &msg->next;
    queue->count++;
}

struct sim_msg *sim_take (struct sim_queue *queue, bool in_order)
{
    struct sim_msg **p = &queue->first;
    struct sim_msg *msg;

    if (!queue->first)
        return NULL;
    if (!in_order && w.faults && queue->count > 1 && sim_chance (5))
        for (uint32_t skip = sim_below ((uint32_t)queue->count); skip; skip--)
            p = &(*p)->next;
    msg = *p;
    *p = msg->next;
    if (!*p)
        queue->end = p;
    queue->count--;
    msg->next = NULL;
    return msg;
}

void sim_queue_clear (struct sim_queue *queue)
{
    struct sim_msg *msg;

    while ((msg = queue->first)) {
        queue->first = msg->next;
        sim_msg_free (msg);
    }
    sim_queue_init (queue);
}

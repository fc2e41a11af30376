/* main.c - seeds: random faults under a virtual clock, invariants each step */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <getopt.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "proto/log.h"
#include "tests/sim/sim.h"

/* A killed process leaves no memory behind, and a longjmp out of it does. */
int __lsan_is_turned_off (void);
int __lsan_is_turned_off (void)
{
    return 1;
}

struct sim_world w;
static jmp_buf leave;
static int steps = 700;
static bool tell;

void sim_seed (uint64_t seed);

void sim_say (const char *fmt, ...)
{
    va_list ap;

    if (!w.story)
        return;
    fprintf (w.story,
             "%8lld.%03lld  ",
             (long long)w.now_ms / 1000,
             (long long)w.now_ms % 1000);
    va_start (ap, fmt);
    vfprintf (w.story, fmt, ap);
    va_end (ap);
    fputc ('\n', w.story);
}

void sim_broken (const char *which, const char *fmt, ...)
{
    va_list ap;
    char text[512];

    va_start (ap, fmt);
    vsnprintf (text, sizeof (text), fmt, ap);
    va_end (ap);
    if (w.story) {
        sim_say ("BROKEN %s: %s", which, text);
        sim_store_print (w.c.store);
    }
    printf ("# seed %llu step %llu: %s: %s\n# replay: build/tests/sim/sim "
            "--seed %llu --steps %d --story\n",
            (unsigned long long)w.seed,
            (unsigned long long)w.step,
            which,
            text,
            (unsigned long long)w.seed,
            steps);
    longjmp (leave, 1);
}

uint64_t sim_id (void)
{
    return ++w.ids;
}

void sim_id_text (char out[HK_ID_BYTES])
{
    snprintf (out,
              HK_ID_BYTES,
              "%08llx%024llx",
              (unsigned long long)++w.ids & 0xffffffff,
              (unsigned long long)w.seed);
}

void *sim_id_dup (const void *key)
{
    uint64_t *copy = malloc (sizeof (*copy));

    *copy = *(const uint64_t *)key;
    return copy;
}

void sim_id_end (void **key)
{
    free (*key);
    *key = NULL;
}

int sim_host_index (const char *name)
{
    return atoi (name + 1);
}

static void quiet (void *arg,
                   int level,
                   const struct hk_log_ids *ids,
                   const char *text)
{
    (void)arg;
    (void)level;
    (void)ids;
    (void)text;
}

static struct hk_conf *conf_make (void)
{
    static const struct {
        const char *section, *name, *values[4];
    } options[] = {
        { "link", "heartbeat", { "1s", "1s", "1s", "1s" } },
        { "link", "reconcile", { "3s", "3s", "3s", "3s" } },
        { "housekeeping", "timeout", { "10s", "10s", "30s", "20s" } },
        { "housekeeping", "kill-grace", { "500ms", "1s", "2s", "1s" } },
        { "housekeeping", "give-up", { "2s", "2s", "3s", "2s" } },
        { "housekeeping", "lost-after", { "4s", "5s", "6s", "4s" } },
        { "housekeeping", "release-after", { "0", "0", "all", "1s" } },
        { "housekeeping", "free-window", { "50ms", "50ms", "0", "500ms" } },
        { "housekeeping", "on-reboot", { "rerun", "rerun", "drain", "rerun" } },
        { "housekeeping",
          "per-node",
          { "serial", "serial", "parallel", "serial" } },
    };
    struct hk_error err;
    struct hk_conf *conf = hk_conf_load ("/nonexistent/hk.conf", 0, &err);

    for (size_t i = 0; conf && i < sizeof (options) / sizeof (options[0]); i++)
        if (hk_conf_set (conf,
                         options[i].section,
                         options[i].name,
                         options[i].values[sim_below (4)],
                         &err)
            < 0) {
            fprintf (stderr, "sim: %s\n", err.text);
            exit (1);
        }
    return conf;
}

static void world_open (uint64_t seed)
{
    memset (&w, 0, sizeof (w));
    sim_seed (seed);
    w.seed = seed;
    w.story = tell ? stdout : NULL;
    w.now_ms = 1000;
    w.wall = 1.7e9;
    w.faults = true;
    w.nodes_count = 20 + (int)sim_below (5);
    w.per_host = sim_chance (25) ? 2 : 1;
    w.conf = conf_make ();
    w.started = zhashx_new ();
    w.bad = zhashx_new ();
    w.c.store = sim_store_create ();
    sim_queue_init (&w.c.in);
    sim_queue_init (&w.m.to_c);
    sim_queue_init (&w.m.to_m);
    w.m.next_jobid = 1;
    for (int i = 0; i < w.nodes_count; i++) {
        struct sim_node *n = &w.nodes[i];
        n->i = i;
        w.m.slots[i] = i;
        snprintf (n->name, sizeof (n->name), "n%d", i);
        sim_queue_init (&n->to_c);
        sim_queue_init (&n->to_n);
    }
    sim_coord_start ();
    for (int i = 0; i < w.nodes_count; i++)
        sim_node_on (&w.nodes[i]);
    sim_manager_reload ();
}

static void world_close (void)
{
    sim_coord_kill ();
    for (int i = 0; i < w.nodes_count; i++) {
        sim_node_off (&w.nodes[i]);
        free (w.m.drained[i]);
    }
    for (size_t i = 0; i < w.m.jobs_count; i++) {
        hk_rankset_destroy (w.m.jobs[i].ranks);
        hk_rankset_destroy (w.m.jobs[i].booked);
        free (w.m.jobs[i].R);
    }
    free (w.m.jobs);
    sim_queue_clear (&w.m.to_c);
    sim_queue_clear (&w.m.to_m);
    sim_queue_clear (&w.c.in);
    sim_store_destroy (w.c.store);
    zhashx_destroy (&w.started);
    zhashx_destroy (&w.bad);
    hk_conf_destroy (w.conf);
}

/* One message of one queue: delivered, lost, or delivered twice. */
static void deliver (void)
{
    uint32_t pick = sim_below ((uint32_t)w.nodes_count * 2 + 8);
    struct sim_msg *msg, *twice = NULL;
    struct sim_node *n;
    bool to_coord = pick % 2 == 0;

    if (pick >= (uint32_t)w.nodes_count * 2) {
        msg = sim_take (to_coord ? &w.m.to_c : &w.m.to_m, true);
        if (msg && to_coord)
            sim_coord_deliver (msg);
        else if (msg) {
            sim_manager_deliver (msg);
            sim_msg_free (msg);
        }
        return;
    }
    n = &w.nodes[pick / 2];
    if (n->cut || !(msg = sim_take (to_coord ? &n->to_c : &n->to_n, false)))
        return;
    if (w.faults && sim_chance (3)) {
        sim_msg_free (msg);
        return;
    }
    if (w.faults && sim_chance (3))
        twice = sim_msg_copy (msg);
    if (to_coord)
        sim_coord_deliver (msg);
    else {
        sim_node_deliver (n, msg);
        sim_msg_free (msg);
    }
    if (twice)
        sim_put (to_coord ? &n->to_c : &n->to_n, twice);
}

static void advance (int64_t ms)
{
    w.now_ms += ms;
    w.wall += (double)ms / 1000;
    for (int i = 0; i < w.nodes_count; i++)
        sim_node_tick (&w.nodes[i]);
    sim_manager_tick ();
}

static void fault (void)
{
    struct sim_node *n = &w.nodes[sim_below ((uint32_t)w.nodes_count)];

    switch (sim_below (15)) {
    case 0:
        sim_coord_kill ();
        break;
    case 1:
        w.c.crash_in = w.c.core ? 1 + (int)sim_below (40) : 0;
        break;
    case 2:
        sim_hkd_kill (n);
        break;
    case 3:
        sim_node_off (n);
        break;
    case 4:
        n->cut = !n->cut;
        sim_say ("%s: %s", n->name, n->cut ? "cut off" : "healed");
        break;
    case 5:
        if (sim_chance (40))
            sim_manager_reload ();
        break;
    case 6:
        sim_manager_unlink ();
        break;
    case 7:
        w.c.store_fails = !w.c.store_fails && sim_chance (50);
        break;
    case 8:
        sim_admin ();
        break;
    case 9:
        if (sim_chance (20))
            sim_unit_lost (n);
        else /* as of an older run that was given up */
            n->left_ms = w.now_ms + 12000;
        break;
    case 10: { /* the node loses its session */
        n->session = 0;
        n->welcome = false;
        n->hello_ms = w.now_ms + sim_below (1000);
        break;
    }
    case 11: {
        struct sim_msg *msg = sim_msg (SIM_KILL);
        msg->jobid = w.m.next_jobid - 1 - sim_below (3);
        if (sim_chance (20) && msg->jobid)
            sim_put (&w.m.to_c, msg);
        else
            sim_msg_free (msg);
        break;
    }
    case 12:
        sim_purge ();
        break;
    default: /* what is down comes up */
        sim_coord_start ();
        sim_node_on (n);
        sim_hkd_start (n);
        break;
    }
}

static void one_step (void)
{
    uint32_t r = sim_below (100);

    if (r < 45)
        for (int i = 0; i < 12; i++)
            deliver ();
    else if (r < 68)
        sim_coord_turn ();
    else if (r < 82)
        advance (1 + sim_below (sim_chance (10) ? 3000 : 150));
    else if (r < 87)
        sim_job_start ();
    else if (r < 90)
        sim_job_end ();
    else if (w.faults)
        fault ();
}

static void settle (void)
{
    sim_say ("---- the faults stop ----");
    w.faults = false;
    w.c.store_fails = false;
    w.c.crash_in = 0;
    sim_coord_start ();
    for (int i = 0; i < w.nodes_count; i++) {
        w.nodes[i].cut = false;
        sim_node_on (&w.nodes[i]);
        sim_hkd_start (&w.nodes[i]);
    }
    for (int round = 0; round < 1200; round++) {
        if (round == 100) /* what runs then ends; nothing new is placed */
            sim_jobs_end ();
        for (int i = 0; i < 250; i++)
            deliver ();
        sim_coord_turn ();
        sim_check ();
        advance (round < 600 ? 50 : 250);
        if (round > 200 && round % 100 == 0 && !sim_store_open (w.c.store)
            && round >= 800)
            break;
    }
    sim_say ("C: %zu inputs wait, stuck %d, manager %llu of %llu",
             w.c.in.count,
             w.c.turn ? hkc_turn_is_stuck (w.c.turn) : -1,
             (unsigned long long)w.c.manager,
             (unsigned long long)w.m.session);
    sim_check_settled ();
}

static int run_seed (uint64_t seed)
{
    volatile int rc = 0;

    world_open (seed);
    if (setjmp (leave) == 0) {
        for (w.step = 1; w.step <= (uint64_t)steps; w.step++) {
            one_step ();
            sim_check ();
        }
        settle ();
    } else
        rc = 1;
    w.faults = false;
    w.story = NULL;
    world_close ();
    return rc;
}

int main (int argc, char **argv)
{
    static const struct option longs[] = {
        { "seed", required_argument, NULL, 's' },
        { "seeds", required_argument, NULL, 'n' },
        { "steps", required_argument, NULL, 't' },
        { "story", no_argument, NULL, 'y' },
        { NULL, 0, NULL, 0 },
    };
    uint64_t seed = 1, seeds = 1000, bad = 0, done = 0;
    uint64_t runs = 0, frees = 0, crashes = 0, hellos = 0, blocked = 0;
    int c;

    while ((c = getopt_long (argc, argv, "", longs, NULL)) >= 0) {
        if (c == 's')
            seed = strtoull (optarg, NULL, 10), seeds = 1;
        else if (c == 'n')
            seeds = strtoull (optarg, NULL, 10);
        else if (c == 't')
            steps = atoi (optarg);
        else if (c == 'y')
            tell = true;
        else
            return 2;
    }
    zsys_handler_set (NULL);
    hk_log_init ("sim", LOG_EMERG, quiet, NULL);
    for (uint64_t i = 0; i < seeds && bad < 3; i++) {
        bad += (uint64_t)run_seed (seed + i);
        done++;
        runs += w.runs;
        frees += w.frees;
        crashes += w.crashes;
        blocked += w.blocked;
        hellos += w.hellos;
    }
    printf ("# %llu seeds of %d steps: %llu runs, %llu frees, %llu crashes, "
            "%llu hellos, %llu times blocked\n",
            (unsigned long long)done,
            steps,
            (unsigned long long)runs,
            (unsigned long long)frees,
            (unsigned long long)crashes,
            (unsigned long long)hellos,
            (unsigned long long)blocked);
    printf ("%s 1 - what must always hold holds\n1..1\n",
            bad ? "not ok" : "ok");
    return bad != 0;
}

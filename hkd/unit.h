/* unit.h - the transient units of systemd that run the scripts */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HKD_UNIT_H
#define HKD_UNIT_H

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>
#include "proto/conf.h"
#include "proto/error.h"
#include "proto/run.h"
#include "hkd/run.h"
#include "hkd/scripts.h"

/* One unit a run: flux-housekeeping-JOBID.service, or -JOBID-N where that name
 * is taken, oneshot, with a command for each script.  Nothing here blocks: what
 * comes of a call arrives as an event, never before the call returns.
 *
 * Each unit reads its run's .go file (runfile.h) as an environment file, which
 * systemd does anew before each command: where the file is gone no further
 * script starts.  StopUnit would not do: systemd 252 goes on with the next
 * command of a oneshot unit while it stops it, unless the one before failed.
 */
struct hkd_units;

struct hkd_units_calls {
    /* UNIT, STARTED, START_FAILED, SCRIPTS, FINISHED, GONE, without times.
     * -1: there is no such run.
     */
    int (*event) (void *arg, struct hkd_event *ev);
    void (*adopted) (void *arg); /* each UNIT was told */
    /* systemd no longer has the unit: the run's files may be removed. */
    void (*forgotten) (void *arg, uint64_t alloc, int attempt);
};

struct hkd_units *hkd_units_create (sd_event *event, /* borrowed, as conf */
                                    const struct hk_conf *conf,
                                    const char *host,
                                    const struct hkd_units_calls *calls,
                                    void *arg);
void hkd_units_destroy (struct hkd_units *units); /* the units run on */
void hkd_units_set_conf (struct hkd_units *units, const struct hk_conf *conf);

/* Ask systemd for the units there are; then `adopted`. */
void hkd_units_adopt (struct hkd_units *units);
/* Ask again, only to know which are foreign. */
void hkd_units_look (struct hkd_units *units);
/* A start may come: connect already. */
void hkd_units_expect (struct hkd_units *units, bool expected);
/* Names of units like ours that are not, with spaces between; "" if none. */
const char *hkd_units_foreign (const struct hkd_units *units);

/* Copies start; takes the list, also on failure. */
int hkd_unit_prepare (struct hkd_units *units,
                      const struct hk_start *start,
                      struct hkd_scripts *scripts_take,
                      struct hk_error *err);
/* Those of a prepared unit, borrowed; NULL if there is none. */
const struct hkd_scripts *hkd_unit_scripts (const struct hkd_units *units,
                                            uint64_t alloc,
                                            int attempt);
void hkd_unit_start (struct hkd_units *units, uint64_t alloc, int attempt);
/* No further script of it starts, and each process of it gets the signal. */
void hkd_unit_signal (struct hkd_units *units,
                      uint64_t alloc,
                      int attempt,
                      int signum);
/* The unit's cgroup as systemd names it; "" if there is none, NULL while it is
 * not known.
 */
const char *hkd_unit_cgroup (const struct hkd_units *units,
                             uint64_t alloc,
                             int attempt);
/* Each that systemd has, until fn returns true. */
struct hkd_unit_view {
    uint64_t alloc;
    int attempt;
    const char *name;
    const char *cgroup; /* as hkd_unit_cgroup gives it */
};
typedef bool (*hkd_unit_f) (void *arg, const struct hkd_unit_view *view);
bool hkd_units_each (const struct hkd_units *units, hkd_unit_f fn, void *arg);
void hkd_unit_forget (struct hkd_units *units, uint64_t alloc, int attempt);

/* When to call _tick, CLOCK_BOOTTIME in ms; INT64_MAX: never. */
int64_t hkd_units_deadline (const struct hkd_units *units);
void hkd_units_tick (struct hkd_units *units, int64_t now_ms);

#endif

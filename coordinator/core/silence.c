/* silence.c - hosts that say nothing for lost-after */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <stdlib.h>
#include <syslog.h>
#include "proto/duration.h"
#include "coordinator/core/internal.h"

/* So many at once, and this share of those that hold ranks, is no fault of
 * theirs but of the head or its network: say so and drain nobody.
 */
enum { TOGETHER_COUNT = 8, TOGETHER_PERCENT = 25 };

static bool waits_for (const struct hkc_host *host)
{
    for (const struct hkc_part *p = host->parts; p; p = p->next_on_host)
        if (p->phase < HKC_ENDED && p->alloc->begun && p->covered)
            return true;
    return false;
}

static int64_t silent_ms (const struct hkc_core *core,
                          const struct hkc_host *host)
{
    int64_t since = host->contact_ms > core->ready_ms ? host->contact_ms
                                                      : core->ready_ms;

    return core->now_ms - since;
}

bool hkc_is_silent (const struct hkc_core *core, const struct hkc_host *host)
{
    int64_t after = hk_conf_policy (core->conf, host->shown)->lost_after_ms;

    return host->t_seen > 0 && after != HK_DURATION_INF
           && silent_ms (core, host) >= after && waits_for (host);
}

static void lose (struct hkc_core *core, struct hkc_host *host)
{
    char buf[HK_DURATION_TEXT_BYTES];
    char *reason = hkc_arena_fmt (
        core,
        "housekeeping: no contact for %s",
        hk_duration_pretty (silent_ms (core, host), buf));

    host->lost = true;
    hkc_say (core,
             LOG_ERR,
             host->parts->alloc->jobid,
             host->shown,
             "no contact for %s, lost",
             buf);
    hkc_cause_add (core, host, HKC_CAUSE_LOST, 0, reason);
}

void hkc_silence_tick (struct hkc_core *core)
{
    size_t waiting = 0, silent = 0, lost = 0;
    int64_t step = core->conf->policy.lost_after_ms / 10;

    if (core->now_ms < core->scan_ms)
        return;
    core->scan_ms = core->now_ms
                    + (step < 100    ? 100
                       : step > 5000 ? 5000
                                     : step);
    for (struct hkc_host *h = zhashx_first (core->hosts); h;
         h = zhashx_next (core->hosts)) {
        if (h->parts && waits_for (h)) {
            waiting++;
            lost += h->lost;
            silent += hkc_is_silent (core, h);
        }
    }
    if (silent == 0 || silent == lost) {
        core->silence_alarm = false;
        return;
    }
    if (silent - lost >= TOGETHER_COUNT
        && silent * 100 >= waiting * TOGETHER_PERCENT) {
        if (!core->silence_alarm)
            hkc_say (core,
                     LOG_ALERT,
                     0,
                     NULL,
                     "%zu hosts fell silent together: look at the head and "
                     "its network; nothing is drained for it",
                     silent);
        core->silence_alarm = true;
        return;
    }
    core->silence_alarm = false;
    for (struct hkc_host *h = zhashx_first (core->hosts); h;
         h = zhashx_next (core->hosts))
        if (h->parts && !h->lost && hkc_is_silent (core, h))
            lose (core, h);
}

int64_t hkc_silence_deadline (const struct hkc_core *core)
{
    return core->held_count ? core->scan_ms : INT64_MAX;
}

/* run_blocked.c - a run that waits until processes of older ones are gone */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include "proto/duration.h"
#include "hkd/run_impl.h"

/* It has neither unit nor file: after a restart of hkd the coordinator, which
 * has it as waiting, says START again.
 */

void hkd_run_blocked (struct hkd_runs *runs,
                      struct hkd_run *run,
                      const char *reason)
{
    char name[HKD_SUBJECT_BYTES];
    bool first = !run->blocked;

    if (run->pub.phase != HK_RUN_STARTING)
        return;
    run->blocked = true;
    run->look_wait_ms = first ? HKD_BLOCKED_FIRST_MS : run->look_wait_ms * 2;
    if (run->look_wait_ms > HKD_BLOCKED_MOST_MS)
        run->look_wait_ms = HKD_BLOCKED_MOST_MS;
    run->look_ms = runs->now_ms + run->look_wait_ms;
    if (!strcmp (run->pub.reason, reason))
        return;
    hkd_text_set (&run->pub.reason, reason);
    if (first)
        hkd_say (runs,
                 LOG_WARNING,
                 run,
                 "%s: %s",
                 hkd_run_subject (run, name),
                 reason);
    hkd_report (runs, run);
}

void hkd_run_unblocked (struct hkd_runs *runs, struct hkd_run *run)
{
    char name[HKD_SUBJECT_BYTES];

    if (!run->blocked)
        return;
    run->blocked = false;
    hkd_text_set (&run->pub.reason, "");
    hkd_say (runs,
             LOG_INFO,
             run,
             "%s: nothing is in its way any more",
             hkd_run_subject (run, name));
}

void hkd_run_blocked_end (struct hkd_runs *runs,
                          struct hkd_run *run,
                          enum hk_outcome outcome,
                          const char *why)
{
    char reason[HK_REASON_BYTES];

    snprintf (reason,
              sizeof (reason),
              "%s%s%s",
              why,
              *why ? "; " : "",
              run->pub.reason);
    hkd_run_ended (runs, run, outcome, reason);
}

void hkd_run_blocked_tick (struct hkd_runs *runs, struct hkd_run *run)
{
    char limit[HK_DURATION_TEXT_BYTES], why[64];

    if (runs->now_ms >= hkd_run_limit (run)) {
        snprintf (why,
                  sizeof (why),
                  "did not begin within %s",
                  hk_duration_encode (run->limits.timeout_ms, limit));
        hkd_run_blocked_end (runs, run, HK_OUTCOME_TIMEOUT, why);
    } else if (runs->now_ms >= run->look_ms) {
        run->look_ms = INT64_MAX; /* until there is an answer */
        hkd_act (runs, HKD_ACT_PREPARE, run);
    }
}

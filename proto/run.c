/* run.c - names of outcomes and of the phases of a run */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "proto/run.h"

#include <string.h>

static const char *const outcome_names[HK_OUTCOME_COUNT] = {
    [HK_OUTCOME_NONE] = "",
    [HK_OUTCOME_SUCCESS] = "success",
    [HK_OUTCOME_EXIT_CODE] = "exit-code",
    [HK_OUTCOME_SIGNAL] = "signal",
    [HK_OUTCOME_TIMEOUT] = "timeout",
    [HK_OUTCOME_KILLED] = "killed",
    [HK_OUTCOME_START_FAILED] = "start-failed",
    [HK_OUTCOME_VANISHED] = "vanished",
    [HK_OUTCOME_REBOOTED] = "rebooted",
    [HK_OUTCOME_UNKNOWN] = "unknown",
    [HK_OUTCOME_SKIPPED] = "skipped",
    [HK_OUTCOME_FORCED] = "forced",
};

static const char *const phase_names[] = {
    [HK_RUN_STARTING] = "starting",
    [HK_RUN_RUNNING] = "running",
    [HK_RUN_STOPPING] = "stopping",
    [HK_RUN_ENDED] = "ended",
};

const char *hk_outcome_name (enum hk_outcome outcome)
{
    if ((unsigned)outcome >= HK_OUTCOME_COUNT)
        return "";
    return outcome_names[outcome];
}

enum hk_outcome hk_outcome_decode (const char *name)
{
    if (!name)
        return HK_OUTCOME_NONE;
    for (int i = HK_OUTCOME_SUCCESS; i < HK_OUTCOME_COUNT; i++)
        if (strcmp (name, outcome_names[i]) == 0)
            return (enum hk_outcome)i;
    return HK_OUTCOME_NONE;
}

const char *hk_run_phase_name (enum hk_run_phase phase)
{
    if (phase < HK_RUN_STARTING || phase > HK_RUN_ENDED)
        return "";
    return phase_names[phase];
}

int hk_run_phase_decode (const char *name)
{
    if (!name)
        return -1;
    for (int i = HK_RUN_STARTING; i <= HK_RUN_ENDED; i++)
        if (strcmp (name, phase_names[i]) == 0)
            return i;
    return -1;
}

bool hk_outcome_is_failure (enum hk_outcome outcome)
{
    return outcome != HK_OUTCOME_NONE && outcome != HK_OUTCOME_SUCCESS
           && outcome != HK_OUTCOME_SKIPPED && outcome != HK_OUTCOME_FORCED;
}

/* clock.c - the times that this host tells */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <time.h>

#include "proto/clock.h"

/* These clocks are there on every Linux that systemd runs on, so that reading
 * them does not fail.
 */
static int64_t read_us (clockid_t clock)
{
    struct timespec ts = { 0 };

    clock_gettime (clock, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t hk_boot_ms (void)
{
    return read_us (CLOCK_BOOTTIME) / 1000;
}

double hk_wall (void)
{
    return (double)read_us (CLOCK_REALTIME) / 1e6;
}

int64_t hk_monotonic_us (void)
{
    return read_us (CLOCK_MONOTONIC);
}

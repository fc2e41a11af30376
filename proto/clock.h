/* clock.h - the times that this host tells */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HK_CLOCK_H
#define HK_CLOCK_H

#include <stdint.h>

/* CLOCK_BOOTTIME: deadlines and ages.  It goes on while the host sleeps and is
 * never set.
 */
int64_t hk_boot_ms (void);

/* Seconds since the epoch, for people and records: it may be set.  In whole
 * microseconds, which are short in JSON.
 */
double hk_wall (void);

/* CLOCK_MONOTONIC, as systemd wants it with RELOADING=1. */
int64_t hk_monotonic_us (void);

#endif

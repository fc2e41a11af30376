/* limits.h - the limits of a run, and how its file keeps them */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HKD_LIMITS_H
#define HKD_LIMITS_H

#include <stddef.h>
#include <stdint.h>
#include "proto/error.h"

/* As the configuration was when the run began; HK_DURATION_INF: none. */
struct hkd_limits {
    int64_t timeout_ms;
    int64_t kill_grace_ms;
    int64_t give_up_ms;
};

/* The text of a JSON object with "limits" as its last field; the caller frees
 * it.  NULL if memory is gone.
 */
char *hkd_limits_append (const char *object,
                         size_t len,
                         const struct hkd_limits *limits);
/* 1, 0 if the object has none, -1 with EINVAL if they cannot be. */
int hkd_limits_read (const char *object,
                     size_t len,
                     struct hkd_limits *limits,
                     struct hk_error *err);

#endif

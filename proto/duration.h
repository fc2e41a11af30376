/* duration.h - RFC 23 durations: 30s, 5m, 1.5h, 2d, 50ms, infinity */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HK_DURATION_H
#define HK_DURATION_H

#include <stdint.h>
#include "proto/error.h"

/* "inf" and "infinity".  Never reaches JSON or arithmetic: callers compare. */
#define HK_DURATION_INF INT64_MAX

enum { HK_DURATION_TEXT_BYTES = 32 };

/* Milliseconds, at most 100 years or HK_DURATION_INF; a number without a unit
 * is seconds; what is above 0 never becomes 0.  -1 with EINVAL (not a
 * duration, negative, NaN) or ERANGE.
 */
int hk_duration_decode (const char *text, int64_t *ms, struct hk_error *err);
/* Shortest exact RFC 23 text ("90m", "0.5s"); buf of HK_DURATION_TEXT_BYTES. */
char *hk_duration_encode (int64_t ms, char *buf);
/* For a person, two units at most: "3d 4h", "12m 5s", "0.4s". */
char *hk_duration_pretty (int64_t ms, char *buf);

#endif

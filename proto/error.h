/* error.h - one line of text beside errno: why a call failed */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HK_ERROR_H
#define HK_ERROR_H

#include <stdarg.h>

enum { HK_ERROR_BYTES = 512 };

/* Caller's storage; no destructor.  Every function that takes one accepts
 * NULL and writes it only on failure.
 */
struct hk_error {
    char text[HK_ERROR_BYTES];
};

/* Set the text where the failure happens, and errno.  Returns -1 always, so
 * that `return hk_error_set (err, EINVAL, "...")` reads well.  Text that does
 * not fit is cut at a UTF-8 boundary.
 */
int hk_error_set (struct hk_error *err, int errnum, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));

/* As above with ": strerror (errnum)" appended. */
int hk_error_errno (struct hk_error *err, int errnum, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));

/* Put "PREFIX: " before the text on the way up.  Keeps errno; returns -1. */
int hk_error_prefix (struct hk_error *err, const char *fmt, ...)
    __attribute__ ((format (printf, 2, 3)));

#endif

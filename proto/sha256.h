/* sha256.h - SHA-256 (FIPS 180-4) of a text */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HK_SHA256_H
#define HK_SHA256_H

#include <stddef.h>

enum { HK_SHA256_HEX_BYTES = 65 };

/* Lower case hex with NUL into a buffer of HK_SHA256_HEX_BYTES. */
void hk_sha256_hex (const void *data, size_t len, char *hex);

#endif

/* jobid.h - RFC 19 job ids in their spellings by digits */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HK_JOBID_H
#define HK_JOBID_H

#include <stddef.h>
#include <stdint.h>
#include "proto/error.h"

enum hk_jobid_kind {
    HK_JOBID_DEC,
    HK_JOBID_HEX,      /* 0x1f2e */
    HK_JOBID_DOTHEX,   /* 0000.1a2b.3c4d.5e6f */
    HK_JOBID_F58,      /* with the letter U+0192 */
    HK_JOBID_F58PLAIN, /* with a plain f */
};

enum { HK_JOBID_TEXT_BYTES = 128 };

/* Any of these spellings, blanks around it are ignored.  -1 with EINVAL, or
 * ERANGE above 64 bits.  RFC 19's words and emoji are refused by name: they
 * need tables of 1633 words and 576 characters that nobody types here.
 */
int hk_jobid_decode (const char *text, uint64_t *id, struct hk_error *err);
/* Into a buffer of at least HK_JOBID_TEXT_BYTES; returns buf. */
char *hk_jobid_encode (uint64_t id, enum hk_jobid_kind kind, char *buf);

#endif

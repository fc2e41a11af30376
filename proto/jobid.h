/* jobid.h - RFC 19 job ids in each of their spellings */
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
    HK_JOBID_WORDS,
};

enum { HK_JOBID_TEXT_BYTES = 128 };

/* Any spelling.  -1 with EINVAL. */
int hk_jobid_decode (const char *text, uint64_t *id, struct hk_error *err);
/* Into a buffer of at least HK_JOBID_TEXT_BYTES; returns buf. */
char *hk_jobid_encode (uint64_t id, enum hk_jobid_kind kind, char *buf);

#endif

/* trust.h - may root act on this file? */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HK_TRUST_H
#define HK_TRUST_H

#include "proto/error.h"

/* 0 if path and every folder above it are root's and nobody else may write
 * them (a sticky folder does not help).  Symbolic links are followed and each
 * step of the way is checked the same; more than 40 links: ELOOP.  -1 with
 * EPERM and a text that names the one path at fault and its owner or mode, or
 * the errno of the system (ENOENT, EACCES).
 */
int hk_trust_check (const char *path, struct hk_error *err);

#endif

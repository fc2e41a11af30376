/* resource.h - R, the resource set of RFC 20 */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HK_RESOURCE_H
#define HK_RESOURCE_H

#include <stdbool.h>
#include <stdint.h>
#include "proto/error.h"
#include "proto/rankset.h"

struct hk_resource;

/* At most HK_R_BYTES.  NULL with EINVAL (ERANGE for a number over the limits,
 * ENOMEM) and a text that says what is wrong: not JSON (line, column), version
 * not 1, R_lite missing or empty, a rank named twice, fewer or more hosts than
 * ranks, a host name that is none.  R without a nodelist is refused: we act by
 * host.
 */
struct hk_resource *hk_resource_decode (const char *text, struct hk_error *err);
void hk_resource_destroy (struct hk_resource *res); /* NULL is fine */
/* Nothing at all, which is no R of a job but may be a scheduler's account.
 * NULL with ENOMEM.
 */
struct hk_resource *hk_resource_create_empty (void);

/* Compact JSON with sorted keys, `scheduling` kept: equal R gives equal text.
 * The caller frees the result.
 */
char *hk_resource_encode (const struct hk_resource *res);

const struct hk_rankset *hk_resource_ranks (const struct hk_resource *res);
/* Host of a rank, borrowed; NULL if the rank is not in R.  RFC 20: hosts of
 * the nodelist belong to the ranks of all R_lite entries in ascending order.
 */
const char *hk_resource_host (const struct hk_resource *res, uint32_t rank);
/* All ranks whose host has that name (exact), NULL if none; borrowed.  Several
 * ranks may share a host.
 */
const struct hk_rankset *hk_resource_host_ranks (const struct hk_resource *res,
                                                 const char *host);

/* The fragment for some of the ranks, as JSON text that the caller frees:
 * R_lite entries cut down (each keeps its own children), nodelist, properties
 * (cut to the ranks; empty ones dropped), starttime and expiration kept,
 * `scheduling` dropped (RFC 27).  NULL with EINVAL if ranks is not within R or
 * is empty.
 */
char *hk_resource_fragment (const struct hk_resource *res,
                            const struct hk_rankset *ranks,
                            struct hk_error *err);

/* Cores of a rank as an idset, for comparing with a scheduler's account;
 * borrowed; NULL if not in R.
 */
const char *hk_resource_cores (const struct hk_resource *res, uint32_t rank);

/* SHA-256 of hk_resource_encode, hex, 65 bytes with NUL; kept with the history
 * of a closed allocation so that the same end said again is known.
 */
void hk_resource_digest (const struct hk_resource *res, char *hex);

#endif

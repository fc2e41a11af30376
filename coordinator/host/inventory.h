/* inventory.h - what Flux's resource.status says of hosts and ranks */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HKC_INVENTORY_H
#define HKC_INVENTORY_H

#include <stdbool.h>
#include <stdint.h>
#include "proto/error.h"
#include "proto/hostlist.h"
#include "proto/rankset.h"

/* From the payload of the answer.  NULL with EINVAL: what is not one. */
struct hkc_inventory;
struct hkc_inventory *hkc_inventory_decode (const char *text,
                                            struct hk_error *err);
void hkc_inventory_destroy (struct hkc_inventory *inv);
/* Index is the rank; where a rank is missing stands a name that is no host's.
 */
struct hk_hostlist *hkc_inventory_hosts (const char *text,
                                         struct hk_error *err);
/* NULL: not in the inventory. */
const struct hk_rankset *hkc_inventory_ranks (const struct hkc_inventory *inv,
                                              const char *host);
bool hkc_inventory_excluded (const struct hkc_inventory *inv, uint32_t rank);
/* NULL: not drained; "" for want of a reason. */
const char *hkc_inventory_drained (const struct hkc_inventory *inv,
                                   uint32_t rank);

/* All ranks of the inventory; borrowed. */
const struct hk_rankset *hkc_inventory_all (const struct hkc_inventory *inv);
/* NULL: not in the inventory; borrowed. */
const char *hkc_inventory_host (const struct hkc_inventory *inv, uint32_t rank);

#endif

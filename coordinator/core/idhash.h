/* idhash.h - a hash whose keys are 64-bit numbers inside the items */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HKC_IDHASH_H
#define HKC_IDHASH_H

#include <czmq.h>

/* Keys are given as uint64_t *; the one that an item is inserted with must
 * stay where it is and keep its value as long as the item is in.
 */
zhashx_t *hkc_idhash_create (void);

#endif

/* idhash.c - a hash whose keys are 64-bit numbers inside the items */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <stdint.h>
#include "coordinator/core/idhash.h"

static size_t id_hash (const void *key)
{
    uint64_t x = *(const uint64_t *)key;

    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdULL;
    x ^= x >> 33;
    return (size_t)x;
}

static int id_compare (const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

zhashx_t *hkc_idhash_create (void)
{
    zhashx_t *hash = zhashx_new ();

    zhashx_set_key_hasher (hash, id_hash);
    zhashx_set_key_comparator (hash, id_compare);
    zhashx_set_key_duplicator (hash, NULL);
    zhashx_set_key_destructor (hash, NULL);
    return hash;
}

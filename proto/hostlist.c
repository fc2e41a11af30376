/* hostlist.c - an ordered list of host names, each found in constant time */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/hostlist.h"
#include "proto/hostlist_name.h"
#include "proto/limits.h"

/* slots is an open hash of indexes into names, one more than the index, 0 for
 * an empty slot; of names that are equal only the first is in it. It is a
 * power of two of at least twice as many slots as names.
 */
struct hk_hostlist {
    char **names;
    size_t count;
    size_t size;
    uint32_t *slots;
    size_t slots_count;
};

struct hk_hostlist *hk_hostlist_create (void)
{
    return calloc (1, sizeof (struct hk_hostlist));
}

void hk_hostlist_destroy (struct hk_hostlist *hosts)
{
    if (hosts) {
        int saved_errno = errno;
        for (size_t i = 0; i < hosts->count; i++)
            free (hosts->names[i]);
        free (hosts->names);
        free (hosts->slots);
        free (hosts);
        errno = saved_errno;
    }
}

/* FNV-1a */
static size_t hash_name (const char *name)
{
    uint64_t hash = UINT64_C (14695981039346656037);

    for (; *name; name++) {
        hash ^= (unsigned char)*name;
        hash *= UINT64_C (1099511628211);
    }
    return (size_t)(hash ^ hash >> 32);
}

/* The slot that has name, or the empty one where it belongs. */
static uint32_t *find_slot (const struct hk_hostlist *hosts, const char *name)
{
    size_t mask = hosts->slots_count - 1;
    size_t i = hash_name (name) & mask;

    while (hosts->slots[i] != 0
           && strcmp (hosts->names[hosts->slots[i] - 1], name) != 0)
        i = (i + 1) & mask;
    return &hosts->slots[i];
}

static void index_names (struct hk_hostlist *hosts)
{
    memset (hosts->slots, 0, hosts->slots_count * sizeof (*hosts->slots));
    for (size_t i = 0; i < hosts->count; i++) {
        uint32_t *slot = find_slot (hosts, hosts->names[i]);

        if (*slot == 0)
            *slot = (uint32_t)i + 1;
    }
}

static int grow (struct hk_hostlist *hosts)
{
    size_t size = hosts->size ? hosts->size * 2 : 8;
    char **names = realloc (hosts->names, size * sizeof (*names));
    uint32_t *slots;

    if (!names)
        return -1;
    hosts->names = names;
    slots = calloc (size * 2, sizeof (*slots));
    if (!slots)
        return -1;
    free (hosts->slots);
    hosts->slots = slots;
    hosts->slots_count = size * 2;
    hosts->size = size;
    index_names (hosts);
    return 0;
}

/* Printable without blanks or commas: the least that a name must be. */
static bool can_be_listed (const char *name)
{
    size_t len = strnlen (name, HK_HOST_NAME_BYTES);

    if (len == 0 || len >= HK_HOST_NAME_BYTES)
        return false;
    for (; *name; name++) {
        if (!isgraph ((unsigned char)*name) || (*name & 0x80) || *name == ',')
            return false;
    }
    return true;
}

int hk_hostlist_append (struct hk_hostlist *hosts, const char *name)
{
    uint32_t *slot;
    char *copy;

    if (!can_be_listed (name)) {
        errno = EINVAL;
        return -1;
    }
    if (hosts->count >= HK_HOSTLIST_LIMIT) {
        errno = ERANGE;
        return -1;
    }
    if (hosts->count == hosts->size && grow (hosts) < 0)
        return -1;
    copy = strdup (name);
    if (!copy)
        return -1;
    hosts->names[hosts->count++] = copy;
    slot = find_slot (hosts, copy);
    if (*slot == 0)
        *slot = (uint32_t)hosts->count;
    return 0;
}

size_t hk_hostlist_count (const struct hk_hostlist *hosts)
{
    return hosts->count;
}

const char *hk_hostlist_nth (const struct hk_hostlist *hosts, size_t n)
{
    return n < hosts->count ? hosts->names[n] : NULL;
}

char *hk_hostlist_encode (const struct hk_hostlist *hosts)
{
    return hk_hostlist_encode_names ((const char *const *)hosts->names,
                                     hosts->count);
}

long hk_hostlist_find (const struct hk_hostlist *hosts, const char *name)
{
    if (hosts->count == 0)
        return -1;
    return (long)*find_slot (hosts, name) - 1;
}

static int compare_names (const void *a, const void *b)
{
    const char *name_a = *(char *const *)a;
    const char *name_b = *(char *const *)b;
    struct hk_hostlist_name split_a;
    struct hk_hostlist_name split_b;
    int rc;

    hk_hostlist_name_split (name_a, &split_a);
    hk_hostlist_name_split (name_b, &split_b);
    rc = hk_hostlist_name_compare (&split_a, &split_b);
    return rc != 0 ? rc : strcmp (name_a, name_b);
}

void hk_hostlist_uniq (struct hk_hostlist *hosts)
{
    size_t kept = 0;

    if (hosts->count == 0)
        return;
    qsort (hosts->names, hosts->count, sizeof (*hosts->names), compare_names);
    for (size_t i = 0; i < hosts->count; i++) {
        if (kept > 0 && !strcmp (hosts->names[kept - 1], hosts->names[i]))
            free (hosts->names[i]);
        else
            hosts->names[kept++] = hosts->names[i];
    }
    hosts->count = kept;
    index_names (hosts);
}

static bool is_label_char (char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
           || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

bool hk_host_name_valid (const char *name)
{
    size_t label = 0;

    if (strnlen (name, HK_HOST_NAME_BYTES) >= HK_HOST_NAME_BYTES)
        return false;
    for (;; name++) {
        if (*name == '.' || *name == '\0') {
            if (label == 0 || label > 63)
                return false;
            if (*name == '\0')
                return true;
            label = 0;
        } else if (!is_label_char (*name) || (label == 0 && *name == '-'))
            return false;
        else
            label++;
    }
}

void hk_host_name_short (const char *name, char *out)
{
    size_t len = strcspn (name, ".");

    if (len >= HK_HOST_NAME_BYTES)
        len = HK_HOST_NAME_BYTES - 1;
    memcpy (out, name, len);
    out[len] = '\0';
}

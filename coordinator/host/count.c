/* count.c - sets of resources: what is added and taken away, by rank */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <czmq.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "proto/hostlist.h"
#include "coordinator/host/count.h"

/* One kind of what a rank has: core, gpu. */
struct child {
    struct child *next;
    struct hk_rankset *ids;
    char name[];
};

struct slot {
    char *host;
    struct child *children;
};

struct hkc_count {
    struct slot *slots; /* index is the rank */
    uint32_t size;
    struct hk_rankset *ranks; /* that have something */
};

struct hkc_count *hkc_count_create (void)
{
    struct hkc_count *count = calloc (1, sizeof (*count));

    if (count)
        count->ranks = hk_rankset_create ();
    return count;
}

static void slot_clear (struct slot *slot)
{
    struct child *child;

    while ((child = slot->children)) {
        slot->children = child->next;
        hk_rankset_destroy (child->ids);
        free (child);
    }
    free (slot->host);
    slot->host = NULL;
}

void hkc_count_destroy (struct hkc_count *count)
{
    if (!count)
        return;
    for (uint32_t i = 0; i < count->size; i++)
        slot_clear (&count->slots[i]);
    free (count->slots);
    hk_rankset_destroy (count->ranks);
    free (count);
}

static int slots_reach (struct hkc_count *count, uint32_t rank)
{
    uint32_t size = count->size ? count->size : 64;
    struct slot *slots;

    while (size <= rank)
        size *= 2;
    if (size == count->size)
        return 0;
    if (!(slots = reallocarray (count->slots, size, sizeof (*slots))))
        return -1;
    memset (slots + count->size, 0, (size - count->size) * sizeof (*slots));
    count->slots = slots;
    count->size = size;
    return 0;
}

static struct child *child_of (struct slot *slot, const char *name, bool make)
{
    size_t len = strlen (name) + 1;
    struct child *child = slot->children;

    while (child && strcmp (child->name, name))
        child = child->next;
    if (!child && make && (child = calloc (1, sizeof (*child) + len))) {
        memcpy (child->name, name, len);
        child->ids = hk_rankset_create ();
        child->next = slot->children;
        slot->children = child;
    }
    return child;
}

/* ---- reading R ---- */

struct entry {
    struct hk_rankset *ranks;
    json_t *children; /* borrowed */
};

struct reading {
    struct entry *entries;
    size_t count;
    struct hk_rankset *ranks;
    struct hk_hostlist *hosts;
};

static void reading_fini (struct reading *r)
{
    for (size_t i = 0; i < r->count; i++)
        hk_rankset_destroy (r->entries[i].ranks);
    free (r->entries);
    hk_rankset_destroy (r->ranks);
    hk_hostlist_destroy (r->hosts);
}

static int read_hosts (struct reading *r,
                       json_t *nodelist,
                       struct hk_error *err)
{
    json_t *value;
    size_t i;

    if (!(r->hosts = hk_hostlist_create ()))
        return hk_error_set (err, ENOMEM, "out of memory");
    json_array_foreach (nodelist, i, value)
    {
        const char *text = json_string_value (value);
        struct hk_hostlist *some = text ? hk_hostlist_decode (text, err) : NULL;
        if (!some)
            return text ? -1 : hk_error_set (err, EINVAL, "R: nodelist");
        for (size_t k = 0; k < hk_hostlist_count (some); k++)
            if (hk_hostlist_append (r->hosts, hk_hostlist_nth (some, k)) < 0) {
                hk_hostlist_destroy (some);
                return hk_error_set (err, EINVAL, "R: nodelist");
            }
        hk_hostlist_destroy (some);
    }
    /* a scheduler's account may be without hosts */
    if (nodelist && hk_hostlist_count (r->hosts) != hk_rankset_count (r->ranks))
        return hk_error_set (err, EINVAL, "R: not as many hosts as ranks");
    return 0;
}

static int reading_open (struct reading *r,
                         const json_t *R,
                         struct hk_error *err)
{
    json_t *lite, *nodelist = NULL, *value;
    size_t i;

    memset (r, 0, sizeof (*r));
    r->ranks = hk_rankset_create ();
    if (json_unpack ((json_t *)R,
                     "{s:{s:o s?o}}",
                     "execution",
                     "R_lite",
                     &lite,
                     "nodelist",
                     &nodelist))
        return hk_error_set (err, EINVAL, "R: expected execution.R_lite");
    if (!(r->entries = calloc (json_array_size (lite) + 1,
                               sizeof (*r->entries))))
        return hk_error_set (err, ENOMEM, "out of memory");
    json_array_foreach (lite, i, value)
    {
        struct entry *e = &r->entries[r->count];
        const char *text;
        if (json_unpack (
                value, "{s:s s:o}", "rank", &text, "children", &e->children)
            || !(e->ranks = hk_rankset_decode (text, err)))
            return hk_error_set (err, EINVAL, "R: R_lite[%zu]", i);
        r->count++;
        hk_rankset_add_set (r->ranks, e->ranks);
    }
    return read_hosts (r, nodelist, err);
}

/* All of it is checked before anything is changed. */
static int children_check (const struct reading *r, struct hk_error *err)
{
    for (size_t i = 0; i < r->count; i++) {
        const char *name;
        json_t *value;
        json_object_foreach (r->entries[i].children, name, value)
        {
            const char *text = json_string_value (value);
            struct hk_rankset *ids = text ? hk_rankset_decode (text, err)
                                          : NULL;
            if (!ids)
                return hk_error_set (err, EINVAL, "R: R_lite[%zu].%s", i, name);
            hk_rankset_destroy (ids);
        }
    }
    return 0;
}

typedef void (*change_f) (struct slot *slot,
                          const char *name,
                          const struct hk_rankset *ids);

static void change_add (struct slot *slot,
                        const char *name,
                        const struct hk_rankset *ids)
{
    struct child *child = child_of (slot, name, true);

    if (!child)
        abort ();
    hk_rankset_add_set (child->ids, ids);
}

static void change_remove (struct slot *slot,
                           const char *name,
                           const struct hk_rankset *ids)
{
    struct child *child = child_of (slot, name, false);

    if (child)
        hk_rankset_remove_set (child->ids, ids);
}

static void entry_apply (struct hkc_count *count,
                         const struct entry *e,
                         const struct hk_rankset *only,
                         change_f change)
{
    const char *name;
    json_t *value;

    json_object_foreach (e->children, name, value)
    {
        struct hk_rankset *ids = hk_rankset_decode (json_string_value (value),
                                                    NULL);
        for (uint32_t r = hk_rankset_first (e->ranks); r != HK_RANK_NONE;
             r = hk_rankset_next (e->ranks, r))
            if (r < count->size && (!only || hk_rankset_has (only, r)))
                change (&count->slots[r], name, ids);
        hk_rankset_destroy (ids);
    }
}

static bool is_empty (const struct slot *slot)
{
    for (const struct child *c = slot->children; c; c = c->next)
        if (!hk_rankset_is_empty (c->ids))
            return false;
    return true;
}

/* The name stays that was known first; for want of one the rank is it. */
static int slot_host (struct slot *slot, uint32_t rank, const char *name)
{
    char text[24];

    if (slot->host)
        return 0;
    snprintf (text, sizeof (text), "rank%u", rank);
    return (slot->host = strdup (name ? name : text)) ? 0 : -1;
}

int hkc_count_add (struct hkc_count *count,
                   const json_t *R,
                   const struct hk_rankset *only,
                   struct hk_error *err)
{
    struct reading r;
    size_t n = 0;
    int rc = -1;

    if (reading_open (&r, R, err) < 0 || children_check (&r, err) < 0)
        goto out;
    for (uint32_t i = hk_rankset_first (r.ranks); i != HK_RANK_NONE;
         i = hk_rankset_next (r.ranks, i), n++) {
        if (slots_reach (count, i) < 0) {
            hk_error_set (err, ENOMEM, "out of memory");
            goto out;
        }
        if (slot_host (&count->slots[i], i, hk_hostlist_nth (r.hosts, n)) < 0) {
            hk_error_set (err, ENOMEM, "out of memory");
            goto out;
        }
    }
    for (size_t i = 0; i < r.count; i++)
        entry_apply (count, &r.entries[i], only, change_add);
    if (only)
        hk_rankset_keep_set (r.ranks, only);
    hk_rankset_add_set (count->ranks, r.ranks);
    rc = 0;
out:
    reading_fini (&r);
    return rc;
}

int hkc_count_remove (struct hkc_count *count,
                      const json_t *R,
                      struct hk_error *err)
{
    struct reading r;
    int rc = -1;

    if (reading_open (&r, R, err) < 0 || children_check (&r, err) < 0)
        goto out;
    for (size_t i = 0; i < r.count; i++)
        entry_apply (count, &r.entries[i], NULL, change_remove);
    for (uint32_t i = hk_rankset_first (r.ranks); i != HK_RANK_NONE;
         i = hk_rankset_next (r.ranks, i))
        if (i < count->size && is_empty (&count->slots[i]))
            hk_rankset_remove (count->ranks, i);
    rc = 0;
out:
    reading_fini (&r);
    return rc;
}

bool hkc_count_is_empty (const struct hkc_count *count)
{
    return hk_rankset_is_empty (count->ranks);
}

/* ---- writing R ---- */

static json_t *children_json (const struct slot *slot)
{
    json_t *o = json_object ();

    for (const struct child *c = slot->children; c; c = c->next) {
        char *text;
        if (hk_rankset_is_empty (c->ids))
            continue;
        text = hk_rankset_encode (c->ids);
        json_object_set_new (o, c->name, json_string (text));
        free (text);
    }
    return o;
}

static void ranks_free (void **item)
{
    hk_rankset_destroy (*item);
    *item = NULL;
}

/* Ranks that have the same stand together. */
static zhashx_t *groups_of (const struct hkc_count *count)
{
    zhashx_t *groups = zhashx_new ();

    zhashx_set_destructor (groups, ranks_free);
    for (uint32_t r = hk_rankset_first (count->ranks); r != HK_RANK_NONE;
         r = hk_rankset_next (count->ranks, r)) {
        json_t *children = children_json (&count->slots[r]);
        char *text = json_dumps (children, JSON_COMPACT | JSON_SORT_KEYS);
        struct hk_rankset *ranks;
        json_decref (children);
        if (!text)
            abort ();
        if (!(ranks = zhashx_lookup (groups, text))) {
            ranks = hk_rankset_create ();
            zhashx_insert (groups, text, ranks);
        }
        hk_rankset_add (ranks, r);
        free (text);
    }
    return groups;
}

static json_t *nodelist_of (const struct hkc_count *count)
{
    size_t n = 0, size = hk_rankset_count (count->ranks);
    const char **names = calloc (size + 1, sizeof (*names));
    char *text;
    json_t *list;

    if (!names)
        return NULL;
    for (uint32_t r = hk_rankset_first (count->ranks); r != HK_RANK_NONE;
         r = hk_rankset_next (count->ranks, r))
        names[n++] = count->slots[r].host;
    text = hk_hostlist_encode_names (names, n);
    list = n ? json_pack ("[s]", text) : json_array ();
    free (text);
    free (names);
    return list;
}

json_t *hkc_count_R (const struct hkc_count *count)
{
    zhashx_t *groups = groups_of (count);
    json_t *lite = json_array (), *nodelist = nodelist_of (count);

    for (struct hk_rankset *ranks = zhashx_first (groups); ranks;
         ranks = zhashx_next (groups)) {
        char *text = hk_rankset_encode (ranks);
        json_array_append_new (
            lite,
            json_pack ("{s:s s:o}",
                       "rank",
                       text,
                       "children",
                       json_loads (zhashx_cursor (groups), 0, NULL)));
        free (text);
    }
    zhashx_destroy (&groups);
    return json_pack ("{s:i s:{s:o s:f s:f s:o}}",
                      "version",
                      1,
                      "execution",
                      "R_lite",
                      lite,
                      "starttime",
                      0.,
                      "expiration",
                      0.,
                      "nodelist",
                      nodelist);
}

/* resource_fragment.c - R cut down to some of its ranks */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/resource_impl.h"
#include "proto/text.h"

/* The wanted ranks, ascending, and their hosts; then the same ranks by entry:
 * those of entry i are sorted[start[i]] to before sorted[start[i + 1]].
 */
struct cut {
    size_t count;
    uint32_t *ranks;
    const char **hosts;
    uint32_t *sorted;
    size_t *start;
};

static void cut_fini (struct cut *cut)
{
    free (cut->ranks);
    free (cut->hosts);
    free (cut->sorted);
    free (cut->start);
}

/* One pass counts, one fills. */
static int cut_init (struct cut *cut,
                     const struct hk_resource *res,
                     const struct hk_rankset *ranks)
{
    size_t entries = res->entries_count;
    size_t *next; /* where the next rank of an entry goes */

    cut->count = hk_rankset_count (ranks);
    cut->ranks = calloc (cut->count, sizeof (*cut->ranks));
    cut->hosts = calloc (cut->count, sizeof (*cut->hosts));
    cut->sorted = calloc (cut->count, sizeof (*cut->sorted));
    cut->start = calloc (entries + 2, sizeof (*cut->start));
    if (!cut->ranks || !cut->hosts || !cut->sorted || !cut->start)
        return -1;
    hk_rankset_list (ranks, cut->ranks);
    next = cut->start + 1; /* filling moves each to its entry's end */
    for (size_t i = 0; i < cut->count; i++) {
        size_t place = (size_t)hk_resource_place (res, cut->ranks[i]);

        cut->hosts[i] = hk_hostlist_nth (res->hosts, place);
        next[res->entry_at[place] + 1]++;
    }
    for (size_t i = 1; i <= entries; i++)
        next[i] += next[i - 1];
    for (size_t i = 0; i < cut->count; i++) {
        long place = hk_resource_place (res, cut->ranks[i]);

        cut->sorted[next[res->entry_at[place]]++] = cut->ranks[i];
    }
    return 0;
}

static void put_idset (struct hk_text *text,
                       const uint32_t *ranks,
                       size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t lo = ranks[i];

        while (i + 1 < count && ranks[i + 1] == ranks[i] + 1)
            i++;
        hk_text_put_range (text, lo, ranks[i], 1);
    }
}

static void put_entries (struct hk_text *text,
                         const struct hk_resource *res,
                         const struct cut *cut)
{
    const char *comma = "";

    hk_text_put (text, "\"R_lite\":[");
    for (size_t i = 0; i < res->entries_count; i++) {
        size_t count = cut->start[i + 1] - cut->start[i];

        if (count == 0)
            continue;
        hk_text_put (text, comma);
        hk_text_put (text, "{\"rank\":\"");
        put_idset (text, cut->sorted + cut->start[i], count);
        hk_text_put (text, "\",");
        hk_text_put (text, res->entries[i].rest + 1);
        comma = ",";
    }
    hk_text_put (text, "]");
}

/* Host names are checked when R is decoded: nothing to escape. */
static int put_nodelist (struct hk_text *text, const struct cut *cut)
{
    char *s = hk_hostlist_encode_names (cut->hosts, cut->count);

    if (!s)
        return -1;
    hk_text_put (text, ",\"nodelist\":[\"");
    hk_text_put (text, s);
    hk_text_put (text, "\"]");
    free (s);
    return 0;
}

static int put_property (struct hk_text *text,
                         const struct hk_resource_property *property,
                         const struct hk_rankset *ranks,
                         const char *before)
{
    struct hk_rankset *set = hk_rankset_copy (property->ranks);
    char *s;

    if (!set)
        return -1;
    hk_rankset_keep_set (set, ranks);
    s = hk_rankset_encode (set);
    hk_rankset_destroy (set);
    if (!s)
        return -1;
    hk_text_put (text, before);
    hk_text_put (text, property->name);
    hk_text_put (text, ":\"");
    hk_text_put (text, s);
    hk_text_put (text, "\"");
    free (s);
    return 0;
}

static int put_properties (struct hk_text *text,
                           const struct hk_resource *res,
                           const struct hk_rankset *ranks)
{
    const char *before = ",\"properties\":{";

    for (size_t i = 0; i < res->properties_count; i++) {
        const struct hk_resource_property *property = &res->properties[i];

        if (!hk_rankset_intersects (property->ranks, ranks))
            continue;
        if (put_property (text, property, ranks, before) < 0)
            return -1;
        before = ",";
    }
    if (before[1] == '\0')
        hk_text_put (text, "}");
    return 0;
}

static void put_time (struct hk_text *text, const char *key, const char *value)
{
    if (value) {
        hk_text_put (text, key);
        hk_text_put (text, value);
    }
}

char *hk_resource_fragment (const struct hk_resource *res,
                            const struct hk_rankset *ranks,
                            struct hk_error *err)
{
    struct cut cut = { 0 };
    struct hk_text text = { 0 };
    char *fragment = NULL;

    if (hk_rankset_is_empty (ranks)) {
        hk_error_set (err, EINVAL, "R: a fragment of no ranks");
        return NULL;
    }
    if (!hk_rankset_contains (res->ranks, ranks)) {
        hk_error_set (err, EINVAL, "R: a fragment of ranks that it lacks");
        return NULL;
    }
    if (cut_init (&cut, res, ranks) < 0)
        goto error;
    hk_text_put (&text, "{\"version\":1,\"execution\":{");
    put_entries (&text, res, &cut);
    if (put_nodelist (&text, &cut) < 0
        || put_properties (&text, res, ranks) < 0)
        goto error;
    put_time (&text, ",\"starttime\":", res->starttime);
    put_time (&text, ",\"expiration\":", res->expiration);
    hk_text_put (&text, "}}");
    fragment = hk_text_take (&text);
    if (!fragment)
        goto error;
    cut_fini (&cut);
    return fragment;
error:
    hk_error_errno (err, ENOMEM, "R: fragment");
    free (text.text);
    cut_fini (&cut);
    return NULL;
}

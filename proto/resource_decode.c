/* resource_decode.c - R from its JSON text */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"
#include "proto/resource_impl.h"
#include "proto/text.h"

/* What decoding needs beside the result. */
struct decoder {
    struct hk_resource *res;
    struct hk_rankset **entry_ranks; /* by entry */
    struct hk_error *err;
};

static int fail (struct decoder *d, const char *what)
{
    return hk_error_set (d->err, EINVAL, "R: %s", what);
}

static int no_memory (struct decoder *d)
{
    return hk_error_errno (d->err, ENOMEM, "R");
}

static int put_bytes (const char *bytes, size_t len, void *arg)
{
    hk_text_put_bytes (arg, bytes, len);
    return 0;
}

/* json_dumps passes over an object's key when it has no memory for it and
 * returns the rest; the text keeps its failure.
 */
static char *dump (const json_t *o)
{
    struct hk_text text = { 0 };
    size_t flags = JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY;

    if (json_dump_callback (o, put_bytes, &text, flags) < 0)
        text.failed = true;
    return hk_text_take (&text);
}

static struct hk_rankset *decode_idset (struct decoder *d,
                                        const char *text,
                                        const char *what)
{
    struct hk_rankset *set = hk_rankset_decode (text, d->err);

    if (!set)
        hk_error_prefix (d->err, "R: %s", what);
    return set;
}

/* Cores are only compared and handed on: checked here, kept as text. */
static int decode_cores (struct decoder *d,
                         json_t *children,
                         struct hk_resource_entry *entry)
{
    json_t *core = json_object_get (children, "core");
    struct hk_rankset *set;

    if (!json_is_object (children))
        return fail (d, "an entry of R_lite has no children");
    if (core && !json_is_string (core))
        return fail (d, "core of an entry of R_lite is not a string");
    set = decode_idset (d, core ? json_string_value (core) : "", "core");
    if (!set)
        return -1;
    entry->cores = hk_rankset_encode (set);
    hk_rankset_destroy (set);
    return entry->cores ? 0 : no_memory (d);
}

static int decode_entry (struct decoder *d, json_t *o)
{
    struct hk_resource *res = d->res;
    size_t n = res->entries_count++;
    struct hk_resource_entry *entry = &res->entries[n];
    json_t *rank = json_object_get (o, "rank");
    struct hk_rankset *ranks;

    if (!json_is_string (rank))
        return fail (d, "an entry of R_lite has no rank");
    ranks = decode_idset (d, json_string_value (rank), "rank");
    if (!ranks)
        return -1;
    d->entry_ranks[n] = ranks;
    if (hk_rankset_is_empty (ranks))
        return fail (d, "an entry of R_lite has no rank");
    if (hk_rankset_intersects (res->ranks, ranks))
        return fail (d, "a rank is named twice");
    hk_rankset_add_set (res->ranks, ranks);
    if (decode_cores (d, json_object_get (o, "children"), entry) < 0)
        return -1;
    /* the canonical text is made before, and o is not used after */
    json_object_del (o, "rank");
    entry->rest = dump (o);
    return entry->rest ? 0 : no_memory (d);
}

static int decode_entries (struct decoder *d, json_t *r_lite)
{
    size_t count = json_array_size (r_lite);
    size_t i;
    json_t *o;

    if (count == 0)
        return fail (d, "R_lite is missing or empty");
    d->res->entries = calloc (count, sizeof (*d->res->entries));
    d->entry_ranks = calloc (count, sizeof (struct hk_rankset *));
    if (!d->res->entries || !d->entry_ranks)
        return no_memory (d);
    json_array_foreach (r_lite, i, o)
    {
        if (decode_entry (d, o) < 0)
            return -1;
    }
    return 0;
}

static void place_entry (struct hk_resource *res,
                         uint32_t entry,
                         const struct hk_rankset *ranks)
{
    uint32_t r;

    for (r = hk_rankset_first (ranks); r != HK_RANK_NONE;
         r = hk_rankset_next (ranks, r))
        res->entry_at[hk_resource_place (res, r)] = entry;
}

static int place_ranks (struct decoder *d)
{
    struct hk_resource *res = d->res;

    res->count = hk_rankset_count (res->ranks);
    res->rank_at = calloc (res->count, sizeof (*res->rank_at));
    res->entry_at = calloc (res->count, sizeof (*res->entry_at));
    if (!res->rank_at || !res->entry_at)
        return no_memory (d);
    hk_rankset_list (res->ranks, res->rank_at);
    for (size_t i = 0; i < res->entries_count; i++)
        place_entry (res, (uint32_t)i, d->entry_ranks[i]);
    return 0;
}

static int append_host (struct decoder *d, const char *name)
{
    if (!hk_host_name_valid (name))
        return hk_error_set (
            d->err, EINVAL, "R: nodelist: '%.80s' is not a host name", name);
    if (hk_hostlist_append (d->res->hosts, name) < 0)
        return hk_error_errno (d->err, errno, "R: nodelist");
    return 0;
}

static int append_hosts (struct decoder *d, const char *text)
{
    struct hk_hostlist *some = hk_hostlist_decode (text, d->err);
    int rc = 0;

    if (!some)
        return hk_error_prefix (d->err, "R: nodelist");
    for (size_t i = 0; rc == 0 && i < hk_hostlist_count (some); i++)
        rc = append_host (d, hk_hostlist_nth (some, i));
    hk_hostlist_destroy (some);
    return rc;
}

static int decode_nodelist (struct decoder *d, json_t *nodelist)
{
    struct hk_resource *res = d->res;
    size_t i;
    json_t *o;

    if (json_array_size (nodelist) == 0)
        return fail (d, "nodelist is missing or empty");
    json_array_foreach (nodelist, i, o)
    {
        if (!json_is_string (o))
            return fail (d, "nodelist is not a list of strings");
        if (append_hosts (d, json_string_value (o)) < 0)
            return -1;
    }
    if (hk_hostlist_count (res->hosts) != res->count)
        return hk_error_set (d->err,
                             EINVAL,
                             "R: nodelist names %zu hosts for %zu ranks",
                             hk_hostlist_count (res->hosts),
                             res->count);
    return 0;
}

static int find_host_ranks (struct decoder *d)
{
    struct hk_resource *res = d->res;

    res->host_ranks = calloc (res->count, sizeof (*res->host_ranks));
    if (!res->host_ranks)
        return no_memory (d);
    for (size_t i = 0; i < res->count; i++) {
        const char *host = hk_hostlist_nth (res->hosts, i);
        long first = hk_hostlist_find (res->hosts, host);
        struct hk_rankset **set = &res->host_ranks[first];

        if (!*set && !(*set = hk_rankset_create ()))
            return no_memory (d);
        hk_rankset_add (*set, res->rank_at[i]);
    }
    return 0;
}

static int decode_properties (struct decoder *d, json_t *properties)
{
    struct hk_resource *res = d->res;
    const char *name;
    json_t *o;

    if (!properties || json_object_size (properties) == 0)
        return 0;
    res->properties = calloc (json_object_size (properties),
                              sizeof (*res->properties));
    if (!res->properties)
        return no_memory (d);
    json_object_foreach (properties, name, o)
    {
        struct hk_resource_property *p;
        json_t *key;

        if (!json_is_string (o))
            return fail (d, "a property's ranks are not a string");
        p = &res->properties[res->properties_count++];
        p->ranks = decode_idset (d, json_string_value (o), "properties");
        if (!p->ranks)
            return -1;
        key = json_string (name);
        p->name = key ? dump (key) : NULL;
        json_decref (key);
        if (!p->name)
            return no_memory (d);
    }
    return 0;
}

static int decode_time (struct decoder *d, json_t *o, char **text)
{
    if (!o)
        return 0;
    if (!json_is_number (o))
        return fail (d, "starttime or expiration is not a number");
    *text = dump (o);
    return *text ? 0 : no_memory (d);
}

/* Takes `o` apart: res->text is made from it before. */
static int decode_object (struct decoder *d, json_t *o)
{
    int version = 0;
    json_t *execution = NULL;
    json_t *r_lite = NULL;
    json_t *starttime = NULL;
    json_t *expiration = NULL;
    json_t *nodelist = NULL;
    json_t *properties = NULL;
    json_error_t json_err;

    if (json_unpack_ex (o,
                        &json_err,
                        0,
                        "{s:i s:o}",
                        "version",
                        &version,
                        "execution",
                        &execution)
        < 0)
        return hk_error_set (d->err, EINVAL, "R: %s", json_err.text);
    if (version != 1)
        return hk_error_set (
            d->err, EINVAL, "R: version is %d, expected 1", version);
    if (json_unpack_ex (execution,
                        &json_err,
                        0,
                        "{s?o s?o s?o s?o s?o}",
                        "R_lite",
                        &r_lite,
                        "starttime",
                        &starttime,
                        "expiration",
                        &expiration,
                        "nodelist",
                        &nodelist,
                        "properties",
                        &properties)
        < 0)
        return hk_error_set (d->err, EINVAL, "R: execution: %s", json_err.text);
    if (properties && !json_is_object (properties))
        return fail (d, "properties are not an object");
    if (decode_entries (d, r_lite) < 0 || place_ranks (d) < 0
        || decode_nodelist (d, nodelist) < 0 || find_host_ranks (d) < 0
        || decode_properties (d, properties) < 0
        || decode_time (d, starttime, &d->res->starttime) < 0
        || decode_time (d, expiration, &d->res->expiration) < 0)
        return -1;
    return 0;
}

static int decode (struct decoder *d, json_t *o)
{
    d->res->ranks = hk_rankset_create ();
    d->res->hosts = hk_hostlist_create ();
    d->res->text = dump (o);
    if (!d->res->ranks || !d->res->hosts || !d->res->text)
        return no_memory (d);
    return decode_object (d, o);
}

struct hk_resource *hk_resource_decode (const char *text, struct hk_error *err)
{
    struct decoder d = { .err = err };
    json_error_t json_err;
    json_t *o = NULL;
    size_t len = strnlen (text, HK_R_BYTES + 1);
    int rc = -1;

    if (len > HK_R_BYTES) {
        hk_error_set (err, EINVAL, "R: more than %d bytes", HK_R_BYTES);
        return NULL;
    }
    d.res = calloc (1, sizeof (*d.res));
    if (!d.res) {
        no_memory (&d);
        return NULL;
    }
    o = json_loadb (text, len, JSON_REJECT_DUPLICATES, &json_err);
    if (!o && json_err.text[0] == '\0') /* how jansson says no memory */
        no_memory (&d);
    else if (!o)
        hk_error_set (err,
                      EINVAL,
                      "R: line %d, column %d: %s",
                      json_err.line,
                      json_err.column,
                      json_err.text);
    else
        rc = decode (&d, o);
    json_decref (o);
    for (size_t i = 0; d.entry_ranks && i < d.res->entries_count; i++)
        hk_rankset_destroy (d.entry_ranks[i]);
    free (d.entry_ranks);
    if (rc < 0) {
        hk_resource_destroy (d.res);
        return NULL;
    }
    return d.res;
}

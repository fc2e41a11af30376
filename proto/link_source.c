/* link_source.c - who may have MUNGE asked how often */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "proto/link_server.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A source that asks more often is not refused: its questions wait until the
 * others' are answered.  Many nodes may well stand behind one address.
 */
enum {
    RATE_PER_S = 50,
    BURST = 200,
    SOURCES_MAX = 65536,
    IDLE_MS = 10000,
    REHELLO_MS = 1000,
};

/* An IPv6 host has at least a /64 to choose addresses from. */
static const char *source_name (const char *address, char buf[HK_SOURCE_BYTES])
{
    struct in6_addr in6;

    if (inet_pton (AF_INET6, address, &in6) != 1 || IN6_IS_ADDR_V4MAPPED (&in6))
        return address;
    memset (in6.s6_addr + 8, 0, 8);
    if (!inet_ntop (AF_INET6, &in6, buf, HK_SOURCE_BYTES))
        return address;
    return buf;
}

static struct hk_source *find_source (struct hk_link_server *link,
                                      const char *address)
{
    char buf[HK_SOURCE_BYTES];
    const char *name = source_name (address, buf);
    struct hk_source *source = zhashx_lookup (link->sources, name);

    if (source || zhashx_size (link->sources) >= SOURCES_MAX)
        return source;
    source = calloc (1, sizeof (*source));
    if (!source)
        return NULL;
    source->tokens = BURST;
    source->at_ms = link->now_ms;
    zhashx_insert (link->sources, name, source);
    return source;
}

bool hk_source_take (struct hk_link_server *link, const char *address)
{
    struct hk_source *source = find_source (link, address);

    if (!source)
        return false;
    source->tokens += (double)(link->now_ms - source->at_ms) * RATE_PER_S / 1e3;
    if (source->tokens > BURST)
        source->tokens = BURST;
    source->at_ms = link->now_ms;
    /* what came earlier from there must not be overtaken */
    if (source->tokens < 1 || source->slow > 0)
        return false;
    source->tokens -= 1;
    return true;
}

void hk_source_slow_add (struct hk_link_server *link, const char *address)
{
    struct hk_source *source = find_source (link, address);

    if (source)
        source->slow++;
}

void hk_source_slow_done (struct hk_link_server *link, const char *address)
{
    struct hk_source *source = find_source (link, address);

    if (source && source->slow > 0)
        source->slow--;
}

void hk_source_sweep (struct hk_link_server *link)
{
    zlistx_t *names = NULL;
    struct hk_source *source;

    for (source = zhashx_first (link->sources); source;
         source = zhashx_next (link->sources)) {
        if (source->slow > 0 || link->now_ms - source->at_ms < IDLE_MS)
            continue;
        if (!names)
            names = zlistx_new ();
        zlistx_add_end (names, (void *)zhashx_cursor (link->sources));
    }
    if (!names)
        return;
    for (const char *name = zlistx_first (names); name;
         name = zlistx_next (names))
        zhashx_delete (link->sources, name);
    zlistx_destroy (&names);
}

/* A slot is shared by the keys that fall on it: the later is answered, so a
 * flood of keys costs one small message each, and no memory.
 */
bool hk_source_may_rehello (struct hk_link_server *link, const char *key)
{
    uint32_t hash = 2166136261U;
    size_t slot;

    for (const char *p = key; *p; p++)
        hash = (hash ^ (unsigned char)*p) * 16777619U;
    slot = hash % HK_REHELLO_SLOTS;
    if (link->rehello[slot].hash == hash
        && link->now_ms - link->rehello[slot].at_ms < REHELLO_MS)
        return false;
    link->rehello[slot].hash = hash;
    link->rehello[slot].at_ms = link->now_ms;
    return true;
}

/* link_client_key.c - the servers' keys that this process has learnt */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "proto/link_client.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 320, ASKING_MS = 5000 };

/* One entry an endpoint; there are as many as heads, kept for life. */
struct entry {
    struct entry *next;
    char name[NAME_BYTES];
    bool is_known;
    struct hk_known_server server;
    int64_t asking_until_ms;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *entries;

/* Under the lock; NULL without memory. */
static struct entry *find (const struct hk_link_client *c)
{
    char name[NAME_BYTES];
    struct entry *entry;

    snprintf (name,
              sizeof (name),
              "%s:%u uid %u",
              hk_hostlist_nth (c->head, c->head_at),
              c->key_port,
              c->server_uid);
    for (entry = entries; entry; entry = entry->next)
        if (strcmp (entry->name, name) == 0)
            return entry;
    entry = calloc (1, sizeof (*entry));
    if (!entry)
        return NULL;
    memcpy (entry->name, name, sizeof (name));
    entry->next = entries;
    entries = entry;
    return entry;
}

bool hk_known_get (const struct hk_link_client *c,
                   struct hk_known_server *known)
{
    struct entry *entry;
    bool ok;

    pthread_mutex_lock (&lock);
    entry = find (c);
    ok = entry && entry->is_known;
    if (ok)
        *known = entry->server;
    pthread_mutex_unlock (&lock);
    return ok;
}

void hk_known_put (const struct hk_link_client *c)
{
    struct entry *entry;

    pthread_mutex_lock (&lock);
    entry = find (c);
    if (entry) {
        entry->is_known = true;
        entry->server = c->server;
        entry->asking_until_ms = 0;
    }
    pthread_mutex_unlock (&lock);
}

void hk_known_forget (const struct hk_link_client *c)
{
    struct entry *entry;

    pthread_mutex_lock (&lock);
    entry = find (c);
    if (entry && strcmp (entry->server.key, c->server.key) == 0)
        entry->is_known = false;
    pthread_mutex_unlock (&lock);
}

bool hk_known_ask (const struct hk_link_client *c)
{
    struct entry *entry;
    bool ok = true;

    pthread_mutex_lock (&lock);
    entry = find (c);
    if (entry && entry->asking_until_ms > c->now_ms)
        ok = false;
    else if (entry)
        entry->asking_until_ms = c->now_ms + ASKING_MS;
    pthread_mutex_unlock (&lock);
    return ok;
}

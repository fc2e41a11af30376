/* ask.c - who waits for an answer */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <stdlib.h>
#include "coordinator/engine/internal.h"

uint64_t hkc_ask_add (struct hkc_engine *e,
                      uint64_t peer,
                      uint64_t seq,
                      enum hk_msg_type type)
{
    struct hkc_ask *ask = calloc (1, sizeof (*ask));

    if (!ask)
        return 0;
    ask->id = ++e->asks_made;
    ask->peer = peer;
    ask->seq = seq;
    ask->type = type;
    zhashx_insert (e->asks, &ask->id, ask);
    return ask->id;
}

struct hkc_ask *hkc_ask_take (struct hkc_engine *e, uint64_t id)
{
    struct hkc_ask *ask = zhashx_lookup (e->asks, &id);

    if (ask)
        zhashx_delete (e->asks, &id);
    return ask;
}

/* session.c - what is for a manager's present session, and what is not */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <stdio.h>
#include <string.h>
#include "coordinator/host/host.h"

void hkc_session_hello (struct hkc_session *session,
                        const char *life,
                        uint64_t tag)
{
    snprintf (session->life, sizeof (session->life), "%s", life);
    session->tag = tag;
    session->awaits = true;
}

bool hkc_session_takes (struct hkc_session *session,
                        const struct hkc_action *act)
{
    switch (act->kind) {
    case HKC_ACT_FREE:
        return !session->awaits && !strcmp (act->free.life, session->life);
    case HKC_ACT_UNDRAIN:
        return !strcmp (act->drain.life, session->life);
    case HKC_ACT_HELLO_ENTRY:
        return act->entry.tag == session->tag;
    case HKC_ACT_HELLO_END:
        if (act->hello_end.tag != session->tag)
            return false;
        session->awaits = false;
        return true;
    default:
        return true;
    }
}

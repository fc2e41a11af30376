/* outbox.c - what waits for room in the queue of the manager's connection */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "coordinator/host/standalone/outbox.h"

#include <czmq.h>
#include <errno.h>
#include <stdlib.h>
#include <syslog.h>
#include "proto/log.h"

struct hkc_outbox {
    zlistx_t *texts; /* messages, encoded */
};

static void text_free (void **item)
{
    free (*item);
    *item = NULL;
}

struct hkc_outbox *hkc_outbox_create (void)
{
    struct hkc_outbox *box = calloc (1, sizeof (*box));

    if (!box)
        return NULL;
    box->texts = zlistx_new ();
    zlistx_set_destructor (box->texts, text_free);
    return box;
}

void hkc_outbox_destroy (struct hkc_outbox *box)
{
    if (!box)
        return;
    zlistx_destroy (&box->texts);
    free (box);
}

void hkc_outbox_clear (struct hkc_outbox *box)
{
    zlistx_purge (box->texts);
}

void hkc_outbox_send (struct hkc_outbox *box,
                      struct hk_link_server *link,
                      struct hk_peer *peer,
                      struct hk_msg *msg)
{
    struct hk_error err;
    size_t len;
    char *text;

    if (zlistx_size (box->texts) == 0
        && (hk_link_send (link, peer, msg) == 0 || errno != EAGAIN))
        return;
    msg->session = peer->session;
    if ((text = hk_msg_encode (msg, &len, &err)))
        zlistx_add_end (box->texts, text);
    else
        hk_log (LOG_ERR, "a message to the manager is lost: %s", err.text);
}

static bool send_text (struct hk_link_server *link,
                       struct hk_peer *peer,
                       const char *text)
{
    struct hk_msg msg;
    struct hk_error err;
    int rc;

    if (hk_msg_decode (text, strlen (text), strlen (text) + 1, &msg, &err)
        < 0) {
        hk_log (LOG_ERR, "a message to the manager is lost: %s", err.text);
        return true;
    }
    rc = hk_link_send (link, peer, &msg);
    if (rc < 0)
        rc = errno == EAGAIN ? -1 : 0;
    hk_msg_fini (&msg);
    return rc == 0;
}

bool hkc_outbox_flush (struct hkc_outbox *box,
                       struct hk_link_server *link,
                       struct hk_peer *peer)
{
    const char *text;

    while ((text = zlistx_first (box->texts))) {
        if (!send_text (link, peer, text))
            return false;
        zlistx_delete (box->texts, zlistx_cursor (box->texts));
    }
    return true;
}

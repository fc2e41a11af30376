/* outbox.h - what waits for room in the queue of the manager's connection */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HKC_OUTBOX_H
#define HKC_OUTBOX_H

#include <stdbool.h>
#include <stdint.h>
#include "proto/link.h"

/* The link queues a bounded number of messages a connection.  A manager must
 * miss none: thousands of jobs may end at once, and a hello may have thousands
 * of entries.  What does not fit waits here, in order.
 */
struct hkc_outbox;

struct hkc_outbox *hkc_outbox_create (void);      /* NULL: ENOMEM */
void hkc_outbox_destroy (struct hkc_outbox *box); /* NULL is fine */
void hkc_outbox_clear (struct hkc_outbox *box);   /* another session */

/* Send now, or keep a copy for flush.  A peer that is gone is no error: all
 * comes again in the next session.
 */
void hkc_outbox_send (struct hkc_outbox *box,
                      struct hk_link_server *link,
                      struct hk_peer *peer,
                      struct hk_msg *msg);
/* True: nothing waits any more. */
bool hkc_outbox_flush (struct hkc_outbox *box,
                       struct hk_link_server *link,
                       struct hk_peer *peer);

#endif

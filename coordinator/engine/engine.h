/* engine.h - one loop: the link, the store and the mailbox around the core */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HKC_ENGINE_H
#define HKC_ENGINE_H

#include <stdint.h>
#include "proto/conf.h"
#include "proto/error.h"
#include "coordinator/host/host.h"

/* Open the store and the ports and load what is held.  conf is taken on
 * success.  Blocks for the disk.  NULL with errno of the store or the link.
 */
struct hkc_engine *hkc_engine_create (struct hk_conf *conf,
                                      const struct hkc_host_ops *host,
                                      struct hk_error *err);
void hkc_engine_destroy (struct hkc_engine *engine); /* joins the thread */

/* Run the loop in a thread of its own, until stop. */
int hkc_engine_start (struct hkc_engine *engine, struct hk_error *err);
void hkc_engine_stop (struct hkc_engine *engine);
/* Another configuration, already parsed and checked: taken. */
void hkc_engine_reload (struct hkc_engine *engine, struct hk_conf *conf);
/* Any thread.  Turns so far: a loop that hangs does not count on.  failed: the
 * loop has ended and this process should (the store was taken by another).
 */
uint64_t hkc_engine_turns (const struct hkc_engine *engine);
bool hkc_engine_failed (const struct hkc_engine *engine);

#endif

/* node.h - the node daemon: link, systemd, timers and signals in one loop */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HKD_NODE_H
#define HKD_NODE_H

#include "proto/error.h"

struct hkd_node;

/* Reads the configuration, takes the run directory and what lies in it.  The
 * path is borrowed.  NULL with errno: EWOULDBLOCK if another hkd is there.
 */
struct hkd_node *hkd_node_create (const char *conf_path, struct hk_error *err);
void hkd_node_destroy (struct hkd_node *node); /* units go on */
/* Until SIGTERM or SIGINT: 0. */
int hkd_node_run (struct hkd_node *node, struct hk_error *err);

#endif

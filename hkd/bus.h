/* bus.h - the connection to systemd, made while it is wanted and made again */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HKD_BUS_H
#define HKD_BUS_H

#include <stdbool.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>
#include "proto/error.h"

/* systemd's own socket, which needs no dbus-daemon and is quicker; where there
 * is none the system bus.  On its own socket systemd tells everybody
 * everything: the connection is closed while nothing runs, so that an idle node
 * is not woken by what other units do.
 */
struct hkd_bus;

struct hkd_bus_calls {
    /* Connected: ask again for what is to be known.  Calls that were under way
     * when the connection was lost have been answered with an error, or will
     * never be.
     */
    void (*up) (void *arg, sd_bus *bus);
    void (*down) (void *arg);
};

struct hkd_bus *hkd_bus_create (sd_event *event, /* borrowed */
                                const struct hkd_bus_calls *calls,
                                void *arg);
void hkd_bus_destroy (struct hkd_bus *bus);

/* While it is wanted it is kept up; `up` may be called before the return. */
void hkd_bus_want (struct hkd_bus *bus, bool wanted);
sd_bus *hkd_bus_get (struct hkd_bus *bus); /* NULL: not connected */
/* Whose signals are to be believed; NULL on systemd's own socket. */
const char *hkd_bus_sender (const struct hkd_bus *bus);
/* systemd does not answer: connect anew. */
void hkd_bus_drop (struct hkd_bus *bus);

/* A call whose answer comes to fn, with ctx, which is freed after it (or
 * without it, when the connection goes).  Takes ctx in any case.  -1 with errno:
 * fn will not be called.
 */
enum { HKD_BUS_CALL_MS = 20000 };
int hkd_bus_call (struct hkd_bus *bus,
                  sd_bus_message *m,
                  sd_bus_message_handler_t fn,
                  void *ctx_take);

#endif

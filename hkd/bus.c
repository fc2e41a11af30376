/* bus.c - the connection to systemd, made while it is wanted and made again */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "proto/log.h"
#include "hkd/bus.h"

enum {
    RETRY_FIRST_MS = 50,
    RETRY_MOST_MS = 5000,
    LINGER_MS = 5000, /* kept open, the next run may come */
};

struct hkd_bus {
    sd_event *event;
    struct hkd_bus_calls calls;
    void *arg;
    sd_bus *bus;
    bool is_private;
    bool wanted;
    uint64_t since_us; /* connected */
    uint64_t retry_ms;
    sd_event_source *timer; /* to connect again, or to close */
    sd_bus *doomed;         /* to be closed when no callback of it is running */
    sd_event_source *reaper;
};

static void try_connect (struct hkd_bus *bus);

static uint64_t now_us (struct hkd_bus *bus)
{
    uint64_t now = 0;

    sd_event_now (bus->event, CLOCK_BOOTTIME, &now);
    return now;
}

static int on_reap (sd_event_source *source, void *arg)
{
    struct hkd_bus *bus = arg;

    (void)source;
    sd_bus_detach_event (bus->doomed);
    bus->doomed = sd_bus_close_unref (bus->doomed);
    return 0;
}

/* sd-bus does not bear to be closed by what it calls: that is done when the
 * loop comes round.  Until then nothing is sent on it, and what it still tells
 * finds nobody who waits for it.
 */
static void disconnect (struct hkd_bus *bus)
{
    int rc;

    if (!bus->bus)
        return;
    if (now_us (bus) - bus->since_us > RETRY_MOST_MS * UINT64_C (1000))
        bus->retry_ms = RETRY_FIRST_MS;
    if (bus->doomed)
        on_reap (NULL, bus); /* none of its callbacks: we are in another's */
    bus->doomed = bus->bus;
    bus->bus = NULL;
    bus->reaper = sd_event_source_disable_unref (bus->reaper);
    rc = sd_event_add_defer (bus->event, &bus->reaper, on_reap, bus);
    if (rc >= 0)
        rc = sd_event_source_set_priority (bus->reaper,
                                           SD_EVENT_PRIORITY_IMPORTANT);
    if (rc < 0)
        hk_log (LOG_CRIT, "no event to leave systemd: %s", strerror (-rc));
    bus->calls.down (bus->arg);
}

static int on_timer (sd_event_source *source, uint64_t usec, void *arg)
{
    struct hkd_bus *bus = arg;

    (void)source;
    (void)usec;
    if (!bus->wanted)
        disconnect (bus);
    else if (!bus->bus)
        try_connect (bus);
    return 0;
}

static void arm (struct hkd_bus *bus, uint64_t ms)
{
    int rc;

    bus->timer = sd_event_source_disable_unref (bus->timer);
    rc = sd_event_add_time_relative (bus->event,
                                     &bus->timer,
                                     CLOCK_BOOTTIME,
                                     ms * 1000,
                                     1000,
                                     on_timer,
                                     bus);
    if (rc < 0)
        hk_log (LOG_CRIT, "no timer to reach systemd: %s", strerror (-rc));
}

static void connect_later (struct hkd_bus *bus)
{
    arm (bus, bus->retry_ms);
    bus->retry_ms *= 2;
    if (bus->retry_ms > RETRY_MOST_MS)
        bus->retry_ms = RETRY_MOST_MS;
}

static int on_disconnected (sd_bus_message *m, void *arg, sd_bus_error *error)
{
    struct hkd_bus *bus = arg;

    (void)error;
    if (sd_bus_message_get_bus (m) != bus->bus)
        return 0;
    hk_log_throttled (LOG_NOTICE, "bus", "the connection to systemd is lost");
    disconnect (bus);
    if (bus->wanted)
        connect_later (bus);
    return 0;
}

/* systemd's own socket is no bus: nobody to say hello to, no names. */
static int open_private (sd_bus **out)
{
    sd_bus *bus = NULL;
    int rc = sd_bus_new (&bus);

    if (rc >= 0)
        rc = sd_bus_set_address (bus, "unix:path=/run/systemd/private");
    if (rc >= 0)
        rc = sd_bus_start (bus);
    if (rc < 0)
        sd_bus_unref (bus);
    else
        *out = bus;
    return rc;
}

static int open_any (struct hkd_bus *bus, sd_bus **out)
{
    int rc = open_private (out);

    bus->is_private = rc >= 0;
    if (rc >= 0)
        return rc;
    if ((rc = sd_bus_open_system (out)) < 0)
        return rc;
    /* there systemd tells what happens to those who ask for it */
    return sd_bus_call_method_async (*out,
                                     NULL,
                                     "org.freedesktop.systemd1",
                                     "/org/freedesktop/systemd1",
                                     "org.freedesktop.systemd1.Manager",
                                     "Subscribe",
                                     NULL,
                                     NULL,
                                     NULL);
}

static void try_connect (struct hkd_bus *bus)
{
    sd_bus *new = NULL;
    int rc = open_any (bus, &new);

    if (rc >= 0)
        rc = sd_bus_match_signal (new,
                                  NULL,
                                  NULL,
                                  "/org/freedesktop/DBus/Local",
                                  "org.freedesktop.DBus.Local",
                                  "Disconnected",
                                  on_disconnected,
                                  bus);
    if (rc >= 0)
        rc = sd_bus_attach_event (new, bus->event, SD_EVENT_PRIORITY_NORMAL);
    if (rc < 0) {
        hk_log_throttled (
            LOG_ERR, "bus", "systemd cannot be reached: %s", strerror (-rc));
        sd_bus_close_unref (new);
        connect_later (bus);
        return;
    }
    bus->bus = new;
    bus->since_us = now_us (bus);
    bus->calls.up (bus->arg, new);
}

struct hkd_bus *hkd_bus_create (sd_event *event,
                                const struct hkd_bus_calls *calls,
                                void *arg)
{
    struct hkd_bus *bus = calloc (1, sizeof (*bus));

    if (!bus)
        return NULL;
    bus->event = event;
    bus->calls = *calls;
    bus->arg = arg;
    bus->retry_ms = RETRY_FIRST_MS;
    return bus;
}

void hkd_bus_destroy (struct hkd_bus *bus)
{
    if (!bus)
        return;
    bus->timer = sd_event_source_disable_unref (bus->timer);
    disconnect (bus);
    bus->reaper = sd_event_source_disable_unref (bus->reaper);
    if (bus->doomed)
        on_reap (NULL, bus);
    free (bus);
}

void hkd_bus_want (struct hkd_bus *bus, bool wanted)
{
    if (wanted == bus->wanted)
        return;
    bus->wanted = wanted;
    if (!wanted)
        arm (bus, LINGER_MS);
    else {
        bus->timer = sd_event_source_disable_unref (bus->timer);
        if (!bus->bus)
            try_connect (bus);
    }
}

sd_bus *hkd_bus_get (struct hkd_bus *bus)
{
    return bus->bus;
}

const char *hkd_bus_sender (const struct hkd_bus *bus)
{
    return bus->is_private ? NULL : "org.freedesktop.systemd1";
}

void hkd_bus_drop (struct hkd_bus *bus)
{
    disconnect (bus);
    if (bus->wanted)
        connect_later (bus);
}

int hkd_bus_call (struct hkd_bus *bus,
                  sd_bus_message *m,
                  sd_bus_message_handler_t fn,
                  void *ctx_take)
{
    sd_bus_slot *slot = NULL;
    int rc;

    rc = !bus->bus ? -ENOTCONN
                   : sd_bus_call_async (bus->bus,
                                        &slot,
                                        m,
                                        fn,
                                        ctx_take,
                                        HKD_BUS_CALL_MS * UINT64_C (1000));
    if (rc < 0) {
        free (ctx_take);
        errno = -rc;
        return -1;
    }
    sd_bus_slot_set_destroy_callback (slot, free);
    sd_bus_slot_set_floating (slot, 1);
    sd_bus_slot_unref (slot);
    return 0;
}

/* engine_world.h - an engine in its thread, and a host that notes it all */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef TESTS_UNIT_ENGINE_WORLD_H
#define TESTS_UNIT_ENGINE_WORLD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include "coordinator/engine/engine.h"

#define R_OF(rank, host)                                          \
    "{\"version\":1,\"execution\":{\"R_lite\":[{\"rank\":\"" rank \
    "\",\"children\":{\"core\":\"0-3\"}}],\"starttime\":0,"       \
    "\"expiration\":0,\"nodelist\":[\"" host "\"]}}"

enum { ENGINE_WAIT_S = 20, ENGINE_TAGS = 16 };

/* What the host was told; the mutex is over all of it. */
struct engine_host {
    struct hkc_engine *engine;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool answered[ENGINE_TAGS];
    int rc[ENGINE_TAGS];
    uint64_t alloc[ENGINE_TAGS];
    char state[ENGINE_TAGS][16], text[ENGINE_TAGS][HK_ERROR_BYTES];
    int ends, drains;
    char *rows[ENGINE_TAGS]; /* of a list, as JSON */
    char log[1024];
};

extern struct engine_host host;

/* A loop's body that holds the mutex when its condition is looked at. */
#define UNTIL(condition)                                                      \
    do {                                                                      \
        struct timespec end;                                                  \
        int late = 0;                                                         \
        clock_gettime (CLOCK_REALTIME, &end);                                 \
        end.tv_sec += ENGINE_WAIT_S;                                          \
        pthread_mutex_lock (&host.mutex);                                     \
        while (!(condition) && !late)                                         \
            late = pthread_cond_timedwait (&host.changed, &host.mutex, &end); \
        pthread_mutex_unlock (&host.mutex);                                   \
        if (late)                                                             \
            fail_msg ("not within %d s: %s", ENGINE_WAIT_S, #condition);      \
    } while (0)

/* For cmocka's setup and teardown: a folder, no engine yet. */
int engine_set_up (void **state);
int engine_tear_down (void **state);

/* With the state in the folder and any ports of the loopback. */
struct hk_conf *conf_make (void);
/* Of a host as Flux's. */
struct hkc_host_ops ops_make (void);
void engine_create (struct hk_conf *conf, const struct hkc_host_ops *ops);
void engine_start (void);
void engine_begin (void); /* both */
bool is_logged (const char *text);

/* Notes; R and accounts are given as text. */
void post_end (uint64_t tag, uint64_t jobid, const char *R);
void post_job (enum hkc_event_kind kind, uint64_t alloc);
void post_sched (enum hkc_event_kind kind, uint64_t tag, const char *account);

#endif

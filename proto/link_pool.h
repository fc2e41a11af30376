/* link_pool.h - a few threads that wait for MUNGE so that no loop does */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HK_LINK_POOL_H
#define HK_LINK_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include "proto/error.h"

struct hk_pool;

/* Embedded in what the caller hands in; between submit and collect it belongs
 * to the pool, and `work` runs in a thread of the pool.
 */
struct hk_pool_job {
    void (*work) (struct hk_pool_job *job);
    struct hk_pool_job *next;
    bool done;
};

/* A queue whose jobs come back in the order in which they were handed in.
 * Belongs to one thread besides the pool's.
 */
struct hk_pool_lane {
    struct hk_pool *pool;
    int level; /* 0 goes first */
    int fd;    /* an eventfd, borrowed, written when a job is done; or -1 */
    size_t count;
    struct hk_pool_job *head; /* to be collected next */
    struct hk_pool_job *tail;
    struct hk_pool_job *unclaimed; /* to be worked on next */
    size_t working;                /* jobs in the hands of a thread */
    struct hk_pool_lane *ready_next;
    bool is_ready; /* in the pool's list */
};

enum { HK_POOL_LEVELS = 3 };

/* Threads are started when there is work, at most threads_max. */
struct hk_pool *hk_pool_create (int threads_max, struct hk_error *err);
/* After every lane's fini.  Waits for the threads. */
void hk_pool_destroy (struct hk_pool *pool);

/* One pool for all clients of a process; each get needs a put. */
struct hk_pool *hk_pool_get_shared (struct hk_error *err);
void hk_pool_put_shared (void);

void hk_pool_lane_init (struct hk_pool_lane *lane,
                        struct hk_pool *pool,
                        int level,
                        int fd);
/* Waits for what is being worked on and gives each job that was not collected
 * to drop.
 */
void hk_pool_lane_fini (struct hk_pool_lane *lane,
                        void (*drop) (struct hk_pool_job *job));

/* -1 with EAGAIN if not even one thread can be had; the job is the caller's. */
int hk_pool_submit (struct hk_pool_lane *lane, struct hk_pool_job *job);
/* The oldest job if it is done, else NULL. */
struct hk_pool_job *hk_pool_collect (struct hk_pool_lane *lane);

#endif

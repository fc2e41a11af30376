/* link_pool.c - a few threads that wait for MUNGE so that no loop does */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "proto/link_pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
#include "proto/thread.h"

/* All fields, and those of lanes and jobs in them, are under the lock. */
enum { STACK_BYTES = 256 << 10, SHARED_THREADS = 4 };

struct hk_pool {
    pthread_mutex_t lock;
    pthread_cond_t work; /* a lane became ready, or the end */
    pthread_cond_t done; /* a job was finished */
    bool stop;
    int threads_max;
    int threads_count;
    int idle_count;
    pthread_t *threads;
    struct hk_pool_lane *first[HK_POOL_LEVELS];
    struct hk_pool_lane *last[HK_POOL_LEVELS];
};

static pthread_mutex_t shared_lock = PTHREAD_MUTEX_INITIALIZER;
static struct hk_pool *shared;
static int shared_count;

static void put_ready (struct hk_pool *pool, struct hk_pool_lane *lane)
{
    if (lane->is_ready)
        return;
    lane->is_ready = true;
    lane->ready_next = NULL;
    if (pool->last[lane->level])
        pool->last[lane->level]->ready_next = lane;
    else
        pool->first[lane->level] = lane;
    pool->last[lane->level] = lane;
}

static struct hk_pool_lane *take_ready (struct hk_pool *pool)
{
    for (int i = 0; i < HK_POOL_LEVELS; i++) {
        struct hk_pool_lane *lane = pool->first[i];

        if (!lane)
            continue;
        pool->first[i] = lane->ready_next;
        if (!pool->first[i])
            pool->last[i] = NULL;
        lane->is_ready = false;
        return lane;
    }
    return NULL;
}

static void remove_ready (struct hk_pool *pool, struct hk_pool_lane *lane)
{
    struct hk_pool_lane **at = &pool->first[lane->level];
    struct hk_pool_lane *before = NULL;

    while (*at && *at != lane) {
        before = *at;
        at = &(*at)->ready_next;
    }
    if (!*at)
        return;
    *at = lane->ready_next;
    if (pool->last[lane->level] == lane)
        pool->last[lane->level] = before;
    lane->is_ready = false;
}

/* The next job of the most urgent lane; NULL at the end. */
static struct hk_pool_job *claim (struct hk_pool *pool,
                                  struct hk_pool_lane **lane)
{
    struct hk_pool_job *job;

    while (!(*lane = take_ready (pool))) {
        if (pool->stop)
            return NULL;
        pool->idle_count++;
        pthread_cond_wait (&pool->work, &pool->lock);
        pool->idle_count--;
    }
    job = (*lane)->unclaimed;
    (*lane)->unclaimed = job->next;
    (*lane)->working++;
    if ((*lane)->unclaimed)
        put_ready (pool, *lane);
    return job;
}

static void *run_thread (void *arg)
{
    struct hk_pool *pool = arg;
    struct hk_pool_lane *lane;
    struct hk_pool_job *job;
    static const uint64_t one = 1;

    pthread_mutex_lock (&pool->lock);
    while ((job = claim (pool, &lane))) {
        pthread_mutex_unlock (&pool->lock);
        job->work (job);
        pthread_mutex_lock (&pool->lock);
        job->done = true;
        lane->working--;
        /* a full counter (EAGAIN) is readable all the same */
        if (lane->fd >= 0 && write (lane->fd, &one, sizeof (one)) < 0
            && errno != EAGAIN)
            abort ();
        pthread_cond_broadcast (&pool->done);
    }
    pthread_mutex_unlock (&pool->lock);
    return NULL;
}

static void start_thread (struct hk_pool *pool)
{
    pthread_t *thread = &pool->threads[pool->threads_count];

    if (hk_thread_start (thread, STACK_BYTES, run_thread, pool) == 0)
        pool->threads_count++;
}

struct hk_pool *hk_pool_create (int threads_max, struct hk_error *err)
{
    struct hk_pool *pool = calloc (1, sizeof (*pool));

    if (pool)
        pool->threads = calloc ((size_t)threads_max, sizeof (pthread_t));
    if (!pool || !pool->threads) {
        free (pool);
        hk_error_set (err, ENOMEM, "out of memory");
        return NULL;
    }
    pool->threads_max = threads_max;
    pthread_mutex_init (&pool->lock, NULL);
    pthread_cond_init (&pool->work, NULL);
    pthread_cond_init (&pool->done, NULL);
    return pool;
}

void hk_pool_destroy (struct hk_pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock (&pool->lock);
    pool->stop = true;
    pthread_cond_broadcast (&pool->work);
    pthread_mutex_unlock (&pool->lock);
    for (int i = 0; i < pool->threads_count; i++)
        pthread_join (pool->threads[i], NULL);
    pthread_cond_destroy (&pool->done);
    pthread_cond_destroy (&pool->work);
    pthread_mutex_destroy (&pool->lock);
    free (pool->threads);
    free (pool);
}

struct hk_pool *hk_pool_get_shared (struct hk_error *err)
{
    struct hk_pool *pool;

    pthread_mutex_lock (&shared_lock);
    if (!shared)
        shared = hk_pool_create (SHARED_THREADS, err);
    if (shared)
        shared_count++;
    pool = shared;
    pthread_mutex_unlock (&shared_lock);
    return pool;
}

void hk_pool_put_shared (void)
{
    pthread_mutex_lock (&shared_lock);
    if (--shared_count == 0) {
        hk_pool_destroy (shared);
        shared = NULL;
    }
    pthread_mutex_unlock (&shared_lock);
}

void hk_pool_lane_init (struct hk_pool_lane *lane,
                        struct hk_pool *pool,
                        int level,
                        int fd)
{
    *lane = (struct hk_pool_lane){ .pool = pool, .level = level, .fd = fd };
}

void hk_pool_lane_fini (struct hk_pool_lane *lane,
                        void (*drop) (struct hk_pool_job *job))
{
    struct hk_pool *pool = lane->pool;
    struct hk_pool_job *job;

    if (!pool)
        return;
    pthread_mutex_lock (&pool->lock);
    remove_ready (pool, lane);
    lane->unclaimed = NULL;
    while (lane->working > 0)
        pthread_cond_wait (&pool->done, &pool->lock);
    job = lane->head;
    lane->head = lane->tail = NULL;
    pthread_mutex_unlock (&pool->lock);
    while (job) {
        struct hk_pool_job *next = job->next;

        drop (job);
        job = next;
    }
    lane->pool = NULL;
}

int hk_pool_submit (struct hk_pool_lane *lane, struct hk_pool_job *job)
{
    struct hk_pool *pool = lane->pool;
    int rc = 0;

    job->next = NULL;
    job->done = false;
    pthread_mutex_lock (&pool->lock);
    if (pool->idle_count == 0 && pool->threads_count < pool->threads_max)
        start_thread (pool);
    if (pool->threads_count == 0) {
        errno = EAGAIN;
        rc = -1;
    } else {
        if (lane->tail)
            lane->tail->next = job;
        else
            lane->head = job;
        lane->tail = job;
        if (!lane->unclaimed)
            lane->unclaimed = job;
        lane->count++;
        put_ready (pool, lane);
        pthread_cond_signal (&pool->work);
    }
    pthread_mutex_unlock (&pool->lock);
    return rc;
}

struct hk_pool_job *hk_pool_collect (struct hk_pool_lane *lane)
{
    struct hk_pool *pool = lane->pool;
    struct hk_pool_job *job;

    pthread_mutex_lock (&pool->lock);
    job = lane->head;
    if (job && !job->done)
        job = NULL;
    if (job) {
        lane->head = job->next;
        if (!lane->head)
            lane->tail = NULL;
        lane->count--;
    }
    pthread_mutex_unlock (&pool->lock);
    return job;
}

/* thread.h - threads that take no signals */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HK_THREAD_H
#define HK_THREAD_H

#include <pthread.h>
#include <stddef.h>

/* Start a thread in which every signal is blocked: they are for the loop of the
 * program, or of the program that we are loaded into.  stack_bytes 0: as large
 * as is usual.  The caller joins it.  0, or the error's number; errno is not
 * set.
 */
int hk_thread_start (pthread_t *thread,
                     size_t stack_bytes,
                     void *(*run_f) (void *arg),
                     void *arg);

#endif

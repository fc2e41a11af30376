/* thread.c - threads that take no signals */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <signal.h>

#include "proto/thread.h"

int hk_thread_start (pthread_t *thread,
                     size_t stack_bytes,
                     void *(*run_f) (void *arg),
                     void *arg)
{
    pthread_attr_t attr;
    sigset_t all;
    sigset_t old;
    int rc = pthread_attr_init (&attr);

    if (rc != 0)
        return rc;
    if (stack_bytes)
        rc = pthread_attr_setstacksize (&attr, stack_bytes);
    if (rc == 0) {
        sigfillset (&all);
        pthread_sigmask (SIG_SETMASK, &all, &old);
        rc = pthread_create (thread, &attr, run_f, arg);
        pthread_sigmask (SIG_SETMASK, &old, NULL);
    }
    pthread_attr_destroy (&attr);
    return rc;
}

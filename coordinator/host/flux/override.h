/* override.h - the handlers that are put before job-manager's own */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HKC_FLUX_OVERRIDE_H
#define HKC_FLUX_OVERRIDE_H

#include <flux/core.h>

/* hello.c */
void hkc_on_hello (flux_t *h,
                   flux_msg_handler_t *mh,
                   const flux_msg_t *msg,
                   void *arg);
void hkc_on_ready (flux_t *h,
                   flux_msg_handler_t *mh,
                   const flux_msg_t *msg,
                   void *arg);
void hkc_on_disconnect (flux_t *h,
                        flux_msg_handler_t *mh,
                        const flux_msg_t *msg,
                        void *arg);

#endif

/* manager.h - the one manager session of the standalone host */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HKC_MANAGER_H
#define HKC_MANAGER_H

#include "coordinator/host/host.h"

/* Lives in the engine's thread after hkc_engine_start; made before the engine,
 * which is given to it right after.
 */
struct hkc_manager;

struct hkc_manager *hkc_manager_create (void);
void hkc_manager_destroy (struct hkc_manager *manager);
void hkc_manager_engine (struct hkc_manager *manager,
                         struct hkc_engine *engine);
void hkc_manager_ops (struct hkc_manager *manager, struct hkc_host_ops *ops);

#endif

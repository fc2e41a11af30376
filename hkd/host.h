/* host.h - who this node is: names and boot */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HKD_HOST_H
#define HKD_HOST_H

#include "proto/conf.h"
#include "proto/error.h"
#include "proto/limits.h"

struct hkd_host {
    char name[HK_HOST_NAME_BYTES];       /* full, where that is known */
    char short_name[HK_HOST_NAME_BYTES]; /* before the first dot */
    char boot_id[HK_ID_BYTES];
};

/* The name is the `host` option, or the machine's own: its full name stands in
 * /etc/hosts or is not known, since asking DNS may take for ever.
 */
int hkd_host_read (const struct hk_conf *conf,
                   struct hkd_host *host,
                   struct hk_error *err);

/* In the text of a hosts file, the name with a dot of the line that names
 * `name`; -1 if there is none.
 */
int hkd_host_full_name (const char *path,
                        const char *name,
                        char full[HK_HOST_NAME_BYTES]);

#endif

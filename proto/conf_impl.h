/* conf_impl.h - what the conf files share beside the table */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HK_CONF_IMPL_H
#define HK_CONF_IMPL_H

#include "proto/conf.h"

/* All defaults; NULL with ENOMEM. */
struct hk_conf *hk_conf_create (struct hk_error *err);

/* A class begins with its section, also if that stays empty. -1 with EINVAL if
 * there is no such section.
 */
int hk_conf_open_section (struct hk_conf *conf,
                          const char *section,
                          struct hk_error *err);

#endif

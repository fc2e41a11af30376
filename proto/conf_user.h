/* conf_user.h - a user id from a number or a name; for the conf files alone */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HK_CONF_USER_H
#define HK_CONF_USER_H

#include <sys/types.h>

/* -1 with EINVAL (empty, or a number that is no user id), ENOENT (no such
 * user), or what the user database said.
 */
int hk_conf_user_decode (const char *text, uid_t *uid);

#endif

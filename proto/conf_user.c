/* conf_user.c - a user id from a number or a name */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <pwd.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/conf_user.h"

enum { ENTRY_BYTES = 64 << 10 };

static int decode_number (const char *text, uid_t *uid)
{
    uint64_t n = 0;

    for (; *text; text++) {
        n = n * 10 + (uint64_t)(*text - '0');
        /* the highest of all means "no user" to the kernel */
        if (n >= UINT32_MAX) {
            errno = EINVAL;
            return -1;
        }
    }
    *uid = (uid_t)n;
    return 0;
}

int hk_conf_user_decode (const char *text, uid_t *uid)
{
    struct passwd entry;
    struct passwd *found = NULL;
    char *buf;
    int rc;

    if (text[0] == '\0') {
        errno = EINVAL;
        return -1;
    }
    if (text[strspn (text, "0123456789")] == '\0')
        return decode_number (text, uid);
    buf = malloc (ENTRY_BYTES);
    if (!buf)
        return -1;
    rc = getpwnam_r (text, &entry, buf, ENTRY_BYTES, &found);
    if (found)
        *uid = found->pw_uid;
    free (buf);
    if (found)
        return 0;
    /* getpwnam_r(3): each of these may mean that there is none */
    if (rc == 0 || rc == ESRCH || rc == EBADF || rc == EPERM)
        rc = ENOENT;
    errno = rc;
    return -1;
}

/* file.c - what the writing of a file needs everywhere */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <unistd.h>

#include "proto/file.h"

int hk_write_all (int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write (fd, data, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        data += n;
        len -= (size_t)n;
    }
    return 0;
}

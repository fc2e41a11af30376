/* file.h - what the writing of a file needs everywhere */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HK_FILE_H
#define HK_FILE_H

#include <stddef.h>

/* Goes on where a write was short or a signal came.  0, or -1 with errno; then
 * a part may be written.
 */
int hk_write_all (int fd, const char *data, size_t len);

#endif

/* fuse_folder.h - an empty folder on a real file system of kind fuse */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef TESTS_UNIT_FUSE_FOLDER_H
#define TESTS_UNIT_FUSE_FOLDER_H

#include <sys/types.h>

/* From now on this process has mounts of its own. 0 or -1. */
int mounts_private (void);

/* Mount it there; the child that answers for it is returned, -1 with errno
 * where that cannot be (no /dev/fuse, not root).
 */
pid_t fuse_folder_mount (const char *path);
void fuse_folder_unmount (const char *path, pid_t child);

#endif

/* faulty_vfs.h - the disk under SQLite, made to fail at one operation */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef TESTS_UNIT_FAULTY_VFS_H
#define TESTS_UNIT_FAULTY_VFS_H

#include <stdbool.h>

enum faulty_kind {
    FAULTY_IO = 1,    /* EIO */
    FAULTY_FULL,      /* ENOSPC */
    FAULTY_READ_ONLY, /* EROFS */
    /* from that operation on nothing reaches the disk any more, as when the
     * power goes; what is open may then only be closed */
    FAULTY_CRASH,
};

/* Once: files that are opened later go through it. 0 or -1. */
int faulty_vfs_install (void);

/* The n-th operation from now that changes a file (write, sync, truncate, more
 * shared memory) fails, from 1.
 */
void faulty_vfs_fail_at (long n, enum faulty_kind kind);
/* No more of them. True if one has failed. */
bool faulty_vfs_end (void);

#endif

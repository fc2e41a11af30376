/* cgroup.h - which processes are left in a unit's cgroup */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HKD_CGROUP_H
#define HKD_CGROUP_H

#include <stddef.h>

enum { HKD_LEFTOVER_BYTES = 128 };

struct hkd_leftovers {
    size_t count;
    char **list; /* "PID COMM WCHAN" */
};

/* Of the cgroup and all below it; `cgroup` as systemd names it ("": none).  One
 * that does not exist is empty; one that cannot be read is not: the cause
 * stands in the list.  At most HK_LEFTOVERS_LIMIT are named.  The caller ends
 * with hkd_leftovers_fini.  Out of memory shows as one left.
 */
void hkd_leftovers_read (const char *cgroup, struct hkd_leftovers *left);
void hkd_leftovers_fini (struct hkd_leftovers *left);

#endif

/* munged.h - a munged of the test's own, with a key and socket of its own */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HK_TEST_MUNGED_H
#define HK_TEST_MUNGED_H

#include <sys/types.h>

struct munged {
    char dir[64]; /* the test's too, for its files; 0755 */
    char socket[128];
    pid_t pid;
};

/* 0 when it answers; -1 with a line on stderr. */
int munged_start (struct munged *m);
/* Ends it and removes the folder. */
void munged_stop (struct munged *m);

#endif

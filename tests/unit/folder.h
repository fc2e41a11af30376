/* folder.h - a folder for a test's files */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef TESTS_UNIT_FOLDER_H
#define TESTS_UNIT_FOLDER_H

#include <stddef.h>

/* Make one: for root in /run, where root alone may write all the way; else in
 * /tmp. Its path goes to the buffer. 0 or -1.
 */
int folder_make (char *path, size_t size);
/* With all that is in it; links are not followed. 0 or -1. */
int folder_remove (const char *path);
/* Write a file in it; fails the test if that cannot be. */
void folder_write (const char *path, const char *name, const char *text);

/* Fixtures, of a group or of each test: a folder, and paths in it, each good
 * for the next three calls.
 */
extern char test_folder[64];
int folder_set_up (void **state);
int folder_tear_down (void **state);
const char *folder_at (const char *name);

#endif

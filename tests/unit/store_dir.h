/* store_dir.h - the folder of a store, and its files byte by byte */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef TESTS_UNIT_STORE_DIR_H
#define TESTS_UNIT_STORE_DIR_H

#include <stddef.h>

extern char folder[64]; /* of the test */
extern char dir[128];   /* FOLDER/state, which is not made yet */

/* For cmocka's setup and teardown. */
int dir_set_up (void **state);
int dir_tear_down (void **state);

/* A path in dir; four of them may be in use at a time. */
const char *at (const char *name);
unsigned mode_of (const char *path);
/* The caller frees it. */
char *file_bytes (const char *path, size_t *size);
void file_put (const char *path, const char *bytes, size_t size);
void assert_file (const char *path, const char *bytes, size_t size);

struct hkc_schema;
/* It is not opened, with that errno and a text that says it. */
void assert_refused (int errnum, const char *says);
void assert_refused_as (const struct hkc_schema *schema,
                        int errnum,
                        const char *says);
/* A store with something in each table of what is not done. */
void make_full (void);

#endif

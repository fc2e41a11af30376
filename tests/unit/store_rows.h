/* store_rows.h - rows for tests of the store, and what it has as text */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef TESTS_UNIT_STORE_ROWS_H
#define TESTS_UNIT_STORE_ROWS_H

#include "coordinator/store/store.h"

/* An allocation of job `jobid` with its parts on node0, node1, ...: ids and
 * times follow from the numbers.  Text in them is static.
 */
struct hkc_row row_alloc (uint64_t alloc,
                          uint64_t jobid,
                          uint64_t pid,
                          uint32_t parts_count);
struct hkc_row row_part (uint64_t alloc, uint64_t pid, const char *host);
struct hkc_row row_state (uint64_t alloc, const char *done);
struct hkc_row row_history (uint64_t alloc,
                            uint64_t jobid,
                            uint64_t pid,
                            int attempt,
                            const char *host);
/* t_closed is t. */
struct hkc_row row_closed (const struct hkc_row *alloc, double t);

/* One of each kind, at most 16, and what is then loaded as text. */
size_t all_rows (struct hkc_row *rows);
extern const char all_text[];

/* Open one; fails the test if it cannot be. */
struct hkc_store *store_open (const char *dir);

/* In one transaction; fails the test if it cannot be. */
void store_commit (struct hkc_store *store,
                   const struct hkc_row *rows,
                   size_t count);
/* The same, which may fail: 0, or -1 with errno after a rollback. */
int store_try (struct hkc_store *store,
               const struct hkc_row *rows,
               size_t count,
               struct hk_error *err);

/* All rows that are loaded, a line each; the caller frees it. */
char *store_text (struct hkc_store *store);
void assert_store_text (struct hkc_store *store, const char *want);

/* Rows of a table that have it so: "history WHERE pid = 3". */
long store_count (struct hkc_store *store, const char *what);

#endif

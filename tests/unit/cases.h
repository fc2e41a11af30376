/* cases.h - folders of cases: inputs with what is to come of them */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef TESTS_UNIT_CASES_H
#define TESTS_UNIT_CASES_H

#include <stddef.h>

/* A file's bytes, and a NUL behind them; fails where it cannot be read.  Its
 * length if `len` is given.  The caller's to free.
 */
char *case_read (const char *path, size_t *len);

/* For each NAME.EXT in tests/unit/data/FOLDER: its path, its text, and the text
 * of NAME.WANT beside it, each without its last newline.
 */
typedef void (*case_f) (const char *path, const char *text, const char *want);

/* Fails where there is no case, or a file without its other. */
void cases_run (const char *folder,
                const char *ext,
                const char *want,
                case_f run);

/* Fails and names the case. */
void case_equal (const char *path, const char *got, const char *want);

#endif

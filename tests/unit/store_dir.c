/* store_dir.c - the folder of a store, and its files byte by byte */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "coordinator/store/schema.h"
#include "tests/unit/folder.h"
#include "tests/unit/store_dir.h"
#include "tests/unit/store_rows.h"

char folder[64];
char dir[128];

const char *at (const char *name)
{
    static char path[4][256];
    static int turn;

    turn = (turn + 1) % 4;
    snprintf (path[turn], sizeof (path[turn]), "%s/%s", dir, name);
    return path[turn];
}

int dir_set_up (void **state)
{
    (void)state;
    if (folder_make (folder, sizeof (folder)) < 0)
        return -1;
    snprintf (dir, sizeof (dir), "%s/state", folder);
    return 0;
}

int dir_tear_down (void **state)
{
    (void)state;
    return folder_remove (folder);
}

/* The text says what is wrong. */
void assert_refused_as (const struct hkc_schema *schema,
                        int errnum,
                        const char *says)
{
    struct hk_error err = { "" };
    struct hkc_store *store = hkc_store_open_as (dir, schema, &err);

    if (store)
        fail_msg ("opened, expected: %s", says);
    if (errno != errnum || !strstr (err.text, says))
        fail_msg ("errno %d: '%s', expected %s", errno, err.text, says);
}

void assert_refused (int errnum, const char *says)
{
    assert_refused_as (&hkc_schema, errnum, says);
}

char *file_bytes (const char *path, size_t *size)
{
    FILE *f = fopen (path, "re");
    struct stat st;
    char *bytes;

    assert_non_null (f);
    assert_int_equal (fstat (fileno (f), &st), 0);
    *size = (size_t)st.st_size;
    bytes = malloc (*size + 1);
    assert_non_null (bytes);
    assert_int_equal (fread (bytes, 1, *size, f), *size);
    fclose (f);
    return bytes;
}

void file_put (const char *path, const char *bytes, size_t size)
{
    FILE *f = fopen (path, "we");

    assert_non_null (f);
    assert_int_equal (fwrite (bytes, 1, size, f), size);
    assert_int_equal (fclose (f), 0);
}

void assert_file (const char *path, const char *bytes, size_t size)
{
    size_t now;
    char *is = file_bytes (path, &now);

    assert_int_equal (now, size);
    assert_memory_equal (is, bytes, size);
    free (is);
}

unsigned mode_of (const char *path)
{
    struct stat st;

    assert_int_equal (stat (path, &st), 0);
    return st.st_mode & 07777;
}

/* A store with something in each table of what is not done. */
void make_full (void)
{
    struct hkc_store *store = store_open (dir);

    for (int i = 1; i <= 100; i++) {
        struct hkc_row rows[] = {
            row_alloc (i, i, i, 1),
            row_state (i, ""),
            row_part (i, i, "node1"),
            row_history (i, i, i, 1, "node1"),
        };
        store_commit (store, rows, 4);
    }
    hkc_store_close (store);
}

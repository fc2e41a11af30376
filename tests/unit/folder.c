/* folder.c - a folder for a test's files */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/unit/folder.h"

char test_folder[64];

int folder_make (char *path, size_t size)
{
    snprintf (
        path, size, "%s/hk-test-XXXXXX", geteuid () == 0 ? "/run" : "/tmp");
    return mkdtemp (path) ? 0 : -1;
}

static int remove_one (const char *path,
                       const struct stat *st,
                       int flag,
                       struct FTW *where)
{
    (void)st;
    (void)flag;
    (void)where;
    return remove (path);
}

int folder_remove (const char *path)
{
    return nftw (path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

void folder_write (const char *path, const char *name, const char *text)
{
    char file[4096];
    FILE *f;

    snprintf (file, sizeof (file), "%s/%s", path, name);
    f = fopen (file, "we");
    if (!f)
        fail_msg ("%s: cannot be written", file);
    fputs (text, f);
    assert_int_equal (fclose (f), 0);
}

int folder_set_up (void **state)
{
    (void)state;
    return folder_make (test_folder, sizeof (test_folder));
}

int folder_tear_down (void **state)
{
    (void)state;
    return folder_remove (test_folder);
}

const char *folder_at (const char *name)
{
    static char path[4][4096];
    static int turn;

    turn = (turn + 1) % 4;
    snprintf (path[turn], sizeof (path[turn]), "%s/%s", test_folder, name);
    return path[turn];
}

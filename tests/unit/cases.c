/* cases.c - folders of cases: inputs with what is to come of them */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/cases.h"

char *case_read (const char *path, size_t *len)
{
    FILE *f = fopen (path, "re");
    char *text;
    long size;

    if (!f)
        fail_msg ("%s: no such file", path);
    assert_int_equal (fseek (f, 0, SEEK_END), 0);
    size = ftell (f);
    assert_true (size >= 0);
    rewind (f);
    text = malloc ((size_t)size + 1);
    assert_non_null (text);
    assert_int_equal (fread (text, 1, (size_t)size, f), size);
    text[size] = '\0';
    fclose (f);
    if (len)
        *len = (size_t)size;
    return text;
}

static char *read_line (const char *path)
{
    size_t n;
    char *text = case_read (path, &n);

    if (n > 0 && text[n - 1] == '\n')
        text[n - 1] = '\0';
    return text;
}

static void run_one (const char *path,
                     const char *ext,
                     const char *want,
                     case_f run)
{
    char want_path[1024];
    char *text = read_line (path);
    char *want_text;

    snprintf (want_path,
              sizeof (want_path),
              "%.*s%s",
              (int)(strlen (path) - strlen (ext)),
              path,
              want);
    want_text = read_line (want_path);
    run (path, text, want_text);
    free (text);
    free (want_text);
}

static size_t count_files (const char *folder, const char *ext)
{
    char pattern[1024];
    glob_t found;
    size_t count = 0;

    snprintf (
        pattern, sizeof (pattern), "tests/unit/data/%s/*.%s", folder, ext);
    if (glob (pattern, 0, NULL, &found) == 0)
        count = found.gl_pathc;
    globfree (&found);
    return count;
}

void cases_run (const char *folder,
                const char *ext,
                const char *want,
                case_f run)
{
    char pattern[1024];
    glob_t found;

    snprintf (
        pattern, sizeof (pattern), "tests/unit/data/%s/*.%s", folder, ext);
    if (glob (pattern, 0, NULL, &found) != 0)
        fail_msg ("%s: no cases", pattern);
    assert_int_equal (count_files (folder, want), found.gl_pathc);
    for (size_t i = 0; i < found.gl_pathc; i++)
        run_one (found.gl_pathv[i], ext, want, run);
    globfree (&found);
}

void case_equal (const char *path, const char *got, const char *want)
{
    if (!got || strcmp (got, want) != 0)
        fail_msg ("%s:\n  got:      %s\n  expected: %s",
                  path,
                  got ? got : "NULL",
                  want);
}

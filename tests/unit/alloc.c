/* alloc.c - make the allocations of the code under test fail, one at a time */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/alloc.h"

void *__real_malloc (size_t size);
void *__real_calloc (size_t count, size_t size);
void *__real_realloc (void *p, size_t size);
char *__real_strdup (const char *text);
void *__wrap_malloc (size_t size);
void *__wrap_calloc (size_t count, size_t size);
void *__wrap_realloc (void *p, size_t size);
char *__wrap_strdup (const char *text);

static _Thread_local long left; /* 0: none fails */
static _Thread_local bool failed;

void alloc_fail_at (long n)
{
    left = n;
    failed = false;
}

bool alloc_did_fail (void)
{
    left = 0;
    return failed;
}

static bool fails_now (void)
{
    if (left == 0 || --left > 0)
        return false;
    failed = true;
    errno = ENOMEM;
    return true;
}

void *__wrap_malloc (size_t size)
{
    return fails_now () ? NULL : __real_malloc (size);
}

void *__wrap_calloc (size_t count, size_t size)
{
    return fails_now () ? NULL : __real_calloc (count, size);
}

void *__wrap_realloc (void *p, size_t size)
{
    return fails_now () ? NULL : __real_realloc (p, size);
}

char *__wrap_strdup (const char *text)
{
    return fails_now () ? NULL : __real_strdup (text);
}

void alloc_fail_jansson (void)
{
    json_set_alloc_funcs (malloc, free);
}

/* trust.c - may root act on this file? */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/trust.h"

enum { LINKS_LIMIT = 40 }; /* as the kernel's */

/* What is checked so far, without links in it, and what is still to be gone. */
struct walk {
    char done[PATH_MAX]; /* "" is the root */
    char rest[PATH_MAX];
    int links;
    struct hk_error *err;
};

static int too_long (struct walk *w)
{
    return hk_error_errno (w->err, ENAMETOOLONG, "%.100s...", w->done);
}

/* A link's mode says nothing; its owner does. A sticky folder keeps others from
 * removing a file, not from making the one that is looked for.
 */
static int check_one (struct walk *w, const struct stat *st)
{
    const char *path = w->done[0] ? w->done : "/";

    if (st->st_uid != 0)
        return hk_error_set (w->err,
                             EPERM,
                             "%s belongs to user id %u, not to root",
                             path,
                             (unsigned int)st->st_uid);
    if (!S_ISLNK (st->st_mode) && (st->st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return hk_error_set (w->err,
                             EPERM,
                             "%s may be written by others than root (mode "
                             "%04o)",
                             path,
                             (unsigned int)st->st_mode & 07777);
    return 0;
}

/* Cut the first component off w->rest into name; false at the end. */
static bool next_name (struct walk *w, char *name, size_t size)
{
    size_t start = strspn (w->rest, "/");
    size_t len = strcspn (w->rest + start, "/");

    if (len == 0)
        return false;
    snprintf (name, size, "%.*s", (int)len, w->rest + start);
    memmove (
        w->rest, w->rest + start + len, strlen (w->rest + start + len) + 1);
    return true;
}

/* w->done is a link: what it points to goes before the rest. */
static int follow (struct walk *w)
{
    char target[PATH_MAX];
    size_t rest_len = strlen (w->rest);
    ssize_t n;

    if (++w->links > LINKS_LIMIT)
        return hk_error_errno (w->err, ELOOP, "%s", w->done);
    n = readlink (w->done, target, sizeof (target));
    if (n < 0)
        return hk_error_errno (w->err, errno, "%s", w->done);
    if ((size_t)n + rest_len >= sizeof (w->rest))
        return too_long (w);
    /* the rest is empty or begins with a slash */
    memmove (w->rest + n, w->rest, rest_len + 1);
    memcpy (w->rest, target, (size_t)n);
    *strrchr (w->done, '/') = '\0';
    if (target[0] == '/')
        w->done[0] = '\0';
    return 0;
}

static int step (struct walk *w, const char *name)
{
    size_t len = strlen (w->done);
    struct stat st;

    if (!strcmp (name, "."))
        return 0;
    if (!strcmp (name, "..")) {
        if (len > 0)
            *strrchr (w->done, '/') = '\0';
        return 0;
    }
    if (len + 1 + strlen (name) >= sizeof (w->done))
        return too_long (w);
    w->done[len] = '/';
    strcpy (w->done + len + 1, name);
    if (lstat (w->done, &st) < 0)
        return hk_error_errno (w->err, errno, "%s", w->done);
    if (check_one (w, &st) < 0)
        return -1;
    if (S_ISLNK (st.st_mode))
        return follow (w);
    if (w->rest[0] != '\0' && !S_ISDIR (st.st_mode))
        return hk_error_errno (w->err, ENOTDIR, "%s", w->done);
    return 0;
}

int hk_trust_check (const char *path, struct hk_error *err)
{
    struct walk w = { .err = err };
    char name[PATH_MAX];
    struct stat st;

    if (path[0] != '/')
        return hk_error_set (err, EINVAL, "%s: not an absolute path", path);
    if (strlen (path) >= sizeof (w.rest))
        return hk_error_errno (err, ENAMETOOLONG, "%.100s...", path);
    strcpy (w.rest, path);
    if (stat ("/", &st) < 0)
        return hk_error_errno (err, errno, "/");
    if (check_one (&w, &st) < 0)
        return -1;
    while (next_name (&w, name, sizeof (name))) {
        if (step (&w, name) < 0)
            return -1;
    }
    return 0;
}

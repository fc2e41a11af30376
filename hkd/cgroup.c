/* cgroup.c - which processes are left in a unit's cgroup */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <fts.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "proto/escape.h"
#include "proto/limits.h"
#include "hkd/cgroup.h"

void hkd_leftovers_fini (struct hkd_leftovers *left)
{
    for (size_t i = 0; i < left->count; i++)
        free (left->list[i]);
    free (left->list);
    left->list = NULL;
    left->count = 0;
}

static void add (struct hkd_leftovers *left, const char *text)
{
    char line[HKD_LEFTOVER_BYTES];
    char **more;

    if (left->count == HK_LEFTOVERS_LIMIT)
        return;
    hk_escape (text, SIZE_MAX, line, sizeof (line));
    more = realloc (left->list, (left->count + 1) * sizeof (*more));
    if (!more)
        abort (); /* files and units outlive the process */
    left->list = more;
    if (!(more[left->count] = strdup (line)))
        abort ();
    left->count++;
}

/* First line of a process's file; "-" if it is not to be had. */
static void read_word (long pid, const char *name, char *word, size_t size)
{
    char path[64];
    FILE *f;

    snprintf (path, sizeof (path), "/proc/%ld/%s", pid, name);
    snprintf (word, size, "-");
    if (!(f = fopen (path, "re")))
        return;
    if (!fgets (word, (int)size, f) || !strcmp (word, "0"))
        snprintf (word, size, "-");
    fclose (f);
    word[strcspn (word, "\n")] = '\0';
}

static void add_process (struct hkd_leftovers *left, long pid)
{
    char comm[64], wchan[64], text[HKD_LEFTOVER_BYTES + 64];

    read_word (pid, "comm", comm, sizeof (comm));
    read_word (pid, "wchan", wchan, sizeof (wchan));
    snprintf (text, sizeof (text), "%ld %s %s", pid, comm, wchan);
    add (left, text);
}

/* Gone while one looks is gone; anything else may hide a process. */
static bool is_gone (int errnum)
{
    return errnum == ENOENT || errnum == ENODEV;
}

static void add_failure (struct hkd_leftovers *left,
                         const char *path,
                         int errnum)
{
    char text[PATH_MAX + 64];

    if (is_gone (errnum))
        return;
    snprintf (text, sizeof (text), "? %s %s", path, strerror (errnum));
    add (left, text);
}

static void read_procs (const char *folder, struct hkd_leftovers *left)
{
    char path[PATH_MAX + 16], line[32];
    FILE *f;

    snprintf (path, sizeof (path), "%s/cgroup.procs", folder);
    if (!(f = fopen (path, "re"))) {
        add_failure (left, path, errno);
        return;
    }
    errno = 0;
    while (fgets (line, sizeof (line), f))
        add_process (left, strtol (line, NULL, 10));
    if (ferror (f))
        add_failure (left, path, errno);
    fclose (f);
}

/* systemd's own hierarchy: the unified one, or that of its name beside others */
static const char *root (void)
{
    static const char *const roots[] = {
        "/sys/fs/cgroup/unified",
        "/sys/fs/cgroup/systemd",
    };

    if (access ("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0)
        return "/sys/fs/cgroup";
    for (size_t i = 0; i < sizeof (roots) / sizeof (roots[0]); i++)
        if (access (roots[i], F_OK) == 0)
            return roots[i];
    return "/sys/fs/cgroup";
}

void hkd_leftovers_read (const char *cgroup, struct hkd_leftovers *left)
{
    char path[PATH_MAX];
    char *paths[] = { path, NULL };
    FTSENT *entry;
    FTS *fts;

    memset (left, 0, sizeof (*left));
    if (!*cgroup)
        return;
    if (access (root (), F_OK) < 0) {
        add (left, "? there is no cgroup file system");
        return;
    }
    if (snprintf (path, sizeof (path), "%s%s", root (), cgroup)
        >= (int)sizeof (path)) {
        add (left, "? path of the cgroup is too long");
        return;
    }
    if (!(fts = fts_open (paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL))) {
        add_failure (left, path, errno);
        return;
    }
    while ((entry = fts_read (fts))) {
        if (entry->fts_info == FTS_D)
            read_procs (entry->fts_path, left);
        else if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR
                 || entry->fts_info == FTS_NS)
            add_failure (left, entry->fts_path, entry->fts_errno);
    }
    fts_close (fts);
}

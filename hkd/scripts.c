/* scripts.c - which scripts a run is made of, and may root run them? */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "proto/limits.h"
#include "proto/trust.h"
#include "hkd/scripts.h"

enum { NAMES_BYTES = 32 << 10 }; /* of all: a report must hold them */

void hkd_scripts_fini (struct hkd_scripts *scripts)
{
    for (size_t i = 0; i < scripts->count; i++) {
        free (scripts->list[i].name);
        free (scripts->list[i].path);
    }
    free (scripts->list);
    scripts->list = NULL;
    scripts->count = 0;
}

/* What the kernel cannot run by itself is the shell's, as `sh` itself does. */
static int by_shell (const char *path, bool *shell, struct hk_error *err)
{
    char head[4] = "";
    int fd = open (path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    ssize_t n;

    if (fd < 0)
        return hk_error_errno (err, errno, "%s", path);
    n = read (fd, head, sizeof (head));
    if (n < 0) {
        hk_error_errno (err, errno, "%s", path);
        close (fd);
        return -1;
    }
    close (fd);
    *shell = !(n >= 2 && !memcmp (head, "#!", 2))
             && !(n == 4 && !memcmp (head, "\177ELF", 4));
    return 0;
}

static int add (struct hkd_scripts *scripts,
                const char *path,
                struct hk_error *err)
{
    struct hkd_script *list, new = { .name = NULL };
    size_t bytes = strlen (strrchr (path, '/'));

    for (size_t i = 0; i < scripts->count; i++)
        bytes += strlen (scripts->list[i].name) + 1;
    if (scripts->count == HK_SCRIPTS_LIMIT || bytes > NAMES_BYTES)
        return hk_error_set (err, E2BIG, "%s: too many scripts", path);
    if (hk_trust_check (path, err) < 0 || by_shell (path, &new.by_shell, err))
        return -1;
    list = realloc (scripts->list, (scripts->count + 1) * sizeof (*list));
    if (list)
        scripts->list = list;
    new.path = strdup (path);
    new.name = strdup (strrchr (path, '/') + 1);
    if (!list || !new.path || !new.name) {
        free (new.path);
        free (new.name);
        return hk_error_set (err, ENOMEM, "%s: out of memory", path);
    }
    list[scripts->count++] = new;
    return 0;
}

/* 1 if it is a file to be run, 0 if it is to be passed over: no regular file,
 * or nobody may execute it (upstream: test -f -a -x).  A link that leads
 * nowhere is a script that is lost.
 */
static int is_script (const char *path, struct hk_error *err)
{
    struct stat st;

    if (stat (path, &st) < 0)
        return hk_error_errno (err, errno, "%s", path);
    return S_ISREG (st.st_mode) && (st.st_mode & 0111) != 0;
}

/* As a shell's `*`. */
static int visible (const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int by_bytes (const struct dirent **a, const struct dirent **b)
{
    return strcmp ((*a)->d_name, (*b)->d_name);
}

/* Missing, and not merely a link that leads nowhere. */
static bool missing (const char *path)
{
    struct stat st;

    return lstat (path, &st) < 0 && errno == ENOENT;
}

static int add_folder (struct hkd_scripts *scripts,
                       const char *folder,
                       struct hk_error *err)
{
    struct dirent **names = NULL;
    char path[PATH_MAX];
    int n, rc = 0;

    if (missing (folder))
        return 0;
    if (hk_trust_check (folder, err) < 0)
        return -1;
    if ((n = scandir (folder, &names, visible, by_bytes)) < 0)
        return hk_error_errno (err, errno, "%s", folder);
    for (int i = 0; i < n; i++) {
        if (rc == 0
            && snprintf (path, sizeof (path), "%s/%s", folder, names[i]->d_name)
                   >= (int)sizeof (path))
            rc = hk_error_errno (err, ENAMETOOLONG, "%s", folder);
        if (rc == 0 && (rc = is_script (path, err)) > 0)
            rc = add (scripts, path, err);
        free (names[i]);
    }
    free (names);
    return rc;
}

static int join (char *path,
                 const char *dir,
                 const char *rest,
                 struct hk_error *err)
{
    if (snprintf (path, PATH_MAX, "%s/%s", dir, rest) < PATH_MAX)
        return 0;
    return hk_error_errno (err, ENAMETOOLONG, "%.100s...", dir);
}

/* Upstream's order: what packages bring, then the site's one script or, if
 * there is none, the site's folder.
 */
static int find (const struct hk_conf *conf,
                 struct hkd_scripts *scripts,
                 struct hk_error *err)
{
    char path[PATH_MAX];
    int rc;

    if (join (path, conf->libexecdir, "flux/housekeeping.d", err) < 0
        || add_folder (scripts, path, err) < 0
        || join (path, conf->sysconfdir, "flux/system/housekeeping", err) < 0)
        return -1;
    if (!missing (path)) {
        if ((rc = is_script (path, err)) < 0)
            return -1;
        if (rc > 0)
            return add (scripts, path, err);
    }
    if (join (path, conf->sysconfdir, "flux/system/housekeeping.d", err) < 0)
        return -1;
    return add_folder (scripts, path, err);
}

int hkd_scripts_find (const struct hk_conf *conf,
                      const struct hk_policy *policy,
                      uint32_t userid,
                      struct hkd_scripts *scripts,
                      struct hk_error *err)
{
    struct hkd_scripts found = { .list = NULL };

    if (userid == 0 && !policy->allow_userid_0)
        return hk_error_set (err,
                             EPERM,
                             "the job was root's, and "
                             "allow-userid-0 is off");
    if (find (conf, &found, err) < 0) {
        hkd_scripts_fini (&found);
        return -1;
    }
    *scripts = found;
    return 0;
}

/* runfile.c - what hkd must still know after its own restart: files in run_dir */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "proto/file.h"
#include "proto/log.h"
#include "proto/message.h"
#include "proto/trust.h"
#include "hkd/runfile.h"

enum { FILE_BYTES = 1 << 20 };

static const char seen_name[] = "seen.json";

static int make_path (char *path,
                      const char *dir,
                      const char *name,
                      struct hk_error *err)
{
    if (snprintf (path, HKD_PATH_BYTES, "%s/%s", dir, name) < HKD_PATH_BYTES)
        return 0;
    return hk_error_errno (err, ENAMETOOLONG, "%.100s...", dir);
}

static void run_name (
    char *name, size_t size, uint64_t alloc, int attempt, const char *suffix)
{
    snprintf (name, size, "run-%016" PRIx64 "-%d.%s", alloc, attempt, suffix);
}

int hkd_runfile_lock (const char *dir, struct hk_error *err)
{
    char path[HKD_PATH_BYTES];
    int fd;

    if (make_path (path, dir, "lock", err) < 0)
        return -1;
    if (mkdir (dir, 0700) < 0 && errno != EEXIST)
        return hk_error_errno (err, errno, "%s", dir);
    if (hk_trust_check (dir, err) < 0)
        return -1;
    fd = open (path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return hk_error_errno (err, errno, "%s", path);
    if (flock (fd, LOCK_EX | LOCK_NB) < 0) {
        int errnum = errno;
        close (fd);
        if (errnum == EWOULDBLOCK)
            return hk_error_set (err, errnum, "another hkd uses %s", dir);
        return hk_error_errno (err, errnum, "%s", path);
    }
    return fd;
}

/* hkd alone writes here, so that one name for the temporary file is enough. */
static int file_write (const char *dir,
                       const char *name,
                       const char *text,
                       size_t len,
                       struct hk_error *err)
{
    char path[HKD_PATH_BYTES], temp[HKD_PATH_BYTES];
    int fd;

    if (make_path (path, dir, name, err) < 0
        || make_path (temp, dir, "new.tmp", err) < 0)
        return -1;
    fd = open (
        temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return hk_error_errno (err, errno, "%s", temp);
    if (hk_write_all (fd, text, len) < 0) {
        hk_error_errno (err, errno, "%s", temp);
        close (fd);
        return -1;
    }
    if (close (fd) < 0 || rename (temp, path) < 0)
        return hk_error_errno (err, errno, "%s", path);
    return 0;
}

static int file_remove (const char *dir, const char *name, struct hk_error *err)
{
    char path[HKD_PATH_BYTES];

    if (make_path (path, dir, name, err) < 0)
        return -1;
    if (unlink (path) < 0 && errno != ENOENT)
        return hk_error_errno (err, errno, "%s", path);
    return 0;
}

static char *file_read (const char *path, size_t *len, struct hk_error *err)
{
    char *text = malloc (FILE_BYTES);
    int fd = open (path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    ssize_t n = -1;

    if (!text)
        hk_error_set (err, ENOMEM, "%s: out of memory", path);
    else if (fd < 0 || (n = read (fd, text, FILE_BYTES)) < 0)
        hk_error_errno (err, errno, "%s", path);
    else if (n == FILE_BYTES) {
        hk_error_errno (err, EFBIG, "%s", path);
        n = -1;
    }
    if (fd >= 0)
        close (fd);
    if (n < 0) {
        free (text);
        return NULL;
    }
    *len = (size_t)n;
    return text;
}

static void put_aside (const char *path, const char *why)
{
    char aside[HKD_PATH_BYTES + 16];

    snprintf (aside, sizeof (aside), "%s.damaged", path);
    if (rename (path, aside) < 0)
        hk_log (LOG_ERR, "%s cannot be put aside: %s", path, strerror (errno));
    hk_log (LOG_ERR, "%s is damaged and was put aside: %s", path, why);
}

/* ---- runs ---- */

int hkd_runfile_write (const char *dir,
                       const struct hk_run *run,
                       const struct hkd_limits *limits,
                       struct hk_error *err)
{
    struct hk_msg msg = { .type = HK_MSG_RUN, .seq = 1, .run = *run };
    char name[64];
    size_t len;
    char *object, *text;
    int rc;

    if (!(object = hk_msg_encode (&msg, &len, err)))
        return -1;
    text = hkd_limits_append (object, len, limits);
    free (object);
    if (!text)
        return hk_error_set (err, ENOMEM, "out of memory");
    run_name (name, sizeof (name), run->alloc, run->attempt, "json");
    rc = file_write (dir, name, text, strlen (text), err);
    free (text);
    return rc;
}

int hkd_runfile_remove (const char *dir,
                        uint64_t alloc,
                        int attempt,
                        struct hk_error *err)
{
    char name[64];

    if (hkd_go_remove (dir, alloc, attempt, err) < 0)
        return -1;
    run_name (name, sizeof (name), alloc, attempt, "json");
    return file_remove (dir, name, err);
}

static int load_one (const char *dir,
                     const char *name,
                     const char *boot_id,
                     hkd_runfile_f fn,
                     void *arg,
                     struct hk_error *err)
{
    char path[HKD_PATH_BYTES], expected[64];
    struct hkd_limits limits;
    struct hk_error why;
    struct hk_msg msg;
    size_t len;
    char *text;
    int has_limits, rc = 0;

    if (make_path (path, dir, name, err) < 0)
        return -1;
    if (!(text = file_read (path, &len, &why))) {
        if (errno != EISDIR && errno != EFBIG && errno != ELOOP)
            return hk_error_set (err, errno, "%s", why.text);
        put_aside (path, why.text);
        return 0;
    }
    if ((has_limits = hkd_limits_read (text, len, &limits, &why)) < 0
        || hk_msg_decode (text, len, FILE_BYTES, &msg, &why) < 0) {
        put_aside (path, why.text);
        free (text);
        return 0;
    }
    free (text);
    run_name (
        expected, sizeof (expected), msg.run.alloc, msg.run.attempt, "json");
    if (msg.type != HK_MSG_RUN || strcmp (expected, name) != 0)
        put_aside (path, "it is not about the run of its name");
    else if (!strcmp (msg.run.boot_id, boot_id))
        fn (arg, &msg.run, has_limits ? &limits : NULL);
    else
        rc = hkd_runfile_remove (dir, msg.run.alloc, msg.run.attempt, err);
    hk_msg_fini (&msg);
    return rc;
}

static bool ends_with (const char *name, const char *end)
{
    size_t n = strlen (name), m = strlen (end);

    return n > m && !strcmp (name + n - m, end);
}

static int is_run (const struct dirent *entry)
{
    return !strncmp (entry->d_name, "run-", 4)
           && (ends_with (entry->d_name, ".json")
               || ends_with (entry->d_name, ".go"));
}

/* A .go file that no run has was made just before a crash.  That of a damaged
 * file may be a unit's, which is then nobody's and goes on.
 */
static int load_go (const char *dir, const char *name, struct hk_error *err)
{
    static const char *const others[] = { "json", "json.damaged" };
    char path[HKD_PATH_BYTES], other[128];

    for (size_t i = 0; i < sizeof (others) / sizeof (others[0]); i++) {
        snprintf (other,
                  sizeof (other),
                  "%.*s%s",
                  (int)(strlen (name) - strlen ("go")),
                  name,
                  others[i]);
        if (make_path (path, dir, other, err) < 0)
            return -1;
        if (access (path, F_OK) == 0)
            return 0;
    }
    return file_remove (dir, name, err);
}

int hkd_runfile_each (const char *dir,
                      const char *boot_id,
                      hkd_runfile_f fn,
                      void *arg,
                      struct hk_error *err)
{
    struct dirent **names;
    int n = scandir (dir, &names, is_run, alphasort);
    int rc = 0;

    if (n < 0)
        return hk_error_errno (err, errno, "%s", dir);
    rc = file_remove (dir, "new.tmp", err);
    for (int i = 0; i < n; i++) {
        const char *name = names[i]->d_name;
        if (rc == 0 && ends_with (name, ".json"))
            rc = load_one (dir, name, boot_id, fn, arg, err);
        else if (rc == 0)
            rc = load_go (dir, name, err);
        free (names[i]);
    }
    free (names);
    return rc;
}

/* ---- may the next script start? ---- */

char *hkd_go_path (const char *dir, uint64_t alloc, int attempt, char *path)
{
    char name[64];

    run_name (name, sizeof (name), alloc, attempt, "go");
    snprintf (path, HKD_PATH_BYTES, "%s/%s", dir, name);
    return path;
}

int hkd_go_create (const char *dir,
                   uint64_t alloc,
                   int attempt,
                   struct hk_error *err)
{
    char path[HKD_PATH_BYTES];
    int fd = open (hkd_go_path (dir, alloc, attempt, path),
                   O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
                   0600);

    if (fd < 0)
        return hk_error_errno (err, errno, "%s", path);
    close (fd);
    return 0;
}

int hkd_go_remove (const char *dir,
                   uint64_t alloc,
                   int attempt,
                   struct hk_error *err)
{
    char name[64];

    run_name (name, sizeof (name), alloc, attempt, "go");
    return file_remove (dir, name, err);
}

/* ---- what the coordinator told last ---- */

static int seen_decode (const char *text,
                        size_t len,
                        struct hkd_seen *seen,
                        struct hk_error *err)
{
    json_error_t why;
    json_t *root = json_loadb (text, len, JSON_REJECT_DUPLICATES, &why);
    const char *instance;
    json_int_t start, commit;
    int rc = -1;

    if (!root
        || json_unpack_ex (root,
                           &why,
                           JSON_STRICT,
                           "{s:s s:I s:I}",
                           "instance",
                           &instance,
                           "start",
                           &start,
                           "commit",
                           &commit)
               < 0)
        hk_error_set (err, EINVAL, "%s", why.text);
    else if (strlen (instance) != HK_ID_BYTES - 1 || start < 0 || commit < 0)
        hk_error_set (err, EINVAL, "no id or no number");
    else {
        memcpy (seen->instance, instance, HK_ID_BYTES);
        seen->start = (uint64_t)start;
        seen->commit = (uint64_t)commit;
        rc = 0;
    }
    json_decref (root);
    return rc;
}

void hkd_seen_load (const char *dir, struct hkd_seen *seen)
{
    char path[HKD_PATH_BYTES];
    struct hk_error err;
    size_t len;
    char *text;

    memset (seen, 0, sizeof (*seen));
    if (make_path (path, dir, seen_name, NULL) < 0 || access (path, F_OK) < 0)
        return;
    if (!(text = file_read (path, &len, &err))
        || seen_decode (text, len, seen, &err) < 0)
        put_aside (path, err.text);
    free (text);
}

int hkd_seen_save (const char *dir,
                   const struct hkd_seen *seen,
                   struct hk_error *err)
{
    char text[256];
    int len = snprintf (text,
                        sizeof (text),
                        "{\"instance\":\"%s\",\"start\":%" PRIu64
                        ",\"commit\":%" PRIu64 "}\n",
                        seen->instance,
                        seen->start,
                        seen->commit);

    return file_write (dir, seen_name, text, (size_t)len, err);
}

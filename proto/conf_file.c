/* conf_file.c - read hk.conf and its drop-ins with libinih */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/conf_impl.h"
#include "proto/trust.h"

enum {
    LINE_BYTES = 8192, /* with newline and NUL */
    LINES_LIMIT = 10000,
    SECTION_BYTES = 50, /* libinih cuts what is longer */
    NAME_BYTES = 50,
    DROP_INS_LIMIT = 1000,
};

/* Where an option was set in the present file. */
struct seen {
    char section[SECTION_BYTES];
    char name[NAME_BYTES];
    int line;
};

struct reader {
    struct hk_conf *conf;
    const char *path;
    FILE *f;
    int line; /* the one that libinih has */
    struct seen *seen;
    size_t seen_count;
    bool failed;
    int errnum; /* of the failure */
    struct hk_error *err;
};

static pthread_once_t inih_once = PTHREAD_ONCE_INIT;

static void set_up_inih (void)
{
    ini_use_stack = false;
    ini_max_line = LINE_BYTES;
    ini_initial_alloc = LINE_BYTES;
    /* a continued line would be a value of its own under the same name */
    ini_allow_multiline = false;
}

/* The first error stays; err holds the text without file and line. */
static int fail (struct reader *r)
{
    r->failed = true;
    r->errnum = errno;
    return hk_error_prefix (r->err, "%s:%d", r->path, r->line);
}

/* Its text follows: a section header that libinih would cut or accept with
 * something behind it.
 */
static int check_section (struct reader *r, const char *p)
{
    char section[SECTION_BYTES];
    size_t len = strcspn (p, "]\r\n");
    const char *after = p + len + 1;

    if (p[len] != ']' || len >= sizeof (section)) {
        hk_error_set (r->err,
                      EINVAL,
                      "expected [SECTION] of less than %d characters",
                      SECTION_BYTES);
        return fail (r);
    }
    after += strspn (after, " \t\r\n");
    if (*after != '\0' && *after != ';' && *after != '#') {
        hk_error_set (r->err, EINVAL, "unexpected text after [SECTION]");
        return fail (r);
    }
    memcpy (section, p, len);
    section[len] = '\0';
    if (hk_conf_open_section (r->conf, section, r->err) < 0)
        return fail (r);
    return 0;
}

/* Read up to size - 1 bytes of a line. Returns false when there is no more. */
static bool read_bytes (struct reader *r, char *line, size_t size)
{
    size_t n = 0;
    int c = EOF;

    while (n + 1 < size && (c = getc_unlocked (r->f)) != EOF) {
        if (c == '\0') {
            hk_error_set (r->err, EINVAL, "NUL byte");
            fail (r);
            return false;
        }
        line[n++] = (char)c;
        if (c == '\n')
            break;
    }
    line[n] = '\0';
    if (c == EOF && ferror (r->f)) {
        hk_error_errno (r->err, EIO, "read");
        fail (r);
        return false;
    }
    if (n + 1 == size && c != '\n') {
        hk_error_set (r->err,
                      EINVAL,
                      "expected a line of less than %d bytes",
                      LINE_BYTES - 2);
        fail (r);
        return false;
    }
    return n > 0;
}

/* libinih's fgets. */
static char *read_line (char *line, int size, void *arg)
{
    struct reader *r = arg;
    const char *p = line;

    if (r->failed)
        return NULL;
    r->line++;
    if (r->line > LINES_LIMIT) {
        hk_error_set (r->err, EINVAL, "expected at most %d lines", LINES_LIMIT);
        fail (r);
        return NULL;
    }
    if (!read_bytes (r, line, (size_t)size))
        return NULL;
    if (r->line == 1 && !strncmp (p, "\xef\xbb\xbf", 3))
        p += 3;
    p += strspn (p, " \t");
    if (*p == '[' && check_section (r, p + 1) < 0)
        return NULL;
    return line;
}

static int note_seen (struct reader *r, const char *section, const char *name)
{
    struct seen *s;

    for (size_t i = 0; i < r->seen_count; i++) {
        if (!strcmp (r->seen[i].section, section)
            && !strcmp (r->seen[i].name, name))
            return hk_error_set (r->err,
                                 EINVAL,
                                 "[%s] %s is set in line %d already",
                                 section,
                                 name,
                                 r->seen[i].line);
    }
    s = realloc (r->seen, (r->seen_count + 1) * sizeof (*s));
    if (!s)
        return hk_error_errno (r->err, ENOMEM, "[%s] %s", section, name);
    r->seen = s;
    s += r->seen_count++;
    snprintf (s->section, sizeof (s->section), "%s", section);
    snprintf (s->name, sizeof (s->name), "%s", name);
    s->line = r->line;
    return 0;
}

/* libinih's handler: nonzero is success. */
static int set_option (void *arg,
                       const char *section,
                       const char *name,
                       const char *value)
{
    struct reader *r = arg;

    if (r->failed)
        return 0;
    if (section[0] == '\0')
        hk_error_set (r->err, EINVAL, "expected [SECTION] before any option");
    else if (hk_conf_set (r->conf, section, name, value, r->err) == 0
             && note_seen (r, section, name) == 0)
        return 1;
    fail (r);
    return 0;
}

static int parse (struct reader *r)
{
    int rc;

    pthread_once (&inih_once, set_up_inih);
    rc = ini_parse_stream (read_line, r, set_option, r);
    free (r->seen);
    if (r->failed) {
        errno = r->errnum;
        return -1;
    }
    if (rc > 0) {
        r->line = rc;
        hk_error_set (r->err, EINVAL, "expected NAME = VALUE");
        return fail (r);
    }
    if (rc < 0)
        return hk_error_errno (r->err, ENOMEM, "%s", r->path);
    return 0;
}

/* Returns 1 if there is no such file. A link that leads nowhere is no missing
 * file.
 */
static int open_file (const char *path,
                      int flags,
                      FILE **f,
                      struct hk_error *err)
{
    struct stat st;
    int saved_errno;
    int fd;

    if (lstat (path, &st) < 0 && errno == ENOENT)
        return 1;
    if ((flags & HK_CONF_TRUST) && hk_trust_check (path, err) < 0)
        return hk_error_prefix (err, "%s", path);
    fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return hk_error_errno (err, errno, "%s", path);
    if (fstat (fd, &st) < 0) {
        hk_error_errno (err, errno, "%s", path);
        goto error;
    }
    if (!S_ISREG (st.st_mode)) {
        hk_error_set (err, EINVAL, "%s: expected a regular file", path);
        goto error;
    }
    *f = fdopen (fd, "r");
    if (!*f) {
        hk_error_errno (err, errno, "%s", path);
        goto error;
    }
    return 0;
error:
    saved_errno = errno;
    close (fd);
    errno = saved_errno;
    return -1;
}

static int load_file (struct hk_conf *conf,
                      const char *path,
                      int flags,
                      struct hk_error *err)
{
    struct reader r = { .conf = conf, .path = path, .err = err };
    int rc = open_file (path, flags, &r.f, err);
    int saved_errno;

    if (rc != 0)
        return rc < 0 ? -1 : 0;
    rc = parse (&r);
    saved_errno = errno;
    fclose (r.f);
    errno = saved_errno;
    return rc;
}

static int is_drop_in (const struct dirent *entry)
{
    size_t len = strlen (entry->d_name);

    return entry->d_name[0] != '.' && len > 5
           && !strcmp (entry->d_name + len - 5, ".conf");
}

/* strcmp, where alphasort would follow the locale */
static int compare_entries (const struct dirent **a, const struct dirent **b)
{
    return strcmp ((*a)->d_name, (*b)->d_name);
}

static int load_drop_in (struct hk_conf *conf,
                         const char *folder,
                         const char *name,
                         int flags,
                         struct hk_error *err)
{
    char path[4096];

    if (snprintf (path, sizeof (path), "%s/%s", folder, name)
        >= (int)sizeof (path))
        return hk_error_errno (err, ENAMETOOLONG, "%s/%s", folder, name);
    return load_file (conf, path, flags, err);
}

static int load_folder (struct hk_conf *conf,
                        const char *folder,
                        int flags,
                        struct hk_error *err)
{
    struct dirent **entries = NULL;
    int rc = 0;
    int n;

    if ((flags & HK_CONF_TRUST) && access (folder, F_OK) == 0
        && hk_trust_check (folder, err) < 0)
        return hk_error_prefix (err, "%s", folder);
    n = scandir (folder, &entries, is_drop_in, compare_entries);
    if (n < 0 && errno == ENOENT)
        return 0;
    if (n < 0)
        return hk_error_errno (err, errno, "%s", folder);
    if (n > DROP_INS_LIMIT)
        rc = hk_error_set (err,
                           EINVAL,
                           "%s: expected at most %d files",
                           folder,
                           DROP_INS_LIMIT);
    for (int i = 0; i < n; i++) {
        if (rc == 0)
            rc = load_drop_in (conf, folder, entries[i]->d_name, flags, err);
        free (entries[i]);
    }
    free (entries);
    return rc;
}

struct hk_conf *hk_conf_load (const char *path, int flags, struct hk_error *err)
{
    struct hk_conf *conf = hk_conf_create (err);
    char folder[4096];

    if (!conf)
        return NULL;
    if (snprintf (folder, sizeof (folder), "%s.d", path)
        >= (int)sizeof (folder))
        hk_error_errno (err, ENAMETOOLONG, "%s", path);
    else if (load_file (conf, path, flags, err) == 0
             && load_folder (conf, folder, flags, err) == 0) {
        if (hk_conf_check (conf, err) == 0)
            return conf;
        hk_error_prefix (err, "%s", path);
    }
    hk_conf_destroy (conf);
    return NULL;
}

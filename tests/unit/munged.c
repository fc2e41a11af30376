/* munged.c - a munged of the test's own, with a key and socket of its own */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "tests/unit/munged.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <munge.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { OPTION_BYTES = 160, START_LIMIT_MS = 10000, STEP_MS = 20 };

static int write_key (const char *path)
{
    char key[64];
    int fd = open (path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0)
        return -1;
    if (getrandom (key, sizeof (key), 0) != sizeof (key)
        || write (fd, key, sizeof (key)) != sizeof (key)) {
        close (fd);
        return -1;
    }
    return close (fd);
}

static void exec_munged (const struct munged *m)
{
    static const char *const names[] = {
        "key-file",
        "pid-file",
        "log-file",
        "seed-file",
    };
    char options[4][OPTION_BYTES];
    char socket[OPTION_BYTES];
    char *argv[9] = { "munged", "-F", "--force", socket };
    int null = open ("/dev/null", O_RDWR | O_CLOEXEC);

    snprintf (socket, sizeof (socket), "--socket=%s", m->socket);
    for (int i = 0; i < 4; i++) {
        snprintf (options[i],
                  sizeof (options[i]),
                  "--%s=%s/munge.%s",
                  names[i],
                  m->dir,
                  names[i]);
        argv[4 + i] = options[i];
    }
    /* a test that is killed leaves no daemon behind */
    prctl (PR_SET_PDEATHSIG, SIGKILL);
    if (null >= 0) {
        dup2 (null, STDOUT_FILENO);
        dup2 (null, STDERR_FILENO);
    }
    execvp ("munged", argv);
    execv ("/usr/sbin/munged", argv);
    _exit (127);
}

static int wait_for_answer (const struct munged *m)
{
    munge_ctx_t ctx = munge_ctx_create ();
    struct timespec step = { .tv_nsec = STEP_MS * 1000000L };
    int rc = -1;

    if (!ctx)
        return -1;
    munge_ctx_set (ctx, MUNGE_OPT_SOCKET, m->socket);
    for (int ms = 0; rc < 0 && ms < START_LIMIT_MS; ms += STEP_MS) {
        char *cred = NULL;

        if (access (m->socket, F_OK) == 0
            && munge_encode (&cred, ctx, NULL, 0) == EMUNGE_SUCCESS)
            rc = 0;
        free (cred);
        if (rc < 0)
            nanosleep (&step, NULL);
    }
    munge_ctx_destroy (ctx);
    return rc;
}

int munged_start (struct munged *m)
{
    char key[OPTION_BYTES];

    m->pid = -1;
    snprintf (m->dir, sizeof (m->dir), "/tmp/hk-test-XXXXXX");
    if (!mkdtemp (m->dir) || chmod (m->dir, 0755) < 0) {
        fprintf (stderr, "%s: %s\n", m->dir, strerror (errno));
        return -1;
    }
    snprintf (m->socket, sizeof (m->socket), "%s/munge.socket", m->dir);
    snprintf (key, sizeof (key), "%s/munge.key-file", m->dir);
    if (write_key (key) < 0) {
        fprintf (stderr, "%s: %s\n", key, strerror (errno));
        return -1;
    }
    m->pid = fork ();
    if (m->pid < 0)
        return -1;
    if (m->pid == 0)
        exec_munged (m);
    if (wait_for_answer (m) < 0) {
        fprintf (stderr, "munged at %s does not answer\n", m->socket);
        munged_stop (m);
        return -1;
    }
    return 0;
}

static int remove_one (const char *path,
                       const struct stat *st,
                       int flag,
                       struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove (path);
}

void munged_stop (struct munged *m)
{
    if (m->pid > 0) {
        kill (m->pid, SIGTERM);
        waitpid (m->pid, NULL, 0);
    }
    m->pid = -1;
    if (nftw (m->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS) < 0)
        fprintf (stderr, "%s: %s\n", m->dir, strerror (errno));
}

/* common_daemon.c - munged and hk-coordinator for a benchmark */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "tests/bench/common.h"
#include "proto/clock.h"

double bench_now (void)
{
    struct timespec ts;

    clock_gettime (CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

void bench_fail (const char *fmt, ...)
{
    va_list ap;

    fflush (stdout);
    fputs ("bench: ", stderr);
    va_start (ap, fmt);
    vfprintf (stderr, fmt, ap);
    va_end (ap);
    fputc ('\n', stderr);
    exit (1);
}

int bench_compare (const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static void write_file (const char *path, const void *data, size_t len)
{
    int fd = open (path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (fd < 0 || write (fd, data, len) != (ssize_t)len || close (fd) < 0)
        bench_fail ("%s: %s", path, strerror (errno));
}

/* The child ends with us, however we end. */
static pid_t spawn (const char *log, char *const argv[])
{
    pid_t pid = fork ();

    if (pid < 0)
        bench_fail ("fork: %s", strerror (errno));
    if (pid == 0) {
        int fd = open (log, O_WRONLY | O_CREAT | O_APPEND, 0600);
        prctl (PR_SET_PDEATHSIG, SIGKILL);
        dup2 (fd, STDOUT_FILENO);
        dup2 (fd, STDERR_FILENO);
        execvp (argv[0], argv);
        _exit (127);
    }
    return pid;
}

static void munged_start (struct bench_daemons *d)
{
    char key[128], arg[6][128];
    char *argv[] = { "munged", "--foreground", "--force", arg[0],
                     arg[1],   arg[2],         arg[3],    NULL };
    char log[96];
    struct stat st;

    if (getrandom (key, sizeof (key), 0) != sizeof (key))
        bench_fail ("getrandom");
    snprintf (log, sizeof (log), "%s/munge.key", d->dir);
    write_file (log, key, sizeof (key));
    snprintf (arg[0], sizeof (arg[0]), "--key-file=%s/munge.key", d->dir);
    snprintf (arg[1], sizeof (arg[1]), "--socket=%s/munge.socket", d->dir);
    snprintf (arg[2], sizeof (arg[2]), "--pid-file=%s/munge.pid", d->dir);
    snprintf (arg[3], sizeof (arg[3]), "--seed-file=%s/munge.seed", d->dir);
    snprintf (log, sizeof (log), "%s/munged.log", d->dir);
    d->munged = spawn (log, argv);
    snprintf (log, sizeof (log), "%s/munge.socket", d->dir);
    for (int i = 0; i < 200 && stat (log, &st) < 0; i++)
        usleep (20000);
}

void bench_coordinator_start (struct bench_daemons *d)
{
    const char *build = getenv ("HK_BUILD");
    char program[512], log[96];
    char *argv[] = { program, "-c", d->conf_path, NULL };

    snprintf (program,
              sizeof (program),
              "%s/coordinator/hk-coordinator",
              build ? build : "build");
    snprintf (log, sizeof (log), "%s/coordinator.log", d->dir);
    d->coordinator = spawn (log, argv);
}

void bench_coordinator_wait (struct bench_daemons *d)
{
    struct sockaddr_in addr = {
        .sin_family = AF_INET,
        .sin_port = htons (d->conf->client_port),
        .sin_addr.s_addr = htonl (INADDR_LOOPBACK),
    };
    double t0 = bench_now ();

    for (;;) {
        int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        int rc = connect (fd, (struct sockaddr *)&addr, sizeof (addr));
        close (fd);
        if (rc == 0)
            return;
        if (bench_now () - t0 > 60)
            bench_fail ("the coordinator does not listen");
        usleep (1000);
    }
}

void bench_coordinator_kill (struct bench_daemons *d)
{
    kill (d->coordinator, SIGKILL);
    waitpid (d->coordinator, NULL, 0);
}

void bench_daemons_start (struct bench_daemons *d)
{
    struct rlimit rl = { 1 << 17, 1 << 17 };
    char text[1024];
    struct hk_error err;
    int n;

    setrlimit (RLIMIT_NOFILE, &rl);
    /* under a folder that only root may write: configuration is trusted */
    snprintf (d->dir, sizeof (d->dir), "/run/hk-bench.XXXXXX");
    if (!mkdtemp (d->dir))
        bench_fail ("%s: %s (needs root)", d->dir, strerror (errno));
    chmod (d->dir, 0755);
    munged_start (d);
    n = snprintf (text,
                  sizeof (text),
                  "[link]\nhead = 127.0.0.1\nbind = 127.0.0.1\n"
                  "node-port = 18765\nclient-port = 18766\nkey-port = 18767\n"
                  "munge-socket = %s/munge.socket\n"
                  "[coordinator]\nstate-dir = %s/state\n"
                  "[housekeeping]\nper-node = parallel\n",
                  d->dir,
                  d->dir);
    snprintf (d->conf_path, sizeof (d->conf_path), "%s/hk.conf", d->dir);
    write_file (d->conf_path, text, (size_t)n);
    if (!(d->conf = hk_conf_load (d->conf_path, 0, &err)))
        bench_fail ("%s", err.text);
    bench_coordinator_start (d);
}

long bench_rss_kb (pid_t pid)
{
    char path[64];
    long pages = 0;
    FILE *f;

    snprintf (path, sizeof (path), "/proc/%d/statm", pid);
    if ((f = fopen (path, "r"))) {
        if (fscanf (f, "%*d %ld", &pages) != 1)
            pages = 0;
        fclose (f);
    }
    return pages * (sysconf (_SC_PAGESIZE) / 1024);
}

double bench_cpu (pid_t pid)
{
    char path[64];
    unsigned long user = 0, sys = 0;
    FILE *f;

    snprintf (path, sizeof (path), "/proc/%d/stat", pid);
    if ((f = fopen (path, "r"))) {
        if (fscanf (f,
                    "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u "
                    "%lu %lu",
                    &user,
                    &sys)
            != 2)
            user = sys = 0;
        fclose (f);
    }
    return (double)(user + sys) / (double)sysconf (_SC_CLK_TCK);
}

static int remove_one (const char *path,
                       const struct stat *st,
                       int type,
                       struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove (path);
}

void bench_daemons_stop (struct bench_daemons *d)
{
    kill (d->coordinator, SIGTERM);
    waitpid (d->coordinator, NULL, 0);
    kill (d->munged, SIGTERM);
    waitpid (d->munged, NULL, 0);
    hk_conf_destroy (d->conf);
    nftw (d->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

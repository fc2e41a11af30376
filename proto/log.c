/* log.c - the one log sink of a program: journal, stderr or the host's own */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

#include "proto/clock.h"
#include "proto/escape.h"
#include "proto/jobid.h"
#include "proto/log.h"

enum {
    TEXT_BYTES = 2048,
    FIELD_BYTES = 512,
    CAUSE_BYTES = 64,
    CAUSES_LIMIT = 64,
    THROTTLE_MS = 10000,
};

/* Before hk_log_init lines go to stderr without a name. */
static struct {
    char program[64];
    int level;
    hk_log_sink_f sink;
    void *arg;
} state = { .level = LOG_DEBUG };

/* Causes seen last; the one that is idle longest makes room for a new one. */
static struct throttle {
    char cause[CAUSE_BYTES];
    int64_t next_ms; /* no line before */
    uint64_t used;   /* count of look-ups at the last one */
    unsigned long passed_over;
} throttles[CAUSES_LIMIT];
static uint64_t look_ups; /* a clock is too coarse: a flood shares its tick */
static pthread_mutex_t throttles_lock = PTHREAD_MUTEX_INITIALIZER;

static void sink_stderr (void *arg,
                         int level,
                         const struct hk_log_ids *ids,
                         const char *text)
{
    char line[TEXT_BYTES + FIELD_BYTES];
    int len;

    (void)arg;
    (void)level;
    (void)ids;
    len = snprintf (line,
                    sizeof (line),
                    "%s%s%s\n",
                    state.program,
                    state.program[0] ? ": " : "",
                    text);
    /* one call a line: lines of threads do not mix */
    if (len > 0)
        fwrite (line, 1, (size_t)len, stderr);
}

__attribute__ ((format (printf, 4, 5))) static void put_field (
    struct iovec *iov, int *count, char *buf, const char *fmt, ...)
{
    va_list ap;
    int len;

    va_start (ap, fmt);
    len = vsnprintf (buf, TEXT_BYTES + 32, fmt, ap);
    va_end (ap);
    if (len < 0)
        return;
    iov[*count].iov_base = buf;
    iov[*count].iov_len = strlen (buf);
    (*count)++;
}

static void sink_journal (void *arg,
                          int level,
                          const struct hk_log_ids *ids,
                          const char *text)
{
    char bufs[6][TEXT_BYTES + 32];
    char jobid[HK_JOBID_TEXT_BYTES];
    char field[FIELD_BYTES];
    struct iovec iov[6];
    int n = 0;

    put_field (iov, &n, bufs[n], "MESSAGE=%s", text);
    put_field (iov, &n, bufs[n], "PRIORITY=%d", level);
    put_field (iov, &n, bufs[n], "SYSLOG_IDENTIFIER=%s", state.program);
    if (ids && ids->jobid != 0)
        put_field (iov,
                   &n,
                   bufs[n],
                   "HK_JOBID=%s",
                   hk_jobid_encode (ids->jobid, HK_JOBID_F58PLAIN, jobid));
    if (ids && ids->host)
        put_field (iov,
                   &n,
                   bufs[n],
                   "HK_HOST=%s",
                   hk_escape (ids->host, SIZE_MAX, field, sizeof (field)));
    if (ids && ids->ranks)
        put_field (iov,
                   &n,
                   bufs[n],
                   "HK_RANK=%s",
                   hk_escape (ids->ranks, SIZE_MAX, field, sizeof (field)));
    if (sd_journal_sendv (iov, n) < 0)
        sink_stderr (arg, level, ids, text);
}

/* systemd.exec(5): JOURNAL_STREAM is device:inode of the stream. */
static bool stderr_is_journal (void)
{
    const char *stream = getenv ("JOURNAL_STREAM");
    uint64_t dev;
    uint64_t ino;
    struct stat st;

    if (!stream || fstat (STDERR_FILENO, &st) < 0)
        return false;
    if (sscanf (stream, "%" SCNu64 ":%" SCNu64, &dev, &ino) != 2)
        return false;
    return dev == (uint64_t)st.st_dev && ino == (uint64_t)st.st_ino;
}

void hk_log_init (const char *program, int level, hk_log_sink_f sink, void *arg)
{
    snprintf (state.program, sizeof (state.program), "%s", program);
    state.level = level;
    state.arg = arg;
    if (!sink)
        sink = stderr_is_journal () ? sink_journal : sink_stderr;
    state.sink = sink;
}

static void emit (int level, const struct hk_log_ids *ids, const char *raw)
{
    char text[TEXT_BYTES];

    hk_escape (raw, SIZE_MAX, text, sizeof (text));
    if (state.sink)
        state.sink (state.arg, level, ids, text);
    else
        sink_stderr (NULL, level, ids, text);
}

__attribute__ ((format (printf, 3, 0))) static void emit_va (
    int level, const struct hk_log_ids *ids, const char *fmt, va_list ap)
{
    int saved_errno = errno;
    char raw[TEXT_BYTES];

    if (vsnprintf (raw, sizeof (raw), fmt, ap) >= 0)
        emit (level, ids, raw);
    errno = saved_errno;
}

void hk_log (int level, const char *fmt, ...)
{
    va_list ap;

    if (level > state.level)
        return;
    va_start (ap, fmt);
    emit_va (level, NULL, fmt, ap);
    va_end (ap);
}

void hk_log_with (int level, const struct hk_log_ids *ids, const char *fmt, ...)
{
    va_list ap;

    if (level > state.level)
        return;
    va_start (ap, fmt);
    emit_va (level, ids, fmt, ap);
    va_end (ap);
}

static struct throttle *find_throttle (const char *cause)
{
    struct throttle *oldest = &throttles[0];

    for (int i = 0; i < CAUSES_LIMIT; i++) {
        if (!strncmp (throttles[i].cause, cause, CAUSE_BYTES - 1))
            return &throttles[i];
        if (throttles[i].used < oldest->used)
            oldest = &throttles[i];
    }
    *oldest = (struct throttle){ 0 };
    strncpy (oldest->cause, cause, CAUSE_BYTES - 1);
    return oldest;
}

/* Whether a line may be written now, and how many were passed over before. */
static bool may_log (const char *cause, unsigned long *passed_over)
{
    int64_t now = hk_boot_ms ();
    struct throttle *t;
    bool may;

    pthread_mutex_lock (&throttles_lock);
    t = find_throttle (cause);
    may = now >= t->next_ms;
    t->used = ++look_ups;
    if (may) {
        *passed_over = t->passed_over;
        t->passed_over = 0;
        t->next_ms = now + THROTTLE_MS;
    } else
        t->passed_over++;
    pthread_mutex_unlock (&throttles_lock);
    return may;
}

void hk_log_throttled (int level, const char *cause, const char *fmt, ...)
{
    int saved_errno = errno;
    unsigned long passed_over = 0;
    char raw[TEXT_BYTES];
    va_list ap;

    if (level > state.level)
        return;
    if (may_log (cause, &passed_over)) {
        va_start (ap, fmt);
        if (passed_over == 0)
            emit_va (level, NULL, fmt, ap);
        else if (vsnprintf (raw, sizeof (raw) - 64, fmt, ap) >= 0) {
            sprintf (raw + strlen (raw),
                     " (%lu more like this since the last one)",
                     passed_over);
            emit (level, NULL, raw);
        }
        va_end (ap);
    }
    errno = saved_errno;
}

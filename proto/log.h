/* log.h - the one log sink of a program */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HK_LOG_H
#define HK_LOG_H

#include <stdint.h>
#include <syslog.h>

/* Identifiers that go with a line; unset ones are left out.  Under systemd
 * they become journal fields HK_JOBID (f58plain), HK_HOST, HK_RANK.
 */
struct hk_log_ids {
    uint64_t jobid;    /* 0: none */
    const char *host;  /* NULL: none */
    const char *ranks; /* NULL: none */
};

typedef void (*hk_log_sink_f) (void *arg,
                               int level,
                               const struct hk_log_ids *ids,
                               const char *text);

/* Once, at start.  NULL: sd-journal if stderr is connected to it
 * (JOURNAL_STREAM), else stderr with "program: " before each line.  Thread
 * safe afterwards.  Lines above `level` are dropped.
 */
void hk_log_init (const char *program,
                  int level,
                  hk_log_sink_f sink,
                  void *arg);

/* Lower case, no full stop, subject first.  The text is escaped here. */
void hk_log (int level, const char *fmt, ...)
    __attribute__ ((format (printf, 2, 3)));
void hk_log_with (int level, const struct hk_log_ids *ids, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));

/* As hk_log, at most one line in 10 s for each cause (a short fixed word or a
 * sender's name); what was passed over is counted and said with the next one.
 */
void hk_log_throttled (int level, const char *cause, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));

#endif

/* journal_read.c - what scripts wrote is read: a thread for each question */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-journal.h>
#include <time.h>
#include "proto/clock.h"
#include "proto/escape.h"
#include "proto/jobid.h"
#include "hkd/journal_impl.h"

enum {
    LINE_BYTES = 2048,
    MESSAGE_BYTES = 4096, /* what sd-journal reads of one */
    WAIT_US = 1000000,    /* until it is looked whether anybody still waits */
};

static const char unit_prefix[] = "flux-housekeeping-";

struct reader {
    struct hkd_question *q;
    sd_journal *j;
    char unit[HK_JOBID_TEXT_BYTES + 32]; /* what unit names begin with */
    json_t *batch;
    int64_t end_ms; /* of following */
};

/* A field's value into a buffer, as text; "" if there is none. */
static void field (sd_journal *j, const char *name, char *out, size_t size)
{
    const void *data;
    size_t n = strlen (name) + 1, len;

    out[0] = '\0';
    if (sd_journal_get_data (j, name, &data, &len) >= 0 && len >= n)
        hk_escape ((const char *)data + n, len - n, out, size);
}

/* The field that journald sets: nobody else can claim to be our unit.  What
 * follows the job id is the unit's number, or its end.
 */
static bool is_ours (const struct reader *r)
{
    char unit[256];
    size_t n = strlen (r->unit);

    field (r->j, "_SYSTEMD_UNIT", unit, sizeof (unit));
    return !strncmp (unit, r->unit, n)
           && (r->q->jobid == 0 || unit[n] == '.' || unit[n] == '-');
}

static json_t *line (sd_journal *j)
{
    char text[LINE_BYTES], when[64], comm[64], pid[32], message[LINE_BYTES];
    uint64_t usec = 0;
    struct tm tm;
    time_t t;

    sd_journal_get_realtime_usec (j, &usec);
    t = (time_t)(usec / 1000000);
    if (!localtime_r (&t, &tm)
        || !strftime (when, sizeof (when), "%Y-%m-%dT%H:%M:%S%z", &tm))
        when[0] = '\0';
    field (j, "_COMM", comm, sizeof (comm));
    field (j, "_PID", pid, sizeof (pid));
    field (j, "MESSAGE", message, sizeof (message) - 256);
    snprintf (text,
              sizeof (text),
              "%s %s[%s]: %.*s",
              when,
              comm,
              pid,
              LINE_BYTES - 256,
              message);
    return json_string (text);
}

static bool flush (struct reader *r)
{
    json_t *batch = r->batch;

    r->batch = NULL;
    return !batch || hkd_question_put (r->q, batch);
}

/* False when nobody waits any more, or memory is gone. */
static bool put (struct reader *r)
{
    if (!is_ours (r))
        return true;
    if (!r->batch && !(r->batch = json_array ()))
        return false;
    if (json_array_append_new (r->batch, line (r->j)) < 0)
        return false;
    return json_array_size (r->batch) < HKD_JOURNAL_BATCH || flush (r);
}

/* Before the first line to be told; *more if there are older ones. */
static int go_back (struct reader *r, bool *more)
{
    int left = r->q->lines, rc = sd_journal_seek_tail (r->j);

    *more = false;
    while (rc >= 0 && (rc = sd_journal_previous (r->j)) > 0) {
        if (is_ours (r) && left-- == 0) {
            *more = true;
            return 1; /* the next one is the first */
        }
        if (hkd_question_cancelled (r->q))
            return 0;
    }
    return rc < 0 ? rc : sd_journal_seek_head (r->j);
}

/* All that is there now. */
static int read_on (struct reader *r)
{
    int rc;

    while ((rc = sd_journal_next (r->j)) > 0)
        if (!put (r))
            return -ECANCELED;
    if (rc == 0 && !flush (r))
        return -ECANCELED;
    return rc;
}

static int follow (struct reader *r)
{
    int rc = 0;

    while (rc >= 0 && hk_boot_ms () < r->end_ms) {
        if (hkd_question_cancelled (r->q))
            return -ECANCELED;
        if ((rc = sd_journal_wait (r->j, WAIT_US)) >= 0 && rc != SD_JOURNAL_NOP)
            rc = read_on (r);
    }
    return rc;
}

static int open_journal (struct reader *r)
{
    char jobid[HK_JOBID_TEXT_BYTES], match[HK_JOBID_TEXT_BYTES + 16];
    int rc = sd_journal_open (&r->j, SD_JOURNAL_LOCAL_ONLY);

    hk_jobid_encode (r->q->jobid, HK_JOBID_F58PLAIN, jobid);
    if (r->q->jobid)
        snprintf (match, sizeof (match), "HK_JOBID=%s", jobid);
    else
        snprintf (match, sizeof (match), "SYSLOG_IDENTIFIER=flux-housekeeping");
    snprintf (r->unit,
              sizeof (r->unit),
              "%s%s",
              unit_prefix,
              r->q->jobid ? jobid : "");
    if (rc >= 0)
        rc = sd_journal_set_data_threshold (r->j, MESSAGE_BYTES);
    if (rc >= 0)
        rc = sd_journal_add_match (r->j, match, 0);
    return rc;
}

void *hkd_question_read (void *arg)
{
    struct reader r = { .q = arg };
    bool more = false;
    char text[128] = "";
    int rc;

    r.end_ms = hk_boot_ms () + HKD_JOURNAL_FOLLOW_MS;
    rc = open_journal (&r);
    if (rc >= 0)
        rc = go_back (&r, &more);
    if (rc >= 0)
        rc = read_on (&r);
    if (rc >= 0 && r.q->follow) {
        rc = follow (&r);
        snprintf (text,
                  sizeof (text),
                  "followed for %d minutes, ask again",
                  HKD_JOURNAL_FOLLOW_MS / 60000);
    }
    if (rc < 0)
        snprintf (text, sizeof (text), "journal: %s", strerror (-rc));
    json_decref (r.batch);
    sd_journal_close (r.j);
    hkd_question_done (r.q, more || rc < 0, text);
    return NULL;
}

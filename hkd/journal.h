/* journal.h - what scripts wrote, for those who ask from afar */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HKD_JOURNAL_H
#define HKD_JOURNAL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

/* Lines of units that hkd named, oldest first.  A thread for each question
 * reads, the loop sends: neither a disk nor a link that is slow holds up the
 * other.  A few questions at once; lines, and the time of following, are
 * bounded.
 */
struct hkd_journal;

struct hkd_journal_calls {
    /* A few lines for the question `seq`; the array is borrowed.  -1: there is
     * no room for them now, they come again.
     */
    int (*lines) (void *arg, uint64_t seq, json_t *lines);
    /* No more: all were told, or text says why not. */
    void (*end) (void *arg, uint64_t seq, bool truncated, const char *text);
};

struct hkd_journal *hkd_journal_create (sd_event *event, /* borrowed */
                                        const struct hkd_journal_calls *calls,
                                        void *arg);
void hkd_journal_destroy (struct hkd_journal *journal);

/* jobid 0: of all.  lines 0: as many as are told at most.  The end comes in any
 * case, maybe before the call returns.
 */
void hkd_journal_ask (struct hkd_journal *journal,
                      uint64_t seq,
                      uint64_t jobid,
                      int lines,
                      bool follow);
/* The link is down: nobody waits for an answer any more. */
void hkd_journal_cancel (struct hkd_journal *journal);

#endif

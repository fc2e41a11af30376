/* journal_impl.h - what the journal's loop side and its threads share */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HKD_JOURNAL_IMPL_H
#define HKD_JOURNAL_IMPL_H

#include <pthread.h>
#include "hkd/journal.h"

enum {
    HKD_JOURNAL_QUESTIONS = 4,
    HKD_JOURNAL_LINES = 10000,
    HKD_JOURNAL_BATCH = 64,  /* lines of a message */
    HKD_JOURNAL_BATCHES = 4, /* that wait to be sent */
    HKD_JOURNAL_FOLLOW_MS = 600000,
};

/* Under the journal's lock: from `batches` on. */
struct hkd_question {
    struct hkd_question *next;
    struct hkd_journal *journal;
    pthread_t thread;
    uint64_t seq;
    uint64_t jobid;
    int lines;
    bool follow;
    json_t *batches[HKD_JOURNAL_BATCHES];
    size_t batches_count;
    bool cancelled;
    bool displaced; /* cancelled, but somebody may still wait */
    bool done;      /* the thread is about to end */
    bool truncated;
    char text[256];
};

/* The thread: `arg` is a question. */
void *hkd_question_read (void *arg);
/* For the thread.  False when it is to end; takes the array in any case. */
bool hkd_question_put (struct hkd_question *q, json_t *lines_take);
bool hkd_question_cancelled (struct hkd_question *q);
void hkd_question_done (struct hkd_question *q,
                        bool truncated,
                        const char *text);

#endif

/* store.h - what must outlive the coordinator: one SQLite file, one writer */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HKC_STORE_H
#define HKC_STORE_H

#include <stdbool.h>
#include <stdint.h>
#include "proto/error.h"
#include "coordinator/core/core.h"

struct hkc_store;

enum { HKC_STORE_SCHEMA = 1 };

/* Open or make DIR/hk.db.  Folder and file must be this uid's alone (0700 and
 * 0600 are set on what we make), on a local file system; DIR/lock is held until
 * close.  A new start is drawn and stored.  Blocks for the disk.  NULL with
 * errno: EBUSY another coordinator has it, EPERM owner or mode, EXDEV a network
 * file system, EUCLEAN damaged or no store of ours, ENOTSUP a newer schema (the
 * file is left as it is in all these cases), ENOSPC, EROFS, EIO.
 */
struct hkc_store *hkc_store_open (const char *dir, struct hk_error *err);
void hkc_store_close (struct hkc_store *store); /* NULL is fine */

const char *hkc_store_instance (const struct hkc_store *store);
uint64_t hkc_store_start (const struct hkc_store *store);
/* Of the last commit of this start; 0: none yet. */
uint64_t hkc_store_commit_number (const struct hkc_store *store);
/* Above every pid that was ever committed, also of what is trimmed. */
uint64_t hkc_store_next_pid (const struct hkc_store *store);
const char *hkc_store_path (const struct hkc_store *store); /* of the file */

/* Every row the core needs, in the order it needs them; the first non-zero
 * result of fn ends it and is returned.  -1 with errno from the store.
 */
int hkc_store_load (struct hkc_store *store,
                    hkc_row_f fn,
                    void *arg,
                    struct hk_error *err);

/* One transaction a turn.  After a failure of any of them call rollback and
 * begin the same batch again.  errno: ENOSPC, EROFS, EIO, EBUSY, EUCLEAN (or
 * what the system said, as EDQUOT); ESTALE: another coordinator has taken the
 * store, this process must end.  A row that a constraint refuses is set aside:
 * logged, counted, 0 is returned.  The second outcome of a run is such a row.
 */
int hkc_store_begin (struct hkc_store *store, struct hk_error *err);
int hkc_store_put (struct hkc_store *store,
                   const struct hkc_row *row,
                   struct hk_error *err);
int hkc_store_commit (struct hkc_store *store, struct hk_error *err);
void hkc_store_rollback (struct hkc_store *store);
uint64_t hkc_store_refused (const struct hkc_store *store); /* rows set aside */

/* A closed allocation with the same end, 0 if there is none; and whether the
 * history has that run.  By index.  A store that cannot be read is logged.
 */
uint64_t hkc_store_find_end (struct hkc_store *store,
                             uint64_t jobid,
                             double t_submit,
                             double t_end,
                             const char *digest);
bool hkc_store_find_run (struct hkc_store *store,
                         uint64_t alloc,
                         const char *host,
                         int attempt);

/* Append the hosts of a job's ended runs that are not in the list yet, newest
 * allocation first, a bounded number.
 */
void hkc_store_job_hosts (struct hkc_store *store,
                          uint64_t jobid,
                          struct hk_hostlist *hosts);

/* What a node remembers of us: is it possible?  0, or -1 and why in err: a
 * start that we do not know, or a commit above ours: the store went back.
 */
int hkc_store_seen (struct hkc_store *store,
                    const char *instance,
                    uint64_t start,
                    uint64_t commit,
                    struct hk_error *err);

/* Delete history older than that, oldest first: at most `limit` closed
 * allocations and a bounded number of runs, so that it takes a moment.  Returns
 * how many allocations, 0 when there is nothing older, -1 on failure.  In a
 * transaction of its own, between others.
 */
int hkc_store_trim (struct hkc_store *store,
                    double older_than,
                    int limit,
                    struct hk_error *err);

/* ---- checkpoint.c: a thread that copies the log home, so that no commit has
 * to; between open and close of the store
 */

struct hkc_checkpoint;

struct hkc_checkpoint *hkc_checkpoint_create (struct hkc_store *store,
                                              struct hk_error *err);
void hkc_checkpoint_destroy (struct hkc_checkpoint *cp); /* NULL is fine */

/* ---- reader.c: a thread of its own with a read-only connection ---- */

struct hkc_reader;

enum { HKC_PAGE_ROWS = 4096 };

struct hkc_reader_query {
    uint64_t tag;        /* given back with the answer */
    uint64_t jobid;      /* 0: any */
    char *hosts;         /* host list or NULL; taken, also on failure */
    uint32_t limit;      /* rows of one page; 0 or too many: HKC_PAGE_ROWS */
    uint64_t after;      /* `next` of the page before; 0: newest */
    bool text;           /* with reasons and scripts: not for guests */
    int64_t deadline_ms; /* CLOCK_BOOTTIME */
};

struct hkc_reader_answer {
    uint64_t tag;
    struct json_t *rows; /* array, the caller's; NULL: error */
    uint64_t next;       /* 0: no more.  When time is short a page may end
                          * early, even without a row: ask on from here */
    struct hk_error err;
};

/* Of a store that is open. */
struct hkc_reader *hkc_reader_create (const char *path, struct hk_error *err);
/* Ends the query under way; answers that nobody took are dropped. */
void hkc_reader_destroy (struct hkc_reader *reader);
/* -1 with EAGAIN when too many wait, or ENOMEM. */
int hkc_reader_ask (struct hkc_reader *reader,
                    const struct hkc_reader_query *query);
/* Readable while there are answers. */
int hkc_reader_fd (const struct hkc_reader *reader);
/* 1 and an answer, or 0: none now. */
int hkc_reader_next (struct hkc_reader *reader,
                     struct hkc_reader_answer *answer);

#endif

/* schema.h - the tables, and what the files of the store share */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HKC_SCHEMA_H
#define HKC_SCHEMA_H

#include <sqlite3.h>
#include <sys/types.h>
#include "coordinator/store/store.h"

enum hkc_stmt {
    HKC_STMT_BEGIN,
    HKC_STMT_COMMIT,
    HKC_STMT_NUMBER,
    HKC_STMT_TAKER,
    HKC_STMT_NEXT_PID,
    HKC_STMT_ALLOC,
    HKC_STMT_STATE,
    HKC_STMT_PART,
    HKC_STMT_HOST,
    HKC_STMT_CAUSE,
    HKC_STMT_CAUSE_GONE,
    HKC_STMT_FREE,
    HKC_STMT_FREE_GONE,
    HKC_STMT_SCHED,
    HKC_STMT_HISTORY,
    HKC_STMT_SCRIPT,
    HKC_STMT_CLOSED,
    HKC_STMT_DEL_ALLOC,
    HKC_STMT_DEL_STATE,
    HKC_STMT_DEL_PARTS,
    HKC_STMT_AUDIT,
    HKC_STMT_FIND_END,
    HKC_STMT_FIND_RUN,
    HKC_STMT_JOB_HOSTS,
    HKC_STMT_SEEN,
    HKC_STMT_OLD,
    HKC_STMT_DEL_SCRIPTS,
    HKC_STMT_DEL_HISTORY,
    HKC_STMT_DEL_CLOSED,
    HKC_STMT_COUNT,
};

/* What a version of this program takes a store to be. */
struct hkc_schema {
    int version;
    const char *sql;          /* the tables of that version */
    const char *const *steps; /* [i]: from version i + 1 to i + 2 */
};

/* Of the log, before a commit copies it home where no thread does. */
enum { HKC_STORE_LOG_PAGES = 4000 };

struct hkc_store {
    char *dir;
    char *path;
    int lock_fd;
    sqlite3 *db;
    sqlite3_stmt *stmt[HKC_STMT_COUNT];
    char instance[HK_ID_BYTES];
    uint64_t start;
    uint64_t commit;
    uint64_t next_pid;    /* of the rows that were put */
    uint64_t stored_next; /* as the last commit has it */
    /* the earlier start that was asked for last: all nodes ask for the same */
    uint64_t seen_start;
    uint64_t seen_commit;
    uint64_t refused;
};

extern const struct hkc_schema hkc_schema;
extern const char *const hkc_stmt_sql[HKC_STMT_COUNT];

/* schema.c: errno by an SQLite result, and its words in err.  Returns -1. */
int hkc_store_fail (sqlite3 *db, struct hk_error *err, const char *path);

/* prepare.c: make, check or migrate the tables.  Until it has agreed nothing is
 * written to a file that is there.
 */
int hkc_store_prepare (struct hkc_store *store,
                       const struct hkc_schema *schema,
                       struct hk_error *err);
/* Statements that are a whole transaction; sql is from sqlite3_mprintf and is
 * freed, NULL is out of memory.
 */
int hkc_store_run_take (struct hkc_store *store,
                        char *sql,
                        struct hk_error *err);
/* One number, or -1. */
int hkc_store_number (struct hkc_store *store,
                      const char *sql,
                      int64_t *number,
                      struct hk_error *err);

/* store.c: as hkc_store_open, for a program that has another schema. */
struct hkc_store *hkc_store_open_as (const char *dir,
                                     const struct hkc_schema *schema,
                                     struct hk_error *err);

/* write.c */
int hkc_store_run (struct hkc_store *store,
                   enum hkc_stmt which,
                   struct hk_error *err);

enum hkc_history_stmt {
    HKC_HISTORY_RANGES,
    HKC_HISTORY_RUNS,
    HKC_HISTORY_SCRIPTS,
    HKC_HISTORY_COUNT,
};
extern const char *const hkc_history_sql[HKC_HISTORY_COUNT];

/* history.c: one page; the connection's progress handler bounds it at the
 * query's deadline.
 */
void hkc_history_page (sqlite3 *db,
                       const struct hkc_reader_query *query,
                       struct hkc_reader_answer *answer);

#endif

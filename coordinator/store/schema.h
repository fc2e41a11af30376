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
    HKC_STMT_COUNT,
};

struct hkc_seen_start {
    uint64_t id;
    uint64_t last_commit;
};

struct hkc_store {
    char *dir;
    char *path;
    int lock_fd;
    sqlite3 *db;
    sqlite3_stmt *stmt[HKC_STMT_COUNT];
    char instance[HK_ID_BYTES];
    uint64_t start;
    uint64_t commit;
    struct hkc_seen_start *starts; /* earlier ones of this instance */
    size_t starts_count;
    uint64_t refused;
};

extern const char *const hkc_schema_sql;
extern const char *const hkc_stmt_sql[HKC_STMT_COUNT];

/* errno by an SQLite result, and its words in err.  Returns -1. */
int hkc_store_fail (sqlite3 *db, struct hk_error *err, const char *what);
/* Make, check or migrate the tables. */
int hkc_schema_prepare (struct hkc_store *store, struct hk_error *err);

#endif

/* runfile.h - what hkd must still know after its own restart: files in run_dir */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HKD_RUNFILE_H
#define HKD_RUNFILE_H

#include <stdint.h>
#include "proto/error.h"
#include "proto/limits.h"
#include "proto/run.h"
#include "hkd/limits.h"

/* run-ALLOC-ATTEMPT.json  a run, as a message of the protocol tells it,
 *                         and its limits
 * run-ALLOC-ATTEMPT.go    while it is there the unit may start its next script
 * seen.json               what the coordinator told last
 * lock                    held by the one hkd of this folder
 * *.damaged               a file that could not be read, kept for a person
 *
 * They outlive the process, not the boot: nothing is synced to a disk.
 */

enum { HKD_PATH_BYTES = 4096 };

/* Make the folder if it is missing and be its only hkd: the descriptor to be
 * held for life.  -1 with EWOULDBLOCK if there is another, EPERM if somebody
 * else may write there.
 */
int hkd_runfile_lock (const char *dir, struct hk_error *err);

/* Whole or not at all: a temporary file, renamed. */
int hkd_runfile_write (const char *dir,
                       const struct hk_run *run,
                       const struct hkd_limits *limits,
                       struct hk_error *err);
/* Both its files; no error if they are gone. */
int hkd_runfile_remove (const char *dir,
                        uint64_t alloc,
                        int attempt,
                        struct hk_error *err);

/* Each run of this boot; what is given is borrowed for the call; `limits` is
 * NULL of a file that an earlier version wrote.  Files of another boot
 * and remains of writes are removed, damaged ones are put aside and logged.
 */
typedef void (*hkd_runfile_f) (void *arg,
                               const struct hk_run *run,
                               const struct hkd_limits *limits);
int hkd_runfile_each (const char *dir,
                      const char *boot_id,
                      hkd_runfile_f fn,
                      void *arg,
                      struct hk_error *err);

/* Into a buffer of HKD_PATH_BYTES; returns it. */
char *hkd_go_path (const char *dir, uint64_t alloc, int attempt, char *path);
int hkd_go_create (const char *dir,
                   uint64_t alloc,
                   int attempt,
                   struct hk_error *err);
/* From here on no script of the run starts. */
int hkd_go_remove (const char *dir,
                   uint64_t alloc,
                   int attempt,
                   struct hk_error *err);

struct hkd_seen {
    char instance[HK_ID_BYTES]; /* "": nothing was seen since boot */
    uint64_t start;
    uint64_t commit;
};

/* Nothing seen if there is no file; a damaged one is put aside and logged. */
void hkd_seen_load (const char *dir, struct hkd_seen *seen);
int hkd_seen_save (const char *dir,
                   const struct hkd_seen *seen,
                   struct hk_error *err);

#endif

/* scripts.h - which scripts a run is made of, and may root run them? */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HKD_SCRIPTS_H
#define HKD_SCRIPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/conf.h"
#include "proto/error.h"

struct hkd_script {
    char *name; /* the file's own */
    char *path;
    bool by_shell; /* neither "#!" nor ELF: an argument of /bin/sh */
};

struct hkd_scripts {
    struct hkd_script *list; /* in the order to run them */
    size_t count;
};

/* The scripts of the node for a job of that user; the caller ends with
 * hkd_scripts_fini.  None at all is no error.  -1 and nothing to run if one of
 * them, or a folder that may hold some, cannot be read or be trusted (the text
 * names it and the cause), or if the user is root and may not be.
 */
int hkd_scripts_find (const struct hk_conf *conf,
                      const struct hk_policy *policy,
                      uint32_t userid,
                      struct hkd_scripts *scripts,
                      struct hk_error *err);
void hkd_scripts_fini (struct hkd_scripts *scripts);

#endif

/* conf_cases.h - configurations against what is expected of them */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef TESTS_UNIT_CONF_CASES_H
#define TESTS_UNIT_CONF_CASES_H

#include "proto/conf.h"

/* Never NULL: where there is no configuration the test fails. */
struct hk_conf *conf_load (const char *path, int flags);
struct hk_conf *conf_defaults (void);

void conf_assert_value (const struct hk_conf *conf,
                        const char *section,
                        const char *name,
                        const char *want);

/* The options of a file that are not as by default, and its classes: a line
 * each, "[SECTION] NAME = VALUE".  The text is not looked at: a case_f.
 */
void conf_assert_changes (const char *path, const char *text, const char *want);

#endif

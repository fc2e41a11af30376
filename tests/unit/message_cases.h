/* message_cases.h - the folders of messages, valid and invalid */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef TESTS_UNIT_MESSAGE_CASES_H
#define TESTS_UNIT_MESSAGE_CASES_H

#include <stddef.h>

#define MESSAGE_VALID "tests/unit/data/message/valid/"
#define MESSAGE_INVALID "tests/unit/data/message/invalid/"

typedef void (*message_case_f) (const char *name, const char *text, size_t len);

/* A file of a folder, whose name ends in a slash; the caller's to free. */
char *message_read (const char *folder, const char *name, size_t *len);

/* Each message of a folder; how many there are. */
int message_each (const char *folder, message_case_f check);

#endif

/* message_cases.c - the folders of messages, valid and invalid */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/cases.h"
#include "tests/unit/message_cases.h"

char *message_read (const char *folder, const char *name, size_t *len)
{
    char path[512];

    snprintf (path, sizeof (path), "%s%s", folder, name);
    return case_read (path, len);
}

static int is_json (const struct dirent *entry)
{
    size_t len = strlen (entry->d_name);

    return len > 5 && strcmp (entry->d_name + len - 5, ".json") == 0;
}

int message_each (const char *folder, message_case_f check)
{
    struct dirent **list;
    int count = scandir (folder, &list, is_json, alphasort);

    assert_true (count > 0);
    for (int i = 0; i < count; i++) {
        size_t len;
        char *text = message_read (folder, list[i]->d_name, &len);

        check (list[i]->d_name, text, len);
        free (text);
        free (list[i]);
    }
    free (list);
    return count;
}

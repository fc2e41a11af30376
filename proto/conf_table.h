/* conf_table.h - the option table, for the conf files alone */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HK_CONF_TABLE_H
#define HK_CONF_TABLE_H

#include "proto/conf.h"

enum hk_conf_kind {
    HK_CONF_DURATION,
    HK_CONF_RELEASE, /* a duration or "all" */
    HK_CONF_BOOL,
    HK_CONF_WORD,  /* one of the words of its type */
    HK_CONF_PORT,  /* uint16_t */
    HK_CONF_COUNT, /* uint32_t */
    HK_CONF_USER,  /* uid_t from a number or a name */
    HK_CONF_OWNER, /* as above; 0 for flux where that user is not */
    HK_CONF_USERS, /* array, count at count_offset */
    HK_CONF_PATH,  /* absolute */
    HK_CONF_URI,
    HK_CONF_HOST,
    HK_CONF_ADDRESS,   /* to listen on */
    HK_CONF_HOSTS,     /* RFC 29 */
    HK_CONF_ENDPOINTS, /* host list of names and addresses */
};

/* Which structure the offset is in. */
enum hk_conf_scope { HK_CONF_WHOLE, HK_CONF_POLICY, HK_CONF_CLASS };

struct hk_conf_row {
    struct hk_conf_option option;
    enum hk_conf_kind kind;
    enum hk_conf_scope scope;
    size_t offset;
    size_t count_offset;
    int64_t least; /* numbers and durations (ms) */
    int64_t most;
    bool unbounded; /* infinity is a value */
    bool may_be_empty;
};

extern const struct hk_conf_row hk_conf_rows[];
extern const int hk_conf_rows_count;

/* Section of the rows that only classes have. */
extern const char hk_conf_class_section[];

/* The row, NULL if there is none; `class` tells whether the section is one of
 * [housekeeping.NAME].
 */
const struct hk_conf_row *hk_conf_find (const char *section,
                                        const char *name,
                                        bool *class);
/* The name behind "housekeeping.", NULL if section is not of that form. */
const char *hk_conf_class_name (const char *section);
bool hk_conf_section_exists (const char *section);

/* Set a field of base, the structure of the row's scope. The old value is
 * freed; on failure it stays. -1 with EINVAL or ENOMEM and what was expected.
 */
int hk_conf_value_parse (const struct hk_conf_row *row,
                         void *base,
                         const char *value,
                         struct hk_error *err);
/* Text that the caller frees; NULL with ENOMEM. */
char *hk_conf_value_print (const struct hk_conf_row *row, const void *base);
void hk_conf_value_free (const struct hk_conf_row *row, void *base);
/* "duration from 1s to 10m", into a buffer of HK_ERROR_BYTES. */
char *hk_conf_value_expected (const struct hk_conf_row *row, char *buf);

#endif

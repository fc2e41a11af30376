/* hostlist.h - an ordered list of host names; text is an RFC 29 hostlist */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HK_HOSTLIST_H
#define HK_HOSTLIST_H

#include <stdbool.h>
#include <stddef.h>
#include "proto/error.h"

/* Order and duplicates are kept.  Names are below HK_HOST_NAME_BYTES. */
struct hk_hostlist;

struct hk_hostlist *hk_hostlist_create (void);
void hk_hostlist_destroy (struct hk_hostlist *hosts); /* NULL is fine */

/* "elcap[1-3,0007-0012],login": zero padding and order kept; leading zeros of
 * the first number in brackets hold for all of them (RFC 29).  NULL with
 * EINVAL (says at which character) or ERANGE.
 */
struct hk_hostlist *hk_hostlist_decode (const char *text, struct hk_error *err);
/* Folded where names that follow each other differ in their number alone and
 * share its padding; decode (encode (x)) == x, unless a name has brackets.
 * The caller frees the result.
 */
char *hk_hostlist_encode (const struct hk_hostlist *hosts);
/* The same for names that are in no list; each must be below
 * HK_HOST_NAME_BYTES.
 */
char *hk_hostlist_encode_names (const char *const *names, size_t count);

/* Copies name.  -1 with EINVAL (empty, too long, a blank or comma in it; "[::1]"
 * is fine) or ERANGE (HK_HOSTLIST_LIMIT names).
 */
int hk_hostlist_append (struct hk_hostlist *hosts, const char *name);
size_t hk_hostlist_count (const struct hk_hostlist *hosts);
/* Borrowed until the list changes; NULL past the end. */
const char *hk_hostlist_nth (const struct hk_hostlist *hosts, size_t n);
/* First index of name, in constant time; -1 if absent. */
long hk_hostlist_find (const struct hk_hostlist *hosts, const char *name);
/* Sort by prefix then number (node2 before node10) and drop duplicates. */
void hk_hostlist_uniq (struct hk_hostlist *hosts);

/* RFC 1123 letters, digits, '-', '_' and '.', no empty label, not too long. */
bool hk_host_name_valid (const char *name);
/* The part before the first dot, into a buffer of HK_HOST_NAME_BYTES. */
void hk_host_name_short (const char *name, char *out);

#endif

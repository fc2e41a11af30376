/* escape.h - foreign text made safe before a log, a reason or a terminal */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HK_ESCAPE_H
#define HK_ESCAPE_H

#include <stddef.h>

/* Copy len bytes (or strlen when len is SIZE_MAX) of in to out, at most size
 * bytes with NUL, cut at a character.  C0, C1, DEL, bad UTF-8 and the bidi
 * controls become \xNN per byte; a backslash becomes \\.  Returns out.
 */
char *hk_escape (const char *in, size_t len, char *out, size_t size);

/* One line for a person, in place: what hk_escape would write as \xNN becomes a
 * question mark, white space of any kind a space.  A backslash stays.
 */
void hk_one_line (char *text);

#endif

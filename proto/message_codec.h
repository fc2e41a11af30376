/* message_codec.h - what the two directions of the codec share */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HK_MESSAGE_CODEC_H
#define HK_MESSAGE_CODEC_H

#include "proto/message.h"

/* seq, re, session, start, commit: offsets in struct hk_msg. */
extern const struct hk_msg_field hk_msg_envelope[];
/* Where the body of a message stands in struct hk_msg. */
enum { HK_MSG_BODY = offsetof (struct hk_msg, key_get) };

/* NULL, or what is wrong with the text of a field. */
const char *hk_field_check_text (const struct hk_msg_field *field,
                                 const char *text,
                                 size_t len);
bool hk_field_check_int (const struct hk_msg_field *field, int64_t value);

#endif

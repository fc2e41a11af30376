/* identity.h - MUNGE vouches for CURVE keys */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef HK_IDENTITY_H
#define HK_IDENTITY_H

#include <stdint.h>
#include <sys/types.h>
#include "proto/error.h"
#include "proto/limits.h"

enum { HK_KEY_TEXT_BYTES = 41, HK_NONCE_TEXT_BYTES = 65, HK_CRED_BYTES = 3072 };

/* What the key answer vouches for (tag "flux-hk/1 key"). */
struct hk_key_claim {
    char server_pub[HK_KEY_TEXT_BYTES]; /* Z85 */
    char instance[HK_ID_BYTES];
    uint64_t start;
    char nonce[HK_NONCE_TEXT_BYTES];
};

/* What a HELLO vouches for (tag "flux-hk/1 hello"). */
struct hk_hello_claim {
    char pub[HK_KEY_TEXT_BYTES];
    char role[16];
    char host[HK_HOST_NAME_BYTES]; /* "" for clients */
    char short_host[HK_HOST_NAME_BYTES];
    char boot_id[HK_ID_BYTES];
    char instance[HK_ID_BYTES];
    uint64_t start;
};

/* Blocking, about 0.1 ms, at worst 10 s when munged hangs: never in a loop that
 * others wait for.  `socket` NULL: libmunge's own.  Payloads are JSON with
 * exactly these fields, none unknown.  `restrict_uid` (uid_t)-1: anybody may
 * read it.  Encoders return text the caller frees; decoders fill claim and uid
 * only for code 0 (EMUNGE_SUCCESS).  errno: EAGAIN munged cannot be reached,
 * EKEYEXPIRED and text with both clocks for EXPIRED and REWOUND (skew), EACCES
 * replayed or not for us, EINVAL a payload that is none.
 */
char *hk_key_claim_encode (const char *socket,
                           const struct hk_key_claim *claim,
                           struct hk_error *err);
int hk_key_claim_decode (const char *socket,
                         const char *cred,
                         struct hk_key_claim *claim,
                         uid_t *uid,
                         struct hk_error *err);
char *hk_hello_claim_encode (const char *socket,
                             const struct hk_hello_claim *claim,
                             uid_t restrict_uid,
                             struct hk_error *err);
int hk_hello_claim_decode (const char *socket,
                           const char *cred,
                           struct hk_hello_claim *claim,
                           uid_t *uid,
                           struct hk_error *err);

/* 32 random lower case hex digits (getrandom); 64 for a nonce. */
void hk_random_id (char out[HK_ID_BYTES]);
void hk_random_nonce (char out[HK_NONCE_TEXT_BYTES]);
uint64_t hk_random_u63 (void); /* never 0 */

#endif

/* identity.c - MUNGE vouches for CURVE keys */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "proto/identity.h"

#include <errno.h>
#include <jansson.h>
#include <munge.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include "proto/hostlist.h"

static const char key_tag[] = "flux-hk/1 key";
static const char hello_tag[] = "flux-hk/1 hello";

static munge_ctx_t make_context (const char *socket, struct hk_error *err)
{
    munge_ctx_t ctx = munge_ctx_create ();

    if (!ctx) {
        hk_error_set (err, ENOMEM, "out of memory");
        return NULL;
    }
    if (socket
        && munge_ctx_set (ctx, MUNGE_OPT_SOCKET, socket) != EMUNGE_SUCCESS) {
        hk_error_set (err, EINVAL, "munge: %s", munge_ctx_strerror (ctx));
        munge_ctx_destroy (ctx);
        return NULL;
    }
    return ctx;
}

/* Takes the payload, also on failure. */
static char *encode_take (const char *socket,
                          json_t *payload,
                          uid_t restrict_uid,
                          struct hk_error *err)
{
    char *text = payload ? json_dumps (payload, JSON_COMPACT) : NULL;
    munge_ctx_t ctx = NULL;
    char *cred = NULL;
    munge_err_t e;

    json_decref (payload);
    if (!text) {
        hk_error_set (err, EINVAL, "a claim that is not UTF-8 or no memory");
        return NULL;
    }
    ctx = make_context (socket, err);
    if (!ctx)
        goto out;
    if (restrict_uid != (uid_t)-1
        && munge_ctx_set (ctx, MUNGE_OPT_UID_RESTRICTION, restrict_uid)
               != EMUNGE_SUCCESS) {
        hk_error_set (err, EINVAL, "munge: %s", munge_ctx_strerror (ctx));
        goto out;
    }
    e = munge_encode (&cred, ctx, text, (int)strlen (text));
    if (e != EMUNGE_SUCCESS) {
        hk_error_set (err, EAGAIN, "munge: %s", munge_ctx_strerror (ctx));
        free (cred);
        cred = NULL;
    } else if (strlen (cred) >= HK_CRED_BYTES) {
        hk_error_set (err, EINVAL, "munge: credential too long");
        free (cred);
        cred = NULL;
    }
out:
    if (ctx)
        munge_ctx_destroy (ctx);
    free (text);
    return cred;
}

static void clock_text (time_t t, char *buf, size_t size)
{
    struct tm tm;

    if (!gmtime_r (&t, &tm) || !strftime (buf, size, "%FT%TZ", &tm))
        buf[0] = '\0';
}

/* Why a credential was not taken, with errno as the header promises. */
static void explain (munge_err_t e, munge_ctx_t ctx, struct hk_error *err)
{
    time_t made = 0;
    time_t read = 0;
    char made_text[32];
    char read_text[32];

    switch (e) {
    case EMUNGE_CRED_EXPIRED:
    case EMUNGE_CRED_REWOUND:
        munge_ctx_get (ctx, MUNGE_OPT_ENCODE_TIME, &made);
        munge_ctx_get (ctx, MUNGE_OPT_DECODE_TIME, &read);
        clock_text (made, made_text, sizeof (made_text));
        clock_text (read, read_text, sizeof (read_text));
        hk_error_set (err,
                      EKEYEXPIRED,
                      "munge: %s: made when the maker's clock said %s, "
                      "read when the reader's said %s",
                      munge_strerror (e),
                      made_text,
                      read_text);
        break;
    case EMUNGE_CRED_REPLAYED:
    case EMUNGE_CRED_UNAUTHORIZED:
    case EMUNGE_CRED_INVALID:
        hk_error_set (err, EACCES, "munge: %s", munge_strerror (e));
        break;
    case EMUNGE_SOCKET:
    case EMUNGE_TIMEOUT:
    case EMUNGE_NO_MEMORY:
    case EMUNGE_SNAFU:
        hk_error_set (err, EAGAIN, "munge: %s", munge_ctx_strerror (ctx));
        break;
    default:
        hk_error_set (err, EINVAL, "munge: %s", munge_strerror (e));
    }
}

/* The payload of a credential that is good in every respect; else NULL. */
static json_t *decode (const char *socket,
                       const char *cred,
                       uid_t *uid,
                       struct hk_error *err)
{
    munge_ctx_t ctx = make_context (socket, err);
    void *payload = NULL;
    int len = 0;
    gid_t gid;
    munge_err_t e;
    json_t *json = NULL;

    if (!ctx)
        return NULL;
    /* after REPLAYED, EXPIRED and REWOUND uid and payload are filled too */
    e = munge_decode (cred, ctx, &payload, &len, uid, &gid);
    if (e != EMUNGE_SUCCESS)
        explain (e, ctx, err);
    else if (!payload || len <= 0
             || !(json = json_loadb (
                      payload, (size_t)len, JSON_REJECT_DUPLICATES, NULL)))
        hk_error_set (err, EINVAL, "credential without a claim");
    free (payload);
    munge_ctx_destroy (ctx);
    return json;
}

/* Into a buffer of the claim; false if it does not fit. */
static bool copy_text (char *to, size_t size, const char *from)
{
    size_t len = strlen (from);

    if (len >= size)
        return false;
    memcpy (to, from, len + 1);
    return true;
}

static bool copy_hex (char *to, size_t size, const char *from)
{
    return strlen (from) == size - 1
           && strspn (from, "0123456789abcdef") == size - 1
           && copy_text (to, size, from);
}

static bool copy_key (char *to, const char *from)
{
    return strlen (from) == HK_KEY_TEXT_BYTES - 1
           && copy_text (to, HK_KEY_TEXT_BYTES, from);
}

static bool copy_host (char *to, const char *from)
{
    return (!*from || hk_host_name_valid (from))
           && copy_text (to, HK_HOST_NAME_BYTES, from);
}

char *hk_key_claim_encode (const char *socket,
                           const struct hk_key_claim *claim,
                           struct hk_error *err)
{
    return encode_take (socket,
                        json_pack ("{s:s s:s s:s s:I s:s}",
                                   "tag",
                                   key_tag,
                                   "server_pub",
                                   claim->server_pub,
                                   "instance",
                                   claim->instance,
                                   "start",
                                   (json_int_t)claim->start,
                                   "nonce",
                                   claim->nonce),
                        (uid_t)-1,
                        err);
}

int hk_key_claim_decode (const char *socket,
                         const char *cred,
                         struct hk_key_claim *claim,
                         uid_t *uid,
                         struct hk_error *err)
{
    struct hk_key_claim c;
    uid_t who;
    json_t *json = decode (socket, cred, &who, err);
    const char *tag;
    const char *pub;
    const char *instance;
    const char *nonce;
    json_int_t start;
    bool ok;

    if (!json)
        return -1;
    ok = json_unpack (json,
                      "{s:s s:s s:s s:I s:s !}",
                      "tag",
                      &tag,
                      "server_pub",
                      &pub,
                      "instance",
                      &instance,
                      "start",
                      &start,
                      "nonce",
                      &nonce)
             == 0
         && strcmp (tag, key_tag) == 0 && start > 0
         && copy_key (c.server_pub, pub)
         && copy_hex (c.instance, sizeof (c.instance), instance)
         && copy_hex (c.nonce, sizeof (c.nonce), nonce);
    json_decref (json);
    if (!ok)
        return hk_error_set (err, EINVAL, "credential of another kind");
    c.start = (uint64_t)start;
    *claim = c;
    *uid = who;
    return 0;
}

char *hk_hello_claim_encode (const char *socket,
                             const struct hk_hello_claim *claim,
                             uid_t restrict_uid,
                             struct hk_error *err)
{
    return encode_take (socket,
                        json_pack ("{s:s s:s s:s s:s s:s s:s s:s s:I}",
                                   "tag",
                                   hello_tag,
                                   "pub",
                                   claim->pub,
                                   "role",
                                   claim->role,
                                   "host",
                                   claim->host,
                                   "short",
                                   claim->short_host,
                                   "boot_id",
                                   claim->boot_id,
                                   "instance",
                                   claim->instance,
                                   "start",
                                   (json_int_t)claim->start),
                        restrict_uid,
                        err);
}

static bool unpack_hello (json_t *json, struct hk_hello_claim *claim)
{
    const char *tag;
    const char *pub;
    const char *role;
    const char *host;
    const char *short_host;
    const char *boot_id;
    const char *instance;
    json_int_t start;

    if (json_unpack (json,
                     "{s:s s:s s:s s:s s:s s:s s:s s:I !}",
                     "tag",
                     &tag,
                     "pub",
                     &pub,
                     "role",
                     &role,
                     "host",
                     &host,
                     "short",
                     &short_host,
                     "boot_id",
                     &boot_id,
                     "instance",
                     &instance,
                     "start",
                     &start)
            < 0
        || strcmp (tag, hello_tag) != 0 || start <= 0)
        return false;
    claim->start = (uint64_t)start;
    return copy_key (claim->pub, pub)
           && copy_text (claim->role, sizeof (claim->role), role)
           && copy_host (claim->host, host)
           && copy_host (claim->short_host, short_host)
           && (copy_hex (claim->boot_id, sizeof (claim->boot_id), boot_id)
               || (!*boot_id
                   && copy_text (
                       claim->boot_id, sizeof (claim->boot_id), boot_id)))
           && copy_hex (claim->instance, sizeof (claim->instance), instance);
}

int hk_hello_claim_decode (const char *socket,
                           const char *cred,
                           struct hk_hello_claim *claim,
                           uid_t *uid,
                           struct hk_error *err)
{
    struct hk_hello_claim c;
    uid_t who;
    json_t *json = decode (socket, cred, &who, err);
    bool ok;

    if (!json)
        return -1;
    ok = unpack_hello (json, &c);
    json_decref (json);
    if (!ok)
        return hk_error_set (err, EINVAL, "credential of another kind");
    *claim = c;
    *uid = who;
    return 0;
}

/* The kernel's generator has no failure once it is ready; a signal may cut a
 * long read short.
 */
static void random_bytes (void *buf, size_t len)
{
    char *p = buf;

    while (len > 0) {
        ssize_t n = getrandom (p, len, 0);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            abort (); /* ids that can be guessed are worse */
        p += n;
        len -= (size_t)n;
    }
}

static void random_hex (char *out, size_t digits)
{
    unsigned char bytes[HK_NONCE_TEXT_BYTES / 2];

    random_bytes (bytes, digits / 2);
    for (size_t i = 0; i < digits / 2; i++) {
        out[2 * i] = "0123456789abcdef"[bytes[i] >> 4];
        out[2 * i + 1] = "0123456789abcdef"[bytes[i] & 15];
    }
    out[digits] = '\0';
}

void hk_random_id (char out[HK_ID_BYTES])
{
    random_hex (out, HK_ID_BYTES - 1);
}

void hk_random_nonce (char out[HK_NONCE_TEXT_BYTES])
{
    random_hex (out, HK_NONCE_TEXT_BYTES - 1);
}

uint64_t hk_random_u63 (void)
{
    uint64_t n;

    do {
        random_bytes (&n, sizeof (n));
        n &= INT64_MAX;
    } while (n == 0);
    return n;
}

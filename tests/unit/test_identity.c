/* test_identity.c - claims that MUNGE vouches for */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <munge.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "proto/identity.h"
#include "tests/unit/munged.h"

static struct munged munged;

static struct hk_key_claim key_claim = {
    .server_pub = "0123456789012345678901234567890123456789",
    .instance = "0123456789abcdef0123456789abcdef",
    .start = 1,
};
static struct hk_hello_claim hello_claim = {
    .pub = "0123456789012345678901234567890123456789",
    .role = "node",
    .host = "node1.cluster",
    .short_host = "node1",
    .boot_id = "0123456789abcdef0123456789abcdef",
    .instance = "fedcba98765432100123456789abcdef",
    .start = INT64_MAX,
};

static void a_key_claim_comes_back (void **state)
{
    struct hk_key_claim claim;
    struct hk_error err;
    uid_t uid = 12345;
    char *cred;

    (void)state;
    hk_random_nonce (key_claim.nonce);
    cred = hk_key_claim_encode (munged.socket, &key_claim, &err);
    assert_non_null (cred);
    assert_int_equal (
        hk_key_claim_decode (munged.socket, cred, &claim, &uid, &err), 0);
    assert_int_equal (uid, geteuid ());
    assert_string_equal (claim.server_pub, key_claim.server_pub);
    assert_string_equal (claim.nonce, key_claim.nonce);
    assert_string_equal (claim.instance, key_claim.instance);
    assert_int_equal (claim.start, 1);
    free (cred);
}

static char *hello (uid_t restrict_uid)
{
    struct hk_error err;
    char *cred = hk_hello_claim_encode (
        munged.socket, &hello_claim, restrict_uid, &err);

    if (!cred)
        fail_msg ("%s", err.text);
    return cred;
}

static void a_hello_claim_comes_back (void **state)
{
    struct hk_hello_claim claim;
    uid_t uid;
    char *cred = hello (geteuid ());

    (void)state;
    assert_int_equal (
        hk_hello_claim_decode (munged.socket, cred, &claim, &uid, NULL), 0);
    assert_string_equal (claim.pub, hello_claim.pub);
    assert_string_equal (claim.role, "node");
    assert_string_equal (claim.host, "node1.cluster");
    assert_string_equal (claim.short_host, "node1");
    assert_string_equal (claim.boot_id, hello_claim.boot_id);
    assert_true (claim.start == INT64_MAX);
    free (cred);
}

static void expect_refusal (char *cred, int errnum, const char *word)
{
    struct hk_hello_claim claim = { .role = "untouched" };
    struct hk_error err;
    uid_t uid = 4711;

    assert_int_equal (
        hk_hello_claim_decode (munged.socket, cred, &claim, &uid, &err), -1);
    if (errno != errnum || !strstr (err.text, word))
        fail_msg ("errno %d: %s", errno, err.text);
    assert_int_equal (uid, 4711);
    assert_string_equal (claim.role, "untouched");
    free (cred);
}

static void a_credential_counts_once (void **state)
{
    struct hk_hello_claim claim;
    uid_t uid;
    char *cred = hello ((uid_t)-1);

    (void)state;
    assert_int_equal (
        hk_hello_claim_decode (munged.socket, cred, &claim, &uid, NULL), 0);
    expect_refusal (cred, EACCES, "Replayed");
}

static void a_credential_for_another_uid_is_refused (void **state)
{
    (void)state;
    expect_refusal (hello (geteuid () + 1), EACCES, "Unauthorized");
}

static void a_credential_of_the_other_kind_is_refused (void **state)
{
    (void)state;
    expect_refusal (hk_key_claim_encode (munged.socket, &key_claim, NULL),
                    EINVAL,
                    "another kind");
}

static void no_credential_is_refused (void **state)
{
    (void)state;
    expect_refusal (strdup ("MUNGE:AAAA:"), EINVAL, "munge: ");
    expect_refusal (strdup (""), EINVAL, "munge: ");
}

static char *vouch_for (const char *payload, int ttl)
{
    munge_ctx_t ctx = munge_ctx_create ();
    char *cred = NULL;

    munge_ctx_set (ctx, MUNGE_OPT_SOCKET, munged.socket);
    if (ttl)
        munge_ctx_set (ctx, MUNGE_OPT_TTL, ttl);
    assert_int_equal (munge_encode (&cred, ctx, payload, (int)strlen (payload)),
                      EMUNGE_SUCCESS);
    munge_ctx_destroy (ctx);
    return cred;
}

static void payloads_have_exact_fields (void **state)
{
#define HELLO_BUT(tail)                                               \
    "{\"tag\":\"flux-hk/1 hello\",\"pub\":"                           \
    "\"0123456789012345678901234567890123456789\",\"role\":\"node\"," \
    "\"host\":\"a\",\"short\":\"a\",\"boot_id\":\"\",\"instance\":"   \
    "\"0123456789abcdef0123456789abcdef\"" tail "}"
    static const char *const bad[] = {
        "",
        "{}",
        "[]",
        HELLO_BUT (""),
        HELLO_BUT (",\"start\":0"),
        HELLO_BUT (",\"start\":-1"),
        HELLO_BUT (",\"start\":\"1\""),
        HELLO_BUT (",\"start\":1,\"more\":1"),
        HELLO_BUT (",\"start\":1,\"start\":1"),
        "{\"tag\":\"flux-hk/1 hello\",\"pub\":\"short\",\"role\":\"node\","
        "\"host\":\"a\",\"short\":\"a\",\"boot_id\":\"\",\"instance\":"
        "\"0123456789abcdef0123456789abcdef\",\"start\":1}",
        "{\"tag\":\"flux-hk/1 hello\",\"pub\":"
        "\"0123456789012345678901234567890123456789\",\"role\":\"node\","
        "\"host\":\"a b\",\"short\":\"a\",\"boot_id\":\"\",\"instance\":"
        "\"0123456789abcdef0123456789abcdef\",\"start\":1}",
    };
    struct hk_hello_claim claim;
    uid_t uid;
    char *cred = vouch_for (HELLO_BUT (",\"start\":1"), 0);

    (void)state;
    assert_int_equal (
        hk_hello_claim_decode (munged.socket, cred, &claim, &uid, NULL), 0);
    free (cred);
    for (size_t i = 0; i < sizeof (bad) / sizeof (bad[0]); i++)
        expect_refusal (vouch_for (bad[i], 0), EINVAL, "credential");
}

static void an_old_credential_names_both_clocks (void **state)
{
    struct timespec wait = { .tv_sec = 2, .tv_nsec = 100000000 };
    char *cred = vouch_for ("{}", 1);

    (void)state;
    nanosleep (&wait, NULL);
    expect_refusal (cred, EKEYEXPIRED, "the reader's said 20");
}

static void no_munged_is_told_from_no_credential (void **state)
{
    struct hk_error err;
    char path[160];

    (void)state;
    snprintf (path, sizeof (path), "%s/none", munged.dir);
    assert_null (hk_key_claim_encode (path, &key_claim, &err));
    assert_int_equal (errno, EAGAIN);
    assert_non_null (strstr (err.text, path));
}

static void random_ids_differ_and_are_hex (void **state)
{
    char a[HK_ID_BYTES];
    char b[HK_ID_BYTES];

    (void)state;
    hk_random_id (a);
    hk_random_id (b);
    assert_string_not_equal (a, b);
    assert_int_equal (strspn (a, "0123456789abcdef"), 32);
    for (int i = 0; i < 1000; i++) {
        uint64_t n = hk_random_u63 ();

        assert_true (n > 0 && n <= INT64_MAX);
    }
}

static int start (void **state)
{
    (void)state;
    return munged_start (&munged);
}

static int stop (void **state)
{
    (void)state;
    munged_stop (&munged);
    return 0;
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (a_key_claim_comes_back),
        cmocka_unit_test (a_hello_claim_comes_back),
        cmocka_unit_test (a_credential_counts_once),
        cmocka_unit_test (a_credential_for_another_uid_is_refused),
        cmocka_unit_test (a_credential_of_the_other_kind_is_refused),
        cmocka_unit_test (no_credential_is_refused),
        cmocka_unit_test (payloads_have_exact_fields),
        cmocka_unit_test (an_old_credential_names_both_clocks),
        cmocka_unit_test (no_munged_is_told_from_no_credential),
        cmocka_unit_test (random_ids_differ_and_are_hex),
    };

    return cmocka_run_group_tests_name ("identity", tests, start, stop);
}

/* test_session.c - what a host passes on to its manager's session */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "coordinator/host/host.h"

static bool takes (struct hkc_session *s,
                   enum hkc_action_kind kind,
                   const char *life,
                   uint64_t tag)
{
    struct hkc_action act = { .kind = kind };

    if (kind == HKC_ACT_FREE)
        act.free.life = life;
    else if (kind == HKC_ACT_DRAIN || kind == HKC_ACT_UNDRAIN)
        act.drain.life = life;
    else if (kind == HKC_ACT_HELLO_ENTRY)
        act.entry.tag = tag, act.entry.life = life;
    else
        act.hello_end.tag = tag, act.hello_end.life = life;
    return hkc_session_takes (s, &act);
}

static void what_is_of_another_life_or_hello_is_dropped (void **state)
{
    struct hkc_session s = { "", 0, false };

    (void)state;
    hkc_session_hello (&s, "L1", 1);
    assert_false (takes (&s, HKC_ACT_HELLO_ENTRY, "L1", 7));
    assert_true (takes (&s, HKC_ACT_HELLO_ENTRY, "L1", 1));
    assert_false (takes (&s, HKC_ACT_HELLO_END, "L1", 7));
    assert_true (takes (&s, HKC_ACT_HELLO_END, "L1", 1));
    assert_true (takes (&s, HKC_ACT_FREE, "L1", 0));
    assert_false (takes (&s, HKC_ACT_FREE, "L0", 0));
    assert_true (takes (&s, HKC_ACT_UNDRAIN, "L1", 0));
    assert_false (takes (&s, HKC_ACT_UNDRAIN, "L0", 0));
    assert_true (takes (&s, HKC_ACT_DRAIN, "L0", 0)); /* it is needed still */
}

/* last_free would pass over an older one that is still to come again. */
static void no_free_comes_before_its_hello_is_answered (void **state)
{
    struct hkc_session s = { "", 0, false };

    (void)state;
    hkc_session_hello (&s, "L1", 1);
    assert_true (takes (&s, HKC_ACT_HELLO_END, "L1", 1));
    hkc_session_hello (&s, "L1", 2); /* another link, the same life */
    assert_false (takes (&s, HKC_ACT_FREE, "L1", 0));
    assert_false (takes (&s, HKC_ACT_HELLO_END, "L1", 1));
    assert_false (takes (&s, HKC_ACT_FREE, "L1", 0));
    assert_true (takes (&s, HKC_ACT_HELLO_END, "L1", 2));
    assert_true (takes (&s, HKC_ACT_FREE, "L1", 0));
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (what_is_of_another_life_or_hello_is_dropped),
        cmocka_unit_test (no_free_comes_before_its_hello_is_answered),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}

/* limits.c - the limits of a run, and how its file keeps them */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include "hkd/limits.h"

char *hkd_limits_append (const char *object,
                         size_t len,
                         const struct hkd_limits *limits)
{
    char *text;
    int n;

    assert (len > 0 && object[len - 1] == '}');
    n = asprintf (&text,
                  "%.*s,\"limits\":{\"timeout_ms\":%" PRIi64
                  ",\"kill_grace_ms\":%" PRIi64 ",\"give_up_ms\":%" PRIi64 "}}",
                  (int)(len - 1),
                  object,
                  limits->timeout_ms,
                  limits->kill_grace_ms,
                  limits->give_up_ms);
    return n < 0 ? NULL : text;
}

int hkd_limits_read (const char *object,
                     size_t len,
                     struct hkd_limits *limits,
                     struct hk_error *err)
{
    json_error_t why;
    json_t *root = json_loadb (object, len, JSON_REJECT_DUPLICATES, &why);
    json_t *field = json_object_get (root, "limits");
    json_int_t timeout, kill_grace, give_up;
    int rc = -1;

    if (!root)
        hk_error_set (err, EINVAL, "%s", why.text);
    else if (!field)
        rc = 0;
    else if (json_unpack_ex (field,
                             &why,
                             0,
                             "{s:I s:I s:I}",
                             "timeout_ms",
                             &timeout,
                             "kill_grace_ms",
                             &kill_grace,
                             "give_up_ms",
                             &give_up)
             < 0)
        hk_error_set (err, EINVAL, "limits: %s", why.text);
    else if (timeout < 0 || kill_grace < 0 || give_up < 0)
        hk_error_set (err, EINVAL, "limits: less than nothing");
    else {
        *limits = (struct hkd_limits){ timeout, kill_grace, give_up };
        rc = 1;
    }
    json_decref (root);
    return rc;
}

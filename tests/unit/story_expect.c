/* story_expect.c - what must have followed */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "coordinator/store/schema.h"
#include "tests/unit/story.h"

void pass_over (struct story *s)
{
    s->lines_count = 0;
}

static bool same (const struct story_line *a, const struct story_line *b)
{
    return !strcmp (a->verb, b->verb) && !strcmp (a->rest, b->rest);
}

/* The line at i with all hosts of which the same is said; "" if it was said. */
static char *folded (const struct story *s, int i)
{
    const struct story_line *l = &s->lines[i];
    struct hk_hostlist *hosts = hk_hostlist_create ();
    char *names, *text = NULL;

    for (int j = 0; j < i; j++)
        if (l->host[0] && same (&s->lines[j], l)) {
            hk_hostlist_destroy (hosts);
            return strdup ("");
        }
    for (int j = i; j < s->lines_count && l->host[0]; j++)
        if (same (&s->lines[j], l))
            hk_hostlist_append (hosts, s->lines[j].host);
    hk_hostlist_uniq (hosts);
    names = hk_hostlist_encode (hosts);
    if (asprintf (&text,
                  "%s%s%s%s%s",
                  l->verb,
                  *names ? " " : "",
                  names,
                  l->rest[0] ? " " : "",
                  l->rest)
        < 0)
        text = NULL;
    assert_non_null (text);
    free (names);
    hk_hostlist_destroy (hosts);
    return text;
}

static char *all_folded (const struct story *s)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream (&text, &size);

    assert_non_null (f);
    for (int i = 0; i < s->lines_count; i++) {
        char *one = folded (s, i);
        if (*one)
            fprintf (f, "\n  %s", one);
        free (one);
    }
    fclose (f);
    return text;
}

static bool takes_line (char *all, const char *want)
{
    size_t n = strlen (want);

    for (char *p = all; (p = strstr (p, "\n  ")); p++)
        if (!strncmp (p + 3, want, n) && (p[n + 3] == '\n' || !p[n + 3])) {
            memmove (p, p + n + 3, strlen (p + n + 3) + 1);
            return true;
        }
    return false;
}

void expect_lines (struct story *s, const char *const *lines)
{
    char *all = all_folded (s), *whole = strdup (all);
    const char *missing = NULL;

    assert_non_null (whole);
    for (; *lines && !missing; lines++)
        if (!takes_line (all, *lines))
            missing = *lines;
    if (missing)
        fail_msg ("missing: %s\nthere is:%s", missing, whole);
    if (*all)
        fail_msg ("not expected:%s", all);
    free (all);
    free (whole);
    s->lines_count = 0;
}

struct look {
    const char *host;
    char phase[128], act[128];
};

static int look_at (void *arg, const struct hkc_view *v)
{
    struct look *look = arg;

    if (strcmp (v->host, look->host) != 0)
        return 0;
    snprintf (look->phase,
              sizeof (look->phase),
              "%s%s%s",
              hkc_phase_name (v->phase),
              *v->marks ? " " : "",
              v->marks);
    snprintf (look->act, sizeof (look->act), "%s", v->act);
    return 0;
}

static struct look look_for (struct story *s, uint64_t jobid, const char *host)
{
    struct look look = { .host = host, .phase = "gone" };

    hkc_core_each_part (s->core, jobid, look_at, &look);
    return look;
}

void expect_phase (struct story *s,
                   uint64_t jobid,
                   const char *hosts,
                   const char *phase)
{
    struct hk_hostlist *list = hk_hostlist_decode (hosts, NULL);

    assert_non_null (list);
    for (size_t i = 0; i < hk_hostlist_count (list); i++) {
        const char *host = hk_hostlist_nth (list, i);
        struct look look = look_for (s, jobid, host);
        if (strcmp (look.phase, phase) != 0)
            fail_msg ("job %lu on %s is '%s', expected '%s'",
                      jobid,
                      host,
                      look.phase,
                      phase);
    }
    hk_hostlist_destroy (list);
}

void expect_act (struct story *s,
                 uint64_t jobid,
                 const char *host,
                 const char *act)
{
    assert_string_equal (look_for (s, jobid, host).act, act);
}

void expect_history (struct story *s,
                     uint64_t jobid,
                     const char *host,
                     const char *outcomes)
{
    sqlite3_stmt *stmt = NULL;
    char got[256] = "";

    assert_int_equal (
        sqlite3_prepare_v2 (s->store->db,
                            "SELECT outcome FROM history WHERE jobid = ?1 AND"
                            " host = ?2 ORDER BY pid, attempt",
                            -1,
                            &stmt,
                            NULL),
        SQLITE_OK);
    sqlite3_bind_int64 (stmt, 1, (int64_t)jobid);
    sqlite3_bind_text (stmt, 2, host, -1, SQLITE_STATIC);
    while (sqlite3_step (stmt) == SQLITE_ROW) {
        size_t n = strlen (got);
        snprintf (got + n,
                  sizeof (got) - n,
                  "%s%s",
                  n ? "," : "",
                  hk_outcome_name (sqlite3_column_int (stmt, 0)));
    }
    sqlite3_finalize (stmt);
    assert_string_equal (got, outcomes);
}

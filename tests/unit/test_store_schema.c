/* test_store_schema.c - newer, older and made-up schemas of the store */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "coordinator/store/schema.h"
#include "tests/unit/store_dir.h"
#include "tests/unit/store_rows.h"

/* Version 3 of a program that is yet to be. */

static const char *const made_up_steps[] = {
    "CREATE TABLE note (host TEXT PRIMARY KEY, text TEXT NOT NULL);",
    "INSERT OR REPLACE INTO note SELECT host, reason FROM part;",
};
static const struct hkc_schema made_up = { 3, "", made_up_steps };

static void run_sql (const char *path, const char *sql)
{
    sqlite3 *db;

    assert_int_equal (sqlite3_open (path, &db), SQLITE_OK);
    assert_int_equal (sqlite3_exec (db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close (db);
}

static void a_newer_schema_is_refused_and_left_as_it_is (void **state)
{
    size_t size;
    char *bytes;

    (void)state;
    make_full ();
    run_sql (at ("hk.db"), "UPDATE meta SET schema = 7");
    bytes = file_bytes (at ("hk.db"), &size);
    assert_refused (ENOTSUP,
                    "hk.db has schema 7, made by a newer version; "
                    "this one knows up to 1");
    assert_file (at ("hk.db"), bytes, size);
    free (bytes);
    run_sql (at ("hk.db"), "UPDATE meta SET schema = 0");
    assert_refused (EUCLEAN, "is damaged: schema 0, expected 1 to 1");
    run_sql (at ("hk.db"), "DELETE FROM meta");
    assert_refused (EUCLEAN, "is damaged: no row");
}

static char *kept_copy (void)
{
    glob_t found;
    char *path;

    if (glob (at ("hk.db.schema-1-*"), 0, NULL, &found) != 0)
        return NULL;
    assert_int_equal (found.gl_pathc, 1);
    path = strdup (found.gl_pathv[0]);
    globfree (&found);
    return path;
}

static void an_older_schema_is_kept_aside_and_migrated (void **state)
{
    struct hk_error err = { "" };
    struct hkc_store *store;
    char *old, *kept, *text;

    (void)state;
    make_full ();
    store = store_open (dir);
    old = store_text (store);
    hkc_store_close (store);
    if (!(store = hkc_store_open_as (dir, &made_up, &err)))
        fail_msg ("%s", err.text);
    assert_int_equal (store_count (store, "meta WHERE schema = 3"), 1);
    assert_int_equal (store_count (store, "note"), 1);
    assert_store_text (store, old);
    hkc_store_close (store);
    assert_refused (ENOTSUP, "has schema 3");
    /* what is kept is what was, and can be put back */
    assert_non_null (kept = kept_copy ());
    assert_int_equal (mode_of (kept), 0600);
    assert_int_equal (rename (kept, at ("hk.db")), 0);
    store = store_open (dir);
    text = store_text (store);
    assert_string_equal (text, old);
    hkc_store_close (store);
    free (text);
    free (old);
    free (kept);
}

static void a_migration_that_fails_changes_nothing (void **state)
{
    static const char *const bad_steps[] = {
        "CREATE TABLE note (host TEXT);",
        "INSERT INTO nowhere VALUES (1);",
    };
    static const struct hkc_schema bad = { 3, "", bad_steps };
    struct hkc_store *store;
    char *kept;

    (void)state;
    make_full ();
    assert_refused_as (&bad, EIO, "migrating schema 1 to 3: ");
    assert_refused_as (&bad, EIO, "no such table: nowhere");
    assert_non_null (kept = kept_copy ()); /* one, though it was tried twice */
    free (kept);
    store = store_open (dir);
    assert_int_equal (store_count (store, "sqlite_schema WHERE name = 'note'"),
                      0);
    assert_int_equal (store_count (store, "part"), 100);
    hkc_store_close (store);
}

#define A_TEST(name) \
    cmocka_unit_test_setup_teardown (name, dir_set_up, dir_tear_down)

int main (void)
{
    const struct CMUnitTest tests[] = {
        A_TEST (a_newer_schema_is_refused_and_left_as_it_is),
        A_TEST (an_older_schema_is_kept_aside_and_migrated),
        A_TEST (a_migration_that_fails_changes_nothing),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}

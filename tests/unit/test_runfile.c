/* test_runfile.c - what hkd must still know after its own restart */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "proto/log.h"
#include "hkd/runfile.h"
#include "tests/unit/folder.h"

#define BOOT "0123456789abcdef0123456789abcdef"
#define OTHER_BOOT "ffffffffffffffffffffffffffffffff"
#define INSTANCE "11111111111111111111111111111111"
#define INVOCATION "22222222222222222222222222222222"

static char folder[64];
static char logged[1024];

static void on_log (void *arg,
                    int level,
                    const struct hk_log_ids *ids,
                    const char *text)
{
    (void)arg;
    (void)level;
    (void)ids;
    snprintf (logged, sizeof (logged), "%s", text);
}

static int set_up (void **state)
{
    (void)state;
    logged[0] = '\0';
    hk_log_init ("test", LOG_DEBUG, on_log, NULL);
    return folder_make (folder, sizeof (folder));
}

static int tear_down (void **state)
{
    (void)state;
    return folder_remove (folder);
}

static const struct hk_script_result results[] = {
    { .name = "10-a", .code = 3, .t_start = 1.5, .t_end = 2.25 },
    { .name = "20 b\xc3\xa9\"",
      .code = -1,
      .signal = 15,
      .t_start = 2.25,
      .t_end = 3 },
    { .name = "30-c", .code = -1 },
};
static const char *const left[] = { "7 sleep -", "8 sh do_wait" };

static const struct hkd_limits limits = { INT64_MAX, 0, 300000 };

static struct hk_run example (void)
{
    return (struct hk_run){
        .alloc = 0x7123456789abcdef,
        .instance = INSTANCE,
        .attempt = 2,
        .jobid = 1234,
        .boot_id = BOOT,
        .invocation = INVOCATION,
        .unit = "flux-housekeeping-fNH-2.service",
        .phase = HK_RUN_STOPPING,
        .script = "30-c",
        .scripts_count = 3,
        .scripts = results,
        .outcome = HK_OUTCOME_TIMEOUT,
        .leftovers_count = 2,
        .leftovers = left,
        .reason = "30-c exceeded 1h",
        .t_start = 1.25,
    };
}

static void write_run (const struct hk_run *run)
{
    struct hk_error err;

    if (hkd_runfile_write (folder, run, &limits, &err) < 0)
        fail_msg ("%s", err.text);
}

static void check_example (void *arg,
                           const struct hk_run *run,
                           const struct hkd_limits *has)
{
    struct hk_run want = example ();

    ++*(int *)arg;
    assert_int_equal (run->alloc, want.alloc);
    assert_int_equal (run->attempt, want.attempt);
    assert_int_equal (run->jobid, want.jobid);
    assert_string_equal (run->instance, want.instance);
    assert_string_equal (run->invocation, want.invocation);
    assert_string_equal (run->unit, want.unit);
    assert_int_equal (run->phase, want.phase);
    assert_int_equal (run->outcome, want.outcome);
    assert_string_equal (run->reason, want.reason);
    assert_true (run->t_start == want.t_start);
    assert_int_equal (run->scripts_count, 3);
    for (int i = 0; i < 3; i++) {
        assert_string_equal (run->scripts[i].name, results[i].name);
        assert_int_equal (run->scripts[i].code, results[i].code);
        assert_int_equal (run->scripts[i].signal, results[i].signal);
        assert_true (run->scripts[i].t_start == results[i].t_start);
        assert_true (run->scripts[i].t_end == results[i].t_end);
    }
    assert_int_equal (run->leftovers_count, 2);
    assert_string_equal (run->leftovers[1], left[1]);
    assert_non_null (has);
    assert_memory_equal (has, &limits, sizeof (limits));
}

static void count (void *arg,
                   const struct hk_run *run,
                   const struct hkd_limits *has)
{
    (void)run;
    (void)has;
    ++*(int *)arg;
}

static int runs (void)
{
    struct hk_error err;
    int n = 0;

    if (hkd_runfile_each (folder, BOOT, count, &n, &err) < 0)
        fail_msg ("%s", err.text);
    return n;
}

static int files (void)
{
    DIR *dir = opendir (folder);
    int n = -2;

    assert_non_null (dir);
    while (readdir (dir))
        n++;
    closedir (dir);
    return n;
}

static void what_was_written_is_read (void **state)
{
    struct hk_run run = example ();
    struct hk_error err;
    int n = 0;

    (void)state;
    write_run (&run);
    if (hkd_runfile_each (folder, BOOT, check_example, &n, &err) < 0)
        fail_msg ("%s", err.text);
    assert_int_equal (n, 1);
    assert_int_equal (files (), 1);
}

static void a_later_write_takes_the_place_of_the_first (void **state)
{
    struct hk_run run = example ();

    (void)state;
    write_run (&run);
    run.phase = HK_RUN_ENDED;
    write_run (&run);
    assert_int_equal (runs (), 1);
    run.attempt++;
    write_run (&run);
    assert_int_equal (runs (), 2);
}

static void removal_takes_both_files_and_none_is_no_error (void **state)
{
    struct hk_run run = example ();
    char path[HKD_PATH_BYTES];

    (void)state;
    write_run (&run);
    assert_int_equal (hkd_go_create (folder, run.alloc, run.attempt, NULL), 0);
    hkd_go_path (folder, run.alloc, run.attempt, path);
    assert_int_equal (access (path, F_OK), 0);
    assert_int_equal (files (), 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal (
            hkd_runfile_remove (folder, run.alloc, run.attempt, NULL), 0);
        assert_int_equal (files (), 0);
    }
}

static void a_run_of_another_boot_is_removed (void **state)
{
    struct hk_run run = example ();

    (void)state;
    run.boot_id = OTHER_BOOT;
    write_run (&run);
    assert_int_equal (runs (), 0);
    assert_int_equal (files (), 0);
}

static void a_damaged_file_is_put_aside_and_the_others_are_read (void **state)
{
    static const char *const texts[] = {
        "", "{", "x\n", "[]", "{\"type\":\"ack\",\"seq\":1}",
    };
    struct hk_run run = example ();
    char name[64];

    (void)state;
    write_run (&run);
    for (size_t i = 0; i < sizeof (texts) / sizeof (texts[0]); i++) {
        snprintf (name, sizeof (name), "run-%016zx-1.json", i + 1);
        folder_write (folder, name, texts[i]);
        logged[0] = '\0';
        assert_int_equal (runs (), 1);
        assert_non_null (strstr (logged, name));
        assert_non_null (strstr (logged, "damaged"));
        assert_int_equal (files (), 2 + i);
        /* only once */
        logged[0] = '\0';
        assert_int_equal (runs (), 1);
        assert_string_equal (logged, "");
    }
}

static void check_none (void *arg,
                        const struct hk_run *run,
                        const struct hkd_limits *has)
{
    (void)run;
    ++*(int *)arg;
    assert_null (has);
}

/* A run's file whose limits are this text; NULL: it has none. */
static void write_limits (const char *text)
{
    char all[512];

    snprintf (all,
              sizeof (all),
              "{\"type\":\"run\",\"seq\":1,\"alloc\":5,\"instance\":\"" INSTANCE
              "\",\"attempt\":1,\"jobid\":7,\"boot_id\":\"" BOOT
              "\",\"phase\":\"running\"%s%s}",
              text ? ",\"limits\":" : "",
              text ? text : "");
    folder_write (folder, "run-0000000000000005-1.json", all);
}

static void the_file_of_an_earlier_version_has_no_limits (void **state)
{
    struct hk_error err;
    int n = 0;

    (void)state;
    write_limits (NULL);
    assert_int_equal (hkd_runfile_each (folder, BOOT, check_none, &n, &err), 0);
    assert_int_equal (n, 1);
}

static void a_later_version_may_have_more_limits (void **state)
{
    (void)state;
    write_limits ("{\"timeout_ms\":1,\"kill_grace_ms\":2,\"more\":3,"
                  "\"give_up_ms\":4}");
    assert_int_equal (runs (), 1);
}

static void limits_that_cannot_be_are_damage (void **state)
{
    static const char *const texts[] = {
        "null",
        "7",
        "{}",
        "{\"timeout_ms\":1,\"kill_grace_ms\":2}",
        "{\"timeout_ms\":\"1h\",\"kill_grace_ms\":2,\"give_up_ms\":3}",
        "{\"timeout_ms\":1,\"kill_grace_ms\":-2,\"give_up_ms\":3}",
        "{\"timeout_ms\":1e3,\"kill_grace_ms\":2,\"give_up_ms\":3}",
        ("{\"timeout_ms\":9223372036854775808,\"kill_grace_ms\":2,"
         "\"give_up_ms\":3}"),
    };

    (void)state;
    for (size_t i = 0; i < sizeof (texts) / sizeof (texts[0]); i++) {
        write_limits (texts[i]);
        logged[0] = '\0';
        assert_int_equal (runs (), 0);
        assert_non_null (strstr (logged, "damaged"));
    }
}

static void a_file_under_another_runs_name_is_put_aside (void **state)
{
    struct hk_run run = example ();
    char path[4096], other[4096];

    (void)state;
    write_run (&run);
    snprintf (path, sizeof (path), "%s/run-7123456789abcdef-2.json", folder);
    snprintf (other, sizeof (other), "%s/run-7123456789abcdef-3.json", folder);
    assert_int_equal (rename (path, other), 0);
    assert_int_equal (runs (), 0);
    assert_non_null (strstr (logged, "damaged"));
}

static void remains_of_a_write_are_removed (void **state)
{
    (void)state;
    folder_write (folder, "new.tmp", "{\"type\":\"run\"");
    assert_int_equal (hkd_go_create (folder, 5, 1, NULL), 0);
    assert_int_equal (runs (), 0);
    assert_int_equal (files (), 0);
}

static void the_go_file_of_a_run_stays_also_of_a_damaged_one (void **state)
{
    struct hk_run run = example ();

    (void)state;
    write_run (&run);
    assert_int_equal (hkd_go_create (folder, run.alloc, run.attempt, NULL), 0);
    folder_write (folder, "run-0000000000000005-1.json", "x");
    assert_int_equal (hkd_go_create (folder, 5, 1, NULL), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal (runs (), 1);
        assert_int_equal (files (), 4);
    }
}

static void a_folder_that_is_missing_is_an_error (void **state)
{
    struct hk_run run = example ();
    struct hk_error err;
    char dir[4096];

    (void)state;
    snprintf (dir, sizeof (dir), "%s/none", folder);
    assert_int_equal (hkd_runfile_write (dir, &run, &limits, &err), -1);
    assert_non_null (strstr (err.text, "No such file"));
    assert_int_equal (hkd_go_create (dir, 1, 1, &err), -1);
    assert_int_equal (hkd_runfile_each (dir, BOOT, count, &(int){ 0 }, &err),
                      -1);
}

static void only_one_hkd_has_the_folder (void **state)
{
    struct hk_error err;
    char dir[4096];
    int fd;

    (void)state;
    snprintf (dir, sizeof (dir), "%s/run", folder);
    fd = hkd_runfile_lock (dir, &err);
    if (fd < 0)
        fail_msg ("%s", err.text);
    assert_int_equal (hkd_runfile_lock (dir, &err), -1);
    assert_int_equal (errno, EWOULDBLOCK);
    assert_non_null (strstr (err.text, "another hkd"));
    close (fd);
    fd = hkd_runfile_lock (dir, &err);
    assert_true (fd >= 0);
    close (fd);
}

static void a_folder_that_others_may_write_is_refused (void **state)
{
    struct hk_error err;

    (void)state;
    assert_int_equal (chmod (folder, 0777), 0);
    assert_int_equal (hkd_runfile_lock (folder, &err), -1);
    assert_int_equal (errno, EPERM);
}

static void what_was_seen_is_kept (void **state)
{
    struct hkd_seen seen, again;

    (void)state;
    hkd_seen_load (folder, &seen);
    assert_string_equal (seen.instance, "");
    snprintf (seen.instance, sizeof (seen.instance), INSTANCE);
    seen.start = INT64_MAX;
    seen.commit = 7;
    assert_int_equal (hkd_seen_save (folder, &seen, NULL), 0);
    hkd_seen_load (folder, &again);
    assert_memory_equal (&seen, &again, sizeof (seen));
    folder_write (folder, "seen.json", "{\"instance\":\"x\"}");
    hkd_seen_load (folder, &again);
    assert_string_equal (again.instance, "");
    assert_non_null (strstr (logged, "damaged"));
    folder_write (folder,
                  "seen.json",
                  "{\"instance\":\"" INSTANCE "\",\"start\":-1,\"commit\":1}");
    hkd_seen_load (folder, &again);
    assert_string_equal (again.instance, "");
}

int main (void)
{
#define T(f) cmocka_unit_test_setup_teardown (f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T (what_was_written_is_read),
        T (a_later_write_takes_the_place_of_the_first),
        T (removal_takes_both_files_and_none_is_no_error),
        T (a_run_of_another_boot_is_removed),
        T (a_damaged_file_is_put_aside_and_the_others_are_read),
        T (the_file_of_an_earlier_version_has_no_limits),
        T (a_later_version_may_have_more_limits),
        T (limits_that_cannot_be_are_damage),
        T (a_file_under_another_runs_name_is_put_aside),
        T (remains_of_a_write_are_removed),
        T (the_go_file_of_a_run_stays_also_of_a_damaged_one),
        T (a_folder_that_is_missing_is_an_error),
        T (only_one_hkd_has_the_folder),
        T (a_folder_that_others_may_write_is_refused),
        T (what_was_seen_is_kept),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}

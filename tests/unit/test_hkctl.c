/* test_hkctl.c - command lines of hkctl and its manual page */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <locale.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "hkctl/hkctl.h"
#include "proto/hostlist.h"

enum { WORDS_MAX = 16 };

/* Splits at blanks; the text of stderr is not looked at. */
static int parse (const char *command, const char *line, struct ctl_args *args)
{
    static char text[512];
    char *argv[WORDS_MAX + 1] = { NULL };
    int argc = 0;
    char *save;

    snprintf (text, sizeof (text), "%s %s", command, line);
    for (char *word = strtok_r (text, " ", &save); word && argc < WORDS_MAX;
         word = strtok_r (NULL, " ", &save))
        argv[argc++] = word;
    return ctl_parse (ctl_command_find (command), argc, argv, args);
}

static void options_reach_the_arguments (void **state)
{
    struct ctl_args args;

    (void)state;
    assert_int_equal (parse ("kill",
                             "-j f2x7 -t node[1-3] -s SIGKILL --reason=why "
                             "--timeout 1.5s --json",
                             &args),
                      CTL_DONE);
    assert_true (args.has_jobid);
    assert_int_equal (args.jobid, 6560);
    assert_int_equal (hk_hostlist_count (args.hosts), 3);
    assert_int_equal (args.signal, SIGKILL);
    assert_string_equal (args.reason, "why");
    assert_int_equal (args.timeout_ms, 1500);
    assert_true (args.json);
    assert_false (args.all);
    ctl_args_fini (&args);
    assert_int_equal (parse ("log", "-f 77 -n 5", &args), CTL_DONE);
    assert_int_equal (args.jobid, 77);
    assert_int_equal (args.lines, 5);
    assert_true (args.follow);
    assert_int_equal (args.timeout_ms, 10000);
    assert_int_equal (parse ("job-end", "-u root --t-end 12.5", &args),
                      CTL_DONE);
    assert_true (args.has_userid);
    assert_int_equal (args.userid, 0);
    assert_true (args.t_end == 12.5);
    assert_int_equal (parse ("kill", "-s 15", &args), CTL_DONE);
    assert_int_equal (args.signal, 15);
}

static void what_is_wrong_is_a_matter_of_usage (void **state)
{
    static const struct {
        const char *command;
        const char *line;
    } wrong[] = {
        { "list", "--bogus" },
        { "list", "more" },
        { "list", "-j" },
        { "list", "-j x%" },
        { "list", "-t node[1-" },
        { "list", "--timeout=-1s" },
        { "list", "--json=yes" },
        { "log", "" },
        { "log", "1 2" },
        { "kill", "-s FOO" },
        { "kill", "-s 0" },
        { "kill", "-s 65" },
        { "job-end", "-u nobody-of-that-name" },
        { "job-end", "-u -1" },
        { "job-end", "--t-end nan" },
        { "history", "-l -5" },
        { "history", "-l 5x" },
        { "log", "1 -n 99999999999" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof (wrong) / sizeof (wrong[0]); i++) {
        struct ctl_args args;

        if (parse (wrong[i].command, wrong[i].line, &args) != CTL_USAGE)
            fail_msg ("taken: %s %s", wrong[i].command, wrong[i].line);
        ctl_args_fini (&args);
    }
}

/* The command's place, and the arguments as if it stood in front. */
static int at (const char *line)
{
    static char text[512];
    char *argv[WORDS_MAX + 1] = { "hkctl" };
    int argc = 1;
    char *save;

    snprintf (text, sizeof (text), "%s", line);
    for (char *word = strtok_r (text, " ", &save); word && argc < WORDS_MAX;
         word = strtok_r (NULL, " ", &save))
        argv[argc++] = word;
    return ctl_command_at (argc, argv);
}

static void options_may_stand_before_the_command (void **state)
{
    (void)state;
    assert_int_equal (at ("list"), 1);
    assert_int_equal (at ("--json list"), 2);
    assert_int_equal (at ("--json --timeout 5s list -n"), 4);
    assert_int_equal (at ("--timeout=5s -j f2x7 list"), 4);
    /* the value of an option, of that command, is none */
    assert_int_equal (at ("--config list kill --all"), 3);
    assert_int_equal (at ("--reason list kill --all"), 3);
    assert_int_equal (at ("-r kill recover"), 3);
    assert_int_equal (at ("-n list"), 2);
    assert_int_equal (at ("-n 5 log f2x7"), 3);
    assert_int_equal (at ("kill -r list"), 1);
    /* wrong, and told so as of this command */
    assert_int_equal (at ("--bogus list"), 2);
    assert_int_equal (at ("dance list"), 1);
    assert_int_equal (at ("--json dance"), 2);
    assert_int_equal (at ("--json"), 0);
    assert_int_equal (at ("--config list"), 0);
    assert_int_equal (at ("--config list -n"), 0);
    assert_int_equal (at ("--bogus"), 0);
    assert_int_equal (at (""), 0);
}

static int run (const char *first, const char *second, const char *third)
{
    char *argv[] = {
        "hkctl", (char *)first, (char *)second, (char *)third, NULL
    };
    int argc = 1;

    while (argv[argc])
        argc++;
    return ctl_main (argc, argv);
}

static void commands_that_say_too_little_are_not_run (void **state)
{
    (void)state;
    assert_int_equal (run (NULL, NULL, NULL), CTL_USAGE);
    assert_int_equal (run ("dance", NULL, NULL), CTL_USAGE);
    assert_int_equal (run ("--json", NULL, NULL), CTL_USAGE);
    assert_int_equal (run ("--json", "dance", NULL), CTL_USAGE);
    assert_int_equal (run ("--bogus", "config", NULL), CTL_USAGE);
    assert_int_equal (run ("kill", NULL, NULL), CTL_USAGE);
    assert_int_equal (run ("job-end", NULL, NULL), CTL_USAGE);
    assert_int_equal (run ("follow", "--manager", "--partial-ok"), CTL_USAGE);
    assert_int_equal (run ("list", "--config", "/nowhere/hk.conf"), CTL_NO_WAY);
}

static char *read_page (void)
{
    FILE *f = fopen ("hkctl/hkctl.1.scd", "re");
    char *page = calloc (1, 1 << 16);

    assert_non_null (f);
    assert_non_null (page);
    assert_true (fread (page, 1, (1 << 16) - 1, f) > 0);
    fclose (f);
    return page;
}

static void check_page (const char *page, const struct ctl_option *options)
{
    for (; options->name; options++) {
        char word[64];

        snprintf (word, sizeof (word), "*--%s*", options->name);
        if (!strstr (page, word))
            fail_msg ("%s is not in the manual page", word);
        snprintf (word, sizeof (word), "*-%c*", options->letter);
        if (options->letter && !strstr (page, word))
            fail_msg ("%s is not in the manual page", word);
    }
}

static void the_manual_page_names_commands_and_options (void **state)
{
    char *page = read_page ();
    const struct ctl_command *command;

    (void)state;
    check_page (page, ctl_common_options);
    for (size_t i = 0; (command = ctl_command_nth (i)); i++) {
        char word[64];

        snprintf (word, sizeof (word), "*hkctl %s", command->name);
        if (!strstr (page, word))
            fail_msg ("%s is not in the manual page", command->name);
        check_page (page, command->options);
        assert_ptr_equal (ctl_command_find (command->name), command);
    }
    free (page);
}

static void a_cell_is_safe_on_a_terminal (void **state)
{
    json_t *row = json_pack ("{s:s s:i s:I s:f}",
                             "reason",
                             "a\033[2Jb",
                             "n",
                             5,
                             "jobid",
                             (json_int_t)6560,
                             "since",
                             4e9);
    char buf[64];

    (void)state;
    ctl_cell_text (row, "reason", buf, sizeof (buf));
    assert_string_equal (buf, "a\\x1b[2Jb");
    ctl_cell_text (row, "absent", buf, sizeof (buf));
    assert_string_equal (buf, "");
    ctl_cell_text (row, "n", buf, sizeof (buf));
    assert_string_equal (buf, "");
    ctl_cell_int (row, "n", buf, sizeof (buf));
    assert_string_equal (buf, "5");
    setlocale (LC_ALL, "C");
    ctl_cell_jobid (row, buf, sizeof (buf));
    assert_string_equal (buf, "f2x7");
    /* a clock that is ahead */
    ctl_cell_age (row, "since", buf, sizeof (buf));
    assert_string_equal (buf, "0s");
    ctl_cell_time (row, "absent", buf, sizeof (buf));
    assert_string_equal (buf, "");
    json_decref (row);
}

static void reason_cell (const json_t *row, char *buf, size_t size)
{
    ctl_cell_text (row, "reason", buf, size);
}

/* What ctl_render writes for a table of one cell. */
static const char *table_of (json_t *text)
{
    static const struct ctl_column columns[] = {
        { .name = "REASON", .wrap = true, .cell = reason_cell },
        { .name = NULL },
    };
    static char out[1024];
    struct ctl ctl = { .args.no_header = true };
    json_t *rows = json_pack ("[{s:o}]", "reason", text);
    FILE *f = tmpfile ();
    int saved = dup (1);
    size_t n;

    assert_non_null (f);
    assert_non_null (rows);
    fflush (stdout);
    assert_true (dup2 (fileno (f), 1) == 1);
    n = ctl_render (&ctl, columns, rows) == CTL_DONE ? 1 : 0;
    dup2 (saved, 1);
    close (saved);
    assert_true (n);
    rewind (f);
    n = fread (out, 1, sizeof (out) - 1, f);
    fclose (f);
    out[n] = '\0';
    json_decref (rows);
    return out;
}

static void foreign_text_is_escaped_once_in_a_table (void **state)
{
    static const struct {
        const char *in;
        const char *utf8;
        const char *ascii;
    } texts[] = {
        { "plain", "plain\n", "plain\n" },
        { "\033[2J \177", "\\x1b[2J \\x7f\n", "\\x1b[2J \\x7f\n" },
        { "C:\\tmp \\x1b", "C:\\\\tmp \\\\x1b\n", "C:\\\\tmp \\\\x1b\n" },
        { "C1 \xc2\x9b", "C1 \\xc2\\x9b\n", "C1 \\xc2\\x9b\n" },
        { "bidi \xe2\x80\xae",
          "bidi \\xe2\\x80\\xae\n",
          "bidi \\xe2\\x80\\xae\n" },
        { "bad \xff\xc3", "bad \\xff\\xc3\n", "bad \\xff\\xc3\n" },
        { "\xc3\x80", "\xc3\x80\n", "\\xc3\\x80\n" },
        { "a\nb\tc", "a\\x0ab\\x09c\n", "a\\x0ab\\x09c\n" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof (texts) / sizeof (texts[0]); i++) {
        const char *in = texts[i].in;

        assert_non_null (setlocale (LC_ALL, "C.UTF-8"));
        assert_string_equal (table_of (json_stringn_nocheck (in, strlen (in))),
                             texts[i].utf8);
        assert_non_null (setlocale (LC_ALL, "C"));
        assert_string_equal (table_of (json_stringn_nocheck (in, strlen (in))),
                             texts[i].ascii);
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (options_reach_the_arguments),
        cmocka_unit_test (what_is_wrong_is_a_matter_of_usage),
        cmocka_unit_test (options_may_stand_before_the_command),
        cmocka_unit_test (commands_that_say_too_little_are_not_run),
        cmocka_unit_test (the_manual_page_names_commands_and_options),
        cmocka_unit_test (a_cell_is_safe_on_a_terminal),
        cmocka_unit_test (foreign_text_is_escaped_once_in_a_table),
    };

    return cmocka_run_group_tests_name ("hkctl", tests, NULL, NULL);
}

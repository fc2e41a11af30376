/* test_conf_manual.c - the example and the manual page against the options */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/cases.h"
#include "tests/unit/conf_cases.h"
#include "tests/unit/folder.h"

static void the_example_is_what_is_installed (void **state)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream (&text, &size);
    char *installed = case_read ("systemd/hk.conf", NULL);

    (void)state;
    hk_conf_example (f);
    fclose (f);
    assert_string_equal (text, installed);
    free (text);
    free (installed);
}

/* As it is, and with each option's mark taken away. */
static void the_example_gives_the_defaults (void **state)
{
    char *text = case_read ("systemd/hk.conf", NULL);

    (void)state;
    conf_assert_changes ("systemd/hk.conf", "", "");
    for (char *p = text; (p = strstr (p, "\n#")) != NULL; p++) {
        if (p[2] != ' ' && p[2] != '\n')
            p[1] = ' ';
    }
    folder_write (test_folder, "example.conf", text);
    conf_assert_changes (folder_at ("example.conf"), "", "");
    free (text);
}

/* As scdoc wants it: underlined, with its mark for bold escaped. */
static void put_preset (char *buf, size_t size, const char *preset)
{
    if (preset[0] == '\0')
        snprintf (buf, size, "(empty)");
    else
        snprintf (buf, size, "_%s%s_", preset[0] == '*' ? "\\" : "", preset);
}

/* hk.conf(5) has a "*NAME* = _DEFAULT_" for each, under "## [SECTION]". */
static void assert_in_manual (const char *page,
                              const struct hk_conf_option *option)
{
    char section[64];
    char preset[128];
    char entry[256];
    const char *start;
    const char *end;
    const char *found;

    snprintf (section, sizeof (section), "## [%s]\n", option->section);
    start = strstr (page, section);
    if (!start) {
        fail_msg ("the manual lacks %s", section);
        return;
    }
    end = strstr (start + 1, "\n## ");
    put_preset (preset, sizeof (preset), option->preset);
    snprintf (entry, sizeof (entry), "\n*%s* = %s\n", option->name, preset);
    found = strstr (start, entry);
    if (!found || (end && found > end))
        fail_msg ("%s of the manual lacks %s", section, entry);
}

static void the_manual_has_each_option_and_its_default (void **state)
{
    char *page = case_read ("proto/hk.conf.5.scd", NULL);
    const struct hk_conf_option *options;
    int count = hk_conf_options (&options);

    (void)state;
    for (int i = 0; i < count; i++)
        assert_in_manual (page, &options[i]);
    free (page);
}

/* and none that the table has not */
static void the_manual_has_no_other_option (void **state)
{
    char *page = case_read ("proto/hk.conf.5.scd", NULL);
    const struct hk_conf_option *options;
    int count = hk_conf_options (&options);
    int entries = 0;

    (void)state;
    for (char *p = page; (p = strstr (p, "\n*")) != NULL; p++) {
        size_t len = strcspn (p + 2, "*");

        if (!strncmp (p + 2 + len, "* = ", 4))
            entries++;
    }
    assert_int_equal (entries, count);
    free (page);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (the_example_is_what_is_installed),
        cmocka_unit_test (the_example_gives_the_defaults),
        cmocka_unit_test (the_manual_has_each_option_and_its_default),
        cmocka_unit_test (the_manual_has_no_other_option),
    };

    return cmocka_run_group_tests_name (
        "conf-manual", tests, folder_set_up, folder_tear_down);
}

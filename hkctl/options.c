/* options.c - command lines, by the tables of options */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "hkctl/hkctl.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/duration.h"
#include "proto/hostlist.h"
#include "proto/jobid.h"

enum { OPTIONS_MAX = 32, TIMEOUT_MS = 10000 };

#define COMMON(n, c, k, field, v, h)                                           \
    {                                                                          \
        .name = (n), .letter = (c), .kind = CTL_##k,                           \
        .offset = offsetof (struct ctl_args, field), .value = (v), .help = (h) \
    }

const struct ctl_option ctl_common_options[] = {
    COMMON ("json", '\0', FLAG, json, NULL, "JSON with all that is known"),
    COMMON ("timeout",
            '\0',
            DURATION,
            timeout_ms,
            "DURATION",
            "how long to wait for an answer; 10s"),
    COMMON (
        "config", '\0', TEXT, config, "FILE", "instead of /etc/flux/hk.conf"),
    COMMON ("help", 'h', FLAG, help, NULL, "this text"),
    { .name = NULL },
};

static int bad_value (const struct ctl_option *option, const char *text)
{
    fprintf (stderr, "hkctl: --%s: %s\n", option->name, text);
    return CTL_USAGE;
}

static int set_number (const struct ctl_option *option,
                       const char *value,
                       void *slot)
{
    char *end;

    errno = 0;
    if (option->kind == CTL_TIME) {
        double t = strtod (value, &end);

        if (errno || end == value || *end || !isfinite (t) || t < 0)
            return bad_value (option, "expected seconds since the epoch");
        *(double *)slot = t;
    } else {
        long long n = strtoll (value, &end, 10);

        if (errno || end == value || *end || n < 0 || n > INT32_MAX)
            return bad_value (option, "expected a number");
        *(int64_t *)slot = n;
    }
    return CTL_DONE;
}

static int set_user (const struct ctl_option *option,
                     const char *value,
                     struct ctl_args *args)
{
    const struct passwd *pw = getpwnam (value);
    char *end;
    unsigned long long n;

    if (pw) {
        args->userid = pw->pw_uid;
    } else {
        errno = 0;
        n = strtoull (value, &end, 10);
        if (errno || end == value || *end || *value == '-' || n >= UINT32_MAX)
            return bad_value (option, "no such user");
        args->userid = (uint32_t)n;
    }
    args->has_userid = true;
    return CTL_DONE;
}

static int set_signal (const struct ctl_option *option,
                       const char *value,
                       int *slot)
{
    const char *name = strncmp (value, "SIG", 3) == 0 ? value + 3 : value;
    char *end;
    long n = strtol (value, &end, 10);

    if (end != value && !*end && n > 0 && n < NSIG) {
        *slot = (int)n;
        return CTL_DONE;
    }
    for (int i = 1; i < NSIG; i++)
        if (sigabbrev_np (i) && strcmp (sigabbrev_np (i), name) == 0) {
            *slot = i;
            return CTL_DONE;
        }
    return bad_value (option, "no such signal");
}

static int set_jobid (const struct ctl_option *option,
                      const char *value,
                      struct ctl_args *args)
{
    struct hk_error err;

    if (hk_jobid_decode (value, &args->jobid, &err) < 0)
        return bad_value (option, err.text);
    args->has_jobid = true;
    return CTL_DONE;
}

static int set_option (const struct ctl_option *option,
                       const char *value,
                       struct ctl_args *args)
{
    void *slot = (char *)args + option->offset;
    struct hk_error err;

    switch (option->kind) {
    case CTL_FLAG:
        *(bool *)slot = true;
        return CTL_DONE;
    case CTL_TEXT:
        *(const char **)slot = value;
        return CTL_DONE;
    case CTL_NUMBER:
    case CTL_TIME:
        return set_number (option, value, slot);
    case CTL_DURATION:
        if (hk_duration_decode (value, slot, &err) < 0)
            return bad_value (option, err.text);
        return CTL_DONE;
    case CTL_JOBID:
        return set_jobid (option, value, args);
    case CTL_HOSTS:
        hk_hostlist_destroy (args->hosts);
        args->hosts = hk_hostlist_decode (value, &err);
        return args->hosts ? CTL_DONE : bad_value (option, err.text);
    case CTL_USER:
        return set_user (option, value, args);
    case CTL_SIGNAL:
        return set_signal (option, value, slot);
    }
    return CTL_USAGE;
}

/* Both tables in one, and in the form that getopt_long wants. */
struct forms {
    const struct ctl_option *options[OPTIONS_MAX];
    struct option longs[OPTIONS_MAX + 1];
    char shorts[3 * OPTIONS_MAX];
    int count;
};

static void add_options (struct forms *forms, const struct ctl_option *options)
{
    size_t len = strlen (forms->shorts);

    for (; options->name && forms->count < OPTIONS_MAX; options++) {
        forms->longs[forms->count] = (struct option){
            .name = options->name,
            .has_arg = options->value ? required_argument : no_argument,
        };
        forms->options[forms->count++] = options;
        if (!options->letter)
            continue;
        forms->shorts[len++] = options->letter;
        if (options->value)
            forms->shorts[len++] = ':';
    }
}

static const struct ctl_option *by_letter (const struct forms *forms, int c)
{
    for (int i = 0; i < forms->count; i++)
        if (forms->options[i]->letter == c)
            return forms->options[i];
    return NULL;
}

static int take_argument (const struct ctl_command *command,
                          int count,
                          char **argv,
                          struct ctl_args *args)
{
    static const struct ctl_option jobid = { .name = "jobid" };

    if (args->help)
        return CTL_DONE;
    if (count > 0 && command->takes_jobid
        && set_jobid (&jobid, argv[0], args) != CTL_DONE)
        return CTL_USAGE;
    if (count == (command->takes_jobid ? 1 : 0))
        return CTL_DONE;
    fprintf (stderr, "usage: hkctl %s %s\n", command->name, command->usage);
    return CTL_USAGE;
}

/* Where the options in front end, as those of this command (NULL: those of all
 * commands); 0 if one of them is wrong.
 */
static int options_end (const struct ctl_command *command,
                        int argc,
                        char **argv)
{
    struct forms forms = { .shorts = "+" }; /* of glibc: in order */
    int c;

    if (command)
        add_options (&forms, command->options);
    add_options (&forms, ctl_common_options);
    optind = 0;
    opterr = 0;
    while ((c = getopt_long (argc, argv, forms.shorts, forms.longs, NULL)) >= 0)
        if (c == '?')
            return 0;
    return optind;
}

int ctl_command_at (int argc, char **argv)
{
    int wrong = 0;
    int end;

    /* the value of an option may be a command's name too: a word is the
     * command if the options before it, as those of this command, end there */
    for (int i = 1; i < argc; i++) {
        const struct ctl_command *command = ctl_command_find (argv[i]);

        if (!command)
            continue;
        if ((end = options_end (command, argc, argv)) == i)
            return i;
        if (end == 0 && !wrong)
            wrong = i; /* ctl_parse will say what */
    }
    end = wrong ? wrong : options_end (NULL, argc, argv);
    return end < argc ? end : 0;
}

int ctl_parse (const struct ctl_command *command,
               int argc,
               char **argv,
               struct ctl_args *args)
{
    struct forms forms = { .count = 0 };
    int status = CTL_DONE;
    int index;
    int c;

    memset (args, 0, sizeof (*args));
    args->timeout_ms = TIMEOUT_MS;
    add_options (&forms, command->options);
    add_options (&forms, ctl_common_options);
    optind = 0; /* of glibc: begin anew */
    opterr = 0;
    while (status == CTL_DONE
           && (c = getopt_long (argc, argv, forms.shorts, forms.longs, &index))
                  >= 0) {
        const struct ctl_option *option = c == 0 ? forms.options[index]
                                                 : by_letter (&forms, c);

        if (c == '?' || !option) {
            fprintf (stderr,
                     "hkctl: %s: unknown, or its value is missing\n"
                     "usage: hkctl %s %s\n",
                     argv[optind - 1],
                     command->name,
                     command->usage);
            return CTL_USAGE;
        }
        status = set_option (option, optarg, args);
    }
    if (status == CTL_DONE)
        status = take_argument (command, argc - optind, argv + optind, args);
    return status;
}

void ctl_args_fini (struct ctl_args *args)
{
    hk_hostlist_destroy (args->hosts);
    args->hosts = NULL;
}

static void help_options (const struct ctl_option *options)
{
    for (; options->name; options++) {
        char left[64];

        snprintf (left,
                  sizeof (left),
                  "%c%c%c --%s%s%s",
                  options->letter ? '-' : ' ',
                  options->letter ? options->letter : ' ',
                  options->letter ? ',' : ' ',
                  options->name,
                  options->value ? "=" : "",
                  options->value ? options->value : "");
        printf ("  %-26s %s\n", left, options->help);
    }
}

void ctl_help (const struct ctl_command *command)
{
    printf ("usage: hkctl %s %s\n%s\n\n",
            command->name,
            command->usage,
            command->help);
    help_options (command->options);
    help_options (ctl_common_options);
}

void ctl_help_all (void)
{
    const struct ctl_command *command;

    printf ("usage: hkctl [OPTIONS] COMMAND [OPTIONS]\n\n");
    for (size_t i = 0; (command = ctl_command_nth (i)); i++)
        printf ("  %-10s %s\n", command->name, command->help);
    printf ("\nOptions of every command:\n");
    help_options (ctl_common_options);
    printf ("\nhkctl COMMAND -h shows those of one.\n"
            "HOSTS are host lists: node[1-4,7].\n"
            "Exit status: 0 done, 1 the answer is no, 2 usage,"
            " 3 cannot reach or not allowed.\n");
}

/* commands.c - the table of commands, and how one of them is run */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "hkctl/hkctl.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>
#include "proto/log.h"

#define OPTION(n, c, k, field, v, h)                                           \
    {                                                                          \
        .name = (n), .letter = (c), .kind = CTL_##k,                           \
        .offset = offsetof (struct ctl_args, field), .value = (v), .help = (h) \
    }
/* clang-format off */
#define END { .name = NULL }
/* clang-format on */
#define JOBID_OPTION \
    OPTION ("jobid", 'j', JOBID, jobid, "JOBID", "only of this job")
#define HOSTS_OPTION \
    OPTION ("hosts", 't', HOSTS, hosts, "HOSTS", "only on these hosts")
#define HEADER_OPTION \
    OPTION ("no-header", 'n', FLAG, no_header, NULL, "no line of headings")
#define REASON_OPTION \
    OPTION ("reason", 'r', TEXT, reason, "TEXT", "why, for the records")

static const struct ctl_option rows_options[] = {
    JOBID_OPTION,
    HOSTS_OPTION,
    HEADER_OPTION,
    END,
};

static const struct ctl_option history_options[] = {
    JOBID_OPTION,
    HOSTS_OPTION,
    HEADER_OPTION,
    OPTION ("limit", 'l', NUMBER, limit, "N", "how many, newest first; 100"),
    END,
};

static const struct ctl_option job_end_options[] = {
    OPTION ("jobid", 'j', JOBID, jobid, "JOBID", "the job"),
    OPTION ("userid", 'u', USER, userid, "USER", "its user, name or number"),
    OPTION ("hosts", 't', HOSTS, hosts, "HOSTS", "where it ran"),
    OPTION ("ranks",
            '\0',
            TEXT,
            ranks,
            "RANKS",
            "ranks of these hosts in their order; from 0 upwards"),
    OPTION ("R", 'R', TEXT, resource_file, "FILE", "R of the job; - is stdin"),
    OPTION ("queue", 'q', TEXT, queue, "NAME", "its queue"),
    OPTION ("priority", '\0', NUMBER, priority, "N", "its priority"),
    OPTION ("t-submit", '\0', TIME, t_submit, "SECONDS", "when submitted"),
    OPTION ("t-end", '\0', TIME, t_end, "SECONDS", "when it ended; now"),
    END,
};

static const struct ctl_option follow_options[] = {
    OPTION ("manager",
            'm',
            FLAG,
            manager,
            NULL,
            "be the job manager: each line is confirmed once written"),
    OPTION ("hello", '\0', FLAG, hello, NULL, "as a scheduler that starts"),
    OPTION ("partial-ok",
            '\0',
            FLAG,
            partial_ok,
            NULL,
            "what is held may be told in part"),
    OPTION ("life",
            '\0',
            TEXT,
            life,
            "NAME",
            "the scheduler's; hkctl, or with --hello a new one"),
    OPTION ("active", '\0', TEXT, active, "RANKS", "ranks of active jobs"),
    OPTION ("jobs", '\0', TEXT, jobs, "JOBIDS", "active jobs, with commas"),
    OPTION ("allocated",
            '\0',
            TEXT,
            allocated_file,
            "FILE",
            "R that the scheduler counts as allocated"),
    OPTION ("take-over",
            '\0',
            FLAG,
            take_over,
            NULL,
            "end another manager's session"),
    END,
};

static const struct ctl_option kill_options[] = {
    JOBID_OPTION,
    HOSTS_OPTION,
    OPTION ("all", 'a', FLAG, all, NULL, "all that runs"),
    OPTION ("signal", 's', SIGNAL, signal, "SIGNAL", "name or number; TERM"),
    REASON_OPTION,
    END,
};

static const struct ctl_option recover_options[] = { REASON_OPTION, END };

static const struct ctl_option log_options[] = {
    HOSTS_OPTION,
    OPTION ("lines", 'n', NUMBER, lines, "N", "the last N lines"),
    OPTION ("follow", 'f', FLAG, follow, NULL, "go on as lines come"),
    END,
};

static const struct ctl_option config_options[] = {
    OPTION ("example", '\0', FLAG, example, NULL, "a file to begin with"),
    END,
};

static const struct ctl_option no_options[] = { END };

static const struct ctl_command commands[] = {
    {
        .name = "list",
        .usage = "[-j JOBID] [-t HOSTS] [-n]",
        .help = "what is held: job, phase, script, since when, where",
        .options = rows_options,
        .run = ctl_list,
    },
    {
        .name = "nodes",
        .usage = "[-j JOBID] [-t HOSTS] [-n]",
        .help = "each node: contact, run, drain",
        .options = rows_options,
        .run = ctl_nodes,
    },
    {
        .name = "history",
        .usage = "[-j JOBID] [-t HOSTS] [-l N] [-n]",
        .help = "runs that ended, newest first",
        .options = history_options,
        .run = ctl_history,
    },
    {
        .name = "log",
        .usage = "JOBID [-t HOSTS] [-n N] [-f]",
        .help = "what the scripts wrote, from the journals of the nodes",
        .options = log_options,
        .takes_jobid = true,
        .run = ctl_log,
    },
    {
        .name = "kill",
        .usage = "-j JOBID | -t HOSTS | --all [-s SIGNAL] [-r TEXT]",
        .help = "end runs; they count as killed",
        .options = kill_options,
        .run = ctl_kill,
    },
    {
        .name = "job-end",
        .usage = "-j JOBID -u USER (-t HOSTS | -R FILE)",
        .help = "a job ended: housekeeping begins on its nodes",
        .options = job_end_options,
        .run = ctl_job_end,
    },
    {
        .name = "follow",
        .usage = "[--manager [--hello [--partial-ok]]]",
        .help = "frees and drains as they come, a line of JSON each",
        .options = follow_options,
        .run = ctl_follow,
    },
    {
        .name = "ping",
        .usage = "",
        .help = "is the coordinator there and well",
        .options = no_options,
        .run = ctl_ping,
    },
    {
        .name = "recover",
        .usage = "[-r TEXT]",
        .help = "go on with a store that was restored from a backup",
        .options = recover_options,
        .run = ctl_recover,
    },
    {
        .name = "config",
        .usage = "[--example]",
        .help = "the options in effect here",
        .options = config_options,
        .is_local = true,
        .run = ctl_config,
    },
};

const struct ctl_command *ctl_command_nth (size_t n)
{
    return n < sizeof (commands) / sizeof (commands[0]) ? &commands[n] : NULL;
}

const struct ctl_command *ctl_command_find (const char *name)
{
    const struct ctl_command *command;

    for (size_t i = 0; (command = ctl_command_nth (i)); i++)
        if (strcmp (command->name, name) == 0)
            return command;
    return NULL;
}

static int run (const struct ctl_command *command, struct ctl *ctl)
{
    const char *path = ctl->args.config ? ctl->args.config : hk_conf_path;
    struct hk_error err;
    int status;

    ctl->conf = hk_conf_load (path, 0, &err);
    if (!ctl->conf) {
        fprintf (stderr, "hkctl: %s\n", err.text);
        return command->is_local ? CTL_NO : CTL_NO_WAY;
    }
    status = command->run (ctl);
    ctl_disconnect (ctl);
    hk_conf_destroy (ctl->conf);
    return status;
}

/* What is said without a command; -1: a command is needed. */
static int without_command (int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp (argv[i], "-h") == 0 || strcmp (argv[i], "--help") == 0
            || (i == 1 && strcmp (argv[i], "help") == 0)) {
            ctl_help_all ();
            return ctl_flush ();
        } else if (strcmp (argv[i], "--version") == 0) {
            printf ("hkctl %s\n", HK_VERSION);
            return ctl_flush ();
        }
    return -1;
}

int ctl_main (int argc, char **argv)
{
    const struct ctl_command *command;
    struct ctl ctl = { .client = NULL };
    int at = ctl_command_at (argc, argv);
    int status;

    /* widths of characters; numbers stay as JSON wants them */
    setlocale (LC_CTYPE, "");
    hk_log_init ("hkctl", LOG_ERR, NULL, NULL);
    command = at ? ctl_command_find (argv[at]) : NULL;
    if (!command) {
        status = without_command (argc, argv);
        if (status >= 0)
            return status;
        fprintf (stderr,
                 at ? "hkctl: no command %s; hkctl -h shows them\n"
                    : "hkctl: a command is missing%s; hkctl -h shows them\n",
                 at ? argv[at] : "");
        return CTL_USAGE;
    }
    for (; at > 1; at--) { /* options before it are as those after it */
        char *name = argv[at];

        argv[at] = argv[at - 1];
        argv[at - 1] = name;
    }
    status = ctl_parse (command, argc - 1, argv + 1, &ctl.args);
    if (status == CTL_DONE && ctl.args.help) {
        ctl_help (command);
        status = ctl_flush ();
    } else if (status == CTL_DONE) {
        status = run (command, &ctl);
    }
    ctl_args_fini (&ctl.args);
    return status;
}

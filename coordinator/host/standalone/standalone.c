/* standalone.c - the coordinator as a daemon of its own */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <czmq.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <poll.h>
#include <syslog.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>
#include "proto/clock.h"
#include "proto/log.h"
#include "coordinator/engine/engine.h"
#include "coordinator/host/standalone/manager.h"
#include "coordinator/host/standalone/standalone.h"

struct options {
    const char *conf;
    int level;
};

static void usage (FILE *f)
{
    fputs ("usage: hk-coordinator [-c FILE] [-v] [-V] [-h]\n"
           "  -c, --config FILE  read FILE and FILE.d/*.conf "
           "(/etc/flux/hk.conf)\n"
           "  -v, --verbose      log more\n"
           "  -V, --version      print the version\n"
           "  -h, --help         print this\n",
           f);
}

/* -1: go on; else the exit status. */
static int parse (int argc, char **argv, struct options *opt)
{
    static const struct option longs[] = {
        { "config", required_argument, NULL, 'c' },
        { "verbose", no_argument, NULL, 'v' },
        { "version", no_argument, NULL, 'V' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 },
    };
    int c;

    while ((c = getopt_long (argc, argv, "c:vVh", longs, NULL)) >= 0) {
        switch (c) {
        case 'c':
            opt->conf = optarg;
            break;
        case 'v':
            opt->level = LOG_DEBUG;
            break;
        case 'V':
            puts ("hk-coordinator " HK_VERSION);
            return 0;
        case 'h':
            usage (stdout);
            return 0;
        default:
            usage (stderr);
            return 2;
        }
    }
    if (optind < argc) {
        fprintf (
            stderr, "hk-coordinator: unexpected argument %s\n", argv[optind]);
        return 2;
    }
    return -1;
}

static void reload (struct hkc_engine *engine, const struct options *opt)
{
    struct hk_error err;
    struct hk_conf *conf;

    sd_notifyf (
        0, "RELOADING=1\nMONOTONIC_USEC=%lld", (long long)hk_monotonic_us ());
    if ((conf = hk_conf_load (opt->conf, HK_CONF_TRUST, &err)))
        hkc_engine_reload (engine, conf);
    else
        hk_log (LOG_ERR, "reload: %s; the old configuration stays", err.text);
    sd_notify (0, "READY=1");
}

/* The watchdog is fed only while the engine's loop turns. */
static int serve (struct hkc_engine *engine, int sfd, const struct options *opt)
{
    struct pollfd pfd = { .fd = sfd, .events = POLLIN };
    uint64_t usec = 0, turns = 0;
    struct signalfd_siginfo info;

    if (sd_watchdog_enabled (0, &usec) <= 0)
        usec = 0;
    sd_notify (0, "READY=1");
    while (!hkc_engine_failed (engine)) {
        uint64_t now = hkc_engine_turns (engine);
        int wait = usec && usec / 3000 < 1000 ? (int)(usec / 3000) : 1000;
        if (now != turns)
            sd_notify (0, "WATCHDOG=1");
        turns = now;
        if (poll (&pfd, 1, wait) <= 0)
            continue;
        if (read (sfd, &info, sizeof (info)) != sizeof (info))
            continue;
        if (info.ssi_signo == SIGHUP)
            reload (engine, opt);
        else {
            sd_notify (0, "STOPPING=1");
            return 0;
        }
    }
    return 1;
}

static int run (const struct options *opt)
{
    struct hkc_manager *manager = NULL;
    struct hkc_engine *engine = NULL;
    struct hkc_host_ops ops;
    struct hk_conf *conf;
    struct hk_error err;
    sigset_t mask;
    int sfd = -1, rc = 1;

    if (!(conf = hk_conf_load (opt->conf, HK_CONF_TRUST, &err))) {
        hk_log (LOG_ERR, "%s", err.text);
        return 1;
    }
    sigemptyset (&mask);
    sigaddset (&mask, SIGTERM);
    sigaddset (&mask, SIGINT);
    sigaddset (&mask, SIGHUP);
    sigprocmask (SIG_BLOCK, &mask, NULL);
    signal (SIGPIPE, SIG_IGN);
    zsys_handler_set (NULL); /* czmq's signal handling is off */
    if ((sfd = signalfd (-1, &mask, SFD_CLOEXEC)) < 0
        || !(manager = hkc_manager_create ())) {
        hk_log (LOG_ERR, "%s", strerror (errno));
        goto out;
    }
    hkc_manager_ops (manager, &ops);
    if (!(engine = hkc_engine_create (conf, &ops, &err))) {
        hk_log (LOG_CRIT, "%s", err.text);
        goto out;
    }
    conf = NULL;
    hkc_manager_engine (manager, engine);
    if (hkc_engine_start (engine, &err) < 0) {
        hk_log (LOG_CRIT, "%s", err.text);
        goto out;
    }
    rc = serve (engine, sfd, opt);
out:
    hkc_engine_destroy (engine);
    hkc_manager_destroy (manager);
    hk_conf_destroy (conf);
    if (sfd >= 0)
        close (sfd);
    return rc;
}

int hkc_standalone_main (int argc, char **argv)
{
    struct options opt = { .conf = hk_conf_path, .level = LOG_INFO };
    int rc = parse (argc, argv, &opt);

    if (rc >= 0)
        return rc;
    hk_log_init ("hk-coordinator", opt.level, NULL, NULL);
    return run (&opt);
}

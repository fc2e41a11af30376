/* main.c - hkd, the node daemon */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <getopt.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include "proto/conf.h"
#include "proto/log.h"
#include "hkd/node.h"

static const char usage[] =
    "usage: hkd [-c FILE] [-v] [-V] [-h]\n"
    "  -c, --config FILE  instead of /etc/flux/hk.conf\n"
    "  -v, --verbose      log more\n"
    "  -V, --version      say the version and exit\n"
    "  -h, --help         say this and exit\n";

static const struct option options[] = {
    { "config", required_argument, NULL, 'c' },
    { "verbose", no_argument, NULL, 'v' },
    { "version", no_argument, NULL, 'V' },
    { "help", no_argument, NULL, 'h' },
    { NULL, 0, NULL, 0 },
};

int main (int argc, char **argv)
{
    const char *conf = hk_conf_path;
    struct hkd_node *node;
    struct hk_error err;
    int c, level = LOG_INFO, rc = EXIT_FAILURE;

    while ((c = getopt_long (argc, argv, "c:vVh", options, NULL)) >= 0) {
        if (c == 'c')
            conf = optarg;
        else if (c == 'v')
            level = LOG_DEBUG;
        else if (c == 'V')
            return puts ("hkd " HK_VERSION) < 0;
        else {
            fputs (usage, c == 'h' ? stdout : stderr);
            return c == 'h' ? EXIT_SUCCESS : EXIT_FAILURE;
        }
    }
    if (optind < argc) {
        fputs (usage, stderr);
        return EXIT_FAILURE;
    }
    mallopt (M_ARENA_MAX, 1); /* small rather than quick in many threads */
    hk_log_init ("hkd", level, NULL, NULL);
    node = hkd_node_create (conf, &err);
    if (node && hkd_node_run (node, &err) == 0)
        rc = EXIT_SUCCESS;
    else
        hk_log (LOG_CRIT, "%s", err.text);
    hkd_node_destroy (node);
    return rc;
}

/* host.c - who this node is: names and boot */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-id128.h>
#include <unistd.h>
#include "proto/hostlist.h"
#include "hkd/host.h"

enum { LINE_BYTES = 4096 };

/* "ADDRESS NAME NAME..": is `name` there, or NAME.SOMETHING? */
static bool line_names (char *line,
                        const char *name,
                        char full[HK_HOST_NAME_BYTES])
{
    size_t n = strlen (name);
    bool named = false;
    char *word, *save;

    full[0] = '\0';
    line[strcspn (line, "#\n")] = '\0';
    if (!strtok_r (line, " \t", &save))
        return false;
    while ((word = strtok_r (NULL, " \t", &save))) {
        named |= !strcmp (word, name);
        if (!strncmp (word, name, n) && word[n] == '.' && !full[0]
            && hk_host_name_valid (word))
            snprintf (full, HK_HOST_NAME_BYTES, "%s", word);
    }
    return named && full[0];
}

int hkd_host_full_name (const char *path,
                        const char *name,
                        char full[HK_HOST_NAME_BYTES])
{
    char line[LINE_BYTES];
    FILE *f = fopen (path, "re");
    bool found = false;

    while (f && !found && fgets (line, sizeof (line), f))
        found = line_names (line, name, full);
    if (f)
        fclose (f);
    return found ? 0 : -1;
}

static int read_name (const struct hk_conf *conf,
                      struct hkd_host *host,
                      struct hk_error *err)
{
    char name[HK_HOST_NAME_BYTES];

    if (conf->host) {
        snprintf (host->name, sizeof (host->name), "%s", conf->host);
        return 0;
    }
    if (gethostname (name, sizeof (name)) < 0)
        return hk_error_errno (err, errno, "host name");
    name[sizeof (name) - 1] = '\0';
    if (!hk_host_name_valid (name))
        return hk_error_set (err, EINVAL, "host name '%s' is none", name);
    if (strchr (name, '.')
        || hkd_host_full_name ("/etc/hosts", name, host->name) < 0)
        snprintf (host->name, sizeof (host->name), "%s", name);
    return 0;
}

int hkd_host_read (const struct hk_conf *conf,
                   struct hkd_host *host,
                   struct hk_error *err)
{
    char text[64];
    FILE *f;
    sd_id128_t id;

    if (read_name (conf, host, err) < 0)
        return -1;
    hk_host_name_short (host->name, host->short_name);
    /* not by sd_id128_get_boot: this is where tests put another one */
    if (!(f = fopen ("/proc/sys/kernel/random/boot_id", "re"))
        || !fgets (text, sizeof (text), f)) {
        hk_error_errno (err, errno ? errno : EIO, "boot id");
        if (f)
            fclose (f);
        return -1;
    }
    fclose (f);
    text[strcspn (text, "\n")] = '\0';
    if (sd_id128_from_string (text, &id) < 0)
        return hk_error_set (err, EINVAL, "boot id '%s' is none", text);
    sd_id128_to_string (id, host->boot_id);
    return 0;
}

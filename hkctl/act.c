/* act.c - kill and recover: what changes something, kept with who and why */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "hkctl/hkctl.h"

#include <stdio.h>
#include <stdlib.h>
#include "proto/escape.h"

/* What happened on each host, as the coordinator says it. */
static int show_result (const struct ctl *ctl, const struct ctl_answer *answer)
{
    const char *host;
    json_t *what;
    char name[512];
    char text[1024];

    if (ctl->args.json) {
        json_t *all = json_pack (
            "{s:O*,s:s}", "hosts", answer->result, "text", answer->text);
        int rc = all ? ctl_print_json (all) : -1;

        json_decref (all);
        return rc < 0 ? CTL_NO : CTL_DONE;
    }
    json_object_foreach (answer->result, host, what)
    {
        const char *said = json_string_value (what);

        printf ("%s: %s\n",
                hk_escape (host, SIZE_MAX, name, sizeof (name)),
                hk_escape (said ? said : "", SIZE_MAX, text, sizeof (text)));
    }
    if (answer->text[0])
        printf ("%s\n",
                hk_escape (answer->text, SIZE_MAX, text, sizeof (text)));
    return ctl_flush ();
}

int ctl_kill (struct ctl *ctl)
{
    struct hk_msg msg = { .type = HK_MSG_KILL };
    struct ctl_answer answer = { .arg = NULL };
    char *hosts;
    int status;

    if (!ctl->args.has_jobid && !ctl->args.hosts && !ctl->args.all) {
        fprintf (stderr, "hkctl: kill: which? -j JOBID, -t HOSTS or --all\n");
        return CTL_USAGE;
    }
    if (ctl->args.all && (ctl->args.has_jobid || ctl->args.hosts)) {
        fprintf (stderr, "hkctl: kill: --all goes with neither -j nor -t\n");
        return CTL_USAGE;
    }
    status = ctl_connect (ctl, "owner");
    if (status != CTL_DONE)
        return status;
    hosts = ctl_hosts_text (ctl);
    msg.query.jobid = ctl->args.jobid;
    msg.query.hosts = hosts;
    msg.query.all = ctl->args.all;
    msg.query.signal = ctl->args.signal;
    msg.query.reason = ctl->args.reason;
    status = ctl_ask (ctl, &msg, &answer);
    free (hosts);
    if (status == CTL_DONE)
        status = show_result (ctl, &answer);
    if (status == CTL_DONE && json_object_size (answer.result) == 0)
        status = CTL_NO;
    json_decref (answer.result);
    return status;
}

int ctl_recover (struct ctl *ctl)
{
    struct hk_msg msg = { .type = HK_MSG_RECOVER };
    struct ctl_answer answer = { .arg = NULL };
    int status = ctl_connect (ctl, "owner");

    if (status != CTL_DONE)
        return status;
    msg.query.reason = ctl->args.reason;
    status = ctl_ask (ctl, &msg, &answer);
    if (status == CTL_DONE)
        status = show_result (ctl, &answer);
    json_decref (answer.result);
    return status;
}

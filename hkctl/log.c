/* log.c - what the scripts wrote, from the journals of the nodes */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "hkctl/hkctl.h"

#include <stdio.h>
#include <stdlib.h>
#include "proto/escape.h"

enum { LINES = 1000, LINE_BYTES = 16384 };

static int show_line (const struct ctl *ctl, const char *host, const char *text)
{
    static char safe[LINE_BYTES];

    if (ctl->args.json) {
        json_t *line = json_pack ("{s:s s:s}", "host", host, "line", text);
        int rc = line ? ctl_print_json (line) : -1;

        json_decref (line);
        return rc < 0 ? CTL_NO : CTL_DONE;
    }
    /* the node has escaped it: that stays, and whatever it has not is '?' */
    snprintf (safe, sizeof (safe), "%s", text);
    hk_one_line (safe);
    printf ("%s: %s\n", host, safe);
    return CTL_DONE;
}

static int show_end (const struct hk_msg_log_end *end)
{
    char safe[1024];

    if (end->truncated)
        fprintf (stderr, "hkctl: %s: older lines were left out\n", end->host);
    if (end->text && *end->text)
        fprintf (stderr,
                 "hkctl: %s: %s\n",
                 end->host,
                 hk_escape (end->text, SIZE_MAX, safe, sizeof (safe)));
    return CTL_DONE;
}

static int show (void *arg, const struct hk_msg *msg)
{
    const struct ctl *ctl = arg;
    size_t i;
    json_t *line;

    if (msg->type == HK_MSG_LOG_END)
        return show_end (&msg->log_end);
    if (msg->type != HK_MSG_LOG_DATA)
        return CTL_DONE;
    json_array_foreach (msg->log_data.lines, i, line)
    {
        const char *text = json_string_value (line);

        if (text && show_line (ctl, msg->log_data.host, text) != CTL_DONE)
            return CTL_NO;
    }
    return ctl_flush ();
}

int ctl_log (struct ctl *ctl)
{
    struct hk_msg msg = { .type = HK_MSG_LOG };
    struct ctl_answer answer = { .other = show, .arg = ctl };
    char *hosts;
    int status = ctl_connect (ctl, "owner");

    if (status != CTL_DONE)
        return status;
    hosts = ctl_hosts_text (ctl);
    msg.query.jobid = ctl->args.jobid;
    msg.query.hosts = hosts;
    msg.query.lines = ctl->args.lines ? (int)ctl->args.lines : LINES;
    msg.query.follow = ctl->args.follow;
    status = ctl_ask (ctl, &msg, &answer);
    free (hosts);
    if (status == CTL_DONE && answer.text[0])
        fprintf (stderr, "hkctl: %s\n", answer.text);
    json_decref (answer.result);
    return status;
}

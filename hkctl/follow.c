/* follow.c - what the scheduler is told, a line of JSON each; only looking */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "hkctl/hkctl.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "proto/escape.h"

static int print_rows (const json_t *rows)
{
    size_t i;
    json_t *row;

    json_array_foreach (rows, i, row)
    {
        if (ctl_print_json (row) < 0) {
            fprintf (stderr, "hkctl: standard output: %s\n", strerror (errno));
            return CTL_NO;
        }
    }
    return CTL_DONE;
}

static int ask (struct ctl *ctl, uint64_t *seq)
{
    struct hk_msg msg = { .type = HK_MSG_FOLLOW };

    if (hk_link_client_send (ctl->client, &msg, seq) == 0)
        return CTL_DONE;
    fprintf (stderr, "hkctl: %s\n", strerror (errno));
    return CTL_NO_WAY;
}

/* Until it is ended from outside, or by the coordinator's no. */
int ctl_follow (struct ctl *ctl)
{
    uint64_t seq = 0;
    int status;

    if (ctl->args.manager)
        return ctl_manage (ctl);
    status = ctl_connect (ctl, "owner");
    if (status == CTL_DONE)
        status = ask (ctl, &seq);
    while (status == CTL_DONE) {
        struct hk_msg msg;
        char text[1024];
        int rc = ctl_receive (ctl, -1, &msg, &status);

        if (rc < 0)
            return status;
        if (rc == 0) {
            status = ask (ctl, &seq);
            continue;
        }
        status = CTL_DONE;
        if (msg.type == HK_MSG_DATA && msg.re == seq) {
            status = print_rows (msg.data.rows);
        } else if (msg.type == HK_MSG_ERROR && msg.re == seq) {
            fprintf (stderr,
                     "hkctl: %s\n",
                     hk_escape (msg.error.text, SIZE_MAX, text, sizeof (text)));
            status = ctl_error_status (msg.error.code);
        }
        hk_msg_fini (&msg);
    }
    return status;
}

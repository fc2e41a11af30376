/* job_end.c - a job ended: what a job manager says, said by hand */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "hkctl/hkctl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/clock.h"
#include "proto/escape.h"
#include "proto/hostlist.h"
#include "proto/limits.h"
#include "proto/rankset.h"

/* R for these hosts: RFC 20, one core each, since no one counts cores here. */
static json_t *make_resource (const struct ctl_args *args)
{
    char *hosts = hk_hostlist_encode (args->hosts);
    size_t count = hk_hostlist_count (args->hosts);
    struct hk_rankset *ranks = NULL;
    struct hk_error err = { "out of memory" };
    char *text = NULL;
    json_t *R = NULL;

    ranks = args->ranks ? hk_rankset_decode (args->ranks, &err)
                        : hk_rankset_create ();
    for (size_t i = 0; ranks && !args->ranks && i < count; i++)
        if (hk_rankset_add (ranks, (uint32_t)i) < 0)
            goto out;
    if (ranks && hk_rankset_count (ranks) != count) {
        hk_error_set (&err,
                      EINVAL,
                      "%zu hosts and %zu ranks",
                      count,
                      hk_rankset_count (ranks));
        goto out;
    }
    text = ranks ? hk_rankset_encode (ranks) : NULL;
    if (text && hosts)
        R = json_pack ("{s:i s:{s:[{s:s s:{s:s}}] s:[s] s:i s:i}}",
                       "version",
                       1,
                       "execution",
                       "R_lite",
                       "rank",
                       text,
                       "children",
                       "core",
                       "0",
                       "nodelist",
                       hosts,
                       "starttime",
                       0,
                       "expiration",
                       0);
out:
    if (!R)
        fprintf (stderr, "hkctl: job-end: %s\n", err.text);
    free (text);
    free (hosts);
    hk_rankset_destroy (ranks);
    return R;
}

static json_t *read_resource (const char *path)
{
    json_error_t error;
    FILE *f = strcmp (path, "-") == 0 ? stdin : fopen (path, "re");
    json_t *R;

    if (!f) {
        fprintf (stderr, "hkctl: %s: %s\n", path, strerror (errno));
        return NULL;
    }
    R = json_loadf (f, JSON_REJECT_DUPLICATES, &error);
    if (!R)
        fprintf (
            stderr, "hkctl: %s: line %d: %s\n", path, error.line, error.text);
    if (f != stdin)
        fclose (f);
    if (R && !json_is_object (R)) {
        fprintf (stderr, "hkctl: %s: no R\n", path);
        json_decref (R);
        return NULL;
    }
    return R;
}

static int show_recorded (void *arg, const struct hk_msg *msg)
{
    const struct ctl *ctl = arg;
    json_t *answer;
    char text[64];
    int rc;

    if (msg->type != HK_MSG_RECORDED)
        return CTL_DONE;
    if (!ctl->args.json) {
        printf ("%s\n",
                hk_escape (msg->recorded.state, SIZE_MAX, text, sizeof (text)));
        return ctl_flush ();
    }
    answer = json_pack ("{s:I s:s}",
                        "alloc",
                        (json_int_t)msg->recorded.alloc,
                        "state",
                        msg->recorded.state);
    rc = answer ? ctl_print_json (answer) : -1;
    json_decref (answer);
    return rc < 0 ? CTL_NO : CTL_DONE;
}

int ctl_job_end (struct ctl *ctl)
{
    const struct ctl_args *args = &ctl->args;
    struct hk_msg msg = { .type = HK_MSG_JOB_END };
    struct ctl_answer answer = { .other = show_recorded, .arg = ctl };
    int status;

    if (!args->has_jobid || !args->has_userid
        || !args->hosts == !args->resource_file) {
        fprintf (stderr,
                 "hkctl: job-end: expected --jobid, --userid, and either "
                 "--hosts or --R\n");
        return CTL_USAGE;
    }
    msg.job_end.jobid = args->jobid;
    msg.job_end.userid = args->userid;
    msg.job_end.priority = args->priority;
    msg.job_end.queue = args->queue;
    msg.job_end.t_submit = args->t_submit;
    msg.job_end.t_end = args->t_end > 0 ? args->t_end : hk_wall ();
    msg.job_end.R = args->hosts ? make_resource (args)
                                : read_resource (args->resource_file);
    if (!msg.job_end.R)
        return CTL_USAGE;
    status = ctl_connect (ctl, "owner");
    if (status == CTL_DONE)
        status = ctl_ask (ctl, &msg, &answer);
    /* it may be recorded all the same: with equal times it is the same end */
    if (status == CTL_NO_WAY || strcmp (answer.code, "store") == 0)
        fprintf (stderr,
                 "hkctl: job-end: to say it again, add --t-end=%.6f\n",
                 msg.job_end.t_end);
    json_decref (answer.result);
    json_decref (msg.job_end.R);
    return status;
}

/* manage.c - follow --manager: a job manager for scripts and tests */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "hkctl/hkctl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/escape.h"
#include "proto/hostlist.h"
#include "proto/identity.h"
#include "proto/jobid.h"

/* Each line is on its way to the reader before it is confirmed: what was
 * confirmed and not read comes never again, what was read and not confirmed
 * comes twice, with the same number.
 */
struct manager {
    struct ctl *ctl;
    char life[128];
    json_t *allocated; /* R or NULL: unavailable */
    json_t *jobs;      /* ids or NULL: not said */
    uint64_t last_free;
    uint64_t hello_seq;
    bool is_ready;
};

static int lost (void)
{
    fprintf (stderr, "hkctl: %s\n", strerror (errno));
    return CTL_NO_WAY;
}

/* A queue that is full for a moment is emptied by the next try after a loss of
 * the connection: what is not confirmed comes again.
 */
static int say (struct manager *m, struct hk_msg *msg, uint64_t *seq)
{
    if (hk_link_client_send (m->ctl->client, msg, seq) < 0 && errno != ENOTCONN)
        return lost ();
    return CTL_DONE;
}

static int say_hello (struct manager *m)
{
    const struct ctl_args *args = &m->ctl->args;
    struct hk_msg msg = { .type = HK_MSG_SCHED_HELLO };

    m->is_ready = false;
    msg.sched_hello.life = m->life;
    msg.sched_hello.partial_ok = args->partial_ok;
    msg.sched_hello.last_free = m->last_free;
    msg.sched_hello.active = args->active;
    msg.sched_hello.jobs = m->jobs;
    msg.sched_hello.take_over = args->take_over;
    return say (m, &msg, &m->hello_seq);
}

static int say_ready (struct manager *m)
{
    struct hk_msg msg = { .type = HK_MSG_SCHED_READY };

    m->is_ready = true;
    msg.sched_ready.life = m->life;
    msg.sched_ready.allocated = m->allocated;
    return say (m, &msg, NULL);
}

/* Takes the line. */
static int print_take (json_t *line)
{
    int rc = line ? ctl_print_json (line) : -1;

    json_decref (line);
    if (rc == 0)
        return CTL_DONE;
    fprintf (stderr, "hkctl: standard output: %s\n", strerror (errno));
    return CTL_NO;
}

static int take_alloc (const struct hk_msg_sched_alloc *a)
{
    return print_take (json_pack ("{s:s s:s s:I s:I s:I s:f s:O s:s*}",
                                  "type",
                                  "alloc",
                                  "life",
                                  a->life,
                                  "jobid",
                                  (json_int_t)a->jobid,
                                  "priority",
                                  (json_int_t)a->priority,
                                  "userid",
                                  (json_int_t)a->userid,
                                  "t_submit",
                                  a->t_submit,
                                  "R",
                                  a->R,
                                  "free",
                                  a->free));
}

static int take_alloc_end (struct manager *m,
                           const struct hk_msg_sched_alloc_end *end)
{
    int status = print_take (json_pack ("{s:s s:s s:b}",
                                        "type",
                                        "alloc-end",
                                        "life",
                                        end->life,
                                        "resumed",
                                        end->resumed));

    return status == CTL_DONE ? say_ready (m) : status;
}

static int take_free (struct manager *m, const struct hk_msg_free *f)
{
    struct hk_msg msg = { .type = HK_MSG_FREE_OK, .free_ok = { .n = f->n } };
    int status = print_take (json_pack ("{s:s s:I s:s s:I s:s s:O s:b}",
                                        "type",
                                        "free",
                                        "n",
                                        (json_int_t)f->n,
                                        "life",
                                        f->life,
                                        "jobid",
                                        (json_int_t)f->jobid,
                                        "ranks",
                                        f->ranks,
                                        "R",
                                        f->R,
                                        "final",
                                        f->final));

    if (status != CTL_DONE)
        return status;
    if (f->n > m->last_free)
        m->last_free = f->n;
    return say (m, &msg, NULL);
}

/* "ok" for each host: nothing else drains nodes where this is the manager. */
static json_t *all_ok (const char *hosts)
{
    struct hk_hostlist *list = hk_hostlist_decode (hosts, NULL);
    json_t *done = list ? json_object () : NULL;

    for (size_t i = 0; done && i < hk_hostlist_count (list); i++)
        json_object_set_new (done,
                             hk_hostlist_nth (list, i),
                             json_pack ("{s:s}", "result", "ok"));
    hk_hostlist_destroy (list);
    return done;
}

static int take_drain (struct manager *m,
                       enum hk_msg_type type,
                       const struct hk_msg_drain *d)
{
    bool is_drain = type == HK_MSG_DRAIN;
    struct hk_msg msg = {
        .type = is_drain ? HK_MSG_DRAIN_DONE : HK_MSG_UNDRAIN_DONE,
        .drain_done = { .n = d->n },
    };
    int status = print_take (json_pack ("{s:s s:I s:s s:s* s:s*}",
                                        "type",
                                        is_drain ? "drain" : "undrain",
                                        "n",
                                        (json_int_t)d->n,
                                        "hosts",
                                        d->hosts,
                                        "ranks",
                                        d->ranks,
                                        "reason",
                                        d->reason));

    if (status != CTL_DONE)
        return status;
    msg.drain_done.hosts = all_ok (d->hosts);
    if (msg.drain_done.hosts)
        status = say (m, &msg, NULL);
    json_decref (msg.drain_done.hosts);
    return status;
}

static int take_error (const struct hk_msg_error *error)
{
    char text[1024];

    fprintf (stderr,
             "hkctl: %s\n",
             hk_escape (error->text, SIZE_MAX, text, sizeof (text)));
    return strcmp (error->code, "conflict") == 0
               ? CTL_NO_WAY
               : ctl_error_status (error->code);
}

static int take (struct manager *m, const struct hk_msg *msg)
{
    switch (msg->type) {
    case HK_MSG_SCHED_ALLOC:
        return msg->re == m->hello_seq ? take_alloc (&msg->sched_alloc)
                                       : CTL_DONE;
    case HK_MSG_SCHED_ALLOC_END:
        return msg->re == m->hello_seq
                   ? take_alloc_end (m, &msg->sched_alloc_end)
                   : CTL_DONE;
    case HK_MSG_FREE:
        return take_free (m, &msg->free);
    case HK_MSG_DRAIN:
    case HK_MSG_UNDRAIN:
        return take_drain (m, msg->type, &msg->drain);
    case HK_MSG_ERROR:
        return take_error (&msg->error);
    default:
        return CTL_DONE;
    }
}

static json_t *read_allocated (const char *path)
{
    json_error_t error;
    json_t *R = json_load_file (path, JSON_REJECT_DUPLICATES, &error);

    if (R && !json_is_object (R)) {
        json_decref (R);
        R = NULL;
        snprintf (error.text, sizeof (error.text), "no R");
    }
    if (!R)
        fprintf (stderr, "hkctl: %s: %s\n", path, error.text);
    return R;
}

static json_t *read_jobs (const char *text)
{
    json_t *jobs = json_array ();
    char *copy = strdup (text);
    char *save = NULL;
    struct hk_error err = { "out of memory" };
    bool ok = jobs && copy;

    for (char *word = ok ? strtok_r (copy, ",", &save) : NULL; ok && word;
         word = strtok_r (NULL, ",", &save)) {
        uint64_t id;

        ok = hk_jobid_decode (word, &id, &err) == 0 && id <= INT64_MAX
             && json_array_append_new (jobs, json_integer ((json_int_t)id))
                    == 0;
    }
    free (copy);
    if (ok)
        return jobs;
    fprintf (stderr, "hkctl: --jobs: %s\n", err.text);
    json_decref (jobs);
    return NULL;
}

static int check_args (struct manager *m)
{
    const struct ctl_args *args = &m->ctl->args;
    char id[HK_ID_BYTES];

    if (args->partial_ok && !args->hello) {
        fprintf (stderr, "hkctl: follow: --partial-ok goes with --hello\n");
        return CTL_USAGE;
    }
    hk_random_id (id);
    if (args->life)
        snprintf (m->life, sizeof (m->life), "%s", args->life);
    else
        snprintf (
            m->life, sizeof (m->life), args->hello ? "hkctl-%s" : "hkctl", id);
    if (args->jobs && !(m->jobs = read_jobs (args->jobs)))
        return CTL_USAGE;
    if (!args->allocated_file)
        return CTL_DONE;
    m->allocated = read_allocated (args->allocated_file);
    return m->allocated ? CTL_DONE : CTL_USAGE;
}

int ctl_manage (struct ctl *ctl)
{
    struct manager m = { .ctl = ctl };
    int status = check_args (&m);

    if (status == CTL_DONE)
        status = ctl_connect (ctl, "manager");
    if (status == CTL_DONE && strcmp (ctl->role, "guest") == 0) {
        fprintf (stderr, "hkctl: this user may not be the manager\n");
        status = CTL_NO_WAY;
    }
    if (status == CTL_DONE && hk_link_client_set_life (ctl->client, m.life) < 0)
        status = lost ();
    if (status == CTL_DONE)
        status = say_hello (&m);
    while (status == CTL_DONE) {
        struct hk_msg msg;
        /* an answer to hello has a limit, what comes later has none */
        int rc = ctl_receive (
            ctl, m.is_ready ? -1 : ctl->args.timeout_ms, &msg, &status);

        if (rc < 0)
            break;
        if (rc == 0) {
            status = say_hello (&m);
            continue;
        }
        status = take (&m, &msg);
        hk_msg_fini (&msg);
    }
    json_decref (m.allocated);
    json_decref (m.jobs);
    return status;
}

/* engine_world.c - an engine in its thread, and a host that notes it all */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <cmocka.h>

#include "proto/log.h"
#include "tests/unit/engine_world.h"
#include "tests/unit/folder.h"

struct engine_host host;

static void on_answered (void *arg,
                         uint64_t tag,
                         int rc,
                         const struct hkc_answer *answer,
                         const struct hk_error *err)
{
    struct engine_host *h = arg;

    pthread_mutex_lock (&h->mutex);
    h->answered[tag] = true;
    h->rc[tag] = rc;
    h->alloc[tag] = answer->alloc;
    snprintf (h->state[tag],
              sizeof (h->state[tag]),
              "%s",
              answer->state ? answer->state : "");
    snprintf (h->text[tag], sizeof (h->text[tag]), "%s", rc ? err->text : "");
    if (answer->results_count == 1)
        snprintf (h->text[tag],
                  sizeof (h->text[tag]),
                  "%s: %s",
                  answer->results[0].host,
                  answer->results[0].text);
    pthread_cond_broadcast (&h->changed);
    pthread_mutex_unlock (&h->mutex);
}

static void on_action (void *arg, const struct hkc_action *act)
{
    struct engine_host *h = arg;

    pthread_mutex_lock (&h->mutex);
    h->ends += act->kind == HKC_ACT_HELLO_END;
    h->drains += act->kind == HKC_ACT_DRAIN;
    pthread_cond_broadcast (&h->changed);
    pthread_mutex_unlock (&h->mutex);
}

static void on_list (void *arg, uint64_t tag, json_t *rows)
{
    struct engine_host *h = arg;

    pthread_mutex_lock (&h->mutex);
    h->rows[tag] = json_dumps (rows, JSON_SORT_KEYS | JSON_COMPACT);
    pthread_cond_broadcast (&h->changed);
    pthread_mutex_unlock (&h->mutex);
    json_decref (rows);
}

static void on_log (void *arg,
                    int level,
                    const struct hk_log_ids *ids,
                    const char *text)
{
    struct engine_host *h = arg;
    size_t n;

    (void)level;
    (void)ids;
    pthread_mutex_lock (&h->mutex);
    n = strlen (h->log);
    snprintf (h->log + n, sizeof (h->log) - n, "%s\n", text);
    pthread_cond_broadcast (&h->changed);
    pthread_mutex_unlock (&h->mutex);
}

struct hk_conf *conf_make (void)
{
    struct hk_error err;
    struct hk_conf *conf = hk_conf_load ("/nonexistent/hk.conf", 0, &err);

    assert_non_null (conf);
    assert_int_equal (
        hk_conf_set (
            conf, "coordinator", "state-dir", folder_at ("state"), &err),
        0);
    assert_int_equal (hk_conf_set (conf, "link", "bind", "127.0.0.1", &err), 0);
    conf->node_port = conf->client_port = conf->key_port = 0; /* any */
    return conf;
}

struct hkc_host_ops ops_make (void)
{
    return (struct hkc_host_ops){
        .arg = &host,
        .life_ends_with_link = true,
        .action = on_action,
        .answered = on_answered,
        .list = on_list,
    };
}

void engine_create (struct hk_conf *conf, const struct hkc_host_ops *ops)
{
    struct hk_error err;

    if (!(host.engine = hkc_engine_create (conf, ops, &err)))
        fail_msg ("%s", err.text);
}

void engine_start (void)
{
    struct hk_error err;

    assert_int_equal (hkc_engine_start (host.engine, &err), 0);
}

void engine_begin (void)
{
    struct hkc_host_ops ops = ops_make ();

    engine_create (conf_make (), &ops);
    engine_start ();
}

int engine_set_up (void **state)
{
    memset (&host, 0, sizeof (host));
    pthread_mutex_init (&host.mutex, NULL);
    pthread_cond_init (&host.changed, NULL);
    hk_log_init ("test_engine", LOG_INFO, on_log, &host);
    return folder_set_up (state);
}

int engine_tear_down (void **state)
{
    hkc_engine_destroy (host.engine);
    for (int i = 0; i < ENGINE_TAGS; i++)
        free (host.rows[i]);
    hk_log_init ("test_engine", LOG_EMERG, NULL, NULL);
    pthread_cond_destroy (&host.changed);
    pthread_mutex_destroy (&host.mutex);
    return folder_tear_down (state);
}

bool is_logged (const char *text)
{
    bool is;

    pthread_mutex_lock (&host.mutex);
    is = strstr (host.log, text) != NULL;
    pthread_mutex_unlock (&host.mutex);
    return is;
}

/* ---- what a host says ---- */

void post_end (uint64_t tag, uint64_t jobid, const char *R)
{
    struct hkc_note *note = hkc_note_create (HKC_EV_JOB_END);

    assert_non_null (note);
    note->tag = tag;
    note->ev.job_end.jobid = jobid;
    note->ev.job_end.userid = 1000;
    note->ev.job_end.t_submit = 1;
    note->ev.job_end.t_end = 2;
    note->ev.job_end.hold_begin = true;
    note->R_text = R ? strdup (R) : NULL;
    hkc_engine_post (host.engine, note);
}

void post_job (enum hkc_event_kind kind, uint64_t alloc)
{
    struct hkc_note *note = hkc_note_create (kind);

    assert_non_null (note);
    note->ev.job.alloc = alloc;
    hkc_engine_post (host.engine, note);
}

void post_sched (enum hkc_event_kind kind, uint64_t tag, const char *account)
{
    struct hkc_note *note = hkc_note_create (kind);

    assert_non_null (note);
    note->tag = tag;
    note->ev.sched.life = hkc_note_text (note, "L1");
    note->ev.sched.partial_ok = true;
    note->account_text = account ? strdup (account) : NULL;
    hkc_engine_post (host.engine, note);
}

/* drain.c - drains are a desired state of a host: the set of our causes */
/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include "coordinator/core/internal.h"

enum { RETRY_FIRST_MS = 1000, RETRY_MOST_MS = 60000, REASONS_BYTES = 8192 };

const char *hkc_cause_name (enum hkc_cause_kind kind)
{
    static const char *const names[] = {
        "", "failure", "unknown-run", "conflict", "ghost", "lost", "hello",
    };

    return names[kind];
}

const struct hkc_cause *hkc_cause_find (const struct hkc_host *host,
                                        enum hkc_cause_kind kind,
                                        uint64_t about)
{
    for (const struct hkc_cause *c = host->causes; c; c = c->next)
        if (c->kind == kind && c->about == about)
            return c;
    return NULL;
}

bool hkc_host_confirmed (const struct hkc_host *host,
                         enum hkc_cause_kind kind,
                         uint64_t about)
{
    const struct hkc_cause *c = hkc_cause_find (host, kind, about);

    return c && c->confirmed;
}

void hkc_drain_review (struct hkc_core *core, struct hkc_host *host)
{
    if (host->in_review)
        return;
    host->in_review = true;
    host->review_next = core->review;
    core->review = host;
}

static void cause_row (struct hkc_core *core,
                       const struct hkc_host *host,
                       const struct hkc_cause *cause,
                       enum hkc_row_kind kind)
{
    struct hkc_row *row;
    const char *reason = hkc_arena_dup (core, cause->reason);

    row = hkc_put (core, kind);
    row->cause.host = host->name;
    row->cause.kind = cause->kind;
    row->cause.about = cause->about;
    row->cause.reason = reason;
    row->cause.confirmed = cause->confirmed;
    row->cause.t = cause->t;
}

/* A failure whose rank is no longer held: it only keeps us from undraining. */
static bool is_past (const struct hkc_host *host, const struct hkc_cause *cause)
{
    if (cause->kind != HKC_CAUSE_FAILURE)
        return false;
    for (const struct hkc_part *p = host->parts; p; p = p->next_on_host)
        if (p->alloc->id == cause->about)
            return false;
    return true;
}

void hkc_cause_add (struct hkc_core *core,
                    struct hkc_host *host,
                    enum hkc_cause_kind kind,
                    uint64_t about,
                    const char *reason)
{
    struct hkc_cause *cause;

    if (hkc_cause_find (host, kind, about))
        return;
    cause = hkc_zalloc (sizeof (*cause));
    cause->kind = kind;
    cause->about = about;
    cause->t = core->wall;
    cause->reason = hkc_strdup (reason);
    cause->next = host->causes;
    host->causes = cause;
    cause_row (core, host, cause, HKC_ROW_CAUSE);
    hkc_host_dirty (core, host);
    hkc_drain_review (core, host);
}

static void cause_drop (struct hkc_core *core,
                        struct hkc_host *host,
                        struct hkc_cause **p)
{
    struct hkc_cause *cause = *p;

    *p = cause->next;
    cause_row (core, host, cause, HKC_ROW_CAUSE_GONE);
    free (cause->reason);
    free (cause);
    hkc_drain_review (core, host);
}

void hkc_cause_remove (struct hkc_core *core,
                       struct hkc_host *host,
                       enum hkc_cause_kind kind,
                       uint64_t about)
{
    for (struct hkc_cause **p = &host->causes; *p; p = &(*p)->next) {
        if ((*p)->kind == kind && (*p)->about == about) {
            cause_drop (core, host, p);
            return;
        }
    }
}

static char *ranks_of (struct hkc_core *core, const struct hkc_host *host)
{
    struct hk_rankset *set = hk_rankset_create ();
    char *text, *copy;

    for (const struct hkc_part *p = host->parts; p; p = p->next_on_host)
        if (!p->misplaced) /* those are another host's now */
            hk_rankset_add_set (set, p->ranks);
    if (!(text = hk_rankset_encode (set)))
        abort ();
    copy = hkc_arena_dup (core, text);
    free (text);
    hk_rankset_destroy (set);
    return copy;
}

static void request (struct hkc_core *core,
                     struct hkc_host *host,
                     enum hkc_action_kind kind,
                     const char *reason)
{
    struct hkc_action *act;
    char *ranks = ranks_of (core, host);

    act = hkc_act (core, kind);
    act->drain.n = ++core->drain_n;
    act->drain.life = hkc_arena_dup (core, core->life);
    act->drain.host = host->shown;
    act->drain.ranks = ranks;
    act->drain.reason = hkc_arena_dup (core, reason);
}

/* Is the line one of those that we sent? */
static bool is_ours (const struct hkc_host *host, const char *reason)
{
    size_t n = strlen (reason);

    for (const char *p = host->reasons; p && *p;) {
        const char *end = strchrnul (p, '\n');
        if ((size_t)(end - p) == n && !memcmp (p, reason, n))
            return true;
        p = *end ? end + 1 : end;
    }
    return false;
}

/* Put a line first and drop it from where it stood. */
static void reasons_first (struct hkc_core *core,
                           struct hkc_host *host,
                           const char *reason)
{
    const char *old = host->reasons ? host->reasons : "";
    size_t n = strlen (reason);
    char *all = hkc_arena (core, n + strlen (old) + 2);
    char *out = stpcpy (all, reason);

    for (const char *p = old; *p && out - all < REASONS_BYTES;) {
        const char *end = strchrnul (p, '\n');
        if ((size_t)(end - p) != n || memcmp (p, reason, n)) {
            *out++ = '\n';
            out = mempcpy (out, p, end - p);
            *out = '\0';
        }
        p = *end ? end + 1 : end;
    }
    hkc_strset (&host->reasons, all);
    hkc_host_dirty (core, host);
}

/* A crash may have come between a request and its answer: what was asked for
 * may stand there, so it counts as ours until the manager says otherwise.
 */
void hkc_drain_load (struct hkc_host *host, const char *reasons)
{
    if (*reasons == '\0')
        return;
    hkc_strset (&host->reasons, reasons);
    hkc_strset (&host->reason, reasons);
    *strchrnul (host->reason, '\n') = '\0';
    if (host->drain == HKC_UNDRAINED)
        host->drain = HKC_DRAINED_OURS;
}

static void drain_ask (struct hkc_core *core, struct hkc_host *host)
{
    const struct hkc_cause *gravest = NULL;
    struct hkc_cause *c;
    bool unconfirmed = false;

    for (c = host->causes; c; c = c->next) {
        if (is_past (host, c))
            continue;
        unconfirmed |= !c->confirmed;
        if (!gravest || c->kind < gravest->kind)
            gravest = c;
    }
    if (!unconfirmed || core->now_ms < host->retry_ms)
        return;
    /* stored before it is sent, so that `already` with it is known as ours */
    if (!is_ours (host, gravest->reason)) {
        const char *last = host->drain == HKC_DRAINED_OURS ? host->reason
                                                           : NULL;
        reasons_first (core, host, gravest->reason);
        if (last)
            reasons_first (core, host, last);
    }
    hkc_strset (&host->asked, gravest->reason);
    request (core, host, HKC_ACT_DRAIN, gravest->reason);
    host->drain_n = core->drain_n;
    for (c = host->causes; c; c = c->next)
        if (!c->confirmed)
            c->n = host->drain_n;
}

static void review (struct hkc_core *core, struct hkc_host *host)
{
    if (!core->manager || host->drain_n || host->undrain_n)
        return;
    if (host->causes)
        drain_ask (core, host);
    else if (host->drain == HKC_DRAINED_OURS && host->reason
             && core->life_state == HKC_LIFE_READY && !core->recover
             && core->now_ms >= host->retry_ms) {
        request (core, host, HKC_ACT_UNDRAIN, host->reason);
        host->undrain_n = core->drain_n;
    } else if (host->drain == HKC_DRAINED_ADMIN) {
        host->drain = HKC_UNDRAINED; /* no cause of ours: not our business */
        hkc_strset (&host->reasons, NULL);
        hkc_host_dirty (core, host);
    }
}

void hkc_drain_tick (struct hkc_core *core)
{
    struct hkc_host *host = core->review;
    struct hkc_host *later = NULL;

    core->review = NULL;
    while (host) {
        struct hkc_host *next = host->review_next;
        review (core, host);
        if (core->now_ms < host->retry_ms && core->manager) {
            host->review_next = later;
            later = host;
        } else
            host->in_review = false;
        host = next;
    }
    core->review = later;
}

int64_t hkc_drain_deadline (const struct hkc_core *core)
{
    int64_t when = INT64_MAX;

    for (const struct hkc_host *h = core->review; h; h = h->review_next)
        if (h->retry_ms < when)
            when = h->retry_ms;
    return core->manager ? when : INT64_MAX;
}

static void retry_later (struct hkc_core *core,
                         struct hkc_host *host,
                         const char *text)
{
    int64_t wait = RETRY_FIRST_MS;

    for (int i = 0; i < host->retries && wait < RETRY_MOST_MS; i++)
        wait *= 2;
    host->retries++;
    host->retry_ms = core->now_ms
                     + (wait > RETRY_MOST_MS ? RETRY_MOST_MS : wait);
    hkc_strset (&host->failed, text ? text : "");
    hkc_say (core,
             LOG_ERR,
             0,
             host->shown,
             "cannot be drained or undrained: "
             "%s, tried again",
             host->failed);
    hkc_drain_review (core, host);
}

/* `ok` says that the node was not drained before: an admin had undrained it,
 * and what failed there earlier is over.
 */
static void past_failures_end (struct hkc_core *core, struct hkc_host *host)
{
    for (struct hkc_cause **p = &host->causes; *p;) {
        if (is_past (host, *p) && (*p)->confirmed)
            cause_drop (core, host, p);
        else
            p = &(*p)->next;
    }
}

static void confirm (struct hkc_core *core, struct hkc_host *host, uint64_t n)
{
    for (struct hkc_cause *c = host->causes; c; c = c->next) {
        if (c->confirmed || c->n == 0 || c->n > n)
            continue;
        c->confirmed = true;
        cause_row (core, host, c, HKC_ROW_CAUSE);
    }
    for (struct hkc_part *p = host->parts; p; p = p->next_on_host)
        hkc_part_reviewed (core, p);
}

static struct hkc_host *host_shown (struct hkc_core *core, const char *name)
{
    return hkc_host_find (core, name);
}

int hkc_drain_done (struct hkc_core *core, const struct hkc_event *ev)
{
    struct hkc_host *host = host_shown (core, ev->done.host);
    const char *reason = ev->done.reason ? ev->done.reason : "";

    if (!host || host->drain_n == 0 || ev->done.n != host->drain_n)
        return 0; /* an answer to an older session's request */
    host->drain_n = 0;
    hkc_drain_review (core, host);
    if (ev->done.result == HKC_DRAIN_FAILED) {
        retry_later (core, host, ev->done.text);
        return 0;
    }
    host->retries = 0;
    hkc_strset (&host->failed, NULL);
    if (ev->done.result == HKC_DRAIN_OK) {
        past_failures_end (core, host);
        host->drain = HKC_DRAINED_OURS;
        hkc_strset (&host->reason, host->asked);
        hkc_strset (&host->reasons, NULL);
        reasons_first (core, host, host->asked);
    } else if (ev->done.result == HKC_DRAIN_ALREADY && is_ours (host, reason)) {
        host->drain = HKC_DRAINED_OURS;
        hkc_strset (&host->reason, reason);
        reasons_first (core, host, reason);
    } else
        host->drain = HKC_DRAINED_ADMIN;
    hkc_host_dirty (core, host);
    confirm (core, host, ev->done.n);
    return 0;
}

int hkc_undrain_done (struct hkc_core *core, const struct hkc_event *ev)
{
    struct hkc_host *host = host_shown (core, ev->done.host);

    if (!host || host->undrain_n == 0 || ev->done.n != host->undrain_n)
        return 0;
    host->undrain_n = 0;
    hkc_drain_review (core, host);
    if (ev->done.result == HKC_DRAIN_FAILED) {
        retry_later (core, host, ev->done.text);
        return 0;
    }
    host->retries = 0;
    /* an answer was lost and another reason of ours stands there */
    if (ev->done.result == HKC_DRAIN_CHANGED && ev->done.reason
        && strcmp (ev->done.reason, host->reason)
        && is_ours (host, ev->done.reason)) {
        hkc_strset (&host->reason, ev->done.reason);
        reasons_first (core, host, ev->done.reason);
        return 0;
    }
    host->drain = HKC_UNDRAINED;
    hkc_strset (&host->reason, NULL);
    hkc_strset (&host->reasons, NULL);
    hkc_strset (&host->failed, NULL);
    hkc_host_dirty (core, host);
    /* a cause that came while the undrain was under way must be asked anew:
     * what confirmed it before is undone now */
    for (struct hkc_cause *c = host->causes; c; c = c->next)
        c->n = 0;
    return 0;
}

/* A failed rank is due by the drain of its node: not until that is confirmed to
 * this session.
 */
static void due_back (struct hkc_core *core,
                      struct hkc_host *host,
                      const struct hkc_cause *cause)
{
    for (struct hkc_part *p = host->parts; p; p = p->next_on_host) {
        if (cause->kind != HKC_CAUSE_FAILURE || p->alloc->id != cause->about
            || p->phase != HKC_DUE)
            continue;
        p->phase = HKC_ENDED;
        hkc_part_dirty (core, p);
        hkc_due_prune (p->alloc);
    }
}

/* A new session of the manager: what is still needed is asked for anew. */
void hkc_drain_anew (struct hkc_core *core)
{
    for (struct hkc_host *h = zhashx_first (core->hosts); h;
         h = zhashx_next (core->hosts)) {
        /* asked for and never answered: it may stand there as ours */
        if (h->drain_n && h->reasons && h->drain == HKC_UNDRAINED) {
            hkc_strset (&h->reason, h->asked);
            h->drain = HKC_DRAINED_OURS;
            hkc_host_dirty (core, h);
        }
        h->drain_n = h->undrain_n = 0;
        h->retry_ms = 0;
        h->retries = 0;
        for (struct hkc_cause *c = h->causes; c; c = c->next) {
            if (is_past (h, c))
                continue;
            c->n = 0;
            if (c->confirmed) {
                c->confirmed = false;
                cause_row (core, h, c, HKC_ROW_CAUSE);
                due_back (core, h, c);
            }
        }
        if (h->causes || h->drain != HKC_UNDRAINED)
            hkc_drain_review (core, h);
    }
}

/* A life is ready: what waited for that to be undrained is looked at. */
void hkc_drain_ready (struct hkc_core *core)
{
    for (struct hkc_host *h = zhashx_first (core->hosts); h;
         h = zhashx_next (core->hosts))
        if (h->drain != HKC_UNDRAINED)
            hkc_drain_review (core, h);
}

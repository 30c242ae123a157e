/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/reading_causes.h"

#include "analysis/request_words.h"
#include "fleet/stable.h"
#include "timeline/load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The share of slow requests among the requests of a name in one upload. */
#define SLOW_SHARE 0.01
/*
 * The slow requests are reported if they took at least this many times as long as the typical ones
 * and causes explain at least this share of the difference.
 */
#define SLOW_FACTOR 2
#define CAUSE_SHARE 0.1

enum { TYPICAL_LEAST = 10, CAUSES = 3, NAME_MAX_LEN = 1000 };

/*
 * By what the time of a request is multiplied in each group; 0 if it is not in the group. Among all
 * requests that is the number of requests that it stands for, so that the sum is the time that all
 * requests took, not only those whose details were kept. In the other groups it is its weight
 * divided by the mean weight of its name there, so that the sum over the group, divided by the
 * number of its requests, is the mean that the recording itself shows.
 */
struct shares {
    double of[FLEET_GROUPS];
};

struct causes {
    struct batch *b;
    const struct sample_requests *s;
    struct request_ledger *l;
    struct thread_activities activities;
    uint32_t types[FLEET_GROUPS];
    struct shares *shares; /* of each request of the list */
};

/*
 * Returns the frame of a mark such as "[lock]" or "[shop.Stock]", which stands for something that
 * is not code.
 */
static int64_t mark_of(struct batch *b, const char *text)
{
    char name[NAME_MAX_LEN + 8];
    /* The name gets an end like that of a method, because names of methods are made stable. */
    int len = snprintf(name, sizeof(name), "%.*s.", NAME_MAX_LEN, text);
    size_t stable = fleet_stable_label(name, (size_t)len) - 1;
    char mark[NAME_MAX_LEN + 8];
    len = snprintf(mark, sizeof(mark), "[%.*s]", (int)stable, name);
    return batch_frame(b, FLEET_MARK, mark, (size_t)len);
}

/*
 * Returns whether the object of a cause is named. Peers and files have too many names, and a cause
 * for which request_cause_is_one is true needs no name.
 */
static bool is_named(const struct request_part *p)
{
    return p->object && *p->object && p->cause != CAUSE_IO && !request_cause_is_one(p->cause);
}

/*
 * Returns a stack that consists of the cause, what it was about, and the program's method in which
 * it occurred.
 */
static int64_t stack_of(struct causes *c, const struct request_part *p, const char *method)
{
    uint32_t path[3];
    size_t depth = 0;
    int64_t frames[] = {mark_of(c->b, request_cause_name(p->cause)),
                        is_named(p) ? mark_of(c->b, p->object) : -1,
                        method ? batch_frame(c->b, FLEET_JAVA, method, strlen(method)) : -1};
    for (size_t i = 0; i < ARRAY_SIZE(frames); i++) {
        if (frames[i] == -ENOMEM)
            return -ENOMEM;
        if (frames[i] >= 0)
            path[depth++] = (uint32_t)frames[i];
    }
    return batch_stack(c->b, path, depth);
}

static int add(struct causes *c, const struct request *q, const struct request_part *p,
               const char *method, uint64_t ns, bool first)
{
    const struct shares *shares = &c->shares[q - c->s->requests.list.data];
    int64_t stack = stack_of(c, p, method);
    int r = (int)MIN(stack, 0);
    for (int i = 0; i < FLEET_GROUPS && r == 0; i++) {
        struct fleet_sample sample = {.type = c->types[i],
                                      .stack = (uint32_t)stack,
                                      .request = c->s->names.data[q->name],
                                      .count = first, /* so that the counts are of requests */
                                      .weight = (uint64_t)((double)ns * shares->of[i] + 0.5)};
        if (shares->of[i] > 0)
            r = batch_sample(c->b, q->end_ns, sample);
    }
    return r;
}

static int add_part(struct causes *c, const struct request *q, const struct request_part *p,
                    bool first)
{
    uint64_t left = p->end - p->start;
    const char *method = NULL;
    vec_clear(&c->activities.rows);
    int r = request_part_stacks(c->l, p, &c->activities);
    for (size_t i = 0; i < c->activities.rows.len && r == 0; i++) {
        const struct thread_activity *a = &c->activities.rows.data[i];
        bool last = i + 1 == c->activities.rows.len;
        uint64_t ns = last ? left : MIN(a->ns, left);
        method = frames_ref_program(c->l, &a->frames);
        r = add(c, q, p, method, ns, first);
        first = false;
        left -= ns;
    }
    return r == 0 && left ? add(c, q, p, method, left, first) : r;
}

/* Returns the weight of a request in its group before scaling. equal: all have the same weight. */
static double weight_of(const struct causes *c, const struct request *q, bool equal)
{
    return !fleet_reading_includes(c->s->how, q->end_ns) ? 0 : equal ? 1 : (double)q->weight;
}

/* Sets the shares of the slow or typical requests of one name. */
static void share_group(struct causes *c, enum fleet_group group, const uint32_t *list, size_t len,
                        bool equal)
{
    const struct request *requests = c->s->requests.list.data;
    double sum = 0;
    uint64_t n = 0;
    for (size_t i = 0; i < len; i++) {
        double weight = weight_of(c, &requests[list[i]], equal);
        sum += weight;
        n += weight > 0;
    }
    for (size_t i = 0; i < len && sum > 0; i++)
        c->shares[list[i]].of[group] = weight_of(c, &requests[list[i]], equal) * (double)n / sum;
}

/*
 * Sets the shares of all requests of a name. If the recording has the exact time of all of them,
 * the weights are scaled to it (a ratio estimate), unless a part of the recording is read.
 */
static void share_name(struct causes *c, const struct request_name *n)
{
    const struct requests *requests = &c->s->requests;
    const uint32_t *list = requests->by_name.data + n->first;
    double sum = 0;
    bool whole = n->exact;
    for (size_t i = 0; i < n->count; i++) {
        const struct request *q = &requests->list.data[list[i]];
        sum += weight_of(c, q, false) * (double)request_latency(q);
        whole &= fleet_reading_includes(c->s->how, q->end_ns);
    }
    double factor = whole && sum > 0 ? (double)n->total_ns / sum : 1;
    for (size_t i = 0; i < n->count; i++)
        c->shares[list[i]].of[FLEET_ALL] =
            factor * weight_of(c, &requests->list.data[list[i]], false);
}

static void share_all(struct causes *c)
{
    for (size_t i = 0; i < c->s->requests.names.len; i++)
        share_name(c, &c->s->requests.names.data[i]);
}

static int add_latencies(struct causes *c)
{
    const struct requests *requests = &c->s->requests;
    struct request_parts parts = {0};
    int r = 0;
    for (size_t i = 0; i < requests->list.len && r == 0; i++) {
        const struct request *q = &requests->list.data[i];
        const struct shares *shares = &c->shares[i];
        if (shares->of[FLEET_ALL] + shares->of[FLEET_SLOW] + shares->of[FLEET_TYPICAL] <= 0)
            continue;
        r = request_parts(c->l, q, &parts);
        for (size_t k = 0; k < parts.rows.len && r == 0; k++)
            r = add_part(c, q, &parts.rows.data[k], k == 0);
    }
    request_parts_release(&parts);
    return r;
}

/* ---- the slow requests of a name */

static void put_culprit(struct buf *text, const struct group_cause *c)
{
    if (!c->culprit.method)
        return;
    buf_string(text, request_cause_is_lock(c)     ? ": held"
                     : c->cause == CAUSE_QUEUE    ? ": its workers were busy"
                     : c->cause == CAUSE_RUNNABLE ? ": its carrier was taken"
                                                  : ": until another thread was done");
    request_put_in(text, c->culprit.method);
}

static int add_finding(struct causes *c, const struct request_group *g,
                       const struct group_cause *cause)
{
    const struct requests *requests = &c->s->requests;
    _cleanup_(buf_release) struct buf text = BUF(1 << 16);
    const struct request *last = NULL;
    uint64_t n = 0;
    for (size_t i = 0; i < g->slow.len; i++) {
        const struct request *q = &requests->list.data[g->slow.data[i]];
        if (!fleet_reading_includes(c->s->how, q->end_ns))
            continue;
        last = !last || q->end_ns > last->end_ns ? q : last;
        n++;
    }
    if (!n)
        return 0;
    buf_printf(&text, "%s: ", requests_text(requests, requests->names.data[g->name].name));
    request_put_cause(&text, cause);
    put_culprit(&text, cause);
    if (buf_error(&text))
        return buf_error(&text);
    return batch_finding(c->b, last->end_ns, FLEET_SLOW_CAUSE, buf_str(&text), n,
                         (uint64_t)MAX(cause->slow_ns - cause->typical_ns, 0.0) * n);
}

static int add_groups(struct causes *c, const struct timeline *t)
{
    const struct requests *requests = &c->s->requests;
    const struct group_options options = {.share = SLOW_SHARE};
    int r = 0;
    for (uint32_t i = 0; i < requests->names.len && r == 0; i++) {
        struct request_group g;
        r = request_group(c->l, requests, t, i, &options, &g);
        if (r == -ENOENT) {
            r = 0;
            continue;
        }
        if (r < 0)
            break;
        share_group(c, FLEET_SLOW, g.slow.data, g.slow.len, g.equal);
        share_group(c, FLEET_TYPICAL, g.typical.data, g.typical.len, false);
        bool slow =
            g.typical.len >= TYPICAL_LEAST && g.slow_mean_ns >= SLOW_FACTOR * g.typical_mean_ns;
        for (size_t k = 0; k < MIN(g.causes.len, (size_t)CAUSES) && slow && r == 0; k++)
            if (g.causes.data[k].share >= CAUSE_SHARE && !g.causes.data[k].uncertain)
                r = add_finding(c, &g, &g.causes.data[k]);
        request_group_release(&g);
    }
    return r;
}

int reading_causes_add(struct batch *b, const char *path, const struct sample_requests *s,
                       struct buf *why)
{
    struct causes c = {.b = b, .s = s};
    _cleanup_(timeline_freep) struct timeline *t = NULL;
    if (!s->any || !s->requests.list.len)
        return 0;
    c.shares = calloc(s->requests.list.len, sizeof(*c.shares));
    int r = c.shares ? 0 : -ENOMEM;
    for (int i = 0; i < FLEET_GROUPS && r == 0; i++) {
        int64_t type = batch_type(b, fleet_latency_types[i], "nanoseconds");
        c.types[i] = (uint32_t)type;
        r = (int)MIN(type, 0);
    }
    /* Without an index, because the file is an upload. */
    if (r == 0)
        r = timeline_read(&t, path, UINT64_MAX, NULL, why);
    if (r == 0)
        r = request_ledger_new(&c.l, &s->requests, t);
    if (r == 0) {
        share_all(&c);
        r = add_groups(&c, t);
    }
    if (r == 0)
        r = add_latencies(&c);
    free(c.shares);
    vec_release(&c.activities.rows);
    request_ledger_free(c.l);
    return r;
}

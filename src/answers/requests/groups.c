/* SPDX-License-Identifier: Apache-2.0 */
/* What the slow requests of a name did that the typical ones did not. */
#include "answers/requests/requests.h"

#include <errno.h>

void request_groups_release(struct request_groups *g)
{
    for (size_t i = 0; i < g->rows.len; i++)
        request_group_release(&g->rows.data[i]);
    vec_release(&g->rows);
}

/* Returns how much more time the slow requests took than the same number of typical ones. */
static double excess(const struct request_group *g)
{
    return (g->slow_mean_ns - g->typical_mean_ns) * (double)g->all;
}

static int by_excess(const void *a, const void *b)
{
    double x = excess(a), y = excess(b);
    return (x < y) - (x > y);
}

static struct group_options options_of(const struct request_view *v)
{
    double share = v->options->slowest;
    return (struct group_options){.share = share > 0 ? share : SLOWEST_SHARE,
                                  .over_ns = v->options->over_ns};
}

int request_groups_collect(struct request_view *v, struct request_groups *ret)
{
    struct group_options o = options_of(v);
    int e = 0;
    for (uint32_t i = 0; e == 0 && i < v->r.names.len; i++) {
        struct request_group g;
        e = request_group(v->l, &v->r, v->t, i, &o, &g);
        if (e == 0)
            e = vec_push(&ret->rows, g);
        else if (e == -ENOENT)
            e = 0;
    }
    vec_sort(&ret->rows, by_excess);
    return e;
}

/* without is NULL when the cause is not among the first causes */
static void cause_json(struct json *j, const struct request_view *v, const struct request_name *n,
                       const struct group_cause *c, const struct request_without *without)
{
    bool known = c->culprit.thread != NULL;
    _cleanup_(buf_release) struct buf text = BUF(1 << 16);
    json_begin_object(j);
    json_key_string(j, "cause", request_cause_name(c->cause));
    json_key_u64(j, "slow_ns", (uint64_t)c->slow_ns);
    json_key_u64(j, "typical_ns", (uint64_t)c->typical_ns);
    json_key_double(j, "share", c->share);
    json_key_u64(j, "slow_error_ns", (uint64_t)c->slow_error_ns);
    json_key_u64(j, "typical_error_ns", (uint64_t)c->typical_error_ns);
    json_key_double(j, "share_error", c->share_error);
    json_key_u64(j, "slow_requests", c->slow_requests);
    json_key_u64(j, "typical_requests", c->typical_requests);
    json_key_bool(j, "uncertain", c->uncertain);
    json_key_bool(j, "hidden", c->hidden);
    json_key_u64(j, "largest_in", c->largest);
    json_key_double(j, "largest_share", c->most_of);
    json_key_double(j, "largest_share_error", c->most_error);
    if (without && !request_quantile_is_bound(n, without->p99_ns)) {
        json_key_u64(j, "p99_without_ns", without->p99_ns);
        json_key_u64(j, "p99_without_low_ns", without->low_ns);
        json_key_u64(j, "p99_without_high_ns", without->high_ns);
    }
    json_key_string(j, "object", c->object);
    json_key_string(j, "thread", known ? c->culprit.thread : NULL);
    json_key(j, "frames");
    request_frames_json(j, v, known ? &c->culprit.frames : &c->own.frames);
    json_key_u64(j, "threads", c->culprit.threads);
    json_key_u64(j, "culprit_ns", (uint64_t)c->culprit.ns);
    json_key_string(j, "does", known ? request_cause_name(c->culprit.kind) : NULL);
    json_key_string(j, "busy_with", c->busy_with);
    json_key(j, "waiting_frames");
    request_frames_json(j, v, &c->own.frames);
    request_put_cause(&text, c);
    request_put_culprit(&text, c);
    json_key_string(j, "sentence", buf_str(&text));
    json_end_object(j);
}

static void side_json(struct json *j, const char *key, size_t count, double mean, double error,
                      double hidden)
{
    json_key_object(j, key);
    json_key_u64(j, "count", count);
    json_key_u64(j, "mean_ns", (uint64_t)mean);
    json_key_u64(j, "mean_error_ns", (uint64_t)error);
    json_key_u64(j, "hidden_ns", (uint64_t)hidden);
    json_end_object(j);
}

int request_group_without(const struct request_view *v, const struct request_group *g,
                          struct request_without ret[REQUEST_CAUSES_ANSWERED])
{
    size_t n = MIN(g->causes.len, (size_t)REQUEST_CAUSES_ANSWERED);
    int e = request_without(v->l, &v->r, g, n, ret);
    return e < 0 ? e : (int)n;
}

const struct request *request_slowest(const struct request_view *v, const struct request_group *g,
                                      uint32_t k)
{
    const struct request_name *n = &v->r.names.data[g->name];
    return &v->r.list.data[v->r.by_name.data[n->first + n->count - 1 - k]];
}

static int group_json(struct json *j, const struct request_view *v, const struct request_group *g)
{
    struct request_without without[REQUEST_CAUSES_ANSWERED];
    int known = request_group_without(v, g, without);
    if (known < 0)
        return known;
    const struct request_name *n = &v->r.names.data[g->name];
    _cleanup_(buf_release) struct buf text = BUF(1 << 16);
    json_begin_object(j);
    json_key_string(j, "name", requests_text(&v->r, n->name));
    request_example_json(v, n, j);
    json_key_u64(j, "count", n->all);
    json_key_u64(j, "limit_ns", g->limit_ns);
    uint64_t p99_ns = request_quantile(&v->r, n, 0.99);
    json_key_u64(j, "p99_ns", p99_ns);
    json_key_bool(j, "p99_is_upper_bound", request_quantile_is_bound(n, p99_ns));
    json_key_u64(j, "slow_of_all", g->all);
    json_key_double(j, "slow_share", (double)g->all / (double)MAX(n->all, UINT64_C(1)));
    side_json(j, "slow", g->slow.len, g->slow_mean_ns, g->slow_error_ns, g->slow_hidden_ns);
    side_json(j, "typical", g->typical.len, g->typical_mean_ns, g->typical_error_ns,
              g->typical_hidden_ns);
    json_key_array(j, "causes");
    for (size_t k = 0; k < g->causes.len; k++)
        cause_json(j, v, n, &g->causes.data[k], k < (size_t)known ? &without[k] : NULL);
    json_end_array(j);
    json_key_array(j, "slowest");
    for (uint32_t k = 0; k < MIN(g->kept, (uint32_t)REQUEST_EXAMPLES); k++)
        json_u64(j, request_slowest(v, g, k)->id);
    json_end_array(j);
    request_put_group(&text, v, g);
    json_key_string(j, "sentence", buf_str(&text));
    buf_clear(&text);
    json_key_string(j, "hidden_note", request_put_hidden(&text, g) ? buf_str(&text) : NULL);
    json_end_object(j);
    return 0;
}

int requests_groups_json(struct request_view *v, struct json *j)
{
    _cleanup_(request_groups_release) struct request_groups all = {0};
    int e = request_groups_collect(v, &all);
    json_begin_array(j);
    for (size_t i = 0; e == 0 && i < all.rows.len; i++)
        e = group_json(j, v, &all.rows.data[i]);
    json_end_array(j);
    return e;
}

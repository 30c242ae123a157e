/* SPDX-License-Identifier: Apache-2.0 */
/* requests slow: what the slow requests of a name did that the typical ones did not do. */
#include "analysis/request_without.h"
#include "cli/requests/requests.h"

#include "base/parse.h"
#include "cli/losses.h"
#include "cli/threads/threads.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { NAMES = 5, CAUSES = 8, BRIEF_CAUSES = 3, EXAMPLES = 3, FRAMES = 12 };

/* Stacks are printed for causes that explain at least this share of the difference. */
#define STACK_SHARE 0.1
/* Causes below this share get no row. */
#define SHOWN_SHARE 0.002

struct groups {
    VEC(struct request_group) rows;
};

static void groups_release(struct groups *g)
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

static int collect(struct request_view *v, const struct group_options *o, struct groups *ret)
{
    int e = 0;
    for (uint32_t i = 0; e == 0 && i < v->r.names.len; i++) {
        struct request_group g;
        e = request_group(v->l, &v->r, v->t, i, o, &g);
        if (e == 0)
            e = vec_push(&ret->rows, g);
        else if (e == -ENOENT)
            e = 0;
    }
    vec_sort(&ret->rows, by_excess);
    return e;
}

/* without is NULL when the cause is not among the first ones */
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
    json_frames_ref(j, v, known ? &c->culprit.frames : &c->own.frames);
    json_key_u64(j, "threads", c->culprit.threads);
    json_key_u64(j, "culprit_ns", (uint64_t)c->culprit.ns);
    json_key_string(j, "does", known ? request_cause_name(c->culprit.kind) : NULL);
    json_key_string(j, "busy_with", c->busy_with);
    json_key(j, "waiting_frames");
    json_frames_ref(j, v, &c->own.frames);
    request_put_cause(&text, c);
    put_culprit(&text, c);
    json_key_string(j, "sentence", buf_str(&text));
    json_end_object(j);
}

static void side_json(struct json *j, const char *key, size_t count, double mean, double error)
{
    json_key_object(j, key);
    json_key_u64(j, "count", count);
    json_key_u64(j, "mean_ns", (uint64_t)mean);
    json_key_u64(j, "mean_error_ns", (uint64_t)error);
    json_end_object(j);
}

/* Computes the answer for at most CAUSES causes, and returns for how many. */
static int without_of(const struct request_view *v, const struct request_group *g,
                      struct request_without ret[CAUSES])
{
    size_t n = MIN(g->causes.len, (size_t)CAUSES);
    int e = request_without(v->l, &v->r, g, n, ret);
    return e < 0 ? e : (int)n;
}

/* The k-th slowest request of a group, from 0. */
static const struct request *slowest(const struct request_view *v, const struct request_group *g,
                                     uint32_t k)
{
    const struct request_name *n = &v->r.names.data[g->name];
    return &v->r.list.data[v->r.by_name.data[n->first + n->count - 1 - k]];
}

static int group_json(struct json *j, const struct request_view *v, const struct request_group *g)
{
    struct request_without without[CAUSES];
    int known = without_of(v, g, without);
    if (known < 0)
        return known;
    const struct request_name *n = &v->r.names.data[g->name];
    _cleanup_(buf_release) struct buf text = BUF(1 << 16);
    json_begin_object(j);
    json_key_string(j, "name", requests_text(&v->r, n->name));
    json_key_u64(j, "count", n->all);
    json_key_u64(j, "limit_ns", g->limit_ns);
    uint64_t p99_ns = request_quantile(&v->r, n, 0.99);
    json_key_u64(j, "p99_ns", p99_ns);
    json_key_bool(j, "p99_is_upper_bound", request_quantile_is_bound(n, p99_ns));
    json_key_u64(j, "slow_of_all", g->all);
    json_key_double(j, "slow_share", (double)g->all / (double)MAX(n->all, UINT64_C(1)));
    side_json(j, "slow", g->slow.len, g->slow_mean_ns, g->slow_error_ns);
    side_json(j, "typical", g->typical.len, g->typical_mean_ns, g->typical_error_ns);
    json_key_array(j, "causes");
    for (size_t k = 0; k < g->causes.len; k++)
        cause_json(j, v, n, &g->causes.data[k], k < (size_t)known ? &without[k] : NULL);
    json_end_array(j);
    json_key_array(j, "slowest");
    for (uint32_t k = 0; k < MIN(g->kept, (uint32_t)EXAMPLES); k++)
        json_u64(j, slowest(v, g, k)->id);
    json_end_array(j);
    put_group_sentence(&text, v, g);
    json_key_string(j, "sentence", buf_str(&text));
    json_end_object(j);
    return 0;
}

static struct group_options options_of(const struct request_view *v)
{
    double share = v->options->slowest;
    return (struct group_options){.share = share > 0 ? share : SLOWEST_SHARE,
                                  .over_ns = v->options->over_ns};
}

int requests_groups_json(struct request_view *v, struct json *j)
{
    _cleanup_(groups_release) struct groups all = {0};
    struct group_options o = options_of(v);
    int e = collect(v, &o, &all);
    json_begin_array(j);
    for (size_t i = 0; e == 0 && i < all.rows.len; i++)
        e = group_json(j, v, &all.rows.data[i]);
    json_end_array(j);
    return e;
}

static int groups_json(struct request_view *v)
{
    _cleanup_(buf_release) struct buf b = BUF(SIZE_MAX / 2);
    struct json j = {.out = &b};
    json_begin_object(&j);
    json_key(&j, "groups");
    int e = requests_groups_json(v, &j);
    if (e < 0)
        return complain_errno(v->path, "cannot answer", e);
    losses_json_of_file(v->path, losses_of_requests, true, &j);
    json_end_object(&j);
    return json_print(&b);
}

static void print_stacks(const struct request_view *v, const struct group_cause *c, size_t limit)
{
    bool known = c->culprit.thread != NULL;
    if (c->own.frames.n) {
        printf("\n    %s:\n",
               c->cause == CAUSE_CPU || c->cause == CAUSE_RUNNABLE || c->cause == CAUSE_THROTTLED
                   ? "where they ran"
                   : "where they waited");
        print_frames_ref(v, &c->own.frames, limit, 6);
    }
    if (known && c->culprit.frames.n) {
        printf("\n    what thread %s did meanwhile:\n", c->culprit.thread);
        print_frames_ref(v, &c->culprit.frames, limit, 6);
    }
}

/*
 * Prints the latency at which the slowest hundredth would begin without the first cause. If fewer
 * requests than a hundredth had the cause, this latency would not change, so the change of their
 * mean is printed instead.
 */
static void print_without(const struct request_view *v, const struct request_group *g,
                          const struct request_without *x)
{
    const struct group_cause *c = &g->causes.data[0];
    char now[24], then[24], low[24], high[24];
    /* Below a microsecond a histogram does not say where a hundredth begins. */
    if (!(c->share > 0) || c->uncertain ||
        request_quantile_is_bound(&v->r.names.data[g->name], x->p99_ns))
        return;
    if (x->p99_ns < x->with_ns)
        printf("\n  without the first of these, p99 would be %s (%s to %s) instead of %s\n",
               format_duration(then, x->p99_ns), format_duration(low, x->low_ns),
               format_duration(high, x->high_ns), format_duration(now, x->with_ns));
    else
        printf(
            "\n  without the first of these, p99 would stay at %s; the mean of the slow requests "
            "would be %s instead of %s\n",
            format_duration(low, x->with_ns),
            format_duration(then, (uint64_t)(g->slow_mean_ns - c->slow_ns)),
            format_duration(now, (uint64_t)g->slow_mean_ns));
}

/* Returns whether some of what the group's figures say is not known, but estimated. */
static bool is_estimated(const struct request_group *g)
{
    for (size_t i = 0; i < g->causes.len; i++)
        if (g->causes.data[i].share_error > 0)
            return true;
    return false;
}

static int print_group(const struct request_view *v, const struct request_group *g, bool brief)
{
    struct request_without without[CAUSES];
    int known = without_of(v, g, without);
    if (known < 0)
        return known;
    const struct request_name *n = &v->r.names.data[g->name];
    size_t limit = v->options->limit ? v->options->limit : brief ? BRIEF_CAUSES : CAUSES;
    size_t frames = v->options->stacks ? v->options->stacks : FRAMES;
    char slow[24], typical[24];
    _cleanup_(buf_release) struct buf text = BUF(1 << 16);
    put_group_sentence(&text, v, g);
    printf("\n%s\n  %s\n", requests_text(&v->r, n->name), buf_str(&text));
    bool estimated = is_estimated(g);
    printf("\n  %10s  %10s  %8s  %scause, in a request\n", "slow", "typical", "share",
           estimated ? "  error  " : "");
    printf("  %10s  %10s  %8s  %slatency (mean of %zu and of %zu)\n",
           format_duration(slow, (uint64_t)g->slow_mean_ns),
           g->typical.len ? format_duration(typical, (uint64_t)g->typical_mean_ns) : "-", "",
           estimated ? "         " : "", g->slow.len, g->typical.len);
    size_t shown = 0;
    for (size_t i = 0; i < g->causes.len && shown < limit; i++) {
        const struct group_cause *c = &g->causes.data[i];
        if (fabs(c->share) < SHOWN_SHARE && c->slow_ns < SHOWN_SHARE * g->slow_mean_ns)
            continue;
        shown++;
        buf_clear(&text);
        request_put_cause(&text, c);
        put_culprit(&text, c);
        char error[24] = "";
        if (estimated)
            snprintf(error, sizeof(error), "%5.1f %%  ", 100 * c->share_error);
        printf("  %10s  %10s  %6.1f %%  %s%s%s\n", format_duration(slow, (uint64_t)c->slow_ns),
               format_duration(typical, (uint64_t)c->typical_ns), 100 * c->share, error,
               c->uncertain ? "(uncertain) " : "", buf_str(&text));
    }
    if (g->causes.len > shown && !brief)
        printf("  ... and %zu cause%s more, smaller ones (--json)\n", g->causes.len - shown,
               g->causes.len - shown == 1 ? "" : "s");
    if (known > 0)
        print_without(v, g, &without[0]);
    for (size_t i = 0; !brief && i < g->causes.len && i < limit; i++)
        if (g->causes.data[i].share >= STACK_SHARE && !g->causes.data[i].uncertain)
            print_stacks(v, &g->causes.data[i], frames);
    printf("\n  the slowest:");
    for (uint32_t i = 0; i < MIN(g->kept, (uint32_t)EXAMPLES); i++) {
        const struct request *q = slowest(v, g, i);
        char at[24];
        printf("%s %" PRIu64 " (%s, at %s)", i ? "," : "", q->id,
               format_duration(slow, (uint64_t)(q->end_ns - q->start_ns)),
               format_duration(at, (uint64_t)MAX(q->start_ns - v->r.start_ns, INT64_C(0))));
    }
    printf("; `jvmscope requests show ID %s` has details\n", v->path);
    return 0;
}

int requests_slow(struct request_view *v, bool brief)
{
    _cleanup_(groups_release) struct groups all = {0};
    struct group_options o = options_of(v);
    if (v->options->json)
        return groups_json(v);
    int e = collect(v, &o, &all);
    if (e < 0)
        return complain_errno(v->path, "cannot answer", e);
    if (!all.rows.len)
        printf("%s: no request is slow\n", v->path);
    for (size_t i = 0; i < v->r.names.len; i++) {
        if (!v->r.names.data[i].exact) {
            requests_print_not_kept(v);
            break;
        }
    }
    for (size_t i = 0; e == 0 && i < MIN(all.rows.len, (size_t)NAMES); i++)
        e = print_group(v, &all.rows.data[i], brief);
    if (e < 0)
        return complain_errno(v->path, "cannot answer", e);
    if (all.rows.len > NAMES)
        printf("\n%zu name%s more, whose slow requests cost less (--name)\n", all.rows.len - NAMES,
               all.rows.len - NAMES == 1 ? "" : "s");
    return 0;
}

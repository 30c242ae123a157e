/* SPDX-License-Identifier: Apache-2.0 */
/* requests slow: what the slow requests of a name did that the typical ones did not. */
#include "cli/requests/requests.h"

#include "base/parse.h"
#include "cli/losses.h"
#include "cli/threads/threads.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES = 5, BRIEF_CAUSES = 3 };

/* Stacks are printed for causes that explain at least this share of the difference. */
#define STACK_SHARE 0.1
/* Causes below this share get no row. */
#define SHOWN_SHARE 0.002

static bool has_stack(const struct group_cause *c)
{
    return c->share >= STACK_SHARE && !c->uncertain && c->own.frames.n;
}

static bool is_same_stack(const struct request_view *v, const struct frames_ref *a,
                          const struct frames_ref *b)
{
    bool same = a->n == b->n;
    for (uint32_t i = 0; same && i < a->n; i++) {
        uint32_t x, y;
        same = strcmp(frames_ref_method(v->l, a, i, &x), frames_ref_method(v->l, b, i, &y)) == 0 &&
               x == y;
    }
    return same;
}

/* What a thread did where its stack is: it ran, it waited, or neither. */
static const char *did(enum request_cause cause)
{
    return cause == CAUSE_CPU || cause == CAUSE_FAULT            ? "ran"
           : cause == CAUSE_RUNNABLE || cause == CAUSE_THROTTLED ? "were"
                                                                 : "waited";
}

/*
 * Prints the stack of the cause with this number, and of which causes it is, unless one before it
 * has the same stack.
 */
static void print_own_stack(const struct request_view *v, const struct request_group *g,
                            size_t number, size_t causes)
{
    const struct group_cause *c = &g->causes.data[number];
    const char *what = did(c->cause);
    _cleanup_(buf_release) struct buf of = BUF(1 << 16);
    for (size_t i = 0; i < causes; i++) {
        const struct group_cause *o = &g->causes.data[i];
        if (!has_stack(o) || !is_same_stack(v, &o->own.frames, &c->own.frames))
            continue;
        if (i < number)
            return;
        if (strcmp(what, did(o->cause)) != 0)
            what = "were";
        buf_string(&of, i > number ? "; " : "");
        request_put_cause(&of, o);
    }
    printf("\n    where they %s (%s):\n", what, buf_str(&of));
    requests_print_frames(v, &c->own.frames, v->options->stacks, 6);
}

static void print_stacks(const struct request_view *v, const struct request_group *g, size_t causes)
{
    for (size_t i = 0; i < causes && v->options->stacks; i++) {
        const struct group_cause *c = &g->causes.data[i];
        if (has_stack(c))
            print_own_stack(v, g, i, causes);
        if (c->share >= STACK_SHARE && !c->uncertain && c->culprit.thread && c->culprit.frames.n) {
            printf("\n    what thread %s did meanwhile:\n", c->culprit.thread);
            requests_print_frames(v, &c->culprit.frames, v->options->stacks, 6);
        }
    }
}

/*
 * Prints at which latency the slowest hundredth would begin without the first cause. If fewer
 * requests than a hundredth had the cause, that latency would not change, so the change of their
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
    if (x->p99_ns < x->with_ns) {
        printf("\n  without the first of these, p99 would be %s", format_duration(then, x->p99_ns));
        format_duration(low, x->low_ns);
        format_duration(high, x->high_ns);
        if (strcmp(low, then) != 0 || strcmp(high, then) != 0)
            printf(" (%s to %s)", low, high);
        printf(" instead of %s\n", format_duration(now, x->with_ns));
    } else {
        printf(
            "\n  without the first of these, p99 would stay at %s; the mean of the slow requests "
            "would be %s instead of %s\n",
            format_duration(low, x->with_ns),
            format_duration(then, (uint64_t)(g->slow_mean_ns - c->slow_ns)),
            format_duration(now, (uint64_t)g->slow_mean_ns));
    }
}

/* Returns whether some figure of the group is an estimate. */
static bool is_estimated(const struct request_group *g)
{
    for (size_t i = 0; i < g->causes.len; i++)
        if (g->causes.data[i].share_error > 0)
            return true;
    return false;
}

static int print_group(const struct request_view *v, const struct request_group *g, bool brief)
{
    struct request_without without[REQUEST_CAUSES_ANSWERED];
    int known = request_group_without(v, g, without);
    if (known < 0)
        return known;
    const struct request_name *n = &v->r.names.data[g->name];
    size_t limit = v->options->limit ? v->options->limit
                   : brief           ? BRIEF_CAUSES
                                     : REQUEST_CAUSES_ANSWERED;
    char slow[24], typical[24];
    _cleanup_(buf_release) struct buf text = BUF(1 << 16);
    request_put_group(&text, v, g);
    bool has_example = n->example != REQUEST_NONE;
    printf("\n%s%s%s\n  %s\n", requests_text(&v->r, n->name), has_example ? ", for instance " : "",
           has_example ? requests_text(&v->r, n->example) : "", buf_str(&text));
    bool estimated = is_estimated(g);
    printf("\n  %10s  %10s  %8s  %scause, in a request\n", "slow", "typical", "share",
           estimated ? "  error  " : "");
    printf("  %10s  %10s  %8s  %slatency (means of %zu slow and %zu typical requests)\n",
           format_duration(slow, (uint64_t)g->slow_mean_ns),
           g->typical.len ? format_duration(typical, (uint64_t)g->typical_mean_ns) : "-", "",
           estimated ? "         " : "", g->slow.len, g->typical.len);
    size_t shown = 0, small = 0;
    for (size_t i = 0; i < g->causes.len; i++) {
        const struct group_cause *c = &g->causes.data[i];
        bool is_small = fabs(c->share) < SHOWN_SHARE && c->slow_ns < SHOWN_SHARE * g->slow_mean_ns;
        small += is_small;
        if (is_small || shown++ >= limit)
            continue;
        buf_clear(&text);
        request_put_cause(&text, c);
        request_put_culprit(&text, c);
        char error[24] = "";
        if (estimated)
            snprintf(error, sizeof(error), "%5.1f %%  ", 100 * c->share_error);
        printf("  %10s  %10s  %6.1f %%  %s%s%s\n", format_duration(slow, (uint64_t)c->slow_ns),
               g->typical.len ? format_duration(typical, (uint64_t)c->typical_ns) : "-",
               100 * c->share, error, c->uncertain ? "(uncertain) " : "", buf_str(&text));
    }
    if (shown > limit && !brief)
        printf("  ... and %s (--limit)\n", COUNT_TEXT(shown - limit, "more causes"));
    if (small && !brief)
        printf("  ... and %s below %.1f %% each (--json)\n", COUNT_TEXT(small, "more causes"),
               100 * SHOWN_SHARE);
    buf_clear(&text);
    if (request_put_hidden(&text, g))
        printf("  %s\n", buf_str(&text));
    if (shown)
        puts(g->typical.len ? "  share: of the difference of the two latencies; negative where a "
                              "slow request took less"
                            : "  share: of the latency, because no request is typical");
    if (known > 0)
        print_without(v, g, &without[0]);
    if (!brief)
        print_stacks(v, g, MIN((size_t)g->causes.len, limit));
    printf("\n  the slowest:");
    for (uint32_t i = 0; i < MIN(g->kept, (uint32_t)REQUEST_EXAMPLES); i++) {
        const struct request *q = request_slowest(v, g, i);
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
    _cleanup_(request_groups_release) struct request_groups all = {0};
    if (v->options->json)
        return requests_print_json(v, "groups", requests_groups_json);
    int e = request_groups_collect(v, &all);
    if (e < 0)
        return complain_errno(v->path, "cannot answer", e);
    if (!all.rows.len)
        printf("%s: no request is slow\n", v->path);
    else
        requests_print_cpu_note(v);
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
        printf("\n%s, whose slow requests cost less (--name)\n",
               COUNT_TEXT(all.rows.len - NAMES, "more names"));
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Divides the time that a thread had no processor, or waited for pages of memory, among the
 * requests that it worked on meanwhile.
 *
 * The agent records how long that was during a run, but not when (doc/format.md, jvmscope.Preempted
 * and jvmscope.PageFaults), and a busy thread may serve hundreds of requests in one run. A thread
 * loses its processor for milliseconds at once, so a few of these requests lost all of this time,
 * and they took longer than the others of their name. Such a request therefore gets the time by
 * which it exceeds the median of its name first, and what remains is spread evenly over the run.
 */
#include "analysis/request_ledger_private.h"

#include <errno.h>
#include <stdlib.h>

static int by_thread(const void *a, const void *b)
{
    const struct request_excess *x = a, *y = b;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    /* an enclosing request comes before those in it */
    return x->start != y->start ? (x->start < y->start ? -1 : 1)
                                : (x->end < y->end) - (x->end > y->end);
}

/* Returns the delay whose run contains a request, or SIZE_MAX. */
static size_t delay_around(const struct timeline *t, const struct request_excess *x)
{
    size_t i = graph_delay_after(t, x->thread, x->start);
    return i < t->n_delays && t->delays[i].thread == x->thread &&
                   t->delays[i].start_ns <= x->start && x->end <= t->delays[i].end_ns
               ? i
               : SIZE_MAX;
}

/* Returns whether one thread did all of a request's work. */
static bool is_of_one_thread(const struct requests *r, const struct request *q)
{
    const struct request_work *w = q->works ? &r->works.data[q->first_work] : NULL;
    return q->end_thread == q->thread &&
           (!w || (q->works == 1 && w->thread == q->thread && w->start_ns <= q->start_ns &&
                   w->end_ns >= q->end_ns));
}

int ledger_index_excesses(struct request_ledger *l)
{
    const struct requests *r = l->r;
    const struct timeline *t = l->t;
    _cleanup_free_ uint64_t *medians = calloc(r->names.len + 1, sizeof(*medians));
    VEC(struct request_excess) all = {0};
    int e = 0;
    l->excess_sums = calloc(t->n_delays + 1, sizeof(*l->excess_sums));
    if (!medians || !l->excess_sums)
        return -ENOMEM;
    if (!t->n_delays)
        return 0;
    for (size_t i = 0; i < r->names.len; i++)
        medians[i] = request_quantile(r, &r->names.data[i], 0.5);
    for (size_t i = 0; e == 0 && i < r->list.len; i++) {
        const struct request *q = &r->list.data[i];
        struct request_excess x = {.thread = ledger_thread(l, q->thread),
                                   .start = ledger_since_origin(l, q->start_ns),
                                   .end = ledger_since_origin(l, q->end_ns)};
        if (!is_of_one_thread(r, q) || x.thread == TL_NONE || x.start >= x.end)
            continue;
        uint64_t median = medians[q->name], ns = x.end - x.start;
        x.ns = ns > median ? ns - median : 0;
        e = vec_push(&all, x);
    }
    vec_sort(&all, by_thread);
    const struct request_excess *outer = NULL;
    for (size_t i = 0; e == 0 && i < all.len; i++) {
        const struct request_excess *x = &all.data[i];
        if (outer && outer->thread == x->thread && x->start < outer->end)
            continue;
        outer = x;
        size_t delay = x->ns ? delay_around(t, x) : SIZE_MAX;
        if (delay == SIZE_MAX)
            continue;
        l->excess_sums[delay] += (double)x->ns;
        e = vec_push(&l->excesses, *x);
    }
    vec_release(&all);
    return e;
}

/* Returns the first request with an excess that ends after a time on a thread. */
static size_t excess_after(const struct request_ledger *l, uint32_t thread, uint64_t time)
{
    size_t low = 0, high = l->excesses.len;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const struct request_excess *x = &l->excesses.data[mid];
        if (x->thread < thread || (x->thread == thread && x->end <= time))
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* Returns how much of the excess of requests falls between two times of a thread. */
static double excess_between(const struct request_ledger *l, uint32_t thread, uint64_t start,
                             uint64_t end)
{
    double ns = 0;
    for (size_t i = excess_after(l, thread, start);
         i < l->excesses.len && l->excesses.data[i].thread == thread &&
         l->excesses.data[i].start < end;
         i++) {
        const struct request_excess *x = &l->excesses.data[i];
        uint64_t from = MAX(start, x->start), to = MIN(end, x->end);
        ns += (double)x->ns * (double)(to - from) / (double)(x->end - x->start);
    }
    return ns;
}

uint64_t ledger_delayed(const struct request_ledger *l, uint32_t thread, uint64_t start,
                        uint64_t end, struct delay_parts *ret)
{
    const struct timeline *t = l->t;
    double ns = 0, throttled = 0, fault = 0;
    for (size_t i = graph_delay_after(t, thread, start);
         i < t->n_delays && t->delays[i].thread == thread && t->delays[i].start_ns < end; i++) {
        const struct tl_delay *d = &t->delays[i];
        uint64_t from = MAX(start, d->start_ns), to = MIN(end, d->end_ns);
        double all = (double)d->ns + (double)d->fault_ns;
        if (d->end_ns <= d->start_ns || all <= 0)
            continue;
        double run = (double)(d->end_ns - d->start_ns);
        double given = MIN(l->excess_sums[i], all), own = 0;
        if (given > 0)
            own = excess_between(l, thread, from, to) * given / l->excess_sums[i];
        if (run > given)
            own += (all - given) * MAX((double)(to - from) - own, 0.0) / (run - given);
        ns += own;
        throttled += 1000.0 * d->throttled_us * own / all;
        fault += (double)d->fault_ns * own / all;
    }
    ns = MIN(ns, (double)(end - start));
    ret->fault = (uint64_t)MIN(fault, ns);
    ret->throttled = (uint64_t)MIN(throttled, ns - (double)ret->fault);
    return (uint64_t)ns;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Finds requests, and what threads did at a time, in what requests_order has sorted. */
#include "profile/requests_private.h"

#include "base/latency.h"

#include <stdlib.h>

/* the number of sampled requests above a percentile from which on it is good enough */
enum { ABOVE_LEAST = 10 };

int requests_threads_by_id(const void *a, const void *b)
{
    return ORDER(((const struct request_thread *)a)->id, ((const struct request_thread *)b)->id);
}

const char *request_name_of(const struct requests *r, const struct request *q)
{
    return requests_text(r, r->names.data[q->name].name);
}

const char *requests_thread(const struct requests *r, uint64_t id)
{
    struct request_thread key = {.id = id};
    const struct request_thread *t = r->threads.len ? bsearch(&key, r->threads.data, r->threads.len,
                                                              sizeof(key), requests_threads_by_id)
                                                    : NULL;
    return t ? requests_text(r, t->name) : "";
}

uint32_t requests_samples_of(const struct requests *r, int64_t time_ns)
{
    uint32_t one_of = 1;
    for (size_t i = 0; i < r->thinnings.len && r->thinnings.data[i].time_ns <= time_ns; i++)
        if (r->thinnings.data[i].kind == THIN_SAMPLES)
            one_of = r->thinnings.data[i].one_of;
    return one_of;
}

bool requests_lack_waits(const struct requests *r, int64_t from_ns, int64_t to_ns)
{
    bool lacks[THIN_KINDS] = {false}, within = false;
    for (size_t i = 0; i < r->thinnings.len && r->thinnings.data[i].time_ns <= to_ns; i++) {
        const struct request_thinning *t = &r->thinnings.data[i];
        lacks[t->kind] = t->one_of > 1;
        within |= t->time_ns > from_ns && t->kind != THIN_SAMPLES && t->one_of > 1;
        if (t->time_ns <= from_ns)
            within = lacks[THIN_WAITS] || lacks[THIN_PARKS];
    }
    return within;
}

/* Returns the number of requests in a share of them, at least one. */
static uint64_t rank_of(double share, uint64_t n)
{
    double exact = share * (double)n;
    uint64_t rank = (uint64_t)exact;
    rank += (double)rank < exact - 1e-9;
    return MIN(MAX(rank, UINT64_C(1)), n);
}

/* Returns the number of requests in the histogram that quantiles come from; 0: there is none. */
static uint64_t in_histogram(const struct request_name *n)
{
    uint64_t all = 0;
    for (size_t i = 0; n->exact && i < n->histogram.len; i++)
        all += n->histogram.data[i].count;
    return all != n->count ? all : 0;
}

bool request_quantile_is_bound(const struct request_name *n, uint64_t ns)
{
    return latency_is_bound(ns) && in_histogram(n);
}

uint64_t request_quantile(const struct requests *r, const struct request_name *n, double share)
{
    uint64_t all = in_histogram(n), seen = 0;
    if (all) {
        uint64_t rank = rank_of(share, all);
        for (size_t i = 0; i < n->histogram.len; i++) {
            uint32_t bucket = n->histogram.data[i].bucket;
            seen += n->histogram.data[i].count;
            if (seen >= rank)
                return MIN(latency_of_bucket(bucket), n->max_ns ? n->max_ns : UINT64_MAX);
        }
        return n->max_ns;
    }
    const struct request *q = NULL;
    double weights = 0, upto = 0;
    for (uint32_t i = 0; i < n->count; i++)
        weights += (double)r->list.data[r->by_name.data[n->first + i]].weight;
    for (uint32_t i = 0; i < n->count && (!q || upto < share * weights - 1e-6); i++) {
        q = &r->list.data[r->by_name.data[n->first + i]];
        upto += (double)q->weight;
    }
    return q ? request_latency(q) : 0;
}

bool requests_are_some(const struct requests *r, const struct request_name *n)
{
    return !n->exact && r->not_kept > 0;
}

bool request_quantile_is_uncertain(const struct requests *r, const struct request_name *n,
                                   double share)
{
    double weights = 0;
    if (!requests_are_some(r, n) || (double)n->sampled * (1 - share) >= ABOVE_LEAST)
        return false;
    for (uint32_t i = 0; i < n->count; i++)
        weights += (double)r->list.data[r->by_name.data[n->first + i]].weight;
    /* of a rare name perhaps all requests were kept */
    return n->sampled < n->count || weights > (double)n->count + 0.5;
}

size_t requests_sample_at(const struct requests *r, uint64_t thread, int64_t time_ns)
{
    return first_sample(r->samples.data, r->samples.len, thread, time_ns);
}

size_t requests_context_from(const struct requests *r, uint64_t thread, int64_t time_ns)
{
    return first_context(r->contexts.data, r->contexts.len, thread, time_ns);
}

const struct request_context *requests_context_at(const struct requests *r, uint64_t thread,
                                                  int64_t time_ns)
{
    size_t after = requests_context_from(r, thread, time_ns + 1);
    const struct request_context *c = after ? &r->contexts.data[after - 1] : NULL;
    return c && c->thread == thread ? c : NULL;
}

size_t requests_work_at(const struct requests *r, uint64_t thread, int64_t time_ns)
{
    size_t low = 0, high = r->by_thread.len;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const struct request_work *w = &r->works.data[r->by_thread.data[mid]];
        if (w->thread < thread || (w->thread == thread && w->start_ns < time_ns))
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

size_t requests_span_at(const struct requests *r, uint64_t thread, int64_t time_ns)
{
    return first_span(r->spans.data, r->spans.len, thread, time_ns);
}

const struct request *requests_find(const struct requests *r, uint64_t id)
{
    const uint64_t *at = map_get(&r->ids, id);
    return at ? &r->list.data[*at] : NULL;
}

void requests_release(struct requests *r)
{
    for (size_t i = 0; i < r->names.len; i++)
        vec_release(&r->names.data[i].histogram);
    vec_release(&r->list);
    vec_release(&r->by_name);
    vec_release(&r->works);
    vec_release(&r->by_thread);
    vec_release(&r->children);
    vec_release(&r->names);
    vec_release(&r->samples);
    vec_release(&r->thinnings);
    vec_release(&r->spans);
    vec_release(&r->allocations);
    vec_release(&r->contexts);
    vec_release(&r->stacks);
    vec_release(&r->frames);
    vec_release(&r->threads);
    map_release(&r->ids);
    strpool_release(&r->strings);
    *r = (struct requests){0};
}

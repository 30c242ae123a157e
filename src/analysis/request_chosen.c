/* SPDX-License-Identifier: Apache-2.0 */
/* Which requests of a name are slow, and which are typical. */
#include "analysis/request_groups.h"

#include "base/latency.h"

#include <errno.h>

/*
 * If at least this many slow requests have a weight, those without one are left out of the means.
 */
enum { SAMPLED_LEAST = 30 };

/* Sets the latency from which requests are slow, and the number of slow requests, kept or not. */
static void limits(const struct requests *r, const struct request_name *n, uint32_t fastest,
                   struct request_group *g)
{
    g->limit_ns = request_latency(&r->list.data[fastest]);
    g->all = g->kept;
    if (!n->exact || n->all == n->count)
        return;
    uint32_t bucket = latency_bucket(g->limit_ns);
    uint64_t seen = 0;
    for (size_t i = 0; i < n->histogram.len; i++)
        seen += n->histogram.data[i].bucket >= bucket ? n->histogram.data[i].count : 0;
    g->limit_ns = latency_least_ns(bucket);
    g->all = MAX(seen, g->all);
}

int request_choose(const struct requests *r, uint32_t name, const struct group_options *o,
                   struct request_group *g)
{
    const struct request_name *n = &r->names.data[name];
    const uint32_t *list = vec_at(&r->by_name, n->first);
    uint32_t slow = n->count, from = n->count / 4, to = n->count - n->count / 4;
    if (o->over_ns) {
        while (slow > 0 && request_latency(&r->list.data[list[slow - 1]]) > o->over_ns)
            slow--;
    } else {
        double all = (double)(n->exact ? n->all : n->count);
        uint64_t wanted = (uint64_t)(o->share * all);
        wanted += (double)wanted < o->share * all - 1e-9;
        /*
         * Some requests were not kept. The threshold follows from the histogram of all requests,
         * not from those that were kept.
         */
        uint64_t bucket = n->exact ? latency_bucket(request_quantile(r, n, 1 - o->share)) : 0;
        /* The histogram cannot distinguish requests in its first bucket, so these are not slow. */
        if (n->exact && n->all > n->count)
            bucket = MAX(bucket, 1);
        uint64_t least = latency_least_ns((uint32_t)bucket);
        g->wanted = wanted;
        /*
         * All requests that were kept and are at least as slow as the bucket represent the slow
         * ones; if some were left out, the rest would stand for too many.
         */
        bool every = n->exact && n->all > n->count;
        while (slow > 0 && (every || wanted > 0) &&
               request_latency(&r->list.data[list[slow - 1]]) >= least) {
            slow--;
            wanted -= wanted > 0;
        }
    }
    if (n->exact) {
        uint64_t low = latency_least_ns(latency_bucket(request_quantile(r, n, 0.25))),
                 high = latency_least_ns(latency_bucket(request_quantile(r, n, 0.75)) + 1);
        for (from = 0; from < n->count && request_latency(&r->list.data[list[from]]) < low;)
            from++;
        for (to = from; to < n->count && request_latency(&r->list.data[list[to]]) < high;)
            to++;
    }
    uint32_t sampled = 0;
    for (uint32_t i = slow; i < n->count; i++)
        sampled += r->list.data[list[i]].weight > 0;
    /*
     * The slowest alone would not represent all slow requests, and a few of the sample would give a
     * poor estimate.
     */
    g->equal = n->count == n->all || sampled < SAMPLED_LEAST;
    int e = 0;
    for (uint32_t i = slow; e == 0 && i < n->count; i++)
        if (g->equal || r->list.data[list[i]].weight > 0)
            e = vec_push(&g->slow, list[i]);
    for (uint32_t i = from; e == 0 && i < MIN(to, slow); i++)
        if (r->list.data[list[i]].weight > 0)
            e = vec_push(&g->typical, list[i]);
    g->kept = n->count - slow;
    if (g->kept)
        limits(r, n, list[slow], g);
    return e ? e : g->slow.len ? 0 : -ENOENT;
}

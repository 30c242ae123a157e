/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts what was read of a recording into order: requests by their start, names by their time, works
 * and children by request, everything else by thread and time.
 */
#include "profile/requests_private.h"

#include "base/latency.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int by_start(const void *a, const void *b)
{
    const struct request *x = a, *y = b;
    int by = ORDER(x->start_ns, y->start_ns);
    return by ? by : ORDER(x->id, y->id);
}

static int works_of_requests(const void *a, const void *b)
{
    const struct request_work *x = a, *y = b;
    int by = ORDER(x->owner, y->owner);
    by = by ? by : ORDER(x->start_ns, y->start_ns);
    return by ? by : ORDER(y->end_ns, x->end_ns);
}

static int children_of_requests(const void *a, const void *b)
{
    const struct request_child *x = a, *y = b;
    int by = ORDER(x->request, y->request);
    return by ? by : ORDER(x->start_ns, y->start_ns);
}

static int numbers_of_threads(const void *a, const void *b, void *arg)
{
    const struct requests *r = arg;
    const struct request_work *x = &r->works.data[*(const uint32_t *)a],
                              *y = &r->works.data[*(const uint32_t *)b];
    int by = ORDER(x->thread, y->thread);
    by = by ? by : ORDER(x->start_ns, y->start_ns);
    return by ? by : ORDER(y->end_ns, x->end_ns);
}

static int by_latency(const void *a, const void *b, void *arg)
{
    const struct requests *r = arg;
    const struct request *x = &r->list.data[*(const uint32_t *)a],
                         *y = &r->list.data[*(const uint32_t *)b];
    int by = ORDER(x->name, y->name);
    by = by ? by : ORDER(request_latency(x), request_latency(y));
    return by ? by : ORDER(x->start_ns, y->start_ns);
}

static int names_by_time(const void *a, const void *b, void *arg)
{
    const struct requests *r = arg;
    const struct request_name *x = &r->names.data[*(const uint32_t *)a],
                              *y = &r->names.data[*(const uint32_t *)b];
    int by = ORDER(y->total_ns, x->total_ns);
    return by ? by : strcmp(requests_text(r, x->name), requests_text(r, y->name));
}

/* Sorts the works of the requests that exist, and assigns each to its request. */
static int assign_works(struct requests *r)
{
    size_t kept = 0;
    for (size_t i = 0; i < r->works.len; i++) {
        const uint64_t *at = map_get(&r->ids, r->works.data[i].request);
        r->works.data[i].owner = at ? (uint32_t)*at : REQUEST_NONE;
    }
    vec_sort(&r->works, works_of_requests);
    for (; kept < r->works.len && r->works.data[kept].owner != REQUEST_NONE; kept++) {
        struct request *q = &r->list.data[r->works.data[kept].owner];
        if (q->works++ == 0)
            q->first_work = (uint32_t)kept;
    }
    int e = vec_extend(&r->by_thread, r->works.len);
    for (size_t i = 0; e == 0 && i < r->works.len; i++)
        r->by_thread.data[i] = (uint32_t)i;
    if (e == 0 && r->works.len)
        qsort_r(r->by_thread.data, r->works.len, sizeof(uint32_t), numbers_of_threads, r);
    return e;
}

static void assign_children(struct requests *r)
{
    vec_sort(&r->children, children_of_requests);
    for (size_t i = 0; i < r->children.len; i++) {
        const uint64_t *at = map_get(&r->ids, r->children.data[i].request);
        struct request *q = at ? &r->list.data[*at] : NULL;
        if (q && q->children++ == 0)
            q->first_child = (uint32_t)i;
    }
}

/*
 * Drops totals that are older than the last requests. Totals are saved every few seconds, so those
 * of a program that was killed may be too old; its requests are then used instead.
 */
static void drop_old_totals(struct requests *r)
{
    for (size_t i = 0; i < r->names.len; i++) {
        struct request_name *n = &r->names.data[i];
        if (!n->exact || n->count <= n->all)
            continue;
        n->exact = false;
        n->all = n->errors = n->total_ns = n->max_ns = 0;
        vec_clear(&n->histogram);
    }
}

/* Sorts names by their time, and the requests of each name. */
static int order_names(struct requests *r)
{
    uint32_t *order = calloc(r->names.len + 1, sizeof(*order)),
             *place = calloc(r->names.len + 1, sizeof(*place));
    __typeof__(r->names) names = {0};
    int e = order && place ? vec_extend(&names, r->names.len) : -ENOMEM;
    for (uint32_t i = 0; i < r->list.len && e == 0; i++) {
        struct request_name *n = &r->names.data[r->list.data[i].name];
        n->count++;
        n->sampled += !r->list.data[i].beyond;
    }
    drop_old_totals(r);
    for (uint32_t i = 0; i < r->list.len && e == 0; i++) {
        struct request *q = &r->list.data[i];
        struct request_name *n = &r->names.data[q->name];
        if (n->exact)
            continue;
        n->all++;
        n->errors += q->status >= 500 || q->exception != REQUEST_NONE;
        n->total_ns += request_latency(q);
        n->max_ns = MAX(n->max_ns, request_latency(q));
    }
    for (uint32_t i = 0; i < r->names.len && e == 0; i++)
        order[i] = i;
    if (e == 0 && r->names.len)
        qsort_r(order, r->names.len, sizeof(*order), names_by_time, r);
    for (uint32_t i = 0; i < r->names.len && e == 0; i++) {
        names.data[i] = r->names.data[order[i]];
        place[order[i]] = i;
    }
    if (e == 0) {
        vec_release(&r->names);
        memcpy(&r->names, &names, sizeof(names));
        e = vec_extend(&r->by_name, r->list.len);
    } else {
        vec_release(&names);
    }
    for (uint32_t i = 0; i < r->list.len && e == 0; i++) {
        r->list.data[i].name = place[r->list.data[i].name];
        r->by_name.data[i] = i;
    }
    if (e == 0 && r->list.len)
        qsort_r(r->by_name.data, r->list.len, sizeof(uint32_t), by_latency, r);
    for (uint32_t i = (uint32_t)r->list.len; i-- > 0 && e == 0;)
        r->names.data[r->list.data[r->by_name.data[i]].name].first = i;
    free(order);
    free(place);
    return e;
}

/* ---- how many requests each one stands for ---- */

/* If the random sample has at least this many requests of about a latency, only these are used. */
enum { SAMPLED_LEAST = 30 };

/* Requests of about the same latency. */
struct stratum {
    uint32_t first, end; /* in by_name */
    uint32_t sampled;    /* number of requests that belong to the random sample */
    uint64_t all;        /* number of requests in the histogram */
    uint32_t bucket;     /* its first bucket */
    uint32_t number;     /* from 0, for each name */
};

/*
 * Gives weights to the requests of a stratum, which add up to the number in the histogram. A
 * request that was chosen with certainty stands only for itself; those that were chosen by chance
 * stand for the rest.
 */
static void weigh_stratum(struct requests *r, const struct stratum *s)
{
    bool some = s->all > s->end - s->first, by_sample = s->sampled >= SAMPLED_LEAST && some;
    double sum = 0, certain = 0;
    for (uint32_t i = s->first; i < s->end; i++) {
        struct request *q = &r->list.data[r->by_name.data[i]];
        q->stratum = s->number;
        q->weight = by_sample && q->beyond ? 0 : some ? q->one_of : 1;
        *(q->weight > 1 ? &sum : &certain) += (double)q->weight;
    }
    bool apart = sum > 0 && (double)s->all > certain;
    double factor = apart ? ((double)s->all - certain) / sum : (double)s->all / (sum + certain);
    for (uint32_t i = s->first; i < s->end; i++) {
        float *weight = &r->list.data[r->by_name.data[i]].weight;
        *weight *= apart && *weight <= 1 ? 1 : (float)factor;
    }
}

/* Adds the requests of a name that follow in by_name and are in this bucket or a faster one. */
static void add_bucket(const struct requests *r, const struct request_name *n,
                       const struct request_count *c, struct stratum *s)
{
    for (; s->end < n->first + n->count; s->end++) {
        const struct request *q = &r->list.data[r->by_name.data[s->end]];
        if (latency_bucket(request_latency(q)) > c->bucket)
            break;
        s->sampled += !q->beyond;
    }
    s->all += c->count;
}

/* Returns whether a bucket is too far from the first one of a stratum that has requests. */
static bool is_far(const struct stratum *s, uint32_t bucket)
{
    return s->end > s->first && latency_least_ns(bucket) / 5 > latency_least_ns(s->bucket) / 4;
}

/*
 * A request stands for those from which it was chosen (Horvitz and Thompson's estimator). The
 * histogram, which has all requests, corrects for chance and for the slowest requests, which are
 * all kept: it is divided into strata of neighbouring buckets, and the requests of a stratum that
 * were kept together stand for all of it (post-stratification). These are the requests of the
 * random sample if there are enough; otherwise those that were kept for their latency as well.
 */
static void weigh_name(struct requests *r, const struct request_name *n)
{
    struct stratum last = {n->first, n->first, 0, 0, 0, 0}, s = last;
    if (!n->exact || n->all == n->count) {
        for (uint32_t i = n->first; i < n->first + n->count; i++) {
            struct request *q = &r->list.data[r->by_name.data[i]];
            q->weight = n->all == n->count && n->exact ? 1
                        : q->beyond && n->sampled      ? 0
                                                       : q->one_of;
        }
        return;
    }
    for (size_t i = 0; i < n->histogram.len; i++) {
        const struct request_count *c = &n->histogram.data[i];
        bool enough = s.sampled >= SAMPLED_LEAST || (s.all && s.end - s.first >= s.all);
        if (enough || is_far(&s, c->bucket)) {
            weigh_stratum(r, &s);
            last = s;
            s = (struct stratum){s.end, s.end, 0, 0, 0, s.number + 1};
        }
        s.bucket = s.all ? s.bucket : c->bucket;
        add_bucket(r, n, c, &s);
    }
    if (s.end == s.first) { /* none of the slowest was kept */
        last.all += s.all;
        s = last;
    }
    weigh_stratum(r, &s);
}

/* Finds the first context with a trace in a thread's time; NULL when there is none. */
static const struct request_context *find_trace(const struct requests *r, uint64_t thread,
                                                int64_t start_ns, int64_t end_ns)
{
    for (size_t i = requests_context_from(r, thread, start_ns); i < r->contexts.len; i++) {
        const struct request_context *c = &r->contexts.data[i];
        if (c->thread != thread || c->time_ns >= end_ns)
            return NULL;
        if (c->trace != REQUEST_NONE)
            return c;
    }
    return NULL;
}

/* Gives a request whose caller sent no trace the trace that was published for it. */
static void assign_traces(struct requests *r)
{
    for (size_t i = 0; r->contexts.len && i < r->list.len; i++) {
        struct request *q = &r->list.data[i];
        const struct request_context *c = NULL;
        if (q->trace != REQUEST_NONE)
            continue;
        if (!q->works) /* a request of another recorder */
            c = find_trace(r, q->thread, q->start_ns, q->end_ns);
        for (uint32_t k = 0; k < q->works && !c; k++) {
            const struct request_work *w = &r->works.data[q->first_work + k];
            c = find_trace(r, w->thread, w->start_ns, w->end_ns);
        }
        if (c) {
            q->trace = c->trace;
            q->span = c->span;
        }
    }
}

static int by_time(const void *a, const void *b)
{
    return ORDER(((const struct request_thinning *)a)->time_ns,
                 ((const struct request_thinning *)b)->time_ns);
}

static void order_thinnings(struct requests *r)
{
    uint32_t most = 1;
    vec_sort(&r->thinnings, by_time);
    for (size_t i = 0; i < r->thinnings.len; i++)
        if (r->thinnings.data[i].kind == THIN_SAMPLES)
            most = MAX(most, r->thinnings.data[i].one_of);
    r->gap_ns = r->sample_ns * most;
}

int requests_order(struct requests *r)
{
    int e = 0;
    vec_sort(&r->list, by_start);
    uint64_t last = 0; /* requests of other recorders have no numbers */
    for (size_t i = 0; i < r->list.len; i++)
        last = MAX(last, r->list.data[i].id);
    for (size_t i = 0; i < r->list.len && e == 0; i++)
        r->list.data[i].id = r->list.data[i].id ? r->list.data[i].id : ++last;
    for (size_t i = 0; i < r->list.len && e == 0; i++)
        e = map_put(&r->ids, r->list.data[i].id, i);
    if (e == 0)
        e = assign_works(r);
    if (e == 0)
        e = order_names(r);
    for (size_t i = 0; i < r->names.len && e == 0; i++)
        weigh_name(r, &r->names.data[i]);
    assign_children(r);
    vec_sort(&r->samples, compare_sample);
    order_thinnings(r);
    vec_sort(&r->contexts, compare_context);
    assign_traces(r);
    vec_sort(&r->spans, compare_span);
    vec_sort(&r->allocations, compare_allocation);
    vec_sort(&r->threads, requests_threads_by_id);
    return e;
}

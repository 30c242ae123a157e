/* SPDX-License-Identifier: Apache-2.0 */
#include "export/batch_requests.h"

#include "base/hex.h"

#include <errno.h>

static int compare_works(const void *a, const void *b)
{
    const struct batch_work *x = a, *y = b;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return (x->end_ns < y->end_ns) - (x->end_ns > y->end_ns);
}

static struct wire_link link_of(const struct requests *r, uint32_t trace_text, uint32_t span_text)
{
    struct wire_link link = {0};
    const char *trace = requests_text(r, trace_text), *span = requests_text(r, span_text);
    bool both = hex_read(trace, strlen(trace), link.trace, sizeof(link.trace)) &&
                hex_read(span, strlen(span), link.span, sizeof(link.span));
    return both ? link : (struct wire_link){0};
}

/*
 * Collects the works of requests. Requests of other recorders have none: their thread works for
 * them all the time.
 */
static int collect(struct batch_requests *q)
{
    const struct requests *r = &q->r;
    int e = 0;
    for (uint32_t i = 0; e == 0 && i < r->list.len; i++) {
        const struct request *one = &r->list.data[i];
        e = vec_push(&q->requests, ((struct batch_request){r->names.data[one->name].name,
                                                           link_of(r, one->trace, one->span)}));
        if (e == 0 && !one->works)
            e = vec_push(&q->works,
                         ((struct batch_work){one->thread, one->start_ns, one->end_ns, i, 0}));
        for (uint32_t k = 0; e == 0 && k < one->works; k++) {
            const struct request_work *w = &r->works.data[one->first_work + k];
            e = vec_push(&q->works, ((struct batch_work){w->thread, w->start_ns, w->end_ns, i, 0}));
        }
    }
    return e;
}

static void find_outer(struct batch_requests *q)
{
    for (uint32_t i = 1; i < q->works.len; i++) {
        struct batch_work *w = &q->works.data[i];
        uint32_t at = i;
        while (at && (q->works.data[at - 1].thread != w->thread ||
                      q->works.data[at - 1].end_ns <= w->start_ns))
            at = q->works.data[at - 1].thread == w->thread ? q->works.data[at - 1].outer : 0;
        w->outer = at;
    }
}

int batch_requests_load(struct batch_requests *ret, const char *path, struct buf *why)
{
    if (!requests_any_or_contexts(path))
        return 0;
    int r = requests_load(&ret->r, path, &(struct request_filter){0}, why);
    if (r == 0)
        r = collect(ret);
    if (r < 0)
        return r;
    vec_sort(&ret->works, compare_works);
    find_outer(ret);
    return ret->works.len > 0 || ret->r.contexts.len > 0;
}

void batch_requests_release(struct batch_requests *q)
{
    requests_release(&q->r);
    vec_release(&q->requests);
    vec_release(&q->works);
}

const struct batch_request *batch_requests_at(const struct batch_requests *q, uint64_t thread,
                                              int64_t time_ns)
{
    size_t low = 0, high = q->works.len;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const struct batch_work *w = &q->works.data[mid];
        if (w->thread < thread || (w->thread == thread && w->start_ns <= time_ns))
            low = mid + 1;
        else
            high = mid;
    }
    while (low && q->works.data[low - 1].thread == thread &&
           q->works.data[low - 1].end_ns <= time_ns)
        low = q->works.data[low - 1].outer;
    const struct batch_work *w = low ? &q->works.data[low - 1] : NULL;
    return w && w->thread == thread ? &q->requests.data[w->request] : NULL;
}

struct wire_link batch_requests_link(const struct batch_requests *q, uint64_t thread,
                                     int64_t time_ns, const struct batch_request *request)
{
    const struct request_context *c = requests_context_at(&q->r, thread, time_ns);
    if (c && c->trace != REQUEST_NONE)
        return link_of(&q->r, c->trace, c->span);
    return request ? request->link : (struct wire_link){0};
}

const char *batch_requests_name(const struct batch_requests *q, const struct batch_request *one)
{
    return requests_text(&q->r, one->name);
}

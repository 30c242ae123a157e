/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/request_allocated.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* How deeply requests may be nested; in a damaged recording a request may be inside itself. */
enum { NESTED_MAX = 64 };

/*
 * Adds bytes to the name of a request and to the names of the requests around it, once for each
 * name.
 */
static void add(const struct requests *r, uint32_t owner, uint64_t bytes,
                struct name_allocated *names)
{
    const struct request *q = &r->list.data[owner];
    uint32_t seen[NESTED_MAX], n = 0;
    for (; q && n < NESTED_MAX; q = q->parent ? requests_find(r, q->parent) : NULL) {
        bool again = false;
        for (uint32_t i = 0; i < n; i++)
            again = again || seen[i] == q->name;
        double stands_for = (double)q->weight * (double)bytes;
        if (!again) {
            names[q->name].bytes += stands_for;
            names[q->name].error += stands_for * stands_for; /* the variance, until set_errors */
            names[q->name].samples += stands_for > 0;
        }
        seen[n++] = q->name;
    }
}

/*
 * The number of samples has a Poisson distribution, so a sample more or less changes the estimate
 * by what one stands for.
 */
static int set_errors(const struct requests *r, struct name_allocated *names)
{
    struct weights {
        double sum;
        uint64_t n;
    } *weights = calloc(r->names.len + 1, sizeof(*weights));

    double bytes = 0;
    if (!weights)
        return -ENOMEM;
    for (size_t i = 0; i < r->allocations.len; i++)
        bytes += (double)r->allocations.data[i].bytes / (double)r->allocations.len;
    for (size_t i = 0; i < r->list.len; i++) {
        const struct request *q = &r->list.data[i];
        weights[q->name].sum += (double)q->weight;
        weights[q->name].n += q->weight > 0;
    }
    for (size_t i = 0; i < r->names.len; i++) {
        double one = weights[i].n ? bytes * weights[i].sum / (double)weights[i].n : 0;
        names[i].error = one + 2 * sqrt(names[i].error + one * one);
    }
    free(weights);
    return 0;
}

/*
 * Works of a thread are disjoint or nested, and an enclosing work comes before those inside it. The
 * works that have begun and not ended therefore form a stack.
 */
int request_allocated(const struct requests *r, struct name_allocated **ret)
{
    struct name_allocated *names = calloc(r->names.len + 1, sizeof(*names));
    uint64_t thread = 0;
    VEC(uint32_t) open = {0};
    int e = names ? 0 : -ENOMEM;
    size_t next = 0;
    for (size_t i = 0; e == 0 && i < r->allocations.len; i++) {
        const struct request_allocation *a = &r->allocations.data[i];
        if (i == 0 || a->thread != thread) {
            thread = a->thread;
            next = requests_work_at(r, thread, INT64_MIN);
            open.len = 0;
        }
        for (; e == 0 && next < r->by_thread.len; next++) {
            const struct request_work *w = &r->works.data[r->by_thread.data[next]];
            if (w->thread != thread || w->start_ns > a->time_ns)
                break;
            if (w->owner != REQUEST_NONE && w->end_ns >= a->time_ns)
                e = vec_push(&open, r->by_thread.data[next]);
        }
        while (open.len && r->works.data[open.data[open.len - 1]].end_ns < a->time_ns)
            open.len--;
        if (e == 0 && open.len)
            add(r, r->works.data[open.data[open.len - 1]].owner, a->bytes, names);
    }
    vec_release(&open);
    e = e ? e : set_errors(r, names);
    if (e < 0)
        free(names);
    else
        *ret = names;
    return e;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/monitor_stats.h"
#include "base/map.h"

#include <errno.h>
#include <stdlib.h>

struct table {
    struct hold_table *out;
    /* keyed by class and method; by row and object, or by row and thread */
    struct map rows, members;
};

static bool selected(const struct stats_filter *f, const struct tl_hold *h)
{
    return h->flags & HOLD_EXACT && (!f->objects || f->objects[tl_hold_object(h)]) &&
           h->end > f->from && (!f->to || h->start < f->to);
}

/* Counts a thread or an object (`what`) once per row. */
static int member(struct table *t, uint64_t row, uint32_t what, uint32_t *count)
{
    bool added;
    if (!map_at(&t->members, row << 32 | what, 1, &added))
        return -ENOMEM;
    *count += added;
    return 0;
}

static int add(struct table *t, const struct timeline *tl, const struct stats_filter *f,
               uint32_t thread, const struct hold_read *one)
{
    const struct tl_hold *h = &one->hold;
    uint32_t stack = one->side.stack;
    const struct tl_stack *s = stack == TL_NONE ? NULL : &tl->stacks[stack];
    uint32_t class = tl->objects[tl_hold_object(h)].class;
    uint32_t method = s && s->len ? tl->frames[s->first].method : TL_NONE;
    uint64_t start = h->start, end = h->end;
    uint64_t ns = (f->to ? MIN(end, f->to) : end) - MAX(start, f->from);
    bool added;
    uint64_t *slot = map_at(&t->rows, (uint64_t) class << 32 | method, t->out->rows.len, &added);
    if (!slot)
        return -ENOMEM;
    int r = added ? vec_push(&t->out->rows,
                             ((struct hold_stats){.class = class, .method = method, .min_ns = ns}))
                  : 0;
    if (r < 0)
        return r;
    struct hold_stats *row = &t->out->rows.data[*slot];
    row->count++;
    row->total_ns += ns;
    row->min_ns = MIN(row->min_ns, ns);
    row->max_ns = MAX(row->max_ns, ns);
    r = member(t, *slot << 1, tl_hold_object(h), &row->objects);
    return r < 0 ? r : member(t, *slot << 1 | 1, thread, &row->threads);
}

static int by_total(const void *a, const void *b)
{
    const struct hold_stats *x = a, *y = b;
    if (x->total_ns != y->total_ns)
        return x->total_ns < y->total_ns ? 1 : -1;
    return x->method != y->method ? (x->method > y->method) - (x->method < y->method)
                                  : (x->class > y->class) - (x->class < y->class);
}

int hold_stats(const struct timeline *t, const struct holds *h, const struct stats_filter *f,
               struct hold_table *ret)
{
    struct hold_table out = {0};
    struct table table = {.out = &out};
    int r = 0;
    for (uint32_t thread = 0; r == 0 && thread < t->n_threads; thread++) {
        for (size_t i = 0, n = !f->threads || f->threads[thread] ? hold_count(h, thread) : 0;
             r == 0 && i < n; i++) {
            const struct hold_read one = hold_of(h, thread, i);
            if (selected(f, &one.hold))
                r = add(&table, t, f, thread, &one);
        }
    }
    map_release(&table.rows);
    map_release(&table.members);
    if (r < 0) {
        vec_release(&out.rows);
        return r;
    }
    if (out.rows.len)
        qsort(out.rows.data, out.rows.len, sizeof(*out.rows.data), by_total);
    *ret = out;
    return 0;
}

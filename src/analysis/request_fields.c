/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/request_fields.h"

#include "base/hash.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* At most so many members of sets, and requests for which a thread works at the same time. */
enum { MAX_MEMBERS = 4000000, MAX_AT_ONCE = 1024 };

uint32_t request_column(const struct requests *r, const struct request *q)
{
    double span = (double)MAX(r->end_ns - r->start_ns, INT64_C(1));
    double at = (double)(q->start_ns - r->start_ns) / span * REQUEST_COLUMNS;
    return (uint32_t)MIN(MAX(at, 0.0), REQUEST_COLUMNS - 1.0);
}

uint32_t request_row(const struct request *q)
{
    uint64_t ns = request_latency(q);
    double row = ns < 1000 ? 0 : floor(log10((double)ns / 1000) * REQUEST_ROWS_OF_TEN);
    return (uint32_t)MIN(row, REQUEST_ROWS - 1.0);
}

/* A thread worked for a request of a field. */
struct work {
    uint64_t thread;
    int64_t start_ns, end_ns;
    struct request_field field;
};

struct works {
    VEC(struct work) list;
};

static int by_thread_and_start(const void *a, const void *b)
{
    const struct work *x = a, *y = b;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static int by_field(const void *a, const void *b)
{
    const struct request_field *x = a, *y = b;
    if (x->name != y->name)
        return x->name < y->name ? -1 : 1;
    if (x->column != y->column)
        return x->column < y->column ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

static int collect(struct works *w, const struct requests *r, bool names_only)
{
    int e = 0;
    for (size_t i = 0; e == 0 && i < r->list.len; i++) {
        const struct request *q = &r->list.data[i];
        struct request_field field = {.name = q->name};
        if (!names_only) {
            field.column = request_column(r, q);
            field.row = request_row(q);
        }
        if (!q->works)
            e = vec_push(&w->list, ((struct work){q->thread, q->start_ns, q->end_ns, field}));
        for (uint32_t k = 0; e == 0 && k < q->works; k++) {
            const struct request_work *of = &r->works.data[q->first_work + k];
            e = vec_push(&w->list, ((struct work){of->thread, of->start_ns, of->end_ns, field}));
        }
    }
    vec_sort(&w->list, by_thread_and_start);
    return e;
}

static bool is_set_of(const struct request_fields *f, uint32_t set,
                      const struct request_field *fields, uint32_t n)
{
    const struct request_set *s = &f->sets.data[set];
    return s->count == n && memcmp(&f->members.data[s->first], fields, n * sizeof(*fields)) == 0;
}

/* Returns the number of the set with these members, which are sorted, or a negative errno. */
static int64_t set_of(struct request_fields *f, const struct request_field *fields, uint32_t n)
{
    for (uint64_t key = hash_bytes(fields, n * sizeof(*fields));; key++) {
        bool added;
        uint64_t *slot = map_at(&f->index, key, f->sets.len, &added);
        if (!slot)
            return -ENOMEM;
        if (!added && is_set_of(f, (uint32_t)*slot, fields, n))
            return (int64_t)*slot;
        if (!added)
            continue; /* another set with this hash */
        if (f->members.len + n > MAX_MEMBERS)
            return -E2BIG;
        int64_t number = (int64_t)f->sets.len;
        struct request_set set = {(uint32_t)f->members.len, n};
        for (uint32_t i = 0; i < n; i++) {
            if (vec_push(&f->members, fields[i]) < 0)
                return -ENOMEM;
        }
        return vec_push(&f->sets, set) < 0 ? -ENOMEM : number;
    }
}

/* The requests for which a thread works at a time. */
struct active {
    size_t len;
    struct work works[MAX_AT_ONCE];
    struct request_field fields[MAX_AT_ONCE];
};

/* Adds the time from start to end, in which all of the active works went on. */
static int add_stretch(struct request_fields *f, struct active *a, int64_t start, int64_t end)
{
    uint32_t n = 0;
    for (size_t i = 0; i < a->len; i++)
        a->fields[i] = a->works[i].field;
    if (a->len > 1)
        qsort(a->fields, a->len, sizeof(*a->fields), by_field);
    for (size_t i = 0; i < a->len; i++) {
        if (!n || by_field(&a->fields[n - 1], &a->fields[i]) != 0)
            a->fields[n++] = a->fields[i];
    }
    int64_t set = set_of(f, a->fields, n);
    if (set < 0)
        return (int)set;
    uint64_t thread = a->works[0].thread;
    struct request_stretch *last = f->stretches.len ? vec_end(&f->stretches) - 1 : NULL;
    if (last && last->thread == thread && last->set == set && last->end_ns == start) {
        last->end_ns = end;
        return 0;
    }
    return vec_push(&f->stretches, ((struct request_stretch){thread, start, end, (uint32_t)set}));
}

/* Adds the stretches between *at and `to`, and removes the works that end by then. */
static int advance(struct request_fields *f, struct active *a, int64_t *at, int64_t to)
{
    int e = 0;
    while (e == 0 && a->len && *at < to) {
        int64_t end = to;
        for (size_t i = 0; i < a->len; i++)
            end = MIN(end, a->works[i].end_ns);
        if (end > *at)
            e = add_stretch(f, a, *at, end);
        size_t kept = 0;
        for (size_t i = 0; i < a->len; i++) {
            if (a->works[i].end_ns > end)
                a->works[kept++] = a->works[i];
        }
        a->len = kept;
        *at = MAX(end, *at);
    }
    *at = to;
    return e;
}

static int put_stretches(struct request_fields *f, const struct works *w)
{
    _cleanup_free_ struct active *a = malloc(sizeof(*a));
    int64_t at = 0;
    int e = 0;
    if (!a)
        return -ENOMEM;
    a->len = 0;
    for (size_t i = 0; e == 0 && i < w->list.len; i++) {
        const struct work *next = &w->list.data[i];
        if (a->len && a->works[0].thread != next->thread)
            e = advance(f, a, &at, INT64_MAX);
        if (e == 0)
            e = advance(f, a, &at, next->start_ns);
        if (e < 0 || next->end_ns <= next->start_ns)
            continue;
        at = next->start_ns;
        if (a->len == MAX_AT_ONCE)
            return -E2BIG;
        a->works[a->len++] = *next;
    }
    return e == 0 ? advance(f, a, &at, INT64_MAX) : e;
}

static int init(struct request_fields *ret, const struct requests *r, bool names_only)
{
    struct request_fields f = {.names_only = names_only};
    struct works w = {0};
    int e = collect(&w, r, names_only);
    if (e == 0)
        e = put_stretches(&f, &w);
    vec_release(&w.list);
    if (e < 0)
        request_fields_release(&f);
    else
        *ret = f;
    return e;
}

int request_fields_init(struct request_fields *ret, const struct requests *r)
{
    int e = init(ret, r, false);
    return e == -E2BIG ? init(ret, r, true) : e;
}

uint32_t request_fields_at(const struct request_fields *f, uint64_t thread, int64_t time_ns)
{
    size_t low = 0, high = f->stretches.len;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const struct request_stretch *s = &f->stretches.data[mid];
        if (s->thread < thread || (s->thread == thread && s->end_ns <= time_ns))
            low = mid + 1;
        else
            high = mid;
    }
    const struct request_stretch *s = vec_at(&f->stretches, low);
    return low < f->stretches.len && s->thread == thread && s->start_ns <= time_ns ? s->set
                                                                                   : REQUEST_NONE;
}

void request_fields_release(struct request_fields *f)
{
    vec_release(&f->members);
    vec_release(&f->sets);
    vec_release(&f->stretches);
    map_release(&f->index);
}

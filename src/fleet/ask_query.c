/* SPDX-License-Identifier: Apache-2.0 */
/* Answers where methods with a name run, which methods call them, and at what cost. */
#include "fleet/ask.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A row of the answer: a method in a version of a service, or a caller of a method. */
struct query_row {
    uint32_t method, other; /* other: the service's number, or the caller's label + 1 */
    struct sum self, total;
};

struct query_rows {
    VEC(struct query_row) list;
    struct map of; /* method << 32 | other -> number in list */
};

/* A method in a stack. Repeated frames of it count once, with the caller of the innermost one. */
struct query_hit {
    uint32_t method, caller; /* labels; caller: + 1, 0 for none */
    bool runs;
};

struct query_service {
    const char *service, *version;
    struct sum sum;
};

struct query_range {
    uint32_t first, n; /* in hits */
};

struct querying {
    struct asker *a;
    struct store_read *r;
    struct strpool labels;
    VEC(struct query_service) services;
    struct map service_of; /* series -> number in services */
    /* By the store's number of a stack: 0 unknown, 1 without such a method, else range + 2. */
    VEC(uint32_t) stacks;
    VEC(struct query_range) ranges;
    VEC(struct query_hit) hits;
    struct query_rows places, callers;
    const struct store_block *block; /* the block that is being read */
    struct sum all;
};

static void add_to_sum(struct sum *to, const struct store_block *b, const struct fleet_entry *e)
{
    to->samples += e->count;
    to->weight += e->weight;
    to->timeless += strcmp(b->unit, FLEET_TIMELESS) == 0 ? e->count : 0;
    to->read += sum_is_read(b) ? e->weight : 0;
}

static int add_row(struct query_rows *rows, uint32_t method, uint32_t other, bool runs,
                   const struct store_block *b, const struct fleet_entry *e)
{
    bool added;
    const uint64_t *at = map_at(&rows->of, (uint64_t)method << 32 | other, rows->list.len, &added);
    int r = !at     ? -ENOMEM
            : added ? vec_push(&rows->list, ((struct query_row){.method = method, .other = other}))
                    : 0;
    if (r < 0)
        return r;
    struct query_row *row = &rows->list.data[*at];
    add_to_sum(&row->total, b, e);
    if (runs)
        add_to_sum(&row->self, b, e);
    return 0;
}

static int64_t label_of(struct querying *q, uint32_t frame)
{
    struct store_frame f;
    int e = store_frame(q->a->store, q->r, frame, &f);
    return e < 0 ? e : strpool_add(&q->labels, f.label, strlen(f.label));
}

static bool is_known(const struct querying *q, size_t first, uint32_t method)
{
    for (size_t i = first; i < q->hits.len; i++)
        if (q->hits.data[i].method == method)
            return true;
    return false;
}

/* Finds the requested methods in a stack, from the running one outwards. */
static int search_stack(struct querying *q, uint64_t stack)
{
    struct store_stack path;
    size_t first = q->hits.len;
    int e = store_stack(q->a->store, q->r, stack, &path);
    for (size_t i = e == 0 ? path.depth : 0; i-- > 0 && e == 0;) {
        struct store_frame f;
        e = store_frame(q->a->store, q->r, path.frames[i], &f);
        if (e < 0 || f.kind == FLEET_MARK || !ask_method_matches(q->a, f.label))
            continue;
        int64_t method = label_of(q, path.frames[i]);
        int64_t caller = i ? label_of(q, path.frames[i - 1]) : -1;
        if (method < 0 || (i && caller < 0))
            return -ENOMEM;
        if (!is_known(q, first, (uint32_t)method))
            e = vec_push(&q->hits, ((struct query_hit){(uint32_t)method, (uint32_t)(caller + 1),
                                                       i + 1 == path.depth}));
    }
    size_t n = q->hits.len - first;
    q->stacks.data[stack] = n ? (uint32_t)q->ranges.len + 2 : 1;
    return e < 0 || !n ? e
                       : vec_push(&q->ranges, ((struct query_range){(uint32_t)first, (uint32_t)n}));
}

static int add_entry(struct querying *q, uint32_t service, const struct fleet_entry *entry)
{
    int e = 0;
    if (entry->stack >= q->stacks.len)
        e = vec_extend(&q->stacks, entry->stack + 1 - q->stacks.len);
    if (e == 0 && !q->stacks.data[entry->stack])
        e = search_stack(q, entry->stack);
    if (e < 0 || q->stacks.data[entry->stack] == 1)
        return e;
    const struct query_range *range = &q->ranges.data[q->stacks.data[entry->stack] - 2];
    for (uint32_t i = 0; i < range->n && e == 0; i++) {
        const struct query_hit *hit = &q->hits.data[range->first + i];
        e = add_row(&q->places, hit->method, service, hit->runs, q->block, entry);
        if (e == 0)
            e = add_row(&q->callers, hit->method, hit->caller, hit->runs, q->block, entry);
    }
    return e;
}

/* Called for each series; they are sorted by service and version. */
static int on_series(void *context, const struct store_series *s)
{
    struct querying *q = context;
    struct query_service *last = q->services.len ? &q->services.data[q->services.len - 1] : NULL;
    int e = 0;
    if (!last || strcmp(last->service, s->service) != 0 || strcmp(last->version, s->version) != 0)
        e = vec_push(&q->services,
                     ((struct query_service){.service = s->service, .version = s->version}));
    return e < 0 ? e : map_put(&q->service_of, s->id, q->services.len - 1);
}

static int on_block(void *context, const struct store_block *b)
{
    struct querying *q = context;
    const uint64_t *service = map_get(&q->service_of, b->series->id);
    int e = 0;
    if (!service)
        return 0;
    sum_add_block(&q->services.data[*service].sum, b);
    sum_add_block(&q->all, b);
    q->block = b;
    for (size_t i = 0; i < b->entries->list.len && e == 0; i++)
        e = add_entry(q, (uint32_t)*service, &b->entries->list.data[i]);
    return e;
}

/* Orders rows by cost; those whose cost is not known come last. */
static int compare_rows(const void *left, const void *right, void *least)
{
    const struct query_row *a = left, *b = right;
    bool few = sum_is_few(a->total, *(uint64_t *)least);
    if (few != sum_is_few(b->total, *(uint64_t *)least))
        return few ? 1 : -1;
    if (a->total.weight != b->total.weight)
        return a->total.weight < b->total.weight ? 1 : -1;
    if (a->total.samples != b->total.samples)
        return a->total.samples < b->total.samples ? 1 : -1;
    if (a->method != b->method)
        return a->method < b->method ? -1 : 1;
    return (a->other > b->other) - (a->other < b->other);
}

static void put_row(struct querying *q, const struct query_row *row, uint64_t least)
{
    struct json *j = q->a->j;
    bool weights = ask_counts_weights(q->a->q->metric);
    json_key_string(j, "method", strpool_get(&q->labels, row->method).data);
    json_key_u64(j, "self", weights ? row->self.weight : row->self.samples);
    json_key_u64(j, "total", weights ? row->total.weight : row->total.samples);
    if (row->self.weight && sum_is_few(row->self, least))
        json_key_bool(j, "few_readings", true);
    if (sum_is_few(row->total, least))
        json_key_bool(j, "few_readings_of_total", true);
    ask_put_sums(j, q->a->q->metric, row->total);
    ask_put_cost(q->a, row->total);
}

static double share_of(const struct sum *part, const struct sum *whole, bool weights)
{
    uint64_t of = weights ? whole->weight : whole->samples;
    return of ? (double)(weights ? part->weight : part->samples) / (double)of : 0;
}

static void put_rows(struct querying *q, const char *key, struct query_rows *rows, bool places)
{
    struct json *j = q->a->j;
    uint64_t limit = q->a->q->limit;
    bool weights = ask_counts_weights(q->a->q->metric);
    uint64_t least = sum_least(q->all);
    if (rows->list.len)
        qsort_r(rows->list.data, rows->list.len, sizeof(*rows->list.data), compare_rows, &least);
    json_key_array(j, key);
    for (size_t i = 0; i < rows->list.len && (!limit || i < limit); i++) {
        const struct query_row *row = &rows->list.data[i];
        json_begin_object(j);
        if (places) {
            const struct query_service *s = &q->services.data[row->other];
            json_key_string(j, "service", s->service);
            json_key_string(j, "version", s->version);
            json_key_double(j, "share", share_of(&row->total, &s->sum, weights));
        } else {
            json_key_string(j, "caller",
                            row->other ? strpool_get(&q->labels, row->other - 1).data : "");
        }
        put_row(q, row, least);
        json_end_object(j);
    }
    json_end_array(j);
}

static void querying_release(struct querying *q)
{
    strpool_release(&q->labels);
    vec_release(&q->services);
    map_release(&q->service_of);
    vec_release(&q->stacks);
    vec_release(&q->ranges);
    vec_release(&q->hits);
    vec_release(&q->places.list);
    map_release(&q->places.of);
    vec_release(&q->callers.list);
    map_release(&q->callers.of);
}

int ask_query(struct asker *a)
{
    _cleanup_(querying_release) struct querying q = {.a = a};
    if (!a->q->method) {
        buf_string(a->why, "method: missing");
        return -EINVAL;
    }
    struct fleet_choice choice = a->q->choice;
    choice.by_program = true;
    int e = store_begin(a->store, &choice, &q.r, a->why);
    if (e == 0)
        e = store_each_series(a->store, q.r, on_series, &q);
    if (e == 0)
        e = store_each_block(a->store, q.r, true, on_block, &q);
    if (e == 0) {
        a->found = q.places.list.len > 0;
        json_key_string(a->j, "metric", a->q->metric);
        ask_put_sums(a->j, a->q->metric, q.all);
        put_rows(&q, "services", &q.places, true);
        put_rows(&q, "callers", &q.callers, false);
    }
    store_end(a->store, q.r);
    return e;
}

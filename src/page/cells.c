/* SPDX-License-Identifier: Apache-2.0 */
#include "page/cells.h"

#include "page/data.h"
#include "profile/load.h"
#include "profile/vm_time.h"

#include <errno.h>

void page_put_bytes(struct json *j, const struct buf *bytes, struct buf *blob)
{
    if (!blob) {
        page_json_base64(j, bytes);
        return;
    }
    json_begin_array(j);
    json_u64(j, blob->len);
    json_u64(j, bytes->len);
    json_end_array(j);
    buf_bytes(blob, bytes->data, bytes->len);
}

static int64_t set_number(struct page_sets *s, uint32_t set)
{
    if (!s->number[set]) {
        if (vec_push(&s->used, set) < 0)
            return -ENOMEM;
        s->number[set] = (uint32_t)s->used.len;
    }
    return (int64_t)s->number[set] - 1;
}

/* bucket: a part of time or, for cells by request, the number of a set. */
struct cell {
    uint32_t bucket, thread, node;
    uint64_t weight;
};

struct cells {
    const struct page_tree *tree;
    const struct profile *tree_of;
    /* If not NULL, the lowest bit of the node marks cells whose samples are not in this profile. */
    const struct profile_view *plain;
    uint64_t from_ns, bucket_ns;
    bool is_merged;                /* all threads are merged into one */
    VEC(struct cell) list, sorted; /* sorted: room for merging */
    /* For cells by request: */
    struct page_sets *sets;
    const uint32_t *kept; /* by node: the node that stands for it; NULL: each for itself */
};

/*
 * Returns true for a sample that `report` does not show by default: of a thread of the VM, or of
 * one that is idle.
 */
static bool is_hidden(const struct profile_view *plain, const struct profile_sample *s)
{
    return plain->profile->threads.data[s->thread].id & VM_TIME_THREAD ||
           !profile_view_passes(plain, s);
}

enum digit_of { BY_NODE, BY_THREAD, BY_BUCKET, FIELDS };

static uint32_t field_of(const struct cell *cell, enum digit_of field)
{
    return field == BY_NODE ? cell->node : field == BY_THREAD ? cell->thread : cell->bucket;
}

/* Sorts the list into the other one by a digit of a field. Equal elements keep their order. */
static void sort_by_digit(struct cells *c, enum digit_of field, unsigned shift)
{
    enum { DIGITS = 2048 };

    size_t begin[DIGITS + 1] = {0};
    for (size_t i = 0; i < c->list.len; i++)
        begin[(field_of(&c->list.data[i], field) >> shift & (DIGITS - 1)) + 1]++;
    for (size_t i = 0; i < DIGITS; i++)
        begin[i + 1] += begin[i];
    for (size_t i = 0; i < c->list.len; i++)
        c->sorted.data[begin[field_of(&c->list.data[i], field) >> shift & (DIGITS - 1)]++] =
            c->list.data[i];
    struct cell *list = c->list.data;
    c->list.data = c->sorted.data;
    c->sorted.data = list;
}

/* Sorts the cells by time, thread and node, and merges cells that agree in these. */
static int merge_cells(struct cells *c)
{
    enum { DIGIT_BITS = 11 };

    size_t n = 0;
    vec_release(&c->sorted);
    if (vec_reserve(&c->list, c->list.len + 1) < 0 || vec_reserve(&c->sorted, c->list.cap) < 0)
        return -ENOMEM;
    c->list.cap = c->sorted.cap = MIN(c->list.cap, c->sorted.cap); /* the lists change places */
    for (int field = 0; field < FIELDS; field++) {
        uint32_t most = 0;
        for (size_t i = 0; i < c->list.len; i++)
            most = MAX(most, field_of(&c->list.data[i], (enum digit_of)field));
        for (unsigned shift = 0; shift < 32 && most >> shift; shift += DIGIT_BITS)
            sort_by_digit(c, (enum digit_of)field, shift);
    }
    struct cell *list = c->list.data;
    for (size_t i = 0; i < c->list.len; i++) {
        if (n && list[n - 1].bucket == list[i].bucket && list[n - 1].thread == list[i].thread &&
            list[n - 1].node == list[i].node)
            list[n - 1].weight += list[i].weight;
        else
            list[n++] = list[i];
    }
    c->list.len = n;
    return n > PAGE_CELLS ? -E2BIG : 0;
}

static int add_cell(void *context, const struct profile_sample *s)
{
    struct cells *c = context;
    struct cell cell = {(uint32_t)((s->time_ns - c->from_ns) / c->bucket_ns),
                        c->is_merged ? 0 : s->thread, c->tree->of_node[s->node], s->weight};
    if (c->plain)
        cell.node = cell.node << 1 | (uint32_t)is_hidden(c->plain, s);
    int r = c->list.len >= 2 * (size_t)PAGE_CELLS ? merge_cells(c) : 0;
    return r < 0 ? r : vec_push(&c->list, cell);
}

/*
 * Makes time coarser until there are few enough cells. Returns -E2BIG when there are too many even
 * without time.
 */
static int fill_cells(struct cells *c, const struct profile_view *v, uint64_t span)
{
    enum { COARSER = 4 };

    const struct profile_series *series = &v->profile->series[v->metric];
    uint64_t of_samples =
        c->is_merged && !series->threads_merged ? series->merged_cell_ns : series->cell_ns;
    c->bucket_ns = MAX(of_samples, (span + LOAD_TIME_CELLS - 1) / LOAD_TIME_CELLS);
    /* Buckets must consist of whole cells. */
    if (of_samples)
        c->bucket_ns = (c->bucket_ns + of_samples - 1) / of_samples * of_samples;
    for (;;) {
        vec_clear(&c->list);
        int r = c->is_merged ? profile_view_each_merged(v, add_cell, c)
                             : profile_view_each(v, add_cell, c);
        if (r == 0)
            r = merge_cells(c);
        if (r != -E2BIG || c->bucket_ns >= span)
            return r;
        c->bucket_ns *= COARSER;
    }
}

int page_cells_json(struct json *j, const struct profile_view *v, const struct profile_view *plain,
                    const struct page_tree *tree, struct buf *blob)
{
    uint64_t span = profile_span(v->profile, &v->filter) + 1;
    uint64_t hidden = plain->profile ? v->weight - plain->weight : 0;
    struct cells c = {.tree = tree, .plain = hidden ? plain : NULL, .from_ns = v->filter.from_ns};
    c.is_merged = v->profile->series[v->metric].threads_merged;
    int r = fill_cells(&c, v, span);
    if (r == -E2BIG && !c.is_merged) {
        c.is_merged = true;
        r = fill_cells(&c, v, span);
    }
    _cleanup_(buf_release) struct buf bytes = BUF(SIZE_MAX / 2);
    uint32_t bucket = 0;
    for (size_t i = 0; i < c.list.len; i++) {
        const struct cell *cell = &c.list.data[i];
        buf_varint(&bytes, cell->bucket - bucket);
        buf_varint(&bytes, cell->thread);
        buf_varint(&bytes, cell->node);
        buf_varint(&bytes, cell->weight);
        bucket = cell->bucket;
    }
    json_key_u64(j, "bucket_ns", c.bucket_ns);
    json_key_u64(j, "buckets", (span + c.bucket_ns - 1) / c.bucket_ns); /* to the end, also empty */
    json_key_u64(j, "from_ns", c.from_ns);
    json_key_bool(j, "threads_merged", c.is_merged);
    json_key_u64(j, "aside", hidden);
    json_key_u64(j, "n_cells", c.list.len);
    json_key(j, "cells");
    page_put_bytes(j, &bytes, blob);
    vec_release(&c.list);
    vec_release(&c.sorted);
    return r < 0 ? r : buf_error(&bytes);
}

static int add_request_cell(void *context, const struct profile_sample *s)
{
    struct cells *c = context;
    const struct profile *p = c->tree_of;
    uint32_t set = request_fields_at(c->sets->fields, p->threads.data[s->thread].id,
                                     (int64_t)(p->start_epoch_ns + s->time_ns));
    if (set == REQUEST_NONE)
        return 0;
    int64_t number = set_number(c->sets, set);
    if (number < 0)
        return (int)number;
    uint32_t node = c->tree->of_node[s->node];
    struct cell cell = {(uint32_t)number, c->is_merged ? 0 : s->thread,
                        c->kept ? c->kept[node] : node, s->weight};
    if (c->plain)
        cell.node = cell.node << 1 | (uint32_t)is_hidden(c->plain, s);
    int r = c->list.len >= 2 * (size_t)PAGE_CELLS ? merge_cells(c) : 0;
    return r < 0 ? r : vec_push(&c->list, cell);
}

static int fill_request_cells(struct cells *c, const struct profile_view *v)
{
    vec_clear(&c->list);
    int r = profile_view_each(v, add_request_cell, c);
    return r < 0 ? r : merge_cells(c);
}

/* Returns the total of each node of the tree, or NULL. The caller frees the array. */
static uint64_t *totals_of(const struct page_tree *t, const struct profile_view *v)
{
    uint64_t *total = calloc(t->nodes.len, sizeof(*total));
    for (size_t i = 0; total && i < v->profile->nodes.len; i++)
        total[t->of_node[i]] += v->self[i];
    for (size_t i = t->nodes.len; total && i-- > 1;)
        total[t->nodes.data[i].parent] += total[i];
    return total;
}

/*
 * Adds the cells of ever larger nodes to their callers until there are few enough. Returns how many
 * nodes were added to others, or a negative errno.
 */
static int64_t prune_request_cells(struct cells *c, const struct profile_view *v)
{
    enum { LARGER = 4 };

    size_t n = c->tree->nodes.len;
    _cleanup_free_ uint64_t *total = totals_of(c->tree, v);
    _cleanup_free_ uint32_t *kept = calloc(n, sizeof(*kept));
    int64_t pruned = 0;
    int r = total && kept ? -E2BIG : -ENOMEM;
    for (uint64_t limit = 2; r == -E2BIG && pruned < (int64_t)n - 1; limit *= LARGER) {
        pruned = 0;
        for (size_t i = 1; i < n; i++) {
            bool small = total[i] < limit;
            kept[i] = small ? kept[c->tree->nodes.data[i].parent] : (uint32_t)i;
            pruned += small;
        }
        c->kept = kept;
        r = fill_request_cells(c, v);
    }
    c->kept = NULL;
    return r < 0 ? r : pruned;
}

/* Returns whether samples of a metric can be attributed to requests. */
static bool has_requests(const struct profile *p, enum profile_metric metric,
                         const struct page_sets *sets)
{
    const struct profile_series *series = &p->series[metric];
    return sets->fields && profile_is_timed(p, metric) && !series->cell_ns &&
           !series->threads_merged;
}

int page_by_request_json(struct json *j, const struct profile_view *v,
                         const struct profile_view *plain, const struct page_tree *tree,
                         struct page_sets *sets, struct buf *blob)
{
    uint64_t hidden = plain->profile ? v->weight - plain->weight : 0;
    struct cells c = {
        .tree = tree, .tree_of = v->profile, .plain = hidden ? plain : NULL, .sets = sets};
    int64_t pruned = 0;
    if (!has_requests(v->profile, v->metric, sets))
        return 0;
    int r = fill_request_cells(&c, v);
    if (r == -E2BIG) {
        c.is_merged = true;
        r = fill_request_cells(&c, v);
    }
    if (r == -E2BIG) {
        pruned = prune_request_cells(&c, v);
        r = pruned < 0 ? (int)pruned : 0;
    }
    _cleanup_(buf_release) struct buf bytes = BUF(SIZE_MAX / 2);
    uint32_t set = 0;
    for (size_t i = 0; r == 0 && i < c.list.len; i++) {
        const struct cell *cell = &c.list.data[i];
        buf_varint(&bytes, cell->bucket - set);
        buf_varint(&bytes, cell->thread);
        buf_varint(&bytes, cell->node);
        buf_varint(&bytes, cell->weight);
        set = cell->bucket;
    }
    if (r == 0) {
        json_key_object(j, "by_request");
        json_key_bool(j, "threads_merged", c.is_merged);
        json_key_i64(j, "pruned", pruned);
        json_key_u64(j, "n_cells", c.list.len);
        json_key(j, "cells");
        page_put_bytes(j, &bytes, blob);
        json_end_object(j);
    }
    vec_release(&c.list);
    vec_release(&c.sorted);
    /* Too many sets even for whole stacks: the page says that it lacks these samples. */
    return r == -E2BIG ? 0 : r < 0 ? r : buf_error(&bytes);
}

int page_sets_json(struct json *j, const struct page_sets *s, struct buf *blob)
{
    _cleanup_(buf_release) struct buf bytes = BUF(SIZE_MAX / 2);
    for (size_t i = 0; i < s->used.len; i++) {
        const struct request_set *set = &s->fields->sets.data[s->used.data[i]];
        buf_varint(&bytes, set->count);
        for (uint32_t k = 0; k < set->count; k++) {
            const struct request_field *f = &s->fields->members.data[set->first + k];
            buf_varint(&bytes, f->name);
            buf_varint(&bytes, f->column);
            buf_varint(&bytes, f->row);
        }
    }
    json_key_object(j, "request_sets");
    json_key_u64(j, "n", s->used.len);
    json_key_bool(j, "names_only", s->fields->names_only);
    json_key(j, "sets");
    page_put_bytes(j, &bytes, blob);
    json_end_object(j);
    return buf_error(&bytes);
}

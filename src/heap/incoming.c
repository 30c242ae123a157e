/* SPDX-License-Identifier: Apache-2.0 */
#include "heap/incoming.h"

#include "base/order.h"
#include "heap/index.h"
#include "heap/memory.h"

#include <errno.h>
#include <stdlib.h>

enum { MAX_THREADS = 16 };

struct heap_incoming {
    const struct heap *h;
    bool asked;
    /* By target: the end of its sources, which begin at the end of the previous target's. */
    uint64_t *end;
    void *sources; /* entries of 4 or 8 bytes, like the heap's numbers */
};

static bool refers(const struct hprof_item *item)
{
    return item->tag == HPROF_INSTANCE_DUMP || item->tag == HPROF_OBJECT_ARRAY_DUMP ||
           item->tag == HPROF_CLASS_DUMP;
}

static void sort_once(struct heap_sources *s)
{
    size_t kept = 0;
    if (s->list.len)
        qsort(s->list.data, s->list.len, sizeof(uint64_t), order_ascending);
    for (size_t i = 0; i < s->list.len; i++) {
        if (!i || s->list.data[i] != s->list.data[i - 1])
            s->list.data[kept++] = s->list.data[i];
    }
    s->list.len = kept;
}

struct search {
    const struct heap *h;
    uint64_t id;
    VEC(uint64_t) found[MAX_THREADS];
};

static int search_chunk(void *ctx, unsigned thread, uint64_t i)
{
    struct search *s = ctx;
    struct hprof_items it = heap_chunk_items(s->h->dump, &s->h->dump->chunks.data[i]);
    struct hprof_item item;
    struct heap_refs refs;
    uint64_t id;
    while (hprof_item_next(&it, &item) > 0) {
        if (!refers(&item))
            continue;
        heap_refs_begin(&refs, s->h->dump, &item);
        while (heap_refs_next(&refs, &id)) {
            if (id != s->id)
                continue;
            uint64_t from = heap_ids_find(&s->h->ids, item.id);
            if (from != HEAP_NONE && vec_push(&s->found[thread], from) < 0)
                return -ENOMEM;
            break;
        }
    }
    return 0;
}

int heap_incoming_search(const struct heap *h, uint64_t target, struct heap_sources *out)
{
    struct search s = {.h = h, .id = heap_id(h, target)};
    int error = heap_parallel(h->dump->threads, h->dump->chunks.len, search_chunk, &s);
    out->list.len = 0;
    for (unsigned t = 0; t < MAX_THREADS; t++) {
        for (size_t k = 0; k < s.found[t].len && !error; k++)
            error = vec_push(&out->list, s.found[t].data[k]);
        vec_release(&s.found[t]);
    }
    sort_once(out);
    return error;
}

struct fill {
    struct heap_incoming *in;
    bool count; /* this is the first pass */
};

static int fill_chunk(void *ctx, unsigned thread, uint64_t i)
{
    const struct fill *f = ctx;
    const struct heap *h = f->in->h;
    struct hprof_items it = heap_chunk_items(h->dump, &h->dump->chunks.data[i]);
    struct hprof_item item;
    struct heap_refs refs;
    uint64_t id;
    while (hprof_item_next(&it, &item) > 0) {
        uint64_t from = refers(&item) ? heap_ids_find(&h->ids, item.id) : HEAP_NONE;
        if (from == HEAP_NONE)
            continue;
        heap_refs_begin(&refs, h->dump, &item);
        while (heap_refs_next(&refs, &id)) {
            uint64_t target = heap_ids_find(&h->ids, id);
            if (target == HEAP_NONE)
                continue;
            if (f->count) {
                __atomic_fetch_add(&f->in->end[target], 1, __ATOMIC_RELAXED);
                continue;
            }
            uint64_t at = __atomic_fetch_add(&f->in->end[target], 1, __ATOMIC_RELAXED);
            if (h->wide)
                ((uint64_t *)f->in->sources)[at] = from;
            else
                ((uint32_t *)f->in->sources)[at] = (uint32_t)from;
        }
    }
    return 0;
}

/*
 * Makes the table in two passes. The first one counts the references to each object. The second one
 * stores the sources; while it does, it moves the beginning of each group to its end.
 */
static int make_table(struct heap_incoming *in)
{
    const struct heap *h = in->h;
    struct fill f = {in, true};
    in->end = heap_memory((h->n + 1) * 8);
    int error =
        in->end ? heap_parallel(h->dump->threads, h->dump->chunks.len, fill_chunk, &f) : -ENOMEM;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < h->n && !error; i++) {
        uint64_t count = in->end[i];
        in->end[i] = sum;
        sum += count;
    }
    in->sources = error ? NULL : heap_memory((sum + 1) * (h->wide ? 8 : 4));
    f.count = false;
    if (!error)
        error = in->sources ? heap_parallel(h->dump->threads, h->dump->chunks.len, fill_chunk, &f)
                            : -ENOMEM;
    if (error) {
        heap_memory_free(in->end);
        heap_memory_free(in->sources);
        in->end = in->sources = NULL;
    }
    return error;
}

struct heap_incoming *heap_incoming_new(const struct heap *h)
{
    struct heap_incoming *in = calloc(1, sizeof(*in));
    if (in)
        in->h = h;
    return in;
}

void heap_incoming_free(struct heap_incoming *in)
{
    if (!in)
        return;
    heap_memory_free(in->end);
    heap_memory_free(in->sources);
    free(in);
}

int heap_incoming_of(struct heap_incoming *in, uint64_t target, struct heap_sources *out)
{
    bool first = !in->asked;
    in->asked = true;
    if (first)
        return heap_incoming_search(in->h, target, out);
    int error = in->end ? 0 : make_table(in);
    out->list.len = 0;
    for (uint64_t k = !error && target ? in->end[target - 1] : 0; !error && k < in->end[target];
         k++) {
        uint64_t from =
            in->h->wide ? ((const uint64_t *)in->sources)[k] : ((const uint32_t *)in->sources)[k];
        error = vec_push(&out->list, from);
    }
    sort_once(out);
    return error;
}

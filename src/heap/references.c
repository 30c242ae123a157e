/* SPDX-License-Identifier: Apache-2.0 */
#include "heap/references.h"

#include "heap/heap.h"

enum { MAX_THREADS = 16, BATCH = 64, BATCH_IDS = 256, KNOWN_CLASSES = 256, PREFETCH = 16 };

/*
 * Objects that wait for the numbers of the objects to which they refer. What the look-ups need is
 * fetched into the cache while later objects are read, because references lead to random places.
 */
struct batch {
    unsigned n, ids_n;
    uint64_t ids[BATCH_IDS];

    struct {
        uint64_t number;
        unsigned end; /* the end of its ids, which begin at the end of the previous object's */
        bool weak;    /* its first id is that of a weak referent */
    } objects[BATCH];
};

/* The state of a thread. Most objects belong to a few classes, whose numbers it remembers. */
struct worker {
    struct edge_writer writer;
    struct batch batch;

    struct {
        uint64_t id;
        int32_t number;
        bool set;
    } classes[KNOWN_CLASSES];
};

struct reading {
    const struct heap_dump *d;
    const struct heap_columns *to;
    struct heap_finder finder;
    struct worker workers[MAX_THREADS];
};

static int32_t class_of(const struct heap_dump *d, struct worker *w, const struct hprof_item *item)
{
    if (item->tag != HPROF_INSTANCE_DUMP && item->tag != HPROF_OBJECT_ARRAY_DUMP)
        return heap_dump_class_of(d, item);
    size_t at = (size_t)((item->class_id * UINT64_C(0x9e3779b97f4a7c15)) >> 56);
    if (unlikely(w->classes[at].id != item->class_id || !w->classes[at].set)) {
        w->classes[at].id = item->class_id;
        w->classes[at].number = heap_dump_class(d, item->class_id);
        w->classes[at].set = true;
    }
    return w->classes[at].number;
}

static void set_columns(struct reading *r, uint64_t number, const struct hprof_item *item,
                        int32_t class)
{
    const struct heap_columns *to = r->to;
    const struct heap_dump *d = r->d;
    uint64_t offset = (uint64_t)(item->start - d->data);
    uint32_t c = class == HEAP_NO_CLASS ? (uint32_t)MAX(d->object_class, 0) : (uint32_t) class;
    uint64_t size = heap_size_with_class(d, item, (int32_t)c) >> to->size_shift;
    to->offset_low[number] = (uint32_t)offset;
    to->offset_high[number] = (uint8_t)(offset >> 32);
    if (to->class_wide)
        ((uint32_t *)to->class_of)[number] = c;
    else
        ((uint16_t *)to->class_of)[number] = (uint16_t)c;
    if (to->sizes_wide)
        ((uint64_t *)to->sizes)[number] = size;
    else
        ((uint32_t *)to->sizes)[number] = (uint32_t)size;
}

/* Writes the references of an object of any kind immediately. */
static int write_refs(struct reading *r, struct edge_writer *w, const struct hprof_item *item,
                      uint64_t number)
{
    struct heap_refs refs;
    uint64_t id, target;
    const unsigned n = r->d->header.id_size;
    heap_refs_begin(&refs, r->d, item);
    bool open = false;
    while (heap_refs_next(&refs, &id)) {
        if (item->tag == HPROF_OBJECT_ARRAY_DUMP && refs.at + PREFETCH < item->count)
            heap_finder_expect(&r->finder, hprof_id_at(item->body + (refs.at + PREFETCH) * n, n));
        target = heap_finder_find(&r->finder, id);
        if (target == HEAP_NONE)
            continue;
        if (!open) {
            int error = edges_begin(w, number, refs.count, refs.weak && target != number);
            if (error)
                return error;
            open = true;
        }
        edges_add(w, target);
    }
    if (open)
        edges_end(w);
    return 0;
}

static int write_batch(struct reading *r, struct worker *w)
{
    struct batch *b = &w->batch;
    int error = 0;
    for (unsigned i = 0, k = 0; i < b->n && !error; i++) {
        uint64_t number = b->objects[i].number, target;
        const unsigned first = k, end = b->objects[i].end;
        bool open = false;
        for (; k < end && !error; k++) {
            target = heap_finder_find(&r->finder, b->ids[k]);
            if (target == HEAP_NONE)
                continue;
            if (!open)
                error = edges_begin(&w->writer, number, end - first,
                                    k == first && b->objects[i].weak && target != number);
            open = true;
            if (!error)
                edges_add(&w->writer, target);
        }
        if (open && !error)
            edges_end(&w->writer);
    }
    b->n = b->ids_n = 0;
    return error;
}

static inline void expect(struct reading *r, struct batch *b, uint64_t id)
{
    if (!id)
        return;
    heap_finder_expect(&r->finder, id);
    b->ids[b->ids_n++] = id;
}

/*
 * Adds an object to the batch. Returns false when it has too many references or is of a kind whose
 * references write_refs reads.
 */
static bool add_to_batch(struct reading *r, struct batch *b, const struct hprof_item *item,
                         uint64_t number, const struct heap_class *class)
{
    const struct heap_dump *d = r->d;
    const unsigned n = d->header.id_size, first = b->ids_n;
    bool weak = false;
    if (unlikely(d->class_edges))
        return false;
    if (item->tag == HPROF_INSTANCE_DUMP) {
        if (!class || class->refs_len > BATCH_IDS - first)
            return !class;
        const uint32_t *offsets = d->refs.data + class->refs_at;
        for (uint32_t i = 0; i < class->refs_len; i++) {
            if (likely((uint64_t)offsets[i] + n <= item->body_len))
                expect(r, b, hprof_id_at(item->body + offsets[i], n));
            weak = weak || (i == 0 && b->ids_n > first && class->reference);
        }
    } else {
        if (item->tag != HPROF_OBJECT_ARRAY_DUMP || item->count > BATCH_IDS - first)
            return false;
        for (uint32_t i = 0; i < item->count; i++)
            expect(r, b, hprof_id_at(item->body + (uint64_t)i * n, n));
    }
    if (b->ids_n == first)
        return true;
    b->objects[b->n].number = number;
    b->objects[b->n].end = b->ids_n;
    b->objects[b->n++].weak = weak;
    return true;
}

static int take_refs(struct reading *r, struct worker *w, const struct hprof_item *item,
                     uint64_t number, int32_t class)
{
    const struct heap_class *c = class == HEAP_NO_CLASS ? NULL : &r->d->classes.data[class];
    int error = 0;
    if (!add_to_batch(r, &w->batch, item, number, c)) {
        error = write_batch(r, w);
        if (!error && !add_to_batch(r, &w->batch, item, number, c))
            error = write_refs(r, &w->writer, item, number);
    }
    if (!error && w->batch.n == BATCH)
        error = write_batch(r, w);
    return error;
}

static int read_chunk(void *ctx, unsigned thread, uint64_t i)
{
    struct reading *r = ctx;
    struct worker *w = &r->workers[thread];
    struct hprof_items it = heap_chunk_items(r->d, &r->d->chunks.data[i]);
    struct hprof_item item;
    int error = 0;
    while (!error && hprof_item_next(&it, &item) > 0) {
        if (!hprof_item_is_object(&item) && item.tag != HPROF_CLASS_DUMP)
            continue;
        uint64_t number = heap_finder_find(&r->finder, item.id);
        if (number == HEAP_NONE)
            continue;
        int32_t class = class_of(r->d, w, &item);
        set_columns(r, number, &item, class);
        if (item.tag != HPROF_PRIMITIVE_ARRAY_DUMP)
            error = take_refs(r, w, &item, number, class);
    }
    return error ? error : write_batch(r, w);
}

int heap_references_read(const struct heap_dump *d, const struct heap_ids *ids, struct edges *e,
                         const struct heap_columns *to)
{
    struct reading *r = calloc(1, sizeof(*r));
    if (!r)
        return -ENOMEM;
    r->d = d;
    r->to = to;
    /*
     * The address space for the worst case: ten bytes for a reference of eight, and the space
     * between runs.
     */
    int error = edges_init(e, ids->count, d->len * 2 + ids->count * 24);
    for (unsigned t = 0; t < MAX_THREADS; t++)
        r->workers[t].writer.edges = e;
    if (!error)
        error = heap_finder_init(&r->finder, ids);
    if (!error)
        error = heap_parallel(d->threads, d->chunks.len, read_chunk, r);
    for (unsigned t = 0; t < MAX_THREADS && !error; t++)
        error = edges_finish(&r->workers[t].writer);
    heap_finder_release(&r->finder);
    free(r);
    return error;
}

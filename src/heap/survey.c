/* SPDX-License-Identifier: Apache-2.0 */
#include "heap/shape.h"

#include "base/order.h"
#include "heap/proxies.h"

#include <stdio.h>

enum {
    CHUNK = 4 << 20,
    SAMPLE = 16 << 20,
    /* at most this many bytes of an array count as read: the page with its header */
    ARRAY_READ = 4 << 10,
    MAX_GAPS = 300000,
    MAX_GAP = 1 << 20,
    MAX_THREADS = 16
};

/* Counts the objects of one class. */
struct tally {
    uint64_t id, objects, bytes;
};

/* The results of one thread. */
struct finder {
    struct tally *tallies; /* open addressing by class id; an entry with 0 objects is free */
    size_t cap, used;
    struct tally primitive[16];
    VEC(struct heap_chunk) chunks;
    VEC(struct heap_root) roots;
    VEC(uint64_t) classes; /* offsets of CLASS DUMPs */
    VEC(uint64_t) methods; /* of instances of survey.method */
    /* behind: by how many bytes instances of survey.grows are larger than their class says. */
    uint64_t min, max, bits, bad_at, behind;
    bool bad;
};

struct survey {
    struct heap_dump *dump;
    uint64_t base; /* of id_bits */
    /* the class whose instances have more than their fields, or NULL */
    const struct heap_class *grows;
    uint64_t method; /* id of java.lang.reflect.Method, whose instances name proxies; or 0 */
    struct finder finders[MAX_THREADS];
};

static size_t slot_of(const struct finder *f, uint64_t id)
{
    return (size_t)((id * UINT64_C(0x9e3779b97f4a7c15)) >> 40) & (f->cap - 1);
}

static int grow(struct finder *f)
{
    struct finder bigger = {.cap = f->cap ? f->cap * 2 : 4096};
    bigger.tallies = calloc(bigger.cap, sizeof(struct tally));
    if (!bigger.tallies)
        return -ENOMEM;
    for (size_t i = 0; i < f->cap; i++) {
        if (!f->tallies[i].objects)
            continue;
        size_t at = slot_of(&bigger, f->tallies[i].id);
        while (bigger.tallies[at].objects)
            at = (at + 1) & (bigger.cap - 1);
        bigger.tallies[at] = f->tallies[i];
    }
    free(f->tallies);
    f->tallies = bigger.tallies;
    f->cap = bigger.cap;
    return 0;
}

static inline struct tally *tally_of(struct finder *f, uint64_t id)
{
    for (size_t at = slot_of(f, id);; at = (at + 1) & (f->cap - 1)) {
        struct tally *t = &f->tallies[at];
        if (likely(t->id == id && t->objects))
            return t;
        if (!t->objects) {
            t->id = id;
            f->used++;
            return t;
        }
    }
}

static int take_other(struct survey *s, struct finder *f, const struct hprof_item *item,
                      uint64_t *objects)
{
    if (item->tag == HPROF_CLASS_DUMP) {
        f->min = MIN(f->min, item->id);
        f->max = MAX(f->max, item->id);
        f->bits |= item->id - s->base;
        ++*objects;
        return vec_push(&f->classes, (uint64_t)(item->start - s->dump->data));
    }
    if (item->tag >= 0x80 && item->tag != HPROF_ROOT_UNKNOWN &&
        item->tag != HPROF_ANDROID_INTERNED_STRING && item->tag != HPROF_ANDROID_VM_INTERNAL &&
        item->tag != HPROF_ANDROID_JNI_MONITOR && item->tag != HPROF_ANDROID_DEBUGGER)
        return 0; /* a record of Android; not a root */
    if (map_get(&s->dump->agents, item->id))
        return 0;
    struct heap_root root = {item->id, item->tag, item->thread, item->frame};
    return vec_push(&f->roots, root);
}

static inline int take_item(struct survey *s, struct finder *f, const struct hprof_item *item,
                            uint64_t *objects)
{
    struct tally *t;
    switch (item->tag) {
    case HPROF_INSTANCE_DUMP:
        if (unlikely(f->used * 2 >= f->cap) && grow(f) < 0)
            return -ENOMEM;
        t = tally_of(f, item->class_id);
        if (unlikely(s->grows) && item->class_id == s->grows->id)
            f->behind += heap_item_size(s->dump, item) - s->grows->size;
        if (unlikely(item->class_id == s->method) &&
            vec_push(&f->methods, (uint64_t)(item->start - s->dump->data)) < 0)
            return -ENOMEM;
        break;
    case HPROF_OBJECT_ARRAY_DUMP:
        if (unlikely(f->used * 2 >= f->cap) && grow(f) < 0)
            return -ENOMEM;
        t = tally_of(f, item->class_id);
        t->bytes +=
            heap_array_size(&s->dump->shape, HPROF_OBJECT, item->count, s->dump->header.id_size);
        break;
    case HPROF_PRIMITIVE_ARRAY_DUMP:
        t = &f->primitive[item->type & 15];
        t->bytes +=
            heap_array_size(&s->dump->shape, item->type, item->count, s->dump->header.id_size);
        break;
    default:
        return take_other(s, f, item, objects);
    }
    t->objects++;
    ++*objects;
    f->min = MIN(f->min, item->id);
    f->max = MAX(f->max, item->id);
    f->bits |= item->id - s->base;
    return 0;
}

/* Visits one segment and cuts it into chunks. */
static int walk_segment(void *ctx, unsigned thread, uint64_t i)
{
    struct survey *s = ctx;
    struct finder *f = &s->finders[thread];
    const struct heap_chunk *segment = &s->dump->segments.data[i];
    const uint8_t *data = s->dump->data;
    struct hprof_items it = heap_chunk_items(s->dump, segment);
    struct hprof_item item;
    struct heap_chunk chunk = {.start = segment->start};
    int more, error = 0;
    while (!error && (more = hprof_item_next(&it, &item)) > 0) {
        error = take_item(s, f, &item, &chunk.objects);
        uint64_t at = (uint64_t)(it.at - data);
        if (unlikely(at - chunk.start >= CHUNK)) {
            chunk.end = at;
            if (vec_push(&f->chunks, chunk) < 0)
                return -ENOMEM;
            chunk = (struct heap_chunk){.start = at};
        }
    }
    if (!error && more < 0) {
        f->bad_at = f->bad ? MIN(f->bad_at, (uint64_t)(it.at - data)) : (uint64_t)(it.at - data);
        f->bad = true;
    }
    chunk.end = (uint64_t)(it.at - data);
    return error ? error : chunk.end > chunk.start ? vec_push(&f->chunks, chunk) : 0;
}

static int by_start(const void *a, const void *b)
{
    uint64_t x = ((const struct heap_chunk *)a)->start, y = ((const struct heap_chunk *)b)->start;
    return x < y ? -1 : x > y;
}

static int by_root(const void *a, const void *b)
{
    const struct heap_root *x = a, *y = b;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    if (x->tag != y->tag)
        return x->tag - y->tag;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    return x->frame < y->frame ? -1 : x->frame > y->frame;
}

static int by_address(const void *a, const void *b)
{
    const struct heap_gap *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

/*
 * Determines the highest alignment that nearly all objects have, a power of two; less than 8 if ids
 * are not addresses. The exceptions are ids that the agent gave to threads.
 */
static uint32_t alignment_of(const struct heap_gap *objects, size_t n)
{
    size_t aligned[64] = {0}; /* the number of ids by the number of their trailing zeros */
    for (size_t i = 0; i < n; i++)
        aligned[objects[i].id ? __builtin_ctzll(objects[i].id) : 63]++;
    unsigned shift = 0;
    while (n && shift < 8 && aligned[shift] <= n / 32)
        shift++;
    return 1u << shift;
}

/*
 * Turns sampled objects into distances to their neighbours. Their order in the dump does not
 * matter; ZGC's dumper, for example, follows references. Returns the number of distances.
 */
static size_t measure_gaps(struct heap_gap *objects, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (objects[i].id % 8 == 0)
            objects[kept++] = objects[i];
    }
    qsort(objects, kept, sizeof(*objects), by_address);
    n = kept;
    kept = 0;
    for (size_t i = 0; i + 1 < n; i++) {
        uint64_t gap = objects[i + 1].id - objects[i].id;
        if (!gap || gap >= MAX_GAP)
            continue;
        objects[kept] = objects[i];
        objects[kept++].gap = (uint32_t)gap;
    }
    return kept;
}

/*
 * Samples the first part of the heap for classes and objects. The contents of arrays are not read,
 * so that they do not count.
 */
static int sample(struct heap_dump *d, struct heap_gap *objects, size_t *ret_n)
{
    uint64_t walked = 0;
    size_t n = 0;
    for (size_t i = 0; i < d->segments.len && walked < SAMPLE; i++) {
        struct hprof_items it = heap_chunk_items(d, &d->segments.data[i]);
        struct hprof_item item;
        while (walked < SAMPLE && hprof_item_next(&it, &item) > 0) {
            const uint64_t len = (uint64_t)(it.at - item.start);
            walked += MIN(len, (uint64_t)ARRAY_READ);
            if (item.tag == HPROF_CLASS_DUMP) {
                int error = heap_dump_add_class(d, item.start, len);
                if (error && error != -EBADMSG)
                    return error;
            }
            if (!hprof_item_is_object(&item))
                continue;
            d->max_id = MAX(d->max_id, item.id);
            if (n < MAX_GAPS)
                objects[n++] = (struct heap_gap){.id = item.id,
                                                 .class_id = item.class_id,
                                                 .count = item.count,
                                                 .tag = item.tag,
                                                 .type = item.type};
        }
    }
    *ret_n = n;
    return 0;
}

static int infer_shape(struct heap_dump *d)
{
    _cleanup_free_ struct heap_gap *gaps = malloc(MAX_GAPS * sizeof(struct heap_gap));
    size_t n = 0;
    if (!gaps)
        return -ENOMEM;
    int error = sample(d, gaps, &n);
    if (!error)
        error = heap_dump_finish_classes(d);
    if (error)
        return error;
    const uint32_t alignment = alignment_of(gaps, n);
    return heap_shape_infer(d, alignment, gaps, measure_gaps(gaps, n));
}

/* Adds the classes that come after the sample, in the order of the file. */
static int collect_classes(struct survey *s, struct finder *all)
{
    struct heap_dump *d = s->dump;
    vec_sort(&all->classes, order_ascending);
    size_t before = d->classes.len;
    for (size_t i = 0; i < all->classes.len; i++) {
        uint64_t at = all->classes.data[i];
        int error = heap_dump_add_class(d, d->data + at, d->len - at);
        if (error && error != -EBADMSG)
            return error;
    }
    if (d->classes.len == before)
        return 0;
    int error = heap_dump_finish_classes(d);
    return error;
}

static int add_tally(struct heap_dump *d, const struct tally *t, int32_t class)
{
    if (class == HEAP_NO_CLASS) {
        class = (int32_t)d->classes.len;
        if (heap_dump_made_up_class(d, t->id) < 0)
            return -ENOMEM;
    }
    struct heap_class *c = &d->classes.data[class];
    bool array = c->kind != HEAP_INSTANCE || t->bytes;
    uint64_t bytes =
        array ? t->bytes : t->objects * (class == d->class_class ? d->shape.mirror_base : c->size);
    c->objects += t->objects;
    c->bytes += bytes;
    d->bytes += bytes;
    *(array ? &d->arrays : &d->instances) += t->objects;
    return 0;
}

/* Removes the frames that are left out. Their local variables become those of their callers. */
static int leave_out_frames(struct heap_dump *d)
{
    struct map stacks = {0}; /* the frames of threads, by the threads' serial numbers */
    int error = 0;
    for (size_t i = 0; d->left_out.of.len && !error && i < d->roots.len; i++)
        if (d->roots.data[i].tag == HPROF_ROOT_THREAD_OBJECT)
            error = map_put(&stacks, d->roots.data[i].thread, d->roots.data[i].frame);
    for (size_t i = 0; stacks.len && !error && i < d->roots.len; i++) {
        struct heap_root *r = &d->roots.data[i];
        const uint64_t *trace = r->tag == HPROF_ROOT_JAVA_FRAME || r->tag == HPROF_ROOT_JNI_LOCAL
                                    ? map_get(&stacks, r->thread)
                                    : NULL;
        if (trace)
            r->frame = left_out_shown(&d->left_out, (uint32_t)*trace, r->frame);
    }
    map_release(&stacks);
    return error;
}

static int merge(struct survey *s)
{
    struct heap_dump *d = s->dump;
    struct finder *all = &s->finders[0];
    d->min_id = UINT64_MAX;
    d->max_id = d->id_bits = 0;
    for (unsigned t = 0; t < d->threads; t++) {
        struct finder *f = &s->finders[t];
        for (size_t i = 0; i < f->chunks.len; i++) {
            if (vec_push(&d->chunks, f->chunks.data[i]) < 0)
                return -ENOMEM;
        }
        for (size_t i = 0; i < f->roots.len; i++) {
            if (vec_push(&d->roots, f->roots.data[i]) < 0)
                return -ENOMEM;
        }
        for (size_t i = 0; t && i < f->classes.len; i++) {
            if (vec_push(&all->classes, f->classes.data[i]) < 0)
                return -ENOMEM;
        }
        d->min_id = MIN(d->min_id, f->min);
        d->max_id = MAX(d->max_id, f->max);
        d->id_bits |= f->bits;
        if (f->bad) {
            d->garbage_at = d->cut ? MIN(d->garbage_at, f->bad_at) : f->bad_at;
            d->cut = true;
        }
    }
    int error = leave_out_frames(d);
    if (error)
        return error;
    vec_sort(&d->chunks, by_start);
    vec_sort(&d->roots, by_root);
    if (d->max_id < d->min_id)
        d->min_id = d->max_id = s->base;
    d->id_bits |= d->min_id - s->base;
    return collect_classes(s, all);
}

static int count_all(struct survey *s)
{
    struct heap_dump *d = s->dump;
    for (unsigned t = 0; t < d->threads; t++) {
        const struct finder *f = &s->finders[t];
        for (size_t i = 0; i < f->cap; i++) {
            if (f->tallies[i].objects &&
                add_tally(d, &f->tallies[i], heap_dump_class(d, f->tallies[i].id)) < 0)
                return -ENOMEM;
        }
        for (int type = 0; type < 16; type++) {
            if (f->primitive[type].objects &&
                add_tally(d, &f->primitive[type], d->primitive_arrays[type]) < 0)
                return -ENOMEM;
        }
    }
    for (size_t i = 0; i < d->classes.len; i++) {
        for (unsigned t = 0; d->classes.data[i].words_at && t < d->threads; t++) {
            d->classes.data[i].bytes += s->finders[t].behind;
            d->bytes += s->finders[t].behind;
        }
    }
    struct heap_class *mirror = &d->classes.data[d->class_class];
    for (size_t i = 0; i < d->classes.len; i++) {
        if (!d->classes.data[i].record)
            continue;
        mirror->objects++;
        mirror->bytes += d->classes.data[i].mirror_size;
        d->bytes += d->classes.data[i].mirror_size;
        d->mirrors++;
    }
    d->objects = d->instances + d->arrays + d->mirrors;
    uint64_t first = 0;
    for (size_t i = 0; i < d->chunks.len; i++) {
        d->chunks.data[i].first = first;
        first += d->chunks.data[i].objects;
    }
    return 0;
}

/* The methods that were found, by their ids. */
struct methods {
    const struct heap_dump *dump;
    struct map at;
};

static bool find_method(void *context, uint64_t id, struct hprof_item *ret)
{
    const struct methods *m = context;
    const struct heap_dump *d = m->dump;
    const uint64_t *at = map_get(&m->at, id);
    if (!at)
        return false;
    struct hprof_items it = hprof_items_of(d->data + *at, d->data + d->len, d->header.id_size);
    return hprof_item_next(&it, ret) > 0;
}

static int name_proxies(struct survey *s)
{
    struct heap_dump *d = s->dump;
    struct methods m = {.dump = d};
    int error = 0;
    for (unsigned t = 0; t < d->threads; t++) {
        for (size_t i = 0; i < s->finders[t].methods.len && !error; i++) {
            uint64_t at = s->finders[t].methods.data[i];
            error = map_put(&m.at,
                            hprof_value_at(d->data + at + 1, HPROF_OBJECT, d->header.id_size), at);
        }
    }
    if (!error)
        error = heap_name_proxies(d, find_method, &m);
    map_release(&m.at);
    return error;
}

int heap_dump_survey(struct heap_dump *d)
{
    struct survey *s = calloc(1, sizeof(*s));
    if (!s)
        return -ENOMEM;
    s->dump = d;
    int error = infer_shape(d);
    for (size_t i = 0; i < d->classes.len; i++)
        s->grows = d->classes.data[i].words_at ? &d->classes.data[i] : s->grows;
    int32_t method = heap_dump_class_named(d, "java.lang.reflect.Method");
    s->method = method == HEAP_NO_CLASS ? 0 : d->classes.data[method].id;
    s->base = d->max_id;
    d->threads = MIN(d->threads, (unsigned)MAX_THREADS);
    for (unsigned t = 0; t < d->threads && !error; t++) {
        s->finders[t].min = UINT64_MAX;
        error = grow(&s->finders[t]);
    }
    if (!error)
        error = heap_parallel(d->threads, d->segments.len, walk_segment, s);
    if (!error)
        error = merge(s);
    if (!error) {
        heap_shape_apply(d);
        error = count_all(s);
    }
    if (!error)
        error = name_proxies(s);
    for (unsigned t = 0; t < d->threads; t++) {
        free(s->finders[t].tallies);
        vec_release(&s->finders[t].chunks);
        vec_release(&s->finders[t].roots);
        vec_release(&s->finders[t].classes);
        vec_release(&s->finders[t].methods);
    }
    free(s);
    return error;
}

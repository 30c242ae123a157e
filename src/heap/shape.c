/* SPDX-License-Identifier: Apache-2.0 */
#include "heap/shape.h"

#include <string.h>

enum { MAX_HOLES = 64, MAX_CHAIN = 64, WIDTHS = 4 };

static uint32_t align_up(uint64_t n, uint32_t to)
{
    return (uint32_t)((n + to - 1) / to * to);
}

uint64_t heap_array_size(const struct heap_shape *s, unsigned type, uint64_t count,
                         unsigned id_size)
{
    uint64_t element = type == HPROF_OBJECT ? s->reference : hprof_type_size(type, id_size);
    uint64_t header = element == 8 ? (s->array_header + 7u) / 8 * 8 : s->array_header;
    /* The alignment is a power of two. */
    return (header + count * element + s->alignment - 1) & ~(uint64_t)(s->alignment - 1);
}

/*
 * The fields that a class itself declares: their number by width (8, 4, 2, 1 bytes), the number of
 * references, and the bytes of padding around them. If some fields are `contended`, the padding
 * surrounds only those in the newer layout. gap: an int among them goes into a gap in front of
 * them.
 */
struct declared {
    uint32_t width[WIDTHS], refs, padding;
    uint32_t contended[2]; /* 8 and 4 bytes wide */
    bool gap;
};

/*
 * What HotSpot adds to its own classes and no dump contains: fields that only the VM sees, and 128
 * bytes on either side of contended fields. The classes in a dump show which VM wrote it.
 */
static const struct injected {
    /* with, without: classes that the dump must have and must not have; NULL if irrelevant. */
    const char *class, *with, *without;

    enum { ANY_LAYOUT, OLD_LAYOUT, NEW_LAYOUT } layout;
    struct declared fields;
} injected[] = {
    {"java.lang.ClassLoader", NULL, NULL, ANY_LAYOUT, {{1}}},
    {"java.lang.Module", NULL, NULL, ANY_LAYOUT, {{1}}},
    {"java.lang.InternalError", NULL, NULL, NEW_LAYOUT, {{0, 0, 0, 1}}},
    {"java.lang.Thread", NULL, "java.lang.Thread$FieldHolder", ANY_LAYOUT, {.padding = 256}},
    {"java.lang.Thread", "java.lang.Thread$FieldHolder", NULL, ANY_LAYOUT, {{1, 1, 0, 3}}},
    {"java.lang.invoke.MemberName", NULL, "java.lang.Module", ANY_LAYOUT, {{2}, 1}},
    {"java.lang.invoke.MemberName", "java.lang.Module", NULL, ANY_LAYOUT, {{1}}},
    {"java.lang.VirtualThread", "java.lang.ClassFrameInfo", NULL, NEW_LAYOUT, {{1}}},
    {"jdk.internal.vm.StackChunk", NULL, NULL, NEW_LAYOUT, {{1, 1, 0, 2}, 1}},
    {"java.lang.StackFrameInfo", NULL, NULL, ANY_LAYOUT, {{0, 0, 1}}},
    {"java.lang.reflect.Field", "java.lang.LazyConstant", NULL, NEW_LAYOUT, {{0, 1}}},
    {"java.lang.invoke.ResolvedMethodName", NULL, "java.lang.ClassFrameInfo", ANY_LAYOUT, {{1}, 1}},
    {"java.lang.invoke.ResolvedMethodName", "java.lang.ClassFrameInfo", NULL, NEW_LAYOUT, {{1}}},
    {"java.lang.invoke.MethodHandleNatives$CallSiteContext", NULL, NULL, OLD_LAYOUT, {{1}}},
    {"java.lang.invoke.MethodHandleNatives$CallSiteContext", NULL, NULL, NEW_LAYOUT, {{2}}},
    {"java.lang.invoke.CallSite",
     "java.lang.Thread$FieldHolder",
     "java.lang.invoke.MethodHandleNatives$CallSiteContext",
     NEW_LAYOUT,
     {{2}}},
    {"java.util.concurrent.ForkJoinPool", NULL, NULL, OLD_LAYOUT, {.padding = 256}},
    {"java.util.concurrent.ForkJoinPool",
     NULL,
     "java.lang.Thread$FieldHolder",
     NEW_LAYOUT,
     {.padding = 256, .contended = {1}}},
    {"java.util.concurrent.ForkJoinPool",
     "java.lang.Thread$FieldHolder",
     "java.lang.LazyConstant",
     NEW_LAYOUT,
     {.padding = 256, .contended = {1, 1}}},
    {"java.util.concurrent.ForkJoinPool",
     "java.lang.LazyConstant",
     NULL,
     NEW_LAYOUT,
     {.padding = 256, .contended = {1, 1}, .gap = true}},
    {"java.util.concurrent.ForkJoinPool$WorkQueue", NULL, NULL, OLD_LAYOUT, {.padding = 256}},
    {"java.util.concurrent.ForkJoinPool$WorkQueue",
     NULL,
     "java.lang.Thread$FieldHolder",
     NEW_LAYOUT,
     {.padding = 256, .contended = {0, 3}}},
    {"java.util.concurrent.ForkJoinPool$WorkQueue",
     "java.lang.Thread$FieldHolder",
     "java.lang.ClassFrameInfo",
     NEW_LAYOUT,
     {.padding = 256, .contended = {0, 5}}},
    {"java.util.concurrent.ForkJoinPool$WorkQueue",
     "java.lang.ClassFrameInfo",
     NULL,
     NEW_LAYOUT,
     {.padding = 256, .contended = {0, 6}}},
    {"java.util.concurrent.Exchanger$Node", NULL, NULL, ANY_LAYOUT, {.padding = 256}},
    {"java.util.concurrent.Exchanger$Slot", NULL, NULL, ANY_LAYOUT, {.padding = 256}},
    {"java.util.concurrent.ConcurrentHashMap$CounterCell",
     NULL,
     NULL,
     ANY_LAYOUT,
     {.padding = 256}},
    {"java.util.concurrent.atomic.Striped64$Cell", NULL, NULL, ANY_LAYOUT, {.padding = 256}},
};

/*
 * Classes whose fields the older layout leaves where the VM has always had them: references come
 * first and no gap is filled. Classes that have the same layout in both cases are not listed.
 */
static const char *const refs_first[] = {"java.lang.ClassLoader", "java.lang.ref.SoftReference",
                                         "java.lang.Throwable",   "java.lang.StackTraceElement",
                                         "java.lang.String",      "java.lang.Class"};

/*
 * The part of a virtual thread's stack in the heap. The words of frames follow the fields, with a
 * bit for each possible reference among them.
 */
static const char stack_chunk[] = "jdk.internal.vm.StackChunk";

static bool has_class(const struct heap_dump *d, const char *name)
{
    int32_t class = heap_dump_class_named(d, name);
    return class != HEAP_NO_CLASS && d->classes.data[class].record;
}

void heap_shape_mark_injected(struct heap_dump *d)
{
    for (size_t k = 0; k < ARRAY_SIZE(injected); k++) {
        const struct injected *row = &injected[k];
        int32_t class = heap_dump_class_named(d, row->class);
        if (class == HEAP_NO_CLASS || d->classes.data[class].loader_id ||
            (row->with && !has_class(d, row->with)) || (row->without && has_class(d, row->without)))
            continue;
        d->classes.data[class].injected[row->layout == NEW_LAYOUT] = (uint8_t)(k + 1);
        if (row->layout == ANY_LAYOUT)
            d->classes.data[class].injected[1] = (uint8_t)(k + 1);
    }
    for (size_t k = 0; k < ARRAY_SIZE(refs_first); k++) {
        int32_t class = heap_dump_class_named(d, refs_first[k]);
        if (class != HEAP_NO_CLASS && !d->classes.data[class].loader_id)
            d->classes.data[class].refs_first = true;
    }
    int32_t chunk = heap_dump_class_named(d, stack_chunk);
    struct heap_field f;
    for (unsigned i = 0; chunk != HEAP_NO_CLASS && heap_field_at(d, chunk, i, &f); i++) {
        if (f.type == HPROF_INT && strcmp(f.name, "size") == 0)
            d->classes.data[chunk].words_at = f.offset + 1;
    }
}

/*
 * Returns whether this is an entry that HotSpot's dumper writes among a class's static fields
 * although it is not one: <resolved_references>, <init_lock>, and JDK 8's init_lock.
 */
static bool made_up(const struct heap_dump *d, const struct hprof_static *s)
{
    struct str name = heap_dump_string(d, s->name);
    return s->type == HPROF_OBJECT && name.len &&
           (name.data[0] == '<' || (name.len == 9 && memcmp(name.data, "init_lock", 9) == 0));
}

/* Counts the instance fields, or the static fields when shape is NULL. */
static struct declared declared_by(const struct heap_dump *d, const struct heap_class *class,
                                   const struct heap_shape *shape)
{
    struct declared n = {0};
    const bool statics = !shape;
    struct hprof_class c;
    if (shape && class->injected[!shape->old_layout])
        n = injected[class->injected[!shape->old_layout] - 1].fields;
    if (!heap_class_read(d, class, &c))
        return n;
    for (unsigned i = statics ? c.statics : c.fields; i; i--) {
        unsigned type;
        if (statics) {
            struct hprof_static s;
            if (!hprof_static_read(&c.statics_at, d->header.id_size, false, &s))
                break;
            type = made_up(d, &s) ? 0 : s.type;
        } else {
            cursor_skip(&c.fields_at, d->header.id_size);
            type = cursor_u8(&c.fields_at);
        }
        unsigned size = hprof_type_size(type, d->header.id_size);
        if (type == HPROF_OBJECT)
            n.refs++;
        else if (size)
            n.width[size == 8 ? 0 : size == 4 ? 1 : size == 2 ? 2 : 3]++;
    }
    return n;
}

struct layout {
    uint32_t end;

    struct {
        uint32_t at, len;
    } holes[MAX_HOLES];

    unsigned holes_n;
};

/*
 * Places a field as JDK 15 and later do: into the smallest hole into which it fits, including those
 * of super classes, or else at the end.
 */
static void place(struct layout *l, uint32_t size)
{
    unsigned best = MAX_HOLES;
    for (unsigned i = 0; i < l->holes_n; i++) {
        uint32_t at = align_up(l->holes[i].at, size);
        if (at + size <= l->holes[i].at + l->holes[i].len &&
            (best == MAX_HOLES || l->holes[i].len < l->holes[best].len))
            best = i;
    }
    if (best < MAX_HOLES) {
        uint32_t start = l->holes[best].at, end = start + l->holes[best].len,
                 at = align_up(start, size);
        l->holes[best].len = at - start;
        if (at + size < end && l->holes_n < MAX_HOLES) {
            l->holes[l->holes_n].at = at + size;
            l->holes[l->holes_n++].len = end - at - size;
        }
        return;
    }
    uint32_t at = align_up(l->end, size);
    if (at > l->end && l->holes_n < MAX_HOLES) {
        l->holes[l->holes_n].at = l->end;
        l->holes[l->holes_n++].len = at - l->end;
    }
    l->end = at + size;
}

static void place_all(struct layout *l, const uint32_t *widths, unsigned n)
{
    for (unsigned w = 0; w < n; w++) {
        for (uint32_t i = 0; i < widths[w]; i++)
            place(l, 8u >> w);
    }
}

/* Adds padding that no field of this class or of its subclasses uses. */
static void pad(struct layout *l, uint32_t bytes)
{
    l->end += bytes;
    l->holes_n = 0;
}

static void add_contended(struct layout *l, const struct declared *n)
{
    pad(l, n->padding / 2);
    place_all(l, n->contended, 1);
    if (!n->gap)
        l->holes_n = 0;
    for (uint32_t i = 0; i < n->contended[1]; i++)
        place(l, 4);
    pad(l, n->padding / 2);
}

static void add_new(struct layout *l, const struct declared *n, uint32_t reference)
{
    const bool some = n->contended[0] + n->contended[1] > 0;
    uint32_t widths[WIDTHS];
    for (unsigned w = 0; w < WIDTHS; w++)
        widths[w] =
            n->width[w] - (w < ARRAY_SIZE(n->contended) ? MIN(n->contended[w], n->width[w]) : 0);
    place_all(l, widths, WIDTHS);
    for (uint32_t i = 0; i < n->refs; i++)
        place(l, reference);
    if (some) {
        add_contended(l, n);
    } else if (n->padding) {
        l->end = align_up(l->end, 8);
        pad(l, n->padding);
    }
}

/*
 * Lays out a class as JDK 8 to 14 do: it begins where its super class ends, aligned to a reference;
 * the widest fields come first, and one gap before them is filled.
 */
static void add_old(struct layout *l, const struct declared *n, uint32_t reference)
{
    struct declared left = *n;
    l->end = align_up(l->end, reference);
    if (left.width[0]) {
        uint32_t gap = align_up(l->end, 8) - l->end;
        for (unsigned w = 1; w < WIDTHS; w++) {
            while (left.width[w] && gap >= 8u >> w) {
                left.width[w]--;
                gap -= 8u >> w;
            }
        }
        if (left.refs && gap >= reference)
            left.refs--;
        l->end = align_up(l->end, 8);
    }
    for (unsigned w = 0; w < WIDTHS; w++)
        l->end += left.width[w] * (8u >> w);
    if (left.refs)
        l->end = align_up(l->end, reference) + left.refs * reference;
    if (n->padding)
        l->end = align_up(l->end, 8) + n->padding;
}

/* Lays out the classes in refs_first as JDK 8 to 14 do. */
static void add_refs_first(struct layout *l, const struct declared *n, uint32_t reference)
{
    l->end = align_up(l->end, reference) + n->refs * reference;
    if (n->width[0])
        l->end = align_up(l->end, 8);
    for (unsigned w = 0; w < WIDTHS; w++)
        l->end += n->width[w] * (8u >> w);
}

static uint32_t instance_size(const struct heap_dump *d, int32_t class, const struct heap_shape *s)
{
    int32_t chain[MAX_CHAIN];
    int n = 0;
    for (; class != HEAP_NO_CLASS && n < MAX_CHAIN; class = d->classes.data[class].super)
        chain[n++] = class;
    struct layout l = {.end = s->header};
    while (n > 0) {
        const struct heap_class *c = &d->classes.data[chain[--n]];
        struct declared own = declared_by(d, c, s);
        (!s->old_layout  ? add_new
         : c->refs_first ? add_refs_first
                         : add_old)(&l, &own, s->reference);
    }
    return align_up(l.end, s->alignment);
}

static uint32_t statics_size(const struct heap_dump *d, const struct heap_class *c,
                             const struct heap_shape *s)
{
    struct declared n = declared_by(d, c, NULL);
    uint64_t bytes = (uint64_t)n.refs * s->reference;
    if (n.width[0])
        bytes = align_up(bytes, 8);
    for (unsigned w = 0; w < WIDTHS; w++)
        bytes += (uint64_t)n.width[w] * (8u >> w);
    return align_up(bytes, 8);
}

static int by_id(const void *a, const void *b)
{
    const struct heap_class *x = *(struct heap_class *const *)a,
                            *y = *(struct heap_class *const *)b;
    return x->id < y->id ? -1 : x->id > y->id;
}

/*
 * Infers the size of class objects, which have fields that only the VM knows, from the distances of
 * neighbouring class objects minus their static fields.
 */
static int infer_mirror(struct heap_dump *d)
{
    struct heap_shape *s = &d->shape;
    uint32_t known = d->class_class == HEAP_NO_CLASS ? 64 : instance_size(d, d->class_class, s);
    uint32_t base = 0;
    _cleanup_free_ struct heap_class **sorted =
        malloc((d->classes.len + 1) * sizeof(struct heap_class *));
    if (!sorted)
        return -ENOMEM;
    for (size_t i = 0; i < d->classes.len; i++)
        sorted[i] = &d->classes.data[i];
    qsort(sorted, d->classes.len, sizeof(struct heap_class *), by_id);
    for (size_t i = 0; !s->assumed && i + 1 < d->classes.len; i++) {
        uint64_t gap = sorted[i + 1]->id - sorted[i]->id, statics = statics_size(d, sorted[i], s);
        if (gap >= statics + known && gap - statics <= known + 64 &&
            (!base || gap - statics < base))
            base = (uint32_t)(gap - statics);
    }
    s->mirror_base = base ? base : align_up(known + 24, 8);
    return 0;
}

void heap_shape_apply(struct heap_dump *d)
{
    for (size_t i = 0; i < d->classes.len; i++) {
        struct heap_class *c = &d->classes.data[i];
        c->size = instance_size(d, (int32_t)i, &d->shape);
        c->mirror_size =
            align_up(d->shape.mirror_base + statics_size(d, c, &d->shape), d->shape.alignment);
    }
}

static void score(struct heap_dump *d, struct heap_shape *s, const struct heap_gap *gaps, size_t n,
                  int64_t *ret)
{
    _cleanup_free_ uint32_t *sizes = calloc(d->classes.len + 1, sizeof(uint32_t));
    int64_t bad = 0;
    s->tried = s->agreed = 0;
    for (size_t i = 0; sizes && i < n; i++) {
        const struct heap_gap *g = &gaps[i];
        uint64_t size;
        if (g->tag == HPROF_INSTANCE_DUMP) {
            int32_t class = heap_dump_class(d, g->class_id);
            if (class == HEAP_NO_CLASS || class == d->class_class)
                continue;
            if (!sizes[class])
                sizes[class] = instance_size(d, class, s);
            size = sizes[class];
        } else {
            size = heap_array_size(s, g->tag == HPROF_OBJECT_ARRAY_DUMP ? HPROF_OBJECT : g->type,
                                   g->count, d->header.id_size);
        }
        s->tried++;
        s->agreed += size == g->gap;
        bad += size > g->gap;
    }
    *ret = (int64_t)s->agreed - 4 * bad;
}

int heap_shape_infer(struct heap_dump *d, uint32_t alignment, const struct heap_gap *gaps, size_t n)
{
    /*
     * Possible headers of instances and arrays: compact (JDK 24+) and 32-bit VMs; compressed class
     * pointers; uncompressed, JDK 23+ and before.
     */
    static const struct heap_shape shapes[] = {{12, 16, 4, 8}, {8, 12, 4, 8},  {12, 16, 8, 8},
                                               {16, 24, 8, 8}, {16, 20, 8, 8}, {8, 12, 8, 8},
                                               {16, 24, 4, 8}, {16, 20, 4, 8}};
    const bool addresses = alignment >= 8;
    int64_t best = 0;
    struct heap_shape found = {.assumed = true};
    /* If most objects have the same size, their addresses suggest an alignment that is too high. */
    for (uint32_t a = 8; a <= alignment; a *= 2) {
        for (size_t i = 0; i < ARRAY_SIZE(shapes) * 2; i++) {
            struct heap_shape s = shapes[i / 2];
            if (d->header.id_size == 4 && s.reference == 8)
                continue;
            int64_t points;
            s.alignment = a;
            s.old_layout = i % 2;
            score(d, &s, gaps, n, &points);
            if (points > best) {
                best = points;
                found = s;
            }
        }
    }
    if (found.assumed) {
        bool wide = d->max_id >> 35 && addresses;
        found = wide ? shapes[2] : shapes[d->header.id_size == 4];
        found.alignment = 8;
        found.assumed = true;
    }
    d->shape = found;
    return infer_mirror(d);
}

/*
 * Returns the number of bytes after an instance's fields (the frames of a stack chunk), if its
 * class says how many there are.
 */
static uint64_t fields_end(const struct heap_dump *d, const struct heap_class *c,
                           const struct hprof_item *item)
{
    if (!c->words_at || item->body_len < c->words_at + 3u)
        return 0;
    uint64_t words = hprof_value_at(item->body + c->words_at - 1, HPROF_INT, d->header.id_size);
    uint64_t bits = words * (8 / d->shape.reference);
    return words > INT32_MAX ? 0 : 8 * (words + (bits + 63) / 64);
}

uint64_t heap_item_size(const struct heap_dump *d, const struct hprof_item *item)
{
    if (item->tag == HPROF_OBJECT_ARRAY_DUMP)
        return heap_array_size(&d->shape, HPROF_OBJECT, item->count, d->header.id_size);
    if (item->tag == HPROF_PRIMITIVE_ARRAY_DUMP)
        return heap_array_size(&d->shape, item->type, item->count, d->header.id_size);
    int32_t class = heap_dump_class(d, item->tag == HPROF_CLASS_DUMP ? item->id : item->class_id);
    if (class == HEAP_NO_CLASS)
        return d->shape.alignment * 2;
    const struct heap_class *c = &d->classes.data[class];
    if (unlikely(c->words_at) && item->tag == HPROF_INSTANCE_DUMP)
        return align_up(c->size + fields_end(d, c, item), d->shape.alignment);
    return item->tag == HPROF_CLASS_DUMP ? c->mirror_size
           : class == d->class_class     ? d->shape.mirror_base
                                         : c->size;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "heap/children.h"

#include "heap/dominators.h"
#include "heap/memory.h"

enum { SLICE = 1 << 18, PREFETCH = 16 };

#define ALWAYS_INLINE inline __attribute__((always_inline))

/*
 * A child and its sort key, which is the complement of its retained size, so that the largest comes
 * first.
 */
struct weighed {
    uint32_t key, child;
};

/* The groups of children to be sorted: those whose dominators are in a slice. */
struct order {
    const struct heap_index_file *f;
    const void *ends;

    struct {
        struct weighed *children; /* room for cap of them, twice */
        uint64_t cap;
    } scratch[16]; /* one for each thread */
};

static ALWAYS_INLINE bool goes_before(const void *retained, uint64_t x, uint64_t y,
                                      const bool retained_wide)
{
    uint64_t rx = dominators_get(retained, x, retained_wide),
             ry = dominators_get(retained, y, retained_wide);
    return rx != ry ? rx > ry : x < y;
}

static int by_retained(const void *a, const void *b, void *ctx)
{
    const struct heap_index_file *f = ctx;
    const void *retained = heap_index_at(f, HEAP_RETAINED);
    const bool wide = f->header.wide;
    uint64_t x = dominators_get(a, 0, wide), y = dominators_get(b, 0, wide);
    return x == y ? 0 : goes_before(retained, x, y, f->header.retained_wide) ? -1 : 1;
}

enum { FEW = 24 };

static ALWAYS_INLINE void sort_few(uint8_t *group, uint64_t n, const void *retained,
                                   const bool wide, const bool retained_wide)
{
    for (uint64_t i = 1; i < n; i++) {
        uint64_t x = dominators_get(group, i, wide), at = i;
        for (; at && goes_before(retained, x, dominators_get(group, at - 1, wide), retained_wide);
             at--)
            dominators_set(group, at, dominators_get(group, at - 1, wide), wide);
        dominators_set(group, at, x, wide);
    }
}

/*
 * Sorts by the bytes in which the sizes differ, the least significant first. Each step keeps the
 * order of equal elements, and the children arrive in the order of their numbers.
 */
static int sort_many(struct order *o, unsigned thread, uint32_t *group, uint64_t n)
{
    const uint32_t *retained = heap_index_at(o->f, HEAP_RETAINED);
    if (n > o->scratch[thread].cap) {
        heap_memory_free(o->scratch[thread].children);
        o->scratch[thread].cap = MAX(n, (uint64_t)SLICE / 4);
        o->scratch[thread].children =
            heap_memory(o->scratch[thread].cap * 2 * sizeof(struct weighed));
        if (!o->scratch[thread].children) {
            o->scratch[thread].cap = 0;
            return -ENOMEM;
        }
    }
    struct weighed *from = o->scratch[thread].children, *to = from + n;
    uint32_t differ = 0;
    for (uint64_t i = 0; i < n; i++) {
        __builtin_prefetch(retained + group[MIN(i + PREFETCH, n - 1)]);
        from[i] = (struct weighed){~retained[group[i]], group[i]};
        differ |= from[i].key ^ from[0].key;
    }
    for (unsigned shift = 0; shift < 32; shift += 8) {
        if (!(differ >> shift & 255))
            continue;
        uint64_t at[257] = {0};
        for (uint64_t i = 0; i < n; i++)
            at[(from[i].key >> shift & 255) + 1]++;
        for (int k = 0; k < 256; k++)
            at[k + 1] += at[k];
        for (uint64_t i = 0; i < n; i++)
            to[at[from[i].key >> shift & 255]++] = from[i];
        struct weighed *swap = from;
        from = to;
        to = swap;
    }
    for (uint64_t i = 0; i < n; i++)
        group[i] = from[i].child;
    return 0;
}

static int sort_slice(void *ctx, unsigned thread, uint64_t slice)
{
    struct order *o = ctx;
    const struct heap_index_file *f = o->f;
    const bool wide = f->header.wide, retained_wide = f->header.retained_wide;
    const uint64_t width = wide ? 8 : 4;
    const uint64_t end = MIN((slice + 1) * SLICE, f->header.n + 1);
    const void *retained = heap_index_at(f, HEAP_RETAINED);
    uint8_t *children = heap_index_at(f, HEAP_CHILDREN);
    uint64_t from = slice ? dominators_get(o->ends, slice * SLICE - 1, wide) : 0;
    uint64_t fetched = from;
    uint64_t last = dominators_get(o->ends, end - 1, wide);
    for (uint64_t d = slice * SLICE; d < end; d++) {
        uint64_t to = dominators_get(o->ends, d, wide);
        uint8_t *group = children + from * width;
        fetched = MAX(fetched, from);
        for (; to - from <= FEW && fetched < MIN(to + 2 * PREFETCH, last); fetched++)
            __builtin_prefetch((const uint8_t *)retained +
                               dominators_get(children, fetched, wide) * (retained_wide ? 8 : 4));
        if (to - from > FEW && !wide && !retained_wide) {
            int error = sort_many(o, thread, (uint32_t *)group, to - from);
            if (error)
                return error;
        } else if (to - from > FEW)
            qsort_r(group, to - from, width, by_retained, (void *)f);
        else if (to - from > 1)
            wide ? sort_few(group, to - from, retained, true, retained_wide)
                 : sort_few(group, to - from, retained, false, retained_wide);
        from = to;
    }
    return 0;
}

/*
 * A group of children on the way down the dominator tree. The children from `first` up to but not
 * including `at` are left; `class` is the class of their dominator.
 */
struct step {
    uint64_t at, first, class;
};

/* The arrays that the descent reads, most of them at random places. */
struct descent {
    const void *children, *ends, *retained;
    struct heap view;
};

static ALWAYS_INLINE void expect_child(const struct descent *d, uint64_t at, const bool wide,
                                       const bool retained_wide)
{
    uint64_t child = dominators_get(d->children, at, wide);
    __builtin_prefetch((const uint8_t *)d->ends + child * (wide ? 8 : 4));
    __builtin_prefetch((const uint8_t *)d->retained + child * (retained_wide ? 8 : 4));
    __builtin_prefetch((const uint8_t *)d->view.class_of + child * (d->view.class_wide ? 4 : 2));
}

static ALWAYS_INLINE struct step enter(const struct descent *d, uint64_t first, uint64_t end,
                                       uint64_t class, const bool wide, const bool retained_wide)
{
    for (uint64_t k = end; k > first && end - k < PREFETCH; k--)
        expect_child(d, k - 1, wide, retained_wide);
    return (struct step){end, first, class};
}

/*
 * Computes what the instances of each class retain together: the sum over those that no other
 * instance of the class dominates. Traverses the whole tree once; `ends` are the ends of the groups
 * of children. The smallest child comes first, because it mostly has no children of its own, and
 * meanwhile the data of the largest one gets into the cache.
 */
static ALWAYS_INLINE int sum_classes(const struct heap_index_file *f, struct heap_dump *dump,
                                     const void *ends, void **spare, const bool wide,
                                     const bool retained_wide)
{
    const struct descent d = {.children = heap_index_at(f, HEAP_CHILDREN),
                              .ends = ends,
                              .retained = heap_index_at(f, HEAP_RETAINED),
                              .view = heap_index_view(f, dump)};
    struct heap_class *classes = dump->classes.data;
    const uint64_t n = f->header.n, no_class = dump->classes.len;
    /* above: for each class, the number of its instances on the current path. */
    uint64_t *above = calloc(no_class + 1, sizeof(uint64_t)), depth = 0;
    /* Three entries per step. Pages that are not used take no memory. */
    void *way = heap_memory_again(TAKE(*spare), (n + 1) * 3 * (wide ? 8 : 4));
    int error = above && way ? 0 : -ENOMEM;
    struct step s = {0};
    if (!error)
        s = enter(&d, dominators_get(ends, n - 1, wide), dominators_get(ends, n, wide), no_class,
                  wide, retained_wide);
    while (!error) {
        if (s.at == s.first) {
            if (!depth)
                break;
            above[s.class]--;
            depth--;
            s = (struct step){dominators_get(way, depth * 3, wide),
                              dominators_get(way, depth * 3 + 1, wide),
                              dominators_get(way, depth * 3 + 2, wide)};
            continue;
        }
        uint64_t child = dominators_get(d.children, --s.at, wide);
        uint64_t first = child ? dominators_get(ends, child - 1, wide) : 0;
        uint64_t end = dominators_get(ends, child, wide);
        if (s.at - s.first >= PREFETCH)
            expect_child(&d, s.at - PREFETCH, wide, retained_wide);
        uint64_t class = (uint64_t)heap_class_of(&d.view, child);
        if (!above[class])
            classes[class].retained += dominators_get(d.retained, child, retained_wide)
                                       << f->header.size_shift;
        if (first == end)
            continue;
        above[class]++;
        dominators_set(way, depth * 3, s.at, wide);
        dominators_set(way, depth * 3 + 1, s.first, wide);
        dominators_set(way, depth * 3 + 2, s.class, wide);
        depth++;
        s = enter(&d, first, end, class, wide, retained_wide);
    }
    heap_memory_free(way);
    free(above);
    struct heap_index_class *rows = heap_index_at(f, HEAP_CLASSES);
    for (size_t i = 0; i < dump->classes.len; i++)
        rows[i].retained = classes[i].retained;
    return error;
}

/* Lists the children by dominator. Afterwards ends[d] is the end of the group of d. */
static ALWAYS_INLINE void group_children(const struct heap_index_file *f, uint8_t *ends,
                                         const bool wide)
{
    const uint64_t n = f->header.n;
    const uint64_t width = wide ? 8 : 4;
    const uint64_t none = wide ? UINT64_MAX : UINT32_MAX;
    const void *idom = heap_index_at(f, HEAP_IDOM);
    uint8_t *children = heap_index_at(f, HEAP_CHILDREN);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t d = dominators_get(idom, i, wide);
        if (i + PREFETCH < n)
            __builtin_prefetch(ends + (dominators_get(idom, i + PREFETCH, wide) + 1) * width, 1);
        if (d != none)
            dominators_set(ends, d + 1, dominators_get(ends, d + 1, wide) + 1, wide);
    }
    for (uint64_t d = 0; d <= n; d++)
        dominators_set(ends, d + 1,
                       dominators_get(ends, d + 1, wide) + dominators_get(ends, d, wide), wide);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t d = dominators_get(idom, i, wide);
        if (i + 2 * PREFETCH < n) {
            uint64_t near = dominators_get(idom, i + PREFETCH, wide);
            __builtin_prefetch(ends + dominators_get(idom, i + 2 * PREFETCH, wide) * width, 1);
            if (near != none)
                __builtin_prefetch(children + dominators_get(ends, near, wide) * width, 1);
        }
        if (d == none)
            continue;
        uint64_t at = dominators_get(ends, d, wide);
        dominators_set(children, at, i, wide);
        dominators_set(ends, d, at + 1, wide);
    }
}

int heap_children_write(const struct heap_index_file *f, struct heap_dump *d, void **spare,
                        void **other)
{
    const struct heap_index_header *h = &f->header;
    const uint64_t bytes = (h->n + 2) * (h->wide ? 8 : 4);
    uint8_t *ends = heap_memory_again(TAKE(*spare), bytes);
    if (!ends)
        return -ENOMEM;
    memset(ends, 0, bytes);
    h->wide ? group_children(f, ends, true) : group_children(f, ends, false);
    struct order order = {.f = f, .ends = ends};
    int error = heap_parallel(d->threads, h->n / SLICE + 1, sort_slice, &order);
    for (size_t t = 0; t < ARRAY_SIZE(order.scratch); t++)
        heap_memory_free(order.scratch[t].children);
    if (!error && h->n)
        error = h->wide            ? sum_classes(f, d, ends, other, true, h->retained_wide)
                : h->retained_wide ? sum_classes(f, d, ends, other, false, true)
                                   : sum_classes(f, d, ends, other, false, false);
    heap_memory_free(ends);
    return error;
}

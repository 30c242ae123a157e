/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "heap/children.h"
#include "heap/dominators.h"
#include "heap/index.h"
#include "heap/memory.h"
#include "heap/references.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#define ALWAYS_INLINE inline __attribute__((always_inline))

enum { SLICE = 1 << 18, PREFETCH = 16 };

struct build {
    struct heap_dump *d;
    const struct heap_settings *settings;
    struct heap_index_file *f;
    struct heap_ids ids;
    struct edges edges;
    uint64_t *roots, roots_n;
    struct dominators dom;
    void *vertex, *sizes;
    unsigned sizes_shift; /* the unit of sizes, which have 8 bytes if sizes_wide, otherwise 4 */
    bool wide, class_wide, sizes_wide;
    uint64_t started_ns, lap_ns, dangling;
    struct heap_build_times times;
};

static uint64_t anonymous_now(void)
{
    uint8_t *text;
    size_t len;
    uint64_t kib = 0;
    if (file_read_path("/proc/self/status", 1 << 16, &text, &len) < 0)
        return 0;
    const char *line = strstr((const char *)text, "RssAnon:");
    if (line)
        kib = strtoull(line + 8, NULL, 10);
    free(text);
    return kib * 1024;
}

/* Samples the memory in use every few milliseconds, because it peaks within phases. */
struct watch {
    pthread_t thread;
    volatile bool done;
    uint64_t most;
};

static void *watch_memory(void *argument)
{
    struct watch *w = argument;
    while (!__atomic_load_n(&w->done, __ATOMIC_ACQUIRE)) {
        w->most = MAX(w->most, anonymous_now());
        usleep(10000);
    }
    return NULL;
}

/* Ends a phase and stores its duration in seconds. */
static void lap(struct build *b, double *seconds, const char *next)
{
    uint64_t now = now_ns();
    *seconds += (double)(now - b->lap_ns) / 1e9;
    b->lap_ns = now;
    if (b->settings->step && next)
        b->settings->step(b->settings->ctx, next);
}

static int add_ids(void *ctx, unsigned thread, uint64_t i)
{
    struct build *b = ctx;
    const struct heap_chunk *chunk = &b->d->chunks.data[i];
    struct hprof_items it = heap_chunk_items(b->d, chunk);
    struct hprof_item item;
    struct heap_ids_adder adder = {.ids = &b->ids};
    uint64_t slot = chunk->first;
    while (hprof_item_next(&it, &item) > 0) {
        if (hprof_item_is_object(&item) || item.tag == HPROF_CLASS_DUMP)
            heap_ids_add(&adder, item.id, slot++);
    }
    heap_ids_add_end(&adder);
    return 0;
}

static int number_objects(struct build *b)
{
    struct heap_dump *d = b->d;
    uint64_t total = 0;
    for (size_t i = 0; i < d->chunks.len; i++)
        total += d->chunks.data[i].objects;
    int error = heap_ids_init(&b->ids, d->min_id, d->max_id, d->id_bits, total);
    if (!error)
        error = heap_parallel(d->threads, d->chunks.len, add_ids, b);
    return error ? error : heap_ids_seal(&b->ids);
}

static int read_references(struct build *b)
{
    struct heap_columns columns = {.offset_low = heap_index_at(b->f, HEAP_OFFSET_LOW),
                                   .offset_high = heap_index_at(b->f, HEAP_OFFSET_HIGH),
                                   .class_of = heap_index_at(b->f, HEAP_CLASS_OF),
                                   .sizes = heap_index_at(b->f, HEAP_RETAINED),
                                   .class_wide = b->class_wide,
                                   .sizes_wide = b->f->header.retained_wide,
                                   .size_shift = b->f->header.size_shift};
    return heap_references_read(b->d, &b->ids, &b->edges, &columns);
}

static int find_roots(struct build *b)
{
    b->roots = malloc((b->d->roots.len + 1) * sizeof(uint64_t));
    if (!b->roots)
        return -ENOMEM;
    uint64_t last = HEAP_NONE;
    for (size_t i = 0; i < b->d->roots.len; i++) {
        uint64_t number = heap_ids_find(&b->ids, b->d->roots.data[i].id); /* the ids are sorted */
        if (number != HEAP_NONE && number != last)
            b->roots[b->roots_n++] = last = number;
    }
    return 0;
}

/* Creates the sections of the index once the number of objects is known. */
static int lay_out(struct build *b, const char *path, uint64_t mtime_ns)
{
    struct heap_index_header *h = &b->f->header;
    struct heap_dump *d = b->d;
    uint64_t n = b->ids.count, width;
    b->wide = b->settings->wide || n >= UINT32_MAX - 2 || d->len / d->header.id_size >= UINT32_MAX;
    b->class_wide = d->classes.len > UINT16_MAX;
    width = b->wide ? 8 : 4;
    heap_index_stamp(h, d, mtime_ns);
    h->strong = b->settings->strong;
    h->wide = b->wide;
    h->class_wide = b->class_wide;
    h->size_shift = (uint32_t)__builtin_ctz(d->shape.alignment);
    h->retained_wide = d->bytes >> h->size_shift >= UINT32_MAX;
    h->n = n;
    h->ids = b->ids;
    h->shape = d->shape;
    h->min_id = d->min_id;
    h->max_id = d->max_id;
    h->id_bits = d->id_bits;
    h->instances = d->instances;
    h->arrays = d->arrays;
    h->mirrors = d->mirrors;
    h->objects = d->objects;
    h->bytes = d->bytes;
    h->cut = d->cut;
    h->garbage_at = d->garbage_at;
    h->sections[HEAP_CLASSES].bytes = d->classes.len * sizeof(struct heap_index_class);
    h->sections[HEAP_ROOTS].bytes = d->roots.len * sizeof(struct heap_root);
    h->sections[HEAP_CHUNKS].bytes = d->chunks.len * sizeof(struct heap_chunk);
    h->sections[HEAP_IDS].bytes = b->ids.bitmap ? b->ids.lines_n * 64 : n * 8;
    h->sections[HEAP_RANKS].bytes = (b->ids.lines_n + 1) * 8;
    h->sections[HEAP_CLASS_OF].bytes = n * (b->class_wide ? 4 : 2);
    h->sections[HEAP_OFFSET_LOW].bytes = n * 4;
    h->sections[HEAP_OFFSET_HIGH].bytes = n;
    h->sections[HEAP_IDOM].bytes = n * width;
    h->sections[HEAP_RETAINED].bytes = (n + 1) * (h->retained_wide ? 8 : 4);
    h->sections[HEAP_CHILDREN].bytes = n * width;
    h->sections[HEAP_PATH].bytes = n * width;
    h->sections[HEAP_PATH_WEAK].bytes = n / 8 + 1;
    return heap_index_create(b->f, path);
}

static void copy_classes(struct build *b)
{
    const struct heap_dump *d = b->d;
    struct heap_index_class *classes = heap_index_at(b->f, HEAP_CLASSES);
    for (size_t i = 0; i < d->classes.len; i++) {
        const struct heap_class *c = &d->classes.data[i];
        classes[i] =
            (struct heap_index_class){c->id,      c->record ? (uint64_t)(c->record - d->data) : 0,
                                      c->objects, c->bytes,
                                      0,          c->held_by_instances};
    }
}

static void copy_small(struct build *b)
{
    struct heap_dump *d = b->d;
    struct heap_index_header *h = &b->f->header;
    copy_classes(b);
    struct heap_root *roots = heap_index_at(b->f, HEAP_ROOTS);
    for (size_t i = 0; i < d->roots.len; i++) {
        /*
         * The members are set one by one, because padding may hold anything: the same dump must
         * give the same index.
         */
        roots[i].id = d->roots.data[i].id;
        roots[i].tag = d->roots.data[i].tag;
        roots[i].thread = d->roots.data[i].thread;
        roots[i].frame = d->roots.data[i].frame;
    }
    if (d->chunks.len)
        memcpy(heap_index_at(b->f, HEAP_CHUNKS), d->chunks.data, h->sections[HEAP_CHUNKS].bytes);
    memcpy(heap_index_at(b->f, HEAP_IDS), b->ids.bitmap ? b->ids.lines : b->ids.sorted,
           h->sections[HEAP_IDS].bytes);
    memcpy(heap_index_at(b->f, HEAP_RANKS), b->ids.bitmap ? b->ids.ranks : b->ids.buckets,
           h->sections[HEAP_RANKS].bytes);
    h->ids.lines = h->ids.ranks = h->ids.sorted = h->ids.buckets = NULL;
}

/*
 * Fetches the entries of a node's first targets into the cache. The list of targets is in the cache
 * already.
 */
static void expect_targets(const struct build *b, const uint8_t *path, uint64_t node)
{
    const uint8_t *run = edges_of(&b->edges, node);
    uint64_t target;
    for (int i = 0; run && i < 4 && edges_next(&run, node, &target); i++)
        __builtin_prefetch(path + target * (b->wide ? 8 : 4), 1);
}

/*
 * A breadth-first search that follows strong references first. Afterwards path[i] is the object
 * before i on a shortest path from a root.
 */
static int find_paths(struct build *b)
{
    const uint64_t n = b->ids.count;
    const bool wide = b->wide;
    void *path = heap_index_at(b->f, HEAP_PATH);
    void *queue = heap_memory((n + 1) * (wide ? 8 : 4));
    uint8_t *weak_path = heap_index_at(b->f, HEAP_PATH_WEAK);
    uint64_t head = 0, tail = 0, scan = 0, target;
    if (!queue)
        return -ENOMEM;
    memset(path, 0xff, n * (wide ? 8 : 4));
    const uint64_t none = wide ? UINT64_MAX : UINT32_MAX;
    for (uint64_t i = 0; i < b->roots_n; i++) {
        dominators_set(path, b->roots[i], n, wide);
        dominators_set(queue, tail++, b->roots[i], wide);
    }
    for (bool weak_phase = false;;) {
        while (head < tail) {
            uint64_t node = dominators_get(queue, head++, wide);
            if (head + 2 * PREFETCH < tail) {
                const uint8_t *near =
                    edges_of(&b->edges, dominators_get(queue, head + PREFETCH, wide));
                __builtin_prefetch(b->edges.low + dominators_get(queue, head + 2 * PREFETCH, wide));
                __builtin_prefetch(near);
                expect_targets(b, path, dominators_get(queue, head + PREFETCH / 2, wide));
            }
            const uint8_t *run = edges_of(&b->edges, node);
            bool skip = edges_first_weak(&b->edges, node);
            while (run && edges_next(&run, node, &target)) {
                if (!skip && dominators_get(path, target, wide) == none) {
                    dominators_set(path, target, node, wide);
                    dominators_set(queue, tail++, target, wide);
                    if (weak_phase)
                        weak_path[target / 8] |= (uint8_t)(1 << target % 8);
                }
                skip = false;
            }
        }
        /* All strong paths are known; now follow one weak reference after the other. */
        weak_phase = true;
        for (; scan < tail && head == tail; scan++) {
            uint64_t node = dominators_get(queue, scan, wide);
            const uint8_t *run = edges_of(&b->edges, node);
            if (!edges_first_weak(&b->edges, node) || !run || !edges_next(&run, node, &target) ||
                dominators_get(path, target, wide) != none)
                continue;
            dominators_set(path, target, node, wide);
            dominators_set(queue, tail++, target, wide);
            weak_path[target / 8] |= (uint8_t)(1 << target % 8);
        }
        if (head == tail)
            break;
    }
    heap_memory_free(queue);
    return 0;
}

static void *find_paths_thread(void *argument)
{
    return (void *)(intptr_t)find_paths(argument);
}

/*
 * Runs the depth-first search, which cannot be split. Meanwhile another thread finds the shortest
 * paths.
 */
static int search(struct build *b)
{
    pthread_t thread;
    void *result = NULL;
    bool parallel = b->d->threads > 1 && pthread_create(&thread, NULL, find_paths_thread, b) == 0;
    int error =
        dominators_search(&b->dom, &b->edges, b->roots, b->roots_n, b->wide, b->settings->strong);
    if (parallel)
        pthread_join(thread, &result);
    else
        result = find_paths_thread(b);
    return error ? error : (int)(intptr_t)result;
}

/*
 * Stores shallow sizes and the objects' numbers by search number. During the search, `number` is
 * kept in the IDOM section and the shallow sizes in the section of retained sizes.
 */
static int size_slice(void *ctx, unsigned thread, uint64_t slice)
{
    struct build *b = ctx;
    struct heap view = heap_index_view(b->f, b->d);
    const void *number = heap_index_at(b->f, HEAP_IDOM);
    const uint32_t *shallow = heap_index_at(b->f, HEAP_RETAINED); /* not used if sizes_wide */
    uint64_t end = MIN((slice + 1) * SLICE, b->ids.count);
    for (uint64_t i = slice * SLICE; i < end; i++) {
        uint64_t v = dominators_get(number, i, b->wide);
        uint64_t later = i + PREFETCH < end ? dominators_get(number, i + PREFETCH, b->wide) : 0;
        __builtin_prefetch((uint8_t *)b->sizes + later * (b->sizes_wide ? 8 : 4), 1);
        __builtin_prefetch((uint8_t *)b->vertex + later * (b->wide ? 8 : 4), 1);
        if (!v)
            continue;
        dominators_set(b->sizes, v, b->sizes_wide ? heap_shallow(&view, i) : shallow[i],
                       b->sizes_wide);
        dominators_set(b->vertex, v, i, b->wide);
    }
    return 0;
}

static int output_slice(void *ctx, unsigned thread, uint64_t slice)
{
    struct build *b = ctx;
    void *idom = heap_index_at(b->f, HEAP_IDOM), *retained = heap_index_at(b->f, HEAP_RETAINED);
    const struct heap_index_header *h = &b->f->header;
    uint64_t end = MIN((slice + 1) * SLICE, b->ids.count);
    for (uint64_t i = slice * SLICE; i < end; i++) {
        uint64_t v = dominators_get(idom, i, b->wide);
        uint64_t later = i + PREFETCH < end ? dominators_get(idom, i + PREFETCH, b->wide) : 0;
        __builtin_prefetch((const uint8_t *)b->sizes + later * (b->sizes_wide ? 8 : 4));
        __builtin_prefetch((const uint8_t *)b->dom.idom + later * (b->wide ? 8 : 4));
        uint64_t over = v ? dominators_get(b->dom.idom, v, b->wide) : 0;
        if (v) /* unreachable objects already have their own size there */
            dominators_set(retained, i,
                           dominators_get(b->sizes, v, b->sizes_wide) << b->sizes_shift >>
                               h->size_shift,
                           h->retained_wide);
        dominators_set(idom, i,
                       !v          ? HEAP_NONE
                       : over == 1 ? b->ids.count
                                   : dominators_get(b->vertex, over, b->wide),
                       b->wide);
    }
    return 0;
}

static ALWAYS_INLINE void sum_sizes(struct build *b, const bool wide, const bool sizes_wide)
{
    for (uint64_t v = b->dom.reached; v > 1; v--) {
        uint64_t over = dominators_get(b->dom.idom, v, wide),
                 sum = dominators_get(b->sizes, over, sizes_wide);
        dominators_set(b->sizes, over, sum + dominators_get(b->sizes, v, sizes_wide), sizes_wide);
    }
}

static int sum_retained(struct build *b)
{
    const uint64_t reached = b->dom.reached, slices = (b->ids.count + SLICE - 1) / SLICE;
    const struct heap_index_header *h = &b->f->header;
    /* With the usual alignment all sizes are multiples of it, and so are their sums. */
    b->sizes_wide =
        b->wide || h->retained_wide || h->size_shift != 3 || b->d->shape.mirror_base % 8;
    b->sizes_shift = b->sizes_wide ? 0 : h->size_shift;
    b->sizes = heap_memory_again(TAKE(b->dom.spare[0]), (reached + 2) * (b->sizes_wide ? 8 : 4));
    b->vertex = heap_memory_again(TAKE(b->dom.spare[1]), (reached + 2) * (b->wide ? 8 : 4));
    if (!b->sizes || !b->vertex)
        return -ENOMEM;
    /* the root has no size; the others are set below */
    dominators_set(b->sizes, 1, 0, b->sizes_wide);
    int error = heap_parallel(b->d->threads, slices, size_slice, b);
    if (error)
        return error;
    b->wide         ? sum_sizes(b, true, true)
    : b->sizes_wide ? sum_sizes(b, false, true)
                    : sum_sizes(b, false, false);
    uint64_t total = dominators_get(b->sizes, 1, b->sizes_wide) << b->sizes_shift;
    dominators_set(heap_index_at(b->f, HEAP_RETAINED), b->ids.count, total >> h->size_shift,
                   h->retained_wide);
    error = heap_parallel(b->d->threads, slices, output_slice, b);
    b->f->header.reachable = reached - 1;
    return error;
}

/* Marks the classes that only their instances keep alive. Returns whether there are any. */
static bool find_held_classes(struct build *b)
{
    struct heap_dump *d = b->d;
    struct heap view = heap_index_view(b->f, b->d);
    bool found = false, any = false;
    for (size_t i = 0; i < d->classes.len; i++) {
        struct heap_class *c = &d->classes.data[i];
        uint64_t number = c->record && c->objects && (int32_t)i != d->class_class
                              ? heap_ids_find(&b->ids, c->id)
                              : HEAP_NONE;
        c->held_by_instances =
            number != HEAP_NONE && !dominators_get(b->dom.number, number, b->wide);
        any = any || c->held_by_instances;
    }
    for (uint64_t i = 0; any && !found && i < b->ids.count; i++)
        found = d->classes.data[heap_class_of(&view, i)].held_by_instances &&
                dominators_get(b->dom.number, i, b->wide);
    return found;
}

/*
 * Searches, and repeats it with references from objects to their classes if some classes are not
 * reachable otherwise.
 */
static int search_all(struct build *b)
{
    int error = search(b);
    if (error || !find_held_classes(b))
        return error;
    b->d->class_edges = true;
    edges_release(&b->edges);
    dominators_release(&b->dom);
    memset(heap_index_at(b->f, HEAP_PATH_WEAK), 0, b->ids.count / 8 + 1);
    error = read_references(b);
    copy_classes(b);
    return error ? error : search(b);
}

static int build_graph(struct build *b)
{
    int error = search_all(b);
    lap(b, &b->times.search, "dominators");
    if (!error)
        error =
            dominators_finish(&b->dom, &b->edges, heap_index_at(b->f, HEAP_IDOM), b->d->threads);
    lap(b, &b->times.dominators, "retained sizes");
    if (!error)
        error = sum_retained(b);
    dominators_release(&b->dom);
    if (!error)
        error = heap_children_write(b->f, b->d, &b->sizes, &b->vertex);
    heap_memory_free(b->sizes);
    heap_memory_free(b->vertex);
    lap(b, &b->times.retained, NULL);
    return error;
}

int heap_build(struct heap_dump *d, const struct heap_settings *s, const char *path,
               uint64_t mtime_ns, struct heap_index_file *f)
{
    struct build b = {.d = d, .settings = s, .f = f, .started_ns = now_ns()};
    struct rusage usage;
    if (d->len >> 40)
        return -EMSGSIZE; /* offsets are stored in five bytes */
    if (s->step)
        s->step(s->ctx, "objects");
    b.lap_ns = b.started_ns;
    heap_memory_limit(s->memory, NULL);
    struct watch watch = {.most = anonymous_now()};
    bool watched = pthread_create(&watch.thread, NULL, watch_memory, &watch) == 0;
    int error = heap_dump_survey(d);
    lap(&b, &b.times.survey, "addresses");
    if (!error)
        error = number_objects(&b);
    if (!error)
        error = lay_out(&b, path, mtime_ns);
    lap(&b, &b.times.ids, "references");
    if (!error)
        error = read_references(&b);
    if (!error)
        error = find_roots(&b);
    if (!error)
        copy_small(&b);
    lap(&b, &b.times.references, "search");
    if (!error)
        error = build_graph(&b);
    heap_ids_release(&b.ids);
    edges_release(&b.edges);
    dominators_release(&b.dom);
    free(b.roots);
    __atomic_store_n(&watch.done, true, __ATOMIC_RELEASE);
    if (watched)
        pthread_join(watch.thread, NULL);
    b.times.peak_bytes = watch.most;
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        b.times.cpu = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                      (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    b.times.total = (double)(now_ns() - b.started_ns) / 1e9;
    b.times.spilled = heap_memory_spilled();
    f->header.times = b.times;
    return error;
}

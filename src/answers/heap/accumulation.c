/* SPDX-License-Identifier: Apache-2.0 */
#include "answers/heap/accumulation.h"

#include <stdlib.h>
#include <string.h>

enum { CHAIN = 8, MAX_SIDE = 8 };

/* "int[][]" is an array of references, but to nothing of the program's. */
static bool is_of_primitives(const char *name)
{
    size_t n = strcspn(name, "[");
    for (unsigned type = HPROF_BOOLEAN; name[n] && type <= HPROF_LONG; type++)
        if (strlen(hprof_type_name(type)) == n && strncmp(name, hprof_type_name(type), n) == 0)
            return true;
    return false;
}

bool heap_is_program_class(const struct heap_class *c)
{
    static const char *const jdk[] = {"java.", "javax.", "jdk.", "sun.", "com.sun."};
    for (size_t i = 0; i < ARRAY_SIZE(jdk); i++)
        if (strncmp(c->name, jdk[i], strlen(jdk[i])) == 0)
            return false;
    return c->kind != HEAP_PRIMITIVE_ARRAY && !is_of_primitives(c->name);
}

/*
 * Objects and bytes by class. Classes with the same name, which several loaders have loaded, count
 * as one.
 */
struct tally {
    uint64_t objects, bytes;
    uint64_t own; /* objects of this very class, without those of others with the same name */
    /* the java.lang.Class objects of classes with this name */
    uint64_t versions, version_bytes;
    int32_t same; /* the first class with that name */
};

static struct tally *tally_new(const struct heap *h)
{
    const size_t n = h->dump->classes.len;
    struct tally *t = calloc(n + 1, sizeof(*t));
    struct map names = {0};
    for (size_t k = 0; t && k < n; k++) {
        /* Each name is stored only once. */
        uint64_t *first =
            map_at(&names, (uint64_t)(uintptr_t)h->dump->classes.data[k].name, k, NULL);
        t[k].same = first ? (int32_t)*first : (int32_t)k;
    }
    map_release(&names);
    return t;
}

static void tally_clear(struct tally *t, const struct heap *h)
{
    for (size_t k = 0; k < h->dump->classes.len; k++)
        t[k] = (struct tally){.same = t[k].same};
}

static void count_in(struct tally *t, const struct heap *h, uint64_t i)
{
    int32_t class = heap_class_of(h, i);
    struct tally *row = &t[t[class].same];
    t[class].own++;
    row->objects++;
    row->bytes += heap_retained(h, i);
    int32_t version =
        class == h->dump->class_class ? heap_dump_class(h->dump, heap_id(h, i)) : HEAP_NO_CLASS;
    if (version == HEAP_NO_CLASS)
        return;
    row = &t[t[version].same];
    row->versions++;
    row->version_bytes += heap_retained(h, i);
}

/* Returns the class with most bytes, and among equals the one with most objects. */
static int32_t largest(const struct tally *t, const struct heap *h)
{
    int32_t best = HEAP_NO_CLASS;
    for (size_t k = 0; k < h->dump->classes.len; k++) {
        const struct tally *b = best == HEAP_NO_CLASS ? NULL : &t[best];
        if (t[k].objects &&
            (!b || t[k].bytes > b->bytes || (t[k].bytes == b->bytes && t[k].objects > b->objects)))
            best = (int32_t)k;
    }
    return best;
}

/*
 * Descends as long as one child keeps most of the memory. A chain of objects of one class counts as
 * one place; it ends where the next link keeps less than half of what the first one keeps. side is
 * what the links of the chain hold apart from the next link.
 */
static void descend(const struct heap *h, uint64_t i, struct accumulation *c, struct tally *side)
{
    uint64_t first, count, links = 0, head = i;
    for (heap_children(h, i, &first, &count); count;
         heap_children_near(h, i, first, &first, &count)) {
        uint64_t child = heap_child(h, first);
        bool same = heap_class_of(h, child) == heap_class_of(h, i);
        if (heap_retained(h, child) / 7 < heap_retained(h, i) / 10 && !(same && links >= CHAIN))
            break;
        if (!same && links >= CHAIN && heap_retained(h, child) < heap_retained(h, head) / 2)
            break;
        if (!same) {
            links = 0;
            head = child;
            tally_clear(side, h);
        } else {
            links++;
            for (uint64_t k = 1; k < MIN(count, (uint64_t)MAX_SIDE); k++)
                count_in(side, h, heap_child(h, first + k));
        }
        i = child;
    }
    c->links = links >= CHAIN ? links : 0;
    c->place = c->links ? head : i;
}

/* Entries of the JDK's collections. Their contents accumulate, not the entries themselves. */
static bool is_entry(const char *name)
{
    const char *nested = strchr(name, '$');
    return nested &&
           (strncmp(name, "java.util.", 10) == 0 ||
            strncmp(name, "java.lang.ThreadLocal", 21) == 0) &&
           (strstr(nested, "Node") || strstr(nested, "Entry"));
}

/*
 * If most of the accumulating class objects have one name, uses that name instead of
 * "java.lang.Class".
 */
static void fill_versions(struct accumulation *c, const struct heap *h, const struct tally *t)
{
    size_t best = 0;
    for (size_t k = 1; k < h->dump->classes.len; k++)
        best = t[k].versions > t[best].versions ? k : best;
    if (t[best].versions < 2 || t[best].versions <= c->count / 2)
        return;
    c->versions = true;
    c->class = (int32_t)best;
    c->count = c->loaders = t[best].versions; /* a loader loads a name only once */
    c->bytes = t[best].version_bytes;
}

/*
 * Returns whether `place` dominates object i over at most CHAIN steps, as a collection dominates
 * what its entries hold.
 */
static bool lies_in(const struct heap *h, uint64_t i, uint64_t place)
{
    for (int depth = 0; depth < CHAIN && i < h->n; depth++) {
        i = heap_idom(h, i);
        if (i == place)
            return true;
    }
    return false;
}

/* Finds the class that most of the accumulating class loaders have loaded, each its own copy. */
static void fill_loaded(struct accumulation *c, const struct heap *h, const struct tally *t)
{
    const struct heap_dump *d = h->dump;
    _cleanup_free_ uint64_t *loaded = calloc(d->classes.len + 1, sizeof(*loaded));
    size_t best = 0;
    for (size_t k = 0; loaded && k < d->classes.len; k++) {
        const struct heap_class *class = &d->classes.data[k];
        uint64_t loader = class->loader_id && !class->made && class->kind == HEAP_INSTANCE
                              ? heap_ids_find(&h->ids, class->loader_id)
                              : HEAP_NONE;
        if (loader < h->n && t[heap_class_of(h, loader)].same == c->class &&
            lies_in(h, loader, c->place) && ++loaded[t[k].same] > loaded[best])
            best = (size_t)t[k].same;
    }
    if (loaded && loaded[best] > 1) {
        c->loaded = (int32_t)best;
        c->loaders = loaded[best];
    }
}

static void fill(struct accumulation *c, const struct heap *h, const struct tally *t, int32_t class)
{
    int32_t loader = heap_dump_class_named(h->dump, "java.lang.ClassLoader");
    c->versions = false;
    c->loaded = HEAP_NO_CLASS;
    c->loaders = 0;
    for (size_t k = 0; k < h->dump->classes.len; k++)
        c->loaders += t[k].same == class && t[k].own &&
                      (k == (size_t) class || !h->dump->classes.data[k].made);
    c->class = class;
    c->count = t[class].objects;
    c->bytes = t[class].bytes;
    if (class == h->dump->class_class)
        fill_versions(c, h, t);
    else if (loader != HEAP_NO_CLASS && heap_class_is(h->dump, class, loader))
        fill_loaded(c, h, t);
}

static void accumulation_of_children(const struct heap *h, struct accumulation *c, struct tally *t)
{
    uint64_t first, inner, inner_count;
    heap_children(h, c->place, &first, &c->children);
    for (uint64_t k = 0; k < c->children; k++)
        count_in(t, h, heap_child(h, first + k));
    int32_t class = largest(t, h);
    if (class == HEAP_NO_CLASS)
        return;
    fill(c, h, t, class);
    if (!is_entry(h->dump->classes.data[class].name))
        return;
    struct tally *values = tally_new(h);
    VEC(uint64_t) entries = {0};
    for (uint64_t k = 0; values && k < c->children; k++) {
        if (heap_class_of(h, heap_child(h, first + k)) == class &&
            vec_push(&entries, heap_child(h, first + k)) < 0)
            break;
    }
    while (entries.len) {
        heap_children(h, entries.data[--entries.len], &inner, &inner_count);
        for (uint64_t j = 0; j < MIN(inner_count, (uint64_t)MAX_SIDE); j++) {
            uint64_t held = heap_child(h, inner + j);
            if (heap_class_of(h, held) != class)
                count_in(values, h, held);
            else if (vec_push(&entries, held) < 0) /* the next entry in the same bucket */
                break;
        }
    }
    int32_t held = values ? largest(values, h) : HEAP_NO_CLASS;
    if (held != HEAP_NO_CLASS && values[held].bytes >= c->bytes / 3)
        fill(c, h, values, held);
    free(values);
    vec_release(&entries);
}

struct accumulation heap_accumulation(const struct heap *h, uint64_t i)
{
    struct accumulation c = {.place = i, .class = HEAP_NO_CLASS, .loaded = HEAP_NO_CLASS};
    struct tally *t = tally_new(h);
    if (!t)
        return c;
    descend(h, i, &c, t);
    if (c.links) {
        int32_t class = largest(t, h);
        if (class != HEAP_NO_CLASS)
            fill(&c, h, t, class);
    } else {
        tally_clear(t, h);
        accumulation_of_children(h, &c, t);
    }
    free(t);
    return c;
}

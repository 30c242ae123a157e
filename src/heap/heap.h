/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An analysed heap: the dump and its index. Objects are numbered 0 to n - 1 in the order of their
 * addresses; n is the virtual root, which retains the GC roots. The index is one mapped file. The
 * functions below return its data about an object, and are bounds-checked, whatever the file
 * contains.
 */
#pragma once

#include "heap/dump.h"
#include "heap/ids.h"

/* How long the build of an index took, and how much memory. */
struct heap_build_times {
    double survey, ids, references, search, dominators, retained, total; /* seconds */
    double cpu;
    /* The peak of anonymous memory, and the number of bytes put into temporary files. */
    uint64_t peak_bytes, spilled;
};

struct heap_settings {
    const char *index;    /* path of the index; NULL: next to the dump */
    bool rebuild, strong; /* strong: weak, soft, final and phantom references do not retain */
    bool wide;            /* use 8 bytes for numbers, whatever their range */
    uint64_t memory;      /* bytes of anonymous memory; 0 means no limit */
    int which;            /* which dump of several in the file; -1 for the last */
    void (*step)(void *ctx, const char *what);
    void *ctx;
};

/* The positions of a String's values. */
struct heap_string_fields {
    bool known, has_coder, has_part;
    uint32_t value, coder, offset, count;
};

struct heap {
    struct heap_dump *dump;
    struct heap_string_fields strings; /* see heap/text.h */
    struct heap_ids ids;
    uint64_t n, reachable;
    bool strong, built; /* built: by this call of heap_open */
    bool unkept;        /* built, and lost when the heap is closed: its file cannot be written */
    struct heap_build_times times;
    struct file_map map;
    bool wide, class_wide, retained_wide;
    unsigned size_shift; /* unit of retained sizes */
    const void *class_of, *idom, *retained, *children, *path;
    const uint32_t *offset_low;
    const uint8_t *offset_high;
    /* one bit for each object: the shortest path needs a weak reference */
    const uint8_t *path_weak;
    uint64_t index_bytes;
};

/*
 * Opens the index of the dump at `path`, building it if no suitable one exists. The caller frees
 * *ret. Returns 0 or a negative errno.
 */
int heap_open(struct heap **ret, const char *path, const struct heap_settings *settings) must_check;
/*
 * Returns whether a file is a heap dump alone, without samples or allocation sites. Reads
 * only the heads of the dump's records, and of a compressed file nothing: it counts as none.
 */
bool heap_is_all_of(const char *path);
/* Returns whether a readable file exists where heap_open would open the index of this dump. */
bool heap_index_exists(const char *path, const struct heap_settings *settings);
void heap_free(struct heap *h);
DEFINE_CLEANUP(struct heap *, heap_free)

static inline uint64_t heap_number_at_(const struct heap *h, const void *array, uint64_t i)
{
    if (h->wide) {
        uint64_t v = ((const uint64_t *)array)[i];
        return v <= h->n ? v : HEAP_NONE;
    }
    uint32_t v = ((const uint32_t *)array)[i];
    return v <= h->n ? v : HEAP_NONE;
}

/*
 * Returns the immediate dominator of object i, which is n for the virtual root; HEAP_NONE if the
 * object is not reachable.
 */
static inline uint64_t heap_idom(const struct heap *h, uint64_t i)
{
    return heap_number_at_(h, h->idom, i);
}

/*
 * Returns the object before object i on a shortest path from a GC root, along strong references if
 * such a path exists; n for a root, HEAP_NONE if the object is not reachable.
 */
static inline uint64_t heap_path(const struct heap *h, uint64_t i)
{
    return heap_number_at_(h, h->path, i);
}

/*
 * Returns the retained size of object i in bytes. For the virtual root (i = n) it is the size of
 * all reachable objects.
 */
static inline uint64_t heap_retained(const struct heap *h, uint64_t i)
{
    return (h->retained_wide ? ((const uint64_t *)h->retained)[i]
                             : ((const uint32_t *)h->retained)[i])
           << h->size_shift;
}

/* Returns the class number of object i; that of java.lang.Object if the index is damaged. */
static inline int32_t heap_class_of(const struct heap *h, uint64_t i)
{
    uint32_t c =
        h->class_wide ? ((const uint32_t *)h->class_of)[i] : ((const uint16_t *)h->class_of)[i];
    return c < h->dump->classes.len ? (int32_t)c : h->dump->object_class;
}

/* Returns the offset of object i's sub-record in the dump. */
static inline uint64_t heap_offset(const struct heap *h, uint64_t i)
{
    return h->offset_low[i] | (uint64_t)h->offset_high[i] << 32;
}

/* Reads the sub-record of object i. Returns false when the index does not fit the dump. */
bool heap_item(const struct heap *h, uint64_t i, struct hprof_item *ret);
/* Returns the shallow size of object i in bytes, or 0 when its sub-record cannot be read. */
uint64_t heap_shallow(const struct heap *h, uint64_t i);

/* Returns the size of an instance if that follows from its class alone, else 0. */
static inline uint64_t heap_size_by_class(const struct heap_dump *d, int32_t class)
{
    return class >= 0 && class != d->class_class && d->classes.data[class].kind == HEAP_INSTANCE &&
                   !d->classes.data[class].words_at
               ? d->classes.data[class].size
               : 0;
}

/* Returns the shallow size of an item, given its class number, which the index has. */
static inline uint64_t heap_size_with_class(const struct heap_dump *d,
                                            const struct hprof_item *item, int32_t class)
{
    uint64_t size = heap_size_by_class(d, class);
    return size ? size : heap_item_size(d, item);
}

static inline uint64_t heap_id(const struct heap *h, uint64_t i)
{
    return heap_ids_at(&h->ids, i);
}

/*
 * Stores the objects that i immediately dominates, largest first, as the numbers first to first +
 * count - 1 for heap_child.
 */
void heap_children(const struct heap *h, uint64_t i, uint64_t *ret_first, uint64_t *ret_count);
/*
 * Does what heap_children does, for callers that visit one object after the other: `near` is the
 * *ret_first of a nearby object. For neighbours this needs no search.
 */
void heap_children_near(const struct heap *h, uint64_t i, uint64_t near, uint64_t *ret_first,
                        uint64_t *ret_count);

/* Returns the object that is child number k, or object 0 if the index is damaged. */
static inline uint64_t heap_child(const struct heap *h, uint64_t k)
{
    uint64_t v = heap_number_at_(h, h->children, k);
    return v < h->n ? v : 0;
}

/* Iterates over every reference of an item. The ids are those of the dump; 0 is left out. */
struct heap_refs {
    const struct heap_dump *dump;
    const struct hprof_item *item;
    const struct heap_class *class;
    /* class_id: the object's class, which is returned as the last reference */
    uint64_t at, count, class_id;
    struct hprof_class mirror;
    bool weak; /* whether the last reference returned is weak */
};

/*
 * Begins with the references of an item, which must exist as long as r. heap_refs_next stores the
 * next reference and returns false after the last.
 */
void heap_refs_begin(struct heap_refs *r, const struct heap_dump *d, const struct hprof_item *item);
bool heap_refs_next(struct heap_refs *r, uint64_t *ret_id);

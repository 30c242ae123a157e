/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An analysed heap: the dump and its index. Objects are numbered 0 .. n-1 in order of their addresses; n is the virtual root
 * that holds the GC roots. The index is one file, mapped; what it says of an object is asked by the functions below, which
 * stay within bounds whatever the file holds.
 */
#pragma once

#include "heap/dump.h"
#include "heap/ids.h"

/* Why an index was built and what it took. */
struct heap_build_times {
    double survey, ids, references, search, dominators, retained, total; /* seconds */
    double cpu;
    uint64_t peak_bytes, spilled; /* anonymous memory at its highest, bytes put into temporary files */
};

struct heap_settings {
    const char *index;    /* the file, NULL: beside the dump */
    bool rebuild, strong; /* strong: weak, soft, final and phantom references hold nothing */
    bool wide;            /* 8 bytes a number, whatever the count */
    uint64_t memory;      /* bytes of anonymous memory, 0: no limit */
    int which;            /* dump of a file with several, -1: the last */
    void (*step)(void *ctx, const char *what);
    void *ctx;
};

/* Where the values of a String are. */
struct heap_string_fields {
    bool known, has_coder, has_part;
    uint32_t value, coder, offset, count;
};

struct heap {
    struct heap_dump *dump;
    struct heap_string_fields strings; /* see heap/text.h */
    struct heap_ids ids;
    uint64_t n, reachable;
    bool strong, built; /* built: by this opening */
    struct heap_build_times times;
    struct file_map map;
    bool wide, class_wide, retained_wide;
    unsigned size_shift; /* of retained sizes */
    const void *class_of, *idom, *retained, *children, *path;
    const uint32_t *offset_low;
    const uint8_t *offset_high;
    const uint8_t *path_weak; /* bits: the shortest path needs a weak reference */
    uint64_t index_bytes;
};

/* Opens the index of a dump, which is built when there is none that fits. Negative errno. */
int heap_open(struct heap **ret, const char *path, const struct heap_settings *settings) must_check;
/* Whether there is a file where the index would be. */
bool heap_index_there(const char *path, const struct heap_settings *settings);
void heap_free(struct heap *h);
DEFINE_CLEANUP(struct heap *, heap_free)

/* Checks every section of the index against its checksum. 0, or -EILSEQ. */
int heap_verify(const struct heap *h) must_check;

static inline uint64_t heap_number_at_(const struct heap *h, const void *array, uint64_t i)
{
    if (h->wide) {
        uint64_t v = ((const uint64_t *)array)[i];
        return v <= h->n ? v : HEAP_NONE;
    }
    uint32_t v = ((const uint32_t *)array)[i];
    return v <= h->n ? v : HEAP_NONE;
}

/* The immediate dominator; n for the virtual root, HEAP_NONE for an object that is not reachable. */
static inline uint64_t heap_idom(const struct heap *h, uint64_t i)
{
    return heap_number_at_(h, h->idom, i);
}

/* The object before it on a shortest path from a GC root, over strong references when there is such a path; n for a root. */
static inline uint64_t heap_path(const struct heap *h, uint64_t i)
{
    return heap_number_at_(h, h->path, i);
}

/* Retained size in bytes; of the virtual root too (i = n): all that is reachable. */
static inline uint64_t heap_retained(const struct heap *h, uint64_t i)
{
    return (h->retained_wide ? ((const uint64_t *)h->retained)[i] : ((const uint32_t *)h->retained)[i]) << h->size_shift;
}

static inline int32_t heap_class_of(const struct heap *h, uint64_t i)
{
    uint32_t c = h->class_wide ? ((const uint32_t *)h->class_of)[i] : ((const uint16_t *)h->class_of)[i];
    return c < h->dump->classes.len ? (int32_t)c : h->dump->object_class;
}

static inline uint64_t heap_offset(const struct heap *h, uint64_t i)
{
    return h->offset_low[i] | (uint64_t)h->offset_high[i] << 32;
}

/* The object's sub-record. False when the index does not fit the dump. */
bool heap_item(const struct heap *h, uint64_t i, struct hprof_item *ret);
uint64_t heap_shallow(const struct heap *h, uint64_t i);

static inline uint64_t heap_id(const struct heap *h, uint64_t i)
{
    return heap_ids_at(&h->ids, i);
}

/* The objects that i dominates immediately, largest first: numbers first .. first + count - 1 of heap_child. */
void heap_children(const struct heap *h, uint64_t i, uint64_t *ret_first, uint64_t *ret_count);
/* The same for one who goes along: `near` is where the children of an object at hand began. Of neighbours it takes no search.
 */
void heap_children_near(const struct heap *h, uint64_t i, uint64_t near, uint64_t *ret_first, uint64_t *ret_count);

static inline uint64_t heap_child(const struct heap *h, uint64_t k)
{
    uint64_t v = heap_number_at_(h, h->children, k);
    return v < h->n ? v : 0;
}

/* Visits every reference that an item holds: ids as they stand in the dump, 0 left out. */
struct heap_refs {
    const struct heap_dump *dump;
    const struct hprof_item *item;
    const struct heap_class *class;
    uint64_t at, count, class_id; /* class_id: its class is the last of the references */
    struct hprof_class mirror;
    bool weak; /* of the reference answered last */
};

void heap_refs_begin(struct heap_refs *r, const struct heap_dump *d, const struct hprof_item *item);
bool heap_refs_next(struct heap_refs *r, uint64_t *ret_id);

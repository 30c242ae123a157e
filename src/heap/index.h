/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index file of a heap: a header with a table of sections, then the sections, each aligned to
 * 4096 bytes. Numbers have the host's byte order.
 */
#pragma once

#include "heap/heap.h"

enum heap_section {
    HEAP_CLASSES,  /* struct heap_index_class */
    HEAP_ROOTS,    /* struct heap_root */
    HEAP_CHUNKS,   /* struct heap_chunk */
    HEAP_IDS,      /* lines of the bitmap, or sorted ids */
    HEAP_RANKS,    /* ranks or buckets */
    HEAP_CLASS_OF, /* u16 or u32 an object */
    HEAP_OFFSET_LOW,
    HEAP_OFFSET_HIGH,
    HEAP_IDOM,     /* u32 or u64 an object */
    HEAP_RETAINED, /* likewise, n + 1 of them, in units of the alignment */
    HEAP_CHILDREN, /* reachable objects, sorted by dominator and then by retained size */
    HEAP_PATH,
    HEAP_PATH_WEAK,
    HEAP_SECTIONS,
};

struct heap_index_class {
    uint64_t id;
    uint64_t record; /* offset of its CLASS DUMP, or 0 */
    uint64_t objects, bytes, retained, held_by_instances;
};

struct heap_index_header {
    char magic[16];
    uint32_t version, header_bytes;
    uint64_t dump_len, dump_mtime_ns, dump_hash;
    uint32_t chosen, strong, wide, class_wide, retained_wide, size_shift;
    uint64_t n, reachable;
    struct heap_ids ids; /* its pointers are 0 */
    struct heap_shape shape;
    uint64_t min_id, max_id, id_bits, garbage_at, instances, arrays, mirrors, objects, bytes;
    uint32_t cut, reserved;
    struct heap_build_times times;

    struct {
        uint64_t offset, bytes, checksum;
    } sections[HEAP_SECTIONS];

    uint64_t checksum; /* of everything before it */
};

/*
 * A file under construction. It has no name until it is committed, so that nothing is left when the
 * work is interrupted.
 */
struct heap_index_file {
    struct heap_index_header header;
    uint8_t *data; /* mapped, writable */
    uint64_t len;
    int fd;
    bool nameless; /* the folder is not writable, so the index lasts only as long as this run */
};

/*
 * Lays out the sections according to header.sections[].bytes and maps a new file in the folder of
 * `path`, or in /var/tmp if that folder is not writable (f->nameless). Returns 0 or a negative
 * errno.
 */
int heap_index_create(struct heap_index_file *f, const char *path) must_check;

static inline void *heap_index_at(const struct heap_index_file *f, enum heap_section s)
{
    return f->data + f->header.sections[s].offset;
}

/*
 * Returns the heap of an index whose sections of classes and positions are complete. It has no
 * other sections and need not be freed.
 */
static inline struct heap heap_index_view(const struct heap_index_file *f, struct heap_dump *d)
{
    return (struct heap){.dump = d,
                         .n = f->header.n,
                         .class_wide = f->header.class_wide,
                         .class_of = heap_index_at(f, HEAP_CLASS_OF),
                         .offset_low = heap_index_at(f, HEAP_OFFSET_LOW),
                         .offset_high = heap_index_at(f, HEAP_OFFSET_HIGH)};
}

/*
 * Stores in the header what identifies the dump. mtime_ns: when its file was modified, in ns since
 * 1970; not stored for a spooled dump.
 */
void heap_index_stamp(struct heap_index_header *h, const struct heap_dump *d, uint64_t mtime_ns);

/*
 * Surveys a dump and builds its index in `f`, which the caller commits or discards. path: of the
 * index. mtime_ns: as in heap_index_stamp. Returns 0 or a negative errno: -EMSGSIZE for a dump of
 * 2^40 bytes or more.
 */
int heap_build(struct heap_dump *d, const struct heap_settings *s, const char *path,
               uint64_t mtime_ns, struct heap_index_file *f) must_check;

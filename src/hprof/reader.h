/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads HPROF's binary format (HPROF Agent, "Binary Dump Format") from bytes in memory: the header,
 * the records, and the sub-records of heap dumps. It copies and allocates nothing; pointers lead
 * into the caller's bytes. Every read is bounds-checked. A truncated file can be read up to its
 * end.
 */
#pragma once

#include "base/cursor.h"
#include "base/macro.h"
#include "hprof/records.h"

#include <errno.h>

struct hprof_header {
    unsigned id_size; /* 4 or 8 */
    uint64_t time_ms; /* since 1970 */
    bool segments;    /* the version is 1.0.2 */
    uint32_t len;     /* length of the header in bytes */
};

enum hprof_end { HPROF_END_CLEAN, HPROF_END_CUT, HPROF_END_GARBAGE };

struct hprof_reader {
    const uint8_t *data;
    uint64_t len, at; /* at: the start of the next record */
    struct hprof_header header;
    uint64_t time_us;   /* time of the previous record, extended */
    enum hprof_end end; /* why hprof_next returned false */
};

struct hprof_record {
    enum hprof_tag tag;
    uint64_t time_us; /* since the header; extended, because TIME itself wraps every 71.6 minutes */
    const uint8_t *body;
    /*
     * The number of bytes present. For a heap dump whose stated length is impossible, the true
     * length.
     */
    uint64_t len;
    uint64_t offset; /* offset of the body in the file */
    bool cut;        /* the file ends within the record */
};

/*
 * Reads the header of a file's bytes, which must outlive the reader. Returns 0; -EBADMSG when the
 * bytes do not begin like HPROF or are too short; -ENOTSUP for HPROF's text format; -EINVAL for an
 * unknown version or size of ids.
 */
int hprof_reader_init(struct hprof_reader *r, const void *bytes, uint64_t len) must_check;
/*
 * Reads the next record. Returns false at the end, with the reason in r->end. Tags that the
 * specification does not define (below 0x80) are returned too; the caller skips what it does not
 * know. The length of a HEAP DUMP that wrapped at 4 GiB or was never filled in (0) is determined.
 */
bool hprof_next(struct hprof_reader *r, struct hprof_record *ret);

/* Returns whether the specification defines a record of this tag. */
bool hprof_tag_known(uint8_t tag);

/* Reads an id of the file's size. */
static inline uint64_t hprof_id(struct cursor *c, unsigned id_size)
{
    return id_size == 8 ? cursor_be64(c) : cursor_be32(c);
}

static inline uint64_t hprof_id_at(const uint8_t *p, unsigned id_size)
{
    uint64_t wide;
    uint32_t narrow;
    if (id_size == 8) {
        memcpy(&wide, p, 8);
        return be64toh(wide);
    }
    memcpy(&narrow, p, 4);
    return be32toh(narrow);
}

/* Sub-records that Android adds. They contain nothing that HotSpot's do not. */
enum hprof_android_tag {
    HPROF_ANDROID_INTERNED_STRING = 0x89,
    HPROF_ANDROID_FINALIZING = 0x8a,
    HPROF_ANDROID_DEBUGGER = 0x8b,
    HPROF_ANDROID_REFERENCE_CLEANUP = 0x8c,
    HPROF_ANDROID_VM_INTERNAL = 0x8d,
    HPROF_ANDROID_JNI_MONITOR = 0x8e,
    HPROF_ANDROID_UNREACHABLE = 0x90,
    HPROF_ANDROID_ARRAY_NODATA = 0xc3,
    HPROF_ANDROID_HEAP_INFO = 0xfe,
};

/* A sub-record of a heap dump. Members that its tag does not have are 0. */
struct hprof_item {
    uint8_t tag;
    uint8_t type;   /* element type of a primitive array */
    uint32_t count; /* number of elements of an array, or of bytes of an instance's values */
    /*
     * The serial number of a root's thread and its frame; for a thread object `frame` is the serial
     * number of its trace.
     */
    uint32_t thread, frame;
    /* class_id: the class of an instance or array, or the super class of a class. */
    uint64_t id, class_id;
    const uint8_t *start; /* the address of the tag */
    /* The values of an instance, the elements of an array, or what follows the id of a class. */
    const uint8_t *body;
    uint64_t body_len;
};

struct hprof_items {
    const uint8_t *at, *end;
    unsigned id_size;
};

static inline struct hprof_items hprof_items_of(const uint8_t *start, const uint8_t *end,
                                                unsigned id_size)
{
    return (struct hprof_items){start, end, id_size};
}

/* Reads a sub-record that is neither instance nor array. Returns what hprof_item_next returns. */
int hprof_item_other(struct hprof_items *it, struct hprof_item *ret) must_check;

/*
 * Reads the next sub-record. Returns 1, 0 at the end, -ENODATA when the sub-record is cut short, or
 * -EBADMSG for an unknown tag or element type. After an error it->at is unchanged.
 */
static inline int hprof_item_next(struct hprof_items *it, struct hprof_item *ret)
{
    const uint8_t *p = it->at;
    const unsigned n = it->id_size;
    uint64_t left = (uint64_t)(it->end - p);
    if (!left)
        return 0;
    uint32_t count;
    uint64_t body;
    switch (*p) {
    case HPROF_INSTANCE_DUMP: /* id, u4 trace, class id, u4 bytes */
        body = 9 + 2 * n;
        if (unlikely(left < body))
            return -ENODATA;
        memcpy(&count, p + 5 + 2 * n, 4);
        count = be32toh(count);
        ret->class_id = hprof_id_at(p + 5 + n, n);
        ret->body_len = count;
        break;
    case HPROF_OBJECT_ARRAY_DUMP: /* id, u4 trace, u4 elements, class id */
        body = 9 + 2 * n;
        if (unlikely(left < body))
            return -ENODATA;
        memcpy(&count, p + 5 + n, 4);
        count = be32toh(count);
        ret->class_id = hprof_id_at(p + 9 + n, n);
        ret->body_len = (uint64_t)count * n;
        break;
    case HPROF_PRIMITIVE_ARRAY_DUMP: /* id, u4 trace, u4 elements, u1 type */
        body = 10 + n;
        if (unlikely(left < body))
            return -ENODATA;
        memcpy(&count, p + 5 + n, 4);
        count = be32toh(count);
        ret->type = p[9 + n];
        unsigned size = hprof_type_size(ret->type, n);
        if (unlikely(!size))
            return -EBADMSG;
        ret->class_id = 0;
        ret->body_len = (uint64_t)count * size;
        break;
    default:
        return hprof_item_other(it, ret);
    }
    if (unlikely(left - body < ret->body_len))
        return -ENODATA;
    ret->tag = *p;
    ret->start = p;
    ret->id = hprof_id_at(p + 1, n);
    ret->count = count;
    ret->body = p + body;
    it->at = p + body + ret->body_len;
    return 1;
}

static inline bool hprof_item_is_object(const struct hprof_item *item)
{
    return item->tag >= HPROF_INSTANCE_DUMP && item->tag <= HPROF_PRIMITIVE_ARRAY_DUMP;
}

/*
 * The parts of a CLASS DUMP. The cursors are positioned at the entries, which the functions below
 * read.
 */
struct hprof_class {
    uint64_t id, super, loader, signers, domain;
    uint32_t instance_size;
    uint16_t constants, statics, fields; /* numbers of entries */
    struct cursor constants_at, statics_at, fields_at;
};

struct hprof_static {
    uint64_t name; /* id of a string; for a constant, its index in the pool */
    uint8_t type;
    uint64_t value; /* raw bits: an id, an int, a double's bits */
};

/*
 * Reads the parts of a class. Returns 0, or -EBADMSG when the item is not a class or is malformed.
 */
int hprof_class_read(const struct hprof_item *item, unsigned id_size,
                     struct hprof_class *ret) must_check;
/*
 * Reads the next entry of statics_at or, with `constant`, of constants_at. Returns false when the
 * entry is malformed.
 */
bool hprof_static_read(struct cursor *c, unsigned id_size, bool constant, struct hprof_static *ret);

/* Returns a value of a basic type at p as raw bits. The caller has checked that the bytes exist. */
static inline uint64_t hprof_value_at(const uint8_t *p, unsigned type, unsigned id_size)
{
    uint64_t v = 0;
    for (unsigned i = 0, size = hprof_type_size(type, id_size); i < size; i++)
        v = v << 8 | p[i];
    return v;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two passes over a dump of the VM's own dumper: redump.c visits its records, redump_learn.c takes in what the first pass
 * is for, redump_emit.c writes them as ours, of binary dumps all but the objects, which redump_binary.c copies.
 */
#pragma once

#include "base/arena.h"
#include "base/cursor.h"
#include "base/map.h"
#include "base/strpool.h"
#include "base/vec.h"
#include "hprof/redump.h"

enum { ID = 8, FILTER_BITS = 1 << 16, RECENT = 256 };

struct field {
    uint32_t offset; /* of a reference in the bytes of an instance */
    const char *name;
};

struct class
{
    uint64_t id, super, name;          /* name: the string's id */
    const uint8_t *fields;             /* of CLASS DUMP: name id and type each */
    uint32_t n_fields, own_size, size; /* bytes of its own fields in a dump; shallow size of an instance */
    uint32_t fields_size;              /* those of the superclasses too */
    bool flat, is_thread, dumped;
    uint32_t id_offset; /* of Thread.tid in an instance, when is_thread */
    uint32_t n_references;
    const struct field *references; /* in the order of the bytes */
    const char *source_name;        /* "java.lang.String", "byte[]" */
    const char *descriptor;         /* the internal name */
};

struct thread {
    uint64_t object, our_object;
    uint32_t serial, our_serial, trace;
};

/* Whole sub-records of the dump, one behind the other. */
struct piece {
    const uint8_t *at;
    size_t len;
};

struct redump {
    const struct hprof_redump *how;
    struct arena arena;
    struct map strings;                /* id -> address of the record's body; its length lies before it */
    struct map by_id;                  /* class id -> index of classes */
    struct map by_serial;              /* class serial of the dump -> index of classes */
    struct map serials;                /* class serial of the dump -> ours */
    struct map traces;                 /* trace serial of the dump -> ours */
    struct map frames;                 /* frame id -> address of the record's body */
    struct map thread_serials;         /* the dump's -> index of threads */
    struct map thread_instances;       /* object id of a java.lang.Thread -> address of its sub-record */
    struct map substitutes;            /* object id of a thread -> ours */
    uint64_t filter[FILTER_BITS / 64]; /* bits of the ids in substitutes */
    VEC(struct class) classes;
    VEC(struct thread) threads;
    VEC(struct piece) pieces;     /* the heap dump from its first sub-record to its last */
    VEC(const uint8_t *) early;   /* instances that came before their class */
    struct class *recent[RECENT]; /* classes found last, by their ids */
    struct hprof_redump_totals totals;
    int error;
};

static inline void fail(struct redump *r, int error)
{
    if (!r->error)
        r->error = error;
}

static inline uint64_t id_at(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, ID);
    return be64toh(v);
}

static inline uint32_t u4_at(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return be32toh(v);
}

static inline void put_id_at(uint8_t *p, uint64_t v)
{
    v = htobe64(v);
    memcpy(p, &v, ID);
}

static inline void put_u4_at(uint8_t *p, uint32_t v)
{
    v = htobe32(v);
    memcpy(p, &v, 4);
}

static inline struct class *class_of(struct redump *r, uint64_t id)
{
    struct class **recent = &r->recent[(id >> 3 ^ id >> 11) % RECENT];
    struct class *found = *recent;
    if (found && found->id == id)
        return found;
    const uint64_t *index = map_get(&r->by_id, id);
    return index ? *recent = &r->classes.data[*index] : NULL;
}

/* The sub-records, one visit each. at is the tag, n the whole length. */
struct visitor {
    void (*root)(struct redump *r, const uint8_t *at, size_t n);
    void (*class)(struct redump *r, const uint8_t *at, size_t n);
    void (*instance)(struct redump *r, const uint8_t *at, size_t n);
    void (*object_array)(struct redump *r, const uint8_t *at, size_t n);
    void (*primitive_array)(struct redump *r, const uint8_t *at, size_t n);
    bool pieces; /* they are put together as well */
};

/* Offsets behind a sub-record's tag. */
enum {
    ROOT_THREAD = 1 + ID,
    OBJECT_TRACE = 1 + ID,
    INSTANCE_CLASS = OBJECT_TRACE + 4,
    INSTANCE_BYTES = INSTANCE_CLASS + ID + 4,
    ARRAY_LENGTH = OBJECT_TRACE + 4,
    ARRAY_CLASS = ARRAY_LENGTH + 4,
    ARRAY_TYPE = ARRAY_LENGTH + 4,
    CLASS_FIXED = 1 + 7 * ID + 8,
};

static inline size_t filter_bit(uint64_t id)
{
    return (size_t)(id / 8 ^ id >> 20) % FILTER_BITS;
}

/* redump.c */
struct str redump_string(const struct redump *r, uint64_t id);
/* A class's or array's name, "[[I" or "java/lang/String", in source form. */
const char *redump_source_name(struct redump *r, struct str s);
/* Passes over a count and that many entries of a name's size, a type and its value: constants and statics of CLASS DUMP. */
void redump_skip_typed(struct cursor *c, unsigned name_size);
/* Visits the records of the whole file: heap dumps by v, others by other() with the body; NULL passes over them. */
void redump_visit(struct redump *r, struct cursor c, const struct visitor *v,
                  void (*other)(struct redump *r, unsigned tag, struct cursor body));

/* The sub-records of a part of a heap dump. */
void redump_visit_part(struct redump *r, struct cursor c, const struct visitor *v);

/* redump_learn.c: strings, classes, frames, threads, totals; then what they left open. */
void redump_learn(struct redump *r, struct cursor file);
/* Shallow size of an array, bytes. */
uint64_t redump_array_size(const struct redump *r, unsigned type, uint64_t n);

/* An object's id in our stream. */
static inline uint64_t redump_object(const struct redump *r, uint64_t id)
{
    if (likely(!(r->filter[filter_bit(id) / 64] >> filter_bit(id) % 64 & 1)))
        return id;
    const uint64_t *other = map_get(&r->substitutes, id);
    return other ? *other : id;
}

/* redump_binary.c: the pieces. */
void redump_emit_binary(struct redump *r);

/* redump_emit.c */
/* The serial numbers in our stream of a thread and of a trace of the dump. */
uint32_t redump_thread(const struct redump *r, uint32_t serial);
uint32_t redump_trace(const struct redump *r, uint32_t serial);
/* That of where the object of a sub-record was allocated. */
uint32_t redump_object_trace(const struct redump *r, const uint8_t *at);
void redump_emit(struct redump *r, struct cursor file);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two passes over a dump made by the VM's own dumper. redump.c visits the records. redump_learn.c
 * collects information in the first pass. redump_emit.c writes the records as ours in the second,
 * except for the objects of binary dumps, which redump_binary.c copies.
 */
#pragma once

#include "base/arena.h"
#include "base/cursor.h"
#include "base/map.h"
#include "base/strpool.h"
#include "base/vec.h"
#include "hprof/left_out.h"
#include "hprof/redump.h"

enum { ID = 8, FILTER_BITS = 1 << 16, RECENT = 256 };

struct field {
    uint32_t offset; /* of a reference among the values of an instance */
    const char *name;
};

struct class
{
    uint64_t id, super, name; /* name: the id of the string */
    const uint8_t *fields;    /* in the CLASS DUMP: a name id and a type for each */
    /* own_size: bytes of its own fields in a dump; size: shallow size of an instance. */
    uint32_t n_fields, own_size, size;
    uint32_t fields_size; /* including those of superclasses */
    bool flat, is_thread, dumped, agents;
    uint32_t id_offset; /* offset of Thread.tid in an instance, if is_thread */
    uint32_t n_references;
    const struct field *references; /* in the order of their offsets */
    const char *source_name;        /* "java.lang.String", "byte[]" */
    const char *descriptor;         /* the internal name */
};

struct thread {
    uint64_t object, our_object;
    uint32_t serial, our_serial, trace;
};

/* Consecutive complete sub-records of the dump. */
struct piece {
    const uint8_t *at;
    size_t len;
};

struct redump {
    const struct hprof_redump *how;
    struct arena arena;
    /* String id -> address of the record's body; its length precedes it. */
    struct map strings;
    struct map by_id;          /* class id -> index of classes */
    struct map by_serial;      /* class serial of the dump -> index of classes */
    struct map serials;        /* class serial of the dump -> ours */
    struct map traces;         /* trace serial of the dump -> ours */
    struct map frames;         /* frame id -> address of the record's body */
    struct map thread_serials; /* the dump's -> index of threads */
    /* Object id of a java.lang.Thread -> address of its sub-record. */
    struct map thread_instances;
    struct map substitutes;            /* object id of a thread -> ours */
    uint64_t filter[FILTER_BITS / 64]; /* one bit for each hash of an id in `substitutes` */
    struct left_out left_out;          /* by the dump's serials of traces */
    VEC(struct class) classes;
    VEC(struct thread) threads;
    VEC(struct piece) pieces;     /* the heap dump from its first sub-record to its last */
    VEC(const uint8_t *) early;   /* instances that precede their class */
    struct class *recent[RECENT]; /* a cache of recently found classes, by id */
    struct hprof_redump_totals totals;
    int error;
};

/* Keeps an error, unless an earlier one is kept already; 0 is no error. */
static inline void redump_fail(struct redump *r, int error)
{
    if (!r->error)
        r->error = error;
}

static inline uint64_t redump_id_at(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, ID);
    return be64toh(v);
}

static inline uint32_t redump_u4_at(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return be32toh(v);
}

static inline void redump_put_id_at(uint8_t *p, uint64_t v)
{
    v = htobe64(v);
    memcpy(p, &v, ID);
}

static inline void redump_put_u4_at(uint8_t *p, uint32_t v)
{
    v = htobe32(v);
    memcpy(p, &v, 4);
}

static inline struct class *redump_class_of(struct redump *r, uint64_t id)
{
    struct class **recent = &r->recent[(id >> 3 ^ id >> 11) % RECENT];
    struct class *found = *recent;
    if (found && found->id == id)
        return found;
    const uint64_t *index = map_get(&r->by_id, id);
    return index ? *recent = &r->classes.data[*index] : NULL;
}

/* Functions that are called once for each sub-record. `at` is its tag and n its whole length. */
struct visitor {
    void (*root)(struct redump *r, const uint8_t *at, size_t n);
    void (*class)(struct redump *r, const uint8_t *at, size_t n);
    void (*instance)(struct redump *r, const uint8_t *at, size_t n);
    void (*object_array)(struct redump *r, const uint8_t *at, size_t n);
    void (*primitive_array)(struct redump *r, const uint8_t *at, size_t n);
    bool pieces; /* also combine the sub-records into pieces */
};

/* Offsets relative to a sub-record's tag. */
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

/*
 * Returns the number of the frame that a root of a thread names, not counting the agent's frames.
 */
uint32_t redump_root_frame(const struct redump *r, uint32_t thread_serial, uint32_t frame);

static inline size_t redump_filter_bit(uint64_t id)
{
    return (size_t)(id / 8 ^ id >> 20) % FILTER_BITS;
}

/* redump.c */
struct str redump_string(const struct redump *r, uint64_t id);
/* Returns the source form of the name of a class or array, such as "[[I" or "java/lang/String". */
const char *redump_source_name(struct redump *r, struct str s);
/*
 * Skips a count and that many entries, each with a name, a type and a value: constants and statics
 * of a CLASS DUMP.
 */
void redump_skip_typed(struct cursor *c, unsigned name_size);
/*
 * Visits the records of the whole file: heap dumps with v, other records by calling other() with
 * the body. A NULL skips them.
 */
void redump_visit(struct redump *r, struct cursor c, const struct visitor *v,
                  void (*other)(struct redump *r, unsigned tag, struct cursor body));

/* Visits the sub-records of a part of a heap dump. */
void redump_visit_part(struct redump *r, struct cursor c, const struct visitor *v);

/* Makes the first pass (redump_learn.c). */
void redump_learn(struct redump *r, struct cursor file);
/* Returns the shallow size of an array in bytes. */
uint64_t redump_array_size(const struct redump *r, unsigned type, uint64_t n);

/* Returns an object's id in our stream. */
static inline uint64_t redump_object(const struct redump *r, uint64_t id)
{
    if (likely(!(r->filter[redump_filter_bit(id) / 64] >> redump_filter_bit(id) % 64 & 1)))
        return id;
    const uint64_t *other = map_get(&r->substitutes, id);
    return other ? *other : id;
}

/*
 * Gives an object another id in our stream. With 0 the object is left out and references to it
 * become null.
 */
void redump_substitute(struct redump *r, uint64_t id, uint64_t ours);

/* redump_binary.c: writes the pieces. */
void redump_emit_binary(struct redump *r);

/* redump_emit.c */
/*
 * Return our serial number for a thread and for a trace of the dump; those for unknown ones if the
 * first pass did not find them.
 */
uint32_t redump_thread(const struct redump *r, uint32_t serial);
uint32_t redump_trace(const struct redump *r, uint32_t serial);
/*
 * Returns our serial number of the trace where the object of a sub-record was allocated, or that of
 * the empty trace if it is unknown.
 */
uint32_t redump_object_trace(const struct redump *r, const uint8_t *at);
/* Makes the second pass: writes the records and the heap dump to our stream. */
void redump_emit(struct redump *r, struct cursor file);

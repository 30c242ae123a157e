/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declarations shared by the files of the reader. Every read of the file uses a cursor that is
 * limited to one chunk.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/cursor.h"
#include "base/file.h"
#include "base/map.h"
#include "base/strpool.h"
#include "base/varint.h"
#include "base/vec.h"
#include "jfr/chunk_head.h"
#include "jfr/reader.h"

#define TYPE_METADATA   0u
#define TYPE_CHECKPOINT 1u
#define MAX_NESTING     24     /* the depth of structs within structs */
#define DIRECT_TYPES    16384u /* types with smaller ids, as those of our writer, have an array */
#define MAX_FIELDS      65536u /* in one chunk's metadata */
#define DIRECT_IDS      65536u
#define DENSE           64u /* constants with ids below this are in an array anyway */
#define SPARE_TYPES     8u  /* one more than chunks are open at a time */

/*
 * The position of a constant: its offset in the file, and a flag for a stack that has the writer's
 * own method numbers.
 */
#define PLACE_RAW (UINT64_C(1) << 63)

/* The roles of fields in common types, found by name once for each type. */
enum role {
    ROLE_NONE,
    ROLE_METHOD,
    ROLE_LINE,
    ROLE_BCI,
    ROLE_TYPE,
    ROLE_NAME,
    ROLE_DESCRIPTOR,
    ROLE_MODIFIERS,
    ROLE_HIDDEN,
    ROLE_PACKAGE,
    ROLE_LOADER,
    ROLE_TRUNCATED,
    ROLE_FRAMES,
    ROLES
};

/* What the ids of a type's pool are decoded to, determined by the last part of its name. */
enum usual {
    USUAL_NONE,
    USUAL_STACK,
    USUAL_THREAD,
    USUAL_CLASS,
    USUAL_METHOD,
    USUAL_FRAME_TYPE,
    USUAL_SYMBOL,
    USUAL_PACKAGE,
    USUAL_LOADER
};

/*
 * A constant of a pool. What it was decoded to depends on the type's `usual`: struct rec_stack *,
 * rec_thread *, rec_class *, rec_method *, char * (of frame types), package *, or, for symbols and
 * loaders, the number of a text, + 1.
 */
struct constant {
    uint64_t place;   /* valid when `placed` is the type's round */
    const void *what; /* likewise with `decoded`; of an earlier chunk otherwise, or NULL */
    uint32_t placed, decoded;
};

struct far_constant {
    uint64_t id;
    struct constant of;
};

struct type {
    struct rec_type pub; /* must be the first member */
    enum usual usual;
    struct rec_field *fields;
    uint8_t *roles;     /* of fields: enum role */
    bool starts, lasts; /* the first field is startTime; the second is duration */
    uint32_t n_longs;   /* number of fields of a struct that has only compressed numbers; else 0 */
    bool seen;          /* an event of the type was read in this chunk, in an iteration over rows */
    struct plan *plan;  /* how reader_rows.c reads its events; NULL if it does not */
    /*
     * The pool by id: an array as far as ids are dense, and others behind a map from ids to places
     * in a second array. The arrays are not cleared for another chunk, which has another round.
     */
    VEC(struct constant) constants;
    uint64_t n_constants; /* at most this many are in the chunk */
    uint32_t round;
    struct map far_index;
    VEC(struct far_constant) far;
};

/* Types that are looked up by name. */
enum named_type { TYPE_OF_METHODS, TYPE_OF_METHOD_KEYS, TYPE_OF_STRINGS, NAMED_TYPES };

/*
 * The types that a chunk's metadata describes. Most chunks of a recording have the same metadata,
 * so a chunk that was left passes its types on to a later one (described_keep, described_take).
 */
struct described {
    const uint8_t *text; /* the metadata, without the times of its event */
    size_t text_len;
    uint64_t text_hash;
    bool compressed;
    uint32_t selection; /* for which recording.selection the tags were determined; 0: none */
    uint64_t plans;     /* the number of the iteration over rows that made the plans; 0: none */
    struct arena arena; /* types, fields and plans */
    VEC(struct type *) list;
    VEC(struct rec_type) public; /* copies, for recording_types */
    struct map by_id;
    struct type **direct;
    struct type *named[NAMED_TYPES]; /* NULL: the chunk has no such type */
};

struct rec_chunk {
    struct recording *recording;
    size_t index;
    const uint8_t *start, *end; /* end of the bytes that exist */
    bool cut;                   /* the header gives a larger size */
    bool compressed, final, part_of_ring;
    unsigned part_of; /* JFR_PART_OF_..., except that of a ring */
    int64_t start_ns, duration_ns, start_ticks;
    double ns_per_tick;
    uint64_t metadata, constants; /* offsets in the chunk */

    enum { CHUNK_NEW, CHUNK_READY, CHUNK_BAD } state;

    const char *why; /* when CHUNK_BAD: in words */

    /* searched: all events were searched for checkpoints outside the chain as well. */
    bool constants_read, searched;
    bool constants_early; /* they were read before one was requested */
    /* the first damage that was found while reading them, in words, or NULL */
    const char *chain_why;
    const uint8_t *chain_damage;
    bool ids_known;           /* the chunk's ids of methods and frame types were compared */
    struct described types;   /* valid when CHUNK_READY */
    struct arena decoded;     /* stacks and packages */
    struct map method_of_key; /* the writer's own numbers -> ids of jdk.types.Method */
};

struct rec_selection {
    const char *type; /* interned */
    int tag;
};

struct recording {
    struct file_map map;
    const uint8_t *data;
    size_t len;
    bool mapped; /* data is a private, read-only mapping of a file */
    VEC(struct rec_chunk *) chunks;
    VEC(struct rec_selection) selected;
    uint32_t selection; /* how often the selection changed, + 1 */
    uint64_t rows;      /* how many iterations over rows there were */
    bool select_all, keep_chunks;
    struct described spare[SPARE_TYPES];
    size_t n_spare;
    size_t current;               /* the iteration's chunk */
    const uint8_t *at;            /* the position in it; NULL at its beginning */
    const uint8_t *kept;          /* pages before this were released, or have not been read */
    const struct rec_chunk *last; /* the last event's chunk */
    struct strpool names;         /* of types; gives their numbers */
    /* Strings that are valid as long as the recording. */
    struct strpool texts;
    struct buf key;                                      /* scratch */
    struct arena strings;                                /* strings of the current event */
    struct arena usual;                                  /* threads, classes, methods */
    struct strpool thread_keys, class_keys, method_keys; /* give their numbers */
    VEC(struct rec_thread *) threads;
    VEC(struct rec_class *) classes;
    VEC(struct rec_method *) methods;
    struct map method_ids;     /* by the id in all chunks so far: the number of a method */
    struct map frame_type_ids; /* likewise: the address of a text */
    bool ids_differ;           /* an id means different things in two chunks */
    VEC(uint8_t) seen; /* by the number of a type's name: whether events of it were read as rows */
    VEC(uint32_t) class_names; /* by the text of an internal name: that of the external one, + 1 */
    struct rec_info info;
    /* The last chunk of an unended recording, until its end is found; a part of a ring has one. */
    struct rec_chunk *without_end;
    char why[160];
};

/* Records the first damage; the text is copied. */
void recording_damage(struct recording *r, const uint8_t *at, const char *why);
/* Returns a string that is valid as long as the recording, or "" when out of memory. */
const char *recording_text(struct recording *r, const char *s, size_t len);

/* ---- numbers ---- */
static inline int64_t rec_read_long(const struct rec_chunk *k, struct cursor *c)
{
    return (int64_t)(likely(k->compressed) ? cursor_jfr_long(c) : cursor_be64(c));
}

static inline int32_t rec_read_int(const struct rec_chunk *k, struct cursor *c)
{
    return (int32_t)(likely(k->compressed) ? cursor_jfr_long(c) : cursor_be32(c));
}

/*
 * Reads the size and the type of the event at `at`, which lies before `end`. Returns where its body
 * begins, or NULL when the event is not complete or its size is damaged.
 */
static inline const uint8_t *rec_event_head(const struct rec_chunk *k, const uint8_t *at,
                                            const uint8_t *end, uint32_t *ret_size,
                                            uint64_t *ret_type)
{
    const uint8_t *body = at;
    if (likely(k->compressed && end - at >= 2 * VARINT_JFR_MAX)) {
        *ret_size = (uint32_t)varint_jfr(&body);
        *ret_type = varint_jfr(&body);
    } else {
        struct cursor c = cursor_of(at, (size_t)(end - at));
        *ret_size = (uint32_t)rec_read_int(k, &c);
        *ret_type = (uint64_t)rec_read_long(k, &c);
        body = c.at;
        if (c.failed)
            return NULL;
    }
    bool whole = *ret_size >= (size_t)(body - at) && *ret_size <= (size_t)(end - at);
    return likely(whole) ? body : NULL;
}

/*
 * Returns a cursor from `at` to the end of the chunk; one that has failed when `at` is not in the
 * chunk.
 */
static inline struct cursor rec_chunk_cursor(const struct rec_chunk *k, const uint8_t *at)
{
    return at >= k->start && at <= k->end ? cursor_of(at, (size_t)(k->end - at))
                                          : (struct cursor){k->end, k->end, true};
}

/* Returns the type with an id; NULL when the chunk has none. */
static inline struct type *rec_chunk_type(const struct rec_chunk *k, uint64_t id)
{
    if (likely(id < DIRECT_TYPES))
        return k->types.direct[id];
    const uint64_t *index = map_get(&k->types.by_id, id);
    return index ? k->types.list.data[*index] : NULL;
}

static inline int64_t rec_ticks_to_ns(const struct rec_chunk *k, int64_t ticks)
{
    return k->ns_per_tick == 1.0 ? ticks : (int64_t)((double)ticks * k->ns_per_tick);
}

/* ---- reader_metadata.c ---- */
/* Reads the types. Returns 0, or -ENOMEM or -EBADMSG with *ret_why. */
int rec_chunk_read_metadata(struct rec_chunk *k, const char **ret_why) must_check;
void described_release(struct described *types);
/* Passes the types of a chunk that is left on to a later one, with empty pools. */
void described_keep(struct rec_chunk *k);
/* Returns a type that is looked up often; NULL when the chunk has none. */
struct type *rec_chunk_type_named(const struct rec_chunk *k, enum named_type which);
/* Returns the type of a name, by a search; NULL when the chunk has none. */
struct type *rec_chunk_type_called(const struct rec_chunk *k, const char *name);

/* ---- reader_constants.c ---- */
/* Returns what is known of an id, in this chunk or an earlier one, or NULL. */
static inline struct constant *constant_of(const struct type *t, uint64_t id)
{
    if (likely(id < t->constants.len))
        return &t->constants.data[id];
    const uint64_t *at = t->far.len ? map_get(&t->far_index, id) : NULL;
    return at ? &t->far.data[*at].of : NULL;
}

/*
 * Stores the position of a constant that the chunk defines. Returns false when it has not been
 * found in the chunk.
 */
static inline bool constant_placed(const struct type *t, uint64_t id, uint64_t *ret_place)
{
    const struct constant *c = constant_of(t, id);
    if (unlikely(!c || c->placed != t->round))
        return false;
    *ret_place = c->place;
    return true;
}

/*
 * Returns the entry of an id behind the map, which is added if it is new. Returns NULL when out of
 * memory.
 */
struct constant *constant_far(struct type *t, uint64_t id) must_check;
/*
 * Reads the positions of the chunk's constants before one is requested. Other threads may do so for
 * other chunks at the same time. Damage is recorded when the first constant is requested.
 */
void rec_chunk_read_constants_early(struct rec_chunk *k);
/* Visits the constants of a pool: *i is 0 at first. Returns false at the end. */
bool rec_chunk_constant_next(const struct type *t, size_t *i, uint64_t *ret_id,
                             uint64_t *ret_place);
/*
 * Returns the position of a constant in *chunk, which may be changed to an earlier chunk, or 0 when
 * it is not defined.
 */
uint64_t rec_chunk_constant_place(struct rec_chunk **chunk, struct type **type, uint64_t id);
/*
 * Skips the value of a field. depth: how many structs it is nested in; the cursor fails beyond
 * MAX_NESTING.
 */
void rec_chunk_skip_value(const struct rec_chunk *k, const struct rec_field *f, struct cursor *c,
                          int depth);
/*
 * Reads a string. If ret is not NULL the string is decoded, NUL-terminated, and valid as long as
 * the event.
 */
void rec_chunk_read_string(struct rec_chunk *k, struct cursor *c, struct rec_value *ret);

/* ---- reader.c ---- */
/*
 * Reads the chunk's types, unless that is done. Returns 0, -ENOMEM, or -EBADMSG, which is recorded
 * as damage.
 */
int rec_chunk_prepare(struct rec_chunk *k) must_check;
/*
 * Like rec_chunk_prepare, before the iteration reaches the chunk: damage is recorded later by
 * rec_chunk_report, once everything that precedes the chunk has been read.
 */
int rec_chunk_prepare_early(struct rec_chunk *k) must_check;
void rec_chunk_report(struct rec_chunk *k);
/* Frees the memory of a chunk of which everything was read, unless chunks are kept. */
void rec_chunk_leave(struct recording *r, struct rec_chunk *k);
/* Describes the event at `at`, whose body (after size and type) and end are given. */
void rec_chunk_fill_event(struct rec_chunk *k, const struct type *t, const uint8_t *at,
                          const uint8_t *body, const uint8_t *end, struct rec_event *ret);
/* Frees the strings of the previous event before the next one is read. */
void recording_forget_strings(struct recording *r);

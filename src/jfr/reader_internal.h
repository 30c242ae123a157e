/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the reader share. Every read of the file goes through a cursor over one chunk. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/cursor.h"
#include "base/file.h"
#include "base/map.h"
#include "base/strpool.h"
#include "base/vec.h"
#include "jfr/reader.h"

#define CHUNK_HEAD      68u
#define TYPE_METADATA   0u
#define TYPE_CHECKPOINT 1u
#define MAX_NESTING     24     /* of structs within structs */
#define DIRECT_TYPES    4096u  /* types with smaller ids are found by index */
#define MAX_FIELDS      65536u /* of one chunk's metadata */

/* A constant's place: its offset in the file, and whether it is a stack with the writer's own method numbers. */
#define PLACE_RAW (UINT64_C(1) << 63)

/* The roles that fields of the usual types play, found by name once for a type. */
enum role {
    ROLE_NONE,
    ROLE_METHOD,
    ROLE_LINE,
    ROLE_BCI,
    ROLE_FRAME_TYPE,
};

/* What the ids of a type's pool are decoded to; by the last part of its name. */
enum usual { USUAL_NONE, USUAL_STACK, USUAL_THREAD, USUAL_CLASS, USUAL_METHOD, USUAL_FRAME_TYPE };

struct type {
    struct rec_type pub; /* first */
    enum usual usual;
    struct rec_field *fields;
    uint8_t *roles;     /* of fields, for frames */
    bool starts, lasts; /* the first field is startTime, the second one duration */
    struct map pool;    /* id -> place */
    struct plan *plan;  /* reader_rows.c: how its events are read ahead, NULL: they are not */
    struct map decoded; /* id -> struct rec_stack *, rec_thread *, rec_class *, rec_method * or char *, as usual says */
};

struct rec_chunk {
    struct recording *recording;
    size_t index;
    const uint8_t *start, *end; /* end: of what is there */
    bool cut;                   /* the header says there is more */
    bool compressed, final;
    int64_t start_ns, duration_ns, start_ticks;
    double ns_per_tick;
    uint64_t metadata, constants; /* offsets in the chunk */

    enum { CHUNK_NEW, CHUNK_READY, CHUNK_BAD } state;

    bool constants_read, searched; /* searched: checkpoints outside of the chain were looked for too */
    struct arena arena;
    VEC(struct type *) types;
    VEC(struct rec_type) public_types; /* copies, for recording_types */
    struct map type_by_id;
    struct type **direct;
    struct map method_of_key; /* the writer's own numbers -> ids of jdk.types.Method */
};

struct selection {
    const char *type; /* interned */
    int tag;
};

struct recording {
    struct file_map map;
    const uint8_t *data;
    size_t len;
    VEC(struct rec_chunk *) chunks;
    VEC(struct selection) selected;
    bool select_all, keep_chunks;
    size_t current;                                      /* chunk of the iteration */
    const uint8_t *at;                                   /* in it; NULL: at its beginning */
    const struct rec_chunk *last;                        /* of the last event */
    struct strpool names;                                /* of types: their numbers */
    struct strpool texts;                                /* strings that live as long as the recording */
    struct buf key;                                      /* scratch */
    struct arena strings;                                /* of the current event */
    struct arena usual;                                  /* threads, classes, methods */
    struct strpool thread_keys, class_keys, method_keys; /* numbers */
    VEC(struct rec_thread *) threads;
    VEC(struct rec_class *) classes;
    VEC(struct rec_method *) methods;
    struct rec_info info;
    char why[160];
};

/* Remembers the first damage; the text is copied. */
void recording_damage(struct recording *r, const uint8_t *at, const char *why);
/* A string that lives as long as the recording; "" when memory is out. */
const char *recording_text(struct recording *r, const char *s, size_t len);

/* ---- numbers ---- */
static inline int64_t read_long(const struct rec_chunk *k, struct cursor *c)
{
    return (int64_t)(likely(k->compressed) ? cursor_jfr_long(c) : cursor_be64(c));
}

static inline int32_t read_int(const struct rec_chunk *k, struct cursor *c)
{
    return (int32_t)(likely(k->compressed) ? cursor_jfr_long(c) : cursor_be32(c));
}

static inline struct cursor chunk_cursor(const struct rec_chunk *k, const uint8_t *at)
{
    return at >= k->start && at <= k->end ? cursor_of(at, (size_t)(k->end - at)) : (struct cursor){k->end, k->end, true};
}

static inline struct type *chunk_type(const struct rec_chunk *k, uint64_t id)
{
    if (likely(id < DIRECT_TYPES))
        return k->direct[id];
    const uint64_t *index = map_get(&k->type_by_id, id);
    return index ? k->types.data[*index] : NULL;
}

static inline int64_t ticks_to_ns(const struct rec_chunk *k, int64_t ticks)
{
    return k->ns_per_tick == 1.0 ? ticks : (int64_t)((double)ticks * k->ns_per_tick);
}

/* ---- reader_metadata.c ---- */
/* Reads the types; 0, -ENOMEM or -EBADMSG with *ret_why. */
int chunk_read_metadata(struct rec_chunk *k, const char **ret_why) must_check;
/* The struct of a chunk that has this name; NULL: none. */
struct type *chunk_type_named(const struct rec_chunk *k, const char *name);

/* ---- reader_constants.c ---- */
/* The place of a constant in *chunk, which may become an earlier chunk; 0: not defined. */
uint64_t constant_place(struct rec_chunk **chunk, struct type **type, uint64_t id);
/* Passes a value; its end must be known to find the next one. */
void skip_value(const struct rec_chunk *k, const struct rec_field *f, struct cursor *c, int depth);
/* Passes a string and decodes it when ret is not NULL: NUL-terminated, alive as long as the event. */
void read_string(struct rec_chunk *k, struct cursor *c, struct rec_value *ret);

/* ---- reader.c ---- */
int chunk_prepare(struct rec_chunk *k) must_check;
void chunk_release(struct rec_chunk *k);
/* All of the chunk has been read: what it took is given back, unless chunks are kept. */
void chunk_leave(struct recording *r, struct rec_chunk *k);
/* An event from its place, its body (behind size and type) and its end. */
void event_fill(struct rec_chunk *k, const struct type *t, const uint8_t *at, const uint8_t *body, const uint8_t *end,
                struct rec_event *ret);
/* The next event is looked at: strings of the one before go. */
void forget_strings(struct recording *r);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the writer share. Invariants of the file:
 *
 * - It is a run of blocks of JFR_BLOCK bytes. From each block's start a chain of events leads to its end; what is not used is
 *   covered by a pad: an event of type 0 (which every reader skips) encoded as PAD. A long event takes a run of blocks.
 * - An event's header is 6 bytes: size in 4 bytes and type in 2, both as compressed integers padded with continuation bits.
 *   Events are aligned to 4: the type takes up to seven bytes more where that is needed. An event replaces the pad at its place
 * by: body, a pad behind it, then its size (now the pad is short), then its type. Each of the stores leaves a valid chain.
 * - The chunk header is consistent at every instant: each of its fields is changed by one aligned store, and points at what is
 *   complete already.
 */
#pragma once

#include "base/buf.h"
#include "base/map.h"
#include "base/strpool.h"
#include "base/vec.h"
#include "jfr/writer.h"

#include <endian.h>
#include <pthread.h>
#include <stdatomic.h>

_Static_assert(__BYTE_ORDER == __LITTLE_ENDIAN, "event headers are stored as little-endian words");

#define JFR_BLOCK      8192u
#define JFR_EVENT_HEAD 6u
#define JFR_MIN_PAD    8u
#define JFR_TYPE_BASE  32u /* id in the file of built-in type 0 */
#define JFR_MAX_TYPES  8192u
#define JFR_CHUNK_HEAD 68u
#define JFR_RESERVE    32u  /* blocks that only the worker may take, so that a full disk leaves room for the dictionary */
#define JFR_RAW_TRACE  0x40 /* checkpoint flag: a stack with the owner's method numbers, outside of the chain */

#define JFR_WIDEN 7u /* bytes that a type may take more */

/* Type codes: the two bytes behind the size; the bit says that the type goes on. Metadata is always written wider. */
#define CODE_WIDER      0x8000u
#define CODE_PAD        0x0080u
#define CODE_METADATA   0x8080u
#define CODE_CHECKPOINT 0x0081u

static inline uint16_t type_code(uint32_t id)
{
    return (uint16_t)((id & 0x7f) | 0x80 | id >> 7 << 8);
}

static inline uint32_t code_type(uint16_t code)
{
    return (code & 0x7fu) | ((uint32_t)code >> 8 & 0x7f) << 7;
}

static inline uint32_t size_word(uint32_t size)
{
    return (size & 0x7f) | 0x80 | (size >> 7 & 0x7f) << 8 | 0x8000 | (size >> 14 & 0x7f) << 16 | 0x800000 |
           (size >> 21 & 0x7f) << 24;
}

static inline uint32_t word_size(uint32_t word)
{
    return (word & 0x7f) | (word >> 8 & 0x7f) << 7 | (word >> 16 & 0x7f) << 14 | (word >> 24 & 0x7f) << 21;
}

static inline void store_size(uint8_t *event, uint32_t size)
{
    __atomic_store_n((uint32_t *)(void *)event, size_word(size), __ATOMIC_RELEASE);
}

static inline void store_code(uint8_t *event, uint16_t code)
{
    __atomic_store_n((uint16_t *)(void *)(event + 4), code, __ATOMIC_RELEASE);
}

static inline uint32_t load_size(const uint8_t *event)
{
    return word_size(__atomic_load_n((const uint32_t *)(const void *)event, __ATOMIC_ACQUIRE));
}

static inline uint16_t load_code(const uint8_t *event)
{
    return __atomic_load_n((const uint16_t *)(const void *)(event + 4), __ATOMIC_ACQUIRE);
}

/* How many blocks a taker got, told before their contents change; SPAN_RETIRED: nothing more will be written there. */
#define SPAN_RETIRED 0x80000000u

/* A stretch of the file that is mapped: blocks [0, ready) exist, [0, next) are taken. */
struct region {
    uint8_t *map;
    size_t map_len;
    uint8_t *blocks;      /* within map */
    uint64_t file_offset; /* of block 0 */
    uint32_t max_blocks;
    uint32_t ready;               /* worker only */
    _Atomic uint64_t bump;        /* next | limit for events << 32 */
    _Atomic uint32_t *span;       /* [max_blocks]; 0: just taken, or free */
    uint32_t *scanned;            /* [max_blocks], worker only: bytes read; JFR_BLOCK or more: all of the span */
    uint32_t first_open;          /* worker only: blocks before are scanned to their end */
    uint32_t next_at_last_growth; /* worker only: for the pace */
};

/* Where one writer at a time puts small events. */
struct jfr_slot {
    _Atomic uint32_t busy;
    uint8_t *at, *end; /* NULL: no block */
    _Atomic uint32_t *span;
    _Atomic uint64_t events;
} __attribute__((aligned(64)));

/* The worker's view of a chunk. */
struct chunk {
    struct region *region;
    uint8_t *header;
    uint64_t start; /* offset in the file */
    uint64_t start_ns;
    uint64_t last_checkpoint; /* from start; 0: none */
    uint32_t number;          /* from 1 */
    struct jfr_slot own;      /* for the worker's events */
};

struct op {
    enum { OP_LONG, OP_BYTE, OP_FIXED4, OP_FIXED8, OP_STRING, OP_REF, OP_STRUCT } kind : 8;

    bool array;
    uint16_t type; /* OP_REF, OP_STRUCT: number of the type */
};

struct type_info {
    const struct jfr_type *row;
    VEC(struct op) ops;
    /* Pools. Entry by content: its id is the number in the string pool + 1. Entry by id: keyed. */
    struct strpool contents;
    VEC(uint32_t) emitted; /* by number in contents: the chunk that holds it */
    struct map keyed;      /* id -> struct keyed_entry * */
};

struct keyed_entry {
    uint32_t emitted, forgotten; /* chunk numbers; 0: not */
    uint32_t len;
    uint8_t bytes[];
};

struct pending {
    uint32_t type;
    bool unknown; /* a thread nobody told about */
    uint64_t id;
};

struct method_info {
    uint64_t id; /* in JFR_POOL_METHOD */
    struct jfr_line *lines;
    size_t n_lines;
};

/* A stack in the table; its id is its offset / 16 + 1. */
struct trace {
    uint32_t hash;
    uint32_t n;
    uint32_t emitted; /* worker only: chunk number */
    uint32_t truncated;
    struct jfr_frame frames[];
};

_Static_assert(sizeof(struct trace) == 16 && sizeof(struct jfr_frame) == 16, "traces are counted in 16 bytes");

struct traces {
    uint8_t *arena;
    _Atomic uint64_t used;
    uint64_t bytes;
    uint64_t present;        /* pages below are there: the worker's, traces_ahead */
    _Atomic uint64_t *slots; /* hash << 32 | id; 0: free. The first table, then the large one */
    uint32_t mask;           /* of the large one */
    _Atomic uint64_t count, lost;
};

struct jfr_writer {
    int fd;
    struct jfr_writer_options options;
    uint64_t base_ns; /* tick 0 */
    int64_t epoch_ns; /* real time at tick 0 */

    /* Used in handlers. */
    struct region *_Atomic region;
    struct jfr_slot *slots;
    unsigned n_slots;
    atomic_bool closed;
    _Atomic uint32_t wake;
    _Atomic uint64_t lost_busy, lost_room, lost_size, lost_closed, left_out;
    struct traces traces;

    pthread_mutex_t work; /* held by work, flush, rotate, close, declare; taken before dict */
    struct chunk chunk;
    uint64_t file_end;
    uint32_t pace; /* blocks taken between two rounds, of late */
    _Atomic uint64_t bytes, chunks, unresolved, lost_constants;
    _Atomic int error;
    struct map methods; /* the owner's number -> index into method_info */
    VEC(struct method_info) method_info;
    uint64_t lost_told[7];
    uint64_t constant_bytes; /* written so far */

    pthread_mutex_t dict; /* types and their pools */
    struct strpool names; /* of types; the number is the type's */
    VEC(struct type_info *) types;
    VEC(struct pending) pending; /* worker only */
};

/* ---- event.c ---- */
bool slot_begin(struct jfr_writer *w, struct jfr_slot *slot, struct region *region, bool worker, size_t room,
                struct jfr_event *ret);
/* Publishes without releasing the slot. */
void slot_commit(struct jfr_event *e, uint16_t code);
/* Nothing more is written into the slot's block. */
void slot_retire(struct jfr_slot *slot);
void slot_acquire(struct jfr_slot *slot); /* waits */
void slot_release(struct jfr_slot *slot);
int traces_init(struct traces *t, uint64_t bytes) must_check;
void traces_release(struct traces *t);
/* Makes pages ahead present, so that a handler rarely takes a page fault for a new stack; worker. */
void traces_ahead(struct traces *t);

static inline struct trace *trace_of(const struct traces *t, uint64_t id)
{
    return id && id * 16 <= t->used ? (struct trace *)(void *)(t->arena + (id - 1) * 16) : NULL;
}

/* ---- region.c ---- */
int region_new(struct region **ret, int fd, uint64_t file_offset, uint64_t bytes) must_check;
void region_free(struct region *r);
/* Makes at least `least` blocks (and more when the pace asks for it) free for events; worker. */
int region_grow(struct jfr_writer *w, uint32_t least) must_check;
/* Makes the pages that are written next writable: the kernel takes that from them when it has put them on the disk; worker. */
void region_ahead(struct jfr_writer *w);

/* ---- metadata.c ---- */
/* startTime, and what the flags JFR_DURATION ... of a row stand for, in their order. */
extern const struct jfr_field jfr_event_fields[4];
/* Writes the metadata of all types into the chunk and points the header there. */
int metadata_write(struct jfr_writer *w, struct chunk *c) must_check;

/* ---- dictionary.c ---- */
int types_add(struct jfr_writer *w, const struct jfr_type *rows, size_t n, uint32_t *ret_ids) must_check;
int types_constants(struct jfr_writer *w) must_check;
void types_release(struct jfr_writer *w);
/* Both with the dict lock held. 0: no memory. */
uint64_t intern_method(struct jfr_writer *w, const struct jfr_method *m);
int define_entry(struct jfr_writer *w, uint32_t pool, uint64_t id, struct buf *contents) must_check;
/* Drops threads that were forgotten in a chunk before this one. */
void dictionary_forget(struct jfr_writer *w, uint32_t before);

/* ---- constants.c ---- */
/* Reads what was published since, and writes the constants it uses. False: a block is just being opened, call again. */
bool constants_update(struct jfr_writer *w, struct chunk *c);
/* The constants that every chunk has. */
void constants_start(struct jfr_writer *w, struct chunk *c);

/* ---- header fields, from the chunk's start ---- */
enum {
    HEAD_SIZE = 8,
    HEAD_CONSTANTS = 16,
    HEAD_METADATA = 24,
    HEAD_START = 32,
    HEAD_DURATION = 40,
    HEAD_TICKS = 48,
    HEAD_HZ = 56
};

static inline void header_store(struct chunk *c, unsigned field, uint64_t value)
{
    __atomic_store_n((uint64_t *)(void *)(c->header + field), htobe64(value), __ATOMIC_RELEASE);
}

static inline uint64_t offset_in_chunk(const struct chunk *c, const uint8_t *event)
{
    return c->region->file_offset + (uint64_t)(event - c->region->blocks) - c->start;
}

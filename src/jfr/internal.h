/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declarations shared by the files of the writer. Invariants of the file:
 *
 * - The file is a sequence of blocks of JFR_BLOCK bytes. A chain of events leads from each block's
 *   start to its end. Unused space is covered by a pad: an event of type 0, which every reader
 *   skips, encoded as PAD. A long event occupies several consecutive blocks.
 * - An event's header has 6 bytes: the size in 4 bytes and the type in 2, both as compressed
 *   integers padded with continuation bits. Events are aligned to 4 bytes; where necessary the type
 *   takes up to seven bytes more. To replace a pad, the writer stores the event's body, then a pad
 *   after it, then the event's size (which shortens the old pad), then its type. The chain is valid
 *   after each of these stores.
 * - The chunk header is consistent at every instant: each field is changed by a single aligned
 *   store and refers only to what is already complete.
 */
#pragma once

#include "base/buf.h"
#include "base/map.h"
#include "base/strpool.h"
#include "base/vec.h"
#include "jfr/chunk_head.h"
#include "jfr/losses.h"
#include "jfr/pool.h"
#include "jfr/ring.h"
#include "jfr/writer.h"

#include <endian.h>
#include <pthread.h>
#include <stdatomic.h>

_Static_assert(__BYTE_ORDER == __LITTLE_ENDIAN, "event headers are stored as little-endian words");

#define JFR_BLOCK      8192u
#define JFR_EVENT_HEAD 6u
#define JFR_MIN_PAD    8u
#define JFR_MAX_TYPES  1024u
/*
 * The id of built-in type 0 in the file. The JDK's reader assumes that an id means the same in all
 * chunks of a file, and chunks of the VM's recorder may follow ours (jfr=). The VM numbers its
 * types in the order in which it loads classes, so ours have the last ids that two bytes can hold.
 */
#define JFR_TYPE_BASE (16384u - JFR_MAX_TYPES)
/*
 * JFR_RESERVE: the number of blocks that only the worker may take, so that events that fill the
 * disk leave room for the dictionary. JFR_LOSSES_SHARE: one in this many of them is left for losses
 * if the dictionary fills the rest.
 */
#define JFR_RESERVE      32u
#define JFR_LOSSES_SHARE 4u
/*
 * The flag of a checkpoint that is written at once, outside the chain of checkpoints: a stack with
 * the owner's method numbers, or a thread.
 */
#define JFR_OUTSIDE_CHAIN 0x40

#define JFR_WIDEN 7u /* the bytes that a type may take in addition */

/*
 * Type codes are the two bytes after the size. This bit says that more bytes of the type follow.
 * Metadata is always written with a longer type.
 */
#define CODE_WIDER      0x8000u
#define CODE_PAD        0x0080u
#define CODE_METADATA   0x8080u
#define CODE_CHECKPOINT 0x0081u

static inline uint16_t jfr_code_of_type(uint32_t id)
{
    return (uint16_t)((id & 0x7f) | 0x80 | id >> 7 << 8);
}

static inline uint32_t jfr_type_of_code(uint16_t code)
{
    return (code & 0x7fu) | ((uint32_t)code >> 8 & 0x7f) << 7;
}

static inline uint32_t jfr_size_word(uint32_t size)
{
    return (size & 0x7f) | 0x80 | (size >> 7 & 0x7f) << 8 | 0x8000 | (size >> 14 & 0x7f) << 16 |
           0x800000 | (size >> 21 & 0x7f) << 24;
}

static inline uint32_t jfr_word_size(uint32_t word)
{
    return (word & 0x7f) | (word >> 8 & 0x7f) << 7 | (word >> 16 & 0x7f) << 14 |
           (word >> 24 & 0x7f) << 21;
}

static inline void jfr_store_size(uint8_t *event, uint32_t size)
{
    __atomic_store_n((uint32_t *)(void *)event, jfr_size_word(size), __ATOMIC_RELEASE);
}

static inline void jfr_store_code(uint8_t *event, uint16_t code)
{
    __atomic_store_n((uint16_t *)(void *)(event + 4), code, __ATOMIC_RELEASE);
}

static inline uint32_t jfr_load_size(const uint8_t *event)
{
    return jfr_word_size(__atomic_load_n((const uint32_t *)(const void *)event, __ATOMIC_ACQUIRE));
}

static inline uint16_t jfr_load_code(const uint8_t *event)
{
    return __atomic_load_n((const uint16_t *)(const void *)(event + 4), __ATOMIC_ACQUIRE);
}

/*
 * The number of consecutive blocks that were taken together, published before their contents
 * change. SPAN_RETIRED says that nothing more will be written there.
 */
#define SPAN_RETIRED 0x80000000u

/* A mapped part of the file: blocks [0, ready) are allocated, blocks [0, next) are taken. */
struct region {
    uint8_t *map;
    size_t map_len;
    uint8_t *blocks;      /* the first block, within map */
    uint64_t file_offset; /* the offset of block 0 */
    uint32_t max_blocks;
    uint32_t reserve;       /* blocks that only the worker may take */
    uint32_t ready;         /* used by the worker only */
    _Atomic uint64_t bump;  /* next | (limit for events) << 32 */
    _Atomic uint32_t *span; /* [max_blocks]; 0 means just taken, or free */
    /*
     * [max_blocks], used by the worker only: the number of bytes scanned; JFR_BLOCK or more means
     * the whole span.
     */
    uint32_t *scanned;
    uint32_t first_open;          /* worker only: all earlier blocks are completely scanned */
    uint32_t next_at_last_growth; /* worker only: for computing the pace */
    /* worker only: a hash of the places that region_prefault last looked at, and when */
    uint64_t prefaulted, prefaulted_ns;
};

/* A place for small events, used by one writer at a time. */
struct jfr_slot {
    _Atomic uint32_t busy;
    uint8_t *at, *end; /* NULL without a block */
    _Atomic uint32_t *span;
    _Atomic uint64_t events;
} __attribute__((aligned(64)));

/* The worker's view of a chunk. */
struct chunk {
    struct region *region;
    uint8_t *header;
    uint64_t start; /* offset in the file */
    uint64_t start_ns;
    uint64_t last_checkpoint; /* relative to start; 0 if none */
    uint32_t number;          /* counted from 1 */
    struct jfr_slot own;      /* for the worker's own events */
};

struct op {
    enum { OP_LONG, OP_BYTE, OP_FIXED4, OP_FIXED8, OP_STRING, OP_REF, OP_STRUCT } kind : 8;

    bool array;
    uint16_t type; /* OP_REF, OP_STRUCT: the number of the type */
};

struct type_info {
    const struct jfr_type *row;
    VEC(struct op) ops;
    struct pool entries; /* of a pool */
};

struct pending {
    uint32_t type;
    bool unknown; /* a thread that was never defined */
    uint64_t id;
};

/* What is known about one of the owner's methods. */
struct method_info {
    uint64_t id, key; /* in JFR_POOL_METHOD and JFR_POOL_METHOD_KEY */
    uint32_t used;    /* the last chunk with a stack that has it */
    size_t n_lines;
    struct jfr_line lines[];
};

/*
 * A stack in the table. Stacks lie one after the other at positions that only grow; the id of the
 * one at position p is p / 16 + 1, in 32 bits. Only those in [oldest, used) exist.
 */
struct trace {
    uint32_t hash;
    uint32_t n;
    uint32_t emitted; /* used by the worker only: chunk number */
    uint32_t truncated;
    struct jfr_frame frames[];
};

_Static_assert(sizeof(struct trace) == 16 && sizeof(struct jfr_frame) == 16,
               "traces are counted in 16 bytes");

/*
 * In a ring the memory is reused: position p lies at p modulo `bytes`. It is divided into parts,
 * whose limits no stack crosses. When room becomes scarce the oldest part is retired: its ids are
 * no longer found, and in a later round of the worker, when nobody reads its stacks any more, its
 * memory is used for new ones. An id that is still in use somewhere then leads to nothing, never to
 * another stack.
 */
struct traces {
    uint8_t *arena;
    _Atomic uint64_t used, oldest;
    _Atomic uint64_t end; /* new stacks end at or before this position */
    uint64_t bytes;       /* a multiple of `part` */
    uint64_t part;        /* equal to `bytes` where memory is not reused */
    uint64_t present;     /* how far the worker has prefaulted the arena (traces_prefault) */
    uint64_t retired_ns;  /* when a part was retired whose memory is not reused yet; 0: none */
    uint64_t held,
        held_count;         /* the stacks in the tables, and `count`, after the last retirement */
    atomic_bool due;        /* a part has to be retired as soon as the owner agrees */
    _Atomic uint64_t moved; /* stacks that were stored again because their owners need them */
    /* hash << 32 | id, or 0 if free; the first table, followed by the large one */
    _Atomic uint64_t *slots;
    uint32_t mask; /* of the large table */
    _Atomic uint64_t count, lost;
    _Atomic uint64_t shortened; /* events whose stack lost its callers for lack of memory */
};

/* The reasons for which the writer itself drops an event. */
enum lost_reason { LOST_BUSY, LOST_ROOM, LOST_SIZE, LOST_SHAPE, JFR_LOST_REASONS };

/* The number of types that have counters of their own; later types share the last one. */
enum { JFR_LOST_TYPES = 128 };

struct loss_counter {
    _Atomic uint64_t total;
    _Atomic uint64_t counted_ns[2]; /* when the capture last counted, and the time before that */
    /* unreported losses happened after this; 0 means after reported_ns */
    _Atomic uint64_t since_ns;
    _Atomic uint64_t first_ns; /* when the first loss happened, 0 if unknown */
    uint64_t reported;         /* the total already reported; used by the worker only */
    /*
     * Of what is not reported yet: how many have known times, and the earliest and the latest of
     * these. Used with the writer's `work` held.
     */
    uint64_t timed, from_ns, to_ns;
};

/* The segments of a ring (jfr/ring.h); used by the worker only. */
struct ring {
    struct jfr_ring_head *head; /* mapped; NULL when the file is not a ring */
    uint32_t segments, current;
    uint64_t segment_bytes;
    uint64_t done_bytes; /* of the chunks that have ended */

    struct ring_segment {
        uint64_t start_ns, end_ns; /* end_ns is 0 while the chunk is being written */
        uint64_t bytes;
    } segment[JFR_RING_SEGMENTS];
};

/* The parts of the metadata event that stay the same when types are added (metadata.c). */
struct metadata {
    struct strpool strings;
    struct buf types, string_bytes;
    size_t types_done, strings_done; /* the numbers of types and strings in them */
};

struct jfr_writer {
    int fd;
    int replaced;  /* the file that was there before; -1: none */
    char *unnamed; /* the path that the file, which has no name yet, is to have; or NULL */
    struct jfr_writer_options options;
    uint64_t base_ns; /* the time of tick 0 */
    int64_t epoch_ns; /* the wall-clock time of tick 0, since 1970 */
    uint64_t ends_ns; /* when the recording's span ends; UINT64_MAX: not yet */

    /* The members below are used in signal handlers. */
    struct region *_Atomic region;
    struct jfr_slot *slots;
    unsigned n_slots;
    atomic_bool closed;
    struct waker own_waker, *waker; /* the options' or the writer's own */
    struct loss_counter losses[JFR_LOSSES], lost_of_type[JFR_LOST_TYPES][JFR_LOST_REASONS];
    struct loss_counter lost_held[JFR_HELDS];
    char *_Atomic named_reasons[JFR_LOSSES]; /* reasons with names (jfr_lose_named) */
    _Atomic uint64_t lost_closed;
    struct traces traces;
    uint32_t shapes[JFR_MAX_TYPES]; /* of the types' fields (jfr_shape_add) */

    /* held during work, flush, rotate, close and declare; locked before dict */
    pthread_mutex_t work;
    struct chunk chunk;
    struct ring ring;
    uint64_t file_end;
    uint32_t pace; /* the recent number of blocks taken between two rounds */
    _Atomic uint64_t bytes, chunks, unresolved, lost_constants;
    /* The result of the last attempt to grow (0 when it succeeded), and the last failure. */
    _Atomic int error, failure;
    atomic_bool lost; /* another process cut the file short, so nothing in it is usable any more */
    struct map methods;              /* the owner's method number -> struct method_info * */
    uint64_t opened_ns, reported_ns; /* reported_ns: losses are reported up to here */
    uint64_t constant_bytes;         /* number written so far */

    pthread_mutex_t dict; /* protects types and their pools */
    struct strpool names; /* of types; the number is the type's number */
    VEC(struct type_info *) types;
    bool types_held;             /* by jfr_hold_types */
    size_t described;            /* types in the chunk's metadata; 0: none was written */
    struct metadata metadata;    /* used with `work` held */
    VEC(struct pending) pending; /* used by the worker only */
};

/* ---- event.c ---- */
/*
 * Begins an event with `room` bytes for its values in a slot that the caller holds; a longer event
 * gets blocks of its own. New blocks are taken from the region, NULL: the current one. worker: the
 * reserve may be used. Returns false when the region has no room.
 */
bool jfr_slot_begin(struct jfr_writer *w, struct jfr_slot *slot, struct region *region, bool worker,
                    size_t room, struct jfr_event *ret);
/* Publishes the event without releasing the slot. */
void jfr_slot_commit(struct jfr_event *e, uint16_t code);
/* Ends writing into the slot's block. */
void jfr_slot_retire(struct jfr_slot *slot);
/* Takes a slot, waiting until its writer has released it. */
void jfr_slot_acquire(struct jfr_slot *slot); /* may wait */
void jfr_slot_release(struct jfr_slot *slot);
/*
 * Like jfr_begin, but does not count a lost event. If it returns false, *ret_reason is why the
 * event was lost.
 */
bool event_begin(struct jfr_writer *w, uint32_t type, size_t room, struct jfr_event *ret,
                 enum lost_reason *ret_reason);
/*
 * Begins a checkpoint outside the chain with one constant of a pool, whose `room` bytes the caller
 * puts next. Returns false, and counts nothing, when the file has no room or the writer is closed.
 * Async-signal-safe.
 */
bool event_begin_constant(struct jfr_writer *w, uint32_t pool, uint64_t id, size_t room,
                          struct jfr_event *ret);
/*
 * Publishes the checkpoint, unless its constant needed more than `room` bytes, and releases the
 * slot.
 */
void event_end_constant(struct jfr_event *e);

/* ---- stacks.c ---- */
/*
 * Allocates the tables for `bytes` of stacks. again: memory is reused for new stacks, as in a ring.
 * Returns 0 or -ENOMEM.
 */
int traces_init(struct traces *t, uint64_t bytes, bool again) must_check;
/*
 * Frees the memory of a retired part, and determines whether another one must be retired. Called by
 * the worker.
 */
void traces_work(struct traces *t, uint64_t now);
void traces_release(struct traces *t);
/*
 * Prefaults memory for new stacks, so that a signal handler rarely takes a page fault. Called by
 * the worker.
 */
void traces_prefault(struct traces *t);

/* Returns the position of the stack with an id; UINT64_MAX when it does not exist any more. */
static inline uint64_t trace_position(const struct traces *t, uint32_t id)
{
    struct traces *v = (struct traces *)t; /* C17's atomic loads do not accept const */
    uint64_t used = atomic_load_explicit(&v->used, memory_order_relaxed) / 16,
             back = (uint32_t)((uint32_t)used + 1 - id);
    bool is = id && back && back <= used &&
              (used - back) * 16 >= atomic_load_explicit(&v->oldest, memory_order_relaxed);
    return is ? (used - back) * 16 : UINT64_MAX;
}

/* Returns the stack with an id; NULL when it does not exist any more. */
static inline struct trace *trace_of(const struct traces *t, uint64_t id)
{
    uint64_t at = id <= UINT32_MAX ? trace_position(t, (uint32_t)id) : UINT64_MAX;
    return at == UINT64_MAX ? NULL : (struct trace *)(void *)(t->arena + at % t->bytes);
}

/* ---- losses.c ---- */
/* Counts one event of a type as lost. */
void losses_count_event(struct jfr_writer *w, uint32_t type, enum lost_reason reason);
/* Returns how many events of all types were lost for a reason. */
uint64_t losses_of_events(const struct jfr_writer *w, enum lost_reason reason);
/*
 * Writes an event for each loss counted since the last call, at most ten times a second unless this
 * is the last call. Called by the worker.
 */
void losses_write(struct jfr_writer *w, bool last);

/* ---- region.c ---- */
/*
 * Maps `bytes` of the file from an offset on, none of which is allocated yet. Returns 0 or a
 * negative errno.
 */
int region_new(struct jfr_writer *w, struct region **ret, uint64_t file_offset,
               uint64_t bytes) must_check;
void region_free(struct region *r);
/*
 * Makes at least `least` blocks free for events, and more when the pace requires it. Called by the
 * worker. Returns 0, -EAGAIN when the region is full, or the negative errno with which the file
 * could not grow.
 */
int region_grow(struct jfr_writer *w, uint32_t least) must_check;
/* Returns the number of blocks with which a recording begins. */
uint32_t region_first(const struct jfr_writer *w);
/* Returns the first block that only the worker may take. */
uint32_t region_limit(const struct region *r);
/*
 * Makes the pages that will be written next writable; the kernel makes pages read-only again when
 * it has written them to disk. Called by the worker.
 */
void region_prefault(struct jfr_writer *w);

/*
 * region_cover and then region_format add n blocks of the file, which are allocated already, after
 * those that are ready. Between the two calls the new size must be stored in the region's chunk.
 * Called by the worker.
 */
void region_cover(struct region *r, uint32_t n);
void region_format(struct region *r, uint32_t n);

/* ---- writer_file.c ---- */

/* Creates the file at a path (jfr_writer_open). Returns its descriptor or a negative errno. */
int writer_file_create(struct jfr_writer *w, const char *path);
/* Returns the descriptor of a file in memory or a negative errno. */
int writer_file_in_memory(void);
/* Closes the file that was replaced, whose blocks are free then. */
void writer_file_drop_replaced(struct jfr_writer *w);

/* ---- writer.c ---- */
/*
 * Writes the header of a chunk that begins `lead` bytes after the start of its region's first
 * block, and covers the rest of the block. bytes: up to the end of the room that is ready.
 */
void chunk_init(struct jfr_writer *w, struct chunk *c, struct region *r, unsigned lead,
                uint32_t number, uint64_t bytes);
/* Stores how long the chunk has lasted. */
void chunk_touch(struct jfr_writer *w, struct chunk *c);
/*
 * Writes the constants of all events that were begun before the call. Waits for a block that a
 * preempted thread is about to open.
 */
void chunk_update_fully(struct jfr_writer *w);

/* ---- ring.c ---- */
/*
 * Allocates the empty file and writes the head. Returns 0, -EINVAL when the requested size is too
 * small or too large, or another negative errno.
 */
int ring_create(struct jfr_writer *w) must_check;
void ring_release(struct jfr_writer *w);
/* Returns whether the current segment may be full before the next round, or is old enough. */
bool ring_is_due(const struct jfr_writer *w);
/* Begins the first chunk. Returns 0 or a negative errno. */
int ring_begin(struct jfr_writer *w) must_check;
/*
 * Ends the current chunk and begins the next one in another segment. Returns 0, or a negative errno
 * when the current chunk continues.
 */
int ring_rotate(struct jfr_writer *w) must_check;
/* Records that the current chunk has ended and has this size. */
void ring_end(struct jfr_writer *w, uint64_t bytes);

/* ---- metadata.c ---- */
/* startTime, and the fields that the flags JFR_DURATION ... of a row add, in this order. */
extern const struct jfr_field jfr_event_fields[4];
/*
 * Writes the metadata of all types into the chunk and points the header to it. Returns 0, -ENOSPC
 * when the chunk has no room, or another negative errno.
 */
int metadata_write(struct jfr_writer *w, struct chunk *c) must_check;
void metadata_init(struct metadata *m);
void metadata_release(struct metadata *m);

/* ---- dictionary.c ---- */
/*
 * Adds types, or finds those that are known by their names, and stores their ids in ret_ids, which
 * may be NULL. Returns 0 or an error of jfr_declare.
 */
int dictionary_add_types(struct jfr_writer *w, const struct jfr_type *rows, size_t n,
                         uint32_t *ret_ids) must_check;
/*
 * Defines the constants of the pools of frame types and thread states. Returns 0 or a negative
 * errno.
 */
int dictionary_add_type_constants(struct jfr_writer *w) must_check;
void dictionary_release_types(struct jfr_writer *w);
/* Returns the id of a method in the dictionary, or 0 when out of memory. Requires the dict lock. */
uint64_t dictionary_intern_method(struct jfr_writer *w, const struct jfr_method *m);
/*
 * Returns the id of the entry with these contents, which it releases, in a pool, or 0 when out of
 * memory. Requires the dict lock.
 */
uint64_t dictionary_intern(struct jfr_writer *w, uint32_t pool, struct buf *contents);
/*
 * Defines a thread. stays: it is kept until jfr_forget_thread. Takes the dict lock. Returns 0 or a
 * negative errno.
 */
int dictionary_thread(struct jfr_writer *w, uint64_t id, const struct jfr_thread *t,
                      bool stays) must_check;
/* Stores the number of entries of all pools, and their bytes. Requires `work`. */
void dictionary_size(struct jfr_writer *w, uint64_t *ret_entries, uint64_t *ret_bytes);
/*
 * Drops entries that no chunk from `before` on has needed and that do not stay: of all pools in a
 * ring, otherwise of threads only. Requires `work`.
 */
void dictionary_forget(struct jfr_writer *w, uint32_t before);

/* ---- constants.c ---- */
/*
 * Reads what has been published since the last call and writes the constants it uses. Returns false
 * when a block is just being opened; the caller must call again.
 */
bool constants_update(struct jfr_writer *w, struct chunk *c);
/* Writes the constants that every chunk contains. */
void constants_start(struct jfr_writer *w, struct chunk *c);

static inline void jfr_header_store(struct chunk *c, unsigned field, uint64_t value)
{
    __atomic_store_n((uint64_t *)(void *)(c->header + field), htobe64(value), __ATOMIC_RELEASE);
}

static inline uint64_t jfr_offset_in_chunk(const struct chunk *c, const uint8_t *event)
{
    return c->region->file_offset + (uint64_t)(event - c->region->blocks) - c->start;
}

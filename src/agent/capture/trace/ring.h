/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rings into which threads write traced calls (probe/java/lang/JvmscopeTrace.java) and from which
 * the agent's thread reads. A ring has one writer, which advances head after writing a whole
 * record, and one reader, which advances tail. A call is recorded only when there will be room for
 * its exit too, so that calls are lost as a whole. While there are few threads, a ring holds most
 * of a second at a million calls per second.
 *
 * head and tail count the bytes of a stream that is divided into chunks. The writer places each
 * chunk of the stream in the first chunk of memory whose records have all been read, so that it
 * writes again and again into memory that it has already touched: a page that is new costs as much
 * as dozens of calls. The reader returns the memory of the other chunks to the system. A record
 * that begins before the end of a chunk may extend beyond it; the next one then begins a new chunk.
 * Knows no JVM.
 */
#pragma once

#include "base/macro.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRACE_PROBE "java/lang/JvmscopeTrace" /* the class that writes into the rings */

/* Total capacity of all rings, and limits for each. */
enum { RINGS_ROOM = 1 << 28, RING_ROOM_MAX = 1 << 26, RING_ROOM_MIN = 1 << 20 };

enum { RING_RECORD_MAX = 48 << 10, RING_SLOT_BITS = 16, RING_TEXT_MAX = 64 };

/* The bytes of the stream in a chunk, the memory of a chunk, and the most chunks of a ring. */
enum {
    RING_CHUNK = 1 << 17,
    RING_CHUNK_MEMORY = RING_CHUNK + RING_RECORD_MAX,
    RING_CHUNKS_MAX = RING_ROOM_MAX / RING_CHUNK + 2
};

/* RECORD_NAME: what follows was written under this name of its thread: length, characters */
enum { RECORD_EXIT = -1, RECORD_THROWN = -2, RECORD_NAME = -3 };

struct trace_ring {
    _Atomic int64_t head; /* written by the writer */
    /*
     * The next record is at the address base + head, unless head is at the beginning of a chunk:
     * then the writer first looks for memory.
     */
    int64_t base;
    /*
     * number of the last call; starts at a different value in each ring, so that numbers are unique
     */
    uint64_t calls;
    int64_t open;         /* calls in progress; room for their exits is always reserved */
    int32_t size;         /* the most bytes between tail and head; constant */
    _Atomic int32_t room; /* number of bytes that may be unread; at most size */
    /* not 0 while a probe of the thread runs code of the agent's that may run Java code */
    int32_t inside;
    int32_t asked;         /* not 0: such code has run for the record that is being written */
    int32_t index;         /* among the rings; constant */
    int32_t n_chunks;      /* of memory; constant */
    _Atomic uint64_t lost; /* number of calls for which there was no room */
    /* records of sites, and results, for which there was no room */
    _Atomic uint64_t lost_sites, lost_results;
    char pad[48];
    _Atomic int64_t tail; /* written by the reader */
    char pad2[56];
    /* by chunk of memory: 1 + the number of the chunk of the stream that is there; 0: none yet */
    _Atomic uint32_t chunks[RING_CHUNKS_MAX];
    _Alignas(4096) uint8_t data[]; /* n_chunks * RING_CHUNK_MEMORY */
};

_Static_assert(offsetof(struct trace_ring, asked) == 44 &&
                   offsetof(struct trace_ring, lost) == 56 &&
                   offsetof(struct trace_ring, tail) == 128 &&
                   offsetof(struct trace_ring, chunks) == 192 &&
                   offsetof(struct trace_ring, data) == 4096,
               "as the probe has it");

struct trace_record {
    uint32_t size; /* of the whole record, a multiple of 8 */
    int32_t kind;  /* a method's number, RECORD_EXIT, RECORD_THROWN or RECORD_NAME */
    uint64_t time_ns;
    int64_t thread; /* java.lang.Thread's id */
    uint64_t call;
    uint64_t reading_ns; /* taken by the values, from time_ns on; 0: almost nothing */
    /*
     * 8 bytes each; a reference is identity hash and class number; a string or array is followed by
     * its length
     */
    uint8_t values[];
};

/*
 * The slot by which the probe finds a thread's ring. Key 0 was never used; RING_VACATED may be
 * reused.
 */
#define RING_VACATED 1

struct trace_slot {
    _Atomic uint64_t eetop;
    struct trace_ring *ring;
};

#define RING_SLOTS (1u << RING_SLOT_BITS)

/*
 * Returns the slot of a key, or a free slot (whose key then differs); NULL when 64 places are
 * taken.
 */
struct trace_slot *trace_slot_find(struct trace_slot *slots, uint64_t eetop);

/*
 * Creates an empty ring, never unmapped, whose calls are numbered from `calls` on; NULL: no
 * memory.
 */
struct trace_ring *trace_ring_new(uint32_t size, uint64_t calls);
/* Returns the number of bytes that may be unread in each of n rings. */
uint32_t trace_ring_share(unsigned n);
/* Returns the number of bytes between the reader's and the writer's positions. */
uint32_t trace_ring_used(struct trace_ring *r);

/* The reader's place in a ring: the complete records up to where the writer was when it began. */
struct trace_cursor {
    struct trace_ring *ring;
    int64_t at, until;
    uint8_t *chunk; /* the memory of the chunk in which `at` is; NULL: not looked up yet */
};

void trace_cursor_begin(struct trace_cursor *c, struct trace_ring *r);
/*
 * Returns the record at the cursor; NULL when none is left. If the bytes there are not a record,
 * all that are left are skipped, and *ret_broken is true.
 */
const struct trace_record *trace_cursor_record(struct trace_cursor *c, bool *ret_broken);
/*
 * trace_cursor_next moves past the record at the cursor, and gives each chunk that was read back to
 * the writer; trace_cursor_end gives back what was read of the last chunk.
 */
void trace_cursor_next(struct trace_cursor *c);
void trace_cursor_end(struct trace_cursor *c);

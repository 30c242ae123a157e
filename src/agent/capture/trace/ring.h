/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rings into which threads write traced calls (probe/java/lang/JvmscopeTrace.java) and from which
 * the agent's thread reads. One writer, one reader; the writer moves head behind a whole record,
 * the reader moves tail. A record that begins before its size may reach beyond it; the next one
 * then begins at 0. A call is recorded only when there will be room for its end too, so that calls
 * are lost as a whole. While threads are few, a ring holds most of a second at a million calls a
 * second; memory that has been read goes back to the system, so that a thread with few calls costs
 * little. Knows no JVM.
 */
#pragma once

#include "base/macro.h"

#include <stdatomic.h>
#include <stdint.h>

/* All rings together hold so much; each one between these. */
enum { RINGS_ROOM = 1 << 28, RING_ROOM_MAX = 1 << 26, RING_ROOM_MIN = 1 << 20 };

enum { RING_RECORD_MAX = 48 << 10, RING_SLOT_BITS = 16, RING_TEXT_MAX = 64 };

enum { RECORD_EXIT = -1, RECORD_THROWN = -2 };

struct trace_ring {
    _Atomic int64_t head;  /* offset in data; the writer's */
    _Atomic uint64_t lost; /* calls for which there was no room */
    /*
     * the last call's number; starts at a value of the ring's own, so that no two rings share one
     */
    uint64_t calls;
    int64_t open; /* calls begun and not ended; there is always room for their ends */
    /* records of sites, and results, for which there was no room */
    _Atomic uint64_t lost_sites, lost_results;
    int32_t size;         /* of data; constant */
    _Atomic int32_t room; /* as many bytes may wait to be read; at most size */
    char pad1[8];
    _Atomic int64_t tail; /* the reader's */
    char pad2[56];
    uint8_t data[]; /* size + RING_RECORD_MAX */
};

_Static_assert(offsetof(struct trace_ring, tail) == 64 && offsetof(struct trace_ring, data) == 128,
               "as the probe has it");

struct trace_record {
    uint32_t size; /* of the whole record, a multiple of 8 */
    int32_t kind;  /* a method's number, RECORD_EXIT or RECORD_THROWN */
    uint64_t time_ns;
    int64_t thread; /* java.lang.Thread's id */
    uint64_t call;
    /*
     * 8 bytes each; a reference: identity hash and class number; a string or array then has its
     * length
     */
    uint8_t values[];
};

/* What the probe finds a thread's ring by; key 0 was never used, RING_VACATED may be used again. */
#define RING_VACATED 1

struct trace_slot {
    _Atomic uint64_t eetop;
    struct trace_ring *ring;
};

#define RING_SLOTS (1u << RING_SLOT_BITS)

/*
 * The slot where a key is, or (its key is another then) may be put; NULL when 64 places are taken.
 */
struct trace_slot *trace_slot_find(struct trace_slot *slots, uint64_t eetop);

/* An empty ring, mapped for good, whose calls are numbered from `calls` on; NULL: no memory. */
struct trace_ring *trace_ring_new(uint32_t size, uint64_t calls);
/* How many bytes may wait in each of n rings. */
uint32_t trace_ring_share(unsigned n);
/* Bytes between the reader's place and the writer's. */
uint32_t trace_ring_used(struct trace_ring *r);
/*
 * Hands all records that are there to `record`, one after the other, and then gives their room back
 * to the writer and their memory to the system. What is written meanwhile is for the next call.
 */
void trace_ring_drain(struct trace_ring *r,
                      void (*record)(void *context, const struct trace_record *r), void *context);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rings into which threads write traced calls (probe/java/lang/JvmscopeTrace.java) and from which the agent's thread reads. One
 * writer, one reader; the writer moves head behind a whole record, the reader moves tail. A record that begins before RING_SIZE
 * may reach beyond it; the next one then begins at 0. Knows no JVM.
 */
#pragma once

#include "base/macro.h"

#include <stdatomic.h>
#include <stdint.h>

enum { RING_SIZE = 1 << 20, RING_RECORD_MAX = 48 << 10, RING_SLOT_BITS = 16, RING_TEXT_MAX = 64 };

enum { RECORD_EXIT = -1, RECORD_THROWN = -2 };

struct trace_ring {
    _Atomic int64_t head;  /* offset in data; the writer's */
    _Atomic uint64_t lost; /* records for which there was no room */
    uint64_t calls;        /* the last call's number; starts at a value of the ring's own, so that no two rings share one */
    char pad1[40];
    _Atomic int64_t tail; /* the reader's */
    char pad2[56];
    uint8_t data[RING_SIZE + RING_RECORD_MAX];
};

_Static_assert(offsetof(struct trace_ring, tail) == 64 && offsetof(struct trace_ring, data) == 128, "as the probe has it");

struct trace_record {
    uint32_t size; /* of the whole record, a multiple of 8 */
    int32_t kind;  /* a method's number, RECORD_EXIT or RECORD_THROWN */
    uint64_t time_ns;
    int64_t thread; /* java.lang.Thread's id */
    uint64_t call;
    uint8_t values[]; /* 8 bytes each; a reference: identity hash and class number; a string or array then has its length */
};

/* What the probe finds a thread's ring by; key 0 was never used, RING_VACATED may be used again. */
#define RING_VACATED 1

struct trace_slot {
    _Atomic uint64_t eetop;
    struct trace_ring *ring;
};

#define RING_SLOTS (1u << RING_SLOT_BITS)

/* The slot where a key is, or (its key is another then) may be put; NULL when 64 places are taken. */
struct trace_slot *trace_slot_find(struct trace_slot *slots, uint64_t eetop);

/* The next record, NULL when the ring is empty. It stays until trace_ring_pass. */
const struct trace_record *trace_ring_peek(struct trace_ring *r);
void trace_ring_pass(struct trace_ring *r, const struct trace_record *record);

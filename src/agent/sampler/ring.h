/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lock-free queue of records of any length from signal handlers to one reader, in the order in
 * which room was taken. A record that does not fit is refused; the reader waits for a record that
 * is still being written.
 */
#pragma once

#include "base/macro.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct ring_record {
    /* the record's position, with RING_COMPLETE once the record is complete */
    _Atomic uint64_t stamp;
    uint64_t bytes; /* including this head; a multiple of 64 */
};

/* Flags in a stamp; the position is a multiple of 64. */
enum { RING_COMPLETE = 1, RING_PAD = 2 };

/* A zeroed ring refuses every record. */
struct record_ring {
    char *memory;
    uint64_t size; /* a power of two */
    _Atomic uint64_t taken __attribute__((aligned(64)));
    _Atomic uint64_t read;
};

/*
 * Allocates a ring of `size` bytes. Returns 0 or -ENOMEM. Only its first pages are resident,
 * because making all of them resident would delay the program's start by half a millisecond;
 * ring_fill makes the others resident, on another thread.
 */
int ring_open(struct record_ring *r, uint64_t size) must_check;
void ring_fill(struct record_ring *r);
void ring_close(struct record_ring *r);

/*
 * Reserves room for a record of `bytes` bytes including its head, or returns NULL when the ring has
 * no room. The caller then fills the record and passes it with *ret_position to ring_put.
 * Async-signal-safe.
 */
struct ring_record *ring_take(struct record_ring *r, uint64_t bytes, uint64_t *ret_position);

/* Passes a record that is filled to the reader. Async-signal-safe. */
static inline void ring_put(struct ring_record *record, uint64_t position)
{
    atomic_store_explicit(&record->stamp, position | RING_COMPLETE, memory_order_release);
}

/* Returns the next record, which remains until ring_done, or NULL. */
struct ring_record *ring_next(struct record_ring *r);
/* Frees the room of the record that ring_next has returned. */
void ring_done(struct record_ring *r, const struct ring_record *record);

/* Returns the address at which the next record will begin. */
static inline const void *ring_place(const struct record_ring *r)
{
    return r->memory + (atomic_load_explicit(&r->taken, memory_order_relaxed) & (r->size - 1));
}

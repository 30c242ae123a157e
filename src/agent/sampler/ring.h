/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of any length on their way from signal handlers to one reader, in the order in which room was taken. No lock: what
 * does not fit is refused, and the reader waits for a record that is being written.
 */
#pragma once

#include "base/macro.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct ring_record {
    _Atomic uint64_t stamp; /* its position, and that it is there */
    uint64_t bytes;         /* with this head, a multiple of 64 */
};

/* In a stamp beside the position, a multiple of 64. */
enum { RING_THERE = 1, RING_PAD = 2 };

/* Zeroed is one that refuses everything. */
struct ring {
    char *memory;
    uint64_t size; /* a power of two */
    _Atomic uint64_t taken __attribute__((aligned(64)));
    _Atomic uint64_t read;
};

int ring_open(struct ring *r, uint64_t size) must_check; /* 0 or -ENOMEM */
void ring_close(struct ring *r);

/* Async-signal-safe. Room for a record of so many bytes, its head included; NULL: there is none. Then ring_put. */
struct ring_record *ring_take(struct ring *r, uint64_t bytes, uint64_t *ret_position);

static inline void ring_put(struct ring_record *record, uint64_t position)
{
    atomic_store_explicit(&record->stamp, position | RING_THERE, memory_order_release);
}

/* The next record, NULL when there is none; it stays until ring_done. */
struct ring_record *ring_next(struct ring *r);
void ring_done(struct ring *r, const struct ring_record *record);

/* What the next record will begin with. */
static inline const void *ring_place(const struct ring *r)
{
    return r->memory + (atomic_load_explicit(&r->taken, memory_order_relaxed) & (r->size - 1));
}

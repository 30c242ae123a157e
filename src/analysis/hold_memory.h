/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of holds while they are collected (holds.c). */
#pragma once

#include "analysis/hold_block.h"
#include "analysis/holds.h"

/*
 * A flag of a hold until it is read: its end is only an upper bound, and the median length of its
 * kind replaces it.
 */
#define HOLD_MEDIAN 16

/*
 * Reserves addresses for the largest possible number of holds: one per node, plus chunks that are
 * not full. links: also for the links of the holds. Returns 0 or -ENOMEM; holds_release frees the
 * addresses in either case.
 */
int holds_reserve(struct holds *h, const struct timeline *t, bool links) must_check;
/* Sets how many slots are in use; with links, the memory after these is prefaulted. */
void holds_filled(struct holds *h, size_t slots);
/*
 * Ends the prefaulting, because no more slots will be used. Without links also frees the slots,
 * since all holds are packed.
 */
void holds_complete(struct holds *h);
/* Packs the first n holds of a chunk of slots. Returns where they are, or NULL without memory. */
const uint8_t *holds_pack(struct holds *h, size_t chunk, size_t n) must_check;

/* The threads of all holds, in the order in which these were opened. */
struct hold_order {
    unsigned width;     /* bytes of a thread's number */
    VEC(uint8_t) bytes; /* three more may be read */
};

/* Appends the thread of the hold that was opened last. Returns 0 or -ENOMEM. */
int hold_order_add(struct hold_order *o, uint32_t thread) must_check;

static inline uint32_t hold_order_get(const struct hold_order *o, size_t i)
{
    uint32_t number;
    memcpy(&number, o->bytes.data + i * o->width, sizeof(number));
    return le32toh(number) & (UINT32_MAX >> (32 - 8 * o->width));
}

/* ---- hold_ends.c ---- */

/*
 * Finds the ends that were not observed; those of packed holds are found when they are read. order:
 * NULL when none of them depends on a median. Returns 0 or -ENOMEM.
 */
int holds_settle(struct holds *h, const struct hold_order *order) must_check;
/*
 * Returns the end of a thread's hold that was not observed: where the thread was last seen in the
 * method that took the lock; otherwise (by_median) the median length of the sections of the same
 * kind, or of the same class, but not beyond its upper bound, which is `end`.
 */
uint64_t hold_end_settled(const struct holds *h, uint32_t thread, uint64_t start, uint64_t end,
                          uint32_t object, uint32_t stack, bool by_median);

/* Returns unsure_us of a hold whose end was not observed, which cannot exceed the thread's end. */
static inline uint32_t hold_unsure_settled(const struct holds *h, uint32_t thread, uint64_t start,
                                           uint64_t unsure_us)
{
    const uint64_t last = h->t->threads[thread].end_ns;
    uint64_t us = (last - MIN(start, last) + 999) / 1000; /* rounded up: this is a bound */
    return (uint32_t)MIN(unsure_us, us);
}

/* Sets the end and unsure_us of a thread's hold, if its end was not observed. */
void hold_settle(const struct holds *h, uint32_t thread, struct tl_hold *one,
                 struct hold_side *side);
/* Begins to read a packed chunk of a thread; hold_unpack reads a hold of it as it was collected. */
struct hold_bits hold_bits_of(const struct holds *h, uint32_t thread, size_t chunk);
struct hold_read hold_unpack(const struct hold_bits *b, size_t i);
/* Reads the i-th hold of a thread as it was collected. */
struct hold_read hold_collected(const struct holds *h, uint32_t thread, size_t i);

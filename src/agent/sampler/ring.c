/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/ring.h"

#include "base/mapped.h"
#include "base/pages.h"

#include <errno.h>

enum { UNIT = 64, FIRST = 64 << 10, PAGE = 4096 };

int ring_open(struct record_ring *r, uint64_t size)
{
    char *memory = mapped_new_huge(size);
    if (!memory)
        return -ENOMEM;
    if (!pages_to_write(memory, MIN(size, FIRST)))
        for (uint64_t at = 0; at < size; at += PAGE)
            *(volatile char *)(memory + at) = 0;
    *r = (struct record_ring){.memory = memory, .size = size};
    return 0;
}

void ring_fill(struct record_ring *r)
{
    if (r->size > FIRST)
        (void)pages_to_write(r->memory + FIRST, r->size - FIRST);
}

void ring_close(struct record_ring *r)
{
    mapped_free(r->memory, r->size);
    *r = (struct record_ring){0};
}

static struct ring_record *record_at(const struct record_ring *r, uint64_t position)
{
    return (struct ring_record *)(void *)(r->memory + (position & (r->size - 1)));
}

at_each_sample struct ring_record *ring_take(struct record_ring *r, uint64_t bytes,
                                             uint64_t *ret_position)
{
    uint64_t position = atomic_load_explicit(&r->taken, memory_order_relaxed), pad;
    bytes = (bytes + UNIT - 1) & ~(uint64_t)(UNIT - 1);
    do {
        uint64_t to_end = r->size - (position & (r->size - 1));
        pad = to_end < bytes ? to_end : 0;
        uint64_t read = atomic_load_explicit(&r->read, memory_order_acquire);
        /*
         * If other threads have taken the position and the reader has passed it, the result of this
         * comparison is wrong, but the exchange below fails.
         */
        if (position >= read && position + pad + bytes - read > r->size)
            return NULL;
    } while (!atomic_compare_exchange_weak(&r->taken, &position, position + pad + bytes));
    if (pad) {
        record_at(r, position)->bytes = pad;
        atomic_store_explicit(&record_at(r, position)->stamp, position | RING_PAD,
                              memory_order_release);
        position += pad;
    }
    record_at(r, position)->bytes = bytes;
    *ret_position = position;
    return record_at(r, position);
}

struct ring_record *ring_next(struct record_ring *r)
{
    for (;;) {
        uint64_t position = atomic_load_explicit(&r->read, memory_order_relaxed);
        if (position == atomic_load_explicit(&r->taken, memory_order_acquire))
            return NULL;
        struct ring_record *record = record_at(r, position);
        uint64_t stamp = atomic_load_explicit(&record->stamp, memory_order_acquire);
        if (stamp == (position | RING_COMPLETE))
            return record;
        if (stamp != (position | RING_PAD))
            return NULL;
        ring_done(r, record);
    }
}

void ring_done(struct record_ring *r, const struct ring_record *record)
{
    atomic_store_explicit(&r->read,
                          atomic_load_explicit(&r->read, memory_order_relaxed) + record->bytes,
                          memory_order_release);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot/thread_bytes.h"

enum { TRIES = 16 };

struct reading {
    uint64_t allocated, start, top, end;
};

static uint64_t word(const struct memory *m, uint64_t address)
{
    uint64_t value = 0;
    (void)load_u64(m, address, &value);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return value;
}

/*
 * Returns whether the fields are those of one buffer: it was neither given up nor replaced
 * meanwhile.
 */
static bool read_once(const struct memory *m, uint64_t thread, const struct thread_bytes_at *at,
                      struct reading *ret)
{
    ret->allocated = word(m, thread + (uint64_t)at->allocated);
    ret->start = word(m, thread + (uint64_t)at->start);
    ret->top = word(m, thread + (uint64_t)at->top);
    ret->end = word(m, thread + (uint64_t)at->end);
    return word(m, thread + (uint64_t)at->start) == ret->start &&
           word(m, thread + (uint64_t)at->allocated) == ret->allocated;
}

uint64_t thread_bytes(const struct memory *m, uint64_t thread, const struct thread_bytes_at *at)
{
    struct reading r;
    bool whole = false;
    for (int i = 0; i < TRIES && !whole; i++)
        whole = read_once(m, thread, at, &r);
    return r.allocated +
           (whole && r.start && r.top > r.start && r.top <= r.end ? r.top - r.start : 0);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/trace/ring.h"

#include <sys/mman.h>
#include <unistd.h>

struct trace_slot *trace_slot_find(struct trace_slot *slots, uint64_t eetop)
{
    struct trace_slot *vacated = NULL;
    uint64_t at = eetop * UINT64_C(0x9e3779b97f4a7c15) >> (64 - RING_SLOT_BITS);
    for (int probes = 0; probes < 64; probes++, at = (at + 1) & (RING_SLOTS - 1)) {
        uint64_t key = atomic_load(&slots[at].eetop);
        if (key == eetop)
            return &slots[at];
        if (key == RING_VACATED && !vacated)
            vacated = &slots[at];
        if (key == 0)
            return vacated ? vacated : &slots[at];
    }
    return vacated;
}

struct trace_ring *trace_ring_new(uint32_t size, uint64_t calls)
{
    struct trace_ring *r = mmap(NULL, sizeof(*r) + size + RING_RECORD_MAX, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (r == MAP_FAILED)
        return NULL;
    r->calls = calls;
    r->size = (int32_t)size;
    atomic_store(&r->room, (int32_t)size);
    return r;
}

uint32_t trace_ring_share(unsigned n)
{
    uint32_t share = RINGS_ROOM / MAX(n, 1u);
    return MIN(MAX(share, (uint32_t)RING_ROOM_MIN), (uint32_t)RING_ROOM_MAX);
}

uint32_t trace_ring_used(struct trace_ring *r)
{
    int64_t used = atomic_load_explicit(&r->head, memory_order_relaxed) -
                   atomic_load_explicit(&r->tail, memory_order_relaxed);
    return (uint32_t)(used < 0 ? used + r->size : used);
}

/*
 * Returns the whole pages of data[from, to) to the system. Their records have been read, and the
 * writer does not use this room yet.
 */
static void give_back(struct trace_ring *r, int64_t from, int64_t to)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE),
              begin = ((uintptr_t)r->data + (uintptr_t)from + page - 1) & ~(page - 1);
    uintptr_t end = ((uintptr_t)r->data + (uintptr_t)to) & ~(page - 1);
    if (begin < end)
        (void)madvise((void *)begin, end - begin, MADV_DONTNEED);
}

/* Returns whether a record can have this length, of which `available` bytes have been written. */
static bool is_size(uint32_t size, int64_t available)
{
    return size >= sizeof(struct trace_record) && size % 8 == 0 && size <= available;
}

void trace_cursor_begin(struct trace_cursor *c, struct trace_ring *r)
{
    int64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    *c = (struct trace_cursor){.ring = r,
                               .at = tail,
                               .until = atomic_load_explicit(&r->head, memory_order_acquire),
                               .from = tail};
}

const struct trace_record *trace_cursor_record(struct trace_cursor *c, bool *ret_broken)
{
    struct trace_ring *r = c->ring;
    if (c->at == c->until)
        return NULL;
    const struct trace_record *one = (const struct trace_record *)(r->data + c->at);
    int64_t room = c->at < c->until ? c->until - c->at : r->size + RING_RECORD_MAX - c->at;
    if (is_size(one->size, room))
        return one;
    *ret_broken = true;
    c->at = c->from = c->until;
    return NULL;
}

void trace_cursor_next(struct trace_cursor *c)
{
    /* number of bytes that are read before their room is given back to the writer */
    enum { PART = 256 << 10 };

    struct trace_ring *r = c->ring;
    int64_t end = c->at + ((const struct trace_record *)(r->data + c->at))->size;
    c->at = end >= r->size ? 0 : end;
    if (end - c->from < PART && c->at != 0)
        return;
    give_back(r, c->from, end);
    atomic_store_explicit(&r->tail, c->at, memory_order_release);
    c->from = c->at;
}

void trace_cursor_end(struct trace_cursor *c)
{
    atomic_store_explicit(&c->ring->tail, c->at, memory_order_release);
}

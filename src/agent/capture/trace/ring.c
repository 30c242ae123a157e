/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/trace/ring.h"

#include "base/mapped.h"

#include <sys/mman.h>

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
    /* Unread bytes may begin and end within a chunk, and the writer needs one that is free. */
    size_t n = (size + RING_CHUNK - 1) / RING_CHUNK + 2;
    struct trace_ring *r = mapped_new(sizeof(*r) + n * RING_CHUNK_MEMORY);
    if (!r)
        return NULL;
    r->calls = calls;
    r->size = (int32_t)size;
    r->n_chunks = (int32_t)n;
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
    return (uint32_t)(atomic_load_explicit(&r->head, memory_order_relaxed) -
                      atomic_load_explicit(&r->tail, memory_order_relaxed));
}

/* Returns the memory of a chunk of the stream, or NULL if there is none. */
static uint8_t *find_chunk(struct trace_ring *r, int64_t at)
{
    uint32_t wanted = (uint32_t)(at / RING_CHUNK) + 1;
    for (int32_t i = 0; i < r->n_chunks; i++) {
        if (atomic_load_explicit(&r->chunks[i], memory_order_relaxed) == wanted)
            return r->data + (size_t)i * RING_CHUNK_MEMORY;
    }
    return NULL;
}

/*
 * Gives the memory of a chunk that has been read back to the system, unless it is one of the first,
 * which the writer will use again soon.
 */
static void give_back(struct trace_ring *r, uint8_t *chunk)
{
    enum { KEPT_PART = 16, KEPT_MIN = 2 };

    size_t kept = (size_t)MAX(r->n_chunks / KEPT_PART, KEPT_MIN);
    if (chunk >= r->data + kept * RING_CHUNK_MEMORY)
        (void)madvise(chunk, RING_CHUNK_MEMORY, MADV_DONTNEED);
}

/* Returns whether a record can have this length, of which `available` bytes have been written. */
static bool is_size(uint32_t size, int64_t available)
{
    return size >= sizeof(struct trace_record) && size % 8 == 0 && size <= available;
}

void trace_cursor_begin(struct trace_cursor *c, struct trace_ring *r)
{
    *c = (struct trace_cursor){.ring = r,
                               .at = atomic_load_explicit(&r->tail, memory_order_relaxed),
                               .until = atomic_load_explicit(&r->head, memory_order_acquire)};
}

static const struct trace_record *current(const struct trace_cursor *c)
{
    return (const struct trace_record *)(const void *)(c->chunk + c->at % RING_CHUNK);
}

const struct trace_record *trace_cursor_record(struct trace_cursor *c, bool *ret_broken)
{
    if (c->at == c->until)
        return NULL;
    if (!c->chunk)
        c->chunk = find_chunk(c->ring, c->at);
    int64_t written = c->at / RING_CHUNK == c->until / RING_CHUNK
                          ? c->until - c->at
                          : RING_CHUNK_MEMORY - c->at % RING_CHUNK;
    if (c->chunk && is_size(current(c)->size, written))
        return current(c);
    *ret_broken = true;
    c->at = c->until;
    c->chunk = NULL;
    return NULL;
}

void trace_cursor_next(struct trace_cursor *c)
{
    int64_t next = c->at + current(c)->size;
    if (next / RING_CHUNK == c->at / RING_CHUNK) {
        c->at = next;
        return;
    }
    give_back(c->ring, c->chunk);
    c->at = next / RING_CHUNK * RING_CHUNK;
    c->chunk = NULL;
    trace_cursor_end(c);
}

void trace_cursor_end(struct trace_cursor *c)
{
    atomic_store_explicit(&c->ring->tail, c->at, memory_order_release);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/trace/ring.h"

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

const struct trace_record *trace_ring_peek(struct trace_ring *r)
{
    int64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    if (tail == atomic_load_explicit(&r->head, memory_order_acquire))
        return NULL;
    return (const struct trace_record *)(r->data + tail);
}

void trace_ring_pass(struct trace_ring *r, const struct trace_record *record)
{
    int64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed) + record->size;
    atomic_store_explicit(&r->tail, tail >= RING_SIZE ? 0 : tail, memory_order_release);
}

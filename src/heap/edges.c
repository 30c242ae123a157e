/* SPDX-License-Identifier: Apache-2.0 */
#include "heap/edges.h"

#include "heap/memory.h"

#include <errno.h>

enum { BLOCK = 1 << 20, MAX_VARINT = 10 };

int edges_init(struct edges *e, uint64_t nodes, uint64_t max_bytes)
{
    *e = (struct edges){.nodes = nodes, .taken = 1};
    e->capacity = max_bytes + 64 * (uint64_t)BLOCK;
    e->blocks_cap = e->capacity / BLOCK + 1;
    e->bytes = heap_memory(e->capacity);
    e->low = heap_memory(nodes * 4);
    e->high = heap_memory(nodes);
    e->weak = heap_memory(nodes / 8 + 8);
    e->blocks = heap_memory(e->blocks_cap * sizeof(*e->blocks));
    if (e->bytes && e->low && e->high && e->weak && e->blocks)
        return 0;
    edges_release(e);
    return -ENOMEM;
}

void edges_release_starts(struct edges *e)
{
    heap_memory_free(e->low);
    heap_memory_free(e->high);
    e->low = NULL;
    e->high = NULL;
}

void edges_release(struct edges *e)
{
    edges_release_starts(e);
    heap_memory_free(e->weak);
    heap_memory_free(e->bytes);
    heap_memory_free(e->blocks);
    *e = (struct edges){0};
}

/* Records the block to which the writer will add nothing more. */
static int leave_block(struct edge_writer *w)
{
    if (!w->start)
        return 0;
    uint64_t i = __atomic_fetch_add(&w->edges->blocks_n, 1, __ATOMIC_RELAXED);
    if (i >= w->edges->blocks_cap)
        return -E2BIG;
    w->edges->blocks[i] = (struct edge_block){(uint64_t)(w->start - w->edges->bytes),
                                              (uint64_t)(w->at - w->edges->bytes)};
    w->start = NULL;
    return 0;
}

int edges_begin(struct edge_writer *w, uint64_t node, uint64_t count, bool first_weak)
{
    struct edges *e = w->edges;
    uint64_t need = (count + 2) * MAX_VARINT;
    if (!w->start || (uint64_t)(w->end - w->at) < need) {
        int error = leave_block(w);
        if (error)
            return error;
        uint64_t size = MAX(need, (uint64_t)BLOCK),
                 at = __atomic_fetch_add(&e->taken, size, __ATOMIC_RELAXED);
        if (at + size > e->capacity)
            return -E2BIG;
        w->start = w->at = e->bytes + at;
        w->end = w->start + size;
        w->before = 0;
    }
    w->at = varint_put(w->at, edges_zigzag_(node - w->before));
    w->before = w->node = node;
    uint64_t at = (uint64_t)(w->at - e->bytes);
    e->low[node] = (uint32_t)at;
    if (unlikely(at >> 32))
        e->high[node] = (uint8_t)(at >> 32);
    if (unlikely(first_weak))
        __atomic_fetch_or(&e->weak[node / 64], UINT64_C(1) << (node % 64), __ATOMIC_RELAXED);
    return 0;
}

void edges_end(struct edge_writer *w)
{
    *w->at++ = 0;
}

int edges_finish(struct edge_writer *w)
{
    return leave_block(w);
}

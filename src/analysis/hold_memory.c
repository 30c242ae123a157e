/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/hold_memory.h"

#include <stdlib.h>

int holds_reserve(struct holds *h, const struct timeline *t, bool links)
{
    size_t most = t->n_nodes + ((t->n_threads + 1) << HOLD_CHUNK_BITS);
    int r = prefault_init(&h->slot_memory, most * sizeof(*h->slots));
    if (r == 0)
        r = prefault_init(&h->side_memory, most * sizeof(*h->side));
    if (r == 0 && links)
        r = prefault_init(&h->link_memory, most * sizeof(*h->links));
    h->slots = (struct tl_hold *)(void *)h->slot_memory.map;
    h->side = (struct hold_side *)(void *)h->side_memory.map;
    h->links = (struct hold_link *)(void *)h->link_memory.map;
    return r;
}

void holds_filled(struct holds *h, size_t slots)
{
    h->n_slots = slots;
    if (!h->links)
        return; /* they are used again and again */
    prefault_filled(&h->slot_memory, slots * sizeof(*h->slots));
    prefault_filled(&h->side_memory, slots * sizeof(*h->side));
    prefault_filled(&h->link_memory, slots * sizeof(*h->links));
}

void holds_complete(struct holds *h)
{
    prefault_end(&h->slot_memory);
    prefault_end(&h->side_memory);
    prefault_end(&h->link_memory);
    if (h->links)
        return;
    prefault_release(&h->slot_memory);
    prefault_release(&h->side_memory);
    h->slots = NULL;
    h->side = NULL;
}

void holds_release(struct holds *h)
{
    prefault_release(&h->slot_memory);
    prefault_release(&h->side_memory);
    prefault_release(&h->link_memory);
    arena_release(&h->memory);
    map_release(&h->long_wakes);
    map_release(&h->medians);
    free(h->of_object);
    free(h->first);
    free(h->chunk_first);
    free(h->packed);
    free(h->chunks);
    *h = (struct holds){0};
}

/* While holds are collected, an end may lie before the start: twice the distance, plus 1 then. */
static uint64_t length_code(const struct tl_hold *h)
{
    uint64_t start = h->start, end = h->end;
    return end >= start ? (end - start) << 1 : (start - end) << 1 | 1;
}

static uint64_t end_of(uint64_t start, uint64_t code)
{
    return code & 1 ? start - (code >> 1) : start + (code >> 1);
}

const uint8_t *holds_pack(struct holds *h, size_t chunk, size_t n)
{
    const struct tl_hold *holds = &h->slots[chunk << HOLD_CHUNK_BITS];
    const struct hold_side *side = &h->side[chunk << HOLD_CHUNK_BITS];
    struct hold_values v;
    uint8_t bytes[HOLD_BLOCK_BYTES];
    v.start = holds[0].start;
    v.latest = 0;
    v.n = n;
    for (size_t i = 0; i < n; i++) {
        v.of[HOLD_AT][i] = holds[i].start - v.start;
        v.of[HOLD_LENGTH][i] = length_code(&holds[i]);
        v.of[HOLD_OBJECT][i] = tl_hold_object(&holds[i]);
        v.of[HOLD_UNSURE][i] = (uint32_t)(side[i].unsure_us + 1); /* UINT32_MAX is frequent */
        v.of[HOLD_STACK][i] = (uint32_t)(side[i].stack + 1);
        v.of[HOLD_WAKE][i] = side[i].wake_ns;
        v.of[HOLD_FLAGS][i] = holds[i].flags;
    }
    size_t len = hold_block_put(&v, HOLD_COLUMNS, bytes);
    uint8_t *packed = arena_alloc(&h->memory, len);
    if (packed)
        memcpy(packed, bytes, len);
    return packed;
}

/* Returns a hold, given what its columns say and when the first hold of its chunk began. */
static inline struct hold_read hold_from(uint64_t first, const uint64_t of[HOLD_COLUMNS])
{
    uint64_t start = first + of[HOLD_AT], end = end_of(start, of[HOLD_LENGTH]);
    return (struct hold_read){.hold = {.start = start & TL_TIME_LAST,
                                       .end = end & TL_TIME_LAST,
                                       .object_low = of[HOLD_OBJECT] & 0xffff,
                                       .object_high = of[HOLD_OBJECT] >> 16 & 0x7ff,
                                       .flags = of[HOLD_FLAGS] & 31},
                              .side = {.stack = (uint32_t)of[HOLD_STACK] - 1,
                                       .wake_ns = (uint32_t)of[HOLD_WAKE],
                                       .unsure_us = (uint32_t)of[HOLD_UNSURE] - 1}};
}

struct hold_bits hold_bits_of(const struct holds *h, uint32_t thread, size_t chunk)
{
    struct cursor c = cursor_of(h->packed[h->chunk_first[thread] + chunk], HOLD_BLOCK_BYTES);
    struct hold_bits b = {0};
    (void)hold_block_next(&c, &b);
    return b;
}

struct hold_read hold_unpack(const struct hold_bits *b, size_t i)
{
    uint64_t of[HOLD_COLUMNS];
    for (int c = 0; c < HOLD_COLUMNS; c++)
        of[c] = hold_block_get(b, (enum hold_column)c, i);
    return hold_from(b->block.start, of);
}

struct hold_read hold_collected(const struct holds *h, uint32_t thread, size_t i)
{
    if (!h->packed) {
        size_t slot = hold_slot(h, thread, i);
        return (struct hold_read){h->slots[slot], h->side[slot]};
    }
    struct hold_bits b = hold_bits_of(h, thread, i >> HOLD_CHUNK_BITS);
    return hold_unpack(&b, i % HOLD_CHUNK);
}

struct hold_read hold_of(const struct holds *h, uint32_t thread, size_t i)
{
    struct hold_read one = hold_collected(h, thread, i);
    hold_settle(h, thread, &one.hold, &one.side);
    return one;
}

/* Finds the end of the i-th hold of a chunk, which was not observed. */
static void settle_in(const struct holds *h, uint32_t thread, const struct hold_bits *b, size_t i,
                      enum hold_side_field side, struct hold_piece *piece)
{
    const uint64_t start = piece->start[i];
    bool by_median = piece->flags[i] & HOLD_MEDIAN;
    uint32_t stack = by_median ? (uint32_t)hold_block_get(b, HOLD_STACK, i) - 1 : TL_NONE;
    piece->end[i] = hold_end_settled(h, thread, start, piece->end[i], (uint32_t)piece->object[i],
                                     stack, by_median);
    piece->flags[i] &= HOLD_MEDIAN - 1;
    if (side == HOLD_UNSURE_US)
        piece->side[i] = hold_unsure_settled(h, thread, start, piece->side[i]);
}

void holds_read(const struct holds *h, uint32_t thread, size_t chunk, enum hold_side_field side,
                struct hold_piece *ret)
{
    size_t first = chunk << HOLD_CHUNK_BITS;
    ret->n = MIN(hold_count(h, thread) - first, (size_t)HOLD_CHUNK);
    for (size_t i = 0; !h->packed && i < ret->n; i++) {
        struct hold_read one = hold_collected(h, thread, first + i);
        ret->start[i] = one.hold.start;
        ret->end[i] = one.hold.end;
        ret->object[i] = tl_hold_object(&one.hold);
        ret->flags[i] = one.hold.flags;
        ret->side[i] = side == HOLD_UNSURE_US ? one.side.unsure_us : one.side.wake_ns;
    }
    if (!h->packed)
        return;
    const struct hold_bits b = hold_bits_of(h, thread, chunk);
    hold_block_column(&b, HOLD_AT, ret->start);
    hold_block_column(&b, HOLD_LENGTH, ret->end);
    hold_block_column(&b, HOLD_OBJECT, ret->object);
    hold_block_column(&b, HOLD_FLAGS, ret->flags);
    hold_block_column(&b, side == HOLD_UNSURE_US ? HOLD_UNSURE : HOLD_WAKE, ret->side);
    for (size_t i = 0; i < ret->n; i++) {
        ret->start[i] += b.block.start;
        ret->end[i] = end_of(ret->start[i], ret->end[i]) & TL_TIME_LAST;
        if (side == HOLD_UNSURE_US)
            ret->side[i] = (uint32_t)(ret->side[i] - 1);
        if (ret->flags[i] & HOLD_END_INFERRED)
            settle_in(h, thread, &b, i, side, ret);
    }
}

int hold_order_add(struct hold_order *o, uint32_t thread)
{
    int r = vec_reserve(&o->bytes, o->bytes.len + sizeof(thread));
    if (r < 0)
        return r;
    uint32_t number = htole32(thread);
    memcpy(o->bytes.data + o->bytes.len, &number, sizeof(number));
    o->bytes.len += o->width;
    return 0;
}

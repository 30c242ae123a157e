/* SPDX-License-Identifier: Apache-2.0 */
/* The ends of holds that were not observed. */
#include "analysis/hold_memory.h"
#include "analysis/medians.h"

#include <stdlib.h>

enum { MEDIAN_SAMPLE = 500000 };

/* The key of a kind of sections: the class and, where it is known, the place of entry. */
static uint64_t section_key(const struct holds *h, uint32_t object, uint32_t stack)
{
    return (uint64_t)h->t->objects[object].class << 32 | stack;
}

/* The holds of a thread that have been passed, and the chunk of the last one that was read. */
struct passing {
    size_t n, chunk;
    struct hold_bits bits;
};

/* Adds the length of a thread's i-th hold, unless it is inferred. */
static int add_length(struct medians *m, const struct holds *h, uint32_t thread, size_t i,
                      struct passing *p)
{
    const struct hold_bits *b = &p->bits;
    size_t chunk = i >> HOLD_CHUNK_BITS, k = i % HOLD_CHUNK;
    struct hold_read one;
    if (h->packed && (p->chunk != chunk || !b->bits)) {
        p->bits = hold_bits_of(h, thread, chunk);
        p->chunk = chunk;
    }
    if (h->packed && hold_block_get(b, HOLD_FLAGS, k) & HOLD_INFERRED)
        return 0;
    one = h->packed ? hold_unpack(b, k) : hold_collected(h, thread, i);
    if (one.hold.flags & HOLD_INFERRED)
        return 0;
    uint32_t object = tl_hold_object(&one.hold);
    uint64_t length = one.hold.end - one.hold.start;
    int r = one.side.stack == TL_NONE
                ? 0
                : medians_add(m, section_key(h, object, one.side.stack), length);
    return r == 0 ? medians_add(m, section_key(h, object, TL_NONE), length) : r;
}

/* The lengths are those of a sample of the sections when there are very many. */
static int find_medians(struct holds *h, const struct hold_order *order)
{
    size_t n = order->bytes.len / order->width, step = 1 + n / MEDIAN_SAMPLE;
    struct medians m = {0};
    struct passing *passed = calloc(h->t->n_threads + 1, sizeof(*passed)); /* per thread */
    int r = passed ? 0 : -ENOMEM;
    for (size_t i = 0, next = 0; r == 0 && i < n; i++) {
        uint32_t thread = hold_order_get(order, i);
        size_t number = passed[thread].n++;
        if (i != next)
            continue;
        next += step;
        r = add_length(&m, h, thread, number, &passed[thread]);
    }
    if (r == 0)
        r = medians_find(&m, &h->medians);
    medians_release(&m);
    free(passed);
    return r;
}

uint64_t hold_end_settled(const struct holds *h, uint32_t thread, uint64_t start, uint64_t end,
                          uint32_t object, uint32_t stack, bool by_median)
{
    end = MIN(end, h->t->threads[thread].end_ns);
    if (by_median) {
        const uint64_t *median = map_get(&h->medians, section_key(h, object, stack));
        if (!median)
            median = map_get(&h->medians, section_key(h, object, TL_NONE));
        end = MIN(end, start + (median ? *median : 0));
    }
    return MAX(end, start) & TL_TIME_LAST;
}

void hold_settle(const struct holds *h, uint32_t thread, struct tl_hold *one,
                 struct hold_side *side)
{
    if (!(one->flags & HOLD_END_INFERRED))
        return;
    one->end = hold_end_settled(h, thread, one->start, one->end, tl_hold_object(one), side->stack,
                                one->flags & HOLD_MEDIAN) &
               TL_TIME_LAST;
    one->flags &= HOLD_MEDIAN - 1;
    side->unsure_us = hold_unsure_settled(h, thread, one->start, side->unsure_us);
}

int holds_settle(struct holds *h, const struct hold_order *order)
{
    int r = order ? find_medians(h, order) : 0;
    for (uint32_t thread = 0; r == 0 && h->links && thread < h->t->n_threads; thread++) {
        for (size_t i = 0, n = hold_count(h, thread); i < n; i++) {
            size_t slot = hold_slot(h, thread, i);
            hold_settle(h, thread, &h->slots[slot], &h->side[slot]);
        }
    }
    return r;
}

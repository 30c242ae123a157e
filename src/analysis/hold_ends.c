/* SPDX-License-Identifier: Apache-2.0 */
/* The ends of holds that were not observed. */
#include "analysis/hold_memory.h"
#include "analysis/medians.h"

#include <stdlib.h>

enum { MEDIAN_SAMPLE = 500000 };

/* The key of a kind of sections: the class and, where it is known, the place of entry. */
static uint64_t section_key(const struct holds *h, const struct tl_hold *one, uint32_t stack)
{
    return (uint64_t)h->t->objects[tl_hold_object(one)].class << 32 | stack;
}

static int add_length(struct medians *m, const struct holds *h, const struct hold_read *one)
{
    int r = 0;
    if (one->hold.flags & HOLD_INFERRED)
        return 0;
    if (one->side.stack != TL_NONE)
        r = medians_add(m, section_key(h, &one->hold, one->side.stack),
                        one->hold.end - one->hold.start);
    if (r == 0)
        r = medians_add(m, section_key(h, &one->hold, TL_NONE), one->hold.end - one->hold.start);
    return r;
}

/* The lengths are those of a sample of the sections when there are very many. */
static int find_medians(struct holds *h, const struct hold_order *order)
{
    size_t n = order->bytes.len / order->width, step = 1 + n / MEDIAN_SAMPLE;
    struct medians m = {0};
    /* per thread: how many of its holds have been passed */
    size_t *passed = calloc(h->t->n_threads + 1, sizeof(*passed));
    int r = passed ? 0 : -ENOMEM;
    for (size_t i = 0, next = 0; r == 0 && i < n; i++) {
        uint32_t thread = hold_order_get(order, i);
        size_t number = passed[thread]++;
        if (i != next)
            continue;
        next += step;
        struct hold_read one = hold_collected(h, thread, number);
        r = add_length(&m, h, &one);
    }
    if (r == 0)
        r = medians_find(&m, &h->medians);
    medians_release(&m);
    free(passed);
    return r;
}

void hold_settle(const struct holds *h, uint32_t thread, struct tl_hold *one,
                 struct hold_side *side)
{
    const uint64_t start = one->start, last = h->t->threads[thread].end_ns;
    if (!(one->flags & HOLD_END_INFERRED))
        return;
    uint64_t end = MIN((uint64_t)one->end, last);
    if (one->flags & HOLD_MEDIAN) {
        const uint64_t *median = map_get(&h->medians, section_key(h, one, side->stack));
        if (!median)
            median = map_get(&h->medians, section_key(h, one, TL_NONE));
        end = MIN(end, start + (median ? *median : 0));
    }
    one->end = MAX(end, start) & UINT64_C(0xffffffffffff);
    one->flags &= HOLD_MEDIAN - 1;
    uint64_t us = (last - MIN(start, last) + 999) / 1000; /* rounded up: this is a bound */
    side->unsure_us = (uint32_t)MIN((uint64_t)side->unsure_us, us);
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

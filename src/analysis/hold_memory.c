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
    prefault_filled(&h->slot_memory, slots * sizeof(*h->slots));
    prefault_filled(&h->side_memory, slots * sizeof(*h->side));
    if (h->links)
        prefault_filled(&h->link_memory, slots * sizeof(*h->links));
}

void holds_complete(struct holds *h)
{
    prefault_end(&h->slot_memory);
    prefault_end(&h->side_memory);
    prefault_end(&h->link_memory);
}

void holds_release(struct holds *h)
{
    prefault_release(&h->slot_memory);
    prefault_release(&h->side_memory);
    prefault_release(&h->link_memory);
    map_release(&h->long_wakes);
    free(h->of_object);
    free(h->first);
    free(h->chunk_first);
    free(h->chunks);
    *h = (struct holds){0};
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/load_tally.h"

int tally_begin(struct tally *t, struct sums *s, const struct rec_chunk *chunk,
                const struct rec_type *stacks)
{
    int r = tally_end(t, s);
    t->chunk = chunk;
    t->stacks = stacks;
    return r;
}

int tally_know(struct tally *t, uint64_t id, uint32_t node)
{
    if (id >= TALLY_MAX)
        return 0;
    if ((id >= t->of_id.len && vec_extend(&t->of_id, id + 1 - t->of_id.len) < 0) ||
        vec_push(&t->known, ((struct tallied){(uint32_t)id, node, 0})) < 0)
        return -ENOMEM;
    t->of_id.data[id] = (uint32_t)t->known.len;
    return 0;
}

int tally_end(struct tally *t, struct sums *s)
{
    int r = t->known.len ? sums_settle(s) : 0;
    for (size_t i = 0; r == 0 && i < t->known.len; i++) {
        const struct tallied *k = &t->known.data[i];
        sums_add_weight(s, k->node, k->weight);
        t->of_id.data[k->id] = 0;
    }
    vec_clear(&t->known);
    return r;
}

void tally_release(struct tally *t)
{
    vec_release(&t->of_id);
    vec_release(&t->known);
}

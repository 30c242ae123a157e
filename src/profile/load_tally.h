/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights by the ids of stacks in one chunk, for sums that need nothing else of a sample
 * (LOAD_SUMS): a sample is then added with little access to memory. The first sample of each id
 * goes to the sums, which thereby know its time and thread; the weights of those after it are added
 * at the chunk's end.
 */
#pragma once

#include "profile/load_sums.h"

struct rec_chunk;
struct rec_type;

/* Samples with larger ids are not tallied. */
enum { TALLY_MAX = 1 << 22 };

struct tallied {
    uint32_t id, node;
    uint64_t weight; /* of the samples after the first */
};

struct tally {
    const struct rec_chunk *chunk; /* the chunk whose ids these are */
    const struct rec_type *stacks; /* the type to which the ids belong */
    VEC(uint32_t) of_id;           /* the place in `known`, + 1; 0: not known */
    VEC(struct tallied) known;
};

/*
 * Ends the tally of the last chunk with tally_end, and begins that of another chunk. Returns 0 or
 * -ENOMEM.
 */
int tally_begin(struct tally *t, struct sums *s, const struct rec_chunk *chunk,
                const struct rec_type *stacks) must_check;
/*
 * Notes to which node of the sums the stack with this id belongs, so that tally_add counts its
 * further samples. The first sample of the id must have been added to the sums. Ids from TALLY_MAX
 * on are ignored. Returns 0 or -ENOMEM.
 */
int tally_know(struct tally *t, uint64_t id, uint32_t node) must_check;
/* Adds the weights to the sums, and forgets the ids. Returns 0 or -ENOMEM. */
int tally_end(struct tally *t, struct sums *s) must_check;
void tally_release(struct tally *t);

/* Prefetches the place of an id in `known`. */
static inline void tally_prefetch(const struct tally *t, uint32_t id)
{
    if (id < t->of_id.len)
        __builtin_prefetch(&t->of_id.data[id]);
}

/*
 * Prefetches the weight of an id. Call it once the data that tally_prefetch has prefetched is in
 * the cache.
 */
static inline void tally_prefetch_weight(const struct tally *t, uint32_t id)
{
    if (id < t->of_id.len && t->of_id.data[id])
        __builtin_prefetch(&t->known.data[t->of_id.data[id] - 1], 1);
}

/*
 * Adds the weight of a sample whose thread counts. Returns false, and adds nothing, when the id is
 * not known.
 */
static inline bool tally_add(struct tally *t, uint32_t id, uint64_t weight)
{
    if (unlikely(id >= t->of_id.len || !t->of_id.data[id]))
        return false;
    t->known.data[t->of_id.data[id] - 1].weight += weight;
    return true;
}

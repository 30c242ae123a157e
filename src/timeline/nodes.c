/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stores the nodes of a timeline while it is built. New nodes refer to recent ones and change them,
 * so the latest nodes are kept unpacked. Older ones are packed; a block is unpacked again if
 * something in it has to change.
 */
#include "timeline/private.h"

#include <errno.h>

struct tl_node timeline_node_old(const struct timeline_builder *b, uint32_t n)
{
    const uint64_t *at = b->unpacked.len ? map_get(&b->unpacked_of, n >> TL_BLOCK_BITS) : NULL;
    return at ? b->unpacked.data[*at]->nodes[n % TL_BLOCK_NODES] : tl_packer_node(&b->packer, n);
}

/* Packs the blocks that were changed. */
static int pack_changed(struct timeline_builder *b)
{
    int r = 0;
    for (size_t i = 0; i < b->unpacked.len; i++) {
        if (r == 0)
            r = tl_packer_put(&b->packer, b->unpacked.data[i]->block, b->unpacked.data[i]->nodes,
                              TL_BLOCK_NODES);
        free(b->unpacked.data[i]);
    }
    vec_clear(&b->unpacked);
    map_release(&b->unpacked_of);
    return r;
}

struct tl_node *timeline_node_unpack(struct timeline_builder *b, uint32_t n)
{
    uint32_t block = n >> TL_BLOCK_BITS;
    if (b->unpacked.len == UNPACKED_MAX && pack_changed(b) < 0)
        b->error = -ENOMEM;
    bool added = false;
    if (vec_reserve(&b->unpacked, b->unpacked.len + 1) < 0) {
        b->error = -ENOMEM;
        return &b->discarded;
    }
    uint64_t *at = map_at(&b->unpacked_of, block, b->unpacked.len, &added);
    if (at && !added)
        return &b->unpacked.data[*at]->nodes[n % TL_BLOCK_NODES];
    struct unpacked *t = at ? malloc(sizeof(*t)) : NULL;
    if (!t) {
        map_remove(&b->unpacked_of, block);
        b->error = -ENOMEM;
        return &b->discarded;
    }
    b->unpacked.data[b->unpacked.len++] = t;
    t->block = block;
    for (uint32_t i = 0; i < TL_BLOCK_NODES; i++)
        t->nodes[i] = tl_packer_node(&b->packer, (block << TL_BLOCK_BITS) + i);
    return &t->nodes[n % TL_BLOCK_NODES];
}

int timeline_nodes_room(struct timeline_builder *b)
{
    if (!b->window) {
        b->window = malloc(WINDOW * sizeof(*b->window));
        int r = b->window ? tl_packer_init(&b->packer) : -ENOMEM;
        if (r < 0)
            return r;
    }
    if (b->n_nodes - b->packed < WINDOW)
        return 0;
    int r = tl_packer_put(&b->packer, b->packed >> TL_BLOCK_BITS, &b->window[b->packed % WINDOW],
                          TL_BLOCK_NODES);
    b->packed += r == 0 ? TL_BLOCK_NODES : 0;
    return r;
}

int timeline_nodes_pack(struct timeline_builder *b)
{
    int r = b->window ? pack_changed(b) : timeline_nodes_room(b);
    while (r == 0 && b->packed < b->n_nodes) {
        size_t n = MIN(b->n_nodes - b->packed, (size_t)TL_BLOCK_NODES);
        r = tl_packer_put(&b->packer, b->packed >> TL_BLOCK_BITS, &b->window[b->packed % WINDOW],
                          n);
        b->packed += n;
    }
    return r < 0 ? r : b->error;
}

void timeline_nodes_release(struct timeline_builder *b)
{
    (void)!pack_changed(b);
    vec_release(&b->unpacked);
    tl_packer_release(&b->packer);
    free(b->window);
}

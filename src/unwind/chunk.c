/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks frames of a virtual thread that are in the heap. A chunk has the same layout as the stack
 * had. The word below a frame's stack pointer is the return address into it, and the word below
 * that is the frame pointer of an interpreted frame. In interpreted frames, the frame pointer and
 * the sender's stack pointer are stored as distances in words.
 */
#include "unwind/internal.h"

enum {
    STEPS_MAX = 1 << 14,
    METADATA = 16 /* bytes below a frame: frame pointer and return address */
};

static uint64_t frame_pointer(const struct walk *k, uint64_t pc, uint64_t at, uint64_t word)
{
    return code_is_interpreter(&k->w->code, pc) ? at + 8 * word : word;
}

bool chunk_leave(struct walk *k, uint64_t pc, uint64_t sp, uint64_t fp)
{
    uint64_t link = code_is_interpreter(&k->w->code, k->r.pc) ? k->r.fp : sp - METADATA;
    if (sp <= k->r.sp)
        return false;
    k->chunk_left = sp >= k->stack_high || pc == k->w->code.cont_return;
    if (k->chunk_left)
        return true;
    if (sp & 7 || !code_holds(&k->w->code, pc))
        return false;
    k->r = (struct registers){.pc = pc, .sp = sp, .fp = frame_pointer(k, pc, link, fp)};
    return true;
}

bool chunk_walk(struct walk *k)
{
    struct walk outer = *k;
    uint64_t pc, fp;
    unsigned steps = 0;
    if (k->chunk_low >= k->chunk_high)
        return false;
    k->stack_low = k->mapped_low = k->chunk_low;
    k->stack_high = k->chunk_high;
    k->mapped_bytes = k->chunk_high - k->chunk_low;
    k->moved = k->chunk_moved;
    k->in_chunk = true;
    if (walk_stack_word(k, k->chunk_low, &fp) && walk_stack_word(k, k->chunk_low + 8, &pc) &&
        code_holds(&k->w->code, pc)) {
        k->r = (struct registers){
            .pc = pc, .sp = k->chunk_low + METADATA, .fp = frame_pointer(k, pc, k->chunk_low, fp)};
        k->stopped = true;
        while (!k->chunk_left && !k->full && !k->refuted && steps++ < STEPS_MAX && java_step(k))
            continue;
    }
    bool whole = k->chunk_left && !k->chunk_more;
    k->r = outer.r;
    k->stack_low = outer.stack_low;
    k->stack_high = outer.stack_high;
    k->mapped_low = outer.mapped_low;
    k->mapped_bytes = outer.mapped_bytes;
    k->moved = outer.moved;
    k->in_chunk = k->chunk_left = false;
    return whole;
}

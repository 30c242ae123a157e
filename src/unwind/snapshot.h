/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stack copied in a signal handler and walked later. After the program has run for an interval,
 * the caches no longer hold what a walk reads, and each of its loads depends on the previous one. A
 * copy is one stream of bytes, and its cost does not depend on their contents. The walk sees the
 * stack as it was when it was copied, but the code as it is when the walk runs:
 *
 * - An nmethod that was known before and still has the same compile id was there all the time. One
 *   that is seen for the first time is accepted if the instruction before the return address is a
 *   call. One that has replaced a known nmethod ends the walk.
 * - A method is unchanged as long as no class was unloaded (hotspot/unloads.h). After an unload, a
 *   method that was not known at the time of the copy gets no check, so it is never named.
 *   Redefinition frees the old version of a method without unloading a class: at a later safepoint,
 *   once no thread is in it, and without a report. Its memory is reused for metadata of the same
 *   class loader. A frame can only be wrong if, between copy and walk, the thread left the method,
 *   its class was redefined, the method was freed, and another method was created there into whose
 *   bytecodes the frame's pointer happens to lead. Even then the frame is right if that is the next
 *   version of the same method.
 * - Frames of a virtual thread in the heap are copied too, if that is possible (walk_chunks) and
 *   the thread runs Java or native code.
 */
#pragma once

#include "unwind/arch.h"
#include "unwind/walk.h"

struct snapshot {
    uint64_t thread; /* the JavaThread */
    struct registers registers;
    /* of the thread's JavaFrameAnchor; the pc may be 0, see snapshot_walk */
    uint64_t anchor_sp, anchor_pc, anchor_fp;
    uint64_t cont_entry;
    uint64_t low, high; /* the part of the stack that was copied */
    /* the part of the heap with a virtual thread's frames that was copied; equal: none */
    uint64_t chunk_low, chunk_high;
    bool chunk_more; /* the virtual thread has more frames in the heap */
    /* the thread was in native code; `collections` had begun at that time */
    bool native;
    uint32_t collections;
    uint64_t epoch;   /* the unloads_epoch at which none of the stack's classes was unloaded */
    uint64_t words[]; /* the words of the stack, then those of the chunk */
};

enum { SNAPSHOT_STACK_MAX = 48 << 10 }; /* deeper stacks are walked in place */

/* Returns whether stacks can be walked later, which needs a VM that reports unloaded classes. */
bool snapshot_possible(const struct walker *w);

/*
 * Stores in *ret everything but the words, for the calling thread, whose environment is env.
 * context is the signal's ucontext_t. Returns false if the thread is on another stack or on a deep
 * one (SNAPSHOT_STACK_MAX), or if its fields cannot be read. Call it in the signal handler.
 */
bool snapshot_measure(const struct walker *w, const void *context, const void *env,
                      struct snapshot *ret);

/* Returns the size of a measured snapshot with its words. */
static inline size_t snapshot_bytes(const struct snapshot *s)
{
    return sizeof(*s) + (s->high - s->low) + (s->chunk_high - s->chunk_low);
}

/*
 * Copies a measured snapshot and the words into a buffer of snapshot_bytes. Call it in the same
 * signal handler. Frames in the heap that have changed or cannot be read are left out.
 */
void snapshot_take(const struct walker *w, const struct snapshot *measured, struct snapshot *ret);

/*
 * Creates a walker for snapshots, which walks one at a time. The caller frees it with free().
 * Returns NULL when out of memory.
 */
struct snapshot_walker *snapshot_walker_new(const struct walker *w);
/* Walks a snapshot. The other arguments and the result are those of walk_stack. */
unsigned snapshot_walk(struct snapshot_walker *s, const struct snapshot *of, unsigned flags,
                       struct walk_frame *frames, unsigned max, struct walk_end *ret_end);

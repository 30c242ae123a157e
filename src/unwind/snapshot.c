/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/snapshot.h"

#include "unwind/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    STACK_SIZE_MAX = 1 << 30,
    CHUNK_BYTES_MAX = 32 << 10,
    METADATA = 16,
    THREAD_IN_NATIVE = 4,
    THREAD_IN_JAVA = 8
};

bool snapshot_possible(const struct walker *w)
{
    return w->sites && w->known && unloads_epoch(&w->unloads, &w->memory) != 0;
}

static bool load_reference(const struct walker *w, uint64_t address, uint64_t *ret)
{
    const struct walk_chunks *c = &w->chunks;
    uint32_t narrow;
    if (!c->narrow)
        return load_u64(&w->memory, address, ret);
    if (!load_u32(&w->memory, address, &narrow))
        return false;
    *ret = narrow ? c->oop_base + ((uint64_t)narrow << c->oop_shift) : 0;
    return true;
}

/* Finds the frames of a chunk; *ret_parent is the next outer chunk, or 0. */
static bool chunk_bounds(const struct walker *w, uint64_t chunk, uint64_t *ret_low,
                         uint64_t *ret_high, uint64_t *ret_parent)
{
    const struct walk_chunks *c = &w->chunks;
    uint32_t sp, bottom;
    if (!chunk || chunk & 7 || !load_reference(w, chunk + (uint64_t)c->parent, ret_parent) ||
        !load_u32(&w->memory, chunk + (uint64_t)c->sp, &sp) ||
        !load_u32(&w->memory, chunk + (uint64_t)c->bottom, &bottom) || sp > bottom ||
        bottom > STACK_SIZE_MAX / 8)
        return false;
    *ret_low = chunk + (uint64_t)c->stack + 8 * (uint64_t)sp - METADATA;
    *ret_high = chunk + (uint64_t)c->stack + 8 * (uint64_t)bottom;
    return true;
}

/*
 * Returns whether no garbage collection has stopped the threads, so that no object can move.
 * *ret_count is the number of collections that have begun.
 */
static bool heap_rests(const struct walker *w, uint32_t *ret_count)
{
    const struct hotspot_layout *l = &w->layout;
    uint64_t heap;
    uint8_t collecting;
    return l->collected_heap && l->collections != LAYOUT_NONE && l->collecting != LAYOUT_NONE &&
           load_u64(&w->memory, l->collected_heap, &heap) &&
           load_u32(&w->memory, heap + (uint64_t)l->collections, ret_count) &&
           load_u8(&w->memory, heap + (uint64_t)l->collecting, &collecting) && !collecting;
}

/*
 * Returns whether the chunk may be read now. While the thread runs Java, no object moves. In native
 * code, no object has moved if no collection is in progress before and after the chunk is read, and
 * none began in between. In the VM, the thread itself may be about to change the chunk.
 */
static bool heap_readable(const struct walker *w, struct snapshot *s)
{
    uint32_t state, count = 0;
    bool readable =
        load_u32(&w->memory, s->thread + (uint64_t)w->layout.thread_state, &state) &&
        (state == THREAD_IN_JAVA || (state == THREAD_IN_NATIVE && heap_rests(w, &count)));
    s->native = readable && state == THREAD_IN_NATIVE;
    s->collections = count;
    return readable;
}

/*
 * Finds the chunk of the thread's frames, if there is one. Only this function and snapshot_take
 * read it.
 */
static void read_heap_chunks(const struct walker *w, struct snapshot *s)
{
    const struct walk_chunks *c = &w->chunks;
    uint64_t cont, chunk, low, high, parent = 0;
    s->chunk_low = s->chunk_high = 0;
    s->chunk_more = false;
    if (!w->has_chunks || !s->cont_entry || !heap_readable(w, s) ||
        !load_u64(&w->memory, s->cont_entry + (uint64_t)c->cont, &cont) || cont & 7 || !cont ||
        !load_reference(w, cont + (uint64_t)c->tail, &chunk) ||
        !chunk_bounds(w, chunk, &low, &high, &parent))
        return;
    if (high - low == METADATA && !chunk_bounds(w, parent, &low, &high, &parent))
        return;
    if (high - low == METADATA || high - low > CHUNK_BYTES_MAX)
        return;
    s->chunk_low = low;
    s->chunk_high = high;
    s->chunk_more = parent != 0;
}

at_each_sample bool snapshot_measure(const struct walker *w, const void *context, const void *env,
                                     struct snapshot *ret)
{
    const struct hotspot_layout *l = &w->layout;
    const struct memory *m = &w->memory;
    struct snapshot s;
    uint64_t size, anchor;
    s.thread = (uint64_t)(uintptr_t)env - (uint64_t)w->env_offset;
    s.epoch = unloads_epoch(&w->unloads, m);
    s.anchor_fp = s.cont_entry = 0;
    anchor = s.thread + (uint64_t)l->thread_anchor;
    arch_registers(context, &s.registers);
    if (!load_u64(m, s.thread + (uint64_t)l->thread_stack_base, &s.high) ||
        !load_u64(m, s.thread + (uint64_t)l->thread_stack_size, &size) ||
        !load_u64(m, anchor + (uint64_t)l->anchor_sp, &s.anchor_sp) ||
        !load_u64(m, anchor + (uint64_t)l->anchor_pc, &s.anchor_pc) ||
        (l->anchor_fp != LAYOUT_NONE &&
         !load_u64(m, anchor + (uint64_t)l->anchor_fp, &s.anchor_fp)) ||
        (l->thread_cont_entry != LAYOUT_NONE &&
         !load_u64(m, s.thread + (uint64_t)l->thread_cont_entry, &s.cont_entry)))
        return false;
    s.low = s.registers.sp & ~UINT64_C(7);
    if (size > STACK_SIZE_MAX || s.low < s.high - size || s.low >= s.high || s.high & 7 ||
        s.high - s.low > SNAPSHOT_STACK_MAX)
        return false;
    read_heap_chunks(w, &s);
    *ret = s;
    return true;
}

at_each_sample void snapshot_take(const struct walker *w, const struct snapshot *measured,
                                  struct snapshot *ret)
{
    const uint64_t *from = (const uint64_t *)(uintptr_t)measured->low;
    uint64_t *to = ret->words, n = (measured->high - measured->low) / 8;
    *ret = *measured;
#if defined(__x86_64__)
    __asm__ volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
#else
    while (n-- > 0)
        *to++ = *from++;
#endif
    uint64_t chunk = measured->chunk_high - measured->chunk_low;
    uint32_t collections;
    if (chunk && (!memory_read(&process_memory, measured->chunk_low,
                               ret->words + (measured->high - measured->low) / 8, chunk) ||
                  (measured->native &&
                   (!heap_rests(w, &collections) || collections != measured->collections))))
        ret->chunk_high = ret->chunk_low;
}

/* ---- later ---- */

struct snapshot_walker {
    const struct walker *walker;
    struct memory memory; /* the process's memory, except the stack and what the thread saved */
    const struct snapshot *of;
};

static int read_memory(void *context, uint64_t address, void *bytes, size_t len)
{
    const struct snapshot_walker *w = context;
    const struct snapshot *s = w->of;
    uint64_t offset = address - s->low, size = s->high - s->low;
    const struct hotspot_layout *l = &w->walker->layout;
    bool is_entry = l->thread_cont_entry != LAYOUT_NONE &&
                    address == s->thread + (uint64_t)l->thread_cont_entry &&
                    len == sizeof(s->cont_entry);
    uint64_t in_chunk = address - s->chunk_low, chunk = s->chunk_high - s->chunk_low;
    if (!is_entry && in_chunk < chunk && len <= chunk - in_chunk)
        offset = size + in_chunk;
    else if (!is_entry && (offset >= size || len > size - offset))
        return memory_read(&w->walker->memory, address, bytes, len) ? 0 : -EFAULT;
    memcpy(bytes, is_entry ? (const char *)&s->cont_entry : (const char *)s->words + offset, len);
    return 0;
}

struct snapshot_walker *snapshot_walker_new(const struct walker *w)
{
    struct snapshot_walker *s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    s->walker = w;
    s->memory = (struct memory){.context = s, .read = read_memory};
    return s;
}

unsigned snapshot_walk(struct snapshot_walker *s, const struct snapshot *of, unsigned flags,
                       struct walk_frame *frames, unsigned max, struct walk_end *ret_end)
{
    struct claims claims;
    struct notes notes;
    struct walk k = {
        .w = s->walker,
        .modules = modules_current(),
        .r = of->registers,
        .thread = of->thread,
        .stack_low = of->low,
        .stack_high = of->high,
        .mapped_low = of->low,
        .mapped_bytes = of->high - of->low,
        .moved = (uint64_t)(uintptr_t)of->words - of->low,
        .chunk_low = of->chunk_low,
        .chunk_high = of->chunk_high,
        .chunk_moved = (uint64_t)(uintptr_t)of->words + (of->high - of->low) - of->chunk_low,
        .chunk_more = of->chunk_more,
        .in_native = of->native,
        .in_runtime = !code_holds(&s->walker->code, of->registers.pc),
        .memory = &s->memory,
        .epoch = of->epoch,
        .notes = &notes,
        .anchor = {of->anchor_sp, of->anchor_pc, of->anchor_fp},
        .frames = frames,
        .max = max,
        .flags = flags,
        .top = true,
        .later = true,
        .uncertain = of->epoch != unloads_epoch(&s->walker->unloads, &s->walker->memory),
    };
    s->of = of;
    claims.sites = claims.methods = notes.count = 0;
    k.claims = k.uncertain ? NULL : &claims;
    /* There is no pc: the call that left Java has pushed it. */
    if (k.anchor.sp && !k.anchor.pc && !walk_stack_word(&k, k.anchor.sp - 8, &k.anchor.pc))
        k.anchor = (struct anchor){0};
    walk_run(&k, ret_end);
    return k.count;
}

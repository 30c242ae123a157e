/* SPDX-License-Identifier: Apache-2.0 */
/* The table of stacks. Finding and adding a stack is async-signal-safe. */
#include "base/hash.h"
#include "base/mapped.h"
#include "base/pages.h"
#include "jfr/internal.h"

#define MAX_PROBES 128

/*
 * The first stacks have a small table of their own whose pages are already present. In the large
 * table each new stack causes a page fault, which takes a signal handler longer than everything
 * else it does.
 */
#define FIRST_SLOTS  4096u
#define FIRST_PROBES 16

/*
 * PARTS: into how many parts an arena whose memory is reused is divided. PARTS_RETIRED: how many
 * are retired at a time. PARTS_FREE: this is done when fewer parts are free.
 */
enum { PARTS = 16, PARTS_RETIRED = 2, PARTS_FREE = 4 };

/*
 * How long after its retirement a part is reused. By then every thread that found a stack in the
 * part has read it.
 */
#define RETIRED_NS (20 * NS_PER_MS)
/* A reader that was delayed for longer compares with newer contents, at worst past the end. */
#define TAIL_BYTES (UINT64_C(1) << 20)

/*
 * When no room is left for a stack, its innermost frames are stored instead: SHORT_FRAMES, or the
 * innermost one alone. A part of the memory is kept for each, so that events still count under
 * their method. A ring, whose memory is reused, needs none.
 */
enum { SHORT_FRAMES = 8 };

/*
 * A stack of more than SHORT_FRAMES frames may use 15/16 of the memory, one of two to SHORT_FRAMES
 * frames 63/64, and a single frame all of it.
 */
#define KEPT_FOR_SHORT 16
#define KEPT_FOR_ONE   64
/* How much of the table is used at most: in a fuller one many probes would find no free slot. */
#define SLOTS_USED(slots) ((slots) / 4 * 3)

/* Returns how much of `whole` a stack of n frames may use: memory, or slots of the table. */
static uint64_t share(const struct traces *t, uint64_t whole, uint32_t n)
{
    if (t->part != t->bytes || n <= 1)
        return whole;
    return whole - whole / (n > SHORT_FRAMES ? KEPT_FOR_SHORT : KEPT_FOR_ONE);
}

int traces_init(struct traces *t, uint64_t bytes, bool again)
{
    uint64_t slots = 4096;
    uint64_t part = again ? bytes / PARTS & ~UINT64_C(15) : bytes;
    bytes = again ? part * PARTS : bytes;
    while (slots < bytes / (again ? 128 : 256) && slots < UINT64_C(1) << 30)
        slots *= 2;
    /* Pages that are never touched take no memory. */
    *t = (struct traces){.arena = mapped_new(bytes + TAIL_BYTES),
                         .end = bytes,
                         .bytes = bytes,
                         .part = part,
                         .slots = mapped_new((FIRST_SLOTS + slots) * 8),
                         .mask = (uint32_t)(slots - 1)};
    if (t->arena && t->slots) {
        for (size_t i = 0; i < FIRST_SLOTS; i += 512)
            atomic_store(&t->slots[i], 0);
        return 0;
    }
    traces_release(t);
    return -ENOMEM;
}

void traces_release(struct traces *t)
{
    mapped_free(t->arena, t->bytes + TAIL_BYTES);
    mapped_free(t->slots, (FIRST_SLOTS + (uint64_t)t->mask + 1) * 8);
    *t = (struct traces){0};
}

void traces_prefault(struct traces *t)
{
    enum { PREFAULT_BYTES = 128 * 1024 };

    uint64_t used = MIN(atomic_load_explicit(&t->used, memory_order_relaxed), t->bytes);
    if (t->present > used + PREFAULT_BYTES / 2)
        return;
    uint64_t from = MAX(t->present, used & ~UINT64_C(4095)),
             to = MIN(t->bytes & ~UINT64_C(4095), (used & ~UINT64_C(4095)) + PREFAULT_BYTES);
    if (to > from)
        pages_to_write(t->arena + from, to - from);
    t->present = MAX(t->present, to);
}

void traces_work(struct traces *t, uint64_t now)
{
    if (t->part == t->bytes)
        return;
    if (t->retired_ns && now - t->retired_ns >= RETIRED_NS) {
        atomic_store_explicit(&t->end, atomic_load(&t->oldest) + t->bytes, memory_order_release);
        t->retired_ns = 0;
    }
    uint64_t used = atomic_load(&t->used), free = atomic_load(&t->end) - used,
             held = t->held + (atomic_load(&t->count) - t->held_count);
    /* Short stacks may fill the table before the memory. */
    bool full = held > t->mask / 2 && atomic_load(&t->oldest) + PARTS_RETIRED * t->part <= used;
    if (!t->retired_ns && (free < PARTS_FREE * t->part || full))
        atomic_store(&t->due, true);
}

/* Retires the oldest parts. Called by the worker. */
static void retire_oldest(struct traces *t, uint64_t now)
{
    uint64_t oldest = atomic_load(&t->oldest) + PARTS_RETIRED * t->part;
    if (t->part == t->bytes || t->retired_ns || oldest > atomic_load(&t->used))
        return;
    atomic_store(&t->oldest, oldest);
    t->held = 0;
    t->held_count = atomic_load(&t->count);
    /*
     * A stack that was inserted beyond a slot that has become free is no longer found, and is
     * stored again.
     */
    for (size_t i = 0; i < FIRST_SLOTS + (size_t)t->mask + 1; i++) {
        uint64_t slot = atomic_load_explicit(&t->slots[i], memory_order_relaxed);
        if (slot && trace_position(t, (uint32_t)slot) == UINT64_MAX)
            atomic_compare_exchange_strong(&t->slots[i], &slot, 0);
        else
            t->held += slot != 0;
    }
    t->retired_ns = now;
    atomic_store(&t->due, false);
}

/*
 * Finds room for a stack at or after `used`: it must not cross a part's end, and its id must not be
 * 0. Returns its position.
 */
static uint64_t place(const struct traces *t, uint64_t used, uint64_t size)
{
    if (used / t->part != (used + size - 1) / t->part)
        used += t->part - used % t->part;
    return (uint32_t)(used / 16 + 1) ? used : used + 16;
}

/* Copies the stack into the arena. Returns its id, or 0 when there is no room for it. */
static uint64_t trace_store(struct traces *t, uint32_t hash, const struct jfr_frame *frames,
                            uint32_t n, bool truncated)
{
    uint64_t size = sizeof(struct trace) + n * sizeof(*frames), at;
    uint64_t used = atomic_load_explicit(&t->used, memory_order_relaxed);
    if (t->part == t->bytes && n > 1 &&
        atomic_load_explicit(&t->count, memory_order_relaxed) >= share(t, SLOTS_USED(t->mask), n))
        return 0;
    do {
        at = place(t, used, size);
        if (size > t->part - at % t->part ||
            at + size > share(t, atomic_load_explicit(&t->end, memory_order_acquire), n))
            return 0;
    } while (!atomic_compare_exchange_weak_explicit(&t->used, &used, at + size,
                                                    memory_order_release, memory_order_relaxed));
    struct trace *trace = (struct trace *)(void *)(t->arena + at % t->bytes);
    trace->hash = hash;
    trace->n = n;
    trace->emitted = 0;
    trace->truncated = truncated;
    memcpy(trace->frames, frames, n * sizeof(*frames));
    return (uint32_t)(at / 16 + 1);
}

struct search {
    struct traces *traces;
    uint32_t hash, n;
    bool truncated, added;
    const struct jfr_frame *frames;
    uint64_t stored; /* the id of the stack's copy, once it was made */
};

/* Replaces memcmp, whose page of code may not be present (at_each_sample). */
static bool same_frames(const struct jfr_frame *a, const struct jfr_frame *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (a[i].method != b[i].method || a[i].bci != b[i].bci || a[i].type != b[i].type)
            return false;
    return true;
}

/*
 * Looks up the stack in one table, or adds it. Returns 0 when other stacks occupy its slots or when
 * out of memory.
 */
at_each_sample static uint64_t table_find(struct search *s, _Atomic uint64_t *slots, uint32_t mask,
                                          unsigned probes)
{
    struct traces *t = s->traces;
    for (uint32_t i = s->hash & mask; probes-- > 0; i = (i + 1) & mask) {
        uint64_t slot = atomic_load_explicit(&slots[i], memory_order_acquire);
        if (!slot) {
            if (!s->stored)
                s->stored = trace_store(t, s->hash, s->frames, s->n, s->truncated);
            if (!s->stored)
                return 0;
            if (atomic_compare_exchange_strong(&slots[i], &slot,
                                               (uint64_t)s->hash << 32 | s->stored)) {
                s->added = true;
                return s->stored;
            }
        }
        if (slot >> 32 != s->hash)
            continue;
        const struct trace *trace = trace_of(t, (uint32_t)slot);
        if (trace && trace->n == s->n && trace->truncated == s->truncated &&
            same_frames(trace->frames, s->frames, s->n))
            return (uint32_t)slot;
    }
    return 0;
}

/*
 * Returns the id; s->added is set if the stack is new. A stack in the second table remains
 * reachable until its part is retired, or a slot before it becomes free.
 */
static uint64_t trace_find(struct search *s)
{
    struct traces *t = s->traces;
    uint64_t id = table_find(s, t->slots, FIRST_SLOTS - 1, FIRST_PROBES);
    return id ? id : table_find(s, t->slots + FIRST_SLOTS, t->mask, MAX_PROBES);
}

/*
 * Encodes a number in nine bytes and returns the first eight: seven bits each, with the mark that
 * more follow.
 */
static uint64_t nine_bytes(uint64_t v)
{
    v = (v & UINT64_C(0x00fffffff0000000)) << 4 | (v & UINT64_C(0x000000000fffffff));
    v = (v & UINT64_C(0x0fffc0000fffc000)) << 2 | (v & UINT64_C(0x00003fff00003fff));
    v = (v & UINT64_C(0x3f803f803f803f80)) << 1 | (v & UINT64_C(0x007f007f007f007f));
    return v | UINT64_C(0x8080808080808080);
}

enum { FRAME_BYTES = 9 + 1 + 5 + 1 }; /* the upper bound in the file */

static void put_frame(struct jfr_event *e, const struct jfr_frame *f)
{
    if (likely(f->method >> 56 && (size_t)(e->end - e->at) >= FRAME_BYTES)) {
        uint64_t first = nine_bytes(f->method);
        memcpy(e->at, &first, sizeof(first));
        e->at[8] = (uint8_t)(f->method >> 56);
        e->at += 9;
    } else {
        jfr_put_long(e, (int64_t)f->method);
    }
    jfr_put_int(e, 0);
    jfr_put_int(e, f->bci);
    jfr_put_long(e, f->type);
}

/*
 * Writes a new stack into the file immediately, in case the process dies before the worker's next
 * round.
 */
static void trace_append(struct jfr_writer *w, uint64_t id, const struct jfr_frame *frames,
                         uint32_t n, bool truncated)
{
    struct jfr_event e;
    /*
     * Nothing is lost when there is no room: the worker writes the stack again together with its
     * names.
     */
    if (!event_begin_constant(w, JFR_POOL_STACK_TRACE, id, 10 + (size_t)n * FRAME_BYTES, &e))
        return;
    jfr_put_byte(&e, truncated);
    jfr_put_int(&e, (int32_t)n);
    for (uint32_t i = 0; i < n; i++)
        put_frame(&e, &frames[i]);
    event_end_constant(&e);
}

/* Hashes methods and positions separately, so that the two computations run in parallel. */
static uint32_t hash_frames(const struct jfr_frame *frames, uint32_t n, bool truncated)
{
    uint64_t a = n, b = truncated;
    for (uint32_t i = 0; i < n; i++) {
        a = (a ^ frames[i].method) * UINT64_C(0x9e3779b97f4a7c15);
        b = (b ^ ((uint64_t)frames[i].type << 32 | (uint32_t)frames[i].bci)) *
            UINT64_C(0xbf58476d1ce4e5b9);
        a ^= a >> 29;
        b ^= b >> 32;
    }
    return (uint32_t)hash_u64(a + hash_u64(b));
}

/* Finds the n innermost frames in place of the stack, if it has more. Returns the id, or 0. */
static uint64_t find_shorter(struct search *s, uint32_t n)
{
    if (s->n <= n)
        return 0;
    s->n = n;
    s->truncated = true;
    s->stored = 0; /* a copy of the whole stack for which there was no slot is given up */
    s->hash = hash_frames(s->frames, n, true);
    return trace_find(s);
}

/*
 * Returns the id of a stack. Sets s->added if the stack is new, and s->n and s->truncated if only
 * its innermost frames are stored.
 */
at_each_sample static uint64_t trace_id(struct jfr_writer *w, struct search *s)
{
    if (!s->n)
        return 0;
    s->traces = &w->traces;
    s->hash = hash_frames(s->frames, s->n, s->truncated);
    uint64_t id = trace_find(s);
    if (unlikely(!id)) {
        if (!(id = find_shorter(s, SHORT_FRAMES)))
            id = find_shorter(s, 1);
        atomic_fetch_add_explicit(id ? &w->traces.shortened : &w->traces.lost, 1,
                                  memory_order_relaxed);
    }
    if (unlikely(s->added))
        atomic_fetch_add_explicit(&w->traces.count, 1, memory_order_relaxed);
    return id;
}

at_each_sample uint64_t jfr_trace(struct jfr_writer *w, const struct jfr_frame *frames, uint32_t n,
                                  bool truncated)
{
    struct search s = {.frames = frames, .n = n, .truncated = truncated};
    uint64_t id = trace_id(w, &s);
    if (unlikely(s.added))
        trace_append(w, id, frames, s.n, s.truncated);
    return id;
}

uint64_t jfr_trace_growing(struct jfr_writer *w, const struct jfr_frame *frames, uint32_t n,
                           bool truncated)
{
    return trace_id(w, &(struct search){.frames = frames, .n = n, .truncated = truncated});
}

bool jfr_trace_stays(const struct jfr_writer *w, uint64_t id)
{
    struct traces *t = (struct traces *)&w->traces; /* C17's atomic loads do not accept const */
    if (t->part == t->bytes || !id)
        return true;
    uint64_t at = id <= UINT32_MAX ? trace_position(t, (uint32_t)id) : UINT64_MAX;
    return at != UINT64_MAX &&
           (!atomic_load_explicit(&t->due, memory_order_relaxed) ||
            at >= atomic_load_explicit(&t->oldest, memory_order_relaxed) + PARTS_RETIRED * t->part);
}

/* Makes the table drop a stack, so that it will be stored again. */
static void forget(struct traces *t, uint32_t hash, uint32_t id)
{
    uint64_t whole = (uint64_t)hash << 32 | id;
    for (unsigned k = 0; k < 2; k++) {
        _Atomic uint64_t *slots = k ? t->slots + FIRST_SLOTS : t->slots;
        uint32_t mask = k ? t->mask : FIRST_SLOTS - 1;
        for (uint32_t i = 0; i < (k ? MAX_PROBES : FIRST_PROBES); i++) {
            uint64_t slot = whole;
            if (atomic_compare_exchange_strong(&slots[(hash + i) & mask], &slot, 0))
                return;
        }
    }
}

uint64_t jfr_trace_keep(struct jfr_writer *w, uint64_t id)
{
    struct traces *t = &w->traces;
    const struct trace *trace = trace_of(t, id);
    if (jfr_trace_stays(w, id))
        return id;
    if (!trace)
        return 0;
    size_t size = trace->n * sizeof(trace->frames[0]);
    struct jfr_frame *copy = malloc(size);
    uint64_t again = 0;
    if (copy) {
        memcpy(copy, trace->frames, size);
        forget(t, trace->hash, (uint32_t)id);
        again = jfr_trace(w, copy, trace->n, trace->truncated);
        atomic_fetch_add(&t->moved, 1);
    }
    free(copy);
    return again;
}

bool jfr_traces_due(const struct jfr_writer *w)
{
    return atomic_load(&((struct jfr_writer *)w)->traces.due);
}

void jfr_traces_kept(struct jfr_writer *w)
{
    pthread_mutex_lock(&w->work);
    /* Whatever refers to the stacks that are dropped must be read before. */
    if (!atomic_load(&w->closed)) {
        chunk_update_fully(w);
        retire_oldest(&w->traces, now_ns());
    }
    pthread_mutex_unlock(&w->work);
}

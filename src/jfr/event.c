/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frequently executed part: blocks, slots and events. All of it is async-signal-safe.
 */
#include "jfr/internal.h"

#include <sched.h>

/* Takes n consecutive blocks, or returns NULL when fewer are free. */
at_each_sample static uint8_t *take_blocks(struct jfr_writer *w, struct region *fixed, bool worker,
                                           uint32_t n, _Atomic uint32_t **ret_span)
{
    for (;;) {
        struct region *r = fixed ? fixed : atomic_load_explicit(&w->region, memory_order_acquire);
        uint64_t bump = atomic_load_explicit(&r->bump, memory_order_acquire);
        uint32_t next = (uint32_t)bump, limit = (uint32_t)(bump >> 32);
        if (worker)
            limit = MAX(limit, r->ready);
        if (next + (uint64_t)n > limit) {
            if (!fixed && r != atomic_load_explicit(&w->region, memory_order_acquire))
                continue;
            return NULL;
        }
        if (!atomic_compare_exchange_weak(&r->bump, &bump, bump + n))
            continue;
        uint8_t *block = r->blocks + (uint64_t)next * JFR_BLOCK;
        if (n > 1)
            jfr_store_size(block, n * JFR_BLOCK);
        atomic_store_explicit(&r->span[next], n, memory_order_release);
        if (!worker && limit - next - n < 64)
            waker_wake(w->waker);
        *ret_span = &r->span[next];
        return block;
    }
}

/* Only the slot's own thread changes the position; region_prefault reads it meanwhile. */
static inline void set_at(struct jfr_slot *slot, uint8_t *at)
{
    __atomic_store_n(&slot->at, at, __ATOMIC_RELAXED);
}

void jfr_slot_retire(struct jfr_slot *slot)
{
    if (!slot->at)
        return;
    atomic_fetch_or_explicit(slot->span, SPAN_RETIRED, memory_order_release);
    set_at(slot, NULL);
    slot->end = NULL;
}

at_each_sample bool jfr_slot_begin(struct jfr_writer *w, struct jfr_slot *slot,
                                   struct region *region, bool worker, size_t room,
                                   struct jfr_event *ret)
{
    /* Every put requires nine free bytes even if it writes fewer. */
    size_t need = JFR_EVENT_HEAD + room + 9 + JFR_WIDEN;
    _Atomic uint32_t *span = NULL;
    if (need > JFR_BLOCK) {
        /*
         * Take consecutive blocks for this event alone. The slot's block remains for the next
         * event.
         */
        if (need >= UINT32_C(1) << 28)
            return false;
        uint32_t n = (uint32_t)((need + JFR_BLOCK - 1) / JFR_BLOCK);
        uint8_t *run = take_blocks(w, region, worker, n, &span);
        if (!run)
            return false;
        *ret = (struct jfr_event){
            w, slot,  run, run + JFR_EVENT_HEAD, run + (size_t)n * JFR_BLOCK - JFR_WIDEN, 0,
            0, false, span};
        return true;
    }
    if ((size_t)(slot->end - slot->at) < need) {
        uint8_t *block = take_blocks(w, region, worker, 1, &span);
        if (!block)
            return false;
        jfr_slot_retire(slot);
        set_at(slot, block);
        slot->end = block + JFR_BLOCK;
        slot->span = span;
    }
    *ret = (struct jfr_event){
        w, slot, slot->at, slot->at + JFR_EVENT_HEAD, slot->end - JFR_WIDEN, 0, 0, false, NULL};
    return true;
}

at_each_sample void jfr_slot_commit(struct jfr_event *e, uint16_t code)
{
    uint32_t len = (uint32_t)(e->at - e->start);
    uint32_t all = (uint32_t)(e->end - e->start) + JFR_WIDEN;
    uint32_t wider = -len & 3;
    if (all - len - wider == 4)
        wider += 4; /* a pad needs more than four bytes */
    if (wider) {
        /*
         * Alignment must not leave unused bytes after the contents, because readers expect the size
         * to match the contents. The type is therefore stored in more bytes than it needs.
         */
        uint8_t *body = e->start + JFR_EVENT_HEAD;
        memmove(body + wider, body, len - JFR_EVENT_HEAD);
        memset(body, 0x80, wider - 1);
        body[wider - 1] = 0;
        code |= CODE_WIDER;
        len += wider;
    }
    if (all > len) {
        jfr_store_size(e->start + len, all - len);
        jfr_store_code(e->start + len, CODE_PAD);
    }
    jfr_store_size(e->start, len);
    jfr_store_code(e->start, code);
    if (e->span)
        atomic_fetch_or_explicit(e->span, SPAN_RETIRED, memory_order_release);
    else
        set_at(e->slot, e->start + len);
}

void jfr_slot_acquire(struct jfr_slot *slot)
{
    for (unsigned tries = 0; atomic_exchange_explicit(&slot->busy, 1, memory_order_acquire);
         tries++) {
        struct timespec nap = {0, tries < 100 ? 0 : 100000};
        nanosleep(&nap, NULL);
    }
}

void jfr_slot_release(struct jfr_slot *slot)
{
    atomic_store_explicit(&slot->busy, 0, memory_order_release);
}

/* Takes a free slot, preferably the CPU's own. Returns NULL when all are busy. */
static struct jfr_slot *slot_take(struct jfr_writer *w)
{
    if (unlikely(atomic_load_explicit(&w->closed, memory_order_acquire)))
        return NULL;
    int cpu = sched_getcpu();
    unsigned i = (unsigned)(cpu < 0 ? 0 : cpu) % w->n_slots;
    for (unsigned tries = 0; tries < w->n_slots; tries++) {
        struct jfr_slot *slot = &w->slots[i];
        uint32_t free = 0;
        if (atomic_compare_exchange_strong_explicit(&slot->busy, &free, 1, memory_order_acquire,
                                                    memory_order_relaxed))
            return slot;
        if (++i == w->n_slots)
            i = 0;
    }
    return NULL;
}

at_each_sample bool event_begin(struct jfr_writer *w, uint32_t type, size_t room,
                                struct jfr_event *ret, enum lost_reason *ret_reason)
{
    struct jfr_slot *slot = slot_take(w);
    *ret_reason = slot ? LOST_ROOM : LOST_BUSY;
    if (!slot)
        return false;
    if (jfr_slot_begin(w, slot, NULL, false, JFR_NUMBERS_ROOM + room, ret)) {
        ret->type = type;
        return true;
    }
    jfr_slot_release(slot);
    waker_wake(w->waker);
    return false;
}

bool event_begin_constant(struct jfr_writer *w, uint32_t pool, uint64_t id, size_t room,
                          struct jfr_event *ret)
{
    enum { BEFORE = 40 }; /* upper bound of the bytes before the constant */

    enum lost_reason reason;
    if (atomic_load_explicit(&w->closed, memory_order_relaxed) ||
        !event_begin(w, 0, BEFORE + room, ret, &reason))
        return false;
    for (int i = 0; i < 3; i++) /* start time, duration, distance to the previous checkpoint */
        jfr_put_long(ret, 0);
    jfr_put_byte(ret, JFR_OUTSIDE_CHAIN);
    jfr_put_int(ret, 1);
    jfr_put_long(ret, pool + JFR_TYPE_BASE);
    jfr_put_int(ret, 1);
    jfr_put_long(ret, (int64_t)id);
    return true;
}

void event_end_constant(struct jfr_event *e)
{
    if (!e->overflow)
        jfr_slot_commit(e, CODE_CHECKPOINT);
    jfr_slot_release(e->slot);
}

static void count_lost(struct jfr_writer *w, uint32_t type, enum lost_reason reason)
{
    /* jfr_writer_close sets the mark first and then takes all slots for good. */
    if (atomic_load(&w->closed))
        atomic_fetch_add_explicit(&w->lost_closed, 1, memory_order_relaxed);
    else
        losses_count_event(w, type, reason);
}

at_each_sample bool jfr_begin(struct jfr_writer *w, uint32_t type, size_t room,
                              struct jfr_event *ret)
{
    enum lost_reason reason;
    if (likely(event_begin(w, type, room, ret, &reason)))
        return true;
    count_lost(w, type, reason);
    return false;
}

/* Returns whether other threads may soon find no room. */
static bool is_low(struct jfr_writer *w)
{
    const struct region *r = atomic_load_explicit(&w->region, memory_order_acquire);
    uint64_t bump = atomic_load_explicit((_Atomic uint64_t *)&r->bump, memory_order_relaxed);
    uint32_t next = (uint32_t)bump, limit = (uint32_t)(bump >> 32);
    /* A recording that begins with a small file has less room than that. */
    return next + MIN(4 * w->n_slots, limit / 4) > limit && !atomic_load(&w->error);
}

bool jfr_begin_growing(struct jfr_writer *w, uint32_t type, size_t room, struct jfr_event *ret)
{
    enum { TRIES = 100 }; /* other threads may take the new room */

    enum lost_reason reason = LOST_ROOM;
    if (is_low(w))
        (void)jfr_writer_work(w);
    for (int i = 0; i < TRIES; i++) {
        if (event_begin(w, type, room, ret, &reason))
            return true;
        /*
         * A full disk stays full for longer than an event can wait. The worker's next round tries
         * again.
         */
        if (atomic_load(&w->error) || jfr_writer_work(w) < 0)
            break;
    }
    return false;
}

at_each_sample void jfr_commit(struct jfr_event *e)
{
    if (unlikely(e->overflow || e->shape != e->w->shapes[e->type])) {
        losses_count_event(e->w, e->type, e->overflow ? LOST_SIZE : LOST_SHAPE);
        jfr_abort(e);
        return;
    }
    jfr_slot_commit(e, jfr_code_of_type(e->type + JFR_TYPE_BASE));
    /* Only the thread that holds the slot writes the number. */
    uint64_t events = atomic_load_explicit(&e->slot->events, memory_order_relaxed);
    atomic_store_explicit(&e->slot->events, events + 1, memory_order_relaxed);
    jfr_slot_release(e->slot);
}

void jfr_abort(struct jfr_event *e)
{
    if (e->span)
        atomic_fetch_or_explicit(e->span, SPAN_RETIRED, memory_order_release);
    jfr_slot_release(e->slot);
}

at_each_sample void jfr_put_time(struct jfr_event *e, uint64_t ns)
{
    jfr_put_long(e, ns > e->w->base_ns ? (int64_t)(ns - e->w->base_ns) : 0);
}

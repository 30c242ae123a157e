/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the builder of timelines knows between two events. builder.c maintains its tables and nodes;
 * waits.c, locks.c and parks.c determine what ended a wait; events.c handles the events, and the
 * starts and ends of threads.
 */
#pragma once

#include "base/map.h"
#include "base/strpool.h"
#include "base/vec.h"
#include "timeline/builder.h"
#include "timeline/pack.h"

#include <pthread.h>

/*
 * WINDOW: how many nodes are not packed yet; UNPACKED_MAX: how many blocks may be unpacked at a
 * time
 */
enum { NESTING = 6, PREFETCH = 16, WINDOW = 1 << 14, UNPACKED_MAX = 1024 };

/* What a thread is doing, between events. */
struct activity {
    uint32_t blocked_since;  /* first node of the current wait, or TL_NONE */
    uint32_t pending_unpark; /* an unpark whose permit has not been used yet */
    /* when the last call that unparked it returned; 0: unknown */
    uint64_t unpark_until;
    uint32_t pending_interrupt; /* an interrupt to which no wait has responded yet */
    uint32_t notified;          /* the notification that chose this waiter */
    /* the node at which it got the monitor that it waits for, if another thread saw that first */
    uint32_t handed;
    uint32_t starter;       /* the call of start() */
    uint32_t last_unparked; /* of a carrier: the unpark that last woke it */
    /* of a carrier: the last node of the virtual thread that last ended on it */
    uint32_t carried;
    uint32_t freed;     /* of a carrier: the node at which it continued after that */
    uint32_t wait_next; /* the next thread in the wait set */
    uint32_t wait_object;
    /*
     * the lock for which it stopped waiting without having acquired it, or TL_NONE; the node at
     * which that was
     */
    uint32_t gave_up_on, gave_up;
    uint8_t depth;  /* depth of nested waits, such as Unsafe.park inside LockSupport.park */
    uint8_t hidden; /* how many of these exceed NESTING */
    bool ended;
    bool left_out; /* other threads' events alone have named it so far (TL_PART_OF_THREADS) */

    struct {
        uint8_t kind;
        uint32_t context;
    } states[NESTING];
};

/* What is known about a monitor: its owner, its last release and who waits for it. */
struct monitor {
    uint32_t owner;     /* thread, or TL_NONE */
    uint32_t release;   /* the node at which the last owner released it, if known exactly */
    uint32_t wait_head; /* the wait set in order of arrival: threads */
    uint32_t wait_tail;
    uint32_t unbound; /* a running node that was woken by an unknown thread */
    uint32_t got;     /* the node at which the owner got it after a contended wait, or TL_NONE */
    bool owner_exact; /* recorded, not inferred */
    /*
     * of a lock (TL_OBJECT_LOCK): how many threads are parked for it; the first park since the lock
     * was last released to a parked thread, or TL_NONE
     */
    uint32_t n_parked, parked;
};

struct unpacked {
    uint32_t block;
    struct tl_node nodes[TL_BLOCK_NODES];
};

/* The total time for which the container had been throttled by a time. */
struct throttled {
    uint64_t time_ns, total_ns;
};

struct timeline_builder {
    /*
     * The latest nodes, by number modulo WINDOW. Those before `packed` are in the packer, except
     * blocks of them that were changed since (unpacked).
     */
    struct tl_node *window;
    size_t n_nodes, packed;
    struct tl_packer packer;
    VEC(struct unpacked *) unpacked;
    struct map unpacked_of;   /* by block: its place in unpacked */
    struct tl_node discarded; /* receives changes of a node that cannot be unpacked */
    int error;                /* -ENOMEM after such a change */
    VEC(struct tl_context) contexts;
    VEC(struct tl_thread) threads;
    VEC(struct tl_object) objects;
    VEC(struct tl_stack) stacks;
    VEC(bool) stacks_in_wait; /* whether their top frame is Object.wait */
    VEC(struct tl_frame) frames;
    VEC(struct tl_pause) pauses;
    VEC(struct tl_delay) delays;
    VEC(struct throttled) throttled;
    VEC(struct activity) activity;
    VEC(struct monitor) monitors;
    struct strpool strings;
    struct map thread_ids, object_ids, stack_ids;
    uint32_t *context_index; /* open addressing, number + 1 */
    size_t context_cap;
    /* for the next events' likely contexts: first the place in the table, then the number */
    uint32_t prefetched[PREFETCH];
    /* the likely context of the current event; any number when it was not looked up in advance */
    uint32_t likely;
    uint32_t no_context; /* the number + 1 of the context with no attributes; 0: not created yet */
    uint64_t origin, epoch, now;
    uint32_t last_ended; /* thread, or TL_NONE */
    uint32_t last_user;  /* the last to end of the threads for which the VM waits at its end */
    uint32_t destroyer;  /* the thread that waits for these threads, or TL_NONE */
    uint32_t acting;     /* the thread of the current event */
    uint64_t unbound;
    unsigned part_of; /* TL_PART_OF_... */
    bool started;
    bool shared; /* two threads use it (timeline_share) */
    /*
     * If shared: protects the places of threads, activities, objects, monitors, stacks, frames and
     * strings, which move when these tables grow. Their contents need no lock, because the other
     * thread learns the number of an element only from an event.
     */
    pthread_mutex_t moving;
};

/* nodes.c */
/* Returns a node that is no longer in the window, as it is now. */
struct tl_node timeline_node_old(const struct timeline_builder *b, uint32_t n);
/*
 * Returns a node to be changed; valid until the next call, or until a node is added. When out of
 * memory, the change is lost and b->error is set.
 */
struct tl_node *timeline_node_unpack(struct timeline_builder *b, uint32_t n);
/*
 * Makes room for one more node in the window, if it is full, by packing a block. Returns 0 or
 * -ENOMEM.
 */
int timeline_nodes_room(struct timeline_builder *b);
/* Packs all nodes. Returns 0 or -ENOMEM. */
int timeline_nodes_pack(struct timeline_builder *b);
void timeline_nodes_release(struct timeline_builder *b);

/* Returns a node as it is now. */
static inline struct tl_node timeline_node(const struct timeline_builder *b, uint32_t n)
{
    return likely(n >= b->packed) ? b->window[n % WINDOW] : timeline_node_old(b, n);
}

/* Returns a node to be changed; see timeline_node_unpack. */
static inline struct tl_node *timeline_node_edit(struct timeline_builder *b, uint32_t n)
{
    return likely(n >= b->packed) ? &b->window[n % WINDOW] : timeline_node_unpack(b, n);
}

/*
 * builder.c. These functions add a node of a thread at the current time: with a context, with one
 * of the given attributes, or with the attributes of an event. They return the number of the node,
 * or -ENOMEM or -E2BIG.
 */
int64_t timeline_node_add(struct timeline_builder *b, uint32_t thread, enum tl_kind kind,
                          uint32_t context);
int64_t timeline_node_with(struct timeline_builder *b, uint32_t thread, enum tl_kind kind,
                           uint32_t object, uint32_t stack, uint32_t other);
int64_t timeline_node_of(struct timeline_builder *b, const struct tl_event *e, enum tl_kind kind);
/*
 * Records that node n ends a wait, for the reason `edge`, caused by the node `waker` or by none
 * (TL_NONE). inferred, here and below: the recording does not show the cause directly.
 */
void timeline_bind(struct timeline_builder *b, uint32_t n, enum tl_edge edge, uint32_t waker,
                   bool inferred);
/*
 * Like timeline_bind, for the node `release` at which a lock was released. If that was before the
 * wait began, counts the wait as one without a known cause.
 */
void timeline_bind_release(struct timeline_builder *b, uint32_t n, enum tl_edge edge,
                           uint32_t release, bool inferred);
/* Sets the other thread of a node unless it has one. Returns 0 or -ENOMEM. */
int timeline_node_other(struct timeline_builder *b, uint32_t n, uint32_t other);
/* Returns the text of a string. */
const char *timeline_text(const struct timeline_builder *b, uint32_t string);
/* Adds the first node of a thread that has none yet. Returns 0, -ENOMEM or -E2BIG. */
int timeline_thread_seen(struct timeline_builder *b, uint32_t thread);
/* Records that node n is where its thread began, by the call of start() at node starter. */
void timeline_started_by(struct timeline_builder *b, uint32_t n, uint32_t starter, bool inferred);

/* waits.c, locks.c, parks.c */
/* How the wait ended that precedes a running node. */
struct timeline_cause {
    enum tl_edge edge;
    uint32_t waker;
    bool inferred;
};

/*
 * Returns the node at which `owner` may have released the monitor for a receiver that runs now, or
 * a negative errno. If the owner is waiting, this is the beginning of its wait, because a waiting
 * thread releases nothing, except in wait itself, at its beginning. If the owner is dead, it is its
 * last node; otherwise a new node at the current time.
 */
int64_t timeline_release_node(struct timeline_builder *b, uint32_t owner, uint32_t object,
                              uint32_t receiver);
/*
 * Returns the node by which the end of a thread wakes a thread that joins it, or a negative errno.
 * When ThreadEnd is posted the thread is not dead yet; a wait that began after that waits for what
 * the VM does until the thread is dead, which ends at the current time.
 */
int64_t timeline_death_node(struct timeline_builder *b, uint32_t dead, uint32_t waiter);
/*
 * Returns whether an interrupt of the thread is pending. If so, it ended the wait before node n:
 * binds the node to the interrupt, which is then no longer pending.
 */
bool timeline_interrupted(struct timeline_builder *b, uint32_t thread, uint32_t n);
/* Returns the monitor of an object; NULL for TL_NONE. */
struct monitor *timeline_monitor_of(struct timeline_builder *b, uint32_t object);
/*
 * Records that a thread owns a monitor, or that its owner is unknown (TL_NONE). exact: this was
 * recorded, not inferred. m may be NULL.
 */
void timeline_owned_by(struct monitor *m, uint32_t thread, bool exact);
/*
 * Begins a wait of a thread with the attributes of an event. Returns its first node; TL_NONE if no
 * node is added, because the event belongs to the wait around it or waits are nested too deeply; or
 * a negative errno.
 */
int64_t timeline_block(struct timeline_builder *b, const struct tl_event *e, enum tl_kind kind);
/*
 * Ends the innermost wait of a thread if its kind is `kind` or `or_kind`. Returns the node with
 * which the thread continues; TL_NONE if no node is added; or a negative errno.
 */
int64_t timeline_unblock(struct timeline_builder *b, uint32_t thread, enum tl_kind kind,
                         enum tl_kind or_kind);
/* Removes a thread from the wait set of the object for which it waits, if any. */
void timeline_wait_set_remove(struct timeline_builder *b, uint32_t thread);
/* Each of these functions handles one kind of event. They return 0 or a negative errno. */
int timeline_on_notify(struct timeline_builder *b, const struct tl_event *e);
int timeline_on_wait(struct timeline_builder *b, const struct tl_event *e);
int timeline_on_waited(struct timeline_builder *b, const struct tl_event *e);
int timeline_on_enter(struct timeline_builder *b, const struct tl_event *e);
int timeline_on_entered(struct timeline_builder *b, const struct tl_event *e);
int timeline_on_park(struct timeline_builder *b, const struct tl_event *e);
int timeline_on_parked(struct timeline_builder *b, const struct tl_event *e);
int timeline_on_unpark(struct timeline_builder *b, const struct tl_event *e);
int timeline_on_unmount(struct timeline_builder *b, const struct tl_event *e);
int timeline_on_mount(struct timeline_builder *b, const struct tl_event *e);
int timeline_on_ready(struct timeline_builder *b, const struct tl_event *e);
/*
 * Ends a wait of a kind that another thread does not end, for the reason `edge`; a sleep may also
 * be ended by a pending interrupt.
 */
int timeline_on_sleep_end(struct timeline_builder *b, const struct tl_event *e, enum tl_kind kind,
                          enum tl_edge edge);
/*
 * Adds a state TL_DEADLOCK for each of the threads that wait for one another in a cycle at the end.
 * Adds the number of cycles to *ret_cycles, and to *ret_unknown that of threads that wait for a
 * monitor whose owner is unknown. Returns 0 or a negative errno.
 */
int timeline_find_deadlocks(struct timeline_builder *b, uint32_t *ret_cycles,
                            uint32_t *ret_unknown);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the builder of timelines knows between two events: timeline_builder.c keeps its tables and
 * nodes, timeline_waits.c says what ended a wait, timeline_events.c takes the events and follows
 * the lives of threads.
 */
#pragma once

#include "base/map.h"
#include "base/strpool.h"
#include "base/vec.h"
#include "model/timeline_builder.h"

#include <pthread.h>

enum { NESTING = 6, AHEAD = 16 };

/* What a thread is doing, between events. */
struct doing {
    uint32_t blocked_since;  /* first node of the wait that goes on, or TL_NONE */
    uint32_t pending_unpark; /* unpark whose permit was not used yet */
    /* when the last call of an unpark of it had returned; 0 not known */
    uint64_t unpark_until;
    uint32_t pending_interrupt; /* interrupt that no wait has answered yet */
    uint32_t notified;          /* the notification that chose this waiter */
    /* where it got the monitor that it waits for, seen by another thread before itself */
    uint32_t handed;
    uint32_t starter;       /* the call of start() */
    uint32_t last_unparked; /* of a carrier: the unpark that woke it last */
    /* of a carrier: the last node of the virtual thread that ended on it last */
    uint32_t carried;
    uint32_t wait_next; /* next in the wait set */
    uint32_t wait_object;
    uint8_t depth;  /* of nested waits, such as Unsafe.park inside LockSupport.park */
    uint8_t hidden; /* of these, how many were deeper than NESTING */
    bool ended;

    struct {
        uint8_t kind;
        uint32_t context;
    } states[NESTING];
};

/* What is known of a monitor: the design's maps 1, 4 and 5. */
struct monitor {
    uint32_t owner;     /* thread, or TL_NONE */
    uint32_t release;   /* node at which the last owner let it go, when that is known exactly */
    uint32_t wait_head; /* wait set in order of arrival: threads */
    uint32_t wait_tail;
    uint32_t unbound; /* a running node that was woken by nobody known */
    bool owner_exact; /* recorded, not concluded */
};

struct timeline_builder {
    VEC(struct tl_node) nodes;
    struct tl_nodes_file *nodes_file; /* where these lie, NULL: in memory */
    char *nodes_path;                 /* where they may lie from some on, NULL: nowhere */
    VEC(struct tl_context) contexts;
    VEC(struct tl_thread) threads;
    VEC(struct tl_object) objects;
    VEC(struct tl_stack) stacks;
    VEC(bool) stacks_in_wait; /* their top is Object.wait */
    VEC(struct tl_frame) frames;
    VEC(struct tl_pause) pauses;
    VEC(struct tl_delay) delays;
    VEC(struct doing) doing;
    VEC(struct monitor) monitors;
    struct strpool strings;
    struct map thread_ids, object_ids, stack_ids;
    uint32_t *context_index; /* open addressing, number + 1 */
    size_t context_cap;
    /* of the next events' likely contexts: where to look, then their numbers */
    uint32_t ahead[AHEAD];
    /* that of the event that is added now; any number, when nobody looked ahead */
    uint32_t likely;
    uint32_t no_context; /* the one without anything + 1; 0: not there yet */
    uint64_t origin, epoch, now;
    uint32_t last_ended; /* thread, or TL_NONE */
    uint32_t last_user;  /* the same, of threads that the VM waits for at its end */
    uint32_t destroyer;  /* the thread that waits for them, or TL_NONE */
    uint64_t unbound;
    bool started;
    bool shared;            /* by two threads (timeline_share) */
    pthread_mutex_t moving; /* then: of threads, doing, objects, monitors, stacks, frames and
                               strings, where these lie; what they hold is their own, and its number
                               is known to the other thread by an event first */
};

/* timeline_builder.c. Each answers the number of what it added, or a negative error. */
int64_t timeline_node_add(struct timeline_builder *b, uint32_t thread, enum tl_kind kind,
                          uint32_t context);
int64_t timeline_node_with(struct timeline_builder *b, uint32_t thread, enum tl_kind kind,
                           uint32_t object, uint32_t stack, uint32_t other);
int64_t timeline_node_of(struct timeline_builder *b, const struct tl_event *e, enum tl_kind kind);
void timeline_bind(struct timeline_builder *b, uint32_t n, enum tl_edge edge, uint32_t waker,
                   bool inferred);
void timeline_bind_release(struct timeline_builder *b, uint32_t n, enum tl_edge edge,
                           uint32_t release, bool inferred);
/* The text of a string. */
const char *timeline_text(const struct timeline_builder *b, uint32_t string);
int timeline_thread_seen(struct timeline_builder *b, uint32_t thread);
/* Node n is where its thread began, by the call of start() that node starter is. */
void timeline_started_by(struct timeline_builder *b, uint32_t n, uint32_t starter, bool inferred);

/* timeline_waits.c */
struct monitor *timeline_monitor_of(struct timeline_builder *b, uint32_t object);
void timeline_owned_by(struct monitor *m, uint32_t thread, bool exact);
int64_t timeline_block(struct timeline_builder *b, const struct tl_event *e, enum tl_kind kind);
int64_t timeline_unblock(struct timeline_builder *b, uint32_t thread, enum tl_kind kind,
                         enum tl_kind or_kind);
void timeline_wait_set_remove(struct timeline_builder *b, uint32_t thread);
int timeline_on_notify(struct timeline_builder *b, const struct tl_event *e);
int timeline_on_wait(struct timeline_builder *b, const struct tl_event *e);
int timeline_on_waited(struct timeline_builder *b, const struct tl_event *e);
int timeline_on_enter(struct timeline_builder *b, const struct tl_event *e);
int timeline_on_entered(struct timeline_builder *b, const struct tl_event *e);
int timeline_on_parked(struct timeline_builder *b, const struct tl_event *e);
int timeline_on_unpark(struct timeline_builder *b, const struct tl_event *e);
int timeline_on_sleep_end(struct timeline_builder *b, const struct tl_event *e, enum tl_kind kind,
                          enum tl_edge edge);
int timeline_find_deadlocks(struct timeline_builder *b, uint32_t *ret_cycles);

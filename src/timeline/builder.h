/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds a timeline from events in chronological order, by the rules in the TPTP design for binding
 * a wait's end to its cause. It maintains the maps of that design: monitor to owner, object to
 * thread, thread to object, monitor to last notification, and monitor to the thread that was woken
 * but not yet bound.
 */
#pragma once

#include "timeline/timeline.h"

/* What happened. The names are those of the TPTP thread profiler's events, where it has one. */
enum tl_event_kind {
    /*
     * a thread begins; object: its java.lang.Thread; other: its parent, or the carrier of a virtual
     * thread
     */
    TLE_THREAD_START,
    TLE_THREAD_END,        /* other: the carrier of a virtual thread */
    TLE_CONTENDED_ENTER,   /* object; other: owner */
    TLE_CONTENDED_ENTERED, /* object; other: who released it, if recorded */
    TLE_WAIT,              /* object, timeout */
    TLE_WAITED,            /* object; other: the notifier, if recorded */
    TLE_SLEEP,             /* timeout */
    TLE_SLEPT,
    TLE_PARK, /* object: blocker; other: its exclusive owner; timeout */
    TLE_PARKED,
    TLE_IO, /* object: file or socket */
    TLE_IO_DONE,
    TLE_CALL_START,     /* other, or object: the thread started */
    TLE_CALL_INTERRUPT, /* other: the thread */
    TLE_NOTIFY,         /* object */
    TLE_NOTIFY_ALL,
    TLE_UNPARK,      /* other: the thread */
    TLE_ACQUIRE,     /* object; exact holds */
    TLE_RELEASE,     /* object; exact holds and recorded contended exits */
    TLE_INTERRUPTED, /* InterruptedException was thrown */
    TLE_PREEMPT,     /* the thread loses its processor */
    TLE_RESUME,
    TLE_MOUNT, /* virtual threads */
    TLE_UNMOUNT,
    /* the thread waits for another one to initialize a class, until it is mounted */
    TLE_CLASS_INIT,
    /* the thread's wait is over and it has no carrier; other: the thread that uses its carrier */
    TLE_READY,
    TLE_OWNER, /* object; other: its owner, seen while the thread waits for it */
    TLE_KINDS
};

/* for WAITED; for PARKED: it ended by a timer, unless some thread is known to have unparked it */
#define TLE_TIMED_OUT 1
#define TLE_EXISTING  2 /* for THREAD_START: the thread existed before the recording began */
#define TLE_EARLY     4 /* for SLEPT: the sleep ended before its time, so it was interrupted */
#define TLE_VIRTUAL   8 /* for THREAD_START: other is the carrier */
/* for the beginning of a wait: the wait was reported while it continued */
#define TLE_REPORTED 16

struct tl_event {
    uint64_t time; /* the recording's clock, in ns */
    uint32_t thread;
    uint8_t kind, flags; /* enum tl_event_kind, TLE_ */
    uint16_t spare;
    uint32_t object, stack, other; /* TL_NONE: unknown */

    union {
        uint32_t timeout_ms;
        uint32_t took_ns; /* for UNPARK: how long the call took, saturated; 0: unknown */
    };
};

struct timeline_builder;

/* Creates an empty builder. Returns 0 or -ENOMEM. */
int timeline_builder_new(struct timeline_builder **ret) must_check;
void timeline_builder_free(struct timeline_builder *b);
DEFINE_CLEANUP(struct timeline_builder *, timeline_builder_free)

/*
 * Each of these functions adds an element unless the builder has it already, and returns its number
 * or -ENOMEM. A thread is known by its id, an object by its id and class, and a stack by its
 * frames.
 */
int64_t timeline_string(struct timeline_builder *b, const char *text, size_t len) must_check;
int64_t timeline_thread(struct timeline_builder *b, uint64_t id) must_check;
int64_t timeline_object(struct timeline_builder *b, uint64_t id, uint32_t class) must_check;
int64_t timeline_stack(struct timeline_builder *b, const struct tl_frame *frames,
                       size_t n) must_check;
/*
 * Records that no Java thread ran from start_ns to end_ns, for the reason `name` (a string).
 * Returns 0 or -ENOMEM.
 */
int timeline_pause(struct timeline_builder *b, uint64_t start_ns, uint64_t end_ns,
                   uint32_t name) must_check;
/*
 * Records that a thread ran from start_ns to end_ns and for ns of this time had no processor or, if
 * `fault`, waited for pages of memory. Returns 0 or -ENOMEM.
 */
int timeline_delay(struct timeline_builder *b, uint32_t thread, uint64_t start_ns, uint64_t end_ns,
                   uint64_t ns, bool fault) must_check;
/*
 * Records the total time for which the container had been throttled by a time. Readings may be in
 * any order. Returns 0 or -ENOMEM.
 */
int timeline_throttled(struct timeline_builder *b, uint64_t time_ns, uint64_t total_ns) must_check;
/* Returns a thread's record to be filled in; valid until the next call of timeline_thread. */
struct tl_thread *timeline_thread_at(struct timeline_builder *b, uint32_t thread);
/* Records that the object is the java.lang.Thread of a thread. */
void timeline_thread_object(struct timeline_builder *b, uint32_t thread, uint32_t object);
/* Returns the thread whose java.lang.Thread the object is, or TL_NONE. */
uint32_t timeline_object_thread(const struct timeline_builder *b, uint32_t object);

/*
 * Prepares the builder for two threads. One adds strings, threads, objects and stacks, and fills in
 * those that it has just added. The other adds the events that refer to these; it locks the builder
 * meanwhile and releases it from time to time.
 */
void timeline_share(struct timeline_builder *b);
/* timeline_lock and timeline_unlock do nothing unless the builder is shared. */
void timeline_lock(struct timeline_builder *b);
void timeline_unlock(struct timeline_builder *b);

/*
 * Has the nodes of a large timeline written directly to the place that they will have in the index
 * file of this name. Returns 0 or -ENOMEM.
 */
int timeline_nodes_in(struct timeline_builder *b, const char *path) must_check;
/*
 * States that the events are those of a part (TL_PART_OF_...); call it before the first event. A
 * thread without events of its own then has no states.
 */
void timeline_part_of(struct timeline_builder *b, unsigned part_of);
/*
 * Sets the clock's reading at time 0, and the time since 1970 at that moment; call it before the
 * first event. By default the first event is at time 0.
 */
void timeline_origin(struct timeline_builder *b, uint64_t clock_ns, uint64_t epoch_ns);
/*
 * Adds an event. An event that is earlier than the previous one gets the previous one's time.
 * Returns 0, -ENOMEM, -E2BIG beyond 2^32 nodes, or -EOVERFLOW beyond TL_TIME_LAST.
 */
int timeline_add(struct timeline_builder *b, const struct tl_event *e) must_check;
/*
 * Prefetches what timeline_add will look up for later events, given that the i-th of n events is
 * next. Changes nothing else. The tables are larger than a processor's cache.
 */
void timeline_prefetch(struct timeline_builder *b, const struct tl_event *events, size_t i,
                       size_t n);
/*
 * Sorts events by time for timeline_add; events at the same time keep their order. Returns 0 or
 * -ENOMEM.
 */
int tl_events_sort(struct tl_event *events, size_t n) must_check;
/*
 * Ends the recording at a time and stores the timeline. Returns 0, -ENOMEM, -E2BIG or
 * -EOVERFLOW. The builder is empty afterwards and must be freed.
 */
int timeline_finish(struct timeline_builder *b, uint64_t end_clock_ns,
                    struct timeline **ret) must_check;

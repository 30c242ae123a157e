/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds a timeline from events in the order of time, by the binding rules of the design: the maps
 * of monitor to owner, object to thread, thread to object, monitor to last notification, and
 * monitor to woken and unbound thread are kept on the way.
 */
#pragma once

#include "model/timeline.h"

/* What happened. Names are those of the agent's events where the design has one. */
enum tl_event_kind {
    /* thread begins; object: its java.lang.Thread; other: its parent, or a virtual one's carrier */
    TLE_THREAD_START,
    TLE_THREAD_END,        /* other: a virtual one's carrier */
    TLE_CONTENDED_ENTER,   /* object; other: owner */
    TLE_CONTENDED_ENTERED, /* object; other: who let it go, when recorded */
    TLE_WAIT,              /* object, timeout */
    TLE_WAITED,            /* object; other: notifier, when recorded */
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
    TLE_PREEMPT,     /* thread loses its processor */
    TLE_RESUME,
    TLE_MOUNT, /* virtual threads */
    TLE_UNMOUNT,
    TLE_OWNER, /* object; other: who owns it, seen while thread waits for it */
    TLE_KINDS
};

/* of WAITED; of PARKED: by a timer when nobody is known to have unparked it */
#define TLE_TIMED_OUT 1
#define TLE_EXISTING  2  /* of THREAD_START: it began before the recording */
#define TLE_VIRTUAL   8  /* of THREAD_START: other is the carrier */
#define TLE_TOLD      16 /* of a beginning: it was told while the wait went on */
#define TLE_OPEN      4  /* the end event is the recording's end: the thread is still there */

struct tl_event {
    uint64_t time; /* the recording's clock, ns */
    uint32_t thread;
    uint8_t kind, flags; /* enum tl_event_kind, TLE_ */
    uint16_t spare;
    uint32_t object, stack, other; /* TL_NONE: not known */

    union {
        uint32_t timeout_ms;
        uint32_t took_ns; /* of UNPARK: until the call had returned, saturated; 0: not known */
    };
};

struct timeline_builder;

int timeline_builder_new(struct timeline_builder **ret) must_check;
void timeline_builder_free(struct timeline_builder *b);
DEFINE_CLEANUP(struct timeline_builder *, timeline_builder_free)

/* Each answers the number of what was there or was added, or -ENOMEM. */
int64_t timeline_string(struct timeline_builder *b, const char *text, size_t len) must_check;
int64_t timeline_thread(struct timeline_builder *b, uint64_t id) must_check;
int64_t timeline_object(struct timeline_builder *b, uint64_t id, uint32_t class) must_check;
int64_t timeline_stack(struct timeline_builder *b, const struct tl_frame *frames,
                       size_t n) must_check;
int timeline_pause(struct timeline_builder *b, uint64_t start_ns, uint64_t end_ns,
                   uint32_t name) must_check;
/* The thread ran from start to end, and for ns of that had no processor. */
int timeline_delay(struct timeline_builder *b, uint32_t thread, uint64_t start_ns, uint64_t end_ns,
                   uint64_t ns) must_check;
/* What is known of a thread, to fill in; dies at the next timeline_thread. */
struct tl_thread *timeline_thread_at(struct timeline_builder *b, uint32_t thread);
/* The object is the java.lang.Thread of a thread. */
void timeline_thread_object(struct timeline_builder *b, uint32_t thread, uint32_t object);
/* The thread whose object that is, or TL_NONE. */
uint32_t timeline_object_thread(const struct timeline_builder *b, uint32_t object);

/*
 * From now on one thread adds strings, threads, objects and stacks, and tells what is known of
 * those that it has just added, while another one adds the events that name them; the latter locks
 * the builder meanwhile, and lets it go now and then.
 */
void timeline_share(struct timeline_builder *b);
void timeline_lock(struct timeline_builder *b);
void timeline_unlock(struct timeline_builder *b);

/* Many nodes are put where the index file of that name will have them. 0 or -ENOMEM. */
int timeline_nodes_in(struct timeline_builder *b, const char *path) must_check;
/* Sets time 0 before the first event; without it the first event is time 0. */
void timeline_origin(struct timeline_builder *b, uint64_t clock_ns, uint64_t epoch_ns);
/*
 * Adds an event, not before the one added last (an earlier time counts as that one's). 0 or
 * -ENOMEM, -E2BIG past 2^32 nodes.
 */
int timeline_add(struct timeline_builder *b, const struct tl_event *e) must_check;
/*
 * Of n events that will be added one after another the i-th is next: what timeline_add will look up
 * for later ones is fetched. Changes nothing else; the tables are larger than what a processor
 * keeps at hand.
 */
void timeline_ahead(struct timeline_builder *b, const struct tl_event *events, size_t i, size_t n);
/* Sorts events by time as timeline_add wants them; equal times keep their order. 0 or -ENOMEM. */
int tl_events_sort(struct tl_event *events, size_t n) must_check;
/* Ends the recording at a time and gives the timeline; the builder is empty then, to be freed. */
int timeline_finish(struct timeline_builder *b, uint64_t end_clock_ns,
                    struct timeline **ret) must_check;

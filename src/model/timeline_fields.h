/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recording on its way into a timeline: timeline_fields.c says what a field of a record is to
 * the timeline's builder, timeline_load.c what the records mean.
 */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "jfr/reader_rows.h"
#include "model/timeline_spool.h"

/* The fields that events are read by. */
enum field {
    EVENT_THREAD,
    STACK_TRACE,
    ADDRESS,
    MONITOR_CLASS,
    PARKED_CLASS,
    BLOCKER_CLASS,
    THREAD_CLASS,
    PREVIOUS_OWNER,
    NOTIFIER,
    OWNER,
    THREAD,
    PARENT_THREAD,
    CARRIER,
    TIMEOUT,
    UNTIL,
    TIMED_OUT,
    TIME,
    TARGET,
    ALL,
    DAEMON,
    FIELDS
};

/* Their names. */
extern const struct rec_wish loader_wishes[FIELDS];

/* What a constant, or an object, was found to be: asked again and again for few of them. */
struct answer {
    /*
     * the field's type, the object's class + 1, or the loader for a thread's id; NULL: nothing here
     */
    const void *of;
    const struct rec_chunk *chunk;
    uint64_t id;
    uint32_t number;
};

enum { ANSWERS = 1 << 13 };

struct loader {
    struct timeline_builder *b;
    struct tl_spool events;
    /* by the reader's numbers: ours + 1, 0 not known yet */
    VEC(uint32_t) threads, classes, methods;
    struct map stacks; /* by chunk and id */
    uint64_t lost, lost_any;
    uint32_t instrumented;
    bool ours;
    int64_t wake_ns;    /* what a wake-up takes the waker */
    int64_t first, end; /* times of events */
    const struct rec_row *row;
    const struct rec_event *e; /* the row as an event */
    struct answer *answers;
    int error;
    /* events are taken while they are read: what else there is was read before */
    bool streamed;
    VEC(struct rec_part) parts; /* then: the least start in the file from each part on */
    size_t part;                /* that is being read */
    int built;                  /* how the taking went */
};

/* A string by its number; TL_NONE after a failure. */
uint32_t loader_string(struct loader *l, const char *s);
/* A thread of the recording's; TL_NONE for NULL. */
uint32_t loader_thread(struct loader *l, const struct rec_thread *t);
/* The number that a builder's function answered; TL_NONE after a failure. */
uint32_t loader_checked(struct loader *l, int64_t n);

/*
 * Of the row that is being read: numbers, 0 when there is none; what is known by a number of the
 * builder's, else TL_NONE.
 */
int64_t number_field(const struct loader *l, enum field f);
int64_t ns_field(const struct loader *l, enum field f);
uint32_t thread_field(struct loader *l, enum field f);
uint32_t thread_by_id(struct loader *l, enum field f);
uint32_t object_field(struct loader *l, enum field class_field);
uint32_t stack_field(struct loader *l);

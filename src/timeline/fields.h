/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a recording becomes a timeline: fields.c translates the fields of a record for the timeline's
 * builder, and load_events.c knows what the records mean.
 */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "jfr/reader_rows.h"
#include "jfr/time_part.h"
#include "timeline/spool.h"

/* The fields of events that are read. */
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
    OCCUPANT,
    TIMEOUT,
    UNTIL,
    TIMED_OUT,
    TIME,
    TARGET,
    ALL,
    DAEMON,
    THROTTLED_TIME,
    FIELDS
};

/* The names of the fields, and which of them are constants. */
extern const struct rec_column loader_columns[FIELDS];

/* Questions about stacks (field_stack_answer); a type is longer than their numbers. */
enum stack_question { STACK_IS_PINNED_SLEEP = 1, STACK_UNMOUNTS };

/*
 * A cache for what a constant or an object stands for; few of them are looked up, but very often.
 */
struct field_lookup {
    /*
     * the field's type, this plus the number of a question about a stack, the object's class + 1,
     * or the loader for a thread's id; NULL: the entry is free
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
    /* by the reader's numbers: our number + 1, 0 when it is not known yet */
    VEC(uint32_t) threads, classes, methods;
    struct map stacks;     /* by chunk and id */
    struct map conditions; /* by identity: the string that names the condition by its owner */
    uint64_t lost, lost_any;
    uint32_t vm_version;
    uint32_t instrumented;
    bool uncounted; /* the agent could not read how long threads had no processor */
    bool ours;
    bool unsampled;     /* the recording has no CPU samples */
    int64_t wake_ns;    /* what a wake-up costs the waker */
    int64_t first, end; /* times of events */
    int64_t floor_ns;   /* when the recording began; waits that began earlier count from then on */
    int64_t ceiling_ns; /* in a part of a recording, its end: what ends later has not ended */
    /* what is read of a whole recording; NULL: all of it */
    const struct time_part *window;
    const struct time_part *earlier; /* what is known of the time before a part; NULL: no part */
    int64_t seen_ns;                 /* with a window: the end of all events, selected or not */
    uint64_t began_before;           /* the number of those waits */
    struct map before;               /* their threads */
    const struct rec_row *row;
    const struct rec_event *e; /* the current row as an event */
    struct field_lookup *answers;
    int error;
    /* whether the timeline is built while events are read; everything else has been read before */
    bool streamed;
    VEC(struct rec_part) parts; /* if so: the least start time in the file from each part on */
    size_t part;                /* the part that is being read */
    int built;                  /* the result of building */
};

/* Returns the number of a string; TL_NONE after a failure. */
uint32_t loader_string(struct loader *l, const char *s);
/* Returns the number of one of the recording's threads; TL_NONE for NULL. */
uint32_t loader_thread(struct loader *l, const struct rec_thread *t);

/*
 * Each of these functions reads a field of the current row. Numbers and times are 0, and the
 * builder's numbers TL_NONE, when the row has no such field or the field is null.
 * field_thread_by_id reads the id of a Java thread, and field_object the object of the class in
 * class_field with the identity in ADDRESS.
 */
int64_t field_number(const struct loader *l, enum field f);
int64_t field_ns(const struct loader *l, enum field f);
uint32_t field_thread(struct loader *l, enum field f);
uint32_t field_thread_by_id(struct loader *l, enum field f);
uint32_t field_object(struct loader *l, enum field class_field);
uint32_t field_stack(struct loader *l);
/*
 * Returns the result of `decide` for the row's stack. The result is cached, so that `decide` is
 * seldom called twice for one stack; `question` identifies the function.
 */
uint32_t field_stack_answer(struct loader *l, enum stack_question question,
                            uint32_t (*decide)(const struct rec_stack *));

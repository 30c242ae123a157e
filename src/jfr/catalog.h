/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What jvmscope must know of a type of events, apart from its fields: one row for each type that
 * needs special treatment. What reads the fields of an event, such as profile/load_jfr.c, names the
 * type as well.
 */
#pragma once

#include <stddef.h>

/* How an event becomes part of a shorter span, of some threads, or of a part of a ring. */
enum event_scope {
    SCOPE_SELECTION, /* by its time, its thread and its stack */
    SCOPE_STATE,     /* always: it describes the recording or a thread, and not a moment */
    SCOPE_VM,        /* by its time alone: it is the VM's, whose threads no selection names */
    SCOPE_TIME,      /* by its time: it concerns all threads for as long as it lasted */
    SCOPE_THREAD,    /* a wait, which belongs to its thread for as long as it lasted */
    SCOPE_OPEN_WAIT, /* a wait that lasts until another event of the same wait has an end */
    SCOPE_SUM,       /* never: it has a sum from the beginning of the recording */
    SCOPE_OF_SUMS,   /* always, except in a part of the time: it describes the sums */
    SCOPE_SHARE, /* in part: it covers the span since the event before it (export/cut_times.h) */
};

/* The kinds of data that a recording holds. */
enum event_data {
    HOLDS_STACKS = 1, /* samples and sums by stack */
    HOLDS_CALLS = 2,  /* the counts of calls, which accompany exact times */
    HOLDS_WAITS = 4,
    HOLDS_REQUESTS = 8,
    HOLDS_TRACE = 16,
    HOLDS_EXCEPTIONS = 32,
    HOLDS_COVERAGE = 64,
    HOLDS_VM = 128,
    HOLDS_VM_TIME = 256, /* CPU time of threads that run no Java code, which have no samples */
    HOLDS_PAUSES = 512,  /* for collections, which stop all threads */
    HOLDS_LOG = 1024,    /* records of --log and accesses of --watch */
    HOLDS_ALL = 2047
};

struct event_row {
    const char *type; /* such as "jdk.ThreadPark" */
    enum event_scope scope;
    unsigned holds; /* enum event_data: the kinds of data that its events are; the main one first */
    /* the capture that records it, and the plural of what one event is, for a report of losses */
    const char *capture, *what;
};

/*
 * Returns the row of a type. A type without a row has the scope SCOPE_SELECTION, holds nothing, and
 * consists of "events" of the capture "recording"; `type` is NULL then.
 */
const struct event_row *catalog_find(const char *type);

/* Returns all rows, and stores their number in *n. */
const struct event_row *catalog_rows(size_t *n);

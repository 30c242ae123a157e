/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One table of everything that a recording can lack. Each row names the capture that lost
 * something, what it lost, and why. The counts become jvmscope.Lost events (doc/format.md), which
 * profile/losses.h reads.
 */
#pragma once

#include <stdint.h>

struct jfr_writer;

enum jfr_loss {
    /* Losses that the captures count. */
    LOSS_TRACE_BUFFER,
    LOSS_TRACE_NO_BUFFER,
    LOSS_TRACE_MEMORY,
    LOSS_TRACE_TOO_LARGE,
    LOSS_TRACE_RESULT,
    LOSS_TRACE_UNPAIRED,
    LOSS_TRACE_LIMIT,
    LOSS_TRACE_RATE,
    LOSS_TRACE_BYTES,
    LOSS_TRACE_OPEN,
    LOSS_TRACE_LATE,
    LOSS_TRACE_TEXT_THREW,
    LOSS_TRACE_TEXT_SLOW,
    LOSS_TRACE_TEXT_NOT_CALLED,
    LOSS_LOG_BUFFER,
    LOSS_LOG_NO_BUFFER,
    LOSS_LOG_LIMIT,
    LOSS_LOG_RATE,
    LOSS_LOG_BYTES,
    LOSS_LOG_HIDDEN,
    LOSS_LOG_LATE,
    LOSS_EXCEPTION_ROW,
    LOSS_EXCEPTION_PLACE,
    LOSS_EXCEPTION_LIMIT,
    LOSS_EXCEPTION_HIDDEN,
    LOSS_CPU_BUFFER,
    LOSS_CPU_TIMER,
    LOSS_CPU_UNMOUNTED,
    LOSS_ALLOC_SITE,
    LOSS_ALLOC_SIZE,
    LOSS_ALLOC_FOLLOW,
    LOSS_ALLOC_STOPPED,
    LOSS_ALLOC_STOPPED_OBJECTS,
    LOSS_ALLOC_UNSAVED,
    LOSS_ALLOC_RUNNING,
    LOSS_TIMES_RUNNING,
    LOSS_TRACE_RUNNING,
    LOSS_TRACE_HIDDEN,
    LOSS_TRACE_LEFT,
    LOSS_LOG_RUNNING,
    LOSS_TIMES_THREAD,
    LOSS_COVERAGE,
    LOSS_COVER_STOPPED,
    LOSS_COVER_UNSAVED,
    LOSS_COVER_RUNNING,
    LOSS_TIMES_TIMER,
    LOSS_TIMES_UNREAD,
    LOSS_THREAD_NAME,
    LOSS_WAITS_STOPPED,
    LOSS_VIRTUAL_EXISTING,
    LOSS_VIRTUAL_LIST,
    LOSS_HOLD_RATE,
    LOSS_REQUEST_RATE,
    LOSS_REQUEST_WORK,
    LOSS_REQUEST_TABLE,
    LOSS_REQUEST_TASK,
    LOSS_REQUEST_OPEN,
    LOSS_REQUEST_RUNNING,
    LOSS_WAITS_AGAIN,
    LOSS_THREADS_AGAIN,
    LOSS_BUDGET_WAITS,
    LOSS_BUDGET_WAKES,
    LOSS_VM_COLLECTION,
    LOSS_VM_LOG,
    LOSS_VM_LINES,
    LOSS_VM_LOG_CUT,
    LOSS_VM_PAUSES,
    /* Losses that the writer itself counts. */
    LOSS_STACK,
    LOSS_STACK_CALLERS,
    LOSS_NAME,
    LOSS_CONSTANT,
    JFR_LOSSES
};

/*
 * The reason for methods that ran when the recording began is LOSS_RAN_BEFORE, a verb such as
 * "traced", and LOSS_NEXT_CALL.
 */
#define LOSS_RAN_BEFORE "what ran when the recording began is "
#define LOSS_NEXT_CALL  " from its next call on"

struct jfr_loss_row {
    /*
     * such as "trace", "calls", "the buffer of the thread was full"; the words must fit one loss
     * and many
     */
    const char *capture, *what, *reason;
    const char *of; /* what held the lost things, such as "sites" for bytes; NULL if nothing did */
};

/* What lost events stood for, when an event holds a sum (jfr_lose_held). */
enum jfr_held { HELD_OBJECTS, HELD_BYTES, HELD_EXCEPTIONS, HELD_CALLS, HELD_REQUESTS, JFR_HELDS };

extern const struct jfr_loss_row jfr_loss_rows[JFR_LOSSES];

/*
 * Calls report for each kind of loss so far, with its row and total. May be called by any thread
 * while the writer exists.
 */
void jfr_each_loss(const struct jfr_writer *w,
                   void (*report)(void *context, const struct jfr_loss_row *row, uint64_t total),
                   void *context);

/*
 * Counts n more losses. Async-signal-safe and callable from any thread; does nothing when the
 * writer is NULL.
 */
void jfr_lose(struct jfr_writer *w, enum jfr_loss loss, uint64_t n);
/*
 * Like jfr_lose, but names what was lost. The names become part of the reason; only the first ones
 * that are passed for a kind of loss are used.
 */
void jfr_lose_named(struct jfr_writer *w, enum jfr_loss loss, uint64_t n, const char *names);
/*
 * For a capture that keeps its own count: sets the total so far in this recording. The capture
 * calls this periodically, also with a total of zero; any increase is reported as lost some time
 * since its previous call.
 */
void jfr_lose_total(struct jfr_writer *w, enum jfr_loss loss, uint64_t total);
/* Like jfr_lose_total, for a capture that knows when the first loss happened (0: unknown). */
void jfr_lose_total_from(struct jfr_writer *w, enum jfr_loss loss, uint64_t total,
                         uint64_t first_ns);
/*
 * Adds n to the number of calls, bytes and so on that lost events would have contained. The events
 * themselves are counted by jfr_lose_events.
 */
void jfr_lose_held(struct jfr_writer *w, enum jfr_held what, uint64_t n);
/*
 * Counts one more loss of something that had happened at this time, which may be long ago. Not for
 * signal handlers.
 */
void jfr_lose_at(struct jfr_writer *w, enum jfr_loss loss, uint64_t ns);
/* Counts n more losses that happened at some time since the last call for this kind. */
void jfr_lose_since(struct jfr_writer *w, enum jfr_loss loss, uint64_t n);

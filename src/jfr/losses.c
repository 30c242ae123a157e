/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts what a recording loses, in any thread, and writes it as jvmscope.Lost events, in the
 * worker.
 */
#include "jfr/losses.h"

#include "jfr/catalog.h"
#include "jfr/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* losses of one kind are collected for this time and become one event */
#define REPORT_NS (100 * NS_PER_MS)
/* Samples and what the VM logs are written as events this long after they happened, or sooner. */
#define EVENT_LATE_NS (2 * NS_PER_SECOND)

/*
 * Reasons are written so that they suit one lost thing as well as many. Names of methods may
 * follow.
 */
#define TABLE_HELD                                                                              \
    "another tool had stopped the thread that held the table of sites, or the machine was too " \
    "busy for it"
#define ENDED_STOPPED "another tool had stopped a thread in the middle of recording"
#define RAN_BEFORE    LOSS_RAN_BEFORE "counted" LOSS_NEXT_CALL

const struct jfr_loss_row jfr_loss_rows[JFR_LOSSES] = {
    [LOSS_TRACE_BUFFER] = {"trace", "calls", "the buffer of the thread was full"},
    [LOSS_TRACE_NO_BUFFER] = {"trace", "calls", "no buffer was left for the thread"},
    [LOSS_TRACE_MEMORY] = {"trace", "calls", "the agent had no memory left"},
    [LOSS_TRACE_TOO_LARGE] = {"trace", "calls", "arguments and results were too large"},
    [LOSS_TRACE_RESULT] = {"trace", "results", "the buffer of the thread was full"},
    [LOSS_TRACE_UNPAIRED] = {"trace", "calls", "the beginning or the end was not seen"},
    [LOSS_TRACE_LIMIT] = {"trace", "calls", "the number that --limit allows was reached"},
    [LOSS_TRACE_RATE] = {"trace", "calls", "the number per second that --rate allows was reached"},
    [LOSS_TRACE_BYTES] = {"trace", "calls", "the size that --bytes allows was reached"},
    [LOSS_TRACE_OPEN] = {"trace", "calls", "not returned when tracing ended"},
    [LOSS_TRACE_LATE] = {"trace", "calls", "not written before the VM ended"},
    [LOSS_TRACE_TEXT_THREW] = {"trace", "texts of values", "toString() threw an exception"},
    [LOSS_TRACE_TEXT_SLOW] = {"trace", "texts of values", "toString() took longer than 100 ms"},
    [LOSS_TRACE_TEXT_NOT_CALLED] = {"trace", "texts of values",
                                    "toString() was not called, because one of the class had just "
                                    "taken too long, others were running, or there was no room"},
    [LOSS_LOG_BUFFER] = {"log", "records", "the buffer of the thread was full"},
    [LOSS_LOG_NO_BUFFER] = {"log", "records", "no buffer was left for the thread"},
    [LOSS_LOG_LIMIT] = {"log", "records", "the number that --limit allows was reached"},
    [LOSS_LOG_RATE] = {"log", "records", "the number per second that --rate allows was reached"},
    [LOSS_LOG_BYTES] = {"log", "records", "the size that --bytes allows was reached"},
    [LOSS_LOG_HIDDEN] = {"log", "classes",
                         "no agent may change a hidden class, so that its lines are not logged and "
                         "its accesses of fields are not watched"},
    [LOSS_LOG_LATE] = {"log", "records", "not written before the VM ended"},
    [LOSS_EXCEPTION_ROW] = {"exceptions", "exceptions", "the table of places was full"},
    [LOSS_EXCEPTION_PLACE] = {"exceptions", "places", "there were more than can be counted"},
    [LOSS_EXCEPTION_LIMIT] = {"exceptions", "stacks", "the number that --limit allows was reached"},
    [LOSS_EXCEPTION_HIDDEN] = {"exceptions", "hidden classes",
                               "no agent may change such a class: what it throws and catches "
                               "itself is not counted, and what leaves it counts as thrown by its "
                               "caller; --exceptions=stacks records both"},
    [LOSS_CPU_BUFFER] = {"cpu", "samples", "the buffer of samples was full"},
    [LOSS_CPU_TIMER] = {"cpu", "threads",
                        "the system gave no timer, without which nothing is sampled"},
    [LOSS_CPU_UNMOUNTED] = {"cpu", "milliseconds of virtual threads",
                            "--cpu=wall does not sample virtual threads without a carrier; "
                            "--threads records all waits"},
    [LOSS_ALLOC_SITE] = {"alloc", "objects", "the table of allocation sites was full"},
    [LOSS_ALLOC_SIZE] = {"alloc", "places", "the class was not found, so the bytes are not known"},
    [LOSS_ALLOC_FOLLOW] = {"alloc", "references", "there was no memory to follow more"},
    [LOSS_ALLOC_STOPPED] = {"alloc", "bytes", TABLE_HELD},
    [LOSS_ALLOC_STOPPED_OBJECTS] = {"alloc", "objects", TABLE_HELD},
    [LOSS_ALLOC_UNSAVED] = {"alloc", "milliseconds at the end", ENDED_STOPPED},
    [LOSS_ALLOC_RUNNING] = {"alloc", "methods", RAN_BEFORE},
    [LOSS_COVER_RUNNING] = {"coverage", "methods", RAN_BEFORE},
    [LOSS_TIMES_RUNNING] = {"times", "methods", RAN_BEFORE},
    [LOSS_LOG_RUNNING] = {"log", "methods", LOSS_RAN_BEFORE "recorded" LOSS_NEXT_CALL},
    [LOSS_TRACE_RUNNING] = {"trace", "methods", LOSS_RAN_BEFORE "traced" LOSS_NEXT_CALL},
    [LOSS_TRACE_HIDDEN] = {"trace", "classes",
                           "no agent may change the class of a lambda or method reference, or a "
                           "hidden class, so that calls of its methods are not recorded"},
    [LOSS_TRACE_LEFT] = {"trace", "methods",
                         "no probes could be placed in its code, so that calls of it are not "
                         "recorded"},
    [LOSS_TIMES_THREAD] = {"times", "threads", "there was no memory for more calls"},
    [LOSS_COVERAGE] = {"coverage", "methods", "there was no room for more lines"},
    [LOSS_COVER_STOPPED] = {"coverage", "methods",
                            "another tool had stopped the thread that held the table of methods"},
    [LOSS_COVER_UNSAVED] = {"coverage", "milliseconds at the end", ENDED_STOPPED},
    [LOSS_TIMES_TIMER] = {"times", "threads",
                          "the system gave no timer, without which no CPU time is known"},
    [LOSS_TIMES_UNREAD] = {"times", "milliseconds of CPU time",
                           "too few of the threads that ended early had a reading of the clock; "
                           "the time is a row of its own, without a method"},
    [LOSS_THREAD_NAME] = {"threads", "names", "there was no memory for more"},
    [LOSS_WAITS_STOPPED] = {"threads", "waits",
                            "another tool had stopped the thread that held the table of virtual "
                            "threads"},
    [LOSS_VIRTUAL_EXISTING] = {"threads", "virtual threads",
                               "the JDK does not track what existed before it began, or too much "
                               "existed; each is shown from when it next runs"},
    [LOSS_VIRTUAL_LIST] = {"threads", "lists of virtual threads",
                           "the JDK does not list those that existed before, so each is shown from "
                           "when it next runs"},
    [LOSS_HOLD_RATE] = {"locks", "holds", "a thread had more at once or in a second than are kept"},
    [LOSS_REQUEST_RATE] = {"requests", "details of requests",
                           "requests came too fast, so those of a sample and of the slowest are "
                           "kept"},
    [LOSS_REQUEST_WORK] = {"requests", "units of work", "a slow request had more than are kept"},
    [LOSS_REQUEST_TABLE] = {"requests", "requests and units of work",
                            "more were in progress at once than can be followed"},
    [LOSS_REQUEST_TASK] = {"requests", "tasks", "more were waiting to be run than can be followed"},
    [LOSS_REQUEST_OPEN] = {"requests", "requests", "not ended when the recording ended"},
    [LOSS_REQUEST_RUNNING] = {"requests", "requests",
                              "already in progress when the recording began"},
    [LOSS_WAITS_AGAIN] = {"threads", "waits",
                          "more were in progress at once than a ring repeats in each chunk"},
    [LOSS_THREADS_AGAIN] = {"threads", "threads",
                            "more existed at once than a ring repeats in each chunk"},
    [LOSS_BUDGET_WAITS] = {"threads", "waits",
                           "shorter than 1 ms, and the budget of the recording was spent"},
    [LOSS_BUDGET_WAKES] = {"threads", "wake-ups", "the budget of the recording was spent"},
    [LOSS_VM_COLLECTION] = {"events", "collections",
                            "there were more in a tenth of a second than are kept"},
    [LOSS_VM_LOG] = {"events", "VM log lines", "lines arrived faster than the agent could read"},
    [LOSS_VM_LINES] = {"events", "VM log lines", "not in the expected form"},
    [LOSS_VM_LOG_CUT] = {"events", "VM log parts",
                         "something in the process cut off the log, and what it held is gone"},
    [LOSS_VM_PAUSES] = {"events", "collection pauses",
                        "the VM counted more pauses than its log listed"},
    [LOSS_STACK] = {"recording", "stacks", "there was no memory for more"},
    [LOSS_STACK_CALLERS] = {"recording", "callers of events",
                            "there was no memory for more stacks; innermost frames are kept"},
    [LOSS_NAME] = {"recording", "names", "no longer known to the VM"},
    [LOSS_CONSTANT] = {"recording", "names", "there was no room for more in the chunk"},
};

/* Things that lost events contained. They have the reason of the events: the file had no room. */
static const struct jfr_loss_row held_rows[JFR_HELDS] = {
    [HELD_OBJECTS] = {"alloc", "objects", .of = "sites"},
    [HELD_BYTES] = {"alloc", "bytes", .of = "sites"},
    [HELD_EXCEPTIONS] = {"exceptions", "exceptions", .of = "counts"},
    [HELD_CALLS] = {"times", "calls", .of = "rows"},
    [HELD_REQUESTS] = {"requests", "requests", .of = "totals"},
};

/*
 * Returns why the file did not grow. error: the negative errno with which the system refused it, or
 * 0 if it was only too slow.
 */
static const char *room_reason(int error)
{
    switch (error) {
    case -ENOSPC:
    case -EDQUOT:
        return "the file could not grow: no space was left on the disk";
    case -EFBIG:
        return "the file could not grow: it had reached the limit of its size";
    case -EIO:
        return "the file could not grow: its disk failed";
    default:
        return "the file did not grow in time";
    }
}

static const char *const writer_reasons[JFR_LOST_REASONS] = {
    [LOST_BUSY] = "more threads wrote at once than there are buffers",
    [LOST_SIZE] = "larger than expected",
    [LOST_SHAPE] = "values were not of the declared types: a defect of jvmscope",
};

void jfr_lose(struct jfr_writer *w, enum jfr_loss loss, uint64_t n)
{
    if (w && n)
        atomic_fetch_add_explicit(&w->losses[loss].total, n, memory_order_relaxed);
}

void jfr_lose_named(struct jfr_writer *w, enum jfr_loss loss, uint64_t n, const char *names)
{
    char *reason = NULL, *none = NULL;
    if (!w || !n)
        return;
    if (asprintf(&reason, "%s: %s", jfr_loss_rows[loss].reason, names) < 0)
        reason = NULL;
    if (reason && !atomic_compare_exchange_strong(&w->named_reasons[loss], &none, reason))
        free(reason);
    jfr_lose(w, loss, n);
}

/* Returns the row of a loss, with the names that its reason contains. */
static struct jfr_loss_row row_of_loss(struct jfr_writer *w, size_t loss)
{
    struct jfr_loss_row row = jfr_loss_rows[loss];
    const char *named = atomic_load(&w->named_reasons[loss]);
    row.reason = named ? named : row.reason;
    return row;
}

/*
 * Sets the time after which all happened that a counter has counted and that is not reported yet.
 */
static void lower_bound(struct loss_counter *c, uint64_t ns)
{
    uint64_t since = atomic_load(&c->since_ns);
    while ((!since || since > ns) && !atomic_compare_exchange_weak(&c->since_ns, &since, ns))
        ;
}

void jfr_lose_held(struct jfr_writer *w, enum jfr_held what, uint64_t n)
{
    lower_bound(&w->lost_held[what], w->opened_ns);
    atomic_fetch_add_explicit(&w->lost_held[what].total, n, memory_order_relaxed);
}

/*
 * Sets a counter's total. A capture may have found the new losses in a buffer that was filled
 * before the previous count, but after the count before that one, whose time is therefore their
 * lower bound. since_ns is set before the total, so that a reader that sees the new total also sees
 * the time after which the losses occurred.
 */
static void count(const struct jfr_writer *w, struct loss_counter *c, uint64_t total)
{
    uint64_t last = atomic_exchange(&c->counted_ns[0], now_ns()), none = 0;
    uint64_t before = atomic_exchange(&c->counted_ns[1], last);
    if (total > atomic_load(&c->total))
        atomic_compare_exchange_strong(&c->since_ns, &none, before ? before : w->opened_ns);
    atomic_store(&c->total, total);
}

void jfr_lose_total(struct jfr_writer *w, enum jfr_loss loss, uint64_t total)
{
    if (w)
        count(w, &w->losses[loss], total);
}

void jfr_lose_total_from(struct jfr_writer *w, enum jfr_loss loss, uint64_t total,
                         uint64_t first_ns)
{
    if (w && total)
        atomic_store(&w->losses[loss].first_ns, first_ns);
    jfr_lose_total(w, loss, total);
}

void jfr_lose_since(struct jfr_writer *w, enum jfr_loss loss, uint64_t n)
{
    if (w)
        count(w, &w->losses[loss], atomic_load(&w->losses[loss].total) + n);
}

static void lose_of_type(struct jfr_writer *w, uint32_t type, enum lost_reason reason, uint64_t n)
{
    uint32_t i = MIN(type, (uint32_t)JFR_LOST_TYPES - 1);
    atomic_fetch_add_explicit(&w->lost_of_type[i][reason].total, n, memory_order_relaxed);
}

void losses_count_event(struct jfr_writer *w, uint32_t type, enum lost_reason reason)
{
    lose_of_type(w, type, reason, 1);
}

void jfr_lose_events(struct jfr_writer *w, uint32_t type, uint64_t n)
{
    uint32_t i = MIN(type, (uint32_t)JFR_LOST_TYPES - 1);
    lower_bound(&w->lost_of_type[i][LOST_ROOM], w->opened_ns);
    lose_of_type(w, type, LOST_ROOM, n);
}

/* Counts n losses whose times are known. */
static void count_timed(struct jfr_writer *w, struct loss_counter *c, uint64_t n, uint64_t from_ns,
                        uint64_t to_ns)
{
    pthread_mutex_lock(&w->work);
    c->from_ns = c->timed ? MIN(c->from_ns, from_ns) : from_ns;
    c->to_ns = c->timed ? MAX(c->to_ns, to_ns) : to_ns;
    c->timed += n;
    atomic_fetch_add_explicit(&c->total, n, memory_order_relaxed);
    pthread_mutex_unlock(&w->work);
}

void jfr_lose_at(struct jfr_writer *w, enum jfr_loss loss, uint64_t ns)
{
    if (w)
        count_timed(w, &w->losses[loss], 1, ns, ns);
}

void jfr_lose_event_at(struct jfr_writer *w, uint32_t type, uint64_t from_ns, uint64_t to_ns)
{
    uint32_t i = MIN(type, (uint32_t)JFR_LOST_TYPES - 1);
    count_timed(w, &w->lost_of_type[i][LOST_ROOM], 1, from_ns, to_ns);
}

uint64_t losses_of_events(const struct jfr_writer *w, enum lost_reason reason)
{
    struct jfr_writer *v = (struct jfr_writer *)w; /* C17's atomic loads do not accept const */
    uint64_t sum = 0;
    for (size_t i = 0; i < JFR_LOST_TYPES; i++)
        sum += atomic_load(&v->lost_of_type[i][reason].total);
    return sum;
}

/*
 * Writes what a counter has counted since its last event. If there is no room, it is written later.
 * late: how long before the count what was lost may have happened, if its time is not known.
 */
static void report(struct jfr_writer *w, struct loss_counter *c, const struct jfr_loss_row *row,
                   uint64_t late, uint64_t now)
{
    struct jfr_event e;
    uint64_t total = atomic_load(&c->total);
    if (total <= c->reported)
        return;
    if (!jfr_slot_begin(w, &w->chunk.own, w->chunk.region, true, 300 + strlen(row->reason), &e)) {
        lower_bound(c, w->reported_ns); /* reported_ns will be later by then */
        return;
    }
    uint64_t since = atomic_exchange(&c->since_ns, 0), until = now;
    since = since ? MIN(since, w->reported_ns)
                  : w->reported_ns - MIN(late, w->reported_ns - w->opened_ns);
    since = MIN(MAX(since, atomic_load(&c->first_ns)), now);
    if (c->timed == total - c->reported) {
        since = c->from_ns;
        until = c->to_ns;
    } else if (c->timed) {
        since = MIN(since, c->from_ns);
    }
    c->timed = 0;
    jfr_put_time(&e, since);
    jfr_put_long(&e, (int64_t)(until - since));
    jfr_put_string(&e, row->capture);
    jfr_put_string(&e, row->what);
    jfr_put_string(&e, row->reason);
    jfr_put_long(&e, (int64_t)(total - c->reported));
    jfr_put_long(&e, (int64_t)total);
    jfr_put_string(&e, row->of ? row->of : "");
    jfr_slot_commit(&e, jfr_code_of_type(JFR_LOST + JFR_TYPE_BASE));
    atomic_fetch_add_explicit(&w->chunk.own.events, 1, memory_order_relaxed);
    c->reported = total;
}

/* Returns the row for a counter of an event type. */
static struct jfr_loss_row row_of_type(const struct jfr_writer *w, size_t type,
                                       enum lost_reason reason)
{
    const struct event_row *row =
        catalog_find(type < w->types.len ? w->types.data[type]->row->name : "");
    return (struct jfr_loss_row){
        .capture = row->capture,
        .what = row->what,
        .reason = reason == LOST_ROOM ? room_reason(atomic_load(&((struct jfr_writer *)w)->failure))
                                      : writer_reasons[reason]};
}

void jfr_each_loss(const struct jfr_writer *w,
                   void (*each)(void *context, const struct jfr_loss_row *row, uint64_t total),
                   void *context)
{
    struct jfr_writer *v = (struct jfr_writer *)w; /* C17's atomic loads do not accept const */
    uint64_t total;
    for (size_t i = 0; i < JFR_LOSSES; i++)
        if ((total = atomic_load(&v->losses[i].total))) {
            struct jfr_loss_row row = row_of_loss(v, i);
            each(context, &row, total);
        }
    pthread_mutex_lock(&v->dict);
    for (size_t i = 0; i < JFR_LOST_TYPES; i++)
        for (size_t k = 0; k < JFR_LOST_REASONS; k++)
            if ((total = atomic_load(&v->lost_of_type[i][k].total))) {
                struct jfr_loss_row row = row_of_type(w, i, (enum lost_reason)k);
                each(context, &row, total);
            }
    pthread_mutex_unlock(&v->dict);
}

void losses_write(struct jfr_writer *w, bool last)
{
    uint64_t now = now_ns();
    if (!last && now - w->reported_ns < REPORT_NS)
        return;
    jfr_lose_total(w, LOSS_STACK, atomic_load(&w->traces.lost));
    jfr_lose_total(w, LOSS_STACK_CALLERS, atomic_load(&w->traces.shortened));
    jfr_lose_total(w, LOSS_NAME, atomic_load(&w->unresolved));
    jfr_lose_total(w, LOSS_CONSTANT, atomic_load(&w->lost_constants));
    for (size_t i = 0; i < JFR_LOSSES; i++) {
        struct jfr_loss_row row = row_of_loss(w, i);
        report(w, &w->losses[i], &row, 0, now);
    }
    for (size_t i = 0; i < JFR_LOST_TYPES; i++)
        for (size_t k = 0; k < JFR_LOST_REASONS; k++) {
            if (atomic_load(&w->lost_of_type[i][k].total) == w->lost_of_type[i][k].reported)
                continue;
            struct jfr_loss_row row = row_of_type(w, i, (enum lost_reason)k);
            report(w, &w->lost_of_type[i][k], &row, EVENT_LATE_NS, now);
        }
    for (size_t i = 0; i < JFR_HELDS; i++) {
        struct jfr_loss_row row = held_rows[i];
        row.reason = room_reason(atomic_load(&w->failure));
        report(w, &w->lost_held[i], &row, 0, now);
    }
    w->reported_ns = now;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/times/report.h"

#include "agent/capture/times/methods.h"
#include "agent/output/dictionary.h"
#include "agent/session/session.h"
#include "agent/stacks/names.h"
#include "base/clock.h"
#include "base/map.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { DEPTH_MAX = 1024, DRAIN_EVERY = 256, SAVED_PATHS = 20000, FEWEST_READINGS = 10 };

/*
 * CPU time without a reading: less than the first part of all, or than 10 ms, is within the error
 * of any time, and more than the second part, and at least 100 ms, is stated as lost.
 */
#define UNREAD_LEAST 0.01
#define UNREAD_MOST  0.05

/* A trace combines the paths that end in the same methods. */
struct trace_row {
    uint64_t trace;  /* index in `traces` */
    uint32_t thread; /* 0 unless thread=y */
    uint64_t calls, samples, squares, slowest_ns;
    int64_t raw_ns, self_ns;
    int64_t open_ns; /* the part of self_ns that belongs to calls that have not returned */
    bool known;      /* self_ns is known */
};

struct report {
    struct session *s;
    const struct times_report_costs *costs;
    bool elapsed, by_thread;
    bool totals; /* one row per method, with all that was counted */
    bool save;   /* rows for which there is no room are written by a later report */
    uint64_t unread_ns;
    bool is_loss; /* unread_ns is stated as lost */
    struct times_paths paths;
    struct strpool traces; /* thread, then method numbers, innermost first */
    VEC(struct trace_row) rows;
};

/*
 * What earlier reports of the session have written, by trace, so that each report shows only what
 * is new.
 */
static struct strpool reported_traces;
static VEC(struct trace_row) reported;

#define CALL_FIELDS                                                              \
    JFR_FIELDS({"calls", "Calls", "long", JFR_UNITS},                            \
               {"samples", "Readings of the CPU Clock", "long", JFR_UNITS},      \
               {"selfTime", "Self Time", "long", JFR_NANOS},                     \
               {"rawSelfTime", "Self Time With Probes", "long", JFR_NANOS},      \
               {"slowest", "Slowest Call", "long", JFR_NANOS},                   \
               {"openTime", "Self Time of Unfinished Calls", "long", JFR_NANOS}, \
               {"squares", "Sum of the Squares of the Readings (us2)", "long"})

enum { CALL_TIMES, CALL_TIMES_COST, CALL_TIMES_LEFT, CALL_TIMES_TOTAL };

/* These events are described in doc/cpu-times.md and doc/format.md. */
static const struct jfr_type types[] = {
    {.name = "jvmscope.CallTimes",
     .label = "Call Times",
     .category = "jvmscope",
     .description = "All calls of a method from one stack, and the time in the method itself",
     .kind = JFR_EVENT,
     .has = JFR_HAS_THREAD | JFR_HAS_STACK,
     .fields = CALL_FIELDS},
    {.name = "jvmscope.CallTimesCost",
     .label = "Cost of Call Times",
     .category = "jvmscope",
     .description = "The measured cost of a probed call, which is subtracted from selfTime",
     .kind = JFR_EVENT,
     .fields = JFR_FIELDS({"clock", "Clock", "java.lang.String"},
                          {"callCost", "Cost of a Call (ps)", "long"},
                          {"inside", "Cost Within the Call's Own Time (ps)", "long"},
                          {"countCost", "Cost of a Call That Is Only Counted (ps)", "long"})},
    {.name = "jvmscope.CallTimesLeft",
     .label = "Method Not Timed",
     .category = "jvmscope",
     .description = "A method whose calls are not counted or not timed; their time counts as their "
                    "callers' time",
     .kind = JFR_EVENT,
     .has = JFR_HAS_STACK,
     .fields = JFR_FIELDS({"reason", "Reason", "java.lang.String"})},
    {.name = "jvmscope.CallTimesTotal",
     .label = "Total Call Times",
     .category = "jvmscope",
     .description = "All calls of a method since the start of the recording, from any caller; only "
                    "the last event of a method counts, and only the part that exceeds its Call "
                    "Times",
     .kind = JFR_EVENT,
     .has = JFR_HAS_THREAD | JFR_HAS_STACK,
     .fields = CALL_FIELDS},
};

/*
 * Returns the time of a call for which the readings show seen_ns on average. The result is negative
 * if they show less than for an empty call.
 */
static double times_true_ns(const struct times_report_costs *costs, double seen_ns)
{
    const struct times_point *p = costs->curve;
    uint32_t n = costs->points, i = 1;
    if (n == 0 || seen_ns <= p[0].seen_ns)
        return seen_ns - (n ? p[0].seen_ns - p[0].true_ns : 0);
    if (seen_ns >= p[n - 1].seen_ns)
        return seen_ns - (p[n - 1].seen_ns - p[n - 1].true_ns);
    while (p[i].seen_ns < seen_ns)
        i++;
    double part = (seen_ns - p[i - 1].seen_ns) / (p[i].seen_ns - p[i - 1].seen_ns);
    return p[i - 1].true_ns + part * (p[i].true_ns - p[i - 1].true_ns);
}

/*
 * Returns the part of the cost of a call's probes that counts as time of the call; the rest counts
 * as time of its caller.
 */
static double inside_ns(const struct report *r)
{
    return r->costs->points ? r->costs->curve[0].seen_ns - r->costs->curve[0].true_ns
                            : r->costs->call_ns / 2;
}

static uint64_t path_trace(struct report *r, uint32_t path, uint32_t depth)
{
    int32_t key[DEPTH_MAX + 1];
    const struct times_path *all = r->paths.all.data;
    uint32_t n = 0;
    key[n++] = r->by_thread ? (int32_t)all[path].thread : 0;
    for (uint32_t p = path; p && n <= MIN(depth, DEPTH_MAX); p = all[p].parent)
        key[n++] = all[p].method;
    return (uint64_t)strpool_add(&r->traces, (const char *)key, n * sizeof(key[0]));
}

/*
 * Returns the self time of a path without the time of the probes. caller_ns is the time that the
 * probes of its callees took outside of the callees.
 */
static int64_t corrected_ns(const struct report *r, const struct times_path *path, int64_t raw_ns,
                            double caller_ns)
{
    double seen = (double)raw_ns - caller_ns, calls = (double)path->count;
    if (times_method_is_small(path->method))
        return 0;
    if (!path->count || !r->elapsed)
        return (int64_t)(seen - calls * inside_ns(r));
    return (int64_t)(calls * times_true_ns(r->costs, seen / calls));
}

/* Returns the row of a trace, which is added if necessary, or NULL without memory. */
static struct trace_row *row_of(struct report *r, uint64_t trace, uint32_t thread)
{
    if ((int64_t)trace < 0 ||
        (trace == r->rows.len &&
         vec_push(&r->rows, ((struct trace_row){.trace = trace, .thread = thread})) < 0))
        return NULL;
    return &r->rows.data[trace];
}

/* Adds the row of the time without a reading, which belongs to no method and no thread. */
static int add_unread(struct report *r)
{
    const int32_t key[] = {0, TIMES_UNREAD};
    double all = (double)r->unread_ns;
    for (size_t i = 0; i < r->rows.len; i++)
        all += (double)r->rows.data[i].raw_ns;
    if (r->unread_ns < 10 * NS_PER_MS || (double)r->unread_ns < UNREAD_LEAST * all)
        r->unread_ns = 0;
    r->is_loss = r->unread_ns >= 100 * NS_PER_MS && (double)r->unread_ns > UNREAD_MOST * all;
    if (!r->unread_ns && r->save)
        return 0;
    struct trace_row *row =
        row_of(r, (uint64_t)strpool_add(&r->traces, (const char *)key, sizeof(key)), 0);
    if (!row)
        return -ENOMEM;
    row->raw_ns = row->self_ns = (int64_t)r->unread_ns;
    return 0;
}

/*
 * Computes the self time of every path, with and without the probes, then combines the paths of
 * each trace into a row.
 */
static int make_rows(struct report *r, uint32_t depth)
{
    size_t n = r->paths.all.len;
    const struct times_path *all = r->paths.all.data;
    int64_t *raw = calloc(n, sizeof(*raw));
    double *callees = calloc(n, sizeof(*callees)), outside = r->costs->call_ns - inside_ns(r);
    int result = raw && callees ? 0 : -ENOMEM;
    for (size_t i = 1; i < n && result == 0; i++) {
        raw[i] += (int64_t)(r->elapsed ? all[i].total_ns : all[i].cpu_ns);
        if (all[i].parent) {
            callees[all[i].parent] +=
                (double)all[i].count *
                (times_method_is_small(all[i].method) ? r->costs->count_ns : outside);
            if (r->elapsed)
                raw[all[i].parent] -= (int64_t)all[i].total_ns;
        }
    }
    for (size_t i = 1; i < n && result == 0; i++) {
        if (all[i].method == r->costs->calibration)
            continue;
        struct trace_row *row = row_of(r, path_trace(r, (uint32_t)i, depth), all[i].thread);
        result = row ? 0 : -ENOMEM;
        if (row) {
            row->calls += all[i].count;
            row->samples += all[i].samples;
            row->squares += all[i].squares;
            row->raw_ns += raw[i];
            int64_t self_ns = corrected_ns(r, &all[i], raw[i], callees[i]);
            row->self_ns += self_ns;
            row->open_ns += MIN((int64_t)all[i].open_ns, MAX(self_ns, 0));
            row->slowest_ns = MAX(row->slowest_ns, all[i].slowest_ns);
        }
    }
    free(raw);
    free(callees);
    return result == 0 && !r->elapsed ? add_unread(r) : result;
}

/* Subtracts what was reported before from the rows, and keeps the totals for the next time. */
static int subtract_reported(struct report *r)
{
    for (size_t i = 0; i < r->rows.len; i++) {
        struct trace_row *row = &r->rows.data[i], sums = *row;
        struct str key = strpool_get(&r->traces, row->trace);
        int64_t number = strpool_add(&reported_traces, key.data, key.len);
        if (number < 0)
            return -ENOMEM;
        if ((size_t)number == reported.len) {
            int pushed = vec_push(&reported, sums);
            if (pushed < 0)
                return pushed;
            continue;
        }
        struct trace_row *before = &reported.data[number];
        row->calls -= before->calls;
        row->samples -= before->samples;
        row->squares -= before->squares;
        row->raw_ns -= before->raw_ns;
        row->self_ns -= before->self_ns;
        row->open_ns -= before->open_ns;
        *before = sums;
    }
    return 0;
}

static int32_t row_method(const struct report *r, const struct trace_row *row)
{
    int32_t method;
    struct str key = strpool_get(&r->traces, row->trace);
    memcpy(&method, key.data + sizeof(method), sizeof(method)); /* follows the thread */
    return method;
}

/*
 * Returns whether a row's time is known: every call was timed, or the CPU clock was read often
 * enough.
 */
static bool is_time_known(const struct report *r, const struct trace_row *row)
{
    int32_t method = row_method(r, row);
    if (method == TIMES_UNREAD)
        return row->raw_ns > 0;
    return !times_method_is_small(method) && (r->elapsed || row->samples >= FEWEST_READINGS);
}

/* Orders rows whose time is known by it; the others follow, ordered by their calls. */
static int by_self(const void *a, const void *b)
{
    const struct trace_row *x = a, *y = b;
    if (x->known != y->known)
        return x->known ? -1 : 1;
    if (x->known && x->self_ns != y->self_ns)
        return x->self_ns < y->self_ns ? 1 : -1;
    if (x->calls != y->calls)
        return x->calls < y->calls ? 1 : -1;
    return x->trace < y->trace ? -1 : x->trace > y->trace;
}

/* Stores the frames of a trace, innermost first, and returns their number. */
static uint32_t trace_frames(const struct report *r, const struct trace_row *row,
                             struct jfr_frame *frames)
{
    struct str key = strpool_get(&r->traces, row->trace);
    uint32_t n = (uint32_t)(key.len / sizeof(int32_t)) - 1;
    for (uint32_t i = 0; i < n; i++) {
        int32_t method;
        memcpy(&method, key.data + (i + 1) * sizeof(method), sizeof(method));
        frames[i] = (struct jfr_frame){
            .method = (uintptr_t)times_method_id(method), .bci = -1, .type = JFR_FRAME_JAVA};
    }
    return n;
}

static void write_times(struct report *r, JNIEnv *jni)
{
    struct dictionary *d = r->s->out.dictionary;
    struct hprof_text *text = &r->s->out.text;
    struct jfr_frame frames[DEPTH_MAX];
    int64_t total = 0;
    uint64_t calls = 0;
    for (size_t i = 0; i < r->rows.len; i++) {
        total += MAX(0, r->rows.data[i].self_ns);
        calls += r->rows.data[i].calls;
    }
    double cutoff = r->s->options.v[OPT_CUTOFF].fraction, accumulated = 0;
    size_t n = 0;
    uint32_t *serials = calloc(r->rows.len + 1, sizeof(*serials));
    for (size_t i = 0; serials && i < r->rows.len; i++) {
        struct trace_row row = r->rows.data[i];
        double share = row.known ? (double)MAX(0, row.self_ns) / (double)MAX(total, 1)
                                 : (double)row.calls / (double)MAX(calls, 1);
        if (share < cutoff || (!row.calls && !row.known))
            continue;
        uint32_t depth = trace_frames(r, &row, frames);
        serials[n] = dictionary_trace(d, jni, frames, depth, row.thread);
        r->rows.data[n++] = row;
    }
    pthread_mutex_lock(&r->s->out.lock);
    hprof_text_ranked_begin(text, HPROF_RANKED_TIMES, total > 0 ? (uint64_t)total / NS_PER_MS : 0,
                            time(NULL));
    pthread_mutex_unlock(&r->s->out.lock);
    for (size_t i = 0; i < n; i++) {
        const struct trace_row *row = &r->rows.data[i];
        double self =
            row->known && total > 0 ? (double)MAX(0, row->self_ns) / (double)total * 100 : 0;
        accumulated += self;
        const char *name = dictionary_trace_method(d, serials[i]);
        pthread_mutex_lock(&r->s->out.lock);
        hprof_text_ranked(text, HPROF_RANKED_TIMES, (uint32_t)i + 1, self, accumulated, row->calls,
                          serials[i], name);
        pthread_mutex_unlock(&r->s->out.lock);
    }
    pthread_mutex_lock(&r->s->out.lock);
    hprof_text_ranked_end(text, HPROF_RANKED_TIMES);
    pthread_mutex_unlock(&r->s->out.lock);
    free(serials);
}

static void old_name(JNIEnv *jni, uint64_t id, char *to, size_t size)
{
    const struct method *m = names_method(jni, (jmethodID)(uintptr_t)id);
    char class_name[512];
    names_dotted(m ? m->class_name : "", class_name, sizeof(class_name));
    snprintf(to, size, "%s.%s%s", class_name, m ? m->name : "", m ? m->descriptor : "");
}

static int by_calls(const void *a, const void *b)
{
    const struct trace_row *x = a, *y = b;
    if (x->calls != y->calls)
        return x->calls < y->calls ? 1 : -1;
    return by_self(a, b);
}

static void write_old(struct report *r, JNIEnv *jni)
{
    struct jfr_frame frames[DEPTH_MAX];
    qsort(r->rows.data, r->rows.len, sizeof(*r->rows.data), by_calls);
    pthread_mutex_lock(&r->s->out.lock);
    hprof_text_old_begin(&r->s->out.text);
    for (size_t i = 0; i < r->rows.len; i++) {
        const struct trace_row *row = &r->rows.data[i];
        char callee[1024], caller[1024];
        uint32_t n = trace_frames(r, row, frames);
        if (n == 0 || row->calls == 0)
            continue;
        old_name(jni, frames[0].method, callee, sizeof(callee));
        if (n > 1)
            old_name(jni, frames[1].method, caller, sizeof(caller));
        hprof_text_old(&r->s->out.text, row->calls, callee, n > 1 ? caller : NULL,
                       (uint64_t)MAX(0, row->raw_ns) / NS_PER_MS);
    }
    pthread_mutex_unlock(&r->s->out.lock);
}

/*
 * Reports methods that are not counted or not timed, except those that an earlier report of the
 * session mentioned.
 */
static int write_marks(struct jfr_writer *w, uint32_t type, uint64_t now)
{
    const char *why;
    for (uint32_t at = 0; times_method_next_mark(&at, &why); at++) {
        struct jfr_event e;
        const struct jfr_frame frame = {
            .method = (uintptr_t)times_method_id(at), .bci = -1, .type = JFR_FRAME_JAVA};
        uint64_t trace = jfr_trace_growing(w, &frame, 1, false);
        if (!jfr_begin_growing(w, type, 0, &e))
            return -ENOSPC;
        jfr_put_time(&e, now);
        jfr_put_long(&e, (int64_t)trace);
        jfr_put_string(&e, why);
        jfr_commit(&e);
    }
    return 0;
}

/*
 * Returns whether a row has nothing new. The time may have changed even without a new call or
 * reading, because the cost of the calls that were reported before is now known more exactly.
 */
static bool is_empty(const struct trace_row *row)
{
    return !row->calls && !row->samples && !row->raw_ns && !row->self_ns && !row->open_ns;
}

/* Makes the next report include a row again for which there was no room in this one. */
static void take_back(const struct report *r, const struct trace_row *row)
{
    struct str key = strpool_get(&r->traces, row->trace);
    int64_t number = strpool_add(&reported_traces, key.data, key.len);
    if (number < 0 || (size_t)number >= reported.len)
        return;
    struct trace_row *before = &reported.data[number];
    before->calls -= row->calls;
    before->samples -= row->samples;
    before->squares -= row->squares;
    before->raw_ns -= row->raw_ns;
    before->self_ns -= row->self_ns;
    before->open_ns -= row->open_ns;
}

/*
 * Handles the rows from `from` on, for which there was no room. At a save nothing is lost: totals
 * are saved again, and other rows are taken back and written by a later report. At other reports
 * rows that are not totals are counted as lost.
 */
static void lose_rows(const struct report *r, size_t from, uint32_t event_type)
{
    for (size_t i = from; i < r->rows.len && !r->totals; i++) {
        const struct trace_row *row = &r->rows.data[i];
        if (is_empty(row))
            continue;
        if (r->save) {
            take_back(r, row);
            continue;
        }
        jfr_lose_events(r->s->out.jfr, event_type, 1);
        jfr_lose_held(r->s->out.jfr, HELD_CALLS, row->calls);
    }
}

static int write_recording(struct report *r, JNIEnv *jni, uint64_t *ret_events)
{
    struct jfr_writer *w = r->s->out.jfr;
    struct jfr_frame frames[DEPTH_MAX];
    uint32_t ids[ARRAY_SIZE(types)];
    int result = jfr_declare(w, types, ARRAY_SIZE(types), ids);
    if (result < 0)
        return result;
    uint32_t event_type = ids[r->totals ? CALL_TIMES_TOTAL : CALL_TIMES];
    uint32_t cost_type = ids[CALL_TIMES_COST];
    uint64_t now = now_ns();
    struct jfr_event e;
    if (jfr_begin_growing(w, cost_type, 0, &e)) {
        jfr_put_time(&e, now);
        jfr_put_string(&e, r->elapsed ? "elapsed" : "cpu");
        jfr_put_long(&e, (int64_t)(r->costs->call_ns * 1000));
        jfr_put_long(&e, (int64_t)(inside_ns(r) * 1000));
        jfr_put_long(&e, (int64_t)(r->costs->count_ns * 1000));
        jfr_commit(&e);
    }
    result = write_marks(w, ids[CALL_TIMES_LEFT], now);
    if (result < 0) {
        lose_rows(r, 0, event_type);
        return result;
    }
    for (size_t i = 0; i < r->rows.len; i++) {
        const struct trace_row *row = &r->rows.data[i];
        if (is_empty(row))
            continue;
        uint32_t n = trace_frames(r, row, frames);
        bool unread = row_method(r, row) == TIMES_UNREAD;
        uint64_t trace = unread ? 0 : jfr_trace_growing(w, frames, n, false);
        if (!jfr_begin_growing(w, event_type, 0, &e)) {
            lose_rows(r, i, event_type);
            return -ENOSPC;
        }
        jfr_put_time(&e, now);
        jfr_put_long(&e, row->thread);
        jfr_put_long(&e, (int64_t)trace);
        jfr_put_long(&e, (int64_t)row->calls);
        jfr_put_long(&e, (int64_t)row->samples);
        jfr_put_long(&e, row->self_ns);
        jfr_put_long(&e, row->raw_ns);
        jfr_put_long(&e, (int64_t)row->slowest_ns);
        jfr_put_long(&e, row->open_ns);
        jfr_put_long(&e, (int64_t)row->squares);
        jfr_commit(&e);
        if (++*ret_events % DRAIN_EVERY == 0)
            session_drain(r->s, jni);
    }
    return 0;
}

int times_report(struct session *s, JNIEnv *jni, const struct times_tree *t,
                 const struct times_report_costs *costs, uint64_t unread_ns, bool elapsed,
                 bool by_thread, bool save, uint64_t *ret_events)
{
    struct report r = {.s = s,
                       .costs = costs,
                       .elapsed = elapsed,
                       .by_thread = by_thread,
                       .save = save,
                       .unread_ns = unread_ns};
    bool old = option_is(&s->options, OPT_CPU, "old");
    uint32_t depth = old ? 2 : (uint32_t)MIN(s->options.v[OPT_DEPTH].number, DEPTH_MAX);
    int result = times_merge(t, by_thread, now_ns(), &r.paths);
    r.totals = save && r.paths.all.len > SAVED_PATHS;
    if (result == 0)
        result = make_rows(&r, r.totals ? 1 : depth);
    if (r.is_loss && !save && s->out.jfr)
        jfr_lose_total(s->out.jfr, LOSS_TIMES_UNREAD, unread_ns / NS_PER_MS);
    if (result == 0 && !r.totals)
        result = subtract_reported(&r);
    if (result == 0) {
        for (size_t i = 0; i < r.rows.len; i++)
            r.rows.data[i].known = is_time_known(&r, &r.rows.data[i]);
        qsort(r.rows.data, r.rows.len, sizeof(*r.rows.data), by_self);
        if (s->out.format->events)
            result = write_recording(&r, jni, ret_events);
        else if (old)
            write_old(&r, jni);
        else
            write_times(&r, jni);
    }
    times_paths_release(&r.paths);
    strpool_release(&r.traces);
    vec_release(&r.rows);
    return result;
}

void times_report_release(void)
{
    strpool_release(&reported_traces);
    vec_release(&reported);
}

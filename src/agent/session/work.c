/* SPDX-License-Identifier: Apache-2.0 */
/* The work of the captures of a session, in turn: draining, flushing, saving and dumping. */
#include "agent/common/fault.h"
#include "agent/output/dictionary.h"
#include "agent/output/recording.h"
#include "agent/session/captures.h"
#include "agent/session/private.h"
#include "agent/session/thread_notes.h"
#include "agent/stacks/names.h"
#include "base/clock.h"
#include "base/parse.h"
#include "jfr/writer.h"

#include <stdio.h>

#define EARLY_NS      (100 * NS_PER_MS)
#define SAVE_EVENT_NS (1500 * UINT64_C(1000)) /* pause per event that a save wrote */

static const struct jfr_type counted_type = {
    .name = "jvmscope.Counted",
    .label = "Counts Saved",
    .category = "jvmscope",
    .description = "The recording contains the counts of a capture up to this time",
    .kind = JFR_EVENT,
    .fields = JFR_FIELDS({"capture", "Capture", "java.lang.String"}),
};

static const struct jfr_type early_type = {
    .name = "jvmscope.RecordedBefore",
    .label = "Time Recorded Before Start",
    .category = "jvmscope",
    .description = "A capture had already recorded part of this period before the recording began",
    .kind = JFR_EVENT,
    .has = JFR_DURATION,
    .fields = JFR_FIELDS({"capture", "Capture", "java.lang.String"}),
};

bool session_capture_on(const struct session *s, int i)
{
    return captures_has(s->on, i);
}

bool session_capture_reachable(const struct session *s, int i)
{
    return session_capture_on(s, i) && (!captures[i]->reachable || captures[i]->reachable());
}

/* When a recording was closed early, before its last figures were written; 0 if it was not. */
static _Atomic uint64_t shut_ns;

bool session_is_shut(void)
{
    return atomic_load(&shut_ns) != 0;
}

/*
 * Returns whether a capture has been closed early. Nothing more arrives in its buffers, so they are
 * read only after the counts of other captures: reading takes a while, and these go on counting.
 */
static bool is_shut(int i)
{
    return captures[i]->shut && session_is_shut();
}

void session_drain_captures(struct session *s, JNIEnv *jni)
{
    s->last_drain_ns = now_ns();
    for (int i = 0; i < captures_count; i++)
        if (session_capture_on(s, i) && captures[i]->drain && !is_shut(i))
            captures[i]->drain(s, jni);
}

void session_drain(struct session *s, JNIEnv *jni)
{
    if (now_ns() - s->last_drain_ns >= SESSION_DRAIN_MS * NS_PER_MS)
        session_drain_captures(s, jni);
}

/* Writes the captures' current state into a ring's new chunk. */
static void restate_captures(struct session *s, JNIEnv *jni)
{
    uint64_t chunks = jfr_writer_chunks(s->out.jfr);
    if (!option_always(&s->options) || chunks == s->chunks)
        return;
    s->chunks = chunks;
    names_drop();
    recording_restate(s->out.jfr, &s->options);
    for (int i = 0; i < captures_count; i++)
        if (session_capture_on(s, i) && captures[i]->restate)
            captures[i]->restate(s, jni);
}

static void keep_stacks(struct session *s, JNIEnv *jni)
{
    if (!jfr_traces_due(s->out.jfr))
        return;
    for (int i = 0; i < captures_count; i++)
        if (session_capture_on(s, i) && captures[i]->keep_stacks)
            captures[i]->keep_stacks(s, jni);
    jfr_traces_kept(s->out.jfr);
}

/* Flushes the captures; those that have been closed early only if with_shut is set. */
static void flush_captures(struct session *s, JNIEnv *jni, bool with_shut)
{
    s->last_drain_ns = now_ns();
    thread_notes_write(s);
    if (s->out.dictionary)
        dictionary_unloaded(s->out.dictionary);
    for (int i = 0; i < captures_count; i++)
        if (captures[i]->flush && session_capture_reachable(s, i) && (with_shut || !is_shut(i)))
            captures[i]->flush(s, jni);
    if (s->out.jfr) {
        jfr_writer_work(s->out.jfr);
        restate_captures(s, jni);
        keep_stacks(s, jni);
        names_tidy();
    }
    /* Everything that ended before the last round has been handled by now. */
    threads_forget_before(s->last_work_ns, s->out.jfr ? recording_keep_thread : NULL, s->out.jfr);
    s->last_work_ns = now_ns();
}

void session_flush_captures(struct session *s, JNIEnv *jni)
{
    flush_captures(s, jni, true);
}

/*
 * Totals that exceed the records' 32 bits are reported, in addition to being written as the largest
 * number.
 */
static void report_saturated(struct session *s)
{
    pthread_mutex_lock(&s->out.lock);
    unsigned n = s->out.binary.saturated - s->out.saturated_reported;
    s->out.saturated_reported += n;
    pthread_mutex_unlock(&s->out.lock);
    if (!n)
        return;
    session_warn(s, "%s beyond the format's 32 bits, written as %u", COUNT_TEXT(n, "totals"),
                 UINT32_MAX);
}

/*
 * Records that the counts of capture i are complete up to ns. This is not done for a ring, whose
 * counts begin at the start of the ring.
 */
static void write_counted(struct session *s, int i, uint64_t ns)
{
    uint32_t type;
    struct jfr_event e;
    if (!s->out.jfr || option_always(&s->options) || !session_capture_on(s, i) ||
        !captures[i]->counts || jfr_declare(s->out.jfr, &counted_type, 1, &type) < 0 ||
        !jfr_begin_growing(s->out.jfr, type, 64, &e))
        return;
    jfr_put_time(&e, ns);
    jfr_put_string(&e, captures[i]->counts);
    jfr_commit(&e);
}

/*
 * Writes for how long captures had already recorded when the recording began: they change classes
 * one by one.
 */
static void write_early(struct session *s)
{
    for (int i = 0; i < captures_count; i++) {
        uint64_t since = s->capture_started_ns[i];
        uint32_t type;
        struct jfr_event e;
        if (!session_capture_on(s, i) || !captures[i]->changes_classes || captures[i]->begin ||
            s->started_ns - since < EARLY_NS ||
            jfr_declare(s->out.jfr, &early_type, 1, &type) < 0 ||
            !jfr_begin_growing(s->out.jfr, type, 64, &e))
            continue;
        jfr_put_time(&e, since);
        jfr_put_long(&e, (int64_t)(s->started_ns - since));
        jfr_put_string(&e, captures[i]->counts ? captures[i]->counts : captures[i]->name);
        jfr_commit(&e);
    }
}

static bool changes_classes(const struct session *s)
{
    bool changes = false;
    for (int i = 0; i < captures_count; i++)
        changes |= session_capture_on(s, i) && captures[i]->changes_classes;
    return changes;
}

static void shut_captures(uint64_t end_ns)
{
    for (int i = 0; i < captures_count; i++)
        if (captures[i]->shut)
            captures[i]->shut(end_ns);
}

/*
 * Shuts the captures and returns the end of the span. It is read when they are shut: threads have
 * recorded until then, and the calling thread may have lost its processor after it read the clock.
 * Nothing that they have recorded is later.
 */
static uint64_t shut_now(void)
{
    uint64_t now = now_ns();
    fault_stall("end");
    shut_captures(now);
    return now_ns();
}

void session_shut_overloaded(void)
{
    bool overloaded = false;
    for (int i = 0; i < captures_count; i++)
        overloaded |= captures[i]->overloaded && captures[i]->overloaded();
    if (!overloaded || atomic_load(&shut_ns))
        return;
    uint64_t now = shut_now();
    atomic_store(&shut_ns, now);
    shut_captures(now);
}

void session_watch_time(const struct session *s)
{
    if (s->due_ns && now_ns() >= s->due_ns)
        session_shut_overloaded();
    /* A chunk that has become full meanwhile ends with the span as well. */
    uint64_t shut = atomic_load(&shut_ns);
    if (shut && changes_classes(s) && s->out.jfr)
        jfr_writer_ends(s->out.jfr, shut);
}

/*
 * Ends the span when all counts have been written, because changing classes back is not part of the
 * recording. Captures that record events with times stop at the same moment, so that their events
 * cover the whole span.
 */
static void end_span(struct session *s)
{
    uint64_t shut = atomic_load(&shut_ns);
    uint64_t now = shut ? shut : shut_now();
    shut_captures(now);
    if (changes_classes(s) && s->out.jfr)
        jfr_writer_ends(s->out.jfr, now);
}

void session_begin_span(struct session *s)
{
    atomic_store(&shut_ns, 0);
    if (vm.late && changes_classes(s)) {
        s->started_ns = s->span_ns;
        s->save_due_ns = s->started_ns + SESSION_SAVE_NS;
        if (s->out.jfr) {
            jfr_writer_starts(s->out.jfr, s->started_ns);
            write_early(s);
        }
    }
    for (int i = 0; i < captures_count; i++)
        write_counted(s, i, s->started_ns);
}

void session_save_captures(struct session *s, JNIEnv *jni)
{
    uint64_t began = now_ns(), events = 0;
    if (!s->out.jfr || began < s->save_due_ns)
        return;
    for (int i = 0; i < captures_count; i++) {
        bool all = true;
        if (!captures[i]->save || !session_capture_reachable(s, i))
            continue;
        events += captures[i]->save(s, jni, &all);
        if (!all)
            continue;
        write_counted(s, i, began);
        s->capture_saved_ns[i] = began;
    }
    if (events)
        jfr_writer_work(s->out.jfr);
    uint64_t now = now_ns(), wait = MAX(SESSION_SAVE_NS, 50 * (now - began));
    s->save_due_ns = now + MAX(wait, events * SAVE_EVENT_NS);
}

/* Reports that the recording lacks the last part of capture i, which cannot be obtained. */
static void leave_out(struct session *s, int i)
{
    uint64_t since = MAX(s->capture_saved_ns[i], s->started_ns);
    session_warn(s,
                 "%s: what was recorded last is missing: another tool has stopped a thread in the "
                 "middle of recording",
                 captures[i]->name);
    if (s->out.jfr)
        jfr_lose(s->out.jfr, captures[i]->unsaved, (now_ns() - since) / NS_PER_MS + 1);
}

static bool capture_dumps(const struct session *s, int i, enum dump_reason reason)
{
    return session_capture_on(s, i) && captures[i]->dump &&
           (reason != DUMP_EXIT || option_on(&s->options, OPT_DOE));
}

/* The captures of a dump that are written together. */
enum part { PART_ALL, PART_EVENTS, PART_COUNTS };

struct dumping {
    enum dump_reason reason;
    bool print;         /* prints the sections on standard error, as the original HPROF does */
    const char *before; /* what is printed before the next section's title */
};

static void prepare_captures(struct session *s, JNIEnv *jni, enum dump_reason reason)
{
    for (int i = 0; i < captures_count; i++)
        if (capture_dumps(s, i, reason) && captures[i]->prepare &&
            session_capture_reachable(s, i)) {
            captures[i]->prepare(s, jni, reason);
            session_drain(s, jni); /* buffers must not fill up meanwhile */
        }
}

static void dump_part(struct session *s, JNIEnv *jni, struct dumping *d, enum part part)
{
    uint64_t until = now_ns();
    for (int i = 0; i < captures_count; i++) {
        const struct capture *capture = captures[i];
        enum part own = capture->counts ? PART_COUNTS : PART_EVENTS;
        if (!capture_dumps(s, i, d->reason) || (part != PART_ALL && part != own))
            continue;
        if (!session_capture_reachable(s, i)) {
            leave_out(s, i);
            continue;
        }
        if (d->print && capture->title) {
            fprintf(stderr, "%s %s ...", d->before, capture->title);
            d->before = "";
            session_line_open = true;
        }
        capture->dump(s, jni, d->reason);
        session_drain(s, jni);
        write_counted(s, i, until);
    }
}

/*
 * A recording's counts are written last, directly before the end of its span: what happens between
 * the two is in the span and in the captures that record events, but not in the counts. The
 * sections of other formats have an order.
 */
static void dump_all(struct session *s, JNIEnv *jni, struct dumping *d)
{
    if (!s->out.jfr) {
        prepare_captures(s, jni, d->reason);
        dump_part(s, jni, d, PART_ALL);
        return;
    }
    dump_part(s, jni, d, PART_EVENTS);
    prepare_captures(s, jni, d->reason);
    dump_part(s, jni, d, PART_COUNTS);
}

int session_dump_captures(struct session *s, JNIEnv *jni, enum dump_reason reason)
{
    struct dumping d = {.reason = reason,
                        .print = s->out.dictionary && option_on(&s->options, OPT_VERBOSE) &&
                                 !vm.attached,
                        .before = "Dumping"};
    flush_captures(s, jni, false);
    /* at exit no class has been reported as unloaded */
    int failed_before = reason == DUMP_EXIT ? 0 : s->failure;
    dump_all(s, jni, &d);
    if (session_is_shut())
        flush_captures(s, jni, true);
    session_line_open = false;
    if (reason != DUMP_REQUEST)
        end_span(s);
    /* What the sections refer to may no longer exist. */
    if (s->out.dictionary)
        dictionary_unloaded(s->out.dictionary);
    int r = out_flush(&s->out);
    r = s->failure && !failed_before ? s->failure : r;
    if (!*d.before)
        fprintf(stderr, r < 0 ? " failed.\n" : " done.\n");
    report_saturated(s);
    return r;
}

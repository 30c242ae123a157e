/* SPDX-License-Identifier: Apache-2.0 */
#include "timeline/load.h"

#include "base/clock.h"
#include "base/file.h"
#include "profile/losses.h"
#include "timeline/fields.h"
#include "timeline/index.h"
#include "timeline/pack.h"
#include "timeline/trcxml.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/*
 * Approximately how many bytes of a recording an event takes; how many events are added in one go;
 * and the size from which on the timeline is built while the recording is read.
 */
enum { EVENT_BYTES = 16, SLICE = 512, STREAMED_BYTES = 32 << 20 };

enum tag {
    THREAD_START,
    THREAD_END,
    MONITOR_ENTER,
    MONITOR_WAIT,
    PARK,
    SLEEP,
    IO,
    PAUSE,
    ANALYSIS,
    THREAD_OBJECT,
    NOTIFY,
    START_CALL,
    INTERRUPT_CALL,
    UNPARK,
    WAITING,
    HOLD,
    PREEMPTED,
    THROTTLED,
    UNMOUNTED,
    READY,
    DEADLOCK,
    LOST,
};

static const struct rec_select selected[] = {
    {"jdk.ThreadStart", THREAD_START},
    {"jdk.ThreadEnd", THREAD_END},
    {"jdk.VirtualThreadStart", THREAD_START},
    {"jdk.VirtualThreadEnd", THREAD_END},
    {"jdk.JavaMonitorEnter", MONITOR_ENTER},
    {"jdk.JavaMonitorWait", MONITOR_WAIT},
    {"jdk.ThreadPark", PARK},
    {"jdk.ThreadSleep", SLEEP},
    {"jdk.FileRead", IO},
    {"jdk.FileWrite", IO},
    {"jdk.FileForce", IO},
    {"jdk.SocketRead", IO},
    {"jdk.SocketWrite", IO},
    {"jvmscope.IoWait", IO},
    {"jdk.GCPhasePause", PAUSE},
    {"jvmscope.ThreadAnalysis", ANALYSIS},
    {"jvmscope.ThreadObject", THREAD_OBJECT},
    {"jvmscope.Notify", NOTIFY},
    {"jvmscope.StartCall", START_CALL},
    {"jvmscope.InterruptCall", INTERRUPT_CALL},
    {"jvmscope.Unpark", UNPARK},
    {"jvmscope.Waiting", WAITING},
    {"jvmscope.Hold", HOLD},
    {"jvmscope.Preempted", PREEMPTED},
    {"jdk.ContainerCPUThrottling", THROTTLED},
    {"jvmscope.VirtualThreadUnmounted", UNMOUNTED},
    {"jvmscope.VirtualThreadReady", READY},
    {"jvmscope.Deadlock", DEADLOCK},
    LOSSES_SELECT(LOST),
    {0},
};

static struct tl_event *add(struct loader *l, int64_t ns, enum tl_event_kind kind, uint32_t thread)
{
    if (thread == TL_NONE)
        return NULL;
    ns = MAX(ns, l->floor_ns);
    struct tl_event *e = tl_spool_add(&l->events, (uint64_t)ns);
    if (!e) {
        l->error = -ENOMEM;
        return NULL;
    }
    l->first = l->first ? MIN(l->first, ns) : ns;
    l->end = MAX(l->end, ns);
    *e = (struct tl_event){.time = (uint64_t)ns,
                           .thread = thread,
                           .kind = (uint8_t)kind,
                           .object = TL_NONE,
                           .stack = TL_NONE,
                           .other = TL_NONE};
    return e;
}

static uint32_t millis(int64_t ns)
{
    int64_t ms = ns <= 0 ? 0 : (ns + 999999) / 1000000;
    return ms > UINT32_MAX ? UINT32_MAX : (uint32_t)ms;
}

/* Adds an event with a duration as the beginning and the end of a wait. */
static void add_wait(struct loader *l, enum tl_event_kind begin, enum tl_event_kind end,
                     uint32_t object, uint32_t owner, uint32_t waker, uint32_t timeout_ms,
                     bool timed_out)
{
    uint32_t thread = thread_field(l, EVENT_THREAD), stack = stack_field(l);
    struct tl_event *e = add(l, l->e->start_ns, begin, thread);
    if (!e)
        return;
    e->object = object;
    e->stack = stack;
    e->other = owner;
    e->timeout_ms = timeout_ms;
    e = add(l, l->e->start_ns + l->e->duration_ns, end, thread);
    if (!e)
        return;
    e->object = object;
    e->other = waker;
    e->timeout_ms = timeout_ms;
    e->flags = timed_out ? TLE_TIMED_OUT : 0;
}

static void on_enter(struct loader *l)
{
    uint32_t owner = thread_field(l, PREVIOUS_OWNER);
    /*
     * In our recordings it is the owner at the time of entering; in the JDK's it is the one that
     * released the monitor.
     */
    add_wait(l, TLE_CONTENDED_ENTER, TLE_CONTENDED_ENTERED, object_field(l, MONITOR_CLASS),
             l->ours ? owner : TL_NONE, l->ours ? TL_NONE : owner, 0, false);
}

static void on_wait(struct loader *l)
{
    add_wait(l, TLE_WAIT, TLE_WAITED, object_field(l, MONITOR_CLASS), TL_NONE,
             thread_field(l, NOTIFIER), millis(ns_field(l, TIMEOUT)), number_field(l, TIMED_OUT));
}

static void on_park(struct loader *l)
{
    int64_t timeout = number_field(l, TIMEOUT), until = number_field(l, UNTIL);
    if (timeout <= 0 && until > 0)
        timeout = MAX(until * 1000000 - l->e->start_ns, 1);
    add_wait(l, TLE_PARK, TLE_PARKED, object_field(l, PARKED_CLASS), TL_NONE, TL_NONE,
             millis(timeout), false);
}

/*
 * Whether a method unmounts virtual threads for reasons of its own. A thread that is unmounted in
 * any other method waits there for a class that another thread initializes (JDK 26 and later):
 * waits for monitors have events of their own.
 */
static bool is_unmounting(const char *method)
{
    static const char *const prefixes[] = {"java.lang.VirtualThread.", "java.lang.Thread.",
                                           "java.lang.Object.wait", "jdk.internal.vm."};
    for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
        if (strncmp(method, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

/* Returns why a virtual thread left its carrier, which its stack shows. */
static enum tl_event_kind why_unmounted(struct loader *l, bool *ret_timed)
{
    const struct rec_stack *s = rec_stack(&l->e->object, loader_columns[STACK_TRACE].name);
    enum tl_event_kind why = TLE_UNMOUNT;
    *ret_timed = false;
    if (s && s->n && !is_unmounting(s->frames[0].method->full))
        return TLE_CLASS_INIT;
    for (uint32_t i = 0; s && i < s->n; i++) {
        const char *name = s->frames[i].method->full;
        if (strcmp(name, "java.lang.Thread.sleep") == 0)
            return TLE_SLEEP;
        bool nanos = strcmp(name, "java.lang.VirtualThread.parkNanos") == 0;
        if (nanos || strcmp(name, "java.lang.VirtualThread.park") == 0) {
            why = TLE_PARK;
            *ret_timed = nanos;
        }
    }
    return why;
}

static void on_unmounted(struct loader *l)
{
    bool timed;
    enum tl_event_kind begin = why_unmounted(l, &timed), end = begin == TLE_SLEEP  ? TLE_SLEPT
                                                               : begin == TLE_PARK ? TLE_PARKED
                                                                                   : TLE_MOUNT;
    uint32_t object = begin == TLE_PARK ? object_field(l, BLOCKER_CLASS) : TL_NONE;
    add_wait(l, begin, end, object, TL_NONE, TL_NONE, 0, timed && begin == TLE_PARK);
}

static void on_thread_start(struct loader *l)
{
    const struct rec_thread *started = rec_thread(&l->e->object, loader_columns[THREAD].name);
    uint32_t thread = loader_thread(l, started), parent = thread_field(l, PARENT_THREAD);
    if (thread == TL_NONE)
        thread = thread_field(l, EVENT_THREAD);
    if (started && started->is_virtual && l->ours)
        return; /* jvmscope.ThreadObject says more */
    struct tl_event *e = add(l, l->e->start_ns, TLE_THREAD_START, thread);
    if (e)
        e->other = parent;
}

/* Records what is true of a thread at any time. */
static void know_thread(struct loader *l, uint32_t thread, uint32_t object)
{
    timeline_thread_object(l->b, thread, object);
    if (number_field(l, DAEMON))
        timeline_thread_at(l->b, thread)->flags |= TL_THREAD_DAEMON;
    const char *parent_group = rec_string(&l->e->object, "parentGroup", NULL);
    if (parent_group) {
        uint32_t text = loader_string(l, parent_group);
        timeline_thread_at(l->b, thread)->parent_group = text;
    }
}

/*
 * The thread existed already, unless an earlier event says otherwise. That event may be read later;
 * the builder sees them in order.
 */
static void on_thread_object(struct loader *l)
{
    uint32_t thread = thread_field(l, EVENT_THREAD), object = object_field(l, THREAD_CLASS);
    if (thread == TL_NONE || object == TL_NONE)
        return;
    if (!l->streamed)
        know_thread(l, thread, object);
    uint32_t carrier = thread_field(l, CARRIER);
    struct tl_event *e = add(l, l->e->start_ns, TLE_THREAD_START, thread);
    if (e) {
        e->object = object;
        e->other = carrier;
        e->flags = carrier == TL_NONE ? TLE_EXISTING : TLE_VIRTUAL;
    }
}

static struct tl_event *on_interaction(struct loader *l, enum tl_event_kind kind)
{
    uint32_t target = thread_by_id(l, TARGET), stack = stack_field(l);
    struct tl_event *e = add(l, l->e->start_ns, kind, thread_field(l, EVENT_THREAD));
    if (!e)
        return NULL;
    e->other = target;
    e->stack = stack;
    return e;
}

static void on_notify(struct loader *l)
{
    bool all = number_field(l, ALL);
    uint32_t object = object_field(l, MONITOR_CLASS), stack = stack_field(l);
    struct tl_event *e =
        add(l, l->e->start_ns, all ? TLE_NOTIFY_ALL : TLE_NOTIFY, thread_field(l, EVENT_THREAD));
    if (!e)
        return;
    e->object = object;
    e->stack = stack;
}

static void on_waiting(struct loader *l)
{
    static const struct {
        const char *name;
        enum tl_event_kind kind;
    } kinds[] = {{"monitor", TLE_CONTENDED_ENTER},
                 {"wait", TLE_WAIT},
                 {"park", TLE_PARK},
                 {"sleep", TLE_SLEEP},
                 {"io", TLE_IO},
                 {"unmounted", TLE_UNMOUNT},
                 {"ready", TLE_READY}};

    const char *kind = rec_string(&l->e->object, "kind", "");
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (strcmp(kind, kinds[i].name) != 0)
            continue;
        uint32_t object = object_field(l, MONITOR_CLASS), stack = stack_field(l),
                 owner = thread_field(l, OWNER);
        bool timed;
        enum tl_event_kind begin =
            kinds[i].kind == TLE_UNMOUNT ? why_unmounted(l, &timed) : kinds[i].kind;
        struct tl_event *e = add(l, l->e->start_ns, begin, thread_field(l, EVENT_THREAD));
        if (!e)
            return;
        e->object = object;
        e->stack = stack;
        e->other = owner;
        e->timeout_ms = millis(ns_field(l, TIMEOUT));
        e->flags = TLE_REPORTED;
    }
}

static void on_preempted(struct loader *l)
{
    uint32_t thread = thread_field(l, EVENT_THREAD);
    int64_t ns = ns_field(l, TIME);
    int64_t end = l->e->start_ns + l->e->duration_ns, start = MAX(l->e->start_ns, l->floor_ns);
    if (thread != TL_NONE && ns > 0 && ns <= l->e->duration_ns && start > 0 && start < end &&
        timeline_delay(l->b, thread, (uint64_t)start, (uint64_t)end,
                       (uint64_t)MIN(ns, end - start)) < 0)
        l->error = -ENOMEM;
}

static void on_throttled(struct loader *l)
{
    int64_t ns = ns_field(l, THROTTLED_TIME);
    if (ns >= 0 && l->e->start_ns > 0 &&
        timeline_throttled(l->b, (uint64_t)l->e->start_ns, (uint64_t)ns) < 0)
        l->error = -ENOMEM;
}

static void on_loss(struct loader *l)
{
    uint64_t amount = (uint64_t)rec_long(&l->e->object, "amount", 0);
    l->lost_any += amount;
    if (losses_is_of(losses_of_threads, rec_string(&l->e->object, "capture", "")))
        l->lost += amount;
}

static void on_event(struct loader *l)
{
    switch ((enum tag)l->e->tag) {
    case THREAD_START:
        on_thread_start(l);
        break;
    case THREAD_END: {
        uint32_t thread = thread_field(l, THREAD), on = thread_field(l, EVENT_THREAD);
        struct tl_event *e =
            add(l, l->e->start_ns, TLE_THREAD_END, thread != TL_NONE ? thread : on);
        if (e && on != e->thread)
            e->other = on;
        break;
    }
    case MONITOR_ENTER:
        on_enter(l);
        break;
    case MONITOR_WAIT:
        on_wait(l);
        break;
    case PARK:
        on_park(l);
        break;
    case SLEEP:
        add_wait(l, TLE_SLEEP, TLE_SLEPT, TL_NONE, TL_NONE, TL_NONE, millis(ns_field(l, TIME)),
                 false);
        break;
    case IO:
        add_wait(l, TLE_IO, TLE_IO_DONE, TL_NONE, TL_NONE, TL_NONE, 0, false);
        break;
    case PAUSE:
        if (timeline_pause(l->b, (uint64_t)MAX(l->e->start_ns, l->floor_ns),
                           (uint64_t)(l->e->start_ns + l->e->duration_ns),
                           loader_string(l, rec_string(&l->e->object, "name", "GC Pause"))) < 0)
            l->error = -ENOMEM;
        break;
    case ANALYSIS:
        l->ours = true;
        l->instrumented = rec_long(&l->e->object, "contanalysis", 0) ? 1 : 0;
        l->wake_ns = MAX(rec_ns(&l->e->object, "wakeUp", 0), 0);
        break;
    case THREAD_OBJECT:
        on_thread_object(l);
        break;
    case NOTIFY:
        on_notify(l);
        break;
    case START_CALL:
        on_interaction(l, TLE_CALL_START);
        break;
    case INTERRUPT_CALL:
        on_interaction(l, TLE_CALL_INTERRUPT);
        break;
    case UNPARK: {
        struct tl_event *e = on_interaction(l, TLE_UNPARK);
        if (e)
            e->took_ns = (uint32_t)MIN(l->e->duration_ns, (int64_t)UINT32_MAX);
        break;
    }
    case WAITING:
        on_waiting(l);
        break;
    case HOLD:
        add_wait(l, TLE_ACQUIRE, TLE_RELEASE, object_field(l, MONITOR_CLASS), TL_NONE, TL_NONE, 0,
                 false);
        break;
    case PREEMPTED:
        on_preempted(l);
        break;
    case THROTTLED:
        on_throttled(l);
        break;
    case UNMOUNTED:
        on_unmounted(l);
        break;
    case READY:
        add_wait(l, TLE_READY, TLE_MOUNT, TL_NONE, thread_field(l, OCCUPANT), TL_NONE, 0, false);
        break;
    case DEADLOCK: {
        uint32_t object = object_field(l, MONITOR_CLASS), owner = thread_field(l, OWNER);
        struct tl_event *e = add(l, l->e->start_ns, TLE_OWNER, thread_field(l, EVENT_THREAD));
        if (e) {
            e->object = object;
            e->other = owner;
        }
        break;
    }
    case LOST:
        on_loss(l);
        break;
    }
}

/*
 * A wait that was reported while it continued, and ended later, is recorded twice or more often.
 * All records have the same beginning. The record of the whole wait is kept, or else the first one.
 */
static bool is_double(const struct tl_event *events, size_t n, size_t i)
{
    const struct tl_event *e = &events[i];
    size_t first = i;
    while (first > 0 && events[first - 1].time == e->time)
        first--;
    for (size_t k = first; k < n && events[k].time == e->time; k++)
        if (k != i && events[k].thread == e->thread && events[k].kind == e->kind &&
            (k < i || !(events[k].flags & TLE_REPORTED)))
            return true;
    return false;
}

/* Adds the events in chronological order until there are no more. */
static int build_events(struct loader *l)
{
    struct tl_event *events;
    size_t n;
    int more, r = 0;
    while (r == 0 && (more = tl_spool_next(&l->events, &events, &n)) != 0) {
        r = MIN(more, 0);
        for (size_t i = 0; r == 0 && i < n;) {
            timeline_lock(l->b);
            for (size_t end = MIN(i + SLICE, n); r == 0 && i < end; i++) {
                timeline_ahead(l->b, events, i, n);
                if (!(events[i].flags & TLE_REPORTED) || !is_double(events, n, i))
                    r = timeline_add(l->b, &events[i]);
            }
            timeline_unlock(l->b);
        }
    }
    return r;
}

static void *build_concurrently(void *arg)
{
    struct loader *l = arg;
    l->built = build_events(l);
    tl_spool_stop(&l->events); /* after a failure nobody takes the events that are still added */
    return NULL;
}

/* Sets time 0: the time of the first event, or the beginning that the recording states. */
static void begin(struct loader *l, const struct rec_info *info, int64_t first)
{
    int64_t origin = first ? MIN(first, info->start_ns) : info->start_ns;
    origin = MAX(origin, l->floor_ns);
    timeline_origin(l->b, (uint64_t)origin, (uint64_t)origin);
}

/* Reads the recording to its end and passes all rows to `on_row`. */
static int read_rows(struct loader *l, struct rec_rows *rows, void (*on_row)(struct loader *))
{
    const struct rec_row *batch;
    struct rec_event e = {0};
    size_t n;
    int more, r = 0;
    l->e = &e; /* cppcheck-suppress autoVariables ; until it returns */
    while (r == 0 && (more = recording_rows_next(rows, &batch, &n)) != 0) {
        r = MIN(more, 0);
        for (size_t i = 0; r == 0 && i < n; i++) {
            l->row = &batch[i];
            rec_row_event(l->row, &e);
            on_row(l);
            r = l->error;
        }
        if (r < 0 || l->parts.len == 0)
            continue;
        while (l->part + 1 < l->parts.len && l->parts.data[l->part].end <= e.offset)
            l->part++;
        tl_spool_until(&l->events, (uint64_t)l->parts.data[l->part].start_ns);
    }
    l->e = NULL;
    return r;
}

/* During the first reading: takes what holds for the whole recording. */
static void on_first(struct loader *l)
{
    if (l->e->tag == ANALYSIS) {
        l->ours = true;
        return;
    }
    uint32_t thread = thread_field(l, EVENT_THREAD), object = object_field(l, THREAD_CLASS);
    if (thread != TL_NONE && object != TL_NONE)
        know_thread(l, thread, object);
}

static unsigned first_wants(int tag)
{
    switch ((enum tag)tag) {
    case ANALYSIS:
        return REC_ROW;
    case THREAD_OBJECT:
        return REC_ROW | REC_TIME;
    case PAUSE:
    case PREEMPTED:
    case THROTTLED:
    case LOST:
        return 0;
    default:
        return REC_TIME;
    }
}

/*
 * First reading: collects what must be known before the events; finds for each part of the file the
 * time before which no later event begins; and finds when the events end.
 */
static int read_first(struct loader *l, struct recording *recording, int64_t *end_ns)
{
    _cleanup_(recording_rows_closep) struct rec_rows *rows = NULL;
    int r = recording_rows_first(&rows, recording, loader_columns, FIELDS, first_wants);
    if (r == 0)
        r = read_rows(l, rows, on_first);
    if (r < 0)
        return r;
    size_t n;
    const struct rec_part *parts = recording_rows_parts(rows, &n);
    r = vec_extend(&l->parts, n);
    int64_t least = INT64_MAX;
    for (size_t i = n; r == 0 && i-- > 0;) {
        least = MIN(least, parts[i].start_ns);
        l->parts.data[i] = (struct rec_part){parts[i].end, least};
        *end_ns = parts[i].start_ns == INT64_MAX ? *end_ns : MAX(*end_ns, parts[i].start_ns);
    }
    l->streamed = r == 0 && n && least > 0 && least < INT64_MAX;
    if (!l->streamed)
        vec_clear(&l->parts);
    return r;
}

/*
 * Who wrote the recording decides what a field means. This is stated once, near the beginning but
 * not before everything else.
 */
static int read_writer(struct loader *l, struct recording *recording)
{
    static const struct rec_select analysis[] = {{"jvmscope.ThreadAnalysis", ANALYSIS}, {0}};
    struct rec_event e;
    int r = recording_select(recording, analysis);
    if (r == 0 && recording_next(recording, &e) > 0)
        l->ours = true;
    recording_rewind(recording);
    return r;
}

/*
 * Reads all events while a thread builds the timeline from those that no later event can precede;
 * for small recordings one after the other.
 */
static int read_all_events(struct loader *l, struct recording *recording,
                           const struct rec_info *info)
{
    _cleanup_(recording_rows_closep) struct rec_rows *rows = NULL;
    pthread_t builder;
    int r = recording_rows_open(&rows, recording, loader_columns, FIELDS);
    if (r < 0)
        return r;
    if (l->streamed) {
        begin(l, info, l->parts.data[0].start_ns);
        timeline_share(l->b);
        recording_rows_forget(rows); /* it has an index then */
    }
    bool concurrent = l->streamed && pthread_create(&builder, NULL, build_concurrently, l) == 0;
    if (!concurrent)
        vec_clear(&l->parts); /* nobody takes events meanwhile: all of them are kept */
    r = read_rows(l, rows, on_event);
    if (r < 0)
        tl_spool_stop(&l->events);
    tl_spool_close(&l->events);
    if (!concurrent) {
        if (r == 0 && !l->streamed)
            begin(l, info, l->first);
        return r < 0 ? r : build_events(l);
    }
    (void)pthread_join(builder, NULL);
    return r < 0 ? r : l->built;
}

static int load_xml(struct timeline **ret, const char *path, struct buf *why)
{
    _cleanup_(file_map_release) struct file_map m = {0};
    int r = file_map_open(&m, path);
    if (r == 0)
        r = trcxml_is(m.data, m.len) ? trcxml_read(ret, m.data, m.len, why) : -ENOEXEC;
    return r;
}

int timeline_read(struct timeline **ret, const char *path, uint64_t streamed_from,
                  const char *index, struct buf *why)
{
    int xml = load_xml(ret, path, why);
    if (xml != -ENOEXEC)
        return xml;
    _cleanup_(recording_closep) struct recording *recording = NULL;
    struct loader l = {.instrumented = TL_NONE};
    const char *reason = NULL;
    int r = recording_open(&recording, path, &reason);
    if (r < 0) {
        buf_printf(why, "%s", reason ? reason : strerror(-r));
        return r;
    }
    struct rec_info info;
    recording_info(recording, &info);
    l.floor_ns = info.part_of_ring ? info.start_ns : 0;
    l.answers = calloc(ANSWERS, sizeof(*l.answers));
    r = l.answers ? timeline_builder_new(&l.b) : -ENOMEM;
    if (r == 0 && index)
        r = timeline_nodes_in(l.b, index);
    if (r == 0 && info.bytes < streamed_from)
        r = read_writer(&l, recording);
    if (r == 0)
        r = recording_select(recording, selected);
    int64_t end_ns = info.end_ns;
    if (r == 0 && info.bytes >= streamed_from)
        r = read_first(&l, recording, &end_ns);
    if (r == 0)
        r = tl_spool_init(&l.events, (uint64_t)MAX(info.start_ns, 0), (uint64_t)MAX(end_ns, 0),
                          info.bytes / EVENT_BYTES);
    if (r == 0)
        r = read_all_events(&l, recording, &info);
    recording_info(recording, &info);
    if (r == 0)
        r = timeline_finish(l.b, (uint64_t)MAX(l.end, info.end_ns), ret);
    if (r == 0) {
        (*ret)->lost = l.lost;
        (*ret)->lost_any = l.lost_any;
        (*ret)->cut_at = info.truncated ? MAX(info.at, UINT64_C(1)) : 0;
        (*ret)->instrumented = l.instrumented;
        (*ret)->wake_ns = (uint64_t)l.wake_ns;
    } else {
        buf_printf(why, "%s", strerror(-r));
    }
    timeline_builder_free(l.b);
    free(l.answers);
    tl_spool_release(&l.events);
    vec_release(&l.threads);
    vec_release(&l.classes);
    vec_release(&l.methods);
    vec_release(&l.parts);
    map_release(&l.stacks);
    map_release(&l.conditions);
    return r;
}

/*
 * Returns where the index of a recording lies and the key that it must match; 0 when there can be
 * none.
 */
static uint64_t index_of(const char *path, struct buf *index)
{
    struct stat st;
    buf_printf(index, "%s.timeline", path);
    if (buf_error(index) < 0 || stat(path, &st) < 0)
        return 0;
    return (uint64_t)st.st_size * 1000003u ^ (uint64_t)st.st_mtim.tv_sec * NS_PER_SECOND ^
           (uint64_t)st.st_mtim.tv_nsec;
}

int timeline_load(struct timeline **ret, const char *path, struct buf *why)
{
    _cleanup_(buf_release) struct buf index = BUF(8192);
    uint64_t key = index_of(path, &index);
    int r = key ? timeline_map(ret, buf_str(&index), key) : -ENOENT;
    if (r < 0) {
        r = timeline_read(ret, path, STREAMED_BYTES, key ? buf_str(&index) : NULL, why);
        if (r == 0 && key && (*ret)->n_nodes >= TL_INDEX_NODES)
            timeline_save(*ret, buf_str(&index), key);
    }
    return r;
}

int timeline_load_unchecked(struct timeline **ret, const char *path)
{
    _cleanup_(buf_release) struct buf index = BUF(8192);
    uint64_t key = index_of(path, &index);
    return key ? timeline_map_unchecked(ret, buf_str(&index), key) : -ENOENT;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "timeline/load_events.h"

#include "base/clock.h"
#include "profile/losses.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
    PAGE_FAULTS,
    THROTTLED,
    UNMOUNTED,
    READY,
    DEADLOCK,
    VM,
    LOST,
};

/* A share of this is the most by which plain JFR measures a time wrongly. */
enum { SLEEP_ERROR = 1000 };

const struct rec_select loader_events[] = {
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
    {"jvmscope.PageFaults", PAGE_FAULTS},
    {"jdk.ContainerCPUThrottling", THROTTLED},
    {"jvmscope.VirtualThreadUnmounted", UNMOUNTED},
    {"jvmscope.VirtualThreadReady", READY},
    {"jvmscope.Deadlock", DEADLOCK},
    {"jdk.JVMInformation", VM},
    LOSSES_SELECT(LOST),
    {0},
};

/* Adds an event. Returns NULL for an event after the end of the recording, and after an error. */
static struct tl_event *add(struct loader *l, int64_t ns, enum tl_event_kind kind, uint32_t thread)
{
    if (thread == TL_NONE || ns > l->ceiling_ns)
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

/*
 * Counts the wait of the current event if it began before the recording. A thread has at most one
 * such wait, which may be reported both while it lasts and when it ends.
 */
static void note_before(struct loader *l, uint32_t thread)
{
    bool added = false;
    if (l->e->start_ns >= l->floor_ns)
        return;
    if (!map_at(&l->before, thread, 1, &added))
        l->error = -ENOMEM;
    l->began_before += added;
}

/*
 * Adds an event with a duration as the beginning and the end of a wait. A wait that ended before
 * the recording began is not part of it.
 */
static void add_wait(struct loader *l, enum tl_event_kind begin, enum tl_event_kind end,
                     uint32_t object, uint32_t owner, uint32_t waker, uint32_t timeout_ms,
                     unsigned flags)
{
    uint32_t thread = field_thread(l, EVENT_THREAD), stack = field_stack(l);
    if (l->e->start_ns + l->e->duration_ns < l->floor_ns)
        return;
    struct tl_event *e = add(l, l->e->start_ns, begin, thread);
    if (!e)
        return;
    note_before(l, thread);
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
    e->flags = (uint8_t)flags;
}

/*
 * Returns the owner of the monitor for which a thread waits in the current event: `owner` when the
 * wait began, or another thread that has got it since, before the recording.
 */
static uint32_t owner_of(struct loader *l, uint32_t owner)
{
    const struct rec_thread *t = l->earlier ? time_part_owner(l->earlier, l->e) : NULL;
    return t ? loader_thread(l, t) : owner;
}

static void on_enter(struct loader *l)
{
    uint32_t owner = field_thread(l, PREVIOUS_OWNER);
    if (l->ours)
        owner = owner_of(l, owner);
    /*
     * In our recordings this is the owner at the time of entering; in the JDK's it is the thread
     * that released the monitor.
     */
    add_wait(l, TLE_CONTENDED_ENTER, TLE_CONTENDED_ENTERED, field_object(l, MONITOR_CLASS),
             l->ours ? owner : TL_NONE, l->ours ? TL_NONE : owner, 0, 0);
}

static void on_wait(struct loader *l)
{
    add_wait(l, TLE_WAIT, TLE_WAITED, field_object(l, MONITOR_CLASS), TL_NONE,
             field_thread(l, NOTIFIER), millis(field_ns(l, TIMEOUT)),
             field_number(l, TIMED_OUT) ? TLE_TIMED_OUT : 0);
}

/*
 * Handles Thread.sleep, whose timeout is recorded in whole milliseconds, rounded up. Plain JFR
 * measures how long it took with the processor's counter, whose frequency the VM estimates.
 */
static void on_sleep(struct loader *l)
{
    int64_t ns = field_ns(l, TIME);
    int64_t less = l->ours ? 0 : ns / SLEEP_ERROR;
    bool early = l->e->duration_ns < ns - MAX((int64_t)NS_PER_MS, less);
    add_wait(l, TLE_SLEEP, TLE_SLEPT, TL_NONE, TL_NONE, TL_NONE, millis(ns), early ? TLE_EARLY : 0);
}

/* Returns whether a park is the sleep of a virtual thread that could not leave its carrier. */
static uint32_t is_pinned_sleep(const struct rec_stack *s)
{
    uint32_t n = s ? s->n : 0;
    if (n < 2 ||
        strcmp(s->frames[1].method->full, "java.lang.VirtualThread.parkOnCarrierThread") != 0)
        return false;
    for (uint32_t i = 2; i < n; i++)
        if (strcmp(s->frames[i].method->full, "java.lang.Thread.sleep") == 0)
            return true;
    return false;
}

static void on_park(struct loader *l)
{
    int64_t timeout = field_number(l, TIMEOUT), until = field_number(l, UNTIL);
    if (timeout <= 0 && until > 0)
        timeout = MAX(until * 1000000 - l->e->start_ns, 1);
    if (l->ours && field_stack_answer(l, STACK_IS_PINNED_SLEEP, is_pinned_sleep)) {
        add_wait(l, TLE_SLEEP, TLE_SLEPT, TL_NONE, TL_NONE, TL_NONE, millis(timeout),
                 TLE_TIMED_OUT);
        return;
    }
    add_wait(l, TLE_PARK, TLE_PARKED, field_object(l, PARKED_CLASS), TL_NONE, TL_NONE,
             millis(timeout), 0);
}

/*
 * Returns whether a method unmounts virtual threads deliberately. A thread that is unmounted in any
 * other method waits there for a class that another thread initializes (JDK 26 and later), because
 * waits for monitors have separate events.
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

enum { TIMED = 1 << 8 };

/*
 * Returns why a virtual thread left its carrier, as its stack shows it: a kind, perhaps with TIMED.
 */
static uint32_t why_on_stack(const struct rec_stack *s)
{
    uint32_t why = TLE_UNMOUNT;
    if (s && s->n && !is_unmounting(s->frames[0].method->full))
        return TLE_CLASS_INIT;
    for (uint32_t i = 0; s && i < s->n; i++) {
        const char *name = s->frames[i].method->full;
        if (strcmp(name, "java.lang.Thread.sleep") == 0)
            return TLE_SLEEP;
        bool nanos = strcmp(name, "java.lang.VirtualThread.parkNanos") == 0;
        if (nanos || strcmp(name, "java.lang.VirtualThread.park") == 0)
            why = TLE_PARK | (nanos ? TIMED : 0);
    }
    return why;
}

static enum tl_event_kind why_unmounted(struct loader *l, bool *ret_timed)
{
    uint32_t why = field_stack_answer(l, STACK_UNMOUNTS, why_on_stack);
    *ret_timed = why & TIMED;
    return (enum tl_event_kind)(why & ~(uint32_t)TIMED);
}

static void on_unmounted(struct loader *l)
{
    bool timed;
    enum tl_event_kind begin = why_unmounted(l, &timed);
    enum tl_event_kind end = begin == TLE_SLEEP  ? TLE_SLEPT
                             : begin == TLE_PARK ? TLE_PARKED
                                                 : TLE_MOUNT;
    uint32_t object = begin == TLE_PARK ? field_object(l, BLOCKER_CLASS) : TL_NONE;
    add_wait(l, begin, end, object, TL_NONE, TL_NONE, 0,
             timed && begin == TLE_PARK ? TLE_TIMED_OUT : 0);
}

static void on_thread_start(struct loader *l)
{
    const struct rec_thread *started = rec_thread(&l->e->object, loader_columns[THREAD].name);
    uint32_t thread = loader_thread(l, started), parent = field_thread(l, PARENT_THREAD);
    if (thread == TL_NONE)
        thread = field_thread(l, EVENT_THREAD);
    if (started && started->is_virtual && l->ours)
        return; /* jvmscope.ThreadObject has more */
    struct tl_event *e = add(l, l->e->start_ns, TLE_THREAD_START, thread);
    if (e)
        e->other = parent;
}

/* Records what holds for a thread at any time. */
static void know_thread(struct loader *l, uint32_t thread, uint32_t object)
{
    timeline_thread_object(l->b, thread, object);
    if (field_number(l, DAEMON))
        timeline_thread_at(l->b, thread)->flags |= TL_THREAD_DAEMON;
    const char *parent_group = rec_string(&l->e->object, "parentGroup", NULL);
    if (parent_group) {
        uint32_t text = loader_string(l, parent_group);
        timeline_thread_at(l->b, thread)->parent_group = text;
    }
}

/*
 * Adds a thread that exists already, unless an earlier event says otherwise. That event may be read
 * later, but the builder receives all events in order.
 */
static void on_thread_object(struct loader *l)
{
    uint32_t thread = field_thread(l, EVENT_THREAD), object = field_object(l, THREAD_CLASS);
    if (thread == TL_NONE || object == TL_NONE)
        return;
    if (!l->streamed)
        know_thread(l, thread, object);
    uint32_t carrier = field_thread(l, CARRIER);
    struct tl_event *e = add(l, l->e->start_ns, TLE_THREAD_START, thread);
    if (e) {
        e->object = object;
        e->other = carrier;
        e->flags = carrier == TL_NONE ? TLE_EXISTING : TLE_VIRTUAL;
    }
}

static struct tl_event *on_interaction(struct loader *l, enum tl_event_kind kind)
{
    uint32_t target = field_thread_by_id(l, TARGET), stack = field_stack(l);
    struct tl_event *e = add(l, l->e->start_ns, kind, field_thread(l, EVENT_THREAD));
    if (!e)
        return NULL;
    e->other = target;
    e->stack = stack;
    return e;
}

static void on_notify(struct loader *l)
{
    bool all = field_number(l, ALL);
    uint32_t object = field_object(l, MONITOR_CLASS), stack = field_stack(l);
    struct tl_event *e =
        add(l, l->e->start_ns, all ? TLE_NOTIFY_ALL : TLE_NOTIFY, field_thread(l, EVENT_THREAD));
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
        uint32_t object = field_object(l, MONITOR_CLASS), stack = field_stack(l),
                 owner = field_thread(l, OWNER);
        if (kinds[i].kind == TLE_CONTENDED_ENTER)
            owner = owner_of(l, owner);
        bool timed;
        enum tl_event_kind begin =
            kinds[i].kind == TLE_UNMOUNT ? why_unmounted(l, &timed) : kinds[i].kind;
        uint32_t thread = field_thread(l, EVENT_THREAD);
        struct tl_event *e = add(l, l->e->start_ns, begin, thread);
        if (!e)
            return;
        note_before(l, thread);
        e->object = object;
        e->stack = stack;
        e->other = owner;
        e->timeout_ms = millis(field_ns(l, TIMEOUT));
        e->flags = TLE_REPORTED;
    }
}

/* A thread that did not wait lacked a processor, or pages of memory. */
static void on_lack(struct loader *l, bool faults)
{
    uint32_t thread = field_thread(l, EVENT_THREAD);
    int64_t ns = field_ns(l, TIME);
    int64_t end = MIN(l->e->start_ns + l->e->duration_ns, l->ceiling_ns),
            start = MAX(l->e->start_ns, l->floor_ns);
    if (thread != TL_NONE && ns > 0 && ns <= l->e->duration_ns && start > 0 && start < end &&
        timeline_delay(l->b, thread, (uint64_t)start, (uint64_t)end, (uint64_t)MIN(ns, end - start),
                       faults) < 0)
        l->error = -ENOMEM;
}

static void on_throttled(struct loader *l)
{
    int64_t ns = field_ns(l, THROTTLED_TIME);
    if (ns >= 0 && l->e->start_ns > 0 &&
        timeline_throttled(l->b, (uint64_t)l->e->start_ns, (uint64_t)ns) < 0)
        l->error = -ENOMEM;
}

static void on_loss(struct loader *l)
{
    uint64_t amount = losses_amount(l->e);
    l->lost_any += MAX(amount, UINT64_C(1)); /* including what is reported although it is no loss */
    if (losses_is_of(losses_of_threads, rec_string(&l->e->object, "capture", "")))
        l->lost += amount;
}

/* JDK 8 has a version of its VM alone, such as 25.504-b01; JDK 25 has, for instance, 25.0.1+8. */
static uint32_t version_of(const char *text)
{
    unsigned long n = strtoul(text, NULL, 10);
    return n == 25 && !strchr(text, '+') ? 8 : (uint32_t)n;
}

/*
 * Returns whether the current event belongs to the part that is read, as if `convert` had written
 * the part first.
 */
static bool is_selected(struct loader *l)
{
    const struct rec_event *e = l->e;
    int64_t end = e->start_ns + MAX(e->duration_ns, INT64_C(0));
    l->seen_ns = MAX(l->seen_ns, end);
    if (time_part_has(l->window, SCOPE_SELECTION, e->start_ns, 0))
        return true;
    enum event_scope scope = catalog_find(e->object.type->name)->scope;
    return time_part_has(l->window, scope, e->start_ns, e->duration_ns) &&
           !time_part_is_over(l->window, scope, e);
}

void loader_on_event(struct loader *l)
{
    if (l->window && !is_selected(l))
        return;
    switch ((enum tag)l->e->tag) {
    case THREAD_START:
        on_thread_start(l);
        break;
    case THREAD_END: {
        uint32_t thread = field_thread(l, THREAD), on = field_thread(l, EVENT_THREAD);
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
        on_sleep(l);
        break;
    case IO:
        add_wait(l, TLE_IO, TLE_IO_DONE, TL_NONE, TL_NONE, TL_NONE, 0, 0);
        break;
    case PAUSE:
        if (timeline_pause(l->b, (uint64_t)MAX(l->e->start_ns, l->floor_ns),
                           (uint64_t)MIN(l->e->start_ns + l->e->duration_ns, l->ceiling_ns),
                           loader_string(l, rec_string(&l->e->object, "name", "GC Pause"))) < 0)
            l->error = -ENOMEM;
        break;
    case ANALYSIS:
        l->ours = true;
        l->instrumented = rec_long(&l->e->object, "contanalysis", 0) ? 1 : 0;
        l->wake_ns = MAX(rec_ns(&l->e->object, "wakeUp", 0), l->wake_ns);
        l->uncounted = !rec_long(&l->e->object, "delays", 1);
        break;
    case VM:
        l->vm_version = version_of(rec_string(&l->e->object, "jvmVersion", ""));
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
        add_wait(l, TLE_ACQUIRE, TLE_RELEASE, field_object(l, MONITOR_CLASS), TL_NONE, TL_NONE, 0,
                 0);
        break;
    case PREEMPTED:
        on_lack(l, false);
        break;
    case PAGE_FAULTS:
        on_lack(l, true);
        break;
    case THROTTLED:
        on_throttled(l);
        break;
    case UNMOUNTED:
        on_unmounted(l);
        break;
    case READY:
        add_wait(l, TLE_READY, TLE_MOUNT, TL_NONE, field_thread(l, OCCUPANT), TL_NONE, 0, 0);
        break;
    case DEADLOCK: {
        uint32_t object = field_object(l, MONITOR_CLASS), owner = field_thread(l, OWNER);
        struct tl_event *e = add(l, l->e->start_ns, TLE_OWNER, field_thread(l, EVENT_THREAD));
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

void loader_on_first(struct loader *l)
{
    if (l->e->tag == ANALYSIS) {
        l->ours = true;
        return;
    }
    if (l->window && !is_selected(l))
        return;
    uint32_t thread = field_thread(l, EVENT_THREAD), object = field_object(l, THREAD_CLASS);
    if (thread != TL_NONE && object != TL_NONE)
        know_thread(l, thread, object);
}

unsigned loader_first_wants(int tag)
{
    switch ((enum tag)tag) {
    case ANALYSIS:
        return REC_ROW;
    case THREAD_OBJECT:
        return REC_ROW | REC_TIME;
    case PAUSE:
    case PREEMPTED:
    case PAGE_FAULTS:
    case THROTTLED:
    case LOST:
        return 0;
    default:
        return REC_TIME;
    }
}

int loader_read_writer(struct loader *l, struct recording *recording)
{
    static const struct rec_select analysis[] = {{"jvmscope.ThreadAnalysis", ANALYSIS}, {0}};
    struct rec_event e;
    int r = recording_select(recording, analysis);
    if (r == 0 && recording_next(recording, &e) > 0)
        l->ours = true;
    recording_rewind(recording);
    return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "model/timeline_load.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/map.h"
#include "base/vec.h"
#include "jfr/reader_rows.h"
#include "model/timeline_index.h"
#include "model/timeline_spool.h"
#include "model/timeline_trcxml.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Recordings with fewer nodes are read again faster than an index is worth. */
enum { INDEX_NODES = 2000000 };

/* About what an event takes of a recording; how many events lie between fetching and using what one needs. */
enum { EVENT_BYTES = 16, AHEAD = 16 };

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
    UNMOUNTED,
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
    {"jvmscope.VirtualThreadUnmounted", UNMOUNTED},
    {"jvmscope.Deadlock", DEADLOCK},
    {"jvmscope.Lost", LOST},
    {0},
};

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
};

static const struct rec_wish wishes[] = {
    [EVENT_THREAD] = {"eventThread", true},
    [STACK_TRACE] = {"stackTrace", true},
    [ADDRESS] = {"address", false},
    [MONITOR_CLASS] = {"monitorClass", true},
    [PARKED_CLASS] = {"parkedClass", true},
    [BLOCKER_CLASS] = {"blockerClass", true},
    [THREAD_CLASS] = {"threadClass", true},
    [PREVIOUS_OWNER] = {"previousOwner", true},
    [NOTIFIER] = {"notifier", true},
    [OWNER] = {"owner", true},
    [THREAD] = {"thread", true},
    [PARENT_THREAD] = {"parentThread", true},
    [CARRIER] = {"carrier", true},
    [TIMEOUT] = {"timeout", false},
    [UNTIL] = {"until", false},
    [TIMED_OUT] = {"timedOut", false},
    [TIME] = {"time", false},
    [TARGET] = {"target", false},
    [ALL] = {"all", false},
    [DAEMON] = {"daemon", false},
};

/* What a constant, or an object, was found to be: asked again and again for few of them. */
struct answer {
    const void *of; /* the field's type, or the object's class + 1; NULL: nothing here */
    const struct rec_chunk *chunk;
    uint64_t id;
    uint32_t number;
};

enum { ANSWERS = 1 << 13 };

struct loader {
    struct timeline_builder *b;
    struct tl_spool events;
    VEC(uint32_t) threads, classes, methods; /* by the reader's numbers: ours + 1, 0 not known yet */
    struct map stacks;                       /* by chunk and id */
    struct map starts;                       /* by thread: its start was recorded */
    uint64_t lost;
    uint32_t instrumented;
    bool ours;
    int64_t first, end; /* times of events */
    const struct rec_row *row;
    const struct rec_event *e; /* the row as an event */
    struct answer *answers;
    int error;
};

static uint32_t *numbered(struct loader *l, void *vec, uint32_t number)
{
    VEC(uint32_t) *v = vec;
    if (number >= v->len && vec_extend(v, number + 1 - v->len) < 0) {
        l->error = -ENOMEM;
        return NULL;
    }
    return &v->data[number];
}

/* The number that a builder's function answered; TL_NONE after a failure. */
static uint32_t checked(struct loader *l, int64_t n)
{
    if (n < 0)
        l->error = (int)n;
    return n < 0 ? TL_NONE : (uint32_t)n;
}

static uint32_t string(struct loader *l, const char *s)
{
    return checked(l, timeline_string(l->b, s, strlen(s)));
}

static uint32_t thread_of(struct loader *l, const struct rec_thread *t)
{
    uint32_t *known = t ? numbered(l, &l->threads, t->number) : NULL;
    if (!known)
        return TL_NONE;
    if (*known)
        return *known - 1;
    uint64_t id = t->java_id > 0 ? (uint64_t)t->java_id : UINT64_C(1) << 62 | t->number;
    uint32_t n = checked(l, timeline_thread(l->b, id));
    if (n == TL_NONE)
        return TL_NONE;
    *known = n + 1;
    uint32_t name = string(l, t->name), group = t->group ? string(l, t->group) : TL_NONE;
    struct tl_thread *to = timeline_thread_at(l->b, n);
    to->name = name;
    to->group = group;
    if (t->is_virtual)
        to->flags |= TL_THREAD_VIRTUAL | TL_THREAD_DAEMON;
    if (!t->java_name || (t->group && strcmp(t->group, "system") == 0) || strcmp(t->name, "DestroyJavaVM") == 0 ||
        strcmp(t->name, "JFR Shutdown Hook") == 0)
        to->flags |= TL_THREAD_SYSTEM;
    return n;
}

static int slot_of(const struct loader *l, enum field f)
{
    int slot = (int)l->row->plan->slot[f];
    return slot >= 0 && l->row->damaged ? REC_BY_NAME : slot;
}

/* A whole number, 0 when there is none. */
static int64_t number_field(const struct loader *l, enum field f)
{
    int slot = slot_of(l, f);
    if (likely(slot >= 0))
        return l->row->values[slot];
    return slot == REC_ABSENT ? 0 : rec_long(&l->e->object, wishes[f].name, 0);
}

static int64_t ns_field(const struct loader *l, enum field f)
{
    int slot = slot_of(l, f);
    if (slot >= 0)
        return rec_value_ns(&l->e->object,
                            &(struct rec_value){.field = l->row->plan->field[f], .number = l->row->values[slot]});
    return slot == REC_ABSENT ? 0 : rec_ns(&l->e->object, wishes[f].name, 0);
}

/* The place for the answer about an id; *ret_known tells whether it is there. */
static struct answer *answer(struct loader *l, const void *of, uint64_t id, const struct rec_chunk *chunk, bool *ret_known)
{
    uint64_t hash = (id ^ (uint64_t)(uintptr_t)of * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0x9e3779b97f4a7c15);
    struct answer *a = &l->answers[hash >> 51];
    *ret_known = a->of == of && a->id == id && a->chunk == chunk;
    return a;
}

/* What the constant of a field is to us, by one of the functions below. */
static uint32_t constant_field(struct loader *l, enum field f, uint32_t (*find)(struct loader *, enum field, int slot))
{
    int slot = slot_of(l, f);
    if (slot < 0)
        return slot == REC_ABSENT ? TL_NONE : find(l, f, slot);
    bool known;
    const void *of = l->row->plan->field[f]->type;
    uint64_t id = (uint64_t)l->row->values[slot];
    struct answer *a = answer(l, of, id, l->e->object.chunk, &known);
    if (unlikely(!known)) {
        uint32_t number = find(l, f, slot);
        *a = (struct answer){of, l->e->object.chunk, id, number};
    }
    return a->number;
}

#define CONSTANT(what)                                                                                 \
    static const struct rec_##what *what##_constant(const struct loader *l, enum field f, int slot)    \
    {                                                                                                  \
        if (slot < 0)                                                                                  \
            return rec_##what(&l->e->object, wishes[f].name);                                          \
        return rec_##what##_of(&l->e->object, l->row->plan->field[f], (uint64_t)l->row->values[slot]); \
    }
CONSTANT(thread)
CONSTANT(class)
CONSTANT(stack)
#undef CONSTANT

static uint32_t find_thread(struct loader *l, enum field f, int slot)
{
    return thread_of(l, thread_constant(l, f, slot));
}

static uint32_t thread_field(struct loader *l, enum field f)
{
    return constant_field(l, f, find_thread);
}

static uint32_t thread_by_id(struct loader *l, enum field f)
{
    int64_t id = number_field(l, f);
    return id > 0 ? checked(l, timeline_thread(l->b, (uint64_t)id)) : TL_NONE;
}

static uint32_t find_class(struct loader *l, enum field f, int slot)
{
    const struct rec_class *c = class_constant(l, f, slot);
    uint32_t *known = c ? numbered(l, &l->classes, c->number) : NULL;
    if (!known)
        return TL_NONE;
    if (*known == 0)
        *known = string(l, c->name) + 1;
    return *known - 1;
}

static uint32_t object_field(struct loader *l, enum field class_field)
{
    uint32_t class = constant_field(l, class_field, find_class);
    uint64_t address = (uint64_t)number_field(l, ADDRESS);
    if (class == TL_NONE)
        return TL_NONE;
    bool known;
    const void *of = (const void *)((uintptr_t) class + 1);
    struct answer *a = answer(l, of, address, NULL, &known);
    if (!known) {
        uint32_t number = checked(l, timeline_object(l->b, address, class));
        *a = (struct answer){of, NULL, address, number};
    }
    return a->number;
}

static uint32_t method_of(struct loader *l, const struct rec_method *m)
{
    uint32_t *known = numbered(l, &l->methods, m->number);
    if (!known)
        return TL_NONE;
    if (*known == 0)
        *known = string(l, m->full) + 1;
    return *known - 1;
}

static uint32_t find_stack(struct loader *l, enum field f, int slot)
{
    const struct rec_stack *s = stack_constant(l, f, slot);
    if (!s || s->n == 0)
        return TL_NONE;
    /* A stack's address is its own while its chunk lives; two chunks may get one address, but not with the same id and length
       and top frame, as far as that matters: a wrong hit would show a stack of that very top frame. */
    uint64_t key = ((uint64_t)(uintptr_t)l->e->object.chunk * 31 + s->id) * 31 + s->n * 7919u + s->frames[0].method->number;
    const uint64_t *known = map_get(&l->stacks, key);
    if (known)
        return (uint32_t)*known;
    struct tl_frame frames[1024];
    const struct rec_frame *from = s->frames;
    uint32_t n = s->n;
    if (strncmp(from->method->full, "java.lang.Jvmscope", 18) == 0 && n > 1) {
        from++; /* our probe */
        n--;
    }
    n = MIN(n, (uint32_t)ARRAY_SIZE(frames));
    memset(frames, 0, n * sizeof(*frames));
    for (uint32_t i = 0; i < n; i++) {
        frames[i].method = method_of(l, from[i].method);
        frames[i].line = from[i].line > 0 ? (uint32_t)from[i].line : 0;
    }
    uint32_t stack = checked(l, timeline_stack(l->b, frames, n));
    if (stack != TL_NONE && map_put(&l->stacks, key, stack) < 0)
        l->error = -ENOMEM;
    return stack;
}

static uint32_t stack_field(struct loader *l)
{
    return constant_field(l, STACK_TRACE, find_stack);
}

static struct tl_event *add(struct loader *l, int64_t ns, enum tl_event_kind kind, uint32_t thread)
{
    if (thread == TL_NONE)
        return NULL;
    struct tl_event *e = tl_spool_add(&l->events, (uint64_t)ns);
    if (!e) {
        l->error = -ENOMEM;
        return NULL;
    }
    l->first = l->first ? MIN(l->first, ns) : ns;
    l->end = MAX(l->end, ns);
    *e = (struct tl_event){
        .time = (uint64_t)ns, .thread = thread, .kind = (uint8_t)kind, .object = TL_NONE, .stack = TL_NONE, .other = TL_NONE};
    return e;
}

static uint32_t millis(int64_t ns)
{
    int64_t ms = ns <= 0 ? 0 : (ns + 999999) / 1000000;
    return ms > UINT32_MAX ? UINT32_MAX : (uint32_t)ms;
}

/* An event with a duration: the beginning of a wait and its end. */
static void add_wait(struct loader *l, enum tl_event_kind begin, enum tl_event_kind end, uint32_t object, uint32_t owner,
                     uint32_t waker, uint32_t timeout_ms, bool timed_out)
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
    /* Ours is the owner at enter; the JDK's the one that let it go. */
    add_wait(l, TLE_CONTENDED_ENTER, TLE_CONTENDED_ENTERED, object_field(l, MONITOR_CLASS), l->ours ? owner : TL_NONE,
             l->ours ? TL_NONE : owner, 0, false);
}

static void on_wait(struct loader *l)
{
    add_wait(l, TLE_WAIT, TLE_WAITED, object_field(l, MONITOR_CLASS), TL_NONE, thread_field(l, NOTIFIER),
             millis(ns_field(l, TIMEOUT)), number_field(l, TIMED_OUT));
}

static void on_park(struct loader *l)
{
    int64_t timeout = number_field(l, TIMEOUT), until = number_field(l, UNTIL);
    if (timeout <= 0 && until > 0)
        timeout = MAX(until * 1000000 - l->e->start_ns, 1);
    add_wait(l, TLE_PARK, TLE_PARKED, object_field(l, PARKED_CLASS), TL_NONE, TL_NONE, millis(timeout), false);
}

/* Why a virtual thread left its carrier is on its stack. */
static void on_unmounted(struct loader *l)
{
    const struct rec_stack *s = rec_stack(&l->e->object, wishes[STACK_TRACE].name);
    enum tl_event_kind begin = TLE_UNMOUNT, end = TLE_MOUNT;
    bool timed = false;
    for (uint32_t i = 0; s && i < s->n; i++) {
        const char *name = s->frames[i].method->full;
        if (strcmp(name, "java.lang.Thread.sleep") == 0) {
            begin = TLE_SLEEP;
            end = TLE_SLEPT;
            break;
        }
        if (strcmp(name, "java.lang.VirtualThread.park") == 0 || strcmp(name, "java.lang.VirtualThread.parkNanos") == 0) {
            begin = TLE_PARK;
            end = TLE_PARKED;
            timed = strcmp(name, "java.lang.VirtualThread.parkNanos") == 0;
        }
    }
    uint32_t object = begin == TLE_PARK ? object_field(l, BLOCKER_CLASS) : TL_NONE;
    add_wait(l, begin, end, object, TL_NONE, TL_NONE, 0, timed && begin == TLE_PARK);
}

static void on_thread_start(struct loader *l)
{
    const struct rec_thread *started = rec_thread(&l->e->object, wishes[THREAD].name);
    uint32_t thread = thread_of(l, started), parent = thread_field(l, PARENT_THREAD);
    if (thread == TL_NONE)
        thread = thread_field(l, EVENT_THREAD);
    if (started && started->is_virtual && l->ours)
        return; /* jvmscope.ThreadObject tells more */
    struct tl_event *e = add(l, l->e->start_ns, TLE_THREAD_START, thread);
    if (!e)
        return;
    e->other = parent;
    if (map_put(&l->starts, thread, 1) < 0)
        l->error = -ENOMEM;
}

static void on_thread_object(struct loader *l)
{
    uint32_t thread = thread_field(l, EVENT_THREAD), object = object_field(l, THREAD_CLASS);
    if (thread == TL_NONE || object == TL_NONE)
        return;
    timeline_thread_object(l->b, thread, object);
    if (number_field(l, DAEMON))
        timeline_thread_at(l->b, thread)->flags |= TL_THREAD_DAEMON;
    const char *parent_group = rec_string(&l->e->object, "parentGroup", NULL);
    if (parent_group) {
        uint32_t text = string(l, parent_group);
        timeline_thread_at(l->b, thread)->parent_group = text;
    }
    uint32_t carrier = thread_field(l, CARRIER);
    bool existing = carrier == TL_NONE && !map_get(&l->starts, thread);
    if (carrier == TL_NONE && !existing)
        return;
    struct tl_event *e = add(l, l->e->start_ns, TLE_THREAD_START, thread);
    if (e) {
        e->object = object;
        e->other = carrier;
        e->flags = existing ? TLE_EXISTING : TLE_VIRTUAL;
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
    struct tl_event *e = add(l, l->e->start_ns, all ? TLE_NOTIFY_ALL : TLE_NOTIFY, thread_field(l, EVENT_THREAD));
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
    } kinds[] = {{"monitor", TLE_CONTENDED_ENTER}, {"wait", TLE_WAIT}, {"park", TLE_PARK}, {"sleep", TLE_SLEEP}, {"io", TLE_IO},
                 {"unmounted", TLE_UNMOUNT}};

    const char *kind = rec_string(&l->e->object, "kind", "");
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (strcmp(kind, kinds[i].name) != 0)
            continue;
        uint32_t object = object_field(l, MONITOR_CLASS), stack = stack_field(l), owner = thread_field(l, OWNER);
        struct tl_event *e = add(l, l->e->start_ns, kinds[i].kind, thread_field(l, EVENT_THREAD));
        if (!e)
            return;
        e->object = object;
        e->stack = stack;
        e->other = owner;
        e->timeout_ms = millis(ns_field(l, TIMEOUT));
        e->flags = TLE_TOLD;
    }
}

static void on_preempted(struct loader *l)
{
    uint32_t thread = thread_field(l, EVENT_THREAD);
    int64_t ns = ns_field(l, TIME);
    if (thread != TL_NONE && ns > 0 && ns <= l->e->duration_ns && l->e->start_ns > 0 &&
        timeline_delay(l->b, thread, (uint64_t)l->e->start_ns, (uint64_t)(l->e->start_ns + l->e->duration_ns), (uint64_t)ns) <
            0)
        l->error = -ENOMEM;
}

static void on_event(struct loader *l)
{
    switch ((enum tag)l->e->tag) {
    case THREAD_START:
        on_thread_start(l);
        break;
    case THREAD_END: {
        uint32_t thread = thread_field(l, THREAD), on = thread_field(l, EVENT_THREAD);
        struct tl_event *e = add(l, l->e->start_ns, TLE_THREAD_END, thread != TL_NONE ? thread : on);
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
        add_wait(l, TLE_SLEEP, TLE_SLEPT, TL_NONE, TL_NONE, TL_NONE, millis(ns_field(l, TIME)), false);
        break;
    case IO:
        add_wait(l, TLE_IO, TLE_IO_DONE, TL_NONE, TL_NONE, TL_NONE, 0, false);
        break;
    case PAUSE:
        if (timeline_pause(l->b, (uint64_t)l->e->start_ns, (uint64_t)(l->e->start_ns + l->e->duration_ns),
                           string(l, rec_string(&l->e->object, "name", "GC Pause"))) < 0)
            l->error = -ENOMEM;
        break;
    case ANALYSIS:
        l->ours = true;
        l->instrumented = rec_long(&l->e->object, "contanalysis", 0) ? 1 : 0;
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
        add_wait(l, TLE_ACQUIRE, TLE_RELEASE, object_field(l, MONITOR_CLASS), TL_NONE, TL_NONE, 0, false);
        break;
    case PREEMPTED:
        on_preempted(l);
        break;
    case UNMOUNTED:
        on_unmounted(l);
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
        if (strncmp(rec_string(&l->e->object, "reason", ""), "events", 6) == 0)
            l->lost += (uint64_t)rec_long(&l->e->object, "amount", 0);
        break;
    }
}

/*
 * A wait that went on when it was told and ended later was recorded twice, or more often: the record of the whole stays, else
 * the first one. Their beginnings are of the same time.
 */
static bool is_double(const struct tl_event *events, size_t n, size_t i)
{
    const struct tl_event *e = &events[i];
    size_t first = i;
    while (first > 0 && events[first - 1].time == e->time)
        first--;
    for (size_t k = first; k < n && events[k].time == e->time; k++)
        if (k != i && events[k].thread == e->thread && events[k].kind == e->kind && (k < i || !(events[k].flags & TLE_TOLD)))
            return true;
    return false;
}

static int build(struct loader *l, const struct rec_info *info, struct timeline **ret)
{
    struct tl_event *events;
    size_t n;
    int more, r = 0;
    int64_t origin = l->first ? MIN(l->first, info->start_ns) : info->start_ns;
    timeline_origin(l->b, (uint64_t)origin, (uint64_t)origin);
    while (r == 0 && (more = tl_spool_next(&l->events, &events, &n)) != 0) {
        r = MIN(more, 0);
        for (size_t i = 0; r == 0 && i < n; i++) {
            if (i + AHEAD < n)
                timeline_context_ahead(l->b, &events[i + AHEAD], false);
            if (i + AHEAD / 2 < n)
                timeline_context_ahead(l->b, &events[i + AHEAD / 2], true);
            if (events[i].flags & TLE_TOLD && is_double(events, n, i))
                continue;
            r = timeline_add(l->b, &events[i]);
        }
    }
    if (r == 0)
        r = timeline_finish(l->b, (uint64_t)MAX(l->end, info->end_ns), ret);
    return r;
}

static int read_all_events(struct loader *l, struct recording *r)
{
    struct rec_event e;
    int more;
    /* Who wrote it decides what a field means; that is said once, near the beginning, but not before all else. */
    static const struct rec_select analysis[] = {{"jvmscope.ThreadAnalysis", ANALYSIS}, {0}};
    int ret = recording_select(r, analysis);
    if (ret == 0 && recording_next(r, &e) > 0)
        l->ours = true;
    recording_rewind(r);
    if (ret == 0)
        ret = recording_select(r, selected);
    _cleanup_(recording_rows_closep) struct rec_rows *rows = NULL;
    const struct rec_row *batch;
    size_t n;
    if (ret == 0)
        ret = recording_rows_open(&rows, r, wishes, ARRAY_SIZE(wishes));
    l->e = &e;
    while (ret == 0 && (more = recording_rows_next(rows, &batch, &n)) != 0) {
        ret = MIN(more, 0);
        for (size_t i = 0; ret == 0 && i < n; i++) {
            l->row = &batch[i];
            rec_row_event(l->row, &e);
            on_event(l);
            ret = l->error;
        }
    }
    l->e = NULL;
    return ret;
}

static int load_xml(struct timeline **ret, const char *path, struct buf *why)
{
    _cleanup_(file_map_release) struct file_map m = {0};
    int r = file_map_open(&m, path);
    if (r == 0)
        r = trcxml_is(m.data, m.len) ? trcxml_read(ret, m.data, m.len, why) : -ENOEXEC;
    return r;
}

static int load(struct timeline **ret, const char *path, struct buf *why)
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
    l.answers = calloc(ANSWERS, sizeof(*l.answers));
    r = l.answers ? timeline_builder_new(&l.b) : -ENOMEM;
    if (r == 0)
        r = tl_spool_init(&l.events, (uint64_t)MAX(info.start_ns, 0), (uint64_t)MAX(info.end_ns, 0), info.bytes / EVENT_BYTES);
    if (r == 0)
        r = read_all_events(&l, recording);
    recording_info(recording, &info);
    if (r == 0)
        r = build(&l, &info, ret);
    if (r == 0) {
        (*ret)->lost = l.lost;
        (*ret)->instrumented = l.instrumented;
    } else {
        buf_printf(why, "%s", strerror(-r));
    }
    timeline_builder_free(l.b);
    free(l.answers);
    tl_spool_release(&l.events);
    vec_release(&l.threads);
    vec_release(&l.classes);
    vec_release(&l.methods);
    map_release(&l.stacks);
    map_release(&l.starts);
    return r;
}

/* Where the index of a recording lies, and what it must match; 0 when there can be none. */
static uint64_t index_of(const char *path, struct buf *index)
{
    struct stat st;
    buf_printf(index, "%s.timeline", path);
    if (buf_error(index) < 0 || stat(path, &st) < 0)
        return 0;
    return (uint64_t)st.st_size * 1000003u ^ (uint64_t)st.st_mtim.tv_sec * NS_PER_SECOND ^ (uint64_t)st.st_mtim.tv_nsec;
}

int timeline_load(struct timeline **ret, const char *path, struct buf *why)
{
    _cleanup_(buf_release) struct buf index = BUF(8192);
    uint64_t key = index_of(path, &index);
    int r = key ? timeline_map(ret, buf_str(&index), key) : -ENOENT;
    if (r < 0) {
        r = load(ret, path, why);
        if (r == 0 && key && (*ret)->n_nodes >= INDEX_NODES)
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

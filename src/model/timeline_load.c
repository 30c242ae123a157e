/* SPDX-License-Identifier: Apache-2.0 */
#include "model/timeline_load.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/map.h"
#include "base/vec.h"
#include "jfr/reader.h"
#include "model/timeline_spool.h"
#include "model/timeline_trcxml.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Recordings with fewer nodes are read again faster than an index is worth. */
enum { INDEX_NODES = 2000000 };

/* About what an event takes of a recording. */
enum { EVENT_BYTES = 16 };

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
    const struct rec_event *e;
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

static uint32_t thread_field(struct loader *l, const char *field)
{
    return thread_of(l, rec_thread(&l->e->object, field));
}

static uint32_t thread_by_id(struct loader *l, const char *field)
{
    int64_t id = rec_long(&l->e->object, field, 0);
    return id > 0 ? checked(l, timeline_thread(l->b, (uint64_t)id)) : TL_NONE;
}

static uint32_t class_of(struct loader *l, const struct rec_class *c)
{
    uint32_t *known = c ? numbered(l, &l->classes, c->number) : NULL;
    if (!known)
        return TL_NONE;
    if (*known == 0)
        *known = string(l, c->name) + 1;
    return *known - 1;
}

static uint32_t object_field(struct loader *l, const char *class_field)
{
    uint32_t class = class_of(l, rec_class(&l->e->object, class_field));
    int64_t address = rec_long(&l->e->object, "address", 0);
    return class == TL_NONE ? TL_NONE : checked(l, timeline_object(l->b, (uint64_t)address, class));
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

static uint32_t stack_field(struct loader *l, const char *field)
{
    const struct rec_stack *s = rec_stack(&l->e->object, field);
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
    uint32_t thread = thread_field(l, "eventThread"), stack = stack_field(l, "stackTrace");
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
    uint32_t owner = thread_field(l, "previousOwner");
    /* Ours is the owner at enter; the JDK's the one that let it go. */
    add_wait(l, TLE_CONTENDED_ENTER, TLE_CONTENDED_ENTERED, object_field(l, "monitorClass"), l->ours ? owner : TL_NONE,
             l->ours ? TL_NONE : owner, 0, false);
}

static void on_wait(struct loader *l)
{
    add_wait(l, TLE_WAIT, TLE_WAITED, object_field(l, "monitorClass"), TL_NONE, thread_field(l, "notifier"),
             millis(rec_ns(&l->e->object, "timeout", 0)), rec_long(&l->e->object, "timedOut", 0));
}

static void on_park(struct loader *l)
{
    int64_t timeout = rec_long(&l->e->object, "timeout", 0), until = rec_long(&l->e->object, "until", 0);
    if (timeout <= 0 && until > 0)
        timeout = MAX(until * 1000000 - l->e->start_ns, 1);
    add_wait(l, TLE_PARK, TLE_PARKED, object_field(l, "parkedClass"), TL_NONE, TL_NONE, millis(timeout), false);
}

/* Why a virtual thread left its carrier is on its stack. */
static void on_unmounted(struct loader *l)
{
    const struct rec_stack *s = rec_stack(&l->e->object, "stackTrace");
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
    uint32_t object = begin == TLE_PARK ? object_field(l, "blockerClass") : TL_NONE;
    add_wait(l, begin, end, object, TL_NONE, TL_NONE, 0, timed && begin == TLE_PARK);
}

static void on_thread_start(struct loader *l)
{
    const struct rec_thread *started = rec_thread(&l->e->object, "thread");
    uint32_t thread = thread_of(l, started), parent = thread_field(l, "parentThread");
    if (thread == TL_NONE)
        thread = thread_field(l, "eventThread");
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
    uint32_t thread = thread_field(l, "eventThread"), object = object_field(l, "threadClass");
    if (thread == TL_NONE || object == TL_NONE)
        return;
    timeline_thread_object(l->b, thread, object);
    if (rec_long(&l->e->object, "daemon", 0))
        timeline_thread_at(l->b, thread)->flags |= TL_THREAD_DAEMON;
    const char *parent_group = rec_string(&l->e->object, "parentGroup", NULL);
    if (parent_group) {
        uint32_t text = string(l, parent_group);
        timeline_thread_at(l->b, thread)->parent_group = text;
    }
    uint32_t carrier = thread_field(l, "carrier");
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
    uint32_t target = thread_by_id(l, "target"), stack = stack_field(l, "stackTrace");
    struct tl_event *e = add(l, l->e->start_ns, kind, thread_field(l, "eventThread"));
    if (!e)
        return NULL;
    e->other = target;
    e->stack = stack;
    return e;
}

static void on_notify(struct loader *l)
{
    bool all = rec_long(&l->e->object, "all", 0);
    uint32_t object = object_field(l, "monitorClass"), stack = stack_field(l, "stackTrace");
    struct tl_event *e = add(l, l->e->start_ns, all ? TLE_NOTIFY_ALL : TLE_NOTIFY, thread_field(l, "eventThread"));
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
        uint32_t object = object_field(l, "monitorClass"), stack = stack_field(l, "stackTrace"),
                 owner = thread_field(l, "owner");
        struct tl_event *e = add(l, l->e->start_ns, kinds[i].kind, thread_field(l, "eventThread"));
        if (!e)
            return;
        e->object = object;
        e->stack = stack;
        e->other = owner;
        e->timeout_ms = millis(rec_ns(&l->e->object, "timeout", 0));
        e->flags = TLE_TOLD;
    }
}

static void on_preempted(struct loader *l)
{
    uint32_t thread = thread_field(l, "eventThread");
    int64_t ns = rec_ns(&l->e->object, "time", 0);
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
        uint32_t thread = thread_field(l, "thread"), on = thread_field(l, "eventThread");
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
        add_wait(l, TLE_SLEEP, TLE_SLEPT, TL_NONE, TL_NONE, TL_NONE, millis(rec_ns(&l->e->object, "time", 0)), false);
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
        add_wait(l, TLE_ACQUIRE, TLE_RELEASE, object_field(l, "monitorClass"), TL_NONE, TL_NONE, 0, false);
        break;
    case PREEMPTED:
        on_preempted(l);
        break;
    case UNMOUNTED:
        on_unmounted(l);
        break;
    case DEADLOCK: {
        uint32_t object = object_field(l, "monitorClass"), owner = thread_field(l, "owner");
        struct tl_event *e = add(l, l->e->start_ns, TLE_OWNER, thread_field(l, "eventThread"));
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
    l->e = &e;
    while (ret == 0 && (more = recording_next(r, &e)) != 0) {
        if (more > 0)
            on_event(l);
        ret = more < 0 ? more : l->error;
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
    r = timeline_builder_new(&l.b);
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
    tl_spool_release(&l.events);
    vec_release(&l.threads);
    vec_release(&l.classes);
    vec_release(&l.methods);
    map_release(&l.stacks);
    map_release(&l.starts);
    return r;
}

int timeline_load(struct timeline **ret, const char *path, struct buf *why)
{
    struct stat st;
    struct buf index = BUF(8192);
    uint64_t key = stat(path, &st) == 0 ? (uint64_t)st.st_size * 1000003u ^ (uint64_t)st.st_mtim.tv_sec * NS_PER_SECOND ^
                                              (uint64_t)st.st_mtim.tv_nsec
                                        : 0;
    buf_printf(&index, "%s.timeline", path);
    int r = buf_error(&index) < 0 || !key ? -ENOENT : timeline_map(ret, buf_str(&index), key);
    if (r < 0) {
        r = load(ret, path, why);
        if (r == 0 && key && (*ret)->n_nodes >= INDEX_NODES)
            (void)!timeline_save(*ret, buf_str(&index), key); /* a cache: where it cannot be written there is none */
    }
    buf_release(&index);
    return r;
}

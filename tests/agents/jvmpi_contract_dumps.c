/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the contract agent's dumps (section 4 of the specification) to the last byte. */
#include "jvmpi_contract.h"

struct reader {
    const unsigned char *at, *end;
    bool broken;
    const char *where;
    jint level;
    const JVMPI_CallTrace *traces;
    jint n_traces;
};

static uint32_t number(struct reader *r, int bytes)
{
    uint32_t v = 0;
    if (r->end - r->at < bytes)
        r->broken = true;
    for (int i = 0; i < bytes && !r->broken; i++)
        v = v << 8 | *r->at++;
    return v;
}

static void *pointer(struct reader *r)
{
    void *p = NULL;
    if (r->end - r->at < (ptrdiff_t)sizeof(p))
        r->broken = true;
    else
        memcpy(&p, r->at, sizeof(p));
    r->at += r->broken ? 0 : sizeof(p);
    return p;
}

static struct object_record *object(struct reader *r)
{
    return object_of(pointer(r), r->where);
}

static struct class_record *class(struct reader *r)
{
    return class_of(pointer(r), r->where);
}

static int width(char letter)
{
    return letter == 'Z' || letter == 'B'   ? 1
           : letter == 'C' || letter == 'S' ? 2
           : letter == 'I' || letter == 'F' ? 4
                                            : 8;
}

/* Reads values of fields, given their letters. Level 1 has no primitive ones. */
static void values(struct reader *r, const char *letters)
{
    for (; *letters && !r->broken; letters++) {
        bool reference = *letters == 'L' || *letters == '[';
        if (reference)
            (void)object(r);
        else if (r->level != 1)
            for (int n = width(*letters); n > 0; n--)
                (void)number(r, 1);
    }
}

static jint bytes_of(const struct reader *r, const char *letters)
{
    jint n = 0;
    for (; *letters; letters++)
        n += *letters == 'L' || *letters == '[' ? (jint)sizeof(void *)
             : r->level != 1                    ? width(*letters)
                                                : 0;
    return n;
}

static void class_dump(struct reader *r)
{
    struct class_record *c = class(r), *super = class(r);
    (void)object(r); /* loader */
    (void)object(r); /* signers */
    (void)object(r); /* domain */
    (void)object(r); /* the name, or NULL */
    (void)pointer(r);
    uint32_t size = number(r, 4);
    if (!c) {
        r->broken = true;
        return;
    }
    if (c->super_known && c->super != super)
        breach("a class with another super class than before", "%s", c->name);
    c->super = super;
    c->super_known = true;
    if (c->n_instances && size < (uint32_t)c->n_instances)
        breach("a class whose instances have no room for their fields", "%s: %u bytes", c->name,
               size);
    for (jint i = 0; i < c->n_interfaces; i++)
        if (!class(r))
            breach("a class with an interface that is none", "%s", c->name);
    for (uint32_t n = number(r, 2); n > 0 && !r->broken; n--) {
        (void)number(r, 2);
        uint32_t type = number(r, 1);
        (void)(type == JVMPI_CLASS || type == JVMPI_NORMAL_OBJECT ? (void *)object(r) : NULL);
    }
    values(r, c->statics);
}

/* Returns the super class of a class whose own record has not come yet. */
static struct class_record *super_of(struct class_record *c)
{
    if (!c->super_known && vm->RequestEvent(JVMPI_EVENT_OBJECT_DUMP, c->id) != JVMPI_SUCCESS)
        breach("no OBJECT_DUMP of a class", "%s", c->name);
    if (!c->super_known)
        breach("an OBJECT_DUMP that does not tell a class's super class", "%s", c->name);
    return c->super_known ? c->super : NULL;
}

static void instance_dump(struct reader *r)
{
    struct object_record *o = object(r);
    struct class_record *c = class(r);
    jint length = (jint)number(r, 4), sum = 0;
    if (!o || !c) {
        r->broken = true;
        return;
    }
    if (o->class_id != c->id && (o->class_id || strcmp(c->name, "java.lang.Class") != 0))
        breach("an object of another class than its OBJECT_ALLOC said", "%s", c->name);
    for (struct class_record *of = c; of && !r->broken; of = super_of(of)) {
        sum += bytes_of(r, of->instances);
        values(r, of->instances);
    }
    if (sum != length) {
        breach("an instance whose length is not that of its fields", "%s in %s: %d, not %d",
               c->name, r->where, (int)length, (int)sum);
        r->broken = true;
    }
}

static void array_dump(struct reader *r, bool primitive)
{
    struct object_record *o = object(r);
    uint32_t n = number(r, 4);
    jint type = JVMPI_CLASS;
    if (primitive)
        type = (jint)number(r, 1);
    else
        (void)class(r);
    if (o && o->is_array != type)
        breach("an array of another type than its OBJECT_ALLOC said", "%d, not %d", (int)type,
               (int)o->is_array);
    for (; n > 0 && !r->broken && (!primitive || r->level != 1); n--) {
        if (!primitive)
            (void)object(r);
        else if (r->end - r->at < width("....ZCFDBSIJ"[type]))
            r->broken = true;
        else
            r->at += width("....ZCFDBSIJ"[type]);
    }
}

static void frame_of(struct reader *r, JNIEnv *env, jint frame)
{
    for (jint i = 0; i < r->n_traces; i++) {
        if (r->traces[i].env_id != env)
            continue;
        if (frame < -1 || frame >= r->traces[i].num_frames)
            breach("a root in a frame that the trace has not", "%d of %d", (int)frame,
                   (int)r->traces[i].num_frames);
        return;
    }
    breach("a root of a thread that has no trace", "%p in %s", (void *)env, r->where);
}

static void record(struct reader *r)
{
    uint32_t type = number(r, 1);
    JNIEnv *env;
    void *ref;
    switch (type) {
    case JVMPI_GC_CLASS_DUMP:
        class_dump(r);
        return;
    case JVMPI_GC_INSTANCE_DUMP:
        instance_dump(r);
        return;
    case JVMPI_GC_OBJ_ARRAY_DUMP:
    case JVMPI_GC_PRIM_ARRAY_DUMP:
        array_dump(r, type == JVMPI_GC_PRIM_ARRAY_DUMP);
        return;
    /* printed with its name, so the agent must know it as a class */
    case JVMPI_GC_ROOT_STICKY_CLASS:
        if (!class(r))
            breach("a sticky class that is none", "in %s", r->where);
        return;
    case JVMPI_GC_ROOT_UNKNOWN:
    case JVMPI_GC_ROOT_MONITOR_USED:
        if (!object(r))
            breach("a root that is not an object", "type %u", type);
        return;
    case JVMPI_GC_ROOT_JNI_GLOBAL:
        (void)object(r);
        ref = pointer(r);
        if (ref && !table_get(&references, ref))
            breach("a root by an unknown reference", "%p", ref);
        return;
    case JVMPI_GC_ROOT_JNI_LOCAL:
    case JVMPI_GC_ROOT_JAVA_FRAME:
        (void)object(r);
        env = pointer(r);
        if (!thread_of(env, r->where))
            breach("a root of no thread", "type %u", type);
        frame_of(r, env, (jint)number(r, 4));
        return;
    case JVMPI_GC_ROOT_NATIVE_STACK:
    case JVMPI_GC_ROOT_THREAD_BLOCK:
        (void)object(r);
        if (!thread_of(pointer(r), r->where))
            breach("a root of no thread", "type %u", type);
        return;
    default:
        breach("a strange record", "%u in %s", type, r->where);
        r->broken = true;
    }
}

static void check_traces(const JVMPI_CallTrace *traces, jint n, const char *where)
{
    for (jint i = 0; i < n; i++) {
        if (!thread_of(traces[i].env_id, where))
            breach("a trace of no thread", "%p in %s", (void *)traces[i].env_id, where);
        check_trace(&traces[i], where);
        for (jint k = 0; k < i; k++)
            if (traces[k].env_id == traces[i].env_id)
                breach("a thread with two traces", "%p in %s", (void *)traces[i].env_id, where);
    }
}

/* Each thread that was announced, and whose end was not, must have a trace. */
static void check_all_traced(const JVMPI_CallTrace *traces, jint n, const char *where)
{
    struct table traced = {0};
    struct thread_record *t;
    for (jint i = 0; i < n; i++)
        table_put(&traced, traces[i].env_id, traces[i].env_id);
    for (size_t i = 0; (t = table_next(&threads, &i));)
        if (!table_get(&traced, t->env) && is_enabled(JVMPI_EVENT_THREAD_END))
            breach("a thread that was announced has no trace in a dump", "%s, %s; its object is %s",
                   t->name, where, vm->jobjectID2jobject(t->id) ? "there" : "gone");
    free(traced.keys);
    free(traced.values);
}

/* Level 0: reads every object once, with its type. */
static void level_0(struct reader *r)
{
    while (r->at < r->end && !r->broken) {
        jint type = (jint)number(r, 1);
        struct object_record *o = object(r);
        if (!o)
            breach("an object of level 0 that is none", "%s", "");
        else if (o->is_array != type)
            breach("an object of level 0 of another type than its OBJECT_ALLOC said",
                   "%d, not %d, size %d", (int)type, (int)o->is_array, (int)o->size);
    }
}

void on_heap_dump(const JVMPI_Event *e)
{
    static const char *const names[] = {"a heap dump of level 0", "a heap dump of level 1",
                                        "a heap dump of level 2"};
    jint level = e->u.heap_dump.dump_level;
    if (level < 0 || level > 2 || !(e->event_type & JVMPI_REQUESTED_EVENT)) {
        breach("a strange HEAP_DUMP", "level %d", (int)level);
        return;
    }
    struct reader r = {(const unsigned char *)e->u.heap_dump.begin,
                       (const unsigned char *)e->u.heap_dump.end,
                       false,
                       names[level],
                       level,
                       e->u.heap_dump.traces,
                       e->u.heap_dump.num_traces};
    vm->RawMonitorEnter(tables);
    n_dumps[level]++;
    check_traces(r.traces, r.n_traces, r.where);
    if (level > 0)
        check_all_traced(r.traces, r.n_traces, r.where);
    if (level == 0)
        level_0(&r);
    else
        while (r.at < r.end && !r.broken)
            record(&r);
    if (r.broken)
        breach("a dump that cannot be read to its end", "%s, %ld bytes before its end", r.where,
               (long)(r.end - r.at));
    vm->RawMonitorExit(tables);
}

void on_object_dump(const JVMPI_Event *e)
{
    const unsigned char *data = (const unsigned char *)e->u.object_dump.data;
    struct reader r = {data, data + e->u.object_dump.data_len, false, "an object dump", 2, NULL, 0};
    vm->RawMonitorEnter(tables);
    n_object_dumps++;
    record(&r);
    if (r.broken || r.at != r.end)
        breach("a dump that cannot be read to its end", "%s, %ld bytes before its end", r.where,
               (long)(r.end - r.at));
    vm->RawMonitorExit(tables);
}

static void check_traced(const struct reader *r, const JNIEnv *env)
{
    for (jint i = 0; i < r->n_traces; i++)
        if (r->traces[i].env_id == env)
            return;
    breach("a monitor dump that names a thread without a trace", "%p", (const void *)env);
}

/* The state of a thread that the dump has, without its flags. */
static jint status_in(const JVMPI_Event *e, const JNIEnv *env)
{
    for (jint i = 0; i < e->u.monitor_dump.num_traces; i++)
        if (e->u.monitor_dump.traces[i].env_id == env)
            return e->u.monitor_dump.threads_status[i] &
                   ~(JVMPI_THREAD_SUSPENDED | JVMPI_THREAD_INTERRUPTED);
    return 0;
}

/*
 * Reads a list of threads. Each waits for one monitor of a kind at most, is in one of its lists
 * once, and does not own it. status: that of each thread, or 0 where none is required.
 */
static void monitor_threads(struct reader *r, const JVMPI_Event *e, struct table *named,
                            const JNIEnv *owner, jint status)
{
    for (uint32_t n = number(r, 4); n > 0 && !r->broken; n--) {
        JNIEnv *env = pointer(r);
        const struct thread_record *t = thread_of(env, r->where);
        if (!t)
            breach("a monitor dump that names no thread", "%s", "");
        if (env && table_get(named, env))
            breach("a monitor dump in which a thread waits twice", "%s", t ? t->name : "");
        if (env && env == owner)
            breach("a monitor dump in which an owner waits for its monitor", "%s",
                   t ? t->name : "");
        if (env && status && status_in(e, env) != status)
            breach("a monitor dump with another status than its list says", "%s: %d, not %d",
                   t ? t->name : "", (int)status_in(e, env), (int)status);
        if (env)
            table_put(named, env, env);
        check_traced(r, env);
    }
}

void on_monitor_dump(const JVMPI_Event *e)
{
    struct reader r = {(const unsigned char *)e->u.monitor_dump.begin,
                       (const unsigned char *)e->u.monitor_dump.end,
                       false,
                       "a monitor dump",
                       2,
                       e->u.monitor_dump.traces,
                       e->u.monitor_dump.num_traces};
    struct table named[2] = {{0}, {0}}; /* threads that wait for a Java monitor, or a raw one */
    vm->RawMonitorEnter(tables);
    n_monitor_dumps++;
    check_traces(r.traces, r.n_traces, r.where);
    check_all_traced(r.traces, r.n_traces, r.where);
    for (jint i = 0; i < e->u.monitor_dump.num_traces; i++) {
        jint status = e->u.monitor_dump.threads_status[i] &
                      ~(JVMPI_THREAD_SUSPENDED | JVMPI_THREAD_INTERRUPTED);
        if (status < JVMPI_THREAD_RUNNABLE || status > JVMPI_THREAD_CONDVAR_WAIT)
            breach("a strange thread status", "%d in %s", (int)status, r.where);
    }
    while (r.at < r.end && !r.broken) {
        uint32_t type = number(&r, 1);
        if (type == JVMPI_MONITOR_JAVA) {
            if (!object(&r))
                breach("a monitor dump of no object", "%s", "");
        } else if (type == JVMPI_MONITOR_RAW) {
            const char *name = pointer(&r);
            if (!pointer(&r) || !name)
                breach("a raw monitor without id or name", "%s", "");
        } else {
            breach("a strange record", "%u in %s", type, r.where);
            r.broken = true;
        }
        JNIEnv *owner = pointer(&r);
        if (thread_of(owner, r.where))
            check_traced(&r, owner);
        uint32_t entries = number(&r, 4);
        if (!owner != !entries)
            breach("a monitor with an owner and no entries, or entries and no owner", "%p, %u",
                   (void *)owner, entries);
        bool java = type == JVMPI_MONITOR_JAVA;
        struct table *in = &named[java ? 0 : 1];
        monitor_threads(&r, e, in, owner, java ? JVMPI_THREAD_MONITOR_WAIT : 0);
        monitor_threads(&r, e, in, owner, java ? JVMPI_THREAD_CONDVAR_WAIT : 0);
    }
    for (int i = 0; i < 2; i++) {
        free(named[i].keys);
        free(named[i].values);
    }
    if (r.broken)
        breach("a dump that cannot be read to its end", "%s", r.where);
    vm->RawMonitorExit(tables);
}

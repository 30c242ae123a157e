/* SPDX-License-Identifier: Apache-2.0 */
#include "jvmpi_classic.h"

JVMPI_Interface *vm;

static JVMPI_RawMonitor data, sampling, collected, dumping;
static struct table classes, objects, threads, methods, sites, refs;
static bool heap, dump, samples, times, monitors, ended;
static jint trace_depth = 4;
static long n_samples, n_collections, n_contended, n_exits;
static jlong cpu_ns;

void fatal(const char *what, const void *id)
{
    fprintf(stderr, "classic: %s %p\n", what, id);
    fflush(NULL);
    _exit(9);
}

/* ---- lookups ---- */

struct object_info *object_info(jobjectID id)
{
    struct object_info *o = table_get(&objects, id);
    if (o || !id)
        return o;
    vm->RequestEvent(JVMPI_EVENT_OBJECT_ALLOC, id);
    o = table_get(&objects, id);
    if (!o)
        fatal("cannot resolve the object", id);
    return o;
}

struct class_info *class_info(jobjectID id)
{
    if (!id)
        return NULL;
    if (heap)
        (void)object_info(id);
    struct class_info *c = table_get(&classes, id);
    if (c)
        return c;
    vm->RequestEvent(JVMPI_EVENT_CLASS_LOAD, id);
    c = table_get(&classes, id);
    if (!c)
        fatal("cannot resolve the class", id);
    return c;
}

struct thread_info *thread_info(JNIEnv *env)
{
    struct thread_info *t = table_get(&threads, env);
    if (t || !env)
        return t;
    jobjectID id = vm->GetThreadObject(env);
    if (!id)
        fatal("a thread without an object", env);
    vm->RequestEvent(JVMPI_EVENT_THREAD_START, id);
    t = table_get(&threads, env);
    if (!t)
        fatal("cannot resolve the thread", env);
    return t;
}

struct class_info *method_info(jmethodID method)
{
    struct class_info *c = table_get(&methods, method);
    if (c)
        return c;
    vm->RequestEvent(JVMPI_EVENT_CLASS_LOAD, vm->GetMethodClass(method));
    c = table_get(&methods, method);
    if (!c)
        fatal("cannot resolve the method", method);
    return c;
}

struct class_info *super_class(struct class_info *c)
{
    if (!c->linked)
        vm->RequestEvent(JVMPI_EVENT_OBJECT_DUMP, c->id);
    if (!c->linked)
        fatal("cannot find the super class", c->name);
    return c->super;
}

/* ---- events of identities ---- */

static char *letters(const JVMPI_Field *fields, jint n)
{
    char *s = calloc((size_t)n + 1, 1);
    for (jint i = 0; i < n; i++)
        s[i] = fields[i].field_signature[0];
    return s;
}

static void class_load(const JVMPI_Event *e, bool requested)
{
    struct class_info *c = table_get(&classes, e->u.class_load.class_id);
    if (heap)
        (void)object_info(e->u.class_load.class_id);
    if (c && !requested)
        fatal("a class id in use", c->id);
    if (c)
        return;
    c = calloc(1, sizeof(*c));
    c->id = e->u.class_load.class_id;
    c->name = strdup(e->u.class_load.class_name);
    c->n_interfaces = e->u.class_load.num_interfaces;
    c->n_statics = e->u.class_load.num_static_fields;
    c->n_instances = e->u.class_load.num_instance_fields;
    c->statics = letters(e->u.class_load.statics, c->n_statics);
    c->instances = letters(e->u.class_load.instances, c->n_instances);
    table_put(&classes, c->id, c);
    for (jint i = 0; i < e->u.class_load.num_methods; i++) {
        if (!strlen(e->u.class_load.methods[i].method_name) ||
            !strlen(e->u.class_load.methods[i].method_signature))
            fatal("a method without a name", c->name);
        table_put(&methods, e->u.class_load.methods[i].method_id, c);
    }
}

static void thread_start(const JVMPI_Event *e, bool requested)
{
    JNIEnv *env = e->u.thread_start.thread_env_id;
    if (heap)
        (void)object_info(e->u.thread_start.thread_id);
    struct thread_info *t = table_get(&threads, env);
    if (t && !requested)
        fatal("a thread id in use", env);
    if (t)
        return;
    t = calloc(1, sizeof(*t));
    t->env = env;
    t->name = strdup(e->u.thread_start.thread_name);
    t->early = e->env_id != env;
    if (strlen(e->u.thread_start.group_name) + strlen(e->u.thread_start.parent_name) > 10000)
        fatal("strange names of groups", env);
    table_put(&threads, env, t);
    vm->SetThreadLocalStorage(env, t);
}

static void thread_end(JNIEnv *env)
{
    struct thread_info *t = table_remove(&threads, env);
    if (!t)
        fatal("the end of a thread that is not there", env);
    vm->SetThreadLocalStorage(env, NULL);
    free(t->name);
    free(t);
}

static struct site *site_of(struct class_info *class, jmethodID method)
{
    void *key = (void *)((uintptr_t) class * 31 + (uintptr_t)method + 1);
    struct site *s = table_get(&sites, key);
    if (!s) {
        s = calloc(1, sizeof(*s));
        s->class = class;
        s->method = method;
        table_put(&sites, key, s);
    }
    return s;
}

static void object_alloc(const JVMPI_Event *e, bool requested)
{
    JVMPI_CallFrame frames[64];
    JVMPI_CallTrace trace = {e->env_id, 0, frames};
    struct object_info *o = table_get(&objects, e->u.obj_alloc.obj_id);
    if (o && !requested && !o->requested)
        fatal("an object id in use", o->id);
    if (o)
        return;
    o = calloc(1, sizeof(*o));
    o->id = e->u.obj_alloc.obj_id;
    o->size = e->u.obj_alloc.size;
    o->is_array = e->u.obj_alloc.is_array;
    o->requested = requested;
    /* The handler may request the class and thus come here again. */
    struct class_info *c = class_info(e->u.obj_alloc.class_id);
    if (!requested)
        vm->GetCallTrace(&trace, trace_depth);
    for (jint i = 0; i < trace.num_frames; i++)
        (void)method_info(frames[i].method_id);
    struct object_info *meanwhile = table_get(&objects, o->id);
    if (meanwhile) {
        free(o);
        return;
    }
    o->site = site_of(c, trace.num_frames ? frames[0].method_id : NULL);
    o->site->n_alive++;
    o->site->n_all++;
    table_put(&objects, o->id, o);
}

static void object_free(jobjectID id)
{
    struct object_info *o = table_remove(&objects, id);
    if (!o)
        fatal("the end of an object that is not there", id);
    if (--o->site->n_alive < 0)
        fatal("more ends than objects", id);
    free(o);
}

static void class_unload(jobjectID id)
{
    struct class_info *c = table_remove(&classes, id);
    if (!c)
        fatal("the end of a class that is not there", id);
}

static void reference(const JVMPI_Event *e, jint type)
{
    if (type == JVMPI_EVENT_JNI_GLOBALREF_ALLOC) {
        (void)object_info(e->u.jni_globalref_alloc.obj_id);
        if (table_get(&refs, e->u.jni_globalref_alloc.ref_id))
            fatal("a global reference in use", e->u.jni_globalref_alloc.ref_id);
        table_put(&refs, e->u.jni_globalref_alloc.ref_id, e->u.jni_globalref_alloc.ref_id);
    } else if (!table_remove(&refs, e->u.jni_globalref_free.ref_id))
        fatal("a global reference that is not there", e->u.jni_globalref_free.ref_id);
}

/* ---- cpu=times ---- */

static struct thread_info *local(const JVMPI_Event *e)
{
    struct thread_info *t = vm->GetThreadLocalStorage(e->env_id);
    if (!t || t->env != e->env_id)
        fatal("an event of a thread that has not started", e->env_id);
    return t;
}

static void method_entry(const JVMPI_Event *e)
{
    struct thread_info *t = local(e);
    if (t->depth < FRAMES) {
        t->stack[t->depth] = e->u.method.method_id;
        t->entered_ns[t->depth] = vm->GetCurrentThreadCpuTime();
    }
    t->depth++;
}

static void method_exit(const JVMPI_Event *e)
{
    struct thread_info *t = local(e);
    if (t->depth == 0 && t->early)
        return; /* entered before entry events were enabled */
    if (t->depth == 0)
        fatal("a method is left that was not entered", e->u.method.method_id);
    if (--t->depth >= FRAMES)
        return;
    if (t->stack[t->depth] != e->u.method.method_id)
        fatal("another method is left than was entered", e->u.method.method_id);
    jlong ns = vm->GetCurrentThreadCpuTime() - t->entered_ns[t->depth];
    if (ns < 0)
        fatal("time runs backwards", e->u.method.method_id);
    if (t->depth == 0)
        __atomic_fetch_add(&cpu_ns, ns, __ATOMIC_RELAXED);
}

/* ---- cpu=samples ---- */

static void sample(void *unused)
{
    enum { MOST = 64 };

    JNIEnv *envs[MOST];
    JVMPI_CallFrame frames[32];
    struct thread_info *t;
    while (!ended) {
        vm->RawMonitorEnter(sampling);
        vm->RawMonitorWait(sampling, 10);
        vm->RawMonitorExit(sampling);
        vm->RawMonitorEnter(data);
        vm->DisableGC();
        int n = 0;
        for (size_t i = 0; n < MOST && (t = table_next(&threads, &i));)
            if (strncmp(t->name, "classic", 7) != 0)
                envs[n++] = t->env;
        for (int i = 0; i < n; i++) {
            JVMPI_CallTrace trace = {envs[i], 0, frames};
            vm->SuspendThread(envs[i]);
            jint status = vm->GetThreadStatus(envs[i]);
            if (vm->ThreadHasRun(envs[i]) && (status & 0xff) == JVMPI_THREAD_RUNNABLE)
                vm->GetCallTrace(&trace, 32);
            vm->ResumeThread(envs[i]);
            for (jint k = 0; k < trace.num_frames; k++)
                (void)method_info(frames[k].method_id);
            n_samples += trace.num_frames > 0;
        }
        vm->EnableGC();
        vm->RawMonitorExit(data);
    }
}

/* ---- monitor=y ---- */

static void contention(const JVMPI_Event *e, jint type)
{
    struct thread_info *t = local(e);
    jobjectID id = e->u.monitor.object;
    if (heap) {
        vm->RawMonitorEnter(data);
        (void)object_info(id);
        vm->RawMonitorExit(data);
    }
    if (type == JVMPI_EVENT_MONITOR_CONTENDED_ENTER)
        t->monitor = id;
    else if (type == JVMPI_EVENT_MONITOR_CONTENDED_EXIT)
        __atomic_fetch_add(&n_exits, 1, __ATOMIC_RELAXED);
    else if (t->monitor != id)
        fatal("a monitor is entered for which nobody waited", id);
    else
        __atomic_fetch_add(&n_contended, 1, __ATOMIC_RELAXED);
}

/* ---- collections, start and end ---- */

static void watch_collections(void *unused)
{
    vm->RawMonitorEnter(collected);
    while (!ended) {
        vm->RawMonitorWait(collected, 0);
        n_collections++;
    }
    vm->RawMonitorExit(collected);
}

static void write_all(void)
{
    vm->RawMonitorEnter(dumping);
    if (monitors)
        vm->RequestEvent(JVMPI_EVENT_MONITOR_DUMP, NULL);
    if (dump)
        vm->RequestEvent(JVMPI_EVENT_HEAP_DUMP, NULL);
    if (heap) {
        JVMPI_HeapDumpArg living = {JVMPI_DUMP_LEVEL_0};
        vm->RequestEvent(JVMPI_EVENT_HEAP_DUMP, &living);
    }
    vm->RawMonitorExit(dumping);
}

static void init_done(void)
{
    if (samples)
        vm->CreateSystemThread((char *)"classic sampler", JVMPI_MAXIMUM_PRIORITY, sample);
    vm->CreateSystemThread((char *)"classic watcher", JVMPI_NORMAL_PRIORITY, watch_collections);
}

static void shut_down(void)
{
    long n_sites = 0, n_living = 0;
    struct site *s;
    write_all();
    vm->RawMonitorEnter(data);
    ended = true;
    for (size_t i = 0; (s = table_next(&sites, &i)); n_sites++)
        n_living += s->n_alive;
    fprintf(stderr,
            "classic end: sites %ld, living %ld, records %ld, samples %ld, cpu %ld, contended %ld, "
            "exits %ld, gcs %ld\n",
            n_sites, n_living, n_records, n_samples, (long)(cpu_ns / 1000), n_contended, n_exits,
            n_collections);
    vm->RawMonitorExit(data);
}

static void locked(const JVMPI_Event *e, jint type, bool requested)
{
    vm->RawMonitorEnter(data);
    if (type == JVMPI_EVENT_CLASS_LOAD)
        class_load(e, requested);
    else if (type == JVMPI_EVENT_CLASS_UNLOAD)
        class_unload(e->u.class_unload.class_id);
    else if (type == JVMPI_EVENT_THREAD_START)
        thread_start(e, requested);
    else if (type == JVMPI_EVENT_THREAD_END)
        thread_end(e->env_id);
    else if (type == JVMPI_EVENT_OBJECT_ALLOC)
        object_alloc(e, requested);
    else if (type == JVMPI_EVENT_OBJECT_FREE)
        object_free(e->u.obj_free.obj_id);
    else if (type == JVMPI_EVENT_HEAP_DUMP)
        read_heap_dump(e);
    else if (type == JVMPI_EVENT_OBJECT_DUMP)
        read_object_dump(e);
    else if (type == JVMPI_EVENT_MONITOR_DUMP)
        read_monitor_dump(e);
    else
        reference(e, type);
    vm->RawMonitorExit(data);
}

static void notify_event(JVMPI_Event *e)
{
    jint type = e->event_type & ~JVMPI_REQUESTED_EVENT;
    switch (type) {
    case JVMPI_EVENT_METHOD_ENTRY:
        method_entry(e);
        break;
    case JVMPI_EVENT_METHOD_EXIT:
        method_exit(e);
        break;
    case JVMPI_EVENT_GC_START: /* enter now what the events up to GC_FINISH need */
        vm->RawMonitorEnter(dumping);
        vm->RawMonitorEnter(data);
        break;
    case JVMPI_EVENT_GC_FINISH:
        vm->RawMonitorExit(data);
        vm->RawMonitorExit(dumping);
        vm->RawMonitorEnter(collected);
        vm->RawMonitorNotifyAll(collected);
        vm->RawMonitorExit(collected);
        break;
    case JVMPI_EVENT_JVM_INIT_DONE:
        init_done();
        break;
    case JVMPI_EVENT_JVM_SHUT_DOWN:
        shut_down();
        break;
    case JVMPI_EVENT_DATA_DUMP_REQUEST:
        write_all();
        break;
    case JVMPI_EVENT_MONITOR_CONTENDED_ENTER:
    case JVMPI_EVENT_MONITOR_CONTENDED_ENTERED:
    case JVMPI_EVENT_MONITOR_CONTENDED_EXIT:
        contention(e, type);
        break;
    default:
        locked(e, type, e->event_type & JVMPI_REQUESTED_EVENT);
    }
}

static void enable(jint first, jint last)
{
    for (jint type = first; type <= last; type++)
        if (vm->EnableEvent(type, NULL) != JVMPI_SUCCESS)
            fatal("cannot enable event", (void *)(intptr_t)type);
}

static bool option(const char *options, const char *text)
{
    return options && strstr(options, text);
}

JNIEXPORT jint JNICALL JVM_OnLoad(JavaVM *jvm, char *options, void *reserved);

JNIEXPORT jint JNICALL JVM_OnLoad(JavaVM *jvm, char *options, void *reserved)
{
    if ((*jvm)->GetEnv(jvm, (void **)&vm, JVMPI_VERSION_1) != JNI_OK)
        return JNI_ERR;
    dump = option(options, "heap=dump") || option(options, "heap=all");
    heap = dump || option(options, "heap=sites");
    samples = option(options, "cpu=samples");
    times = option(options, "cpu=times");
    monitors = option(options, "monitor=y");
    if (option(options, "depth="))
        trace_depth = atoi(strstr(options, "depth=") + 6);
    vm->NotifyEvent = notify_event;
    data = vm->RawMonitorCreate((char *)"_classic data");
    sampling = vm->RawMonitorCreate((char *)"_classic sampling");
    collected = vm->RawMonitorCreate((char *)"_classic collected");
    dumping = vm->RawMonitorCreate((char *)"_classic dumping");
    enable(JVMPI_EVENT_THREAD_START, JVMPI_EVENT_THREAD_END);
    enable(JVMPI_EVENT_CLASS_LOAD, JVMPI_EVENT_JVM_SHUT_DOWN);
    enable(JVMPI_EVENT_GC_START, JVMPI_EVENT_GC_FINISH);
    if (heap)
        enable(JVMPI_EVENT_OBJECT_ALLOC, JVMPI_EVENT_OBJECT_MOVE);
    if (dump)
        enable(JVMPI_EVENT_JNI_GLOBALREF_ALLOC, JVMPI_EVENT_JNI_GLOBALREF_FREE);
    if (times) {
        enable(JVMPI_EVENT_METHOD_ENTRY, JVMPI_EVENT_METHOD_ENTRY);
        enable(JVMPI_EVENT_METHOD_EXIT, JVMPI_EVENT_METHOD_EXIT);
    }
    if (monitors)
        enable(JVMPI_EVENT_MONITOR_CONTENDED_ENTER, JVMPI_EVENT_MONITOR_CONTENDED_EXIT);
    return JNI_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contract agent's events, its own threads and its list of breaches; see jvmpi_contract.h.
 * Options, separated by commas: out=FILE (the list), every=N (a trace for one in N objects),
 * methods=0, only=N+N (enable these events alone, and request each id), instructions=1, dumps=MS
 * and sample=MS (how often dumps are requested and threads are sampled while the program runs; 0
 * means never), brackets=0 (hold no monitor from GC_START to GC_FINISH), collect=1 (collect before
 * a heap dump is read), unload=MS (how long the first handler of COMPILED_METHOD_UNLOAD takes).
 */
#include "jvmpi_contract.h"

#include <stdarg.h>

JVMPI_Interface *vm;
JavaVM *java_vm;
JVMPI_RawMonitor tables;
bool all_defined, init_done, shut_down;
long n_gc, n_dumps[3], n_monitor_dumps, n_object_dumps;

static long every = 16, with_methods = 1, with_instructions, with_brackets = 1, dumps_ms = 400,
            sample_ms = 50, with_collections, unload_ms;
static char out_path[400];
static JVMPI_RawMonitor work; /* a raw monitor whose contention is reported */
static atomic_long counts[64], n_requested, n_samples;

static uint64_t enabled;

bool is_enabled(jint type)
{
    return enabled >> type & 1;
}

/* ---- the list of breaches ---- */

enum { KINDS = 100 };

static pthread_mutex_t list_mutex = PTHREAD_MUTEX_INITIALIZER;

static struct {
    const char *what;
    char detail[300];
    long n;
} list[KINDS];

static void write_list(void)
{
    FILE *f = fopen(out_path, "w");
    if (!f)
        return;
    pthread_mutex_lock(&list_mutex);
    for (int i = 0; i < KINDS && list[i].what; i++)
        fprintf(f, "breach %ld %s: %s\n", list[i].n, list[i].what, list[i].detail);
    pthread_mutex_unlock(&list_mutex);
    for (int i = 0; i < 64; i++)
        if (counts[i])
            fprintf(f, "event %d %ld\n", i, atomic_load(&counts[i]));
    fprintf(f,
            "requested %ld\ndumps %ld %ld %ld\nmonitor_dumps %ld\nobject_dumps %ld\nsamples %ld\n",
            atomic_load(&n_requested), n_dumps[0], n_dumps[1], n_dumps[2], n_monitor_dumps,
            n_object_dumps, atomic_load(&n_samples));
    fprintf(f, "%s\n", shut_down ? "end" : "running");
    fclose(f);
}

void breach(const char *what, const char *format, ...)
{
    pthread_mutex_lock(&list_mutex);
    int i = 0;
    while (i < KINDS - 1 && list[i].what && strcmp(list[i].what, what) != 0)
        i++;
    if (!list[i].what) {
        va_list args;
        va_start(args, format);
        list[i].what = what;
        vsnprintf(list[i].detail, sizeof(list[i].detail), format, args);
        va_end(args);
    }
    list[i].n++;
    pthread_mutex_unlock(&list_mutex);
}

long now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- events ---- */

static __thread int requesting_dumps;

/*
 * Finds the thread of an event. A thread whose Thread object no other thread has made (the main
 * thread, and threads that attach themselves) may report that object and its class first; its
 * THREAD_START must come next.
 */
static __thread bool starts;

static struct thread_record *whose(const JVMPI_Event *e)
{
    JNIEnv *env = NULL;
    (void)(*java_vm)->GetEnv(java_vm, (void **)&env, JNI_VERSION_1_2);
    if (e->env_id != env)
        breach("an event on another thread than its env_id says", "event %d",
               (int)(e->event_type & 0xff));
    struct thread_record *t = e->env_id ? vm->GetThreadLocalStorage(env) : NULL;
    jint type = e->event_type & ~JVMPI_REQUESTED_EVENT;
    bool before = type == JVMPI_EVENT_OBJECT_ALLOC || type == JVMPI_EVENT_CLASS_LOAD ||
                  type == JVMPI_EVENT_OBJECT_DUMP || type == JVMPI_EVENT_ARENA_NEW;
    /* Reported while the thread holds `work`, which others take while they hold `tables`. */
    bool raw = type >= JVMPI_EVENT_RAW_MONITOR_CONTENDED_ENTER &&
               type <= JVMPI_EVENT_RAW_MONITOR_CONTENDED_EXIT;
    if (raw)
        return t;
    if (!t && e->env_id && before && !table_get(&threads, e->env_id)) {
        starts = true; /* nothing else may precede its start */
    } else if (!t && e->env_id) {
        static char where[JVMPI_MAX_EVENT_TYPE_VAL + 1][40]; /* the tables refer to it */
        vm->RawMonitorEnter(tables);
        snprintf(where[type], sizeof(where[type]), "the env_id of event %d", (int)type);
        t = thread_of(env, where[type]);
        vm->RawMonitorExit(tables);
    }
    return t;
}

static void on_method(struct thread_record *t, jint type, jmethodID method)
{
    if (!class_of_known_method(method)) {
        vm->RawMonitorEnter(tables);
        (void)class_of_method(method, "a method event");
        vm->RawMonitorExit(tables);
    }
    if (!t)
        return;
    if (type == JVMPI_EVENT_METHOD_ENTRY) {
        if (t->depth < STACK)
            t->stack[t->depth] = method;
        t->depth++;
    } else if (type == JVMPI_EVENT_METHOD_ENTRY2) {
        if (t->depth == 0 || (t->depth <= STACK && t->stack[t->depth - 1] != method))
            breach("METHOD_ENTRY2 without METHOD_ENTRY", "in %s", t->name);
    } else if (t->depth == 0) {
        if (!t->early)
            breach("METHOD_EXIT without METHOD_ENTRY", "in %s", t->name);
    } else {
        t->depth--;
        if (t->depth < STACK && t->stack[t->depth] != method) {
            struct class_record *in = class_of_known_method(t->stack[t->depth]),
                                *out = class_of_known_method(method);
            breach("METHOD_EXIT of another method than was entered last",
                   "in %s: entered %s, left %s", t->name, in ? in->name : "?",
                   out ? out->name : "?");
        }
    }
}

/*
 * Handles the object of a thread that was not announced. Every other time it requests the thread
 * here, as agents do that look up the env_id of each event. Its THREAD_START has then been sent and
 * must not come again.
 */
static void on_own_object(const JVMPI_Event *e)
{
    static atomic_long n;
    if (!e->env_id || atomic_fetch_add(&n, 1) % 2 ||
        e->u.obj_alloc.obj_id != vm->GetThreadObject(e->env_id))
        return;
    vm->RawMonitorEnter(tables);
    define_thread(e->env_id, "OBJECT_ALLOC of a thread's own object");
    all_defined |= table_get(&threads, e->env_id) != NULL;
    vm->RawMonitorExit(tables);
    starts = false;
}

static void on_allocation(const JVMPI_Event *e, struct thread_record *t, bool requested)
{
    static atomic_long n;
    JVMPI_CallFrame frames[32];
    JVMPI_CallTrace trace = {e->env_id, 0, frames};
    bool traced = !requested && atomic_fetch_add(&n, 1) % every == 0;
    if (traced)
        vm->GetCallTrace(&trace, 32);
    vm->RawMonitorEnter(tables);
    on_object_alloc(e, requested);
    if (traced)
        check_trace(&trace, "the trace of an OBJECT_ALLOC");
    /*
     * A dump may find objects that have ended since, but objects that a thread has just made exist.
     * For the dump of a class, its CLASS_LOAD would be requested before it comes unasked.
     */
    const struct class_record *c = table_get(&classes, e->u.obj_alloc.class_id);
    bool of_class = c && !strcmp(c->name, "java.lang.Class");
    if (traced && !requesting_dumps && init_done && n % 16 == 0 && !of_class &&
        vm->RequestEvent(JVMPI_EVENT_OBJECT_DUMP, e->u.obj_alloc.obj_id) != JVMPI_SUCCESS)
        breach("no OBJECT_DUMP of the object of an OBJECT_ALLOC", "%p",
               (void *)e->u.obj_alloc.obj_id);
    vm->RawMonitorExit(tables);
    if (!requested && starts)
        on_own_object(e);
    if (traced && trace.num_frames == 0 && t && t->depth > 0)
        breach("no trace of a thread that is in a method", "%s, OBJECT_ALLOC", t->name);
}

static void on_monitor(const JVMPI_Event *e, struct thread_record *t, jint type)
{
    bool waits = type == JVMPI_EVENT_MONITOR_WAIT || type == JVMPI_EVENT_MONITOR_WAITED;
    jobjectID id = waits ? e->u.monitor_wait.object : e->u.monitor.object;
    vm->RawMonitorEnter(tables);
    struct object_record *o = object_of(id, waits ? "MONITOR_WAIT(ED)" : "MONITOR_CONTENDED_");
    if (o && type == JVMPI_EVENT_MONITOR_CONTENDED_ENTER)
        o->contenders++;
    else if (o && type == JVMPI_EVENT_MONITOR_CONTENDED_ENTERED)
        o->contenders--;
    else if (o && type == JVMPI_EVENT_MONITOR_CONTENDED_EXIT && o->contenders <= 0 &&
             is_enabled(JVMPI_EVENT_MONITOR_CONTENDED_ENTER))
        breach("MONITOR_CONTENDED_EXIT while no thread contends", "by %s", t ? t->name : "?");
    vm->RawMonitorExit(tables);
    if (!id && !waits)
        breach("MONITOR_CONTENDED_ without an object", "event %d", (int)type);
    if (waits && e->u.monitor_wait.timeout < 0)
        breach("a negative time of waiting", "%ld", (long)e->u.monitor_wait.timeout);
    if (!t)
        return;
    if (type == JVMPI_EVENT_MONITOR_CONTENDED_ENTER) {
        if (t->in_contended)
            breach("MONITOR_CONTENDED_ENTER of a thread that contends", "%s", t->name);
        t->in_contended = true;
        t->contended = id;
    } else if (type == JVMPI_EVENT_MONITOR_CONTENDED_ENTERED) {
        if (!t->in_contended || t->contended != id)
            breach("MONITOR_CONTENDED_ENTERED without its ENTER", "%s", t->name);
        t->in_contended = false;
    } else if (type == JVMPI_EVENT_MONITOR_WAIT) {
        if (t->in_wait)
            breach("MONITOR_WAIT of a thread that waits", "%s", t->name);
        t->in_wait = true;
        t->waiting = id;
    } else if (type == JVMPI_EVENT_MONITOR_WAITED) {
        if (!t->in_wait || t->waiting != id)
            breach("MONITOR_WAITED without its WAIT", "%s", t->name);
        t->in_wait = false;
    }
}

static void on_raw(const JVMPI_Event *e, struct thread_record *t, jint type)
{
    if (e->u.raw_monitor.id != work || strcmp(e->u.raw_monitor.name, "contract work") != 0)
        breach("an event of a raw monitor that is not ours or silent", "%s", e->u.raw_monitor.name);
    if (!t)
        return;
    if (type == JVMPI_EVENT_RAW_MONITOR_CONTENDED_ENTER)
        t->in_raw = true;
    else if (type == JVMPI_EVENT_RAW_MONITOR_CONTENDED_ENTERED && !t->in_raw)
        breach("RAW_MONITOR_CONTENDED_ENTERED without its ENTER", "%s", t->name);
    else if (type == JVMPI_EVENT_RAW_MONITOR_CONTENDED_ENTERED)
        t->in_raw = false;
}

/* Requires the monitor. The table has weak and strong references. */
static void on_reference(const JVMPI_Event *e, jint type)
{
    bool alloc =
        type == JVMPI_EVENT_JNI_GLOBALREF_ALLOC || type == JVMPI_EVENT_JNI_WEAK_GLOBALREF_ALLOC;
    jobject ref = alloc ? e->u.jni_globalref_alloc.ref_id : e->u.jni_globalref_free.ref_id;
    if (!alloc) {
        if (!table_remove(&references, ref))
            breach("JNI_GLOBALREF_FREE of an unknown reference", "%p, event %d", (void *)ref,
                   (int)type);
        return;
    }
    if (table_get(&references, ref))
        breach("JNI_GLOBALREF_ALLOC of a reference that is there", "%p", (void *)ref);
    if (!object_of(e->u.jni_globalref_alloc.obj_id, "JNI_GLOBALREF_ALLOC"))
        breach("JNI_GLOBALREF_ALLOC without an object", "%p", (void *)ref);
    table_put(&references, ref, ref);
}

static void on_compiled(const JVMPI_Event *e)
{
    vm->RawMonitorEnter(tables);
    (void)class_of_method(e->u.compiled_method_load.method_id, "COMPILED_METHOD_LOAD");
    vm->RawMonitorExit(tables);
    if (!e->u.compiled_method_load.code_addr || e->u.compiled_method_load.code_size <= 0)
        breach("compiled code without an address", "%p",
               (void *)e->u.compiled_method_load.method_id);
    for (jint i = 0; i < e->u.compiled_method_load.lineno_table_size; i++)
        if (e->u.compiled_method_load.lineno_table[i].offset < 0 ||
            e->u.compiled_method_load.lineno_table[i].offset > e->u.compiled_method_load.code_size)
            breach("a line outside of the compiled code", "%d",
                   (int)e->u.compiled_method_load.lineno_table[i].offset);
}

/*
 * The method's class must not be undefined before the handler has returned. With unload=MS the
 * class's end is held back up to here, because otherwise the event may be left out.
 */
static void on_uncompiled(const JVMPI_Event *e)
{
    static atomic_flag released = ATOMIC_FLAG_INIT;
    if (unload_ms && !atomic_flag_test_and_set(&released)) {
        vm->EnableGC();
        usleep((useconds_t)(unload_ms * 1000));
    }
    if (!class_of_known_method(e->u.compiled_method_unload.method_id))
        breach("COMPILED_METHOD_UNLOAD of an unknown method", "%p",
               (void *)e->u.compiled_method_unload.method_id);
}

static __thread bool in_bracket;
static atomic_int brackets;

static void on_gc(const JVMPI_Event *e, jint type)
{
    if (type == JVMPI_EVENT_GC_START) {
        if (with_brackets)
            vm->RawMonitorEnter(tables);
        if (atomic_fetch_add(&brackets, 1) || in_bracket)
            breach("GC_START within GC_START", "%s", "");
        in_bracket = true;
        n_gc++;
        return;
    }
    if (!in_bracket)
        breach("GC_FINISH without GC_START on its thread", "%s", "");
    if (e->u.gc_info.used_objects <= 0 || e->u.gc_info.used_object_space <= 0 ||
        e->u.gc_info.total_object_space < e->u.gc_info.used_object_space)
        breach("GC_FINISH with a strange heap", "%ld objects, %ld of %ld bytes",
               (long)e->u.gc_info.used_objects, (long)e->u.gc_info.used_object_space,
               (long)e->u.gc_info.total_object_space);
    if (!in_bracket)
        return;
    in_bracket = false;
    atomic_fetch_sub(&brackets, 1);
    if (with_brackets)
        vm->RawMonitorExit(tables);
}

static void on_arena(const JVMPI_Event *e)
{
    static char known;
    if (table_get(&arenas, (void *)(intptr_t)e->u.new_arena.arena_id) || !e->u.new_arena.arena_name)
        breach("ARENA_NEW of an arena that is there or has no name", "%d",
               (int)e->u.new_arena.arena_id);
    table_put(&arenas, (void *)(intptr_t)e->u.new_arena.arena_id, &known);
}

/* Agents that keep superclasses get them from the class's own dump. */
static void after_class_load(const JVMPI_Event *e, bool requested)
{
    if (!requested &&
        vm->RequestEvent(JVMPI_EVENT_OBJECT_DUMP, e->u.class_load.class_id) != JVMPI_SUCCESS)
        breach("no OBJECT_DUMP of a class", "%s", e->u.class_load.class_name);
    vm->RawMonitorEnter(work);
    vm->RawMonitorExit(work);
}

/* ---- what the agent does without being asked ---- */

/* RunGC does nothing while a dump is handled, but the program may have the VM collect. */
static void collect_as_program(void)
{
    JNIEnv *env = NULL;
    (void)(*java_vm)->GetEnv(java_vm, (void **)&env, JNI_VERSION_1_2);
    jclass system = (*env)->FindClass(env, "java/lang/System");
    (*env)->CallStaticVoidMethod(env, system, (*env)->GetStaticMethodID(env, system, "gc", "()V"));
    (*env)->DeleteLocalRef(env, system);
}

/* Requests dumps of the objects in the tables; an object may have ended in the meantime. */
static void request_object_dumps(void)
{
    enum { MOST = 20000 };

    static jobjectID ids[MOST];
    struct object_record *o;
    size_t n = 0;
    vm->RawMonitorEnter(tables);
    for (size_t i = 0; n < MOST && (o = table_next(&objects, &i));)
        if (o->is_array == JVMPI_NORMAL_OBJECT)
            ids[n++] = o->id;
    vm->RawMonitorExit(tables);
    for (size_t i = 0; i < n; i++)
        (void)vm->RequestEvent(JVMPI_EVENT_OBJECT_DUMP, ids[i]);
}

void request_dumps(void)
{
    static bool all_requested;
    requesting_dumps++;
    if (!all_requested)
        request_known();
    for (jint level = 0; level <= 2; level++) {
        JVMPI_HeapDumpArg arg = {level};
        if (vm->RequestEvent(JVMPI_EVENT_HEAP_DUMP, level == 2 ? NULL : &arg) != JVMPI_SUCCESS)
            breach("no HEAP_DUMP", "level %d", (int)level);
    }
    if (vm->RequestEvent(JVMPI_EVENT_MONITOR_DUMP, NULL) != JVMPI_SUCCESS)
        breach("no MONITOR_DUMP", "%s", "");
    if (!all_requested)
        request_object_dumps();
    all_requested = true;
    requesting_dumps--;
}

/* Requires the monitor, so no thread of the table can have reported its end. */
static void check_threads(void)
{
    struct thread_record *t;
    if (!is_enabled(JVMPI_EVENT_THREAD_END))
        return; /* the table has threads that ended */
    for (size_t i = 0; (t = table_next(&threads, &i));) {
        jint status =
            vm->GetThreadStatus(t->env) & ~(JVMPI_THREAD_SUSPENDED | JVMPI_THREAD_INTERRUPTED);
        if (status < JVMPI_THREAD_RUNNABLE || status > JVMPI_THREAD_CONDVAR_WAIT)
            breach("a thread without a status", "%s, %d", t->name, (int)status);
        if (vm->GetThreadObject(t->env) != t->id)
            breach("a thread with another object than its THREAD_START said", "%s: %p, not %p",
                   t->name, (void *)vm->GetThreadObject(t->env), (void *)t->id);
    }
}

/*
 * Enters the monitor for our own thread, which requests nothing once the handler of JVM_SHUT_DOWN
 * has made the list. Returns false then, without the monitor.
 */
static bool enter_unless_shut_down(void)
{
    vm->RawMonitorEnter(tables);
    if (!shut_down)
        return true;
    vm->RawMonitorExit(tables);
    return false;
}

static long ends(void)
{
    return counts[JVMPI_EVENT_OBJECT_FREE] + counts[JVMPI_EVENT_CLASS_UNLOAD] +
           counts[JVMPI_EVENT_GC_START] + counts[JVMPI_EVENT_GC_FINISH];
}

static void sample(void)
{
    enum { MOST = 200, DEEP = 64 };

    static JVMPI_CallFrame frames[MOST][DEEP];
    JNIEnv *self = NULL, *envs[MOST];
    jint results[MOST], n = 0;
    struct thread_record *t;
    (void)(*java_vm)->GetEnv(java_vm, (void **)&self, JNI_VERSION_1_2);
    vm->DisableGC();
    long ended = ends();
    if (!enter_unless_shut_down()) {
        vm->EnableGC();
        return;
    }
    check_threads();
    for (size_t i = 0; n < MOST && (t = table_next(&threads, &i));)
        if (t->env != self)
            envs[n++] = t->env;
    vm->SuspendThreadList(n, envs, results);
    check_threads();
    JVMPI_CallTrace traces[MOST];
    for (jint i = 0; i < n; i++) {
        traces[i] = (JVMPI_CallTrace){envs[i], 0, frames[i]};
        (void)vm->ThreadHasRun(envs[i]);
        vm->GetCallTrace(&traces[i], DEEP);
    }
    vm->ResumeThreadList(n, envs, results);
    for (jint i = 0; i < n; i++)
        check_trace(&traces[i], "a sample");
    n_samples += n;
    if (ends() != ended)
        breach("events of a collection while GC is disabled", "%ld", ends() - ended);
    vm->RawMonitorExit(tables);
    vm->EnableGC();
    /* Often, so that one comes while threads start, contend and end; with a lock and without. */
    static long n_dumped;
    bool locked = n_dumped++ % 2;
    if (!enter_unless_shut_down())
        return;
    if (!locked)
        vm->RawMonitorExit(tables);
    strict += !locked;
    if (vm->RequestEvent(JVMPI_EVENT_MONITOR_DUMP, NULL) != JVMPI_SUCCESS)
        breach("no MONITOR_DUMP", "%s", "");
    strict -= !locked;
    if (locked)
        vm->RawMonitorExit(tables);
    vm->RawMonitorEnter(work);
    usleep(1000);
    vm->RawMonitorExit(work);
}

static void run_sampler(void *unused)
{
    long last = now_ms();
    while (!shut_down) {
        vm->RawMonitorEnter(work);
        vm->RawMonitorWait(work, sample_ms ? sample_ms : 100);
        vm->RawMonitorExit(work);
        if (sample_ms)
            sample();
        if (!dumps_ms || now_ms() - last < dumps_ms || !enter_unless_shut_down())
            continue;
        vm->RawMonitorExit(tables);
        strict++;
        request_dumps();
        strict--;
        if (!enter_unless_shut_down())
            continue;
        request_dumps();
        vm->RawMonitorExit(tables);
        vm->RunGC();
        last = now_ms();
    }
}

/* Makes references, because the JDK's own libraries make many and hardly free any. */
static void make_references(void)
{
    JNIEnv *env = NULL;
    (void)(*java_vm)->GetEnv(java_vm, (void **)&env, JNI_VERSION_1_2);
    jobject thread = vm->jobjectID2jobject(vm->GetThreadObject(env)),
            global = (*env)->NewGlobalRef(env, thread);
    jweak weak = (*env)->NewWeakGlobalRef(env, thread);
    if (!thread || !global || !weak)
        breach("no object of the main thread's id", "%p", (void *)thread);
    (*env)->DeleteGlobalRef(env, global);
    (*env)->DeleteWeakGlobalRef(env, weak);
    (*env)->DeleteLocalRef(env, thread);
}

JNIEXPORT void JNICALL Java_JvmpiContract_references(JNIEnv *env, jclass class);

/*
 * Called by the program: replaces some references, so that references are made and freed while
 * dumps are taken.
 */
JNIEXPORT void JNICALL Java_JvmpiContract_references(JNIEnv *env, jclass class)
{
    enum { MANY = 10 };

    static jobject all[MANY]; /* for one thread */
    for (int i = 0; i < MANY; i++) {
        if (all[i])
            (*env)->DeleteGlobalRef(env, all[i]);
        all[i] = (*env)->NewGlobalRef(env, class);
    }
}

/* ---- threads that attach themselves; the VM has each make its own Thread object ---- */

static JavaVM *program_vm; /* the program also runs without the agent */
static jclass program;
static jmethodID in_attached;

enum { ATTACHES = 3 }; /* also in JvmpiContract.java */

/*
 * Attaches itself several times, as libraries do that call back. The VM gives it and the other one
 * of its pair new environments each time, or those that either had before.
 */
static void *attach_repeatedly(void *unused)
{
    for (int i = 0; i < ATTACHES; i++) {
        JNIEnv *env = NULL;
        if ((*program_vm)->AttachCurrentThread(program_vm, (void **)&env, NULL) != JNI_OK) {
            breach("a thread that cannot attach itself", "%s", "");
            return NULL;
        }
        (*env)->CallStaticVoidMethod(env, program, in_attached);
        if ((*env)->ExceptionCheck(env))
            breach("an exception in a thread that has attached itself", "%s", "");
        (*program_vm)->DetachCurrentThread(program_vm);
    }
    return NULL;
}

JNIEXPORT void JNICALL Java_JvmpiContract_attach(JNIEnv *env, jclass class, jint n);

/* Called by the program: has n pairs of threads attach themselves without a name. */
JNIEXPORT void JNICALL Java_JvmpiContract_attach(JNIEnv *env, jclass class, jint n)
{
    (*env)->GetJavaVM(env, &program_vm);
    program = (*env)->NewGlobalRef(env, class);
    in_attached = (*env)->GetStaticMethodID(env, class, "attached", "()V");
    for (jint i = 0; i < n; i++) {
        pthread_t pair[2];
        int started = 0;
        while (started < 2 && !pthread_create(&pair[started], NULL, attach_repeatedly, NULL))
            started++;
        while (started > 0)
            pthread_join(pair[--started], NULL);
    }
    (*env)->DeleteGlobalRef(env, program);
}

static void on_init_done(void)
{
    init_done = true;
    if (unload_ms)
        vm->DisableGC();
    make_references();
    vm->RawMonitorEnter(tables);
    request_dumps();
    vm->RawMonitorExit(tables);
    if ((dumps_ms || sample_ms) &&
        vm->CreateSystemThread((char *)"contract sampler", JVMPI_MAXIMUM_PRIORITY, run_sampler) !=
            JNI_OK)
        breach("no system thread", "%s", "");
    write_list();
}

static void on_shut_down(void)
{
    vm->RawMonitorEnter(tables);
    request_known();
    request_dumps();
    request_known(); /* includes objects that dumps were the first to report */
    check_threads();
    check_tables_at_end();
    if (atomic_load(&brackets))
        breach("GC_START without GC_FINISH", "%s", "");
    shut_down = true;
    write_list();
    vm->RawMonitorExit(tables);
}

static void define(const JVMPI_Event *e, jint type, bool requested)
{
    vm->RawMonitorEnter(tables);
    if (type == JVMPI_EVENT_CLASS_LOAD)
        on_class_load(e, requested);
    else if (type == JVMPI_EVENT_CLASS_UNLOAD)
        on_class_unload(e->u.class_unload.class_id);
    else if (type == JVMPI_EVENT_THREAD_START) {
        on_thread_start(e, requested);
        all_defined |= !requested;
    } else if (type == JVMPI_EVENT_THREAD_END)
        on_thread_end(e->env_id);
    else if (type == JVMPI_EVENT_ARENA_NEW)
        on_arena(e);
    else
        on_reference(e, type);
    vm->RawMonitorExit(tables);
}

static void dispatch(const JVMPI_Event *e, struct thread_record *t, jint type, bool requested)
{
    switch (type) {
    case JVMPI_EVENT_METHOD_ENTRY2:
        if (e->u.method_entry2.obj_id) {
            vm->RawMonitorEnter(tables);
            (void)object_of(e->u.method_entry2.obj_id, "METHOD_ENTRY2");
            vm->RawMonitorExit(tables);
        }
        __attribute__((fallthrough));
    case JVMPI_EVENT_METHOD_ENTRY:
    case JVMPI_EVENT_METHOD_EXIT:
        on_method(t, type, e->u.method.method_id);
        break;
    case JVMPI_EVENT_INSTRUCTION_START:
        if (!class_of_known_method(e->u.instruction.method_id))
            breach("INSTRUCTION_START of an unknown method", "%p",
                   (void *)e->u.instruction.method_id);
        break;
    case JVMPI_EVENT_OBJECT_ALLOC:
        on_allocation(e, t, requested);
        break;
    case JVMPI_EVENT_OBJECT_FREE:
    case JVMPI_EVENT_CLASS_UNLOAD:
        if (!in_bracket)
            breach("OBJECT_FREE or CLASS_UNLOAD outside of GC_START and GC_FINISH", "%s", "");
        if (type == JVMPI_EVENT_OBJECT_FREE) {
            vm->RawMonitorEnter(tables);
            on_object_free(e->u.obj_free.obj_id);
            vm->RawMonitorExit(tables);
            break;
        }
        __attribute__((fallthrough));
    case JVMPI_EVENT_CLASS_LOAD:
    case JVMPI_EVENT_THREAD_START:
    case JVMPI_EVENT_THREAD_END:
    case JVMPI_EVENT_ARENA_NEW:
    case JVMPI_EVENT_JNI_GLOBALREF_ALLOC:
    case JVMPI_EVENT_JNI_GLOBALREF_FREE:
    case JVMPI_EVENT_JNI_WEAK_GLOBALREF_ALLOC:
    case JVMPI_EVENT_JNI_WEAK_GLOBALREF_FREE:
        define(e, type, requested);
        if (type == JVMPI_EVENT_CLASS_LOAD)
            after_class_load(e, requested);
        break;
    case JVMPI_EVENT_COMPILED_METHOD_LOAD:
        on_compiled(e);
        break;
    case JVMPI_EVENT_COMPILED_METHOD_UNLOAD:
        on_uncompiled(e);
        break;
    case JVMPI_EVENT_GC_START:
    case JVMPI_EVENT_GC_FINISH:
        on_gc(e, type);
        break;
    case JVMPI_EVENT_HEAP_DUMP:
        if (with_collections)
            collect_as_program();
        on_heap_dump(e);
        break;
    case JVMPI_EVENT_OBJECT_DUMP:
        on_object_dump(e);
        break;
    case JVMPI_EVENT_MONITOR_DUMP:
        on_monitor_dump(e);
        break;
    case JVMPI_EVENT_DATA_DUMP_REQUEST:
        vm->RawMonitorEnter(tables);
        request_dumps();
        vm->RawMonitorExit(tables);
        break;
    case JVMPI_EVENT_JVM_INIT_DONE:
        if (init_done || (!all_defined && is_enabled(JVMPI_EVENT_THREAD_START)))
            breach("JVM_INIT_DONE twice, or before the main thread", "%s", "");
        on_init_done();
        break;
    case JVMPI_EVENT_JVM_SHUT_DOWN:
        on_shut_down();
        break;
    default:
        if (type >= JVMPI_EVENT_RAW_MONITOR_CONTENDED_ENTER &&
            type <= JVMPI_EVENT_RAW_MONITOR_CONTENDED_EXIT)
            on_raw(e, t, type);
        else if (type >= JVMPI_EVENT_MONITOR_CONTENDED_ENTER && type <= JVMPI_EVENT_MONITOR_WAITED)
            on_monitor(e, t, type);
        else if (type != JVMPI_EVENT_CLASS_LOAD_HOOK && type != JVMPI_EVENT_DATA_RESET_REQUEST)
            breach("an event that was not asked for", "%d", (int)type);
    }
}

static void notify_event(JVMPI_Event *e)
{
    jint type = e->event_type & ~JVMPI_REQUESTED_EVENT;
    bool requested = e->event_type & JVMPI_REQUESTED_EVENT;
    if (shut_down) {
        breach("an event after JVM_SHUT_DOWN", "%d", (int)type);
        write_list(); /* once more */
    }
    if (type < 1 || type > JVMPI_MAX_EVENT_TYPE_VAL)
        return breach("a strange event", "%d", (int)e->event_type);
    atomic_fetch_add(requested ? &n_requested : &counts[type], 1);
    if (type == JVMPI_EVENT_CLASS_LOAD_HOOK) {
        e->u.class_load_hook.new_class_data = e->u.class_load_hook.class_data;
        e->u.class_load_hook.new_class_data_len = e->u.class_load_hook.class_data_len;
    }
    /* The event of a thread's start names the thread itself. */
    bool own_start =
        type == JVMPI_EVENT_THREAD_START && e->u.thread_start.thread_env_id == e->env_id;
    if (own_start)
        starts = false;
    dispatch(e, own_start || type == JVMPI_EVENT_CLASS_LOAD_HOOK ? NULL : whose(e), type,
             requested);
}

static long option(const char *options, const char *name, long otherwise)
{
    const char *at = strstr(options, name);
    return at ? atol(at + strlen(name)) : otherwise;
}

JNIEXPORT jint JNICALL JVM_OnLoad(JavaVM *jvm, char *options, void *reserved);

JNIEXPORT jint JNICALL JVM_OnLoad(JavaVM *jvm, char *options, void *reserved)
{
    const char *path = options ? strstr(options, "out=") : NULL;
    java_vm = jvm;
    if (!path || (*jvm)->GetEnv(jvm, (void **)&vm, JVMPI_VERSION_1) != JNI_OK)
        return JNI_ERR;
    snprintf(out_path, sizeof(out_path), "%.*s", (int)strcspn(path + 4, ","), path + 4);
    every = option(options, "every=", every);
    with_methods = option(options, "methods=", with_methods);
    with_instructions = option(options, "instructions=", with_instructions);
    with_brackets = option(options, "brackets=", with_brackets);
    with_collections = option(options, "collect=", with_collections);
    dumps_ms = option(options, "dumps=", dumps_ms);
    sample_ms = option(options, "sample=", sample_ms);
    unload_ms = option(options, "unload=", unload_ms);
    const char *only = strstr(options, "only=");
    uint64_t wanted = only ? 0 : UINT64_MAX;
    for (char *at = only ? (char *)only + 5 : NULL; at && *at && *at != ',';
         at += strspn(at, "0123456789"), at += *at == '+')
        wanted |= UINT64_C(1) << atoi(at);
    wanted |= UINT64_C(1) << JVMPI_EVENT_JVM_INIT_DONE | UINT64_C(1) << JVMPI_EVENT_JVM_SHUT_DOWN;
    vm->NotifyEvent = notify_event;
    tables = vm->RawMonitorCreate((char *)"_contract tables");
    work = vm->RawMonitorCreate((char *)"contract work");
    for (jint type = 1; type <= JVMPI_MAX_EVENT_TYPE_VAL; type++) {
        bool off = !(wanted >> type & 1) || (type <= JVMPI_EVENT_METHOD_EXIT && !with_methods) ||
                   (type == JVMPI_EVENT_INSTRUCTION_START && !with_instructions) ||
                   (type > JVMPI_EVENT_INSTRUCTION_START && type < JVMPI_EVENT_THREAD_START) ||
                   type == 36;
        bool dump = type == JVMPI_EVENT_HEAP_DUMP || type == JVMPI_EVENT_MONITOR_DUMP ||
                    type == JVMPI_EVENT_OBJECT_DUMP;
        if (!off && vm->EnableEvent(type, NULL) != (dump ? JVMPI_NOT_AVAILABLE : JVMPI_SUCCESS))
            breach("EnableEvent answers strangely", "%d", (int)type);
        enabled |= (uint64_t)(!off && !dump) << type;
    }
    return JNI_OK;
}

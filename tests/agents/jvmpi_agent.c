/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A JVMPI agent in the style of 1999 that checks the layer: -Xrunjvmpitest:EVENT+EVENT+... enables those events (numbers). It
 * counts what arrives, checks that identities are defined before they are used, and answers JvmpiWork's questions. At
 * JVM_SHUT_DOWN it prints "jvmpi NAME VALUE" lines.
 */
#include "jvmpi.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static JVMPI_Interface *jvmpi;
static JavaVM *java_vm;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long counts[64], requested[64];
static long faults;
static char first_fault[200];

static void fault(const char *what)
{
    pthread_mutex_lock(&lock);
    if (faults++ == 0)
        strncpy(first_fault, what, sizeof(first_fault) - 1);
    pthread_mutex_unlock(&lock);
}

/* ---- what is known ---- */

static struct known_thread {
    JNIEnv *env;
    jobjectID id;
    char name[64];
    long methods; /* entered and not left */
} threads[4096];

static int n_threads;

static struct known_class {
    jobjectID id;
    char name[128];
    JVMPI_Method methods[40];
    int n_methods, n_statics, n_instances, n_interfaces, unloaded;
} * classes;

static int n_classes;

static struct known_thread *thread_by_name(const char *name)
{
    int i;
    for (i = n_threads; i-- > 0;)
        if (!strcmp(threads[i].name, name))
            return &threads[i];
    return NULL;
}

static struct known_class *class_by_name(const char *name)
{
    int i;
    for (i = 0; i < n_classes; i++)
        if (!strcmp(classes[i].name, name))
            return &classes[i];
    return NULL;
}

static jmethodID method_named(const char *class_name, const char *name)
{
    struct known_class *c = class_by_name(class_name);
    int i;
    for (i = 0; c && i < c->n_methods; i++)
        if (!strcmp(c->methods[i].method_name, name))
            return c->methods[i].method_id;
    return NULL;
}

/* ---- methods of interest ---- */
static long entries_of_leaf, exits_of_leaf, entries_of_thrower, exits_of_thrower, entries_with_object;
static jobjectID wanted_receiver;
static long total_entries, total_exits;

/* ---- objects ---- */
static jobjectID freed[200000], allocated[200000];
static long n_freed, n_allocated, allocated_markers, allocated_ints, in_gc, frees_outside_gc;
static jobjectID marker_class;
static JVMPI_RawMonitor gc_monitor;
static jlong last_used_objects, last_used_space;

static long init_order; /* bits: 1 allocs, 2 classes, 4 threads, in the order they came */
static long last_wait_timeout = -1, last_waited = -1;
static jobjectID last_contended, last_waited_on, watched; /* events of one monitor are counted apart */
static long watched_counts[64];
static long dump_bytes, dump_records, object_dump_type, monitor_owner_found, monitor_traces;
static jobjectID dump_wanted;
static JNIEnv *monitor_wanted_owner;
static unsigned char object_dump[4096];
static long object_dump_len, hook_seen_magic, hook_patched;
static long raw_order;

static void on_class_load(JVMPI_Event *e)
{
    struct known_class *c;
    int i;
    pthread_mutex_lock(&lock);
    c = &classes[n_classes];
    if (n_classes < 19999)
        n_classes++;
    c->id = e->u.class_load.class_id;
    strncpy(c->name, e->u.class_load.class_name, sizeof(c->name) - 1);
    c->n_methods = e->u.class_load.num_methods < 40 ? e->u.class_load.num_methods : 40;
    for (i = 0; i < c->n_methods; i++) {
        c->methods[i] = e->u.class_load.methods[i];
        c->methods[i].method_name = strdup(e->u.class_load.methods[i].method_name);
        c->methods[i].method_signature = strdup(e->u.class_load.methods[i].method_signature);
    }
    c->n_statics = e->u.class_load.num_static_fields;
    c->n_instances = e->u.class_load.num_instance_fields;
    c->n_interfaces = e->u.class_load.num_interfaces;
    if (!strcmp(c->name, "JvmpiWork$Marker"))
        marker_class = c->id;
    if (!init_order || init_order == 1)
        init_order = init_order * 10 + 2;
    pthread_mutex_unlock(&lock);
}

static void on_thread_start(JVMPI_Event *e)
{
    pthread_mutex_lock(&lock);
    if (n_threads < 4096) {
        threads[n_threads].env = e->u.thread_start.thread_env_id;
        threads[n_threads].id = e->u.thread_start.thread_id;
        strncpy(threads[n_threads].name, e->u.thread_start.thread_name, 63);
        n_threads++;
    }
    if (init_order && init_order % 10 != 4 && !counts[JVMPI_EVENT_JVM_INIT_DONE])
        init_order = init_order * 10 + 4;
    pthread_mutex_unlock(&lock);
}

static void on_method(JVMPI_Event *e, int type)
{
    static jmethodID leaf, thrower;
    long *nesting;
    if (!leaf) {
        leaf = method_named("JvmpiWork", "leaf");
        thrower = method_named("JvmpiWork", "thrower");
    }
    __sync_fetch_and_add(type == JVMPI_EVENT_METHOD_EXIT ? &total_exits : &total_entries, 1);
    if (e->u.method.method_id == leaf && type != JVMPI_EVENT_METHOD_ENTRY2)
        __sync_fetch_and_add(type == JVMPI_EVENT_METHOD_EXIT ? &exits_of_leaf : &entries_of_leaf, 1);
    if (e->u.method.method_id == thrower && type != JVMPI_EVENT_METHOD_ENTRY2)
        __sync_fetch_and_add(type == JVMPI_EVENT_METHOD_EXIT ? &exits_of_thrower : &entries_of_thrower, 1);
    if (type == JVMPI_EVENT_METHOD_ENTRY2 && wanted_receiver && e->u.method_entry2.obj_id == wanted_receiver)
        __sync_fetch_and_add(&entries_with_object, 1);
    nesting = (long *)jvmpi->GetThreadLocalStorage(e->env_id);
    if (!nesting) {
        nesting = (long *)calloc(1, sizeof(*nesting));
        jvmpi->SetThreadLocalStorage(e->env_id, nesting);
        if (jvmpi->GetThreadLocalStorage(e->env_id) != nesting) {
            char name[64] = "thread-local storage of an unknown thread: ";
            pthread_getname_np(pthread_self(), name + strlen(name), 16);
            fault(name);
        }
    }
    *nesting += type == JVMPI_EVENT_METHOD_EXIT ? -1 : 1;
}

/* Of the method "steps": how many instructions, and what they told, in order: "i1" if true, "t3,0,5" a table's key and bounds
 * ... */
static long sleeps = -1, slept = -1, n_steps, plain_offsets;
static char steps[400];

static void on_instruction(JVMPI_Event *e)
{
    static jmethodID wanted;
    static jint before;
    char one[60] = "";
    if (!wanted)
        wanted = method_named("JvmpiWork", "steps");
    if (!wanted || e->u.instruction.method_id != wanted)
        return;
    if (n_steps++ == 0)
        before = -1;
    if (e->u.instruction.offset > before)
        plain_offsets++;
    before = e->u.instruction.offset;
    /* by the offsets in JvmpiWork's class file that the program tells */
    if (e->u.instruction.u.tableswitch_info.low == 10 && e->u.instruction.u.tableswitch_info.hi == 13)
        sprintf(one, "t%d ", (int)e->u.instruction.u.tableswitch_info.key);
    else if (e->u.instruction.u.lookupswitch_info.pairs_total == 3)
        sprintf(one, "l%d ", (int)e->u.instruction.u.lookupswitch_info.chosen_pair_index);
    else if (e->u.instruction.u.if_info.is_true == JNI_TRUE)
        strcpy(one, "i ");
    if (strlen(steps) + strlen(one) < sizeof(steps))
        strcat(steps, one);
}

static unsigned be32(const unsigned char *p)
{
    return (unsigned)p[0] << 24 | (unsigned)p[1] << 16 | (unsigned)p[2] << 8 | p[3];
}

static void on_heap_dump(JVMPI_Event *e)
{
    char *p;
    dump_bytes = e->u.heap_dump.end - e->u.heap_dump.begin;
    dump_records = 0;
    for (p = e->u.heap_dump.begin; p < e->u.heap_dump.end; p += 1 + sizeof(void *)) {
        jobjectID id;
        memcpy(&id, p + 1, sizeof(id));
        if (id == dump_wanted)
            dump_records += 1000000000L;
        dump_records++;
    }
    if (p != e->u.heap_dump.end || e->u.heap_dump.num_traces)
        fault("a heap dump of level 0 does not end at its end");
}

static jobject last_ref;
static jobjectID last_ref_object;
static long leaf_compiled, raw_listed;
static JVMPI_RawMonitor contended;
static JNIEnv *volatile contender_env, *raw_owner;
static long raw_parties;

static void on_monitor_dump(JVMPI_Event *e)
{
    unsigned char *p = (unsigned char *)e->u.monitor_dump.begin, *end = (unsigned char *)e->u.monitor_dump.end;
    monitor_traces = e->u.monitor_dump.num_traces;
    while (p < end) {
        int type = *p++, list;
        void *id, *owner, *name = NULL;
        if (type == JVMPI_MONITOR_RAW) {
            memcpy(&name, p, sizeof(name));
            p += sizeof(void *);
        } else if (type != JVMPI_MONITOR_JAVA)
            fault("a monitor dump's record of no known type");
        memcpy(&id, p, sizeof(id));
        memcpy(&owner, p + sizeof(id), sizeof(owner));
        p += 2 * sizeof(void *);
        if (id == dump_wanted && owner == monitor_wanted_owner && be32(p) == 1)
            monitor_owner_found++;
        p += 4;
        for (list = 0; list < 2; list++) {
            unsigned n = be32(p);
            if (id == dump_wanted && list == 0 && n == 1)
                monitor_owner_found += 10;
            if (name && id == contended && n == 1) {
                void *party;
                memcpy(&party, p + 4, sizeof(party));
                raw_parties += party == contender_env ? (list ? 100 : 10) : 1000;
            }
            p += 4 + n * sizeof(void *);
        }
        raw_listed += name && id == contended;
        if (name && id == contended && owner == raw_owner)
            raw_parties += strcmp((char *)name, "contended") ? 5000 : 1;
    }
    if (p != end)
        fault("a monitor dump does not end at its end");
}

static void on_hook(JVMPI_Event *e)
{
    unsigned char *d = e->u.class_load_hook.class_data;
    int i, len = e->u.class_load_hook.class_data_len;
    if (len > 4 && d[0] == 0xca && d[1] == 0xfe)
        hook_seen_magic++;
    e->u.class_load_hook.new_class_data = d;
    e->u.class_load_hook.new_class_data_len = len;
    for (i = 0; i + 12 < len; i++) {
        if (!memcmp(d + i, "patch me now", 12)) {
            unsigned char *fresh = (unsigned char *)e->u.class_load_hook.malloc_f((unsigned)len);
            memcpy(fresh, d, (size_t)len);
            memcpy(fresh + i, "was patched!", 12);
            e->u.class_load_hook.new_class_data = fresh;
            hook_patched++;
        }
    }
}

static void print_all(void)
{
    int i;
    for (i = 0; i < 64; i++)
        if (counts[i] || requested[i])
            printf("jvmpi event %d %ld %ld\n", i, counts[i], requested[i]);
    printf("jvmpi faults %ld %s\n", faults, first_fault);
    printf("jvmpi init_order %ld\n", init_order);
    printf("jvmpi methods %ld %ld\n", total_entries, total_exits);
    printf("jvmpi frees_outside_gc %ld\n", frees_outside_gc);
    printf("jvmpi hook %ld %ld\n", hook_seen_magic, hook_patched);
    fflush(stdout);
}

static void notify_event(JVMPI_Event *e)
{
    int type = e->event_type & 0xff, i;
    JNIEnv *env = NULL;
    (*java_vm)->GetEnv(java_vm, (void **)&env, JNI_VERSION_1_2);
    if (e->env_id != env)
        fault("an event on another thread than its env_id says");
    if (e->event_type & JVMPI_REQUESTED_EVENT)
        __sync_fetch_and_add(&requested[type], 1);
    else
        __sync_fetch_and_add(&counts[type], 1);
    switch (type) {
    case JVMPI_EVENT_CLASS_LOAD:
        on_class_load(e);
        break;
    case JVMPI_EVENT_CLASS_UNLOAD:
        pthread_mutex_lock(&lock);
        for (i = 0; i < n_classes; i++)
            if (classes[i].id == e->u.class_unload.class_id)
                classes[i].unloaded++;
        pthread_mutex_unlock(&lock);
        /* "Thus the profiler may ask about a class to the end" */
        if (jvmpi->RequestEvent(JVMPI_EVENT_CLASS_LOAD, e->u.class_unload.class_id) != JVMPI_SUCCESS)
            fault("no CLASS_LOAD on request within CLASS_UNLOAD");
        break;
    case JVMPI_EVENT_THREAD_START:
        on_thread_start(e);
        break;
    case JVMPI_EVENT_THREAD_END:
        for (i = 0; i < n_threads && threads[i].env != e->env_id; i++)
            ;
        if (i == n_threads && counts[JVMPI_EVENT_THREAD_START])
            fault("the end of a thread that never started");
        break;
    case JVMPI_EVENT_METHOD_ENTRY:
    case JVMPI_EVENT_METHOD_ENTRY2:
    case JVMPI_EVENT_METHOD_EXIT:
        on_method(e, type);
        break;
    case JVMPI_EVENT_OBJECT_ALLOC:
        if (e->u.obj_alloc.arena_id != 1)
            fault("an arena that is not 1");
        if (e->event_type & JVMPI_REQUESTED_EVENT)
            break;
        pthread_mutex_lock(&lock);
        if (!init_order)
            init_order = 1;
        if (marker_class && e->u.obj_alloc.class_id == marker_class && e->u.obj_alloc.is_array == JVMPI_NORMAL_OBJECT) {
            allocated_markers++;
            if (n_allocated < 200000)
                allocated[n_allocated++] = e->u.obj_alloc.obj_id;
        }
        if (e->u.obj_alloc.is_array == JVMPI_INT && e->u.obj_alloc.size >= 4 * 12345 && e->u.obj_alloc.size < 4 * 12345 + 32)
            allocated_ints++;
        pthread_mutex_unlock(&lock);
        break;
    case JVMPI_EVENT_OBJECT_FREE:
        if (counts[JVMPI_EVENT_GC_START] && !in_gc)
            frees_outside_gc++;
        if (n_freed < 200000)
            freed[n_freed++] = e->u.obj_free.obj_id;
        break;
    case JVMPI_EVENT_GC_START:
        jvmpi->RawMonitorEnter(gc_monitor);
        in_gc = 1;
        break;
    case JVMPI_EVENT_GC_FINISH:
        in_gc = 0;
        last_used_objects = e->u.gc_info.used_objects;
        last_used_space = e->u.gc_info.used_object_space;
        if (last_used_space > e->u.gc_info.total_object_space)
            fault("more space used than there is");
        jvmpi->RawMonitorExit(gc_monitor);
        break;
    case JVMPI_EVENT_MONITOR_CONTENDED_ENTER:
    case JVMPI_EVENT_MONITOR_CONTENDED_ENTERED:
    case JVMPI_EVENT_MONITOR_CONTENDED_EXIT:
        last_contended = e->u.monitor.object;
        if (e->u.monitor.object == watched)
            __sync_fetch_and_add(&watched_counts[type], 1);
        break;
    case JVMPI_EVENT_INSTRUCTION_START:
        on_instruction(e);
        break;
    case JVMPI_EVENT_MONITOR_WAIT:
        if (!e->u.monitor_wait.object)
            sleeps = (long)e->u.monitor_wait.timeout;
        last_wait_timeout = (long)e->u.monitor_wait.timeout;
        last_waited_on = e->u.monitor_wait.object;
        break;
    case JVMPI_EVENT_MONITOR_WAITED:
        if (!e->u.monitor_wait.object)
            slept = (long)e->u.monitor_wait.timeout;
        last_waited = (long)e->u.monitor_wait.timeout;
        break;
    case JVMPI_EVENT_RAW_MONITOR_CONTENDED_ENTER:
    case JVMPI_EVENT_RAW_MONITOR_CONTENDED_ENTERED:
    case JVMPI_EVENT_RAW_MONITOR_CONTENDED_EXIT:
        if (strcmp(e->u.raw_monitor.name, "contended") != 0)
            fault("an event of a raw monitor of another name");
        __sync_fetch_and_add(&raw_order, 1);
        break;
    case JVMPI_EVENT_JNI_GLOBALREF_ALLOC:
    case JVMPI_EVENT_JNI_WEAK_GLOBALREF_ALLOC:
        last_ref = e->u.jni_globalref_alloc.ref_id;
        last_ref_object = e->u.jni_globalref_alloc.obj_id;
        break;
    case JVMPI_EVENT_JNI_GLOBALREF_FREE:
    case JVMPI_EVENT_JNI_WEAK_GLOBALREF_FREE:
        last_ref = e->u.jni_globalref_free.ref_id;
        break;
    case JVMPI_EVENT_COMPILED_METHOD_LOAD:
        if (e->u.compiled_method_load.method_id == method_named("JvmpiWork", "leaf"))
            __sync_fetch_and_add(&leaf_compiled, 1);
        if (!e->u.compiled_method_load.code_addr || e->u.compiled_method_load.code_size <= 0)
            fault("compiled code without an address");
        break;
    case JVMPI_EVENT_HEAP_DUMP:
        on_heap_dump(e);
        break;
    case JVMPI_EVENT_MONITOR_DUMP:
        on_monitor_dump(e);
        break;
    case JVMPI_EVENT_OBJECT_DUMP:
        object_dump_len = e->u.object_dump.data_len;
        if (object_dump_len <= (long)sizeof(object_dump))
            memcpy(object_dump, e->u.object_dump.data, (size_t)object_dump_len);
        object_dump_type = object_dump[0];
        break;
    case JVMPI_EVENT_CLASS_LOAD_HOOK:
        on_hook(e);
        break;
    case JVMPI_EVENT_JVM_SHUT_DOWN:
        print_all();
        break;
    }
}

/* ---- questions of JvmpiWork: ask(what, object, number) ---- */

static long system_thread_ran;

static void system_thread(void *unused)
{
    JNIEnv *env = NULL;
    (*java_vm)->GetEnv(java_vm, (void **)&env, JNI_VERSION_1_2);
    system_thread_ran = env ? 1 : -1;
}

static void *waiter(void *unused)
{
    JNIEnv *env;
    (*java_vm)->AttachCurrentThread(java_vm, (void **)&env, NULL);
    jvmpi->RawMonitorEnter(contended);
    contender_env = env;
    jvmpi->RawMonitorWait(contended, 0);
    jvmpi->RawMonitorExit(contended);
    (*java_vm)->DetachCurrentThread(java_vm);
    return NULL;
}

static void *contender(void *unused)
{
    JNIEnv *env;
    (*java_vm)->AttachCurrentThread(java_vm, (void **)&env, NULL);
    contender_env = env;
    jvmpi->RawMonitorEnter(contended);
    jvmpi->RawMonitorNotifyAll(contended);
    jvmpi->RawMonitorExit(contended);
    (*java_vm)->DetachCurrentThread(java_vm);
    return NULL;
}

static void pause_ms(long ms)
{
    struct timespec t;
    t.tv_sec = ms / 1000;
    t.tv_nsec = ms % 1000 * 1000000L;
    nanosleep(&t, NULL);
}

static long raw_monitors(char *name)
{
    pthread_t t;
    long before = raw_order;
    int i;
    contended = jvmpi->RawMonitorCreate(name);
    jvmpi->RawMonitorEnter(contended);
    jvmpi->RawMonitorEnter(contended);
    pthread_create(&t, NULL, contender, NULL);
    for (i = 0; i < 500 && *name != '_' && raw_order == before; i++)
        pause_ms(10);
    pause_ms(100);
    jvmpi->RawMonitorExit(contended);
    jvmpi->RawMonitorWait(contended, 5000); /* until the contender notifies */
    jvmpi->RawMonitorExit(contended);
    pthread_join(t, NULL);
    jvmpi->RawMonitorEnter(contended);
    jvmpi->RawMonitorWait(contended, 50);
    jvmpi->RawMonitorExit(contended);
    jvmpi->RawMonitorExit(contended); /* one too many: ignored */
    jvmpi->RawMonitorDestroy(contended);
    jvmpi->RawMonitorEnter(contended); /* dead: ignored */
    return raw_order - before;
}

/* What MONITOR_DUMP has of a raw monitor that we own: 1, and 10 when the contender wants in, 100 when it waits. */
static long raw_dump(int waits)
{
    pthread_t t;
    JNIEnv *env = NULL;
    int i;
    (*java_vm)->GetEnv(java_vm, (void **)&env, JNI_VERSION_1_2);
    contended = jvmpi->RawMonitorCreate("contended");
    raw_parties = 0;
    raw_owner = waits ? NULL : env;
    if (!waits)
        jvmpi->RawMonitorEnter(contended);
    contender_env = NULL;
    pthread_create(&t, NULL, waits ? waiter : contender, NULL);
    for (i = 0; i < 500 && !contender_env; i++)
        pause_ms(10);
    for (i = 0; i < 500 && raw_parties % 10000 / 10 == 0; i++) {
        pause_ms(10);
        raw_parties = 0;
        jvmpi->RequestEvent(JVMPI_EVENT_MONITOR_DUMP, NULL);
    }
    if (waits) {
        jvmpi->RawMonitorEnter(contended);
        jvmpi->RawMonitorNotifyAll(contended);
    }
    jvmpi->RawMonitorExit(contended);
    pthread_join(t, NULL);
    jvmpi->RawMonitorDestroy(contended);
    return raw_parties;
}

static long now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static volatile int inside_contended;

static void *enterer(void *unused)
{
    JNIEnv *env;
    (*java_vm)->AttachCurrentThread(java_vm, (void **)&env, NULL);
    jvmpi->RawMonitorEnter(contended);
    inside_contended = 1;
    jvmpi->RawMonitorNotifyAll(contended);
    jvmpi->RawMonitorExit(contended);
    (*java_vm)->DetachCurrentThread(java_vm);
    return NULL;
}

/* A digit a rule: entered twice it is left once and still held; left, another comes in; notified; a wait lasts; dead. */
static long raw_rules(void)
{
    pthread_t t;
    long began, r = 0;
    int i;
    contended = jvmpi->RawMonitorCreate("rules");
    inside_contended = 0;
    jvmpi->RawMonitorEnter(contended);
    jvmpi->RawMonitorEnter(contended);
    pthread_create(&t, NULL, enterer, NULL);
    pause_ms(50);
    jvmpi->RawMonitorExit(contended);
    pause_ms(50);
    r += inside_contended ? 0 : 1;
    began = now_ms();
    jvmpi->RawMonitorWait(contended, 20000); /* lets the other in, which notifies */
    r += now_ms() - began < 15000 ? 10 : 0;
    r += inside_contended ? 100 : 0;
    began = now_ms();
    jvmpi->RawMonitorWait(contended, 60);
    r += now_ms() - began >= 59 ? 1000 : 0;
    jvmpi->RawMonitorExit(contended);
    pthread_join(t, NULL);
    inside_contended = 0;
    pthread_create(&t, NULL, enterer, NULL);
    for (i = 0; i < 300 && !inside_contended; i++)
        pause_ms(10);
    r += inside_contended ? 10000 : 0; /* after the last exit it is free */
    if (!inside_contended)
        pthread_detach(t);
    else
        pthread_join(t, NULL);
    raw_listed = 0;
    jvmpi->RequestEvent(JVMPI_EVENT_MONITOR_DUMP, NULL);
    r += raw_listed == 1 ? 100000 : 0;
    jvmpi->RawMonitorDestroy(contended);
    raw_listed = 0;
    jvmpi->RequestEvent(JVMPI_EVENT_MONITOR_DUMP, NULL);
    r += raw_listed == 0 ? 1000000 : 0;
    return r;
}

/* Events of references that this makes: global made, freed, weak made, freed, each with its own reference and object. */
static long references(JNIEnv *env, jobject o)
{
    long r = 0, before;
    jobjectID id = jvmpi->jobject2jobjectID(o);
    jobject ref;
    before = counts[JVMPI_EVENT_JNI_GLOBALREF_ALLOC];
    ref = (*env)->NewGlobalRef(env, o);
    r += counts[JVMPI_EVENT_JNI_GLOBALREF_ALLOC] == before + 1 && last_ref == ref && last_ref_object == id ? 1 : 0;
    before = counts[JVMPI_EVENT_JNI_GLOBALREF_FREE];
    (*env)->DeleteGlobalRef(env, ref);
    r += counts[JVMPI_EVENT_JNI_GLOBALREF_FREE] == before + 1 && last_ref == ref ? 10 : 0;
    before = counts[JVMPI_EVENT_JNI_WEAK_GLOBALREF_ALLOC];
    ref = (*env)->NewWeakGlobalRef(env, o);
    r += counts[JVMPI_EVENT_JNI_WEAK_GLOBALREF_ALLOC] == before + 1 && last_ref == ref && last_ref_object == id ? 100 : 0;
    before = counts[JVMPI_EVENT_JNI_WEAK_GLOBALREF_FREE];
    (*env)->DeleteWeakGlobalRef(env, ref);
    r += counts[JVMPI_EVENT_JNI_WEAK_GLOBALREF_FREE] == before + 1 && last_ref == ref ? 1000 : 0;
    return r;
}

/* The user's signal: a dump request, then a reset request. */
static long signals(void)
{
    int i;
    kill(getpid(), SIGQUIT);
    for (i = 0; i < 1000 && !counts[JVMPI_EVENT_DATA_RESET_REQUEST]; i++)
        pause_ms(10);
    return counts[JVMPI_EVENT_DATA_DUMP_REQUEST] * 10 + counts[JVMPI_EVENT_DATA_RESET_REQUEST];
}

static long all_marker_frees(void)
{
    long i, k, n = 0;
    for (i = 0; i < n_allocated; i++)
        for (k = 0; k < n_freed; k++)
            if (freed[k] == allocated[i]) {
                n++;
                break;
            }
    return n;
}

static long trace_of(JNIEnv *env, const char *expected, int depth)
{
    JVMPI_CallFrame frames[64];
    JVMPI_CallTrace trace;
    int i;
    trace.env_id = env;
    trace.frames = frames;
    trace.num_frames = -1;
    jvmpi->GetCallTrace(&trace, depth);
    for (i = 0; i < trace.num_frames; i++)
        if (frames[i].method_id == method_named("JvmpiWork", expected))
            return trace.num_frames * 100000L + i * 10000L + frames[i].lineno;
    return trace.num_frames * 100000L;
}

JNIEXPORT jlong JNICALL Java_JvmpiWork_ask(JNIEnv *env, jclass unused, jstring jwhat, jobject o, jlong number)
{
    struct known_thread *t;
    long r = -12345;
    const char *what;
    if (!jvmpi) { /* the program without its agent */
        (*env)->ThrowNew(env, (*env)->FindClass(env, "java/lang/IllegalStateException"), "not under -Xrunjvmpitest");
        return r;
    }
    what = (*env)->GetStringUTFChars(env, jwhat, NULL);
#define IS(s) (!strcmp(what, s))
    if (IS("enable"))
        r = jvmpi->EnableEvent((jint)number, NULL);
    else if (IS("disable"))
        r = jvmpi->DisableEvent((jint)number, NULL);
    else if (IS("count"))
        r = counts[number];
    else if (IS("requested"))
        r = requested[number];
    else if (IS("id"))
        r = (long)jvmpi->jobject2jobjectID(o);
    else if (IS("same")) {
        jobject back = jvmpi->jobjectID2jobject((jobjectID)number);
        r = (*env)->IsSameObject(env, back, o) && (!o || (*env)->GetObjectRefType(env, back) == JNILocalRefType);
    } else if (IS("request"))
        r = jvmpi->RequestEvent((jint)number, o ? (void *)jvmpi->jobject2jobjectID(o) : NULL);
    else if (IS("request bad id"))
        r = jvmpi->RequestEvent((jint)number, (void *)0x7ffffff1);
    else if (IS("heap level")) {
        JVMPI_HeapDumpArg arg;
        arg.heap_dump_level = (jint)number;
        dump_wanted = jvmpi->jobject2jobjectID(o);
        r = jvmpi->RequestEvent(JVMPI_EVENT_HEAP_DUMP, &arg);
        r = r ? r : dump_records / 1000000000L == 1 && dump_bytes == dump_records % 1000000000L * 9 ? 0 : -2;
    } else if (IS("object dump")) {
        r = jvmpi->RequestEvent(JVMPI_EVENT_OBJECT_DUMP, jvmpi->jobject2jobjectID(o));
        r = r ? -1 : object_dump_type;
    } else if (IS("object dump byte"))
        r = number < object_dump_len ? object_dump[number] : -1;
    else if (IS("object dump length"))
        r = object_dump_len;
    else if (IS("monitor dump")) {
        dump_wanted = jvmpi->jobject2jobjectID(o);
        monitor_wanted_owner = env;
        monitor_owner_found = 0;
        r = jvmpi->RequestEvent(JVMPI_EVENT_MONITOR_DUMP, NULL);
        r = r ? -1 : monitor_owner_found;
    } else if (IS("monitor traces"))
        r = monitor_traces;
    else if (IS("class known")) {
        const char *name = (*env)->GetStringUTFChars(env, (jstring)o, NULL);
        struct known_class *c = class_by_name(name);
        r = c ? c->n_methods * 1000000 + c->n_statics * 10000 + c->n_instances * 100 + c->n_interfaces : -1;
        (*env)->ReleaseStringUTFChars(env, (jstring)o, name);
    } else if (IS("class of leaf")) {
        struct known_class *c = class_by_name("JvmpiWork");
        r = c && c->id == jvmpi->GetMethodClass(method_named("JvmpiWork", "leaf"));
    } else if (IS("unloaded")) {
        int i;
        for (r = 0, i = 0; i < n_classes; i++)
            if (strstr(classes[i].name, "Unloadable"))
                r += classes[i].unloaded;
    } else if (IS("leaf entries"))
        r = entries_of_leaf;
    else if (IS("leaf exits"))
        r = exits_of_leaf;
    else if (IS("nesting")) {
        int i;
        for (r = 0, i = 0; i < n_threads; i++) {
            long *nesting = (long *)jvmpi->GetThreadLocalStorage(threads[i].env);
            if (nesting && threads[i].env != env)
                r += *nesting;
        }
    } else if (IS("thrower entries"))
        r = entries_of_thrower;
    else if (IS("thrower exits"))
        r = exits_of_thrower;
    else if (IS("receiver")) {
        wanted_receiver = jvmpi->jobject2jobjectID(o);
        r = entries_with_object;
    } else if (IS("markers"))
        r = allocated_markers;
    else if (IS("int arrays"))
        r = allocated_ints;
    else if (IS("markers freed"))
        r = all_marker_frees();
    else if (IS("gc")) {
        jvmpi->RunGC();
        r = 0;
    } else if (IS("gc disable")) {
        jvmpi->DisableGC();
        r = 0;
    } else if (IS("gc enable")) {
        jvmpi->EnableGC();
        r = 0;
    } else if (IS("watch")) {
        watched = jvmpi->jobject2jobjectID(o);
        memset(watched_counts, 0, sizeof(watched_counts));
        r = (long)watched;
    } else if (IS("watched"))
        r = watched_counts[number];
    else if (IS("used objects"))
        r = (long)last_used_objects;
    else if (IS("raw"))
        r = raw_monitors("contended");
    else if (IS("raw rules"))
        r = raw_rules();
    else if (IS("references"))
        r = references(env, o);
    else if (IS("signals"))
        r = signals();
    else if (IS("leaf compiled"))
        r = leaf_compiled;
    else if (IS("raw dump"))
        r = raw_dump((int)number);
    else if (IS("sleeps"))
        r = sleeps;
    else if (IS("slept"))
        r = slept;
    else if (IS("steps")) {
        r = n_steps * 1000 + plain_offsets;
        printf("work told %s\n", steps);
        fflush(stdout);
    } else if (IS("raw silent"))
        r = raw_monitors("_silent");
    else if (IS("cpu"))
        r = (long)jvmpi->GetCurrentThreadCpuTime();
    else if (IS("system thread")) {
        system_thread_ran = 0;
        r = jvmpi->CreateSystemThread("of the agent", JVMPI_MAXIMUM_PRIORITY, system_thread);
        for (number = 0; r == JNI_OK && !system_thread_ran && number < 500; number++)
            pause_ms(10);
        r = r == JNI_OK ? system_thread_ran + (thread_by_name("of the agent") ? 10 : 0) : -1;
    } else if (IS("contended"))
        r = (long)last_contended;
    else if (IS("wait timeout"))
        r = last_wait_timeout;
    else if (IS("waited"))
        r = last_waited;
    else if (IS("waited on"))
        r = (long)last_waited_on;
    else if (IS("storage")) {
        void *old = jvmpi->GetThreadLocalStorage(env);
        jvmpi->SetThreadLocalStorage(env, &system_thread_ran);
        r = jvmpi->GetThreadLocalStorage(env) == (void *)&system_thread_ran;
        jvmpi->SetThreadLocalStorage(env, old);
        r = r && jvmpi->GetThreadLocalStorage((JNIEnv *)&system_thread_ran) == NULL;
    } else if (IS("versions")) {
        void *p = NULL;
        r = (*java_vm)->GetEnv(java_vm, &p, JVMPI_VERSION_1_1) == JNI_OK && p == (void *)jvmpi;
        r = r && (*java_vm)->GetEnv(java_vm, &p, JVMPI_VERSION_1_2) == JNI_OK && p == (void *)jvmpi;
        r = r && (*java_vm)->GetEnv(java_vm, &p, 0x10000009) == JNI_EVERSION;
        r = r && (*java_vm)->GetEnv(java_vm, &p, JNI_VERSION_1_6) == JNI_OK && p == (void *)env;
    } else if (IS("exit")) {
        jvmpi->ProfilerExit((jint)number);
    } else {
        const char *name = o ? (*env)->GetStringUTFChars(env, (jstring)o, NULL) : "";
        t = thread_by_name(name);
        if (!t)
            r = -999;
        else if (IS("status"))
            r = jvmpi->GetThreadStatus(t->env);
        else if (IS("suspend")) {
            jint results[3];
            JNIEnv *list[3];
            list[0] = t->env;
            list[1] = t->env;
            list[2] = env;
            jvmpi->SuspendThreadList(3, list, results);
            r = results[0] * 10000 + results[1] * 100 + results[2];
        } else if (IS("suspend one"))
            jvmpi->SuspendThread(t->env), r = 0;
        else if (IS("resume list")) {
            jint result = -1;
            jvmpi->ResumeThreadList(1, &t->env, &result);
            r = result;
        } else if (IS("resume"))
            jvmpi->ResumeThread(t->env), r = 0;
        else if (IS("has run"))
            r = jvmpi->ThreadHasRun(t->env);
        else if (IS("thread object"))
            r = (long)jvmpi->GetThreadObject(t->env);
        else if (IS("trace"))
            r = trace_of(t->env, "parked", (int)number);
        else if (IS("own trace"))
            r = trace_of(env, "ownTrace", (int)number);
        if (o)
            (*env)->ReleaseStringUTFChars(env, (jstring)o, name);
    }
    (*env)->ReleaseStringUTFChars(env, jwhat, what);
    return r;
}

JNIEXPORT jint JNICALL JVM_OnLoad(JavaVM *jvm, char *options, void *reserved);

JNIEXPORT jint JNICALL JVM_OnLoad(JavaVM *jvm, char *options, void *reserved)
{
    char *p;
    java_vm = jvm;
    if ((*jvm)->GetEnv(jvm, (void **)&jvmpi, JVMPI_VERSION_1) != JNI_OK)
        return JNI_ERR;
    if (options && !strcmp(options, "fail"))
        return JNI_ERR;
    classes = (struct known_class *)calloc(20000, sizeof(*classes));
    jvmpi->NotifyEvent = notify_event;
    gc_monitor = jvmpi->RawMonitorCreate("_gc");
    for (p = options; p && *p; p = strchr(p, '+') ? strchr(p, '+') + 1 : NULL)
        if (jvmpi->EnableEvent(atoi(p), NULL) != JVMPI_SUCCESS)
            fault("an event could not be enabled in JVM_OnLoad");
    return JNI_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A JVMPI agent in the style of 1999 that checks the layer. -Xrunjvmpitest:EVENT+EVENT+... enables
 * the events with these numbers. It counts the events, checks that identities are defined before
 * they are used, and answers JvmpiWork's questions. At JVM_SHUT_DOWN it prints lines "jvmpi NAME
 * VALUE".
 */
#include "jvmpi_agent.h"

JVMPI_Interface *jvmpi;
JavaVM *java_vm;
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
long counts[64], requested[64], init_order;
static long faults;
static char first_fault[200];

void fault(const char *what)
{
    pthread_mutex_lock(&lock);
    if (faults++ == 0)
        strncpy(first_fault, what, sizeof(first_fault) - 1);
    pthread_mutex_unlock(&lock);
}

void pause_ms(long ms)
{
    struct timespec t;
    t.tv_sec = ms / 1000;
    t.tv_nsec = ms % 1000 * 1000000L;
    nanosleep(&t, NULL);
}

long now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void on_compiled(JVMPI_Event *e)
{
    if (e->u.compiled_method_load.method_id == method_named("JvmpiWork", "leaf"))
        __sync_fetch_and_add(&leaf_compiled, 1);
    if (!e->u.compiled_method_load.code_addr || e->u.compiled_method_load.code_size <= 0)
        fault("compiled code without an address");
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
    int type = e->event_type & 0xff;
    JNIEnv *env = NULL;
    (*java_vm)->GetEnv(java_vm, (void **)&env, JNI_VERSION_1_2);
    if (e->env_id != env)
        fault("an event on another thread than its env_id says");
    if (e->event_type & JVMPI_REQUESTED_EVENT)
        __sync_fetch_and_add(&requested[type], 1);
    else
        __sync_fetch_and_add(&counts[type], 1);
    rules_event(e, type);
    switch (type) {
    case JVMPI_EVENT_CLASS_LOAD:
        on_class_load(e);
        break;
    case JVMPI_EVENT_CLASS_UNLOAD:
        on_class_unload(e);
        break;
    case JVMPI_EVENT_THREAD_START:
        on_thread_start(e);
        break;
    case JVMPI_EVENT_THREAD_END:
        on_thread_end(e);
        break;
    case JVMPI_EVENT_METHOD_ENTRY:
    case JVMPI_EVENT_METHOD_ENTRY2:
    case JVMPI_EVENT_METHOD_EXIT:
        on_method(e, type);
        break;
    case JVMPI_EVENT_INSTRUCTION_START:
        on_instruction(e);
        break;
    case JVMPI_EVENT_OBJECT_ALLOC:
    case JVMPI_EVENT_OBJECT_FREE:
        on_object(e, type);
        break;
    case JVMPI_EVENT_GC_START:
    case JVMPI_EVENT_GC_FINISH:
        on_gc(e, type);
        break;
    case JVMPI_EVENT_MONITOR_CONTENDED_ENTER:
    case JVMPI_EVENT_MONITOR_CONTENDED_ENTERED:
    case JVMPI_EVENT_MONITOR_CONTENDED_EXIT:
    case JVMPI_EVENT_MONITOR_WAIT:
    case JVMPI_EVENT_MONITOR_WAITED:
    case JVMPI_EVENT_RAW_MONITOR_CONTENDED_ENTER:
    case JVMPI_EVENT_RAW_MONITOR_CONTENDED_ENTERED:
    case JVMPI_EVENT_RAW_MONITOR_CONTENDED_EXIT:
        on_monitor(e, type);
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
        on_compiled(e);
        break;
    case JVMPI_EVENT_HEAP_DUMP:
        on_heap_dump(e);
        break;
    case JVMPI_EVENT_MONITOR_DUMP:
        on_monitor_dump(e);
        break;
    case JVMPI_EVENT_OBJECT_DUMP:
        on_object_dump(e);
        break;
    case JVMPI_EVENT_CLASS_LOAD_HOOK:
        on_hook(e);
        break;
    case JVMPI_EVENT_JVM_SHUT_DOWN:
        print_all();
        if (last_exit_code)
            jvmpi->ProfilerExit(last_exit_code);
        break;
    }
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
    jvmpi->NotifyEvent = notify_event;
    gc_monitor = jvmpi->RawMonitorCreate("_gc");
    for (p = options; p && *p; p = strchr(p, '+') ? strchr(p, '+') + 1 : NULL)
        if (jvmpi->EnableEvent(atoi(p), NULL) != JVMPI_SUCCESS)
            fault("an event could not be enabled in JVM_OnLoad");
    return JNI_OK;
}

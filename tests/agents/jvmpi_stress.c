/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A JVMPI agent that deliberately behaves badly: -Xrunjvmpistress:HOW. Its handlers run in all
 * threads at once.
 *
 *   block   handlers sleep and take a raw monitor
 *   jni     handlers call Java, request traces and events, and enter Java monitors
 *   toggle  a thread of the agent enables and disables all events without pause
 *   exit    the 20,000th event calls ProfilerExit(9) in its handler; others may do so as well
 *   slow    JVM_SHUT_DOWN takes two seconds, while daemon threads continue
 *   sample  a thread of the agent suspends the others one by one and requests their trace, status
 *           and storage
 *   after   a thread of the agent calls a function without pause; the exit handler checks whether
 *           it is blocked
 */
#include "jvmpi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static JVMPI_Interface *jvmpi;
static char how[20];
static long n_events, calls, threads_known;
static JVMPI_RawMonitor monitor, gc_lock;
static volatile long spins;
static int init_done, down;

static const int all_events[] = {1,  3,  4,  5,  33, 34, 38, 39, 42, 43,
                                 51, 52, 53, 54, 55, 56, 57, 58, 60, 61};

#define IS(s) (!strcmp(how, s))

static void pause_ms(long ms)
{
    struct timespec t;
    t.tv_sec = ms / 1000;
    t.tv_nsec = ms % 1000 * 1000000L;
    nanosleep(&t, NULL);
}

static void call_java(JVMPI_Event *e)
{
    JNIEnv *env = e->env_id;
    JVMPI_CallFrame frames[20];
    JVMPI_CallTrace trace;
    jclass math = (*env)->FindClass(env, "java/lang/Integer");
    jmethodID to =
        math ? (*env)->GetStaticMethodID(env, math, "toString", "(I)Ljava/lang/String;") : NULL;
    jobject text = to ? (*env)->CallStaticObjectMethod(env, math, to, (jint)n_events) : NULL;
    if (text) {
        (*env)->MonitorEnter(env, text);
        (*env)->MonitorExit(env, text);
        (*env)->DeleteGlobalRef(env, (*env)->NewGlobalRef(env, text));
        __sync_fetch_and_add(&calls, 1);
    }
    trace.env_id = env;
    trace.frames = frames;
    jvmpi->GetCallTrace(&trace, 20);
    jvmpi->RequestEvent(JVMPI_EVENT_THREAD_START, jvmpi->GetThreadObject(env));
    (*env)->DeleteLocalRef(env, text);
    (*env)->DeleteLocalRef(env, math);
}

static void toggler(void *unused)
{
    unsigned i;
    while (!down)
        for (i = 0; i < sizeof(all_events) / sizeof(all_events[0]) && !down; i++) {
            jvmpi->DisableEvent(all_events[i], NULL);
            jvmpi->EnableEvent(all_events[i], NULL);
        }
}

static JNIEnv *envs[5064];
static long n_envs, n_samples;

/* Takes samples the way the profilers of 1999 did. */
static void sampler(void *unused)
{
    JVMPI_CallFrame frames[20];
    JVMPI_CallTrace trace;
    long i;
    while (!down)
        for (i = 0; i < n_envs && i < 5000 && !down; i++) {
            jvmpi->DisableGC();
            jvmpi->SuspendThread(envs[i]);
            trace.env_id = envs[i];
            trace.frames = frames;
            jvmpi->GetCallTrace(&trace, 20);
            jvmpi->GetThreadStatus(envs[i]);
            jvmpi->ThreadHasRun(envs[i]);
            jvmpi->GetThreadObject(envs[i]);
            if (trace.num_frames > 0)
                n_samples++;
            jvmpi->ResumeThread(envs[i]);
            jvmpi->EnableGC();
            if (i % 16 == 0)
                pause_ms(1);
        }
}

static void caller(void *unused)
{
    for (;;) {
        jvmpi->GetCurrentThreadCpuTime();
        spins++;
    }
}

static void at_exit(void)
{
    long before;
    pause_ms(200);
    before = spins;
    pause_ms(200);
    printf("stress held_up %d\n", before > 0 && spins == before);
    fflush(stdout);
}

static void notify_event(JVMPI_Event *e)
{
    int type = e->event_type & 0xff;
    long n = __sync_add_and_fetch(&n_events, 1);
    if (e->event_type & JVMPI_REQUESTED_EVENT)
        return;
    switch (type) {
    case JVMPI_EVENT_JVM_INIT_DONE:
        init_done = 1;
        if (IS("toggle"))
            jvmpi->CreateSystemThread("toggler", JVMPI_NORMAL_PRIORITY, toggler);
        if (IS("sample"))
            jvmpi->CreateSystemThread("sampler", JVMPI_NORMAL_PRIORITY, sampler);
        if (IS("after")) {
            jvmpi->CreateSystemThread("caller", JVMPI_NORMAL_PRIORITY, caller);
            atexit(at_exit);
        }
        return;
    case JVMPI_EVENT_JVM_SHUT_DOWN:
        if (IS("slow"))
            pause_ms(2000);
        printf("stress events %d\nstress calls %d\n", n > 20000, calls > 0);
        printf("stress samples %d\n", n_samples > 10);
        fflush(stdout);
        if (IS("toggle") || IS("sample"))
            down = 1;
        return;
    case JVMPI_EVENT_GC_START: /* held during the FREE events, as the specification advises */
        jvmpi->RawMonitorEnter(gc_lock);
        return;
    case JVMPI_EVENT_GC_FINISH:
        jvmpi->RawMonitorExit(gc_lock);
        return;
    case JVMPI_EVENT_THREAD_START:
        __sync_fetch_and_add(&threads_known, 1);
        if (n_envs < 5000)
            envs[__sync_fetch_and_add(&n_envs, 1)] = e->u.thread_start.thread_env_id;
        break;
    case JVMPI_EVENT_OBJECT_FREE:
        return;
    }
    if (!init_done)
        return;
    if (IS("exit") && n >= 20000)
        jvmpi->ProfilerExit(9);
    /*
     * The event of a raw monitor may come while that monitor is held. Taking gc_lock there would
     * wait for a thread that waits for the monitor.
     */
    if (IS("block") && n % 64 == 0 &&
        (type < JVMPI_EVENT_RAW_MONITOR_CONTENDED_ENTER ||
         type > JVMPI_EVENT_RAW_MONITOR_CONTENDED_EXIT)) {
        jvmpi->RawMonitorEnter(monitor);
        if (n % 1024 == 0)
            pause_ms(1);
        if (n % 4096 == 0)
            jvmpi->RawMonitorWait(monitor, 1);
        jvmpi->RawMonitorNotifyAll(monitor);
        jvmpi->RawMonitorExit(monitor);
        jvmpi->RawMonitorEnter(gc_lock);
        jvmpi->RawMonitorExit(gc_lock);
    }
    /* Objects must not be created where the specification says that the collector is disabled. */
    if (IS("jni") && n % 8 == 0 &&
        (type == JVMPI_EVENT_METHOD_ENTRY || type == JVMPI_EVENT_METHOD_EXIT ||
         type == JVMPI_EVENT_THREAD_END))
        call_java(e);
    if (IS("jni") && type == JVMPI_EVENT_OBJECT_ALLOC && n % 4096 == 0)
        jvmpi->RequestEvent(JVMPI_EVENT_OBJECT_ALLOC, e->u.obj_alloc.obj_id);
}

JNIEXPORT jint JNICALL JVM_OnLoad(JavaVM *jvm, char *options, void *reserved);

JNIEXPORT jint JNICALL JVM_OnLoad(JavaVM *jvm, char *options, void *reserved)
{
    unsigned i;
    if ((*jvm)->GetEnv(jvm, (void **)&jvmpi, JVMPI_VERSION_1) != JNI_OK)
        return JNI_ERR;
    strncpy(how, options ? options : "", sizeof(how) - 1);
    monitor = jvmpi->RawMonitorCreate("stress");
    gc_lock = jvmpi->RawMonitorCreate("_gc");
    jvmpi->NotifyEvent = notify_event;
    for (i = 0; i < sizeof(all_events) / sizeof(all_events[0]); i++)
        if (jvmpi->EnableEvent(all_events[i], NULL) != JVMPI_SUCCESS)
            return JNI_ERR;
    jvmpi->EnableEvent(JVMPI_EVENT_JVM_INIT_DONE, NULL);
    jvmpi->EnableEvent(JVMPI_EVENT_JVM_SHUT_DOWN, NULL);
    return JNI_OK;
}

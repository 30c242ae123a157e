/* SPDX-License-Identifier: Apache-2.0 */
/* Answers the questions of JvmpiWork: ask(what, object, number). */
#include "jvmpi_agent.h"

jobject last_ref;
jobjectID last_ref_object;
jint last_exit_code;
long leaf_compiled, hook_seen_magic, hook_patched;

static long system_thread_ran;

static void system_thread(void *unused)
{
    JNIEnv *env = NULL;
    (*java_vm)->GetEnv(java_vm, (void **)&env, JNI_VERSION_1_2);
    system_thread_ran = env ? 1 : -1;
}

/*
 * Makes references and checks their events: global created and freed, weak created and freed, each
 * with its own reference and object.
 */
static long references(JNIEnv *env, jobject o)
{
    long r = 0, before;
    jobjectID id = jvmpi->jobject2jobjectID(o);
    jobject ref;
    before = counts[JVMPI_EVENT_JNI_GLOBALREF_ALLOC];
    ref = (*env)->NewGlobalRef(env, o);
    r += counts[JVMPI_EVENT_JNI_GLOBALREF_ALLOC] == before + 1 && last_ref == ref &&
                 last_ref_object == id
             ? 1
             : 0;
    before = counts[JVMPI_EVENT_JNI_GLOBALREF_FREE];
    (*env)->DeleteGlobalRef(env, ref);
    r += counts[JVMPI_EVENT_JNI_GLOBALREF_FREE] == before + 1 && last_ref == ref ? 10 : 0;
    before = counts[JVMPI_EVENT_JNI_WEAK_GLOBALREF_ALLOC];
    ref = (*env)->NewWeakGlobalRef(env, o);
    r += counts[JVMPI_EVENT_JNI_WEAK_GLOBALREF_ALLOC] == before + 1 && last_ref == ref &&
                 last_ref_object == id
             ? 100
             : 0;
    before = counts[JVMPI_EVENT_JNI_WEAK_GLOBALREF_FREE];
    (*env)->DeleteWeakGlobalRef(env, ref);
    r += counts[JVMPI_EVENT_JNI_WEAK_GLOBALREF_FREE] == before + 1 && last_ref == ref ? 1000 : 0;
    return r;
}

/* Sends the signal of a user and waits for the events: a dump request, then a reset request. */
static long signals(void)
{
    int i;
    kill(getpid(), SIGQUIT);
    for (i = 0; i < 1000 && !counts[JVMPI_EVENT_DATA_RESET_REQUEST]; i++)
        pause_ms(10);
    return counts[JVMPI_EVENT_DATA_DUMP_REQUEST] * 10 + counts[JVMPI_EVENT_DATA_RESET_REQUEST];
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

/* A function that is given NULL answers as for any other value that it does not know. */
static long null_arguments(void)
{
    JVMPI_CallTrace trace = {NULL, -1, NULL};
    jvmpi->GetCallTrace(NULL, 4);
    jvmpi->GetCallTrace(&trace, 4);
    jvmpi->SuspendThread(NULL);
    jvmpi->ResumeThread(NULL);
    jvmpi->SuspendThreadList(1, NULL, NULL);
    jvmpi->ResumeThreadList(1, NULL, NULL);
    jvmpi->SetThreadLocalStorage(NULL, &trace);
    jvmpi->RawMonitorEnter(NULL);
    jvmpi->RawMonitorWait(NULL, 1);
    jvmpi->RawMonitorNotifyAll(NULL);
    jvmpi->RawMonitorExit(NULL);
    jvmpi->RawMonitorDestroy(NULL);
    return trace.num_frames == 0 && !jvmpi->GetThreadLocalStorage(NULL) &&
           !jvmpi->GetThreadObject(NULL) && !jvmpi->GetThreadStatus(NULL) &&
           !jvmpi->ThreadHasRun(NULL) && !jvmpi->GetMethodClass(NULL) &&
           !jvmpi->jobjectID2jobject(NULL) &&
           jvmpi->CreateSystemThread(NULL, JVMPI_NORMAL_PRIORITY, NULL) == JNI_ERR &&
           jvmpi->RequestEvent(JVMPI_EVENT_OBJECT_ALLOC, NULL) == JVMPI_FAIL &&
           jvmpi->RequestEvent(JVMPI_EVENT_CLASS_LOAD, NULL) == JVMPI_FAIL &&
           jvmpi->RequestEvent(JVMPI_EVENT_THREAD_START, NULL) == JVMPI_FAIL &&
           jvmpi->RequestEvent(JVMPI_EVENT_OBJECT_DUMP, NULL) == JVMPI_FAIL;
}

JNIEXPORT jlong JNICALL Java_JvmpiWork_ask(JNIEnv *env, jclass unused, jstring jwhat, jobject o,
                                           jlong number)
{
    struct known_thread *t;
    long r = -12345;
    const char *what;
    if (!jvmpi) { /* the program runs without its agent */
        (*env)->ThrowNew(env, (*env)->FindClass(env, "java/lang/IllegalStateException"),
                         "not under -Xrunjvmpitest");
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
        r = (*env)->IsSameObject(env, back, o) &&
            (!o || (*env)->GetObjectRefType(env, back) == JNILocalRefType);
    } else if (IS("request"))
        r = jvmpi->RequestEvent((jint)number, o ? (void *)jvmpi->jobject2jobjectID(o) : NULL);
    else if (IS("request bad id"))
        r = jvmpi->RequestEvent((jint)number, (void *)0x7ffffff1);
    else if (IS("reported")) {
        jobject back = jvmpi->jobjectID2jobject(marker_reported(number));
        r = (*env)->IsSameObject(env, back, o) &&
            jvmpi->jobject2jobjectID(o) == marker_reported(number);
    } else if (IS("heap level") || IS("heap reported")) {
        JVMPI_HeapDumpArg arg;
        arg.heap_dump_level = o ? (jint)number : JVMPI_DUMP_LEVEL_0;
        dump_wanted = o ? jvmpi->jobject2jobjectID(o) : marker_reported(number);
        r = jvmpi->RequestEvent(JVMPI_EVENT_HEAP_DUMP, &arg);
        r = r                                                                                 ? r
            : dump_records / 1000000000L == 1 && dump_bytes == dump_records % 1000000000L * 9 ? 0
                                                                                              : -2;
    } else if (IS("object dump")) {
        r = jvmpi->RequestEvent(JVMPI_EVENT_OBJECT_DUMP, jvmpi->jobject2jobjectID(o));
        r = r ? -1 : object_dump_type;
    } else if (IS("object dump byte"))
        r = number < object_dump_len ? object_dump[number] : -1;
    else if (IS("object dump length"))
        r = object_dump_len;
    else if (IS("monitor dump") || IS("monitor parties")) {
        dump_wanted = jvmpi->jobject2jobjectID(o);
        monitor_wanted_owner = env;
        monitor_owner_found = monitor_parties = 0;
        r = jvmpi->RequestEvent(JVMPI_EVENT_MONITOR_DUMP, NULL);
        r = r ? -1 : IS("monitor dump") ? monitor_owner_found : monitor_parties;
    } else if (IS("monitor traces"))
        r = monitor_traces;
    else if (IS("class known")) {
        const char *name = (*env)->GetStringUTFChars(env, (jstring)o, NULL);
        struct known_class *c = class_by_name(name);
        r = c ? c->n_methods * 1000000 + c->n_statics * 10000 + c->n_instances * 100 +
                    c->n_interfaces
              : -1;
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
    else if (!strncmp(what, "rule ", 5))
        r = rules_ask(env, what, o);
    else if (IS("count calls")) {
        const char *name = (*env)->GetStringUTFChars(env, (jstring)o, NULL);
        r = count_calls(env, name);
        (*env)->ReleaseStringUTFChars(env, (jstring)o, name);
    } else if (IS("counted calls"))
        r = counted_calls();
    /*
     * Returns how deeply the calls of the n-th thread ever known are nested, if it is a carrier;
     * -1,000,000 after the last thread.
     */
    else if (IS("nesting of")) {
        long *nesting =
            number < n_threads ? (long *)jvmpi->GetThreadLocalStorage(threads[number].env) : NULL;
        r = number >= n_threads                                               ? -1000000
            : !strncmp(threads[number].name, "ForkJoinPool-1", 14) && nesting ? *nesting
                                                                              : 0;
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
    else if (IS("null arguments"))
        r = null_arguments();
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
        printf("work reported %s\n", steps);
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
    } else if (IS("exit at end")) {
        last_exit_code = (jint)number;
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

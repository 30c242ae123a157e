/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threading rules of section 1.5 of the specification. Each is a scenario of JvmpiWork's
 * "rules".
 */
#include "jvmpi_agent.h"

/*
 * The events that arrived during a call that one of our threads makes: on that thread, on other
 * threads, and as requested events.
 */
static JNIEnv *volatile asking;
static volatile long arrived[64], arrived_elsewhere[64], arrived_requested[64];
static char wanted_thread[64], wanted_class[64];
static JNIEnv *volatile started_in, *volatile loaded_in, *volatile ended_in, *volatile allocated_in;
static volatile int inside, meeting, met;
/* the end of the bracket, which is held until another thread is about to call DisableGC */
static volatile int hold_bracket, in_bracket, about_to_disable;
static JNIEnv *volatile bracket_in;

enum { BUSY = 4 }; /* threads named "busy ..." */

/* what each of the busy threads does in its handler, in which suspended_dumps keeps it */
enum { NOTHING, ASKS, ASKS_AS_OWNER, WANTS_MONITOR };

static JNIEnv *busy[BUSY];
static volatile int handling, go_on, in_handler[BUSY], returned[BUSY];
static JVMPI_RawMonitor wanted;

static void begin(JNIEnv *env)
{
    memset((void *)arrived, 0, sizeof(arrived));
    memset((void *)arrived_elsewhere, 0, sizeof(arrived_elsewhere));
    memset((void *)arrived_requested, 0, sizeof(arrived_requested));
    asking = env;
}

/* Makes two threads run a handler at the same time, if the layer allows it. */
static void meet(void)
{
    int i;
    if (__sync_add_and_fetch(&inside, 1) >= 2)
        met = 1;
    for (i = 0; i < 500 && !met; i++)
        pause_ms(10);
    __sync_sub_and_fetch(&inside, 1);
}

/* The handler of a busy thread. */
static void handle(JNIEnv *env)
{
    int i, what;
    for (what = 0; what < BUSY && busy[what] != env; what++)
        ;
    if (what == BUSY || what == NOTHING || in_handler[what])
        return;
    if (what == ASKS_AS_OWNER)
        jvmpi->RawMonitorEnter(wanted);
    in_handler[what] = 1;
    for (i = 0; i < 10000 && !go_on; i++)
        pause_ms(1);
    if (what == WANTS_MONITOR)
        jvmpi->RawMonitorEnter(wanted);
    else
        jvmpi->GetThreadObject(busy[NOTHING]);
    returned[what] = 1;
    if (what != ASKS)
        jvmpi->RawMonitorExit(wanted);
}

/*
 * A thread that ends. Its stage is 1 in the handler of its THREAD_END, and 2 when the handler has
 * entered a monitor.
 */
static JNIEnv *volatile ending;
static volatile jobjectID ending_id;
static volatile int ending_stage, ending_asked;

static void reach(int stage)
{
    int i;
    ending_stage = stage;
    for (i = 0; i < 10000 && ending_asked < stage; i++)
        pause_ms(1);
}

static void on_ending(void)
{
    reach(1);
    jvmpi->RawMonitorEnter(wanted);
    jvmpi->RawMonitorExit(wanted);
    reach(2);
}

void rules_event(JVMPI_Event *e, int type)
{
    if (type == JVMPI_EVENT_THREAD_END && ending && e->env_id == ending)
        on_ending();
    if (type == JVMPI_EVENT_OBJECT_ALLOC && handling)
        handle(e->env_id);
    if (asking && e->event_type & JVMPI_REQUESTED_EVENT && e->env_id == asking)
        arrived_requested[type]++;
    if (asking)
        __sync_fetch_and_add(e->env_id == asking ? &arrived[type] : &arrived_elsewhere[type], 1);
    if (type == JVMPI_EVENT_THREAD_START && !strcmp(e->u.thread_start.thread_name, wanted_thread))
        started_in = e->env_id;
    if (type == JVMPI_EVENT_THREAD_END && !strcmp(e->u.thread_start.thread_name, wanted_thread))
        ended_in = e->env_id;
    if (type == JVMPI_EVENT_CLASS_LOAD && !strcmp(e->u.class_load.class_name, wanted_class))
        loaded_in = e->env_id;
    if (type == JVMPI_EVENT_OBJECT_ALLOC && marker_class && e->u.obj_alloc.class_id == marker_class)
        allocated_in = e->env_id;
    if (type == JVMPI_EVENT_GC_START && hold_bracket) {
        int i;
        bracket_in = e->env_id;
        in_bracket = 1;
        for (i = 0; i < 1000 && !about_to_disable; i++)
            pause_ms(10);
        pause_ms(50);
    }
    if (type == JVMPI_EVENT_METHOD_ENTRY && meeting &&
        e->u.method.method_id == method_named("JvmpiWork", "meet"))
        meet();
}

/*
 * Requested events arrive on the caller's thread before RequestEvent returns. Returns a digit for
 * each event.
 */
static long requests(JNIEnv *env, jobject o)
{
    static const int types[] = {JVMPI_EVENT_CLASS_LOAD,   JVMPI_EVENT_THREAD_START,
                                JVMPI_EVENT_OBJECT_ALLOC, JVMPI_EVENT_OBJECT_DUMP,
                                JVMPI_EVENT_MONITOR_DUMP, JVMPI_EVENT_HEAP_DUMP};
    static JVMPI_HeapDumpArg level_0 = {JVMPI_DUMP_LEVEL_0};
    jobjectID id = jvmpi->jobject2jobjectID(o),
              class = jvmpi->jobject2jobjectID((*env)->GetObjectClass(env, o));
    long r = 0, i;
    for (i = 0; i < 6; i++) {
        void *arg = i == 0   ? (void *)class
                    : i == 1 ? (void *)jvmpi->GetThreadObject(env)
                    : i < 4  ? (void *)id
                    : i == 5 ? (void *)&level_0
                             : NULL;
        begin(env);
        jvmpi->RequestEvent(types[i], arg);
        r = r * 10 + arrived_requested[types[i]];
        asking = NULL;
    }
    return r;
}

static volatile int ran;

static void system_thread(void *unused)
{
    ran = 1;
}

/*
 * CreateSystemThread: the caller allocates the Thread, and the new thread reports its start itself.
 */
static long creates(JNIEnv *env)
{
    long r = 0, i;
    JNIEnv *self;
    strcpy(wanted_thread, "by the rules");
    started_in = NULL;
    ran = 0;
    begin(env);
    r += jvmpi->CreateSystemThread("by the rules", JVMPI_NORMAL_PRIORITY, system_thread) == JNI_OK
             ? 1
             : 0;
    r += arrived[JVMPI_EVENT_OBJECT_ALLOC] ? 10 : 0;
    asking = NULL;
    for (i = 0; i < 1000 && !(ran && started_in); i++)
        pause_ms(10);
    self = started_in;
    return r + (self && self != env ? 100 : 0);
}

/* RunGC returns after its events, and does nothing while collections are disabled. */
static long collects(JNIEnv *env)
{
    long r = 0;
    begin(env);
    jvmpi->RunGC();
    r += arrived_elsewhere[JVMPI_EVENT_GC_START] + arrived[JVMPI_EVENT_GC_START] > 0 ? 1 : 0;
    r += arrived_elsewhere[JVMPI_EVENT_GC_FINISH] + arrived[JVMPI_EVENT_GC_FINISH] > 0 ? 10 : 0;
    r +=
        arrived_elsewhere[JVMPI_EVENT_OBJECT_FREE] + arrived[JVMPI_EVENT_OBJECT_FREE] > 0 ? 100 : 0;
    jvmpi->DisableGC();
    begin(env);
    jvmpi->RunGC();
    pause_ms(50);
    r += arrived_elsewhere[JVMPI_EVENT_GC_START] + arrived_elsewhere[JVMPI_EVENT_OBJECT_FREE]
             ? 0
             : 1000;
    asking = NULL;
    jvmpi->EnableGC();
    return r;
}

static void collect(void *unused)
{
    jvmpi->RunGC();
    ran = 1;
}

/*
 * DisableGC waits for the collection in progress: when it returns, no GC_START is without its
 * GC_FINISH. Returns 1, or how many are.
 */
static long disables(void)
{
    long open, i;
    in_bracket = about_to_disable = ran = 0;
    hold_bracket = 1;
    jvmpi->CreateSystemThread("collector", JVMPI_NORMAL_PRIORITY, collect);
    for (i = 0; i < 1000 && !in_bracket; i++)
        pause_ms(10);
    about_to_disable = 1;
    jvmpi->DisableGC();
    open = counts[JVMPI_EVENT_GC_START] - counts[JVMPI_EVENT_GC_FINISH];
    hold_bracket = 0;
    jvmpi->EnableGC();
    for (i = 0; i < 1000 && !ran; i++)
        pause_ms(10);
    return in_bracket && ran && !open ? 1 : 10 + open;
}

static long busy_threads(JNIEnv **list)
{
    long i, n = 0;
    for (i = 0; i < n_threads && n < BUSY; i++)
        if (!strncmp(threads[i].name, "busy", 4))
            list[n++] = threads[i].env;
    return n;
}

/*
 * Thread suspended mode: no request that the caller may make waits for a suspended thread. Threads
 * named "busy ..." keep running.
 */
static long suspends(JNIEnv *env)
{
    static JNIEnv *list[BUSY];
    static jint results[BUSY];
    JVMPI_RawMonitor m = jvmpi->RawMonitorCreate("_rules");
    JVMPI_CallFrame frames[16];
    JVMPI_CallTrace trace;
    long traced = 0, round, i, n = busy_threads(list);
    /* A thread that Java considers to be running may not have reported its start yet. */
    for (i = 0; i < 1000 && n < BUSY; i++) {
        pause_ms(10);
        n = busy_threads(list);
    }
    for (round = 0; round < 100; round++) {
        jvmpi->DisableGC();
        jvmpi->SuspendThreadList((jint)n, list, results);
        for (i = 0; i < n; i++) {
            trace.env_id = list[i];
            trace.frames = frames;
            jvmpi->GetCallTrace(&trace, 16);
            traced += trace.num_frames > 0;
            jvmpi->GetThreadStatus(list[i]);
            jvmpi->ThreadHasRun(list[i]);
            jvmpi->GetThreadLocalStorage(list[i]);
            jvmpi->GetMethodClass(frames[0].method_id);
            jvmpi->jobjectID2jobject(jvmpi->GetThreadObject(list[i]));
        }
        jvmpi->RawMonitorEnter(m);
        jvmpi->RawMonitorExit(m);
        jvmpi->ResumeThreadList((jint)n, list, results);
        jvmpi->EnableGC();
    }
    jvmpi->RawMonitorDestroy(m);
    return n == BUSY && traced >= n * 50 ? 1 : traced;
}

static void end_soon(void *unused)
{
    JNIEnv *env = NULL;
    (*java_vm)->GetEnv(java_vm, (void **)&env, JNI_VERSION_1_2);
    ending_id = jvmpi->GetThreadObject(env);
    ending = env;
}

/*
 * GetThreadObject and RequestEvent agree on whether a thread has ended. It has not before the
 * handler of its THREAD_END has entered a raw monitor, as it does to remove the thread from its
 * table. Returns two digits for each stage and for what follows: whether each function answers.
 */
static long asks_for_ending(void)
{
    long r = 0;
    int i, stage;
    wanted = jvmpi->RawMonitorCreate("_wanted");
    jvmpi->CreateSystemThread("ending", JVMPI_NORMAL_PRIORITY, end_soon);
    for (stage = 1; stage <= 3; stage++) {
        for (i = 0; i < 10000 && ending_stage < stage && stage < 3; i++)
            pause_ms(1);
        for (i = 0; i < 10000 && stage == 3 && jvmpi->GetThreadObject(ending); i++)
            pause_ms(1);
        r = r * 10 + (jvmpi->GetThreadObject(ending) == ending_id);
        r = r * 10 + (jvmpi->RequestEvent(JVMPI_EVENT_THREAD_START, ending_id) == JVMPI_SUCCESS);
        ending_asked = stage;
    }
    ending = NULL;
    return r;
}

static int all(const volatile int *flags)
{
    int i;
    for (i = 0; i < 5000 && !(flags[ASKS] && flags[ASKS_AS_OWNER] && flags[WANTS_MONITOR]); i++)
        pause_ms(1);
    return flags[ASKS] && flags[ASKS_AS_OWNER] && flags[WANTS_MONITOR];
}

/*
 * No dump waits for the handlers of threads that the caller has suspended, nor for a handler that
 * wants a raw monitor that a suspended thread owns. Two busy threads are suspended in their
 * handlers, continue in native code and call a function of the interface, which returns when they
 * have been resumed. DisableGC does not wait for the end of a bracket whose thread is suspended.
 * Returns 11111, with another digit for what takes 5 s.
 */
static long suspended_dumps(void)
{
    enum { LIMIT_MS = 5000 };

    static JVMPI_HeapDumpArg level_0 = {JVMPI_DUMP_LEVEL_0};
    long began, heap, monitors, disabled, r, i;
    wanted = jvmpi->RawMonitorCreate("_wanted");
    if (busy_threads(busy) != BUSY)
        return -2;
    handling = 1;
    if (!all(in_handler))
        return -3;
    jvmpi->SuspendThread(busy[ASKS]);
    jvmpi->SuspendThread(busy[ASKS_AS_OWNER]);
    go_on = 1;
    began = now_ms();
    r = jvmpi->RequestEvent(JVMPI_EVENT_HEAP_DUMP, &level_0) == JVMPI_SUCCESS;
    heap = now_ms();
    r &= jvmpi->RequestEvent(JVMPI_EVENT_MONITOR_DUMP, NULL) == JVMPI_SUCCESS;
    monitors = now_ms();
    r &= !returned[ASKS] && !returned[ASKS_AS_OWNER] && !returned[WANTS_MONITOR];
    jvmpi->ResumeThread(busy[ASKS]);
    jvmpi->ResumeThread(busy[ASKS_AS_OWNER]);
    r += all(returned) ? 10 : 0;
    handling = 0;

    in_bracket = about_to_disable = ran = 0;
    hold_bracket = 1;
    jvmpi->CreateSystemThread("collector", JVMPI_NORMAL_PRIORITY, collect);
    for (i = 0; i < 1000 && !in_bracket; i++)
        pause_ms(10);
    jvmpi->SuspendThread(bracket_in);
    disabled = now_ms();
    jvmpi->DisableGC();
    disabled = now_ms() - disabled;
    hold_bracket = 0;
    about_to_disable = 1;
    jvmpi->ResumeThread(bracket_in);
    jvmpi->EnableGC();
    for (i = 0; i < 1000 && !ran; i++)
        pause_ms(10);
    return r + (heap - began < LIMIT_MS ? 100 : 200) + (monitors - heap < LIMIT_MS ? 1000 : 2000) +
           (in_bracket && ran && disabled < LIMIT_MS ? 10000 : 20000);
}

long rules_ask(JNIEnv *env, const char *what, jobject o)
{
    const char *text = NULL;
    long r = -1;
    if (!strcmp(what, "rule requests"))
        return requests(env, o);
    if (!strcmp(what, "rule creates"))
        return creates(env);
    if (!strcmp(what, "rule collects"))
        return collects(env);
    if (!strcmp(what, "rule disables"))
        return disables();
    if (!strcmp(what, "rule suspends"))
        return suspends(env);
    if (!strcmp(what, "rule suspended dumps"))
        return suspended_dumps();
    if (!strcmp(what, "rule ending"))
        return asks_for_ending();
    if (!strcmp(what, "rule meet")) {
        r = met;
        meeting = !meeting;
        return r;
    }
    /* For the given thread and class: 1 for each event that arrived on this thread. */
    if (!strcmp(what, "rule here")) {
        r = (started_in == env) + 10 * (loaded_in == env) + 100 * (allocated_in == env);
        return r;
    }
    if (!strcmp(what, "rule ended"))
        return ended_in && ended_in == started_in;
    text = o ? (*env)->GetStringUTFChars(env, (jstring)o, NULL) : NULL;
    if (text && !strcmp(what, "rule thread"))
        strncpy(wanted_thread, text, sizeof(wanted_thread) - 1);
    if (text && !strcmp(what, "rule class"))
        strncpy(wanted_class, text, sizeof(wanted_class) - 1);
    if (text)
        (*env)->ReleaseStringUTFChars(env, (jstring)o, text);
    return 0;
}

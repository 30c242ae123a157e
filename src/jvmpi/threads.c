/* SPDX-License-Identifier: Apache-2.0 */
/* Reports the start and the end of threads, and keeps track of which threads the agent knows. */
#include "jvmpi/threads.h"
#include "base/map.h"
#include "jvmpi/boot_classes.h"
#include "jvmpi/classes.h"
#include "jvmpi/heap_walks.h"
#include "jvmpi/ids.h"
#include "jvmpi/interface.h"
#include "jvmpi/layer.h"
#include "jvmpi/lookup.h"
#include "jvmpi/objects.h"
#include "jvmpi/references.h"
#include "jvmpi/settle.h"
#include "jvmpi/thread_table.h"

#include <errno.h>
#include <string.h>

/* The thread for which THREAD_END was sent; its kernel thread may run another Java thread later. */
static __thread jobjectID gone;

/*
 * Computes the environment of a thread that started before us. Its distance from the VM's own
 * thread structure is the same for all threads, and Thread.eetop holds the address of the latter.
 */
static JNIEnv *env_by_eetop(JNIEnv *self, jthread thread)
{
    static ptrdiff_t distance;
    static jfieldID eetop;
    if (!eetop) {
        jclass class = boot_class(self, "java/lang/Thread");
        eetop = class ? (*self)->GetFieldID(self, class, "eetop", "J") : NULL;
        jthread me;
        if (!eetop || (*vm.ti)->GetCurrentThread(vm.ti, &me)) {
            vm_clear_exception(self);
            return NULL;
        }
        distance = (char *)self - (char *)(intptr_t)(*self)->GetLongField(self, me, eetop);
    }
    intptr_t address = (intptr_t)(*self)->GetLongField(self, thread, eetop);
    JNIEnv *env = address ? (JNIEnv *)(address + distance) : NULL;
    return env && *env == *self ? env : NULL;
}

JNIEnv *env_of(JNIEnv *self, jthread thread)
{
    JNIEnv *of = env_by_eetop(self, thread), *found = NULL;
    unsigned bucket;
    thread_table_lock();
    /* A thread that has ended, and whose end was not reported, no longer has an environment. */
    for (struct thread_entry *t = of ? thread_find(of) : thread_next(NULL, &bucket); t && !found;
         t = of ? NULL : thread_next(t, &bucket))
        if (atomic_load(&t->env) && t->object && (*self)->IsSameObject(self, t->object, thread))
            found = atomic_load(&t->env);
    thread_table_unlock();
    return found;
}

/* Sends THREAD_START or THREAD_END with everything known about the thread. */
static void send_thread(JNIEnv *self, jint type, JNIEnv *env, jthread thread)
{
    jvmtiThreadInfo info = {0};
    jvmtiThreadGroupInfo group = {0}, parent = {0};
    JVMPI_Event e = {.event_type = type};
    if ((*vm.ti)->GetThreadInfo(vm.ti, thread, &info))
        return;
    if (info.thread_group)
        (void)(*vm.ti)->GetThreadGroupInfo(vm.ti, info.thread_group, &group);
    if (group.parent)
        (void)(*vm.ti)->GetThreadGroupInfo(vm.ti, group.parent, &parent);
    e.u.thread_start.thread_name = info.name ? info.name : (char *)"";
    e.u.thread_start.group_name = group.name ? group.name : (char *)"";
    e.u.thread_start.parent_name = parent.name ? parent.name : (char *)"";
    e.u.thread_start.thread_id = layer_report_object(self, thread);
    e.u.thread_start.thread_env_id = env;
    struct thread_entry *own =
        type & JVMPI_REQUESTED_EVENT || env != self ? NULL : thread_find(env);
    if (own)
        atomic_store(&own->agent_table, TABLE_CHANGING);
    if (own && type == JVMPI_EVENT_THREAD_END)
        atomic_store(&own->ending, true);
    layer_notify_naming(self, &e, e.u.thread_start.thread_id, thread);
    if (own)
        atomic_store(&own->agent_table, TABLE_UNCHANGED);
    vm_free(info.name);
    vm_free(group.name);
    vm_free(parent.name);
}

/* Sends THREAD_START unless it has been sent for this thread. */
static void report_thread(JNIEnv *self, struct thread_entry *t, JNIEnv *env, jthread thread)
{
    struct flight f = {0};
    if (!flight_begin(&f, (uintptr_t)t, &t->reported))
        return;
    /*
     * The thread's object is reported first. The handler of that event may request the thread's
     * start, which must be sent only once.
     */
    (void)layer_report_object(self, thread);
    if ((!f.requested || layer_mutation("thread-twice")) &&
        !layer_mutation_eighth("unannounced-thread") && !layer_mutation("hidden-threads"))
        send_thread(self, JVMPI_EVENT_THREAD_START, env, thread);
    flight_end(&f);
}

static void end(JNIEnv *self, JNIEnv *env, jthread thread)
{
    struct thread_entry *t = thread_find(env);
    /*
     * If the start of a thread was not reported, its end is reported only when the event for starts
     * is disabled.
     */
    bool wanted = t && layer_enabled(JVMPI_EVENT_THREAD_END) &&
                  (atomic_load(&t->reported) || !layer_enabled(JVMPI_EVENT_THREAD_START));
    layer_known_change_begin();
    bool reports = wanted && layer_report_begin(my_own());
    if (t && !wanted)
        atomic_store(&t->ending, true);
    layer_known_change_end();
    if (wanted && !reports) {
        /*
         * For the agent the thread has not ended, so it may still request it. The VM is ending too,
         * so the reference to its object is never deleted.
         */
        (void)layer_global(self, thread);
        thread_use(NULL);
        return;
    }
    for (int times = !wanted ? 0 : layer_mutation("end-twice") ? 2 : 1; times > 0; times--)
        send_thread(self, JVMPI_EVENT_THREAD_END, env, thread);
    if (wanted)
        layer_report_end(my_own());
    thread_leave(self, env);
}

/*
 * Ends the entry of a thread whose end JVM TI does not report; its environment now belongs to
 * another thread.
 */
static void end_former(JNIEnv *env, jthread thread)
{
    /* this is NULL also when the former thread's object has been freed */
    jthread former = layer_thread_of(env, env);
    struct thread_entry *t = thread_find(env);
    if (t && !(*env)->IsSameObject(env, former, thread)) {
        thread_use(t); /* this thread sends the end of the other one */
        end(env, env, former);
    }
    (*env)->DeleteLocalRef(env, former);
}

void thread_begin(JNIEnv *env, jthread thread)
{
    bool fresh;
    end_former(env, thread);
    gone = NULL;
    layer_known_change_begin();
    struct thread_entry *t = thread_enter(env, env, thread, &fresh);
    thread_use(t);
    my.known_env = t ? env : NULL;
    bool reports = t && layer_enabled(JVMPI_EVENT_THREAD_START) && layer_report_begin(my_own());
    layer_known_change_end();
    if (reports) {
        report_thread(env, t, env, thread);
        layer_report_end(my_own());
    }
}

static void JNICALL on_start(jvmtiEnv *ti, JNIEnv *env, jthread thread)
{
    if (!atomic_load(&layer.live) || (atomic_load(&layer.replaying) && !my.replayer))
        return; /* VMInit reports it */
    thread_begin(env, thread);
    classes_report_pending(env);
}

/*
 * Returns whether a Thread object has no name. JVM TI must not be called, because the VM may not
 * have initialized the object yet.
 */
static bool is_without_name(JNIEnv *env, jthread thread)
{
    jclass class = boot_class(env, "java/lang/Thread");
    jfieldID field = class ? (*env)->GetFieldID(env, class, "name", "Ljava/lang/String;") : NULL;
    if (class && !field)
        vm_clear_exception(env);
    jobject name = field ? (*env)->GetObjectField(env, thread, field) : NULL;
    bool is = field && !name;
    (*env)->DeleteLocalRef(env, name);
    (*env)->DeleteLocalRef(env, class);
    return is;
}

/*
 * Returns true while the calling thread attaches itself to the VM, which makes the thread create
 * its own Thread object. Before it runs Java it has no name; after that its outermost frame is
 * Thread's constructor or, up to JDK 18, the method that adds the thread to its group. The thread's
 * state does not always show this: it is "alive" if the thread waits for a monitor there.
 */
static bool is_attaching(JNIEnv *env, jthread thread)
{
    jint n = 0;
    jmethodID method = NULL;
    jlocation location;
    jclass class = NULL;
    char *name = NULL, *signature = NULL;
    if ((*vm.ti)->GetFrameCount(vm.ti, NULL, &n) || n == 0)
        return is_without_name(env, thread);
    bool is = !(*vm.ti)->GetFrameLocation(vm.ti, NULL, n - 1, &method, &location) &&
              !(*vm.ti)->GetMethodDeclaringClass(vm.ti, method, &class) &&
              !(*vm.ti)->GetClassSignature(vm.ti, class, &signature, NULL) &&
              !(*vm.ti)->GetMethodName(vm.ti, method, &name, NULL, NULL) &&
              ((!strcmp(signature, "Ljava/lang/Thread;") && !strcmp(name, "<init>")) ||
               (!strcmp(signature, "Ljava/lang/ThreadGroup;") && !strcmp(name, "add")));
    vm_free(name);
    vm_free(signature);
    (*env)->DeleteLocalRef(env, class);
    return is;
}

bool thread_check(JNIEnv *env)
{
    jthread thread = NULL;
    jint state = 0;
    if (!atomic_load(&layer.live))
        return false; /* VMInit reports the threads that exist */
    if (!env)
        return true;
    if (atomic_load(&layer.replaying) && !my.replayer)
        return false;
    if (thread_known(env)) { /* it existed at the start */
        flight_wait((uintptr_t)my_entry);
        my.known_env = env;
        return true;
    }
    if ((*vm.ti)->GetCurrentThread(vm.ti, &thread) || !thread)
        return false;
    /*
     * A thread that attaches itself runs Java (its constructor) before it is alive, and before its
     * ThreadStart.
     */
    bool complete = !(gone && layer_id_of(thread) == gone) &&
                    !(*vm.ti)->GetThreadState(vm.ti, thread, &state) &&
                    (state & JVMTI_THREAD_STATE_ALIVE || layer_mutation("alive-early")) &&
                    !is_attaching(env, thread);
    if (complete)
        thread_begin(env, thread);
    (*env)->DeleteLocalRef(env, thread);
    return complete;
}

/* Returns true when the VM has run its shutdown hooks, or does not show whether it has. */
static bool has_shut_down(JNIEnv *env)
{
    jclass class = boot_class(env, "java/lang/Shutdown");
    jfieldID hook = class ? (*env)->GetStaticFieldID(env, class, "currentRunningHook", "I") : NULL;
    bool has = vm_clear_exception(env) || !hook || (*env)->GetStaticIntField(env, class, hook) > 0;
    (*env)->DeleteLocalRef(env, class);
    return has;
}

/*
 * Returns whether a thread ends the VM; the VM reports the end of this thread before its own. It is
 * the thread of the program that called System.exit, which therefore has frames, or the main thread
 * after main has returned, when it waits for all others.
 */
static bool ends_vm(jvmtiEnv *ti, JNIEnv *env, jthread thread)
{
    jint frames = 0;
    jvmtiThreadInfo info = {0};
    if (!(*ti)->GetFrameCount(ti, NULL, &frames) && frames > 0)
        return true;
    bool is = !(*ti)->GetThreadInfo(ti, thread, &info) && info.name &&
              strcmp(info.name, "DestroyJavaVM") == 0;
    vm_free(info.name);
    return is && (!layer_end_waits() || has_shut_down(env));
}

static void JNICALL on_end(jvmtiEnv *ti, JNIEnv *env, jthread thread)
{
    if (layer_mutation("lost-ends"))
        return;
    if (atomic_load(&layer.live) && ends_vm(ti, env, thread)) {
        layer_vm_ends(env);
        heap_walks_hold();
        return; /* this thread sends JVM_SHUT_DOWN */
    }
    end(env, env, thread);
    gone = layer_id_of(thread);
}

const struct vm_callbacks thread_events = {.ti = {.ThreadStart = on_start, .ThreadEnd = on_end}};

void threads_replay(JNIEnv *self)
{
    jint n = 0;
    jthread *all = NULL;
    if (vm_all_threads(&n, &all))
        return;
    for (jint i = 0; i < n; i++) {
        JNIEnv *env = env_by_eetop(self, all[i]);
        bool fresh = false;
        struct thread_entry *t = env ? thread_enter(self, env, all[i], &fresh) : NULL;
        if (t && layer_enabled(JVMPI_EVENT_THREAD_START) && layer_report_begin(my_own())) {
            report_thread(self, t, env, all[i]);
            layer_report_end(my_own());
        }
        (*self)->DeleteLocalRef(self, all[i]);
    }
    vm_free(all);
}

static bool is_thread(JNIEnv *env, jobject object)
{
    jclass of_threads = object ? boot_class(env, "java/lang/Thread") : NULL;
    bool is = of_threads && (*env)->IsInstanceOf(env, object, of_threads);
    (*env)->DeleteLocalRef(env, of_threads);
    return is;
}

jint layer_request_thread_start(JNIEnv *self, jobjectID id)
{
    jobject thread = layer_object_of(self, id);
    JNIEnv *env = is_thread(self, thread) ? env_of(self, thread) : NULL;
    struct thread_entry *t = thread_find(env);
    bool known = t && layer_get_thread_object(env) == id;
    if (known) {
        flight_requested((uintptr_t)t, &t->reported);
        layer_request_in_flight(self, id);
        send_thread(self, JVMPI_EVENT_THREAD_START | JVMPI_REQUESTED_EVENT, env, thread);
        atomic_store(&t->asked, true);
    }
    if (thread)
        (*self)->DeleteLocalRef(self, thread);
    return known ? JVMPI_SUCCESS : JVMPI_FAIL;
}

/*
 * Returns whether the agent has entered the thread into its table and not removed it. If another
 * thread is still sending the start or the end, it cannot continue before the caller does
 * (layer_reports_settle).
 */
static bool is_reported(struct thread_entry *t)
{
    if (thread_has_ended(t))
        return false;
    if (!layer_enabled(JVMPI_EVENT_THREAD_START))
        return true;
    return atomic_load(&t->reported) &&
           (atomic_load(&t->asked) || !flight_elsewhere((uintptr_t)t) ||
            atomic_load(&t->agent_table) == TABLE_CHANGED);
}

/* Adds the environments of the threads that JVM TI lists. */
static int listed_envs(JNIEnv *self, struct map *envs)
{
    jint n = 0;
    jthread *all = NULL;
    int r = 0;
    if (vm_all_threads(&n, &all))
        return -ENOMEM;
    for (jint i = 0; i < n; i++) {
        JNIEnv *env = env_by_eetop(self, all[i]);
        if (env && r == 0)
            r = map_put(envs, (uintptr_t)env, 1);
        (*self)->DeleteLocalRef(self, all[i]);
    }
    vm_free(all);
    return r;
}

/* Adds the threads of the table that have not ended, as far as was reported to the agent. */
static int table_threads(JNIEnv *self, reported_thread_vec *all)
{
    int r = 0;
    unsigned bucket;
    thread_table_lock();
    for (struct thread_entry *t = thread_next(NULL, &bucket); t && r == 0;
         t = thread_next(t, &bucket)) {
        JNIEnv *env = atomic_load(&t->env);
        if (env && t->object && is_reported(t))
            r = vec_push(all, ((struct reported_thread){
                                  env, t->id, (*self)->NewLocalRef(self, t->object), false}));
    }
    thread_table_unlock();
    return r;
}

int threads_reported(JNIEnv *self, reported_thread_vec *ret)
{
    struct map listed = {0};
    *ret = (reported_thread_vec){0};
    layer_reports_settle();
    int r = table_threads(self, ret);
    if (r == 0)
        r = listed_envs(self, &listed);
    for (size_t i = 0; i < ret->len; i++)
        ret->data[i].hidden = !map_get(&listed, (uintptr_t)ret->data[i].env);
    map_release(&listed);
    return r;
}

void threads_release(JNIEnv *self, reported_thread_vec *list)
{
    for (size_t i = 0; i < list->len; i++)
        (*self)->DeleteLocalRef(self, list->data[i].thread);
    vec_release(list);
}

static int show(JNIEnv *self, jobject thread, object_vec *held)
{
    jobject ref = layer_global(self, thread);
    int r = ref ? vec_push(held, ref) : 0;
    if (r)
        layer_delete_global(self, ref);
    return r;
}

bool threads_show(JNIEnv *self, const reported_thread_vec *list, object_vec *held)
{
    int r = 0;
    unsigned bucket;
    for (size_t i = 0; list && i < list->len && r == 0; i++)
        r = list->data[i].hidden ? show(self, list->data[i].thread, held) : 0;
    if (list)
        return r == 0;
    thread_table_lock();
    for (struct thread_entry *t = thread_next(NULL, &bucket); t && r == 0;
         t = thread_next(t, &bucket))
        r = atomic_load(&t->env) && t->object ? show(self, t->object, held) : 0;
    thread_table_unlock();
    return r == 0;
}

void threads_hide(JNIEnv *self, object_vec *held)
{
    for (size_t i = 0; i < held->len; i++)
        layer_delete_global(self, held->data[i]);
    vec_release(held);
}

jvmtiError thread_owned_monitors(jthread thread, jint *ret_n, jobject **ret_owned)
{
    my.quiet++;
    jvmtiError e = (*vm.ti)->GetOwnedMonitorInfo(vm.ti, thread, ret_n, ret_owned);
    my.quiet--;
    return e;
}

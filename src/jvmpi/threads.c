/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads by their JNIEnv. The table of environments is read without a lock, so that thread-local storage works in signal
 * handlers; an entry is taken when a thread is first seen and given to another one after its end.
 */
#include "base/hash.h"
#include "jvmpi/layer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BUCKETS = 16384 };

struct thread_entry {
    _Atomic(JNIEnv *) env; /* NULL: free for another */
    struct thread_entry *_Atomic next;
    void *_Atomic local;
    jweak object;          /* read and written under `threads` */
    jobjectID id;          /* of the object */
    atomic_bool suspended; /* by JVMPI */
    atomic_bool locked;    /* it holds a lock of the layer's */
    bool was_suspended;    /* and status at that time */
    jint status;
    jlong cpu_ns, cpu_before_ns; /* at the last and the last but one suspension; -1: none */
};

static struct thread_entry *_Atomic buckets[BUCKETS];
static pthread_mutex_t threads = PTHREAD_MUTEX_INITIALIZER;
static __thread struct thread_entry *mine;

static struct thread_entry *_Atomic *bucket_of(JNIEnv *env)
{
    return &buckets[hash_u64((uintptr_t)env) % BUCKETS];
}

static struct thread_entry *find(JNIEnv *env)
{
    if (mine && atomic_load_explicit(&mine->env, memory_order_relaxed) == env)
        return mine;
    if (!env)
        return NULL;
    for (struct thread_entry *t = atomic_load(bucket_of(env)); t; t = atomic_load(&t->next))
        if (atomic_load(&t->env) == env)
            return t;
    return NULL;
}

static __thread int depth;                    /* of the layer's locks */
static __thread struct thread_entry *counted; /* where the outermost was counted */

void layer_lock(pthread_mutex_t *mutex)
{
    if (depth++ == 0) {
        counted = mine ? mine : find(vm_jni());
        for (; counted; nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL)) {
            atomic_store(&counted->locked, true);
            if (!atomic_load(&counted->suspended))
                break;
            atomic_store(&counted->locked, false); /* it runs on in native code: no further */
        }
    }
    pthread_mutex_lock(mutex);
}

void layer_unlock(pthread_mutex_t *mutex)
{
    pthread_mutex_unlock(mutex);
    if (--depth == 0 && counted)
        atomic_store(&counted->locked, false);
}

bool thread_known(JNIEnv *env)
{
    struct thread_entry *t = find(env);
    if (t)
        mine = t; /* the main thread has no event of its start */
    return t;
}

/*
 * The entry of an environment, made when it is new; NULL: no memory. *ret_new: made now. The thread is not known yet, so that
 * nothing is asked of the VM under the lock.
 */
static struct thread_entry *enter(JNIEnv *self, JNIEnv *env, jthread object, bool *ret_new)
{
    jweak weak = layer_weak(self, object);
    jobjectID id = id_of(object);
    layer_lock(&threads);
    struct thread_entry *t = find(env);
    *ret_new = !t;
    if (!t) {
        for (t = atomic_load(bucket_of(env)); t && atomic_load(&t->env); t = atomic_load(&t->next))
            ;
        bool linked = t;
        if (!t)
            t = calloc(1, sizeof(*t));
        if (t) {
            t->object = weak;
            t->id = id;
            atomic_store(&t->suspended, false);
            t->cpu_ns = t->cpu_before_ns = -1;
            atomic_store(&t->local, NULL);
            atomic_store(&t->env, env);
        }
        if (t && !linked) {
            atomic_store(&t->next, atomic_load(bucket_of(env)));
            atomic_store(bucket_of(env), t);
        }
    }
    layer_unlock(&threads);
    if (*ret_new && t)
        id_keep(id, weak);
    else
        layer_delete_weak(self, weak);
    return t;
}

static void leave(JNIEnv *self, JNIEnv *env)
{
    layer_lock(&threads);
    struct thread_entry *t = find(env);
    jweak object = t ? t->object : NULL;
    jobjectID id = t ? t->id : NULL;
    if (t) {
        t->object = NULL;
        atomic_store(&t->env, NULL);
    }
    layer_unlock(&threads);
    mine = NULL;
    if (object) {
        id_drop(id);
        layer_delete_weak(self, object);
    }
}

jthread thread_of(JNIEnv *self, JNIEnv *env)
{
    layer_lock(&threads);
    struct thread_entry *t = find(env);
    jthread object = t && t->object ? (*self)->NewLocalRef(self, t->object) : NULL;
    layer_unlock(&threads);
    return object;
}

JNIEnv *env_of(JNIEnv *self, jthread thread)
{
    JNIEnv *found = NULL;
    layer_lock(&threads);
    for (unsigned i = 0; i < BUCKETS && !found; i++)
        for (struct thread_entry *t = atomic_load(&buckets[i]); t && !found; t = atomic_load(&t->next))
            if (atomic_load(&t->env) && t->object && (*self)->IsSameObject(self, t->object, thread))
                found = atomic_load(&t->env);
    layer_unlock(&threads);
    return found;
}

/* ---- start and end ---- */

/*
 * The environment of a thread that was there before us: its distance to the VM's own thread structure is the same for all,
 * and Thread.eetop holds the latter's address.
 */
static JNIEnv *env_by_eetop(JNIEnv *self, jthread thread)
{
    static ptrdiff_t distance;
    static jfieldID eetop;
    if (!eetop) {
        jclass class = (*self)->FindClass(self, "java/lang/Thread");
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

/* Sends THREAD_START or THREAD_END with all that is known of the thread. */
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
    e.u.thread_start.thread_id = id_of(thread);
    e.u.thread_start.thread_env_id = env;
    notify(self, &e);
    vm_free(info.name);
    vm_free(group.name);
    vm_free(parent.name);
}

static void JNICALL on_start(jvmtiEnv *ti, JNIEnv *env, jthread thread)
{
    bool fresh;
    if (!atomic_load(&layer.live))
        return; /* VMInit tells of it */
    mine = enter(env, env, thread, &fresh);
    if (fresh && event_enabled(JVMPI_EVENT_THREAD_START))
        send_thread(env, JVMPI_EVENT_THREAD_START, env, thread);
}

void threads_meet(JNIEnv *env)
{
    jthread thread = NULL;
    if (thread_known(env) || (*vm.ti)->GetCurrentThread(vm.ti, &thread))
        return;
    on_start(vm.ti, env, thread);
    (*env)->DeleteLocalRef(env, thread);
}

static void JNICALL on_end(jvmtiEnv *ti, JNIEnv *env, jthread thread)
{
    if (event_enabled(JVMPI_EVENT_THREAD_END))
        send_thread(env, JVMPI_EVENT_THREAD_END, env, thread);
    leave(env, env);
}

const struct vm_callbacks thread_events = {.ti = {.ThreadStart = on_start, .ThreadEnd = on_end}};

void threads_replay(JNIEnv *self)
{
    jint n = 0;
    jthread *all = NULL;
    if ((*vm.ti)->GetAllThreads(vm.ti, &n, &all))
        return;
    for (jint i = 0; i < n; i++) {
        JNIEnv *env = env_by_eetop(self, all[i]);
        bool fresh = false;
        if (env && enter(self, env, all[i], &fresh) && fresh && event_enabled(JVMPI_EVENT_THREAD_START))
            send_thread(self, JVMPI_EVENT_THREAD_START, env, all[i]);
        (*self)->DeleteLocalRef(self, all[i]);
    }
    vm_free(all);
}

jint request_thread_start(JNIEnv *self, jobjectID id)
{
    jthread thread = object_of(self, id);
    JNIEnv *env = thread ? env_of(self, thread) : NULL;
    if (env)
        send_thread(self, JVMPI_EVENT_THREAD_START | JVMPI_REQUESTED_EVENT, env, thread);
    if (thread)
        (*self)->DeleteLocalRef(self, thread);
    return env ? JVMPI_SUCCESS : JVMPI_FAIL;
}

/* ---- thread-local storage ---- */

void set_thread_local_storage(JNIEnv *env, void *value)
{
    struct thread_entry *t = find(env);
    if (t)
        atomic_store_explicit(&t->local, value, memory_order_release);
}

void *get_thread_local_storage(JNIEnv *env)
{
    struct thread_entry *t = find(env);
    return t ? atomic_load_explicit(&t->local, memory_order_acquire) : NULL;
}

/* ---- questions ---- */

static jint status_of(jthread thread, bool by_us)
{
    jint state = 0, status = JVMPI_THREAD_RUNNABLE;
    if ((*vm.ti)->GetThreadState(vm.ti, thread, &state))
        return 0;
    if (state & JVMTI_THREAD_STATE_BLOCKED_ON_MONITOR_ENTER)
        status = JVMPI_THREAD_MONITOR_WAIT;
    else if (state & (JVMTI_THREAD_STATE_WAITING | JVMTI_THREAD_STATE_PARKED | JVMTI_THREAD_STATE_SLEEPING))
        status = JVMPI_THREAD_CONDVAR_WAIT;
    if (state & JVMTI_THREAD_STATE_INTERRUPTED)
        status |= JVMPI_THREAD_INTERRUPTED;
    if (state & JVMTI_THREAD_STATE_SUSPENDED && !by_us)
        status |= JVMPI_THREAD_SUSPENDED;
    return status;
}

jint get_thread_status(JNIEnv *env)
{
    JNIEnv *self = vm_jni();
    struct thread_entry *t = find(env);
    jthread thread = self && t ? thread_of(self, env) : NULL;
    jint status = thread ? status_of(thread, atomic_load(&t->suspended)) : 0;
    if (thread)
        (*self)->DeleteLocalRef(self, thread);
    return status;
}

jobjectID get_thread_object(JNIEnv *env)
{
    JNIEnv *self = vm_jni();
    jthread thread = self ? thread_of(self, env) : NULL;
    jobjectID id = id_of(thread);
    if (thread)
        (*self)->DeleteLocalRef(self, thread);
    return id;
}

jlong get_current_thread_cpu_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (jlong)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- suspension ---- */

enum { THREAD_DONE = 0, THREAD_INVALID = 10, THREAD_SUSPENDED_ALREADY = 14, THREAD_NOT_SUSPENDED = 13 };

/* Until it holds none of the layer's locks. */
static jvmtiError suspend_clean(struct thread_entry *t, jthread thread)
{
    jvmtiError error = (*vm.ti)->SuspendThread(vm.ti, thread);
    while (!error && atomic_load(&t->locked)) {
        error = (*vm.ti)->ResumeThread(vm.ti, thread);
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
        if (!error)
            error = (*vm.ti)->SuspendThread(vm.ti, thread);
    }
    return error;
}

static jint suspend(JNIEnv *env)
{
    JNIEnv *self = vm_jni();
    struct thread_entry *t = find(env);
    if (!self || !t || env == self)
        return THREAD_INVALID;
    jobjectID id = t->id;
    jthread thread = thread_of(self, env);
    if (!thread)
        return THREAD_INVALID;
    if (atomic_exchange(&t->suspended, true)) {
        (*self)->DeleteLocalRef(self, thread);
        return THREAD_SUSPENDED_ALREADY;
    }
    jvmtiError error = suspend_clean(t, thread);
    if (!error && (atomic_load(&t->env) != env || t->id != id)) {
        /* It has left while it was waited for: nobody would find it again to resume it. */
        (void)(*vm.ti)->ResumeThread(vm.ti, thread);
        error = JVMTI_ERROR_THREAD_NOT_ALIVE;
    }
    if (error) {
        atomic_store(&t->suspended, false);
    } else {
        jlong cpu = -1;
        t->cpu_before_ns = t->cpu_ns;
        t->cpu_ns = (*vm.ti)->GetThreadCpuTime(vm.ti, thread, &cpu) ? -1 : cpu;
    }
    (*self)->DeleteLocalRef(self, thread);
    return !error ? THREAD_DONE : error == JVMTI_ERROR_THREAD_SUSPENDED ? THREAD_SUSPENDED_ALREADY : THREAD_INVALID;
}

static jint resume(JNIEnv *env)
{
    JNIEnv *self = vm_jni();
    struct thread_entry *t = find(env);
    if (!self || !t)
        return THREAD_INVALID;
    if (!atomic_load(&t->suspended))
        return THREAD_NOT_SUSPENDED; /* java.lang.Thread.suspend's are not ours to resume */
    jthread thread = thread_of(self, env);
    jvmtiError error = thread ? (*vm.ti)->ResumeThread(vm.ti, thread) : JVMTI_ERROR_INVALID_THREAD;
    atomic_store(&t->suspended, false);
    if (thread)
        (*self)->DeleteLocalRef(self, thread);
    return error ? THREAD_INVALID : THREAD_DONE;
}

void suspend_thread(JNIEnv *env)
{
    (void)suspend(env);
}

void resume_thread(JNIEnv *env)
{
    (void)resume(env);
}

void suspend_thread_list(jint n, JNIEnv **list, jint *results)
{
    for (jint i = 0; i < n; i++)
        results[i] = suspend(list[i]);
}

void resume_thread_list(jint n, JNIEnv **list, jint *results)
{
    for (jint i = 0; i < n; i++)
        results[i] = resume(list[i]);
}

jboolean thread_has_run(JNIEnv *env)
{
    struct thread_entry *t = find(env);
    if (!t)
        return JNI_FALSE;
    return t->cpu_ns < 0 || t->cpu_before_ns < 0 || t->cpu_ns > t->cpu_before_ns;
}

/* ---- threads of the agent's, and the end ---- */

struct system_thread {
    void (*run)(void *);
};

static void JNICALL run_system_thread(jvmtiEnv *ti, JNIEnv *env, void *data)
{
    void (*run)(void *) = ((struct system_thread *)data)->run;
    free(data);
    run(NULL);
}

static jthread new_thread(JNIEnv *env, const char *name)
{
    jint n = 0;
    jthreadGroup *groups = NULL;
    jthread thread = NULL;
    if ((*env)->PushLocalFrame(env, 16)) {
        vm_clear_exception(env);
        return NULL;
    }
    jclass class = (*env)->FindClass(env, "java/lang/Thread");
    jmethodID init = class ? (*env)->GetMethodID(env, class, "<init>", "(Ljava/lang/ThreadGroup;Ljava/lang/String;)V") : NULL;
    jstring text = init ? (*env)->NewStringUTF(env, name) : NULL;
    if (text && !(*vm.ti)->GetTopThreadGroups(vm.ti, &n, &groups) && n)
        thread = (*env)->NewObject(env, class, init, groups[0], text);
    vm_free(groups);
    if (vm_clear_exception(env))
        thread = NULL;
    return (*env)->PopLocalFrame(env, thread);
}

jint create_system_thread(char *name, jint priority, void (*f)(void *))
{
    JNIEnv *env = vm_jni();
    if (!env || !f || !atomic_load(&layer.live))
        return JNI_ERR;
    struct system_thread *start = malloc(sizeof(*start));
    jthread thread = start ? new_thread(env, name ? name : "") : NULL;
    if (!thread) {
        free(start);
        return JNI_ERR;
    }
    start->run = f;
    jint p = priority <= JVMPI_MINIMUM_PRIORITY   ? JVMTI_THREAD_MIN_PRIORITY
             : priority >= JVMPI_MAXIMUM_PRIORITY ? JVMTI_THREAD_MAX_PRIORITY
                                                  : JVMTI_THREAD_NORM_PRIORITY;
    jvmtiError error = (*vm.ti)->RunAgentThread(vm.ti, thread, run_system_thread, start, p);
    (*env)->DeleteLocalRef(env, thread);
    if (error)
        free(start);
    return error ? JNI_ERR : JNI_OK;
}

/* Runs what the program wants done at its end, as System.exit does; that would then end the VM. */
static void run_shutdown_hooks(JNIEnv *env)
{
    jclass class = (*env)->FindClass(env, "java/lang/Shutdown");
    jmethodID run = class ? (*env)->GetStaticMethodID(env, class, "shutdown", "()V") : NULL;
    if (run)
        (*env)->CallStaticVoidMethod(env, class, run);
    vm_clear_exception(env);
}

void profiler_exit(jint code)
{
    static atomic_flag once = ATOMIC_FLAG_INIT;
    static __thread bool leaving;
    JNIEnv *env = vm_jni();
    if (leaving)
        return; /* an event of what is done below */
    if (!env || !atomic_load(&layer.live) || atomic_load(&layer.down))
        exit(code);
    vm_clear_exception(env);
    if (telling && vm.version >= 26) {
        /* the VM waits for all callbacks before it dies, this one too */
        while (atomic_flag_test_and_set(&once))
            pause();
        leaving = true;
        run_shutdown_hooks(env);
        layer_end(env);
        exit(code);
    }
    /* so that JVM_SHUT_DOWN is sent, and what the program wants done at its end is done */
    jclass class = (*env)->FindClass(env, "java/lang/System");
    jmethodID leave_vm = class ? (*env)->GetStaticMethodID(env, class, "exit", "(I)V") : NULL;
    if (leave_vm)
        (*env)->CallStaticVoidMethod(env, class, leave_vm, code);
    exit(code);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds threads by their JNIEnv. The table of environments is read without a lock, so that
 * thread-local storage works in signal handlers. An entry is taken when a thread is first seen and
 * reused after its end.
 */
#include "base/hash.h"
#include "base/map.h"
#include "jvmpi/layer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { BUCKETS = 16384 };

struct thread_entry {
    _Atomic(JNIEnv *) env; /* NULL if the entry is free */
    struct thread_entry *_Atomic next;
    void *_Atomic local;
    jweak object;          /* protected by `threads` */
    jobjectID id;          /* id of the object */
    atomic_bool suspended; /* suspended by JVMPI */
    atomic_bool locked;    /* it holds a lock of the layer */
    atomic_bool reported;  /* THREAD_START has reported it */
    atomic_bool ending;    /* THREAD_END is being sent: no dump names it any more */
    _Atomic int reporting;
    _Atomic(jobjectID) waits_on; /* in Object.wait, or NULL */
    bool was_suspended;          /* and the status at that time */
    jint status;
    jlong cpu_ns, cpu_before_ns; /* at the last suspension and the one before; -1 if none */
};

static struct thread_entry *_Atomic buckets[BUCKETS];
static pthread_mutex_t threads = PTHREAD_MUTEX_INITIALIZER;
static __thread struct thread_entry *mine;
/* The thread for which THREAD_END was sent; its kernel thread may run another Java thread later. */
static __thread jobjectID gone;

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

static __thread int depth;                    /* number of the layer's locks held */
static __thread struct thread_entry *counted; /* the entry that counted the outermost lock */

void layer_lock(pthread_mutex_t *mutex)
{
    if (depth++ == 0) {
        counted = mine ? mine : find(vm_jni());
        for (; counted; nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL)) {
            atomic_store(&counted->locked, true);
            if (!atomic_load(&counted->suspended))
                break;
            /* suspended, the thread still runs in native code; stop here until it is resumed */
            atomic_store(&counted->locked, false);
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
    if (t) {
        mine = t; /* no event reports the start of the main thread */
        my.thread_reports = &t->reporting;
    }
    return t;
}

/*
 * Returns the entry of an environment, which is created if necessary, or NULL when out of memory.
 * *ret_new: it was created now. The thread is not known yet, so the VM is not called under the
 * lock.
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
            atomic_store(&t->reported, false);
            atomic_store(&t->ending, false);
            atomic_store(&t->reporting, 0);
            atomic_store(&t->waits_on, NULL);
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

static void forget_me(void)
{
    mine = NULL;
    my.thread_reports = NULL;
    my.thread_is_seen = false;
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
    forget_me();
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
        for (struct thread_entry *t = atomic_load(&buckets[i]); t && !found;
             t = atomic_load(&t->next))
            if (atomic_load(&t->env) && t->object && (*self)->IsSameObject(self, t->object, thread))
                found = atomic_load(&t->env);
    layer_unlock(&threads);
    return found;
}

/* ---- start and end ---- */

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
    e.u.thread_start.thread_id = report_object(self, thread);
    e.u.thread_start.thread_env_id = env;
    layer_notify_naming(self, &e, e.u.thread_start.thread_id, thread);
    vm_free(info.name);
    vm_free(group.name);
    vm_free(parent.name);
}

/* Sends THREAD_START if it is enabled and was not sent for this thread. */
static void report_thread(JNIEnv *self, struct thread_entry *t, JNIEnv *env, jthread thread)
{
    struct flight f = {0};
    if (!event_enabled(JVMPI_EVENT_THREAD_START) || !report_begin())
        return;
    if (!flight_begin(&f, (uintptr_t)t, &t->reported)) {
        report_end();
        return;
    }
    /*
     * The thread's object is reported first. The handler of that event may request the thread's
     * start, which must be sent only once.
     */
    (void)report_object(self, thread);
    if ((!f.requested || mutation("thread-twice")) && !mutation_eighth("unannounced-thread"))
        send_thread(self, JVMPI_EVENT_THREAD_START, env, thread);
    flight_end(&f);
    report_end();
}

void reports_wait(void)
{
    enum { MOST_MS = 1000 };

    /*
     * Afterwards every processor has completed its stores or will see what the caller has stored
     * before.
     */
    if (syscall(__NR_membarrier, 1 /* MEMBARRIER_CMD_GLOBAL */, 0, 0))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    for (unsigned i = 0, ms = 0; i < BUCKETS; i++)
        for (struct thread_entry *t = atomic_load(&buckets[i]); t; t = atomic_load(&t->next))
            for (; t != mine && atomic_load(&t->reporting) && ms < MOST_MS; ms++)
                nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static pthread_mutex_t ends_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ends_changed = PTHREAD_COND_INITIALIZER;
static int ends_held;

void thread_ends_hold(void)
{
    pthread_mutex_lock(&ends_mutex);
    ends_held++;
    pthread_mutex_unlock(&ends_mutex);
}

void thread_ends_release(void)
{
    pthread_mutex_lock(&ends_mutex);
    ends_held--;
    pthread_cond_broadcast(&ends_changed);
    pthread_mutex_unlock(&ends_mutex);
}

static void end(JNIEnv *self, JNIEnv *env, jthread thread)
{
    struct thread_entry *t = find(env);
    pthread_mutex_lock(&ends_mutex);
    while (ends_held > 0)
        pthread_cond_wait(&ends_changed, &ends_mutex);
    if (t)
        atomic_store(&t->ending, true);
    pthread_mutex_unlock(&ends_mutex);
    /*
     * If the start of a thread was not reported, its end is reported only when the event for starts
     * is disabled.
     */
    bool wanted = t && event_enabled(JVMPI_EVENT_THREAD_END) &&
                  (atomic_load(&t->reported) || !event_enabled(JVMPI_EVENT_THREAD_START));
    if (wanted && !report_begin()) {
        /*
         * The agent, to which it has not ended, may still ask for it. The VM is ending too, so the
         * reference to its object is never deleted.
         */
        (void)layer_global(self, thread);
        atomic_store(&t->ending, false);
        forget_me();
        return;
    }
    for (int times = !wanted ? 0 : mutation("end-twice") ? 2 : 1; times > 0; times--)
        send_thread(self, JVMPI_EVENT_THREAD_END, env, thread);
    if (wanted)
        report_end();
    leave(self, env);
}

/*
 * Ends the entry of a thread whose end JVM TI does not report; its environment now belongs to
 * another thread.
 */
static void end_former(JNIEnv *env, jthread thread)
{
    jthread former = thread_of(env, env); /* NULL too when the former thread's object has ended */
    if (find(env) && !(*env)->IsSameObject(env, former, thread))
        end(env, env, former);
    (*env)->DeleteLocalRef(env, former);
}

void thread_begin(JNIEnv *env, jthread thread)
{
    bool fresh;
    gone = NULL;
    mine = enter(env, env, thread, &fresh);
    my.thread_reports = mine ? &mine->reporting : NULL;
    my.thread_is_seen = mine;
    if (mine)
        report_thread(env, mine, env, thread);
}

static void JNICALL on_start(jvmtiEnv *ti, JNIEnv *env, jthread thread)
{
    if (!atomic_load(&layer.live) || (atomic_load(&layer.replaying) && !my.replayer))
        return; /* VMInit reports it */
    end_former(env, thread);
    thread_begin(env, thread);
    classes_owed(env);
}

bool thread_check(JNIEnv *env)
{
    jthread thread = NULL;
    jint state = 0;
    if (!env || !atomic_load(&layer.live))
        return true; /* nothing can be reported yet */
    if (atomic_load(&layer.replaying) && !my.replayer)
        return false;
    if (thread_known(env)) { /* it existed at the start */
        flight_wait((uintptr_t)mine);
        return my.thread_is_seen = true;
    }
    if ((*vm.ti)->GetCurrentThread(vm.ti, &thread) || !thread)
        return false;
    /*
     * A thread that attaches itself runs Java (its constructor) before it is alive, and before its
     * ThreadStart.
     */
    bool complete = !(gone && id_of(thread) == gone) &&
                    !(*vm.ti)->GetThreadState(vm.ti, thread, &state) &&
                    state & JVMTI_THREAD_STATE_ALIVE;
    if (complete)
        thread_begin(env, thread);
    (*env)->DeleteLocalRef(env, thread);
    return complete;
}

static void JNICALL on_end(jvmtiEnv *ti, JNIEnv *env, jthread thread)
{
    end(env, env, thread);
    gone = id_of(thread);
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
        struct thread_entry *t = env ? enter(self, env, all[i], &fresh) : NULL;
        if (t)
            report_thread(self, t, env, all[i]);
        (*self)->DeleteLocalRef(self, all[i]);
    }
    vm_free(all);
}

jint request_thread_start(JNIEnv *self, jobjectID id)
{
    jthread thread = object_of(self, id);
    JNIEnv *env = thread ? env_of(self, thread) : NULL;
    struct thread_entry *t = find(env);
    if (t && atomic_load(&t->ending) && env != self)
        env = NULL; /* its end has been reported */
    else if (t)
        flight_requested((uintptr_t)t, &t->reported);
    if (env) {
        request_in_flight(self, id);
        send_thread(self, JVMPI_EVENT_THREAD_START | JVMPI_REQUESTED_EVENT, env, thread);
    }
    if (thread)
        (*self)->DeleteLocalRef(self, thread);
    return env ? JVMPI_SUCCESS : JVMPI_FAIL;
}

static bool is_reported(const struct thread_entry *t)
{
    return t && !atomic_load(&t->ending) &&
           (atomic_load(&t->reported) || !event_enabled(JVMPI_EVENT_THREAD_START));
}

bool env_is_reported(JNIEnv *env)
{
    return is_reported(find(env));
}

/* Adds the environments of the threads that JVM TI lists. */
static int listed_envs(JNIEnv *self, struct map *envs)
{
    jint n = 0;
    jthread *all = NULL;
    int r = 0;
    if ((*vm.ti)->GetAllThreads(vm.ti, &n, &all))
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

/* Adds what the table has: threads that have not ended, as far as the agent was told. */
static int table_threads(JNIEnv *self, reported_thread_vec *all)
{
    int r = 0;
    layer_lock(&threads);
    for (unsigned i = 0; i < BUCKETS && r == 0; i++)
        for (struct thread_entry *t = atomic_load(&buckets[i]); t && r == 0;
             t = atomic_load(&t->next)) {
            JNIEnv *env = atomic_load(&t->env);
            if (env && t->object && is_reported(t))
                r = vec_push(all, ((struct reported_thread){
                                      env, (*self)->NewLocalRef(self, t->object), false}));
        }
    layer_unlock(&threads);
    return r;
}

int threads_reported(JNIEnv *self, reported_thread_vec *ret)
{
    struct map listed = {0};
    reported_thread_vec all = {0};
    size_t n = 0;
    int r = table_threads(self, &all);
    if (r == 0)
        r = listed_envs(self, &listed);
    for (size_t i = 0; i < all.len; i++) {
        struct reported_thread t = all.data[i];
        t.hidden = !map_get(&listed, (uintptr_t)t.env);
        if (t.thread) /* the object of one that has ended, unreported, may be gone */
            all.data[n++] = t;
    }
    all.len = n;
    map_release(&listed);
    *ret = all;
    return r;
}

void threads_release(JNIEnv *self, reported_thread_vec *list)
{
    for (size_t i = 0; i < list->len; i++)
        (*self)->DeleteLocalRef(self, list->data[i].thread);
    vec_release(list);
}

/* ---- waiting ---- */

void thread_waits_on(JNIEnv *env, jobject object)
{
    if (thread_known(env))
        atomic_store(&mine->waits_on, id_of(object));
}

jobjectID thread_waited_object(JNIEnv *env)
{
    struct thread_entry *t = find(env);
    return t ? atomic_load(&t->waits_on) : NULL;
}

bool thread_is_virtual(JNIEnv *env, jthread thread)
{
    static _Atomic(jfieldID) eetop;
    if (vm.version < 21)
        return false;
    jfieldID field = atomic_load_explicit(&eetop, memory_order_relaxed);
    if (!field) {
        jclass class = boot_class(env, "java/lang/Thread");
        field = class ? (*env)->GetFieldID(env, class, "eetop", "J") : NULL;
        vm_clear_exception(env);
        (*env)->DeleteLocalRef(env, class);
        atomic_store(&eetop, field);
    }
    return field && !(*env)->GetLongField(env, thread, field);
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
    (void)(*vm.ti)->GetThreadState(vm.ti, thread, &state);
    if (state & JVMTI_THREAD_STATE_BLOCKED_ON_MONITOR_ENTER)
        status = JVMPI_THREAD_MONITOR_WAIT;
    else if (state &
             (JVMTI_THREAD_STATE_WAITING | JVMTI_THREAD_STATE_PARKED | JVMTI_THREAD_STATE_SLEEPING))
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
    /* Without an object it is a thread of the VM's own that has ended, whose end is not reported.
     */
    jint status = thread ? status_of(thread, atomic_load(&t->suspended))
                  : t    ? JVMPI_THREAD_RUNNABLE
                         : 0;
    if (thread)
        (*self)->DeleteLocalRef(self, thread);
    return status;
}

jobjectID get_thread_object(JNIEnv *env)
{
    layer_lock(&threads);
    const struct thread_entry *t = find(env);
    jobjectID id = t ? t->id : NULL;
    layer_unlock(&threads);
    return id;
}

jlong get_current_thread_cpu_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (jlong)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- suspension ---- */

enum {
    THREAD_DONE = 0,
    THREAD_INVALID = 10,
    THREAD_SUSPENDED_ALREADY = 14,
    THREAD_NOT_SUSPENDED = 13
};

/* Suspends the thread when it holds none of the layer's locks. */
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
        /* The thread ended while it was waited for. Nobody would find it again to resume it. */
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
    return !error                                  ? THREAD_DONE
           : error == JVMTI_ERROR_THREAD_SUSPENDED ? THREAD_SUSPENDED_ALREADY
                                                   : THREAD_INVALID;
}

static jint resume(JNIEnv *env)
{
    JNIEnv *self = vm_jni();
    struct thread_entry *t = find(env);
    if (!self || !t)
        return THREAD_INVALID;
    if (!atomic_load(&t->suspended))
        /* suspended by java.lang.Thread.suspend, so it is not ours to resume */
        return THREAD_NOT_SUSPENDED;
    jthread thread = thread_of(self, env);
    jvmtiError error = thread ? (*vm.ti)->ResumeThread(vm.ti, thread) : JVMTI_ERROR_INVALID_THREAD;
    atomic_store(&t->suspended, false);
    if (thread)
        (*self)->DeleteLocalRef(self, thread);
    return error ? THREAD_INVALID : THREAD_DONE;
}

void threads_resume_all(void)
{
    for (unsigned i = 0; i < BUCKETS; i++)
        for (struct thread_entry *t = atomic_load(&buckets[i]); t; t = atomic_load(&t->next))
            if (atomic_load(&t->suspended))
                (void)resume(atomic_load(&t->env));
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

/* ---- the agent's threads, and the end ---- */

struct system_thread {
    void (*run)(void *);
};

static void JNICALL run_system_thread(jvmtiEnv *ti, JNIEnv *env, void *data)
{
    void (*run)(void *) = ((struct system_thread *)data)->run;
    free(data);
    my.asked = 1;
    run(NULL);
    my.asked = 0; /* the Java code that follows is the VM's */
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
    jclass class = boot_class(env, "java/lang/Thread");
    jmethodID init = class ? (*env)->GetMethodID(env, class, "<init>",
                                                 "(Ljava/lang/ThreadGroup;Ljava/lang/String;)V")
                           : NULL;
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

/* Runs the program's shutdown hooks as System.exit does, which would then end the VM. */
static void run_shutdown_hooks(JNIEnv *env)
{
    jclass class = boot_class(env, "java/lang/Shutdown");
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
    if (leaving || my.ending)
        return; /* within an event of an exit in progress */
    if (!env || !atomic_load(&layer.live) || atomic_load(&layer.down))
        exit(code);
    vm_clear_exception(env);
    if (my.notifying && vm.version >= 26) {
        /* The VM waits for all callbacks, including this one, before it ends. */
        while (atomic_flag_test_and_set(&once))
            pause();
        leaving = true;
        run_shutdown_hooks(env);
        layer_end(env);
        exit(code);
    }
    leaving = true;
    /* Call System.exit, so that JVM_SHUT_DOWN is sent and the program's shutdown hooks run. */
    jclass class = boot_class(env, "java/lang/System");
    jmethodID leave_vm = class ? (*env)->GetStaticMethodID(env, class, "exit", "(I)V") : NULL;
    if (leave_vm)
        (*env)->CallStaticVoidMethod(env, class, leave_vm, code);
    exit(code);
}

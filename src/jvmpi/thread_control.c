/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Implements what an agent can request of threads and do to them, the agent's own threads, and the
 * end of the VM.
 */
#include "jvmpi/boot_classes.h"
#include "jvmpi/layer.h"
#include "jvmpi/thread_table.h"
#include "jvmpi/threads.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

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

jint layer_get_thread_status(JNIEnv *env)
{
    JNIEnv *self = vm_jni();
    struct thread_entry *t = thread_find(env);
    jthread thread = self && t ? layer_thread_of(self, env) : NULL;
    /*
     * An entry without an object is that of a thread of the VM itself that has ended; JVM TI does
     * not report its end.
     */
    jint status = thread ? status_of(thread, atomic_load(&t->suspended))
                  : t    ? JVMPI_THREAD_RUNNABLE
                         : 0;
    if (thread)
        (*self)->DeleteLocalRef(self, thread);
    return status;
}

jobjectID layer_get_thread_object(JNIEnv *env)
{
    thread_table_lock();
    struct thread_entry *t = thread_find(env);
    jobjectID id = t && (t == my_entry || !thread_has_ended(t)) ? t->id : NULL;
    thread_table_unlock();
    return id;
}

jlong layer_get_current_thread_cpu_time(void)
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

/*
 * Up to JDK 15 SuspendThread polls up to 50 times (6.4 s in all) when a thread is between two
 * states, and a thread that suspends itself there does not leave that state. For SuspendThreadList
 * the VM stops all threads instead.
 */
static jvmtiError suspend_once(jthread thread)
{
    jvmtiError result = JVMTI_ERROR_NONE,
               error = (*vm.ti)->SuspendThreadList(vm.ti, 1, &thread, &result);
    return error ? error : result;
}

/* Suspends the thread when it holds none of the layer's locks. */
static jvmtiError suspend_clean(struct thread_entry *t, jthread thread)
{
    jvmtiError error = suspend_once(thread);
    while (!error && atomic_load(&t->locked)) {
        error = (*vm.ti)->ResumeThread(vm.ti, thread);
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
        if (!error)
            error = suspend_once(thread);
    }
    return error;
}

static atomic_bool leaving; /* see layer_vm_ends */

static jint suspend(JNIEnv *env)
{
    JNIEnv *self = vm_jni();
    struct thread_entry *t = thread_find(env);
    if (!self || !t || env == self || atomic_load(&leaving))
        return THREAD_INVALID;
    jobjectID id = t->id;
    jthread thread = layer_thread_of(self, env);
    if (!thread)
        return THREAD_INVALID;
    if (atomic_exchange(&t->suspended, true)) {
        (*self)->DeleteLocalRef(self, thread);
        return THREAD_SUSPENDED_ALREADY;
    }
    atomic_store(&t->suspender, my_entry);
    jvmtiError error = suspend_clean(t, thread);
    if (!error && (atomic_load(&t->env) != env || t->id != id)) {
        /*
         * The thread ended while this function waited for it, so nobody would find it to resume it.
         */
        (void)(*vm.ti)->ResumeThread(vm.ti, thread);
        error = JVMTI_ERROR_THREAD_NOT_ALIVE;
    }
    if (!error && atomic_load(&leaving)) {
        (void)(*vm.ti)->ResumeThread(vm.ti, thread);
        error = JVMTI_ERROR_THREAD_NOT_ALIVE;
    }
    if (error) {
        thread_clear_suspended(t);
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
    struct thread_entry *t = thread_find(env);
    if (!self || !t)
        return THREAD_INVALID;
    if (!atomic_load(&t->suspended))
        /* suspended by java.lang.Thread.suspend, so it is not ours to resume */
        return THREAD_NOT_SUSPENDED;
    jthread thread = layer_thread_of(self, env);
    jvmtiError error = thread ? (*vm.ti)->ResumeThread(vm.ti, thread) : JVMTI_ERROR_INVALID_THREAD;
    thread_clear_suspended(t);
    if (thread)
        (*self)->DeleteLocalRef(self, thread);
    return error ? THREAD_INVALID : THREAD_DONE;
}

void threads_resume_all(void)
{
    unsigned bucket;
    for (struct thread_entry *t = thread_next(NULL, &bucket); t; t = thread_next(t, &bucket))
        if (atomic_load(&t->suspended))
            (void)resume(atomic_load(&t->env));
}

void layer_vm_ends(JNIEnv *env)
{
    if (!layer_end_waits())
        return;
    atomic_store(&leaving, true);
    threads_resume_all();
    layer_close(env);
}

void layer_suspend_thread(JNIEnv *env)
{
    (void)suspend(env);
}

void layer_resume_thread(JNIEnv *env)
{
    (void)resume(env);
}

void layer_suspend_thread_list(jint n, JNIEnv **list, jint *results)
{
    for (jint i = 0; list && results && i < n; i++)
        results[i] = suspend(list[i]);
}

void layer_resume_thread_list(jint n, JNIEnv **list, jint *results)
{
    for (jint i = 0; list && results && i < n; i++)
        results[i] = resume(list[i]);
}

jboolean thread_has_run(JNIEnv *env)
{
    struct thread_entry *t = thread_find(env);
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
    my.asked = 0; /* the Java code that follows belongs to the VM */
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

jint layer_create_system_thread(char *name, jint priority, void (*f)(void *))
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

/* Runs the program's shutdown hooks as System.exit does, which itself would then end the VM. */
static void run_shutdown_hooks(JNIEnv *env)
{
    jclass class = boot_class(env, "java/lang/Shutdown");
    jmethodID run = class ? (*env)->GetStaticMethodID(env, class, "shutdown", "()V") : NULL;
    if (run)
        (*env)->CallStaticVoidMethod(env, class, run);
    vm_clear_exception(env);
}

void layer_profiler_exit(jint code)
{
    static atomic_flag once = ATOMIC_FLAG_INIT;
    static __thread bool left;
    JNIEnv *env = vm_jni();
    if (my.ending)
        layer_exit_with(code);
    if (left || my.ending)
        return; /* within an event of an exit in progress */
    if (!env || !atomic_load(&layer.live) || atomic_load(&layer.down))
        exit(code);
    vm_clear_exception(env);
    if (my_entry) /* another thread may be the one that ends the VM */
        atomic_store(&my_entry->leaving, true);
    if (my.notifying && layer_end_waits()) {
        /* The VM waits for all callbacks, including this one, before it ends. */
        while (atomic_flag_test_and_set(&once))
            pause();
        left = true;
        run_shutdown_hooks(env);
        layer_end(env);
        exit(code);
    }
    left = true;
    /* Call System.exit, so that JVM_SHUT_DOWN is sent and the program's shutdown hooks run. */
    jclass class = boot_class(env, "java/lang/System");
    jmethodID leave_vm = class ? (*env)->GetStaticMethodID(env, class, "exit", "(I)V") : NULL;
    if (leave_vm)
        (*env)->CallStaticVoidMethod(env, class, leave_vm, code);
    exit(code);
}

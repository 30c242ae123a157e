/* SPDX-License-Identifier: Apache-2.0 */
#include "jvmpi/thread_table.h"
#include "jvmpi/boot_classes.h"
#include "jvmpi/ids.h"
#include "jvmpi/layer.h"
#include "jvmpi/lookup.h"
#include "jvmpi/references.h"
#include "jvmpi/threads.h"

#include "base/hash.h"

#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { BUCKETS = 16384 };

static struct thread_entry *_Atomic buckets[BUCKETS];
static pthread_mutex_t threads = PTHREAD_MUTEX_INITIALIZER;
__thread struct thread_entry *my_entry;

static struct thread_entry *_Atomic *bucket_of(JNIEnv *env)
{
    return &buckets[hash_u64((uintptr_t)env) % BUCKETS];
}

struct thread_entry *thread_find(JNIEnv *env)
{
    if (my_entry && atomic_load_explicit(&my_entry->env, memory_order_relaxed) == env)
        return my_entry;
    if (!env)
        return NULL;
    for (struct thread_entry *t = atomic_load(bucket_of(env)); t; t = atomic_load(&t->next))
        if (atomic_load(&t->env) == env)
            return t;
    return NULL;
}

bool thread_has_ended(struct thread_entry *t)
{
    return atomic_load(&t->ending) &&
           (t == my_entry || atomic_load(&t->agent_table) != TABLE_CHANGING);
}

static __thread int depth;                    /* number of the layer's locks held */
static __thread struct thread_entry *counted; /* the entry that counted the outermost lock */
static pthread_mutex_t resumption = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t resumed = PTHREAD_COND_INITIALIZER;

/*
 * Blocks a suspended thread, which still runs in native code, until it is resumed. It does not wake
 * up in between, because it must use no CPU time, and other threads must see that it does not
 * continue (settle.c).
 */
static void wait_while_suspended(const struct thread_entry *t)
{
    pthread_mutex_lock(&resumption);
    while (atomic_load(&t->suspended))
        pthread_cond_wait(&resumed, &resumption);
    pthread_mutex_unlock(&resumption);
}

void layer_lock(pthread_mutex_t *mutex)
{
    if (depth++ == 0) {
        counted = my_entry ? my_entry : thread_find(vm_jni());
        while (counted) {
            atomic_store(&counted->locked, true);
            if (!atomic_load(&counted->suspended))
                break;
            atomic_store(&counted->locked, false);
            wait_while_suspended(counted);
        }
    }
    pthread_mutex_lock(mutex);
}

void thread_clear_suspended(struct thread_entry *t)
{
    pthread_mutex_lock(&resumption);
    atomic_store(&t->suspended, false);
    pthread_cond_broadcast(&resumed);
    pthread_mutex_unlock(&resumption);
}

bool thread_is_suspended(JNIEnv *env)
{
    const struct thread_entry *t = thread_find(env);
    return t && atomic_load(&t->suspended);
}

void layer_unlock(pthread_mutex_t *mutex)
{
    pthread_mutex_unlock(mutex);
    if (--depth == 0 && counted)
        atomic_store(&counted->locked, false);
}

/* Returns true if another thread had this entry and its end was not reported. */
static bool is_former(const struct thread_entry *t)
{
    pid_t tid = atomic_load(&t->tid);
    return t != my_entry && tid != 0 && tid != (pid_t)syscall(SYS_gettid);
}

bool thread_known(JNIEnv *env)
{
    struct thread_entry *t = thread_find(env);
    bool known = t && !is_former(t);
    thread_use(known ? t : NULL); /* no event reports the start of the main thread */
    return known;
}

/* Calls the VM without the lock, because the thread is not known yet. */
struct thread_entry *thread_enter(JNIEnv *self, JNIEnv *env, jthread object, bool *ret_new)
{
    jweak weak = layer_weak(self, object);
    jobjectID id = layer_id_of(object);
    layer_lock(&threads);
    struct thread_entry *t = thread_find(env);
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
            atomic_store(&t->asked, false);
            atomic_store(&t->settling, false);
            atomic_store(&t->leaving, false);
            atomic_store(&t->awaits, 0);
            atomic_store(&t->agent_table, TABLE_UNCHANGED);
            atomic_store(&t->tid, 0);
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
        layer_id_keep(id, weak);
    else
        layer_delete_weak(self, weak);
    return t;
}

void thread_use(struct thread_entry *t)
{
    if (t == my_entry)
        return;
    my_entry = t;
    my.thread_reports = t ? &t->reporting : NULL;
    if (t)
        atomic_store(&t->tid, (pid_t)syscall(SYS_gettid));
    else
        my.known_env = NULL;
}

void thread_leave(JNIEnv *self, JNIEnv *env)
{
    layer_lock(&threads);
    struct thread_entry *t = thread_find(env);
    jweak object = t ? t->object : NULL;
    jobjectID id = t ? t->id : NULL;
    if (t) {
        t->object = NULL;
        atomic_store(&t->env, NULL);
    }
    layer_unlock(&threads);
    thread_use(NULL);
    if (object) {
        layer_id_drop(id);
        layer_delete_weak(self, object);
    }
}

struct thread_entry *thread_next(struct thread_entry *t, unsigned *bucket)
{
    if (t)
        t = atomic_load(&t->next);
    else
        *bucket = 0;
    while (!t && *bucket < BUCKETS)
        t = atomic_load(&buckets[(*bucket)++]);
    return t;
}

void thread_table_lock(void)
{
    layer_lock(&threads);
}

void thread_table_unlock(void)
{
    layer_unlock(&threads);
}

jthread layer_thread_of(JNIEnv *self, JNIEnv *env)
{
    layer_lock(&threads);
    struct thread_entry *t = thread_find(env);
    jthread object = t && t->object ? (*self)->NewLocalRef(self, t->object) : NULL;
    layer_unlock(&threads);
    return object;
}

/* ---- waiting ---- */

void thread_waits_on(JNIEnv *env, jobject object)
{
    if (thread_known(env))
        atomic_store(&my_entry->waits_on, layer_id_of(object));
}

jobjectID thread_waited_object(JNIEnv *env)
{
    struct thread_entry *t = thread_find(env);
    return t ? atomic_load(&t->waits_on) : NULL;
}

void thread_took_monitor(void)
{
    if (my_entry && unlikely(atomic_load_explicit(&my_entry->agent_table, memory_order_relaxed)))
        atomic_store(&my_entry->agent_table, TABLE_CHANGED);
}

bool layer_thread_is_virtual(JNIEnv *env, jthread thread)
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

void layer_set_thread_local_storage(JNIEnv *env, void *value)
{
    struct thread_entry *t = thread_find(env);
    if (t)
        atomic_store_explicit(&t->local, value, memory_order_release);
}

void *layer_get_thread_local_storage(JNIEnv *env)
{
    struct thread_entry *t = thread_find(env);
    return t ? atomic_load_explicit(&t->local, memory_order_acquire) : NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/vm/thread_table.h"

#include "agent/common/fault.h"
#include "agent/vm/os_thread.h"
#include "agent/vm/patience.h"

#include "base/clock.h"
#include "base/mapped.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

enum { LISTENERS_MAX = 8 };

static struct thread *table;
static _Atomic uint32_t table_used; /* number of entries ever used, from the start of the table */
static uint32_t next_serial = THREAD_UNKNOWN + 1;
static uint32_t none_free_before; /* all entries of lower indices are in use; under the lock */
/* protects the creation and removal of entries */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(const struct thread_listener *) listeners[LISTENERS_MAX];
static jfieldID eetop, tid_field;

/* Threads of the agent that have not begun to run: global references. */
enum { STARTING_MAX = 8 };

static pthread_mutex_t starting_lock = PTHREAD_MUTEX_INITIALIZER;
static jobject starting[STARTING_MAX];
static _Atomic int starting_n;

int threads_init(void)
{
    if (table)
        return 0;
    /* Pages are committed as threads are added. */
    void *memory = mapped_new(THREADS_MAX * sizeof(*table));
    if (!memory)
        return -ENOMEM;
    table = memory;
    return 0;
}

at_each_sample uint32_t thread_index(const struct thread *t)
{
    return (uint32_t)(t - table);
}

uint32_t threads_used(void)
{
    return atomic_load(&table_used);
}

struct thread *threads_next(struct thread *after)
{
    uint32_t used = atomic_load(&table_used);
    for (uint32_t i = after ? thread_index(after) + 1 : 0; i < used; i++)
        if (atomic_load(&table[i].serial) && !atomic_load(&table[i].ended_ns))
            return &table[i];
    return NULL;
}

/*
 * By the hash of an environment: the index where its entry was last found. It avoids a search of
 * the table.
 */
enum { PLACES_LOG2 = 15 };

static _Atomic uint32_t places[1 << PLACES_LOG2];
/*
 * The index where an entry was last found, by the number that Java gave a thread, and by serial,
 * because thousands of threads may be looked up in a row.
 */
static _Atomic uint32_t id_places[1 << PLACES_LOG2], serial_places[1 << PLACES_LOG2];

at_each_sample struct thread *threads_by_env(JNIEnv *env)
{
    uint32_t used = atomic_load(&table_used);
    _Atomic uint32_t *place =
        &places[((uint64_t)(uintptr_t)env * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - PLACES_LOG2)];
    uint32_t last = atomic_load_explicit(place, memory_order_relaxed);
    if (likely(last < used && atomic_load(&table[last].env) == env))
        return &table[last];
    for (uint32_t i = 0; i < used; i++)
        if (atomic_load(&table[i].env) == env) {
            atomic_store_explicit(place, i, memory_order_relaxed);
            return &table[i];
        }
    return NULL;
}

struct thread *threads_by_serial(uint32_t serial)
{
    uint32_t used = atomic_load(&table_used);
    _Atomic uint32_t *place = &serial_places[serial % ARRAY_SIZE(serial_places)];
    uint32_t last = atomic_load_explicit(place, memory_order_relaxed);
    if (likely(last < used && atomic_load(&table[last].serial) == serial))
        return &table[last];
    for (uint32_t i = 0; i < used; i++)
        if (atomic_load(&table[i].serial) == serial) {
            atomic_store_explicit(place, i, memory_order_relaxed);
            return &table[i];
        }
    return NULL;
}

/* One bit for each kernel id that a Java thread other than the agent's own has had. */
enum { TIDS = 1 << 22 }; /* the kernel's limit (PID_MAX_LIMIT) */

static _Atomic uint64_t java_tids[TIDS / 64];

static void put_tid(struct thread *t, pid_t tid)
{
    atomic_store(&t->tid, tid);
    if (!t->own && tid < TIDS)
        atomic_fetch_or(&java_tids[tid / 64], UINT64_C(1) << tid % 64);
}

/* Stores the kernel id of the calling thread, to which the entry belongs. */
static void note_tid(struct thread *t)
{
    put_tid(t, (pid_t)syscall(SYS_gettid));
}

bool threads_had_tid(pid_t tid)
{
    return tid < TIDS && (atomic_load(&java_tids[tid / 64]) >> tid % 64 & 1);
}

void threads_forget_tid(pid_t tid)
{
    if (tid < TIDS)
        atomic_fetch_and(&java_tids[tid / 64], ~(UINT64_C(1) << tid % 64));
}

/*
 * Returns the entry of an environment, created if necessary, or NULL if the table is full. Requires
 * the lock.
 */
static struct thread *enter_thread(JNIEnv *env, bool *ret_new)
{
    struct thread *t = threads_by_env(env);
    *ret_new = !t;
    if (t)
        return t;
    uint32_t used = atomic_load(&table_used), i = none_free_before;
    while (i < used && atomic_load(&table[i].serial))
        i++;
    none_free_before = i;
    if (!table || i == THREADS_MAX)
        return NULL;
    t = &table[i];
    atomic_store(&t->tid, 0);
    atomic_store(&t->ended_ns, 0);
    t->java_id = 0;
    t->own = false;
    atomic_store(&t->counted, false);
    atomic_store(&t->env, env);
    atomic_store_explicit(&serial_places[next_serial % ARRAY_SIZE(serial_places)], i,
                          memory_order_relaxed);
    atomic_store(&t->serial, next_serial++);
    if (i == used)
        atomic_store(&table_used, used + 1);
    return t;
}

static char *copy(const char *s)
{
    return s ? strdup(s) : NULL;
}

static char *group_name(JNIEnv *jni, jthreadGroup group, jthreadGroup *ret_parent)
{
    jvmtiThreadGroupInfo info = {0};
    if (!group || (*vm.ti)->GetThreadGroupInfo(vm.ti, group, &info) != JVMTI_ERROR_NONE)
        return NULL;
    char *name = copy(info.name);
    vm_free(info.name);
    if (ret_parent)
        *ret_parent = info.parent;
    else if (info.parent)
        (*jni)->DeleteLocalRef(jni, info.parent);
    return name;
}

/*
 * Stores the VM's information about a thread; no other thread may be able to access the entry (it
 * is new).
 */
static void describe(struct thread *t, JNIEnv *jni, jthread thread)
{
    jvmtiThreadInfo info = {0};
    free(t->name);
    free(t->group);
    free(t->parent_group);
    t->name = t->group = t->parent_group = NULL;
    if ((*vm.ti)->GetThreadInfo(vm.ti, thread, &info) == JVMTI_ERROR_NONE) {
        t->name = copy(info.name);
        jthreadGroup parent = NULL;
        t->group = group_name(jni, info.thread_group, &parent);
        t->parent_group = group_name(jni, parent, NULL);
        vm_free_thread_info(jni, &info);
        if (parent)
            (*jni)->DeleteLocalRef(jni, parent);
    }
    if (tid_field)
        t->java_id = (uint64_t)(*jni)->GetLongField(jni, thread, tid_field);
}

/*
 * java.lang.Thread has the fields `eetop`, the address of the VM's own thread (0 when it does not
 * run), and `tid`. A thread's JNI environment is at a fixed distance from that address.
 */
static void find_fields(JNIEnv *jni)
{
    if (eetop || !vm.hotspot)
        return;
    tid_field = vm_field(jni, "java/lang/Thread", "tid", "J");
    eetop = vm_field(jni, "java/lang/Thread", "eetop", "J");
}

static void report(struct thread *t, JNIEnv *jni, jthread thread, bool started)
{
    for (int i = 0; i < LISTENERS_MAX; i++) {
        const struct thread_listener *l = atomic_load(&listeners[i]);
        if (l && started && l->started)
            l->started(t, jni, thread);
        else if (l && !started && l->ended)
            l->ended(t, jni);
    }
}

int threads_own(JNIEnv *jni, jthread thread)
{
    jobject ref = (*jni)->NewGlobalRef(jni, thread);
    int r = -ENOMEM;
    pthread_mutex_lock(&starting_lock);
    for (int i = 0; i < STARTING_MAX && ref && r < 0; i++) {
        if (starting[i])
            continue;
        starting[i] = ref;
        atomic_fetch_add(&starting_n, 1);
        r = 0;
    }
    pthread_mutex_unlock(&starting_lock);
    if (r < 0 && ref)
        (*jni)->DeleteGlobalRef(jni, ref);
    return r;
}

/* Returns whether a thread is in `starting`, and removes it from there. */
static bool take_starting(JNIEnv *jni, jthread thread)
{
    bool is = false;
    if (!atomic_load(&starting_n))
        return false;
    if (!patience_lock(&starting_lock))
        return false;
    for (int i = 0; i < STARTING_MAX && !is; i++) {
        is = starting[i] && (*jni)->IsSameObject(jni, starting[i], thread);
        if (!is)
            continue;
        (*jni)->DeleteGlobalRef(jni, starting[i]);
        starting[i] = NULL;
        atomic_fetch_sub(&starting_n, 1);
    }
    pthread_mutex_unlock(&starting_lock);
    return is;
}

void threads_disown(JNIEnv *jni, jthread thread)
{
    take_starting(jni, thread);
}

static __thread bool own_here;

void threads_own_here(void)
{
    own_here = true;
}

static void JNICALL on_start(jvmtiEnv *ti, JNIEnv *jni, jthread thread)
{
    bool is_new = false;
    uint64_t id = tid_field ? (uint64_t)(*jni)->GetLongField(jni, thread, tid_field) : 0;
    pthread_mutex_lock(&lock);
    struct thread *t = enter_thread(jni, &is_new);
    if (t && !is_new && id && t->java_id && t->java_id != id) {
        /*
         * An entry of a thread that ended while threads_add_existing was adding it; the VM has
         * since reused its address.
         */
        atomic_store(&t->ended_ns, now_ns());
        atomic_store(&t->env, NULL);
        t = enter_thread(jni, &is_new);
    }
    pthread_mutex_unlock(&lock);
    if (!t)
        return;
    t->own = own_here || take_starting(jni, thread);
    if (is_new)
        describe(t, jni, thread);
    note_tid(t);
    report(t, jni, thread, true);
}

static void JNICALL on_end(jvmtiEnv *ti, JNIEnv *jni, jthread thread)
{
    struct thread *t = threads_by_env(jni);
    if (!t)
        return;
    report(t, jni, thread, false);
    atomic_store(&t->ended_ns, now_ns());
    atomic_store(&t->env, NULL);
}

const struct vm_callbacks threads_events = {.ti = {.ThreadStart = on_start, .ThreadEnd = on_end}};

struct thread *threads_self(JNIEnv *jni)
{
    struct thread *t = threads_by_env(jni);
    if (t) {
        if (!atomic_load(&t->tid))
            note_tid(t);
        return t;
    }
    jthread self = NULL;
    /*
     * A thread that attaches itself has no Thread object until the VM has created it, and may be
     * sampled before that.
     */
    if ((*vm.ti)->GetCurrentThread(vm.ti, &self) != JVMTI_ERROR_NONE || !self)
        return NULL;
    bool is_new = false;
    pthread_mutex_lock(&lock);
    t = enter_thread(jni, &is_new);
    pthread_mutex_unlock(&lock);
    if (t && is_new) {
        t->own = own_here;
        describe(t, jni, self);
        note_tid(t);
    }
    (*jni)->DeleteLocalRef(jni, self);
    return t;
}

struct thread *threads_by_java_id(uint64_t id)
{
    _Atomic uint32_t *place = &id_places[id % ARRAY_SIZE(id_places)];
    uint32_t i = atomic_load(place);
    struct thread *t = NULL;
    if (!id)
        return NULL;
    if (i < atomic_load(&table_used) && table[i].java_id == id && atomic_load(&table[i].serial) &&
        !atomic_load(&table[i].ended_ns))
        return &table[i];
    while ((t = threads_next(t)) && t->java_id != id)
        ;
    if (t)
        atomic_store(place, thread_index(t));
    return t;
}

struct thread *threads_find(JNIEnv *jni, jthread thread)
{
    return threads_by_java_id(tid_field ? (uint64_t)(*jni)->GetLongField(jni, thread, tid_field)
                                        : 0);
}

void threads_add_existing(JNIEnv *jni)
{
    find_fields(jni);
    jthread self = NULL, *threads = NULL;
    jint n = 0;
    struct thread *me = threads_self(jni);
    if (!eetop || !me || (*vm.ti)->GetCurrentThread(vm.ti, &self) != JVMTI_ERROR_NONE)
        return;
    if (!me->java_id && tid_field)
        me->java_id = (uint64_t)(*jni)->GetLongField(jni, self, tid_field);
    intptr_t distance = (intptr_t)jni - (intptr_t)(*jni)->GetLongField(jni, self, eetop);
    (*jni)->DeleteLocalRef(jni, self);
    if (vm_all_threads(&n, &threads) != JVMTI_ERROR_NONE)
        return;
    for (jint i = 0; i < n; i++) {
        intptr_t at = (intptr_t)(*jni)->GetLongField(jni, threads[i], eetop);
        bool is_new = false;
        struct thread *t = NULL;
        pthread_mutex_lock(&lock);
        if (at)
            t = enter_thread((JNIEnv *)(at + distance), &is_new);
        pthread_mutex_unlock(&lock);
        /* A ThreadStart before the live phase could not read the name. */
        if (t && (is_new || !t->name))
            describe(t, jni, threads[i]);
        if (t && !t->java_id && tid_field)
            t->java_id = (uint64_t)(*jni)->GetLongField(jni, threads[i], tid_field);
        /*
         * The kernel id of a thread that existed before the agent is unknown until the thread posts
         * an event.
         */
        pid_t tid = t && !atomic_load(&t->tid) ? os_thread_id(jni, threads[i]) : 0;
        if (tid)
            put_tid(t, tid);
        if (t)
            report(t, jni, threads[i], true);
        (*jni)->DeleteLocalRef(jni, threads[i]);
    }
    vm_free(threads);
}

int threads_listen(const struct thread_listener *l)
{
    if (fault_here())
        return -ENOSPC;
    for (int i = 0; i < LISTENERS_MAX; i++) {
        const struct thread_listener *expected = NULL;
        if (atomic_compare_exchange_strong(&listeners[i], &expected, l))
            return 0;
    }
    return -ENOSPC;
}

void threads_unlisten(const struct thread_listener *l)
{
    for (int i = 0; i < LISTENERS_MAX; i++)
        if (atomic_load(&listeners[i]) == l)
            atomic_store(&listeners[i], NULL);
    vm_wait_callbacks();
}

void threads_forget_before(uint64_t ns, void (*last)(void *context, const struct thread *t),
                           void *context)
{
    pthread_mutex_lock(&lock);
    uint32_t used = atomic_load(&table_used);
    for (uint32_t i = 0; i < used; i++) {
        struct thread *t = &table[i];
        uint64_t ended = atomic_load(&t->ended_ns);
        if (!atomic_load(&t->serial) || !ended || ended >= ns)
            continue;
        if (last && atomic_load(&t->counted))
            last(context, t);
        free(t->name);
        free(t->group);
        free(t->parent_group);
        t->name = t->group = t->parent_group = NULL;
        atomic_store(&t->serial, 0);
        none_free_before = MIN(none_free_before, i);
    }
    pthread_mutex_unlock(&lock);
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "agent/capture/threads/waiters.h"

#include "agent/capture/threads/at_start.h"
#include "agent/capture/threads/carriers.h"
#include "agent/capture/threads/delays.h"
#include "agent/capture/threads/monitors.h"
#include "agent/capture/threads/stack.h"
#include "agent/capture/threads/threads.h"
#include "agent/session/budget.h"
#include "agent/vm/patience.h"
#include "agent/vm/virtual_list.h"
#include "agent/vm/vm.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/mapped.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { SHARDS = 64 };

static struct waiter *platform; /* by thread_index; pages are committed on first use */

/* Waits of virtual threads that have waited, by Java id. */
static struct shard {
    pthread_mutex_t lock;
    struct map waiters; /* to struct waiter * */
} shards[SHARDS];

static __thread struct {
    JNIEnv *jni;
    struct thread *thread;
    uint32_t serial;
    /*
     * ThreadEnd has been posted; what the VM does on the thread after that is not the thread's work
     */
    bool ended;
} self;

struct thread *waiters_platform_self(JNIEnv *jni)
{
    if (self.ended)
        return NULL;
    if (self.jni != jni || !self.thread || self.thread->serial != self.serial) {
        self.jni = jni;
        self.thread = threads_self(jni);
        self.serial = self.thread ? self.thread->serial : 0;
    }
    return self.thread && !self.thread->own ? self.thread : NULL;
}

void waiters_thread_starts(void)
{
    self.ended = false; /* a native thread may attach again */
}

void waiters_thread_ends(void)
{
    self.jni = NULL;
    self.ended = true;
}

uint64_t waiters_java_id(JNIEnv *jni, jthread thread)
{
    return (uint64_t)(*jni)->GetLongField(jni, thread, thread_capture.tid);
}

static int define_virtual(JNIEnv *jni, jthread thread, uint64_t id)
{
    jvmtiThreadInfo info = {0};
    if ((*vm.ti)->GetThreadInfo(vm.ti, thread, &info) != JVMTI_ERROR_NONE)
        return -EINVAL;
    struct jfr_thread t = {
        .java_name = info.name ? info.name : "", .java_id = id, .is_virtual = true};
    int r = jfr_define_thread(thread_capture.jfr, VIRTUAL_THREAD | id, &t);
    vm_free_thread_info(jni, &info);
    return r;
}

static void waiter_free(struct waiter *w)
{
    if (w) {
        free(w->locks);
        stack_forget_last(w->last);
    }
    free(w);
}

static struct waiter *virtual_waiter(JNIEnv *jni, jthread thread)
{
    uint64_t id = waiters_java_id(jni, thread);
    struct shard *s = &shards[id % SHARDS];
    struct waiter *w = NULL;
    if (!patience_lock(&s->lock)) {
        jfr_lose(thread_capture.jfr, LOSS_WAITS_STOPPED, 1);
        return NULL;
    }
    bool added = false;
    uint64_t *slot = map_at(&s->waiters, id, 0, &added);
    if (slot && added) {
        w = calloc(1, sizeof(*w));
        if (w) {
            w->id = VIRTUAL_THREAD | id;
            w->is_virtual = true;
            w->thread = thread_capture.watch ? (*jni)->NewWeakGlobalRef(jni, thread) : NULL;
        }
        *slot = (uint64_t)(uintptr_t)w;
    } else if (slot) {
        w = (struct waiter *)(uintptr_t)*slot;
    }
    pthread_mutex_unlock(&s->lock);
    if (w && added && define_virtual(jni, thread, id) < 0)
        jfr_lose(thread_capture.jfr, LOSS_THREAD_NAME, 1);
    return w;
}

uint64_t waiter_stack(const struct thread *t)
{
    const struct waiter *w = &platform[thread_index(t)];
    return w->id == t->serial ? w->stack : 0;
}

bool waiter_stack_known(const struct thread *t, uint64_t *ret_low, uint64_t *ret_high)
{
    const struct waiter *w = &platform[thread_index(t)];
    *ret_low = w->low;
    *ret_high = w->high;
    return w->id == t->serial && w->high;
}

static void find_stack(struct waiter *w)
{
    pthread_attr_t attributes;
    void *low = NULL;
    size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return;
    if (pthread_attr_getstack(&attributes, &low, &size) == 0) {
        w->low = (uint64_t)(uintptr_t)low;
        w->high = w->low + size;
    }
    pthread_attr_destroy(&attributes);
}

void waiters_visit(JNIEnv *jni, void (*f)(struct waiter *w, jthread thread, void *arg), void *arg)
{
    /* none if the VM refused to start it */
    for (struct thread *t = NULL; platform && (t = threads_next(t));) {
        struct waiter *w = &platform[thread_index(t)];
        if (w->id == t->serial)
            f(w, NULL, arg);
    }
    for (int i = 0; i < SHARDS; i++) {
        uint64_t key, value;
        if (!patience_lock(&shards[i].lock))
            continue;
        for (size_t k = 0; map_next(&shards[i].waiters, &k, &key, &value);) {
            struct waiter *w = (struct waiter *)(uintptr_t)value;
            jthread thread = w && w->thread && jni ? (*jni)->NewLocalRef(jni, w->thread) : NULL;
            if (w)
                f(w, thread, arg);
            if (thread)
                (*jni)->DeleteLocalRef(jni, thread);
        }
        pthread_mutex_unlock(&shards[i].lock);
    }
}

bool waiters_reachable(void)
{
    bool all = true;
    for (int i = 0; platform && i < SHARDS && all; i++)
        all = patience_reachable(&shards[i].lock);
    return all;
}

static void leave_vm(struct waiter *w)
{
    struct wait was = {0};
    uint64_t ns;
    w->in_vm = false;
    if (wait_end(w, WAIT_OBJECT, &was, &ns))
        threads_put_wait(w->id, WAIT_OBJECT, &was, ns, false);
}

struct waiter *waiter_self(JNIEnv *jni, jthread thread)
{
    if (!thread_capture.jfr)
        return NULL;
    struct thread *t = waiters_platform_self(jni);
    if (!t)
        return NULL;
    if (thread_capture.virtual_too && thread && thread_is_virtual(jni, thread)) {
        struct waiter *v = virtual_waiter(jni, thread);
        if (v && unlikely(!atomic_load(&v->posted))) {
            atomic_store(&v->posted, true);
            at_start_contact(v->id, atomic_load(&v->ready));
        }
        return v;
    }
    struct waiter *w = &platform[thread_index(t)];
    if (w->id != t->serial) {
        free(w->locks);
        stack_forget_last(w->last);
        memset(w, 0, sizeof(*w)); /* another thread used this entry before */
        w->id = t->serial;
        delays_new_thread(w);
        at_start_contact(t->serial, 0);
    }
    if (unlikely(w->in_vm))
        leave_vm(w);
    w->stack = MAX(w->stack, (uint64_t)(uintptr_t)__builtin_frame_address(0));
    if (unlikely(thread_capture.watch && !w->high))
        find_stack(w);
    return w;
}

bool waiter_has_posted(uint64_t id)
{
    if (id < VIRTUAL_THREAD) {
        const struct thread *t = threads_by_serial((uint32_t)id);
        return t && platform[thread_index(t)].id == id;
    }
    struct shard *s = &shards[(id & ~VIRTUAL_THREAD) % SHARDS];
    pthread_mutex_lock(&s->lock);
    const uint64_t *slot = map_get(&s->waiters, id & ~VIRTUAL_THREAD);
    /* a thread that has ended is no longer listed */
    bool posted = !slot || !*slot || atomic_load(&((struct waiter *)(uintptr_t)*slot)->posted);
    pthread_mutex_unlock(&s->lock);
    return posted;
}

uint64_t thread_record_id(uint64_t id)
{
    const struct thread *t = threads_by_java_id(id);
    if (t)
        return t->serial;
    struct shard *s = &shards[id % SHARDS];
    pthread_mutex_lock(&s->lock);
    bool known = map_get(&s->waiters, id) != NULL;
    pthread_mutex_unlock(&s->lock);
    return known ? VIRTUAL_THREAD | id : 0;
}

void waiter_ready(JNIEnv *jni, jthread thread)
{
    if (!thread_capture.jfr)
        return;
    uint64_t id = waiters_java_id(jni, thread), none = 0, now = now_ns();
    struct shard *s = &shards[id % SHARDS];
    if (!patience_lock(&s->lock))
        return;
    const uint64_t *slot = map_get(&s->waiters, id);
    struct waiter *w = slot ? (struct waiter *)(uintptr_t)*slot : NULL;
    if (w)
        atomic_compare_exchange_strong(&w->ready, &none, now);
    pthread_mutex_unlock(&s->lock);
}

uint64_t thread_record(JNIEnv *jni, jthread thread)
{
    if (thread_capture.virtual_too && thread_is_virtual(jni, thread)) {
        struct waiter *w = virtual_waiter(jni, thread);
        return w ? w->id : 0;
    }
    return thread_record_id(waiters_java_id(jni, thread));
}

void wait_begin(struct waiter *w, enum wait_kind kind, const struct wait *how)
{
    struct wait *at = &w->waits[kind];
    uint64_t now = how->start ? how->start : now_ns();
    delays_wait_begins(w, now);
    seqlock_stamp_clear(&at->start);
    at->trace = how->trace;
    at->class = how->class;
    at->owner = how->owner;
    at->timeout = how->timeout;
    at->object = how->object;
    at->monitor = how->monitor;
    at->owned = how->owned;
    __atomic_store_n(&at->reported, false, __ATOMIC_RELAXED);
    at->plain = how->plain;
    seqlock_stamp_set(&at->start, now);
}

bool wait_end(struct waiter *w, enum wait_kind kind, struct wait *ret, uint64_t *ret_ns)
{
    struct wait *at = &w->waits[kind];
    uint64_t start = atomic_load_explicit(&at->start, memory_order_relaxed);
    if (!start)
        return false;
    *ret_ns = now_ns() - start;
    ret->start = start;
    ret->trace = at->trace;
    ret->class = at->class;
    ret->owner = at->owner;
    ret->timeout = at->timeout;
    ret->object = at->object;
    ret->plain = at->plain;
    w->was_short = *ret_ns < BUDGET_SHORT_NS;
    seqlock_stamp_set(&at->start, 0);
    /* Only plain waits are left out. The fence belongs to the one in report_waiting. */
    if (at->plain)
        atomic_thread_fence(memory_order_seq_cst);
    ret->reported = __atomic_load_n(&at->reported, __ATOMIC_RELAXED);
    delays_wait_ends(w, start + *ret_ns, *ret_ns);
    return true;
}

bool wait_is_plain(const struct waiter *w)
{
    return w->was_short && !thread_capture.watch && !budget_keeps(&budget_waits_of);
}

bool wait_left_out(const struct wait *was, uint64_t ns)
{
    if (!was->plain || was->reported || ns >= BUDGET_SHORT_NS)
        return false;
    jfr_lose(thread_capture.jfr, LOSS_BUDGET_WAITS, 1);
    return true;
}

bool wait_lacks(const struct wait *was, uint64_t ns)
{
    return unlikely(!was->trace || was->plain) && ns >= BUDGET_SHORT_NS;
}

struct waiter *waiter_untimed(JNIEnv *jni)
{
    if (likely(budget_keeps(&budget_times_of)) || thread_capture.watch || self.ended ||
        !budget_rate_is_known() || self.jni != jni || !self.thread ||
        self.thread->serial != self.serial || self.thread->own)
        return NULL;
    struct waiter *w = &platform[thread_index(self.thread)];
    return w->id == self.serial && w->was_short && thread_running_on(self.thread) == self.serial
               ? w
               : NULL;
}

void waiter_leaves_out(uint32_t *count, enum jfr_loss loss)
{
    enum { PORTION = 64 };

    if (++*count % PORTION != 0 || !threads_natives_enter())
        return;
    jfr_lose(thread_capture.jfr, loss, PORTION);
    threads_natives_leave();
}

int waiters_init(void)
{
    if (platform)
        return 0;
    void *memory = mapped_new(THREADS_MAX * sizeof(*platform));
    if (!memory)
        return -ENOMEM;
    platform = memory;
    for (int i = 0; i < SHARDS; i++)
        pthread_mutex_init(&shards[i].lock, NULL);
    return 0;
}

void waiters_remove_virtual(JNIEnv *jni, uint64_t java_id)
{
    struct shard *s = &shards[java_id % SHARDS];
    if (!patience_lock(&s->lock))
        return; /* the waiter remains until the end of the recording */
    const uint64_t *slot = map_get(&s->waiters, java_id);
    struct waiter *w = slot ? (struct waiter *)(uintptr_t)*slot : NULL;
    map_remove(&s->waiters, java_id);
    pthread_mutex_unlock(&s->lock);
    if (w && w->thread)
        (*jni)->DeleteWeakGlobalRef(jni, w->thread);
    waiter_free(w);
}

void waiters_release(void)
{
    for (int i = 0; i < SHARDS; i++) {
        uint64_t key, value;
        for (size_t k = 0; map_next(&shards[i].waiters, &k, &key, &value);)
            waiter_free((struct waiter *)(uintptr_t)value);
        map_release(&shards[i].waiters);
    }
    for (uint32_t i = 0; platform && i < threads_used(); i++) {
        free(platform[i].locks);
        stack_forget_last(platform[i].last);
    }
    if (platform)
        /* makes all entries zero again */
        (void)madvise(platform, sizeof(*platform) * THREADS_MAX, MADV_DONTNEED);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps track of the request for which each thread works: its entry in the slots, and its works. */
#include "agent/capture/requests/follow.h"

#include "agent/vm/self.h"
#include "agent/vm/thread_table.h"
#include "agent/vm/virtual_threads.h"
#include "agent/vm/vm.h"

/* ---- threads ---- */

uint64_t follow_thread_id(JNIEnv *jni, uint64_t java_id, bool *ret_virtual)
{
    static __thread struct {
        JNIEnv *jni;
        struct thread *thread;
        uint32_t serial;
    } self;

    if (self.jni != jni || !self.thread || self.thread->serial != self.serial) {
        self.jni = jni;
        self.thread = threads_self(jni);
        self.serial = self.thread ? self.thread->serial : 0;
    }
    *ret_virtual =
        vm.version >= 21 && self.thread && self.thread->java_id && self.thread->java_id != java_id;
    return *ret_virtual ? THREAD_VIRTUAL | java_id : self.serial;
}

/* Describes a virtual thread in the recording while the thread still exists. */
static void describe_virtual(JNIEnv *jni, uint64_t java_id)
{
    jvmtiThreadInfo info = {0};
    if (self_info(&info) != JVMTI_ERROR_NONE)
        return;
    struct jfr_thread t = {
        .java_name = info.name ? info.name : "", .java_id = java_id, .is_virtual = true};
    if (jfr_define_thread(requests_jfr, THREAD_VIRTUAL | java_id, &t) < 0)
        requests_lose(LOSS_THREAD_NAME, 1);
    vm_free_thread_info(jni, &info);
}

static struct work_slot find_slot(uint64_t java_id)
{
    struct work_slots *s = &follow.slots[java_id & (SLOT_BUCKETS - 1)];
    for (unsigned i = 0; i < BUCKET; i++)
        if (atomic_load_explicit(&s->java_id[i], memory_order_relaxed) == java_id)
            return (struct work_slot){s, i};
    return (struct work_slot){NULL, 0};
}

/* Returns what the probe wrote about a work that has no record. Its end is unknown so far. */
static struct request_work work_in_slot(struct work_slot s)
{
    uint64_t start = s.in->work[s.i] & ~WORK_IN_SLOT, handed = s.in->handed[s.i],
             by = s.in->by[s.i];
    return (struct request_work){.start = start,
                                 .queued_ns = handed && start > handed ? start - handed : 0,
                                 .thread =
                                     atomic_load_explicit(&s.in->thread[s.i], memory_order_relaxed),
                                 .submitter = by & ((UINT64_C(1) << WAY_SHIFT) - 1),
                                 .way = (enum request_way)(by >> WAY_SHIFT)};
}

static bool is_in_slot(struct work_slot s)
{
    return s.in && s.in->work[s.i] & WORK_IN_SLOT;
}

/*
 * Makes the entry show that the thread works for no request. Returns the token of the request for
 * which it worked.
 */
static uint64_t clear_slot(struct work_slot s)
{
    s.in->work[s.i] = 0;
    uint64_t token = atomic_load_explicit(&s.in->request[s.i], memory_order_relaxed);
    atomic_store_explicit(&s.in->request[s.i], 0, memory_order_relaxed);
    return token;
}

static void make_record(struct work_slot s)
{
    struct request_work how = work_in_slot(s);
    uint64_t number = s.in->work[s.i], token = clear_slot(s);
    if (TOKEN_SESSION(token) != follow.session)
        return; /* the probe was interrupted in an earlier recording */
    struct work *w = follow_work(follow_begin(s, token, &how));
    if (w)
        w->in_slot = number;
}

struct work_slot follow_slot(uint64_t java_id)
{
    struct work_slot s = find_slot(java_id);
    if (is_in_slot(s))
        make_record(s);
    return s;
}

struct work_slot follow_claim(JNIEnv *jni, uint64_t java_id)
{
    struct work_slot found = follow_slot(java_id);
    if (found.in)
        return found;
    struct work_slots *s = &follow.slots[java_id & (SLOT_BUCKETS - 1)];
    for (unsigned i = 0; i < BUCKET; i++) {
        uint64_t none = 0;
        bool is_virtual;
        if (atomic_load(&s->java_id[i]) ||
            !atomic_compare_exchange_strong(&s->java_id[i], &none, java_id))
            continue;
        s->work[i] = 0;
        atomic_store_explicit(&s->request[i], 0, memory_order_relaxed);
        atomic_store_explicit(&s->thread[i], follow_thread_id(jni, java_id, &is_virtual),
                              memory_order_relaxed);
        if (is_virtual)
            describe_virtual(jni, java_id);
        return (struct work_slot){s, i};
    }
    atomic_fetch_add(&follow.no_slot, 1);
    return (struct work_slot){NULL, 0};
}

void follow_slot_free(struct work_slot s)
{
    atomic_store_explicit(&s.in->java_id[s.i], 0, memory_order_release);
}

/*
 * Makes the entry show the innermost of the thread's remaining works. If there is none, a platform
 * thread keeps the entry until it ends, because it will probably work for another request soon;
 * there are too many virtual threads for that.
 */
static void show_innermost(struct work_slot s)
{
    struct work *w = follow_work(s.in->work[s.i]);
    atomic_store_explicit(&s.in->request[s.i], w ? w->request : 0, memory_order_relaxed);
    if (w)
        return;
    s.in->work[s.i] = 0;
    if (atomic_load_explicit(&s.in->thread[s.i], memory_order_relaxed) & THREAD_VIRTUAL)
        follow_slot_free(s);
}

int64_t follow_take_for(struct work_slot s, struct record_pool *p)
{
    int64_t i = follow_take(p);
    if (i < 0) {
        atomic_fetch_add(&follow.no_record, 1);
        if (!s.in->work[s.i])
            show_innermost(s);
    }
    return i;
}

/* ---- works ---- */

uint64_t follow_begin(struct work_slot s, uint64_t token, const struct request_work *how)
{
    int64_t i = follow_take_for(s, &follow.works);
    if (i < 0)
        return 0;
    struct work *w = (struct work *)follow.works.records + i;
    uint64_t number = ++w->use << USE_SHIFT | (uint64_t)i;
    w->request = token;
    w->outer = s.in->work[s.i];
    w->in_slot = 0;
    w->as = *how;
    w->child.start = 0;
    w->as.thread = atomic_load_explicit(&s.in->thread[s.i], memory_order_relaxed);
    atomic_store_explicit(&w->number, number, memory_order_release);
    s.in->work[s.i] = number;
    atomic_store_explicit(&s.in->request[s.i], token, memory_order_relaxed);
    return number;
}

/*
 * Writes a work that ends at `now`, or keeps it until its request ends. If now is 0, it is dropped.
 */
static void keep_work(uint64_t token, struct request_work *w, uint64_t now)
{
    w->ns = now - w->start;
    if (now && follow_is_kept(token))
        requests_put_work(TOKEN_ID(token), w);
    else if (now)
        follow_keep(token, &(struct piece){.work = *w});
}

static void work_finish(struct work *w, uint64_t now)
{
    keep_work(w->request, &w->as, now);
    uint32_t i = (uint32_t)(atomic_load(&w->number) & (WORKS - 1));
    atomic_store_explicit(&w->number, 0, memory_order_release);
    follow_give(&follow.works, i);
}

/* Ends a work of the calling thread, and all works nested in it whose end was not seen. */
static void work_end(struct work *w, struct work_slot s, uint64_t now)
{
    for (bool last = false; !last;) {
        struct work *o = follow_work(s.in->work[s.i]);
        s.in->work[s.i] = o->outer;
        last = o == w;
        work_finish(o, now);
    }
    show_innermost(s);
}

struct work *follow_find(struct work_slot s, follow_is is, uint64_t what)
{
    struct work *w = s.in ? follow_work(s.in->work[s.i]) : NULL;
    while (w && !is(w, what))
        w = follow_work(w->outer);
    return w;
}

bool follow_is_number(const struct work *w, uint64_t number)
{
    return ((struct work *)w)->number == number || w->in_slot == number;
}

bool follow_is_entry(const struct work *w, uint64_t token)
{
    return w->request == token && (w->as.way == WAY_ENTRY || w->as.way == WAY_ASYNC);
}

bool follow_is_outermost(const struct work *w, uint64_t none)
{
    return !follow_work(w->outer);
}

void follow_end_if(uint64_t java_id, follow_is is, uint64_t what, uint64_t now)
{
    struct work_slot s = follow_slot(java_id);
    struct work *w = follow_find(s, is, what);
    if (w)
        work_end(w, s, now);
}

static void end_in_slot(struct work_slot s, uint64_t now)
{
    struct request_work w = work_in_slot(s);
    uint64_t token = clear_slot(s);
    if (TOKEN_SESSION(token) == follow.session)
        keep_work(token, &w, now);
}

void follow_work_end(uint64_t java_id, uint64_t number)
{
    struct work_slot s = find_slot(java_id);
    if (s.in && s.in->work[s.i] == number && is_in_slot(s))
        end_in_slot(s, now_ns());
    else
        follow_end_if(java_id, follow_is_number, number, now_ns());
}

void follow_leave(JNIEnv *jni, uint64_t java_id, bool drop)
{
    struct work_slot s = find_slot(java_id);
    if (is_in_slot(s))
        end_in_slot(s, drop ? 0 : now_ns());
    else if (!follow_task_end(jni, java_id, NULL))
        follow_end_if(java_id, follow_is_outermost, 0, drop ? 0 : now_ns());
}

uint64_t follow_hand(JNIEnv *jni, uint64_t java_id, uint64_t token, enum request_way way,
                     uint64_t time, uint64_t by)
{
    bool follows = TOKEN_SESSION(token) == follow.session &&
                   (follow_request(token) || follow_was_kept(TOKEN_ID(token)));
    struct work_slot s = follows ? follow_claim(jni, java_id) : (struct work_slot){NULL, 0};
    if (!s.in || atomic_load(&s.in->request[s.i]) == token)
        return 0;
    struct request_work how = {.start = now_ns(), .submitter = by, .way = way};
    if (time && how.start > time)
        how.queued_ns = how.start - time;
    return follow_begin(s, token, &how);
}

void follow_cancel(JNIEnv *jni, uint64_t java_id, uint64_t token, uint64_t time, uint64_t by)
{
    bool is_virtual;
    struct work_slot s = follow_slot(java_id);
    struct request_work w = {.start = now_ns(), .submitter = by, .way = WAY_CANCELLED};
    if (TOKEN_SESSION(token) != follow.session || w.start <= time)
        return;
    w.queued_ns = w.start - time;
    w.thread = s.in ? atomic_load_explicit(&s.in->thread[s.i], memory_order_relaxed)
                    : follow_thread_id(jni, java_id, &is_virtual);
    follow_keep(token, &(struct piece){.work = w});
}

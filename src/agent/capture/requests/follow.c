/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which request each thread works for: what the probes call where a request or a piece of work
 * begins and ends.
 *
 * A thread that works for a request has an entry in the slots (tables.h), and the works that it is
 * in form a list, innermost first; the entry shows the innermost one's request. Requests and works
 * are records of two fixed tables; a number that a probe holds says which use of a record it means,
 * so that it is harmless when it comes late.
 *
 * Details are written at once while requests come slowly, and for a random sample when they come
 * fast. The works of all other requests are kept in their record until it ends; then they are
 * written if the request is one of the slowest of its name in this minute, and otherwise counted.
 */
#include "agent/capture/requests/requests.h"

#include "agent/capture/requests/sql.h"
#include "agent/capture/requests/tables.h"
#include "agent/fault.h"
#include "agent/inside.h"
#include "agent/instrument/probe_class.h"
#include "agent/names.h"
#include "agent/thread_table.h"
#include "agent/virtual_threads.h"
#include "agent/vm.h"
#include "base/hash.h"
#include "base/map.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PROBE "java/lang/JvmscopeRequests"

enum {
    REQUESTS = 1 << 16, /* open at a time */
    WORKS = 1 << 17,    /* in progress at a time */
    USE_SHIFT = 20,     /* of the use of a work's record, in the work's number */
    PIECES = 16,        /* works and children of a request that may be kept until it ends */
    NAMED = 1 << 16,    /* known hashes of methods and paths */
    NAME_BITS = 13,
    TRACE_ID = 32, /* hexadecimal digits */
    SPAN_ID = 16,
    LATE = 1 << 20, /* requests that have ended of which it is known whether they were kept */
};

/*
 * Details are complete as long as no more than BURST requests have come beyond RATE a second, and
 * are a sample of RATE a second from then on: an hour at any rate takes less than 200 MB.
 */
enum { RATE = 300, BURST = 100000, FULL = BURST / 2 };

/*
 * No more than this many requests a second are written before either, so that the file can grow
 * with them. A fifth of them may come at once, before the rate is known.
 */
enum { FULL_RATE = 30000 };

/*
 * Code of a server runs for this long, in ns, before the probe of its entry point is reached, at
 * most. If it takes longer, it has waited for the request itself, as a thread for each connection
 * does, and the time in the pool's queue is none of the request's.
 */
#define ENTRY_GAP (5 * NS_PER_MS)

/* A work or a child that has ended. */
struct piece {
    bool is_child;

    union {
        struct request_work work;
        struct request_child child;
    };
};

struct request {
    _Atomic uint64_t token; /* 0: free. First: the probe reads it */
    uint64_t parent, start, thread;
    unsigned name;
    enum request_kind kind;
    int status;                                  /* as far as it was told before the end; 0: not */
    char trace[TRACE_ID + 1], span[SPAN_ID + 1]; /* of its caller; "": none */
    enum request_kept kept;                      /* KEPT_NOT: decided at the end */
    atomic_flag busy;                            /* guards the pieces, and the end of the request */
    unsigned n_pieces;
    struct piece pieces[PIECES];
    _Atomic uint32_t next; /* in the list of free ones */
};

struct work {
    _Atomic uint64_t number; /* 0: free; its use in the upper bits */
    uint64_t use;
    uint64_t request; /* a token */
    uint64_t outer;   /* the work that it is nested in; 0: none */
    struct request_work as;
    struct request_child child; /* in progress; start 0: none */
    _Atomic uint32_t next;
};

/* A table of records of which free ones are taken; a record keeps its place for good. */
struct pool {
    char *records;
    size_t size, next_at; /* of a record; where its `next` is */
    uint32_t max;
    _Atomic uint64_t free; /* 1 + index, and above it a count that tells changes apart */
    _Atomic uint32_t used; /* records from here on have never been used in this recording */
};

static struct {
    struct slots *slots;
    struct handed *handed;
    struct task *tasks;
    _Atomic uint64_t *named;
    uint64_t *prepared; /* identity hash of a statement << NAME_BITS | number of its text */
    struct pool requests, works;
    _Atomic uint64_t *late;       /* a bit each, by id: it was kept */
    _Atomic uint64_t overwritten; /* by the probe */
    _Atomic uint64_t any;
    int64_t tid_offset;
    jfieldID tid;
    jclass carrier, probe;
    jobject scheduler;
    uint64_t session; /* the number of the recording, 1 to 127 */
    _Atomic uint64_t begun, open, no_record, no_slot;
    _Atomic int64_t allowance; /* details that may still be written */
    _Atomic uint32_t share;    /* of 2^16: the sample */
    _Atomic int64_t now_left;  /* details that may be written before the next flush */
    uint64_t flushed_ns, flushed_begun;
} follow;

static struct inside inside;

/* ---- records ---- */

static _Atomic uint32_t *next_of(const struct pool *p, uint32_t i)
{
    return (_Atomic uint32_t *)(p->records + p->size * i + p->next_at);
}

/* The index of a free record; -1: there is none. */
static int64_t pool_take(struct pool *p)
{
    uint64_t head = atomic_load(&p->free);
    while ((uint32_t)head) {
        uint32_t i = (uint32_t)head - 1;
        uint64_t next = (head >> 32) + 1;
        next = next << 32 | atomic_load(next_of(p, i));
        if (atomic_compare_exchange_weak(&p->free, &head, next))
            return i;
    }
    uint32_t i = atomic_load(&p->used);
    while (i < p->max && !atomic_compare_exchange_weak(&p->used, &i, i + 1))
        ;
    return i < p->max ? (int64_t)i : -1;
}

static void pool_give(struct pool *p, uint32_t i)
{
    uint64_t head = atomic_load(&p->free), now;
    do {
        atomic_store(next_of(p, i), (uint32_t)head);
        now = ((head >> 32) + 1) << 32 | (i + 1);
    } while (!atomic_compare_exchange_weak(&p->free, &head, now));
}

static struct request *request_at(uint64_t token)
{
    return (struct request *)follow.requests.records + (token & TOKEN_INDEX);
}

/* The record of a request that has not ended; NULL otherwise. */
static struct request *request_open(uint64_t token)
{
    struct request *r = token ? request_at(token) : NULL;
    return r && atomic_load(&r->token) == token ? r : NULL;
}

static struct work *work_of(uint64_t number)
{
    struct work *w = (struct work *)follow.works.records + (number & (WORKS - 1));
    return number && atomic_load(&w->number) == number ? w : NULL;
}

/* For as long as it takes to copy a piece: the holder may have lost its processor, though. */
static void request_lock(struct request *r)
{
    while (atomic_flag_test_and_set_explicit(&r->busy, memory_order_acquire))
        sched_yield();
}

static void request_unlock(struct request *r)
{
    atomic_flag_clear_explicit(&r->busy, memory_order_release);
}

/* ---- which details are kept ---- */

/* Whether a request that begins now is one of those whose details are written. */
static enum request_kept choose(uint64_t id)
{
    uint32_t share = atomic_load_explicit(&follow.share, memory_order_relaxed);
    if (share <= 0xffff && (hash_u64(id) & 0xffff) >= share)
        return KEPT_NOT;
    if (atomic_load_explicit(&follow.now_left, memory_order_relaxed) <= 0 ||
        atomic_fetch_sub_explicit(&follow.now_left, 1, memory_order_relaxed) <= 0)
        return KEPT_NOT;
    return share <= 0xffff ? KEPT_SAMPLE : KEPT_ALL;
}

void follow_flush(uint64_t now)
{
    uint64_t ns = now - follow.flushed_ns, begun = atomic_load(&follow.begun),
             n = begun - follow.flushed_begun;
    if (ns < NS_PER_SECOND / 20)
        return;
    int64_t left = atomic_load(&follow.allowance), more = (int64_t)(RATE * ns / NS_PER_SECOND);
    if (left < BURST)
        atomic_fetch_add(&follow.allowance, MIN(more, BURST - left));
    uint64_t rate = left > FULL ? FULL_RATE : RATE,
             share = n ? rate * ns / NS_PER_SECOND * 0x10000 / n : 0x10000;
    atomic_store(&follow.share, (uint32_t)MIN(share, UINT64_C(0x10000)));
    atomic_store(&follow.now_left, (int64_t)(left > FULL ? FULL_RATE / 5 : RATE));
    follow.flushed_ns = now;
    follow.flushed_begun = begun;
}

static void set_late(uint64_t id, bool kept)
{
    uint64_t bit = UINT64_C(1) << (id & 63);
    _Atomic uint64_t *word = &follow.late[(id & (LATE - 1)) >> 6];
    if (kept)
        atomic_fetch_or_explicit(word, bit, memory_order_relaxed);
    else if (atomic_load_explicit(word, memory_order_relaxed) & bit)
        atomic_fetch_and_explicit(word, ~bit, memory_order_relaxed);
}

static bool was_kept(uint64_t id)
{
    return atomic_load(&follow.late[(id & (LATE - 1)) >> 6]) >> (id & 63) & 1;
}

static void put_piece(uint64_t id, const struct piece *p)
{
    if (p->is_child)
        put_request_child(id, &p->child);
    else
        put_request_work(id, &p->work);
}

/* A work or child has ended: it is written now, kept with its request, or dropped with it. */
static void keep(uint64_t token, const struct piece *p)
{
    struct request *r = request_open(token);
    bool write = false;
    if (r) {
        request_lock(r);
        if (atomic_load(&r->token) != token)
            r = (request_unlock(r), NULL);
    }
    if (!r) {
        write = was_kept(TOKEN_ID(token));
    } else {
        write = r->kept != KEPT_NOT;
        if (!write && r->n_pieces < PIECES)
            r->pieces[r->n_pieces] = *p;
        if (!write)
            r->n_pieces++;
        request_unlock(r);
    }
    if (write)
        put_piece(TOKEN_ID(token), p);
}

/* ---- threads ---- */

/* The calling thread's id in the recording, for its Java id. */
static uint64_t thread_id(JNIEnv *jni, uint64_t java_id, bool *ret_virtual)
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

/* A virtual thread is described while it is there. */
static void describe_virtual(JNIEnv *jni, uint64_t java_id)
{
    jvmtiThreadInfo info = {0};
    if ((*vm.ti)->GetThreadInfo(vm.ti, NULL, &info) != JVMTI_ERROR_NONE)
        return;
    struct jfr_thread t = {
        .java_name = info.name ? info.name : "", .java_id = java_id, .is_virtual = true};
    if (jfr_define_thread(requests_jfr, THREAD_VIRTUAL | java_id, &t) < 0)
        requests_lose(LOSS_THREAD_NAME, 1);
    vm_free(info.name);
    if (info.thread_group)
        (*jni)->DeleteLocalRef(jni, info.thread_group);
    if (info.context_class_loader)
        (*jni)->DeleteLocalRef(jni, info.context_class_loader);
}

struct slot {
    struct slots *in; /* NULL: none */
    unsigned i;
};

static struct slot slot_find(uint64_t java_id)
{
    struct slots *s = &follow.slots[java_id & (SLOT_BUCKETS - 1)];
    for (unsigned i = 0; i < BUCKET; i++)
        if (atomic_load_explicit(&s->java_id[i], memory_order_relaxed) == java_id)
            return (struct slot){s, i};
    return (struct slot){NULL, 0};
}

/* The calling thread's entry, which is made if it has none. */
static struct slot slot_claim(JNIEnv *jni, uint64_t java_id)
{
    struct slot found = slot_find(java_id);
    if (found.in)
        return found;
    struct slots *s = &follow.slots[java_id & (SLOT_BUCKETS - 1)];
    for (unsigned i = 0; i < BUCKET; i++) {
        uint64_t none = 0;
        bool is_virtual;
        if (atomic_load(&s->java_id[i]) ||
            !atomic_compare_exchange_strong(&s->java_id[i], &none, java_id))
            continue;
        s->work[i] = 0;
        atomic_store(&s->request[i], 0);
        atomic_store(&s->thread[i], thread_id(jni, java_id, &is_virtual));
        if (is_virtual)
            describe_virtual(jni, java_id);
        return (struct slot){s, i};
    }
    atomic_fetch_add(&follow.no_slot, 1);
    return (struct slot){NULL, 0};
}

/* The thread works for what is left of its works; without one its entry is free. */
static void slot_show(struct slot s)
{
    struct work *w = work_of(s.in->work[s.i]);
    atomic_store_explicit(&s.in->request[s.i], w ? w->request : 0, memory_order_relaxed);
    if (!w) {
        s.in->work[s.i] = 0;
        atomic_store_explicit(&s.in->java_id[s.i], 0, memory_order_release);
    }
}

/* ---- works ---- */

/* The calling thread begins to work for a request. Returns the work's number; 0: no room. */
static uint64_t work_begin(struct slot s, uint64_t token, const struct request_work *how)
{
    int64_t i = pool_take(&follow.works);
    if (i < 0) {
        atomic_fetch_add(&follow.no_record, 1);
        if (!s.in->work[s.i])
            slot_show(s);
        return 0;
    }
    struct work *w = (struct work *)follow.works.records + i;
    uint64_t number = ++w->use << USE_SHIFT | (uint64_t)i;
    w->request = token;
    w->outer = s.in->work[s.i];
    w->as = *how;
    w->child.start = 0;
    w->as.thread = atomic_load_explicit(&s.in->thread[s.i], memory_order_relaxed);
    atomic_store(&w->number, number);
    s.in->work[s.i] = number;
    atomic_store_explicit(&s.in->request[s.i], token, memory_order_relaxed);
    return number;
}

/* now 0: it is of no interest. */
static void work_finish(struct work *w, uint64_t now)
{
    w->as.ns = now - w->as.start;
    if (now)
        keep(w->request, &(struct piece){.work = w->as});
    uint32_t i = (uint32_t)(atomic_load(&w->number) & (WORKS - 1));
    atomic_store(&w->number, 0);
    pool_give(&follow.works, i);
}

/*
 * A work of the calling thread ends, and with it all that are nested in it and were not seen to
 * end.
 */
static void work_end(struct work *w, struct slot s, uint64_t now)
{
    for (bool last = false; !last;) {
        struct work *o = work_of(s.in->work[s.i]);
        s.in->work[s.i] = o->outer;
        last = o == w;
        work_finish(o, now);
    }
    slot_show(s);
}

/* The calling thread's work that is in progress and is the one asked for; NULL: none. */
static struct work *work_find(struct slot s, bool (*is)(const struct work *w, uint64_t what),
                              uint64_t what)
{
    struct work *w = s.in ? work_of(s.in->work[s.i]) : NULL;
    while (w && !is(w, what))
        w = work_of(w->outer);
    return w;
}

static bool is_number(const struct work *w, uint64_t number)
{
    return ((struct work *)w)->number == number;
}

/* The call in which a request began, or in which its server goes on with it. */
static bool is_entry(const struct work *w, uint64_t token)
{
    return w->request == token && (w->as.way == WAY_ENTRY || w->as.way == WAY_ASYNC);
}

static bool is_outermost(const struct work *w, uint64_t none)
{
    return !work_of(w->outer);
}

/* Ends the calling thread's work that is the one asked for, if there is such a work. */
static void work_end_if(uint64_t java_id, bool (*is)(const struct work *w, uint64_t what),
                        uint64_t what, uint64_t now)
{
    struct slot s = slot_find(java_id);
    struct work *w = work_find(s, is, what);
    if (w)
        work_end(w, s, now);
}

/* ---- requests ---- */

/* The task in which the calling thread began a request at once waited in a pool's queue. */
static void queued_before(uint64_t java_id, uint64_t now, struct request_work *how)
{
    struct task *t = &follow.tasks[java_id & (TASKS - 1)];
    if (atomic_load(&t->java_id) != java_id)
        return;
    if (now - t->start < ENTRY_GAP && t->handed <= t->start) {
        how->start = t->start;
        how->queued_ns = t->start - t->handed;
        how->submitter = t->by;
    }
    atomic_store(&t->java_id, 0);
}

/* late: for how long a task was due before, in ns. */
static uint64_t request_begin(JNIEnv *jni, enum request_kind kind, unsigned name, uint64_t java_id,
                              uint64_t late)
{
    struct slot s = slot_claim(jni, java_id);
    if (!s.in)
        return 0;
    uint64_t outer = atomic_load_explicit(&s.in->request[s.i], memory_order_relaxed);
    const struct request *around = request_open(outer);
    outer = around ? outer : 0;
    if (kind == REQUEST_METHOD && around && around->kind == kind && around->name == name)
        return 0; /* it calls itself */
    int64_t i = pool_take(&follow.requests);
    if (i < 0) {
        atomic_fetch_add(&follow.no_record, 1);
        if (!s.in->work[s.i])
            slot_show(s);
        return 0;
    }
    struct request_work how = {.start = now_ns(), .way = WAY_ENTRY};
    uint64_t id = atomic_fetch_add(&follow.begun, 1) + 1;
    bool server = kind < REQUEST_TASK || outer & TOKEN_SERVER;
    uint64_t token = id << 24 | follow.session << 17 | (server ? TOKEN_SERVER : 0) | (uint64_t)i;
    struct request *r = request_at(token);
    if (kind == REQUEST_TASK)
        how.queued_ns = late;
    else if (kind != REQUEST_METHOD && !around)
        queued_before(java_id, how.start, &how);
    r->parent = outer ? TOKEN_ID(outer) : 0;
    r->start = how.start - how.queued_ns;
    r->thread = atomic_load_explicit(&s.in->thread[s.i], memory_order_relaxed);
    r->name = name;
    r->kind = kind;
    r->kept = choose(id);
    r->n_pieces = 0;
    r->trace[0] = 0;
    r->status = 0;
    atomic_store(&r->token, token);
    atomic_fetch_add(&follow.open, 1);
    (void)work_begin(s, token, &how);
    return token;
}

/* Writes the details of a request that has ended, or counts them as not kept. */
static void settle(struct request *r, struct request_end *end)
{
    bool before = r->kept != KEPT_NOT; /* its works have been written */
    unsigned pieces = MIN(r->n_pieces, (unsigned)PIECES);
    if (!before && request_is_slow(end->name, end->ns, end->start + end->ns))
        r->kept = KEPT_SLOW;
    end->kept = r->kept;
    set_late(end->id, r->kept != KEPT_NOT);
    if (r->kept == KEPT_NOT) {
        requests_lose(LOSS_REQUEST_RATE, 1);
        return;
    }
    atomic_fetch_sub_explicit(&follow.allowance, 1, memory_order_relaxed);
    for (unsigned i = 0; !before && i < pieces; i++)
        put_piece(end->id, &r->pieces[i]);
    if (!before)
        requests_lose(LOSS_REQUEST_WORK, r->n_pieces - pieces);
    put_request(end);
}

/* Of gRPC's codes those that are the server's fault. */
static bool is_grpc_error(int code)
{
    enum { UNKNOWN = 2, DEADLINE = 4, UNIMPLEMENTED = 12, INTERNAL, UNAVAILABLE, DATA_LOSS };

    return code == UNKNOWN || code == DEADLINE || (code >= UNIMPLEMENTED && code <= DATA_LOSS);
}

static void request_finish(JNIEnv *jni, struct request *r, uint64_t token, int status,
                           jclass exception, uint64_t now, uint64_t java_id)
{
    bool is_virtual;
    request_lock(r);
    bool mine = atomic_load(&r->token) == token;
    if (mine)
        atomic_store(&r->token, 0);
    request_unlock(r);
    if (!mine)
        return;
    status = r->status ? r->status : status;
    bool error = exception || (r->kind == REQUEST_GRPC ? is_grpc_error(status) : status >= 500);
    struct request_end end = {.id = TOKEN_ID(token),
                              .parent = r->parent,
                              .start = r->start,
                              .ns = now - r->start,
                              .thread = r->thread,
                              .end_thread = thread_id(jni, java_id, &is_virtual),
                              .name = request_name_at(r->name),
                              .kind = r->kind,
                              .status = status,
                              .bytes = -1,
                              .trace = r->trace[0] ? r->trace : NULL,
                              .span = r->trace[0] ? r->span : NULL};
    char *text = exception ? names_class_text(exception) : NULL;
    end.exception = text;
    if (end.name) {
        request_count(end.name, end.ns, error);
        settle(r, &end);
    }
    free(text);
    atomic_fetch_sub(&follow.open, 1);
    pool_give(&follow.requests, (uint32_t)(token & TOKEN_INDEX));
}

/* ---- texts of children, by numbers that the probe keeps ---- */

static struct {
    pthread_mutex_t lock;
    struct map number; /* of a constant */
    uint64_t constant[1 << NAME_BITS];
    unsigned n;
} numbered = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int text_number(uint64_t constant)
{
    pthread_mutex_lock(&numbered.lock);
    const uint64_t *there = map_get(&numbered.number, constant);
    unsigned n = there ? (unsigned)*there : 0;
    if (!there && numbered.n + 1 < ARRAY_SIZE(numbered.constant)) {
        n = numbered.n + 1;
        if (map_put(&numbered.number, constant, n) < 0)
            n = 0;
        else
            numbered.constant[numbered.n = n] = constant;
    }
    pthread_mutex_unlock(&numbered.lock);
    return (int)n;
}

static uint64_t text_constant(int number)
{
    return number > 0 && (size_t)number < ARRAY_SIZE(numbered.constant) ? numbered.constant[number]
                                                                        : 0;
}

static void texts_forget(void)
{
    pthread_mutex_lock(&numbered.lock);
    map_release(&numbered.number);
    memset(numbered.constant, 0, sizeof(numbered.constant));
    numbered.n = 0;
    pthread_mutex_unlock(&numbered.lock);
}

/* ---- the probe's native methods ---- */

#define NATIVE(type, name) EXPORT type JNICALL Java_java_lang_JvmscopeRequests_##name
NATIVE(jlong, constant)(JNIEnv *, jclass, jint);
NATIVE(jclass, carrierClass)(JNIEnv *, jclass);
NATIVE(jobject, scheduler)(JNIEnv *, jclass);
NATIVE(jint, name)(JNIEnv *, jclass, jint, jstring, jstring, jlong);
NATIVE(jlong, begin)(JNIEnv *, jclass, jint, jint, jlong);
NATIVE(void, rename)(JNIEnv *, jclass, jlong, jint);
NATIVE(void, status)(JNIEnv *, jclass, jlong, jint);
NATIVE(void, route)(JNIEnv *, jclass, jlong, jstring, jlong);
NATIVE(jlong, taskBegin)(JNIEnv *, jclass, jobject, jlong, jlong);
NATIVE(void, taskEnd)(JNIEnv *, jclass, jlong, jclass);
NATIVE(void, trace)(JNIEnv *, jclass, jlong, jstring);
NATIVE(void, pause)(JNIEnv *, jclass, jlong, jlong);
NATIVE(void, end)(JNIEnv *, jclass, jlong, jlong, jint, jclass);
NATIVE(jlong, work)(JNIEnv *, jclass, jlong, jlong, jint, jlong, jlong);
NATIVE(void, workEnd)(JNIEnv *, jclass, jlong, jlong);
NATIVE(void, leave)(JNIEnv *, jclass, jlong, jboolean);
NATIVE(jint, text)(JNIEnv *, jclass, jint, jstring, jlong);
NATIVE(jlong, childBegin)(JNIEnv *, jclass, jlong, jint, jint);
NATIVE(void, childEnd)(JNIEnv *, jclass, jlong, jlong, jlong, jclass);

NATIVE(jlong, constant)(JNIEnv *jni, jclass probe, jint which)
{
    const int64_t values[] = {(int64_t)(uintptr_t)follow.slots,
                              (int64_t)(uintptr_t)follow.handed,
                              (int64_t)(uintptr_t)follow.tasks,
                              (int64_t)(uintptr_t)follow.named,
                              follow.tid_offset,
                              (int64_t)(uintptr_t)&follow.overwritten,
                              (int64_t)(uintptr_t)&follow.any,
                              (int64_t)(uintptr_t)follow.requests.records,
                              (int64_t)sizeof(struct request),
                              (int64_t)(uintptr_t)follow.prepared};
    return which >= 0 && which < (jint)ARRAY_SIZE(values) ? values[which] : 0;
}

NATIVE(jclass, carrierClass)(JNIEnv *jni, jclass probe)
{
    return follow.carrier ? (*jni)->NewLocalRef(jni, follow.carrier) : NULL;
}

NATIVE(jobject, scheduler)(JNIEnv *jni, jclass probe)
{
    return follow.scheduler ? (*jni)->NewLocalRef(jni, follow.scheduler) : NULL;
}

/* The first characters of a string, as modified UTF-8. */
static void copy_text(JNIEnv *jni, jstring s, char *to, jsize max)
{
    jsize n = s ? MIN((*jni)->GetStringLength(jni, s), max) : 0;
    *to = 0;
    if (n > 0)
        (*jni)->GetStringUTFRegion(jni, s, 0, n, to);
    to[3 * n] = 0;
    vm_clear_exception(jni);
}

/* Keeps the number of a name or text for its hash. */
static void remember(jlong key, unsigned number)
{
    const uint64_t mask = ~UINT64_C(0) >> NAME_BITS;
    atomic_store(&follow.named[(uint64_t)key >> 48], ((uint64_t)key & mask) << NAME_BITS | number);
}

NATIVE(jint, name)(JNIEnv *jni, jclass probe, jint kind, jstring method, jstring path, jlong key)
{
    enum { METHOD = 32, PATH = 512, ROUTE = 0x100 };

    char method_text[3 * METHOD + 1] = "", path_text[3 * PATH + 1] = "", text[REQUEST_NAME_SIZE];
    if (!path || !inside_enter(&inside))
        return 0;
    copy_text(jni, method, method_text, METHOD);
    copy_text(jni, path, path_text, PATH);
    if (kind & ROUTE)
        request_join(method_text, path_text, text);
    else
        request_fold(method_text, path_text, text);
    unsigned number = request_name_find(kind & ~ROUTE, text);
    remember(key, number);
    inside_leave(&inside);
    return (jint)number;
}

NATIVE(jlong, begin)(JNIEnv *jni, jclass probe, jint kind, jint name, jlong java_id)
{
    uint64_t token = 0;
    if (kind < 0 || !inside_enter(&inside))
        return 0;
    token = request_begin(jni, (enum request_kind)kind, (unsigned)name, (uint64_t)java_id, 0);
    inside_leave(&inside);
    return (jlong)token;
}

NATIVE(void, end)

(JNIEnv *jni, jclass probe, jlong token, jlong java_id, jint status, jclass exception)
{
    if (!token || TOKEN_SESSION((uint64_t)token) != follow.session || !inside_enter(&inside))
        return;
    uint64_t now = now_ns();
    work_end_if((uint64_t)java_id, is_entry, (uint64_t)token, now);
    struct request *r = request_open((uint64_t)token);
    if (r)
        request_finish(jni, r, (uint64_t)token, status, exception, now, (uint64_t)java_id);
    inside_leave(&inside);
}

NATIVE(void, rename)(JNIEnv *jni, jclass probe, jlong token, jint name)
{
    struct request *r;
    if (!token || !inside_enter(&inside))
        return;
    if (TOKEN_SESSION((uint64_t)token) == follow.session && (r = request_open((uint64_t)token)) &&
        r->kind != REQUEST_METHOD)
        r->name = (unsigned)name;
    inside_leave(&inside);
}

NATIVE(void, status)(JNIEnv *jni, jclass probe, jlong token, jint status)
{
    struct request *r;
    if (!token || !inside_enter(&inside))
        return;
    if (TOKEN_SESSION((uint64_t)token) == follow.session && (r = request_open((uint64_t)token)))
        r->status = status;
    inside_leave(&inside);
}

NATIVE(void, route)(JNIEnv *jni, jclass probe, jlong token, jstring route, jlong key)
{
    enum { ROUTE_LENGTH = 256 };

    char method[REQUEST_NAME_SIZE] = "", given[3 * ROUTE_LENGTH + 1], text[REQUEST_NAME_SIZE];
    struct request *r;
    if (!token || !route || !inside_enter(&inside))
        return;
    if (TOKEN_SESSION((uint64_t)token) == follow.session && (r = request_open((uint64_t)token)) &&
        r->kind != REQUEST_METHOD) {
        const struct request_name *now = request_name_at(r->name);
        if (now)
            snprintf(method, sizeof(method), "%.*s", (int)strcspn(now->text, " "), now->text);
        copy_text(jni, route, given, ROUTE_LENGTH);
        request_join(method, given, text);
        r->name = request_name_find(r->kind, text);
        remember(key, r->name);
    }
    inside_leave(&inside);
}

/* W3C Trace Context: "00-TRACE-SPAN-FLAGS", in lower case. Anything else is not taken. */
static void read_traceparent(const char *text, struct request *r)
{
    enum { VERSION = 2, FLAGS = 2 };

    static const char digits[] = "0123456789abcdef";
    const char *trace = text + VERSION + 1, *span = trace + TRACE_ID + 1;
    if (strlen(text) < VERSION + 1 + TRACE_ID + 1 + SPAN_ID + 1 + FLAGS || text[VERSION] != '-' ||
        strspn(trace, digits) != TRACE_ID || trace[TRACE_ID] != '-' ||
        strspn(span, digits) != SPAN_ID || span[SPAN_ID] != '-')
        return;
    memcpy(r->trace, trace, TRACE_ID);
    memcpy(r->span, span, SPAN_ID);
    r->trace[TRACE_ID] = r->span[SPAN_ID] = 0;
}

NATIVE(void, trace)(JNIEnv *jni, jclass probe, jlong token, jstring header)
{
    enum { LENGTH = 64 };

    char text[3 * LENGTH + 1] = "";
    struct request *r;
    if (!token || !header || !inside_enter(&inside))
        return;
    copy_text(jni, header, text, LENGTH);
    if (TOKEN_SESSION((uint64_t)token) == follow.session && (r = request_open((uint64_t)token)))
        read_traceparent(text, r);
    inside_leave(&inside);
}

NATIVE(void, pause)(JNIEnv *jni, jclass probe, jlong token, jlong java_id)
{
    if (!token || !inside_enter(&inside))
        return;
    work_end_if((uint64_t)java_id, is_entry, (uint64_t)token, now_ns());
    inside_leave(&inside);
}

NATIVE(jlong, work)

(JNIEnv *jni, jclass probe, jlong java_id, jlong token, jint way, jlong time, jlong by)
{
    uint64_t number = 0, request = (uint64_t)token;
    if (!token || !inside_enter(&inside))
        return 0;
    bool follows = TOKEN_SESSION(request) == follow.session &&
                   (request_open(request) || was_kept(TOKEN_ID(request)));
    struct slot s = follows ? slot_claim(jni, (uint64_t)java_id) : (struct slot){NULL, 0};
    if (s.in && atomic_load(&s.in->request[s.i]) != request) {
        struct request_work how = {.start = now_ns(), .submitter = (uint64_t)by, .way = way};
        if (time && how.start > (uint64_t)time)
            how.queued_ns = how.start - (uint64_t)time;
        number = work_begin(s, request, &how);
    }
    inside_leave(&inside);
    return (jlong)number;
}

NATIVE(void, workEnd)(JNIEnv *jni, jclass probe, jlong number, jlong java_id)
{
    if (!number || !inside_enter(&inside))
        return;
    work_end_if((uint64_t)java_id, is_number, (uint64_t)number, now_ns());
    inside_leave(&inside);
}

/* The request of a task or message in which the calling thread is; 0: none. */
static uint64_t task_of(uint64_t java_id)
{
    struct slot s = slot_find(java_id);
    const struct work *w = work_find(s, is_outermost, 0);
    const struct request *r = w && w->as.way == WAY_ENTRY ? request_open(w->request) : NULL;
    return r && (r->kind == REQUEST_TASK || r->kind == REQUEST_MESSAGE) ? w->request : 0;
}

static void task_end(JNIEnv *jni, uint64_t java_id, jclass exception)
{
    uint64_t token = task_of(java_id), now = now_ns();
    if (!token)
        return;
    work_end_if(java_id, is_outermost, 0, now);
    struct request *r = request_open(token);
    if (r)
        request_finish(jni, r, token, 0, exception, now, java_id);
}

NATIVE(void, taskEnd)(JNIEnv *jni, jclass probe, jlong java_id, jclass exception)
{
    if (!java_id || !inside_enter(&inside))
        return;
    task_end(jni, (uint64_t)java_id, exception);
    inside_leave(&inside);
}

NATIVE(jlong, taskBegin)(JNIEnv *jni, jclass probe, jobject task, jlong java_id, jlong late)
{
    uint64_t token = 0;
    if (!task || !inside_enter(&inside))
        return 0;
    unsigned name;
    if (task_name(jni, task, &name))
        token = request_begin(jni, REQUEST_TASK, name, (uint64_t)java_id,
                              late > 0 ? (uint64_t)late : 0);
    inside_leave(&inside);
    return (jlong)token;
}

NATIVE(void, leave)(JNIEnv *jni, jclass probe, jlong java_id, jboolean drop)
{
    if (!java_id || !inside_enter(&inside))
        return;
    task_end(jni, (uint64_t)java_id, NULL);
    work_end_if((uint64_t)java_id, is_outermost, 0, drop ? 0 : now_ns());
    inside_leave(&inside);
}

/* ---- what a request does elsewhere ---- */

/* The number of a statement's or peer's text; 0: none. */
NATIVE(jint, text)(JNIEnv *jni, jclass probe, jint kind, jstring text, jlong key)
{
    enum { LENGTH = 2000, SHOWN = 300 };

    char given[3 * LENGTH + 1] = "", folded[SHOWN];
    if (!text || !inside_enter(&inside))
        return 0;
    copy_text(jni, text, given, LENGTH);
    if (kind == CHILD_JDBC)
        sql_fold(given, folded, sizeof(folded));
    else
        snprintf(folded, sizeof(folded), "%s", given);
    uint64_t constant = request_text(folded);
    int number = constant ? text_number(constant) : 0;
    remember(key, (unsigned)number);
    inside_leave(&inside);
    return number;
}

/* Within another one it is none. */
NATIVE(jlong, childBegin)(JNIEnv *jni, jclass probe, jlong java_id, jint kind, jint text)
{
    uint64_t number = 0;
    if (kind < 0 || !inside_enter(&inside))
        return 0;
    struct slot s = slot_find((uint64_t)java_id);
    struct work *w = s.in ? work_of(s.in->work[s.i]) : NULL;
    if (w && !w->child.start) {
        w->child = (struct request_child){.start = now_ns(),
                                          .thread = w->as.thread,
                                          .name = text_constant(text),
                                          .peer = kind == CHILD_HTTP ? text_constant(text) : 0,
                                          .rows = -1,
                                          .kind = (enum request_child_kind)kind};
        number = atomic_load(&w->number);
    }
    inside_leave(&inside);
    return (jlong)number;
}

NATIVE(void, childEnd)

(JNIEnv *jni, jclass probe, jlong number, jlong java_id, jlong rows, jclass exception)
{
    if (!number || !inside_enter(&inside))
        return;
    struct work *w = work_find(slot_find((uint64_t)java_id), is_number, (uint64_t)number);
    if (w && w->child.start) {
        char *text = exception ? names_class_text(exception) : NULL;
        w->child.ns = now_ns() - w->child.start;
        w->child.rows = rows;
        w->child.exception = text ? request_text(text) : 0;
        free(text);
        keep(w->request, &(struct piece){.is_child = true, .child = w->child});
        w->child.start = 0;
    }
    inside_leave(&inside);
}

/* ---- threads that begin and end ---- */

/* What a thread was started with; false: nothing. */
static bool take_handed(uint64_t key, struct handed *ret)
{
    struct handed *h = follow.handed + (key & (HANDED_BUCKETS - 1)) * BUCKET;
    for (unsigned i = 0; i < BUCKET; i++) {
        if (atomic_load(&h[i].key) != key)
            continue;
        atomic_store(&ret->request, atomic_load(&h[i].request));
        atomic_store(&ret->time, atomic_load(&h[i].time));
        atomic_store(&ret->by, atomic_load(&h[i].by));
        if (atomic_compare_exchange_strong(&h[i].key, &key, 0))
            return true;
    }
    return false;
}

static uint64_t java_id(JNIEnv *jni, jthread thread)
{
    return (uint64_t)(*jni)->GetLongField(jni, thread, follow.tid);
}

void follow_thread_started(JNIEnv *jni, jthread thread)
{
    struct handed h;
    if (!atomic_load(&follow.any) || !inside_enter(&inside))
        return;
    uint64_t id = java_id(jni, thread), now = now_ns();
    if (take_handed(HANDED_THREAD | id, &h) && !h.request) {
        struct task *t = &follow.tasks[id & (TASKS - 1)];
        t->start = now;
        t->handed = h.time;
        t->by = h.by;
        atomic_store(&t->java_id, id);
    } else if (h.request) {
        Java_java_lang_JvmscopeRequests_work(jni, NULL, (jlong)id, (jlong)h.request, WAY_THREAD,
                                             (jlong)h.time, (jlong)h.by);
    }
    inside_leave(&inside);
}

uint64_t follow_thread_ended(JNIEnv *jni, jthread thread)
{
    if (!inside_enter(&inside))
        return 0;
    uint64_t id = java_id(jni, thread), now = now_ns();
    task_end(jni, id, NULL);
    work_end_if(id, is_outermost, 0, now);
    struct task *t = &follow.tasks[id & (TASKS - 1)];
    if (atomic_load(&t->java_id) == id)
        atomic_store(&t->java_id, 0);
    inside_leave(&inside);
    return id;
}

/* ---- the tables ---- */

static void *map_zero(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static const struct {
    void **at;
    size_t size;
    bool kept; /* from one recording to the next */
} tables[] = {
    {(void **)&follow.slots, SLOT_BUCKETS * sizeof(struct slots), false},
    {(void **)&follow.handed, HANDED_BUCKETS *BUCKET * sizeof(struct handed), false},
    {(void **)&follow.tasks, TASKS * sizeof(struct task), false},
    {(void **)&follow.named, NAMED * sizeof(uint64_t), false},
    {(void **)&follow.prepared, NAMED * sizeof(uint64_t), false},
    {(void **)&follow.late, LATE / 8, false},
    {(void **)&follow.requests.records, REQUESTS * sizeof(struct request), false},
    /* the use of each record goes on, so that a number of the last recording means none */
    {(void **)&follow.works.records, WORKS * sizeof(struct work), true},
};

int follow_load(void)
{
    if (fault_here())
        return -ENOMEM;
    for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
        if (!*tables[i].at && !(*tables[i].at = map_zero(tables[i].size)))
            return -ENOMEM;
    return 0;
}

static void empty_tables(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
        if (!tables[i].kept)
            (void)madvise(*tables[i].at, tables[i].size, MADV_DONTNEED);
    for (uint32_t i = 0; i < atomic_load(&follow.works.used); i++)
        atomic_store(&((struct work *)follow.works.records)[i].number, 0);
    follow.requests = (struct pool){follow.requests.records,
                                    sizeof(struct request),
                                    offsetof(struct request, next),
                                    REQUESTS,
                                    0,
                                    0};
    follow.works = (struct pool){
        follow.works.records, sizeof(struct work), offsetof(struct work, next), WORKS, 0, 0};
}

/* Since JDK 21; other versions have neither. */
static void find_carriers(JNIEnv *jni)
{
    if (vm.version < 21 || follow.carrier)
        return;
    jclass carrier = (*jni)->FindClass(jni, "jdk/internal/misc/CarrierThread");
    vm_clear_exception(jni);
    jclass v = (*jni)->FindClass(jni, "java/lang/VirtualThread");
    vm_clear_exception(jni);
    static const char *const types[] = {"Ljava/util/concurrent/ForkJoinPool;",
                                        "Ljava/util/concurrent/Executor;",
                                        "Ljava/lang/VirtualThread$BuiltinScheduler;"};
    jobject scheduler = NULL;
    for (size_t i = 0; v && !scheduler && i < ARRAY_SIZE(types); i++) {
        jfieldID f = (*jni)->GetStaticFieldID(jni, v, "DEFAULT_SCHEDULER", types[i]);
        scheduler = f ? (*jni)->GetStaticObjectField(jni, v, f) : NULL;
        vm_clear_exception(jni);
    }
    follow.carrier = carrier ? (*jni)->NewGlobalRef(jni, carrier) : NULL;
    follow.scheduler = scheduler ? (*jni)->NewGlobalRef(jni, scheduler) : NULL;
    if (carrier)
        (*jni)->DeleteLocalRef(jni, carrier);
    if (v)
        (*jni)->DeleteLocalRef(jni, v);
    if (scheduler)
        (*jni)->DeleteLocalRef(jni, scheduler);
}

int follow_start(JNIEnv *jni, struct buf *why)
{
    follow.tid_offset = probe_field_offset(jni, "java/lang/Thread", "tid", "J");
    jclass c = (*jni)->FindClass(jni, "java/lang/Thread");
    follow.tid = c ? (*jni)->GetFieldID(jni, c, "tid", "J") : NULL;
    vm_clear_exception(jni);
    if (c)
        (*jni)->DeleteLocalRef(jni, c);
    if (follow.tid_offset < 0 || !follow.tid) {
        buf_string(why, "requests: the layout of java.lang.Thread is not known");
        return -ENOTSUP;
    }
    find_carriers(jni);
    task_names_start(jni);
    empty_tables();
    texts_forget();
    follow.session = follow.session % 127 + 1;
    follow.begun = follow.open = follow.no_record = follow.no_slot = 0;
    follow.overwritten = follow.any = 0;
    follow.allowance = BURST;
    follow.share = 0x10000;
    follow.now_left = FULL_RATE / 5;
    follow.flushed_ns = now_ns();
    follow.flushed_begun = 0;
    int r = probe_define(jni, PROBE, &follow.probe, why);
    if (r == 0)
        inside_open(&inside);
    return r;
}

void follow_stop(void)
{
    inside_close(&inside);
}

void follow_losses(struct jfr_writer *w)
{
    jfr_lose_total(w, LOSS_REQUEST_TABLE,
                   atomic_load(&follow.no_record) + atomic_load(&follow.no_slot));
    jfr_lose_total(w, LOSS_REQUEST_TASK, atomic_load(&follow.overwritten));
}

uint64_t follow_open(void)
{
    return atomic_load(&follow.open);
}

uint64_t follow_begun(void)
{
    return atomic_load(&follow.begun);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Records the beginnings and ends of requests, which the probes report, and those of threads. */
#include "agent/capture/requests/follow.h"

#include "agent/capture/alarms/alarms.h"
#include "agent/instrument/probe_class.h"
#include "agent/stacks/names.h"
#include "agent/vm/virtual_list.h"
#include "agent/vm/virtual_threads.h"
#include "agent/vm/vm.h"
#include "base/seqlock.h"

#include <errno.h>
#include <stdlib.h>

#define PROBE "java/lang/JvmscopeRequests"

/*
 * The longest time in ns for which a server's code is assumed to run before it reaches the probe at
 * its entry point. In addition a share of the time that its task waited in a pool's queue is
 * allowed, because the thread may lack a processor where that time is long. A thread that took
 * longer has waited for the request itself, like the thread of a connection, and the time in the
 * queue does not belong to the request.
 */
#define ENTRY_GAP   (5 * NS_PER_MS)
#define ENTRY_SHARE 8

struct follow follow;
struct inside follow_inside;

/* ---- requests ---- */

/*
 * Adds the time that a task waited in a pool's queue to a request that begins right at the start of
 * the task.
 */
static void queued_before(uint64_t java_id, uint64_t now, struct request_work *how)
{
    struct task *t = &follow.tasks[java_id & (TASKS - 1)];
    if (atomic_load(&t->java_id) != java_id)
        return;
    if (t->handed <= t->start &&
        now - t->start < MAX(ENTRY_GAP, (t->start - t->handed) / ENTRY_SHARE)) {
        how->start = t->start;
        how->queued_ns = t->start - t->handed;
        how->submitter = t->by;
    }
    atomic_store(&t->java_id, 0);
}

uint64_t follow_request_begin(JNIEnv *jni, enum request_kind kind, unsigned name, uint64_t java_id,
                              uint64_t due)
{
    struct work_slot s = follow_claim(jni, java_id);
    if (!s.in)
        return 0;
    uint64_t outer = atomic_load_explicit(&s.in->request[s.i], memory_order_relaxed);
    const struct request *around = follow_request(outer);
    outer = around ? outer : 0;
    if (kind == REQUEST_METHOD && around && around->kind == kind && around->name == name)
        return 0; /* the method calls itself */
    int64_t i = follow_take_for(s, &follow.requests);
    if (i < 0)
        return 0;
    struct request_work how = {.start = now_ns(), .way = WAY_ENTRY};
    uint64_t id = atomic_fetch_add(&follow.begun, 1) + 1;
    bool server = kind < REQUEST_TASK || outer & TOKEN_SERVER;
    uint64_t token = id << 24 | follow.session << 17 | (server ? TOKEN_SERVER : 0) | (uint64_t)i;
    struct request *r = follow_at(token);
    if (kind == REQUEST_TASK)
        how.queued_ns = due ? how.start - MIN(due, how.start) : 0;
    else if (kind != REQUEST_METHOD && !around)
        queued_before(java_id, how.start, &how);
    r->parent = outer ? TOKEN_ID(outer) : 0;
    r->start = how.start - how.queued_ns;
    r->thread = atomic_load_explicit(&s.in->thread[s.i], memory_order_relaxed);
    r->name = name;
    r->kind = kind;
    r->weight = kind == REQUEST_TASK ? 1 : follow_weight();
    atomic_fetch_add_explicit(&follow.begun_all, r->weight, memory_order_relaxed);
    r->one_of = 0;
    r->kept = follow_choose(id, &r->one_of);
    r->n_pieces = 0;
    r->trace[0] = 0;
    r->status = 0;
    r->bytes = -1;
    atomic_store_explicit(&r->reported, 0, memory_order_relaxed);
    seqlock_stamp_set(&r->token, token);
    (void)follow_begin(s, token, &how);
    return token;
}

/* Writes the details of a request that has ended, or counts them as not kept. */
static void settle(struct request *r, struct request_end *end)
{
    bool before = r->kept != KEPT_NOT; /* its works have been written as they ended */
    unsigned pieces = MIN(r->n_pieces, (unsigned)PIECES);
    if (!before && request_is_slow(end->name, end->ns, end->start + end->ns))
        r->kept = KEPT_SLOW;
    end->kept = r->kept;
    end->one_of = (uint64_t)r->one_of * r->weight;
    follow_set_kept(end->id, r->kept != KEPT_NOT);
    requests_lose(LOSS_REQUEST_RATE, r->weight - (r->kept != KEPT_NOT));
    if (r->kept == KEPT_NOT)
        return;
    atomic_fetch_sub_explicit(&follow.allowance, 1, memory_order_relaxed);
    for (unsigned i = 0; !before && i < pieces; i++)
        follow_put(end->id, &r->pieces[i]);
    if (!before)
        requests_lose(LOSS_REQUEST_WORK, r->n_pieces - pieces);
    requests_put(end);
}

/* Returns whether a status code of gRPC means that the server failed. */
static bool is_grpc_error(int code)
{
    enum { UNKNOWN = 2, DEADLINE = 4, UNIMPLEMENTED = 12, INTERNAL, UNAVAILABLE, DATA_LOSS };

    return code == UNKNOWN || code == DEADLINE || (code >= UNIMPLEMENTED && code <= DATA_LOSS);
}

/* Returns how long a request had taken when it was reported to the triggers, or 0 if it was not. */
static uint64_t reported_ns(struct request *r, uint64_t start)
{
    uint64_t reported = atomic_load(&r->reported);
    return reported > start ? reported - start : 0;
}

void requests_report_running(uint64_t now)
{
    static uint64_t next_ns; /* protected by the session's lock */
    uint64_t least = atomic_load(&alarm_request_ns);
    if (least == UINT64_MAX || now < next_ns || !follow_open())
        return;
    uint32_t used = atomic_load(&follow.requests.used);
    for (uint32_t i = 0; i < MIN(used, follow.requests.max); i++) {
        struct request *r = follow_at(i);
        uint64_t token = seqlock_stamp(&r->token), start = r->start;
        struct request_name *name = token ? request_name_at(r->name) : NULL;
        if (!name || start > now || now - start <= least || !seqlock_stamp_holds(&r->token, token))
            continue;
        alarm_request(name->text, now - start, reported_ns(r, start), true);
        atomic_store(&r->reported, now);
    }
    next_ns = now + RUNNING_RARELY * (now_ns() - now);
}

void follow_request_end(JNIEnv *jni, struct request *r, uint64_t token, int status,
                        jclass exception, uint64_t now, uint64_t java_id)
{
    bool is_virtual;
    follow_lock(r);
    bool mine = atomic_load(&r->token) == token;
    if (mine)
        seqlock_stamp_clear(&r->token);
    follow_unlock(r);
    if (!mine)
        return;
    status = r->status ? r->status : status;
    bool error = exception || (r->kind == REQUEST_GRPC ? is_grpc_error(status) : status >= 500);
    struct request_end end = {.id = TOKEN_ID(token),
                              .parent = r->parent,
                              .start = r->start,
                              .ns = now - r->start,
                              .thread = r->thread,
                              .end_thread = follow_thread_id(jni, java_id, &is_virtual),
                              .name = request_name_at(r->name),
                              .kind = r->kind,
                              .status = status,
                              .bytes = r->bytes,
                              .trace = r->trace[0] ? r->trace : NULL,
                              .span = r->trace[0] ? r->span : NULL};
    char *text = exception ? names_class_text(exception) : NULL;
    end.exception = text;
    if (end.name) {
        request_count(end.name, end.ns, error, r->weight);
        if (unlikely(end.ns > atomic_load_explicit(&alarm_request_ns, memory_order_relaxed)))
            alarm_request(end.name->text, end.ns, reported_ns(r, end.start), false);
        settle(r, &end);
    }
    free(text);
    atomic_fetch_add(&follow.ended, 1);
    atomic_fetch_add_explicit(&follow.ended_all, r->weight, memory_order_relaxed);
    follow_give(&follow.requests, (uint32_t)(token & TOKEN_INDEX));
}

/* Returns the token of the task or message that the calling thread is handling, or 0. */
static uint64_t task_of(uint64_t java_id)
{
    struct work_slot s = follow_slot(java_id);
    const struct work *w = follow_find(s, follow_is_outermost, 0);
    const struct request *r = w && w->as.way == WAY_ENTRY ? follow_request(w->request) : NULL;
    return r && (r->kind == REQUEST_TASK || r->kind == REQUEST_MESSAGE) ? w->request : 0;
}

bool follow_task_end(JNIEnv *jni, uint64_t java_id, jclass exception)
{
    uint64_t token = task_of(java_id);
    if (!token)
        return false;
    uint64_t now = now_ns();
    follow_end_if(java_id, follow_is_outermost, 0, now);
    struct request *r = follow_request(token);
    if (r)
        follow_request_end(jni, r, token, 0, exception, now, java_id);
    return true;
}

/* ---- threads that begin and end ---- */

/*
 * Takes the request that the starter of a thread handed over to it. Returns false if there is none.
 */
static bool take_from(struct handed *h, uint64_t key, struct handed *ret)
{
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

static bool take_handed(uint64_t key, struct handed *ret)
{
    if (take_from(follow.hot + (key & (HOT_BUCKETS - 1)) * BUCKET, key, ret))
        return true;
    _Atomic uint64_t *spilled = &follow.spilled[key & (HOT_BUCKETS - 1)];
    if (!atomic_load(spilled) ||
        !take_from(follow.handed + (key & (HANDED_BUCKETS - 1)) * BUCKET, key, ret))
        return false;
    atomic_fetch_sub(spilled, 1);
    return true;
}

static uint64_t java_id(JNIEnv *jni, jthread thread)
{
    return (uint64_t)(*jni)->GetLongField(jni, thread, follow.tid);
}

void follow_thread_started(JNIEnv *jni, jthread thread)
{
    struct handed h = {0};
    if (!atomic_load(&follow.any) || !inside_enter(&follow_inside))
        return;
    uint64_t id = java_id(jni, thread), now = now_ns();
    if (take_handed(HANDED_THREAD | id, &h) && !h.request) {
        struct task *t = &follow.tasks[id & (TASKS - 1)];
        t->start = now;
        t->handed = h.time;
        t->by = h.by;
        atomic_store(&t->java_id, id);
    } else if (h.request) {
        (void)follow_hand(jni, id, h.request, WAY_THREAD, h.time, h.by);
    }
    inside_leave(&follow_inside);
}

uint64_t follow_thread_ended(JNIEnv *jni, jthread thread)
{
    if (!inside_enter(&follow_inside))
        return 0;
    uint64_t id = java_id(jni, thread);
    if (!follow_task_end(jni, id, NULL))
        follow_end_if(id, follow_is_outermost, 0, now_ns());
    struct task *t = &follow.tasks[id & (TASKS - 1)];
    if (atomic_load(&t->java_id) == id)
        atomic_store(&t->java_id, 0);
    struct work_slot s = follow_slot(id);
    if (s.in)
        follow_slot_free(s);
    follow_give_spare();
    inside_leave(&follow_inside);
    return id;
}

/* ---- the recording ---- */

void follow_find_carriers(JNIEnv *jni, jclass probe)
{
    if (!virtual_threads_may_exist(jni))
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
    jfieldID its_carrier = (*jni)->GetStaticFieldID(jni, probe, "carrier", "Ljava/lang/Class;");
    jfieldID its_scheduler =
        its_carrier ? (*jni)->GetStaticFieldID(jni, probe, "scheduler", "Ljava/lang/Object;")
                    : NULL;
    if (its_scheduler) {
        (*jni)->SetStaticObjectField(jni, probe, its_scheduler, scheduler);
        (*jni)->SetStaticObjectField(jni, probe, its_carrier, carrier);
    }
    vm_clear_exception(jni);
    if (carrier)
        (*jni)->DeleteLocalRef(jni, carrier);
    if (v)
        (*jni)->DeleteLocalRef(jni, v);
    if (scheduler)
        (*jni)->DeleteLocalRef(jni, scheduler);
}

int follow_prepare(JNIEnv *jni)
{
    _cleanup_(buf_release) struct buf why = BUF(4096);
    int r = follow.probe ? 0 : probe_define(jni, PROBE, &follow.probe, &why);
    vm_clear_exception(jni);
    if (r < 0)
        atomic_store(&follow.refused, true);
    return r;
}

bool follow_was_refused(void)
{
    return atomic_exchange(&follow.refused, false);
}

int follow_start(JNIEnv *jni, struct buf *why)
{
    follow.tid_offset = probe_field_offset(jni, "java/lang/Thread", "tid", "J");
    follow.tid = vm_field(jni, "java/lang/Thread", "tid", "J");
    if (follow.tid_offset < 0 || !follow.tid) {
        buf_string(why, "requests: the layout of java.lang.Thread is unknown");
        return -ENOTSUP;
    }
    follow_empty();
    follow_texts_forget();
    follow.session = follow.session % 127 + 1;
    follow.begun = follow.ended = follow.no_record = follow.no_slot = 0;
    follow.begun_all = follow.ended_all = 0;
    follow.overwritten = follow.any = 0;
    follow_kept_start();
    /*
     * When the VM starts, the probe is defined before the first class that calls it, because that
     * takes one to two milliseconds and many programs have no such class.
     */
    int r = vm.late ? probe_define(jni, PROBE, &follow.probe, why) : 0;
    if (r == 0 && vm.late)
        follow_find_carriers(jni, follow.probe);
    if (r == 0 && !vm.late)
        follow_open_up();
    return r;
}

void follow_open_up(void)
{
    inside_open(&follow_inside, 1);
}

void follow_stop(void)
{
    inside_close(&follow_inside);
}

bool follow_is_idle(void)
{
    return inside_is_idle(&follow_inside);
}

void follow_losses(struct jfr_writer *w)
{
    jfr_lose_total(w, LOSS_REQUEST_TABLE,
                   atomic_load(&follow.no_record) + atomic_load(&follow.no_slot));
    jfr_lose_total(w, LOSS_REQUEST_TASK, atomic_load(&follow.overwritten));
}

uint64_t follow_open(void)
{
    uint64_t ended = atomic_load(&follow.ended_all);
    return atomic_load(&follow.begun_all) - ended;
}

uint64_t follow_begun(void)
{
    return atomic_load(&follow.begun_all);
}

bool follow_is_estimated(void)
{
    return atomic_load(&follow.begun_all) != atomic_load(&follow.begun);
}

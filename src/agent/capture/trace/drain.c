/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/trace/drain.h"

#include "agent/capture/trace/objects.h"
#include "agent/capture/trace/values.h"
#include "agent/common/rounds.h"
#include "agent/instrument/probe_class.h"
#include "agent/vm/shown_class.h"
#include "agent/vm/thread_table.h"
#include "agent/vm/virtual_threads.h"
#include "agent/vm/vm.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/mapped.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { RINGS_MAX = 1024, CLASSES_MAX = (1 << 14) + 2, READERS_MAX = 2 };

static struct {
    /* protects everything except what the probes access */
    pthread_mutex_t lock;
    /* the readers of calls and of sites; NULL: none */
    const struct drain_reader *readers[READERS_MAX];
    struct trace_slot *slots;
    struct trace_ring *rings[RINGS_MAX];

    struct {
        uint64_t eetop;
        JNIEnv *env;
    } owners[RINGS_MAX]; /* the ring in each slot; eetop 0: no owner */

    struct trace_ring_lost {
        uint64_t calls, sites, results;
    } reported[RINGS_MAX]; /* what the recording already has */

    struct trace_ring_lost at_end[RINGS_MAX]; /* when recording was closed */

    _Atomic unsigned n_rings;
    char *classes[CLASSES_MAX];
    int64_t eetop, carrier, tid, name;
    jclass probe;
    /* active: the rings are used; follows: virtual threads are tracked, for their names */
    bool active, follows;
    /* shut: the recording is ending, so no calls begin; shut_rings: number of rings at that time */
    atomic_bool shut;
    _Atomic unsigned shut_rings;
    uint64_t without_ring;
    _Atomic uint64_t round_records; /* the number of records that the last finished round read */
    uint64_t late_ns; /* at the end of the VM, records are written until then; 0: not set */
    bool late;
    _Atomic uint64_t since; /* when the recording began; UINT64_MAX: it has not */
    _Atomic uint64_t until; /* when it ended; UINT64_MAX: it has not */
    struct map names;       /* java thread id -> char *, for threads that have or had a ring */
} drain = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the probe's native methods, which the VM finds by name in the library ---- */

#define NATIVE(type, name) EXPORT type JNICALL Java_java_lang_JvmscopeTrace_##name
NATIVE(jlong, constant)(JNIEnv *, jclass, jint);
NATIVE(jlong, newRing)(JNIEnv *, jclass, jlong);
NATIVE(jint, enroll)(JNIEnv *, jclass, jclass, jint, jobjectArray, jobjectArray);
NATIVE(jlongArray, ready)(JNIEnv *, jclass, jclass, jint, jobjectArray);

NATIVE(jlong, constant)(JNIEnv *jni, jclass class, jint which)
{
    const int64_t values[] = {(int64_t)(uintptr_t)drain.slots, drain.eetop, drain.carrier,
                              drain.tid, drain.name};
    return which >= 0 && which < (jint)ARRAY_SIZE(values) ? values[which] : 0;
}

/* Returns the index of an empty ring without an owner, or of a new one, or -ENOSPC or -ENOMEM. */
static int free_ring(void)
{
    for (unsigned i = 0; i < drain.n_rings; i++) {
        if (!drain.owners[i].eetop && !trace_ring_used(drain.rings[i]))
            return (int)i;
    }
    if (drain.shut || drain.n_rings == RINGS_MAX)
        return -ENOSPC;
    uint32_t share = trace_ring_share(drain.n_rings + 1);
    struct trace_ring *r = trace_ring_new(share, (uint64_t)(drain.n_rings + 1) << 40);
    if (!r)
        return -ENOMEM;
    for (unsigned i = 0; i < drain.n_rings; i++)
        atomic_store(&drain.rings[i]->room, (int32_t)MIN(share, (uint32_t)drain.rings[i]->size));
    r->index = (int32_t)drain.n_rings;
    drain.rings[drain.n_rings] = r;
    return (int)drain.n_rings++;
}

static void keep_name(const struct thread *t)
{
    uint64_t *at = t && t->name && t->java_id ? map_at(&drain.names, t->java_id, 0, NULL) : NULL;
    if (at) {
        free((char *)(uintptr_t)*at);
        *at = (uintptr_t)strdup(t->name);
    }
}

NATIVE(jlong, newRing)(JNIEnv *jni, jclass class, jlong eetop)
{
    struct trace_ring *ring = NULL;
    if (!eetop) /* called while the probe class binds its methods */
        return 0;
    struct thread *thread = threads_self(jni);
    /*
     * What the agent itself does is not recorded, nor are methods that toString() calls on its
     * thread. The thread requests a ring again with its next call.
     */
    if (vm_beginning || (thread && thread->own))
        return 0;
    pthread_mutex_lock(&drain.lock);
    keep_name(thread);
    struct trace_slot *slot = drain.active && eetop != RING_VACATED
                                  ? trace_slot_find(drain.slots, (uint64_t)eetop)
                                  : NULL;
    if (slot && atomic_load(&slot->eetop) == (uint64_t)eetop) {
        ring = slot->ring;
    } else {
        int i = slot ? free_ring() : -ENOSPC;
        if (i >= 0) {
            ring = drain.rings[i];
            ring->inside = 0;
            drain.owners[i].eetop = (uint64_t)eetop;
            drain.owners[i].env = jni;
            slot->ring = ring;
            atomic_store(&slot->eetop, (uint64_t)eetop);
        }
        drain.without_ring += i < 0 && drain.active && !drain.shut;
    }
    pthread_mutex_unlock(&drain.lock);
    return (jlong)(uintptr_t)ring;
}

/*
 * The probe's tables of classes and shapes are changed under this lock. Examining a class may run
 * Java code of the program, and thus a probe on the same thread.
 */
static pthread_mutex_t tables = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static void enter_class(JNIEnv *jni, jclass c, jint at, jobjectArray classes, jobjectArray shown)
{
    char *signature = shown_class_signature(c);
    if (signature) {
        pthread_mutex_lock(&drain.lock);
        free(drain.classes[at + 1]);
        drain.classes[at + 1] = signature;
        pthread_mutex_unlock(&drain.lock);
    }
    jlongArray shape = trace_objects_shape(jni, c, at + 1);
    (*jni)->SetObjectArrayElement(jni, shown, at, shape);
    atomic_thread_fence(memory_order_release);
    (*jni)->SetObjectArrayElement(jni, classes, at, c);
    if (shape)
        (*jni)->DeleteLocalRef(jni, shape);
}

NATIVE(jint, enroll)

(JNIEnv *jni, jclass probe, jclass c, jint at, jobjectArray classes, jobjectArray shown)
{
    enum { PLACES = 32 };

    if (!c)
        return 0;
    const jint n = (*jni)->GetArrayLength(jni, classes);
    jint number = n + 1;
    pthread_mutex_lock(&tables);
    for (int i = 0; i < PLACES && number > n; i++, at = (at + 1) & (n - 1)) {
        jobject current = (*jni)->GetObjectArrayElement(jni, classes, at);
        if (!current)
            enter_class(jni, c, at, classes, shown);
        if (!current || (*jni)->IsSameObject(jni, current, c))
            number = at + 1;
        if (current)
            (*jni)->DeleteLocalRef(jni, current);
    }
    pthread_mutex_unlock(&tables);
    return number;
}

NATIVE(jlongArray, ready)

(JNIEnv *jni, jclass probe, jclass c, jint number, jobjectArray shown)
{
    jlong kind = 0;
    if (!c)
        return NULL;
    pthread_mutex_lock(&tables);
    jlongArray shape = (*jni)->GetObjectArrayElement(jni, shown, number - 1);
    if (shape)
        (*jni)->GetLongArrayRegion(jni, shape, 0, 1, &kind);
    if (shape && kind == SHAPE_UNREADY) {
        (*jni)->DeleteLocalRef(jni, shape);
        shape = trace_objects_shape(jni, c, number);
        (*jni)->SetObjectArrayElement(jni, shown, number - 1, shape);
    }
    pthread_mutex_unlock(&tables);
    return shape;
}

/* Lets another thread use the slot of a thread that has ended and, once it is empty, its ring. */
static void thread_ended(struct thread *t, JNIEnv *jni)
{
    pthread_mutex_lock(&drain.lock);
    for (unsigned i = 0; i < drain.n_rings; i++) {
        if (drain.owners[i].env != jni || !drain.owners[i].eetop)
            continue;
        struct trace_slot *slot = trace_slot_find(drain.slots, drain.owners[i].eetop);
        if (slot && slot->ring == drain.rings[i])
            atomic_store(&slot->eetop, RING_VACATED);
        drain.owners[i].eetop = 0;
    }
    pthread_mutex_unlock(&drain.lock);
}

static const struct thread_listener listener = {.ended = thread_ended};

bool drain_is_used(struct str name)
{
    /* classes that the probes call themselves, or indirectly */
    static const char *const excluded[] = {
        "java/lang/String", "java/lang/System",         "java/lang/Float",
        "java/lang/Double", "java/lang/StringLatin1",   "java/lang/StringUTF16",
        "sun/misc/Unsafe",  "jdk/internal/misc/Unsafe", "jdk/internal/util/Preconditions"};
    for (size_t i = 0; i < ARRAY_SIZE(excluded); i++) {
        if (str_is(name, excluded[i]))
            return true;
    }
    return false;
}

const char *drain_class(uint32_t number)
{
    return number < CLASSES_MAX ? drain.classes[number] : NULL;
}

const char *drain_thread_name(int64_t java_id)
{
    static char virtual_name[128]; /* valid until the next call */
    const uint64_t *at = map_get(&drain.names, (uint64_t)java_id);
    if (at)
        return (const char *)(uintptr_t)*at;
    return drain.follows &&
                   virtual_thread_name((uint64_t)java_id, virtual_name, sizeof(virtual_name))
               ? virtual_name
               : NULL;
}

const char *drain_thread_written(int64_t java_id)
{
    const char *name = drain_thread_name(java_id);
    return name && !*name && !map_get(&drain.names, (uint64_t)java_id) ? NULL : name;
}

jclass drain_probe(void)
{
    return drain.probe;
}

/* Stores the name that a record gives to a platform thread. Requires the lock. */
static void rename_thread(const struct trace_record *r)
{
    uint32_t count[2] = {0}; /* the length and the characters that follow */
    _cleanup_(buf_release) struct buf name = BUF(8 << 10);
    size_t room = r->size - sizeof(*r);
    if (room >= sizeof(count))
        memcpy(count, r->values, sizeof(count));
    if (room < sizeof(count) + count[1] * sizeof(uint16_t))
        return;
    trace_put_utf16(&name, (const uint16_t *)(const void *)(r->values + sizeof(count)), count[1]);
    char *copy = buf_error(&name) ? NULL : strdup(buf_str(&name));
    uint64_t *at = copy ? map_at(&drain.names, (uint64_t)r->thread, 0, NULL) : NULL;
    if (!at) {
        free(copy);
        return;
    }
    free((char *)(uintptr_t)*at);
    *at = (uintptr_t)copy;
}

/* Passes a record to its reader. Requires the lock. */
static bool hand_over(struct jfr_writer *w, const struct trace_record *r)
{
    if (r->kind == RECORD_NAME) {
        rename_thread(r);
        return true;
    }
    const struct drain_reader *reader = drain.readers[r->kind >= RECORD_SITE];
    return !reader || reader->record(w, r);
}

enum { WATCH = 64 }; /* records after which the time is checked again */

/* A ring with records to be read. */
struct place {
    struct trace_cursor cursor;
    const struct trace_record *record; /* the next one */
};

struct round {
    struct jfr_writer *w;
    const struct session *s; /* whose duration may end meanwhile; NULL: it has ended */
    uint64_t up_to;          /* records that are later than this are left for the next round */
    uint64_t records;
    bool was_shut; /* the recording was over when the round began */
    bool ends;     /* it has ended since: the rest is read after the other captures' counts */
    struct place *places; /* a heap; the ring with the earliest record comes first */
    unsigned n;
};

static void give_up(struct round *round)
{
    if (drain.readers[0] && drain.readers[0]->unmatched && drain.since != UINT64_MAX)
        drain.readers[0]->unmatched(round->w);
}

/* Returns whether the end of the VM has waited long enough: other threads may still fill rings. */
static bool is_late(uint64_t records)
{
    enum { LATE_MS = 2000 };

    if (vm.dying && records % WATCH == 0) {
        drain.late_ns = drain.late_ns ? drain.late_ns : now_ns() + LATE_MS * NS_PER_MS;
        drain.late = drain.late || now_ns() > drain.late_ns;
    }
    return drain.late;
}

static void read_one(struct round *round, const struct trace_record *r)
{
    if (++round->records % WATCH == 0 && round->s) {
        session_watch_time(round->s);
        round->ends = !round->was_shut && session_is_shut();
    }
    if (is_late(round->records) && r->kind >= 0)
        jfr_lose_at(round->w, r->kind < RECORD_SITE ? LOSS_TRACE_LATE : LOSS_LOG_LATE, r->time_ns);
    else if (!drain.late && !hand_over(round->w, r))
        give_up(round);
}

static struct trace_ring_lost lost_of(const struct trace_ring *r)
{
    return (struct trace_ring_lost){atomic_load(&r->lost), atomic_load(&r->lost_sites),
                                    atomic_load(&r->lost_results)};
}

/*
 * Reports to the recording what was lost because the rings had no room; each ring's counts are read
 * together with its records. Calls that begin after the end of the recording are not part of it.
 * Requires the lock.
 */
static void report_lost(struct jfr_writer *w)
{
    struct trace_ring_lost more = {0};
    for (unsigned i = 0; i < drain.n_rings; i++) {
        struct trace_ring_lost now = lost_of(drain.rings[i]), *reported = &drain.reported[i];
        if (drain.shut && i < drain.shut_rings) {
            now.calls = MAX(drain.at_end[i].calls, reported->calls);
            now.sites = MAX(drain.at_end[i].sites, reported->sites);
        }
        more.calls += now.calls - reported->calls;
        more.sites += now.sites - reported->sites;
        more.results += now.results - reported->results;
        *reported = now;
    }
    if (drain.since == UINT64_MAX)
        return;
    jfr_lose_since(w, LOSS_TRACE_BUFFER, more.calls);
    jfr_lose_since(w, LOSS_LOG_BUFFER, more.sites);
    jfr_lose_since(w, LOSS_TRACE_RESULT, more.results);
    trace_objects_report(w);
    jfr_lose_total(w, drain.readers[0] ? LOSS_TRACE_NO_BUFFER : LOSS_LOG_NO_BUFFER,
                   drain.without_ring);
}

/* Finds the next record of a ring. Returns false if there is none up to the end of the round. */
static bool next_record(struct round *round, struct place *p)
{
    bool broken = false;
    p->record = trace_cursor_record(&p->cursor, &broken);
    if (broken)
        give_up(round);
    if (p->record && p->record->time_ns <= round->up_to)
        return true;
    trace_cursor_end(&p->cursor);
    return false;
}

static void sift_down(struct round *round, unsigned i)
{
    struct place *p = round->places, moved = p[i];
    for (unsigned child; (child = 2 * i + 1) < round->n; i = child) {
        if (child + 1 < round->n && p[child + 1].record->time_ns < p[child].record->time_ns)
            child++;
        if (moved.record->time_ns <= p[child].record->time_ns)
            break;
        p[i] = p[child];
    }
    p[i] = moved;
}

/*
 * Reads the records of all rings in chronological order, because a virtual thread moves from ring
 * to ring with its carriers, and its calls must nest as they did. It cannot move before its record
 * is complete. If a record is still incomplete when the rings are examined, what its thread writes
 * next is later than `up_to`.
 */
static void drain_rings(struct jfr_writer *w, const struct session *s)
{
    static struct place places[RINGS_MAX]; /* protected by the lock */
    struct round round = {
        .w = w, .s = s, .up_to = now_ns(), .was_shut = session_is_shut(), .places = places};
    for (unsigned i = 0; i < drain.n_rings; i++) {
        trace_cursor_begin(&places[round.n].cursor, drain.rings[i]);
        round.n += next_record(&round, &places[round.n]);
    }
    for (unsigned i = round.n / 2; i-- > 0;)
        sift_down(&round, i);
    while (round.n && !round.ends && !(s && atomic_load(&session_end_waits))) {
        read_one(&round, places[0].record);
        trace_cursor_next(&places[0].cursor);
        if (!next_record(&round, &places[0]))
            places[0] = places[--round.n];
        sift_down(&round, 0);
    }
    for (unsigned i = 0; i < round.n; i++)
        trace_cursor_end(&places[i].cursor);
    drain.round_records = round.records;
    report_lost(w);
}

void drain_begin(void)
{
    pthread_mutex_lock(&drain.lock);
    if (drain.since == UINT64_MAX) {
        drain.without_ring = 0;
        drain.since = now_ns();
    }
    pthread_mutex_unlock(&drain.lock);
}

bool drain_is_recorded(uint64_t began_ns, uint64_t ended_ns)
{
    return ended_ns >= drain.since && began_ns <= drain.until;
}

static bool is_busy(void)
{
    bool busy = false;
    for (unsigned i = 0; i < drain.n_rings; i++)
        busy = busy || trace_ring_used(drain.rings[i]) > RING_ROOM_MIN / 4;
    return busy;
}

bool drain_is_overloaded(void)
{
    /*
     * At less than 100,000 records per second, of which a round reads a twentieth, the buffers have
     * enough room until everything is written.
     */
    enum { FLOOD = 5000 };

    return drain.active && (drain.round_records > FLOOD || is_busy());
}

void drain_shut(uint64_t end_ns)
{
    bool first = !drain.shut;
    unsigned n = drain.n_rings;
    if (first)
        drain.until = end_ns;
    for (unsigned i = 0; i < n; i++) {
        if (first)
            drain.at_end[i] = lost_of(drain.rings[i]);
        atomic_store(&drain.rings[i]->room, 0);
    }
    drain.shut_rings = first ? n : drain.shut_rings;
    drain.shut = true;
}

void drain_round(struct session *s, JNIEnv *jni)
{
    struct jfr_writer *w = s->out.jfr;
    trace_objects_work(s, jni);
    pthread_mutex_lock(&drain.lock);
    /* Other rows begin after this one, and the recording states when all of them had begun. */
    if (drain.since && drain.since != UINT64_MAX)
        drain.since = MAX(drain.since, s->started_ns);
    drain_rings(w, s);
    if (is_busy())
        rounds_request();
    pthread_mutex_unlock(&drain.lock);
}

/* Called for the first user: finds field offsets, creates the slots and empties the rings. */
static int begin(JNIEnv *jni, struct buf *why)
{
    drain.eetop = probe_field_offset(jni, "java/lang/Thread", "eetop", "J");
    drain.tid = probe_field_offset(jni, "java/lang/Thread", "tid", "J");
    drain.name = MAX(probe_field_offset(jni, "java/lang/Thread", "name", "Ljava/lang/String;"), 0);
    drain.carrier = 0;
    if (vm.version >= 19)
        drain.carrier = MAX(probe_field_offset(jni, "java/lang/VirtualThread", "carrierThread",
                                               "Ljava/lang/Thread;"),
                            0);
    if (drain.eetop < 0 || drain.tid < 0) {
        buf_string(why, "trace: the layout of java.lang.Thread is unknown");
        return -ENOTSUP;
    }
    if (!drain.slots && !(drain.slots = mapped_new(RING_SLOTS * sizeof(*drain.slots)))) {
        buf_string(why, "trace: out of memory");
        return -ENOMEM;
    }
    pthread_mutex_lock(&drain.lock);
    drain.active = true;
    drain.shut = false;
    drain.round_records = 0;
    drain.without_ring = 0;
    drain.since = vm.late ? UINT64_MAX : 0;
    drain.until = UINT64_MAX;
    /* Each thread requests a ring again, which also reads its name. */
    memset(drain.slots, 0, RING_SLOTS * sizeof(struct trace_slot));
    memset(drain.owners, 0, sizeof(drain.owners));
    /* exits of calls that began in an earlier recording */
    for (unsigned i = 0; i < drain.n_rings; i++) {
        struct trace_ring *r = drain.rings[i];
        atomic_store(&r->tail, atomic_load(&r->head));
        atomic_store(&r->room, (int32_t)MIN(trace_ring_share(drain.n_rings), (uint32_t)r->size));
        r->open = 0;
        r->inside = 0;
        drain.reported[i] = lost_of(r);
    }
    pthread_mutex_unlock(&drain.lock);
    drain.follows = virtual_threads_on(jni); /* virtual_threads.h is still needed for names */
    int r = probe_define(jni, TRACE_PROBE, &drain.probe, why);
    return r < 0 ? r : threads_listen(&listener);
}

static void forget(JNIEnv *jni)
{
    jmethodID m = drain.probe ? (*jni)->GetStaticMethodID(jni, drain.probe, "forget", "()V") : NULL;
    pthread_mutex_lock(&tables);
    if (m)
        (*jni)->CallStaticVoidMethod(jni, drain.probe, m);
    pthread_mutex_unlock(&tables);
    vm_clear_exception(jni);
}

/* Undoes begin(), after the last user and after a failed start of the first one. */
static void end(JNIEnv *jni)
{
    drain.active = false;
    threads_unlisten(&listener);
    if (drain.follows)
        virtual_threads_off();
    drain.follows = false;
    pthread_mutex_lock(&drain.lock);
    uint64_t key, value;
    for (size_t i = 0; map_next(&drain.names, &i, &key, &value);)
        free((char *)(uintptr_t)value);
    map_release(&drain.names);
    pthread_mutex_unlock(&drain.lock);
    forget(jni);
    trace_objects_end(jni);
}

int drain_open(const struct drain_reader *reader, struct session *s, JNIEnv *jni, struct buf *why)
{
    bool first = !drain.readers[!reader->sites];
    int r = first ? begin(jni, why) : 0;
    if (r == 0)
        r = trace_objects_begin(s, jni, why);
    if (r < 0 && first)
        end(jni);
    if (r < 0)
        return r;
    pthread_mutex_lock(&drain.lock);
    drain.readers[reader->sites] = reader;
    pthread_mutex_unlock(&drain.lock);
    return 0;
}

void drain_close(const struct drain_reader *reader, struct jfr_writer *w, JNIEnv *jni)
{
    if (drain.readers[reader->sites] != reader)
        return;
    pthread_mutex_lock(&drain.lock);
    drain_rings(w, NULL);
    drain.readers[reader->sites] = NULL;
    bool last = !drain.readers[!reader->sites];
    drain.active = !last;
    pthread_mutex_unlock(&drain.lock);
    if (last)
        end(jni);
}

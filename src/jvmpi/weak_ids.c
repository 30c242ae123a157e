/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gives ids to new objects without tagging them. A tag costs three times as much as a weak
 * reference, and most objects die young. Each thread keeps weak references to the objects that it
 * allocated, in chunks with consecutive ids. After a collection they are settled: dead objects are
 * reported, live ones get their id as a tag. Until then, code that finds an object without a tag
 * searches for it here.
 *
 * Reading a weak reference in order to tag the object keeps the object alive where a collection
 * marks concurrently (ZGC, Shenandoah, G1's old generation), so its end would come one collection
 * late. Therefore objects are tagged only after a few collections, unless there are many.
 *
 * A chunk is filled only by its thread and emptied only under the lock of ids.c. A thread adds an
 * object while it holds its buffer, and calls nothing of the VM meanwhile, so that the agent cannot
 * suspend it there.
 */
#include "jvmpi/weak_ids.h"
#include "jvmpi/ids.h"
#include "jvmpi/lookup.h"
#include "jvmpi/memory.h"
#include "jvmpi/references.h"

#include "base/map.h"
#include "base/vec.h"

#include <sched.h>
#include <stdlib.h>

/*
 * An object takes a word here and one in the VM: at most 256 MB, a third of what tags would take.
 */
enum {
    CHUNK = 1024,
    CHUNKS_MAX = 16384,
    RECENT = 8,
    TAG_COMPARES = 25 /* the number of comparisons that take as long as setting one tag */
};

enum {
    CHUNKS_MANY = 2048,
    TAG_AFTER = 8 /* collections */,
    CHUNKS_AT_ONCE = 64 /* while the lock is held once */
};

struct chunk {
    struct chunk *_Atomic next;
    jlong first; /* the id of refs[0] */
    _Atomic uint32_t n;
    uint32_t settled; /* number of the n references that are settled */
    uint64_t born;    /* how often chunks had been settled when it was created */
    jweak refs[CHUNK];
};

struct weak_buffer {
    /* list of all, which never shrinks; the buffer of an ended thread gets a new owner */
    struct weak_buffer *next;
    atomic_bool owned, held;
    struct chunk *head;         /* first chunk that is not completely settled */
    struct chunk *_Atomic tail; /* the chunk that the owner fills */
    /*
     * The number of sweeps at the owner's last allocation. If there has been another sweep, the
     * next object is not added to a chunk.
     */
    uint64_t seen;
};

static struct weak_buffer *_Atomic buffers;
static atomic_int chunks, sweeping;
static _Atomic uint64_t settlings;
static _Atomic uint64_t sweeps = 1; /* sweeps completed */

static void hold(struct weak_buffer *n)
{
    while (atomic_exchange_explicit(&n->held, true, memory_order_acquire))
        sched_yield();
}

static void release(struct weak_buffer *n)
{
    atomic_store_explicit(&n->held, false, memory_order_release);
}

/* ---- a thread's own chunks ---- */

static pthread_key_t at_end;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void leave(void *weak_buffer)
{
    my.weak_buffer = NULL;
    atomic_store(&((struct weak_buffer *)weak_buffer)->owned, false);
}

static void make_key(void)
{
    (void)pthread_key_create(&at_end, leave);
}

/* Chunks by their first id. At most one begins between two multiples of CHUNK. */
static pthread_mutex_t numbers_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct map numbers;

static struct chunk *chunk_from(jlong number)
{
    pthread_mutex_lock(&numbers_mutex);
    const uint64_t *c = map_get(&numbers, (uint64_t)number);
    struct chunk *found = c ? (struct chunk *)(uintptr_t)*c : NULL;
    pthread_mutex_unlock(&numbers_mutex);
    return found;
}

static int enter_chunk(struct chunk *c)
{
    pthread_mutex_lock(&numbers_mutex);
    int r = map_put(&numbers, (uint64_t)(c->first / CHUNK), (uintptr_t)c);
    pthread_mutex_unlock(&numbers_mutex);
    return r;
}

static void free_chunk(struct chunk *c)
{
    pthread_mutex_lock(&numbers_mutex);
    (void)map_remove(&numbers, (uint64_t)(c->first / CHUNK));
    pthread_mutex_unlock(&numbers_mutex);
    free(c);
    atomic_fetch_sub(&chunks, 1);
}

/* Returns NULL when the limit is reached or memory runs out. */
static struct chunk *new_chunk(void)
{
    struct chunk *c = NULL;
    if (atomic_fetch_add(&chunks, 1) < CHUNKS_MAX)
        c = malloc(sizeof(*c));
    if (!c) {
        atomic_fetch_sub(&chunks, 1);
        return NULL;
    }
    atomic_init(&c->next, NULL);
    atomic_init(&c->n, 0);
    c->settled = 0;
    c->born = atomic_load(&settlings);
    c->first = layer_next_ids(CHUNK);
    if (enter_chunk(c)) {
        free(c);
        atomic_fetch_sub(&chunks, 1);
        return NULL;
    }
    return c;
}

static struct weak_buffer *adopt(void)
{
    struct weak_buffer *n = atomic_load(&buffers);
    pthread_once(&once, make_key);
    while (n && atomic_exchange(&n->owned, true))
        n = n->next;
    if (!n) {
        n = calloc(1, sizeof(*n));
        struct chunk *c = n ? new_chunk() : NULL;
        if (!c) {
            free(n);
            return NULL;
        }
        atomic_store(&n->owned, true);
        n->head = c;
        atomic_init(&n->tail, c);
        n->next = atomic_load(&buffers);
        while (!atomic_compare_exchange_weak(&buffers, &n->next, n))
            ;
    }
    n->seen = 0; /* from the previous owner */
    my.weak_buffer = n;
    (void)pthread_setspecific(at_end, n);
    return n;
}

/* Returns a chunk with room for one more object, or NULL. */
static struct chunk *room(struct weak_buffer *n)
{
    struct chunk *c = atomic_load_explicit(&n->tail, memory_order_relaxed);
    if (likely(atomic_load_explicit(&c->n, memory_order_relaxed) < CHUNK))
        return c;
    struct chunk *full = c;
    c = new_chunk();
    if (c) {
        /*
         * The order matters: a chunk that has a next one may be freed, so it must not be a tail any
         * more.
         */
        atomic_store_explicit(&n->tail, c, memory_order_release);
        atomic_store_explicit(&full->next, c, memory_order_release);
    }
    return c;
}

jobjectID weak_ids_add(const struct my *own, JNIEnv *env, jobject object)
{
    struct weak_buffer *n = own->weak_buffer ? own->weak_buffer : adopt();
    struct chunk *c = n ? room(n) : NULL;
    jweak ref = c ? layer_weak(env, object) : NULL;
    if (unlikely(!ref)) {
        if (c)
            vm_clear_exception(env);
        return NULL;
    }
    uint32_t i = atomic_load_explicit(&c->n, memory_order_relaxed);
    hold(n);
    bool swept = atomic_load(&sweeping);
    uint64_t now = atomic_load(&sweeps);
    swept |= now != n->seen;
    n->seen = now;
    if (!swept) {
        c->refs[i] = ref;
        atomic_store_explicit(&c->n, i + 1, memory_order_release);
    }
    release(n);
    if (likely(!swept))
        return (jobjectID)(intptr_t)(c->first + i);
    layer_delete_weak(env, ref);
    return NULL;
}

/* ---- settling ---- */

typedef VEC(jlong) id_vec;

static void forget(JNIEnv *env, struct chunk *c, uint32_t i)
{
    layer_delete_weak(env, c->refs[i]);
    c->refs[i] = NULL;
}

/* Tags the object if it is alive. Returns false otherwise. */
static bool tag_object(JNIEnv *env, struct chunk *c, uint32_t i)
{
    jobject object = (*env)->NewLocalRef(env, c->refs[i]);
    if (!object)
        return false;
    (void)(*vm.ti)->SetTag(vm.ti, object, c->first + i);
    lookup_add(c->first + i, object);
    (*env)->DeleteLocalRef(env, object);
    return true;
}

/* Collects dead objects and, with tag, tags the live ones. */
static void settle_chunk(JNIEnv *env, struct chunk *c, bool tag, id_vec *dead)
{
    uint32_t n = atomic_load_explicit(&c->n, memory_order_acquire);
    for (uint32_t i = c->settled; i < n; i++) {
        if (!c->refs[i])
            continue;
        bool lives = tag ? tag_object(env, c, i) : !(*env)->IsSameObject(env, c->refs[i], NULL);
        if (!lives)
            (void)!vec_push(dead, c->first + i);
        if (tag || !lives)
            forget(env, c, i);
    }
    while (c->settled < n && !c->refs[c->settled])
        c->settled++;
}

/*
 * Settles some of the chunks that begin after *after, up to an id. Returns false when there is none
 * left.
 */
static bool settle_some(JNIEnv *env, struct weak_buffer *n, jlong *after, jlong up_to, bool tag)
{
    id_vec dead = {0};
    unsigned done = 0;
    uint64_t now = atomic_load(&settlings);
    struct chunk *c = n->head, *before = NULL, *next;
    for (; c && c->first <= up_to && done < CHUNKS_AT_ONCE; c = next) {
        next = atomic_load_explicit(&c->next, memory_order_acquire);
        if (c->first > *after) {
            *after = c->first;
            settle_chunk(env, c, tag || now - c->born > TAG_AFTER, &dead);
            done++;
        }
        /*
         * A chunk that has a next one is not extended; the thread continues to fill the last one.
         */
        if (next && c->settled == CHUNK) {
            if (before)
                atomic_store_explicit(&before->next, next, memory_order_release);
            else
                n->head = next;
            free_chunk(c);
        } else {
            before = c;
        }
    }
    if (dead.len)
        memory_ended(dead.data, dead.len);
    vec_release(&dead);
    return c && c->first <= up_to;
}

static void settle_all(JNIEnv *env)
{
    jlong up_to = layer_last_id_given();
    for (struct weak_buffer *n = atomic_load(&buffers); n; n = n->next)
        for (jlong after = 0; settle_some(env, n, &after, up_to, true);)
            ;
}

void weak_ids_settle(JNIEnv *env, jlong up_to, bool may_tag)
{
    bool tag = may_tag && atomic_load(&chunks) > CHUNKS_MANY;
    atomic_fetch_add(&settlings, may_tag);
    for (struct weak_buffer *n = atomic_load(&buffers); n; n = n->next) {
        jlong after = 0;
        for (bool more = true; more;) {
            ids_lock();
            more = settle_some(env, n, &after, up_to, tag);
            ids_unlock();
        }
    }
}

/* ---- lookups before settling ---- */

static uint64_t compared; /* comparisons since all chunks were last settled */

/*
 * Compares an object with up to `most` objects of a chunk, the newest first. Returns its id, or 0
 * if it is not among them.
 */
static jlong find_in(JNIEnv *env, struct chunk *c, jobject object, uint32_t most, bool tag)
{
    for (uint32_t i = atomic_load_explicit(&c->n, memory_order_acquire);
         i-- > c->settled && most-- > 0; compared++) {
        if (c->refs[i] && (*env)->IsSameObject(env, c->refs[i], object)) {
            if (tag && tag_object(env, c, i))
                forget(env, c, i);
            return c->first + i;
        }
    }
    return 0;
}

jlong weak_ids_find(jobject object)
{
    JNIEnv *env = atomic_load(&buffers) ? vm_jni() : NULL;
    jlong id = env && my.weak_buffer
                   ? find_in(env, atomic_load(&my.weak_buffer->tail), object, RECENT, false)
                   : 0;
    if (!env || id)
        return id;
    /* Comparing with all objects is faster than tagging all, but not when it is repeated. */
    if (compared > (uint64_t)atomic_load(&chunks) * CHUNK * TAG_COMPARES) {
        compared = 0;
        settle_all(env);
        return (*vm.ti)->GetTag(vm.ti, object, &id) ? 0 : id;
    }
    /*
     * First compare with what each thread allocated last, because agents request new objects, such
     * as new threads.
     */
    for (struct weak_buffer *n = atomic_load(&buffers); n && !id; n = n->next)
        id = find_in(env, atomic_load(&n->tail), object, CHUNK, true);
    for (struct weak_buffer *n = atomic_load(&buffers); n && !id; n = n->next)
        for (struct chunk *c = n->head; c && !id;
             c = atomic_load_explicit(&c->next, memory_order_acquire))
            id = find_in(env, c, object, CHUNK, true);
    return id;
}

/* Returns the chunk that holds the object with this id and its index there, or NULL. */
static struct chunk *place_of(jlong id, uint32_t *ret)
{
    for (jlong number = id / CHUNK; number >= 0 && number >= id / CHUNK - 1; number--) {
        struct chunk *c = chunk_from(number);
        jlong i = c ? id - c->first : -1;
        if (i >= 0 && i < CHUNK) {
            *ret = (uint32_t)i;
            return *ret < atomic_load_explicit(&c->n, memory_order_acquire) && c->refs[i] ? c
                                                                                          : NULL;
        }
    }
    return NULL;
}

jobject weak_ids_object(JNIEnv *env, jlong id)
{
    uint32_t i;
    const struct chunk *c = place_of(id, &i);
    return c ? (*env)->NewLocalRef(env, c->refs[i]) : NULL;
}

void weak_ids_tag(JNIEnv *env, jlong id)
{
    uint32_t i;
    struct chunk *c = place_of(id, &i);
    if (c && tag_object(env, c, i))
        forget(env, c, i);
}

void weak_ids_sweep_begin(void)
{
    JNIEnv *env = vm_jni();
    atomic_fetch_add(&sweeping, 1);
    for (struct weak_buffer *n = atomic_load(&buffers); n; n = n->next) {
        hold(n); /* from now on its owner adds no further objects */
        release(n);
    }
    if (env)
        settle_all(env);
}

void weak_ids_sweep_end(void)
{
    atomic_fetch_add(&sweeps, 1);
    atomic_fetch_sub(&sweeping, 1);
}

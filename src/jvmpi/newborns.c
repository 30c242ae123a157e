/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects that have an id and no tag. A tag costs three times what a weak reference does, and most objects die young: each
 * thread keeps weak references to what it allocated, in chunks whose ids follow one another. Behind a collection they are
 * settled: what is gone ends, what lives gets its id as a tag. Before that whoever meets an object without a tag looks for it
 * among them.
 *
 * To look at one that lives, for a tag, keeps it alive where a collection marks beside the program (ZGC, Shenandoah, G1's old
 * generation): it would end one collection late. So a few collections go by before that, unless there are many.
 *
 * A chunk is filled by its thread alone and emptied under the lock of ids.c alone. A thread puts an object into it with its
 * nursery held, where it calls nothing of the VM: it may be suspended by the agent, but not there.
 */
#include "jvmpi/newborns.h"

#include "base/vec.h"

#include <sched.h>
#include <stdlib.h>

/* For each object a word here and one in the VM: at most 256 MB, a third of what tags would take. */
enum { CHUNK = 1024, CHUNKS_MAX = 16384, RECENT = 8, TAG_COMPARES = 25 /* in the time of one tag */ };

enum { CHUNKS_MANY = 2048, TAG_AFTER = 8 /* collections */, CHUNKS_AT_ONCE = 64 /* under the lock */ };

struct chunk {
    struct chunk *_Atomic next;
    jlong first; /* the id of refs[0] */
    _Atomic uint32_t n;
    uint32_t settled; /* of n */
    uint64_t born;    /* settlings before */
    jweak refs[CHUNK];
};

struct nursery {
    struct nursery *next; /* of all, for ever; a thread that ends leaves its own to another */
    atomic_bool owned, held;
    struct chunk *head;         /* not settled as a whole */
    struct chunk *_Atomic tail; /* the owner's */
    uint64_t seen; /* sweeps at the owner's last allocation, which was before that of any other object it is told of */
};

static struct nursery *_Atomic nurseries;
static atomic_int chunks, sweeping;
static _Atomic uint64_t settlings;
static _Atomic uint64_t sweeps = 1; /* that have ended */
static __thread struct nursery *mine;

static void hold(struct nursery *n)
{
    while (atomic_exchange_explicit(&n->held, true, memory_order_acquire))
        sched_yield();
}

static void release(struct nursery *n)
{
    atomic_store_explicit(&n->held, false, memory_order_release);
}

/* ---- a thread's own ---- */

static pthread_key_t at_end;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void leave(void *nursery)
{
    mine = NULL;
    atomic_store(&((struct nursery *)nursery)->owned, false);
}

static void make_key(void)
{
    (void)pthread_key_create(&at_end, leave);
}

/* NULL: as many as may be, or no memory. */
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
    c->first = next_ids(CHUNK);
    return c;
}

static struct nursery *adopt(void)
{
    struct nursery *n = atomic_load(&nurseries);
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
        n->next = atomic_load(&nurseries);
        while (!atomic_compare_exchange_weak(&nurseries, &n->next, n))
            ;
    }
    n->seen = 0; /* the last owner's */
    mine = n;
    (void)pthread_setspecific(at_end, n);
    return n;
}

/* The chunk that has room for one more; NULL: none. */
static struct chunk *room(struct nursery *n)
{
    struct chunk *c = atomic_load_explicit(&n->tail, memory_order_relaxed);
    if (likely(atomic_load_explicit(&c->n, memory_order_relaxed) < CHUNK))
        return c;
    struct chunk *full = c;
    c = new_chunk();
    if (c) {
        /* in this order: what has a next one may be freed, and is then nobody's tail */
        atomic_store_explicit(&n->tail, c, memory_order_release);
        atomic_store_explicit(&full->next, c, memory_order_release);
    }
    return c;
}

jobjectID newborn_id(JNIEnv *env, jobject object)
{
    struct nursery *n = mine ? mine : adopt();
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

/* Tags it if it lives; false: it does not. */
static bool tag_object(JNIEnv *env, struct chunk *c, uint32_t i)
{
    jobject object = (*env)->NewLocalRef(env, c->refs[i]);
    if (!object)
        return false;
    (void)(*vm.ti)->SetTag(vm.ti, object, c->first + i);
    (*env)->DeleteLocalRef(env, object);
    return true;
}

/* Those that are gone; with tag the living too. */
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

/* Some chunks of those that begin behind *after and up to an id; false: there is no other. */
static bool settle_some(JNIEnv *env, struct nursery *n, jlong *after, jlong up_to, bool tag)
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
        /* with a next one nothing is added to it any more; the last one its thread goes on filling */
        if (next && c->settled == CHUNK) {
            if (before)
                atomic_store_explicit(&before->next, next, memory_order_release);
            else
                n->head = next;
            free(c);
            atomic_fetch_sub(&chunks, 1);
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
    jlong up_to = last_id_given();
    for (struct nursery *n = atomic_load(&nurseries); n; n = n->next)
        for (jlong after = 0; settle_some(env, n, &after, up_to, true);)
            ;
}

void newborns_settle(JNIEnv *env, jlong up_to, bool may_tag)
{
    bool tag = may_tag && atomic_load(&chunks) > CHUNKS_MANY;
    atomic_fetch_add(&settlings, may_tag);
    for (struct nursery *n = atomic_load(&nurseries); n; n = n->next) {
        jlong after = 0;
        for (bool more = true; more;) {
            ids_lock();
            more = settle_some(env, n, &after, up_to, tag);
            ids_unlock();
        }
    }
}

/* ---- asked for before they are settled ---- */

static uint64_t compared; /* with newborns since all were settled */

/* Looks at up to so many of a chunk, the newest first. 0: not there. */
static jlong find_in(JNIEnv *env, struct chunk *c, jobject object, uint32_t most, bool tag)
{
    for (uint32_t i = atomic_load_explicit(&c->n, memory_order_acquire); i-- > c->settled && most-- > 0; compared++) {
        if (c->refs[i] && (*env)->IsSameObject(env, c->refs[i], object)) {
            if (tag && tag_object(env, c, i))
                forget(env, c, i);
            return c->first + i;
        }
    }
    return 0;
}

jlong newborn_find(jobject object)
{
    JNIEnv *env = atomic_load(&nurseries) ? vm_jni() : NULL;
    jlong id = env && mine ? find_in(env, atomic_load(&mine->tail), object, RECENT, false) : 0;
    if (!env || id)
        return id;
    /* to compare it with all is quicker than to tag all, but not when it is done again and again */
    if (compared > (uint64_t)atomic_load(&chunks) * CHUNK * TAG_COMPARES) {
        compared = 0;
        settle_all(env);
        return (*vm.ti)->GetTag(vm.ti, object, &id) ? 0 : id;
    }
    /* first what each thread made last: new threads are asked for, say */
    for (struct nursery *n = atomic_load(&nurseries); n && !id; n = n->next)
        id = find_in(env, atomic_load(&n->tail), object, CHUNK, true);
    for (struct nursery *n = atomic_load(&nurseries); n && !id; n = n->next)
        for (struct chunk *c = n->head; c && !id; c = atomic_load_explicit(&c->next, memory_order_acquire))
            id = find_in(env, c, object, CHUNK, true);
    return id;
}

jobject newborn_object(JNIEnv *env, jlong id)
{
    for (const struct nursery *n = atomic_load(&nurseries); n; n = n->next)
        for (const struct chunk *c = n->head; c; c = atomic_load_explicit(&c->next, memory_order_acquire)) {
            jlong i = id - c->first;
            if (i >= c->settled && i < atomic_load_explicit(&c->n, memory_order_acquire) && c->refs[i])
                return (*env)->NewLocalRef(env, c->refs[i]);
        }
    return NULL;
}

void newborns_sweep_begin(void)
{
    JNIEnv *env = vm_jni();
    atomic_fetch_add(&sweeping, 1);
    for (struct nursery *n = atomic_load(&nurseries); n; n = n->next) {
        hold(n); /* what its thread has not put down yet it will not put down */
        release(n);
    }
    if (env)
        settle_all(env);
}

void newborns_sweep_end(void)
{
    atomic_fetch_add(&sweeps, 1);
    atomic_fetch_sub(&sweeping, 1);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the probes of exact counts call: the natives of java/lang/JvmscopeSites, and the VM's events
 * of objects and threads.
 */
#include "agent/capture/alloc/exact_probes.h"

#include "agent/capture/alloc/alloc.h"
#include "agent/capture/alloc/known_sites.h"
#include "agent/vm/dump.h"
#include "agent/vm/shown_class.h"

#include <errno.h>
#include <string.h>

#define NEVER ((uint64_t)INT64_MAX)

/*
 * PASSED_MAX: how many other objects of a point may be finished before an object is given up.
 * PICKS: how many objects a thread may be waiting for.
 */
enum { PICKS = 32, PASSED_MAX = 4096 };

struct alloc_exact alloc_exact;
__thread bool alloc_busy;

/*
 * Number of threads with a point whose next object is to be tracked. The probe after a constructor
 * reads this first.
 */
static uint32_t n_picking;

uint32_t alloc_exact_awaiting(void)
{
    return __atomic_load_n(&n_picking, __ATOMIC_RELAXED);
}

/*
 * Only this thread writes this; it holds the sites' lock while it writes what other threads read.
 */
static __thread struct {
    struct alloc_slot *slot;
    struct alloc_block *block;
    struct alloc_pending pending;

    /*
     * Points whose next object is to be tracked. There can be several, because a constructor's
     * arguments may be allocated between a stack sample and its object.
     */
    struct pick {
        const struct alloc_counter *counter;
        uint64_t count; /* value of the counter when it has counted that object */
        uint32_t point;
        uint32_t passed; /* number of objects of the point that were finished since */
        uint32_t size;   /* 0: expected at no site */
        uint32_t round;  /* sites_round(), in which it is expected at `site` */
        int64_t site;
        double weight;
    } picks[PICKS];

    uint32_t n_picks;
} mine;

DECLARE(jlong, constant, jint);
DECLARE(jlong, newSlot, jlong);
DECLARE(jlong, own, jint, jlong);
DECLARE(void, attend, jobject);
DECLARE(jboolean, sampleStack, jlong, jint, jclass);
DECLARE(void, pick, jobject, jint);
DECLARE(void, hold, jobject, jint);

NATIVE(jlong, constant)(JNIEnv *jni, jclass class, jint which)
{
    const struct hprof_shapes *s = vm_shapes();
    const int64_t values[] = {
        (int64_t)(uintptr_t)alloc_slots,
        alloc_exact.eetop,
        s->alignment - 1,
        s->header[HPROF_BYTE],
        s->header[HPROF_SHORT],
        s->header[HPROF_INT],
        s->header[HPROF_LONG],
        s->header[HPROF_OBJECT],
        s->reference == 8 ? 3 : 2,
        (int64_t)(uintptr_t)&alloc_follow,
        (int64_t)(uintptr_t)alloc_cells,
        (int64_t)(uintptr_t)&n_picking,
    };
    return which >= 0 && which < (jint)ARRAY_SIZE(values) ? values[which] : 0;
}

static uint64_t alloc_slot_key(JNIEnv *jni)
{
    return (uint64_t)((intptr_t)jni - alloc_exact.env_offset);
}

/* ---- the probes' native methods ---- */

/*
 * Finishes the object that the VM has reported, if there is one: counts it, unless a probe has
 * counted it. Requires the lock.
 */
static void settle_pending(JNIEnv *jni, bool counted)
{
    if (!mine.pending.object)
        return;
    alloc_pending_finish(jni, &mine.pending, counted);
    if (mine.slot)
        mine.slot->key = alloc_slot_key(jni);
}

static struct alloc_slot *own_slot(JNIEnv *jni)
{
    if (mine.slot)
        return mine.slot;
    struct alloc_block *b = alloc_block_take();
    mine.slot = b ? alloc_slot_add(alloc_slot_key(jni), b) : NULL;
    if (!mine.slot) {
        if (b)
            alloc_block_give(b);
        return NULL;
    }
    mine.block = b;
    return mine.slot;
}

/*
 * Counters whose contents are discarded, for threads beyond the limit and for objects for which the
 * lock could not be acquired.
 */
static struct alloc_slot discarded;

int alloc_exact_reserve(void)
{
    if (!discarded.counters) {
        struct alloc_block *b = alloc_block_take();
        discarded.counters = b ? b->counters : NULL;
    }
    return discarded.counters ? 0 : -ENOMEM;
}

/*
 * Counts the object that the VM has reported, if there is one, and returns the thread's slot. A
 * thread without one gets a slot that is never read. Requires the lock.
 */
static struct alloc_slot *slot_for_probe(JNIEnv *jni)
{
    settle_pending(jni, false);
    struct alloc_slot *s = own_slot(jni);
    alloc_no_room += !s;
    return s ? s : &discarded;
}

/* Returns the size in bytes of the object that a probe is about to count. */
static double bytes_of_point(jint point)
{
    const struct alloc_point *p = alloc_point((uint32_t)point);
    return p->kind == ALLOC_NEW ? (double)p->size : SITES_SIZE_UNKNOWN;
}

NATIVE(jlong, newSlot)(JNIEnv *jni, jclass class, jlong eetop)
{
    if (!eetop)
        return 0;
    if (!sites_lock_patiently(SITES_SIZE_UNKNOWN))
        return (jlong)(uintptr_t)&discarded;
    struct alloc_slot *s = slot_for_probe(jni);
    sites_unlock();
    return (jlong)(uintptr_t)s;
}

NATIVE(jlong, own)(JNIEnv *jni, jclass class, jint point, jlong eetop)
{
    if (!eetop)
        return 0;
    if (!sites_lock_patiently(bytes_of_point(point)))
        return (jlong)(uintptr_t)&discarded.counters[point];
    struct alloc_slot *s = slot_for_probe(jni);
    struct alloc_counter *c = &s->counters[point];
    if (mine.slot) {
        alloc_own(mine.block, (uint64_t)eetop, (uint32_t)point);
        c = alloc_counter_of(alloc_block_for(mine.block, (uint64_t)eetop, (uint32_t)point),
                             (uint32_t)point);
    }
    sites_unlock();
    return (jlong)(uintptr_t)c;
}

/* Returns the block with the calling thread's counter of a point. The thread has a slot. */
static struct alloc_block *block_for(JNIEnv *jni, uint32_t point)
{
    return alloc_block_for(mine.block, alloc_slot_key(jni), point);
}

bool alloc_expected(void)
{
    bool is = mine.slot && mine.slot->expected;
    if (is)
        mine.slot->expected = 0;
    return is;
}

NATIVE(void, attend)(JNIEnv *jni, jclass class, jobject o)
{
    if (!mine.pending.object)
        return;
    bool counted = (*jni)->IsSameObject(jni, o, mine.pending.object);
    if (!sites_lock_patiently(counted ? 0 : (double)mine.pending.size)) {
        settle_pending(jni, true);
        return;
    }
    settle_pending(jni, counted);
    sites_unlock();
}

/* Sets how many objects this thread, which has a slot, still has to track. */
static void set_picks(uint32_t n)
{
    if (!mine.n_picks != !n)
        __atomic_fetch_add(&n_picking, n ? 1 : UINT32_MAX, __ATOMIC_RELAXED);
    mine.n_picks = n;
}

static void remove_pick(uint32_t i)
{
    memmove(mine.picks + i, mine.picks + i + 1, (mine.n_picks - i - 1) * sizeof(*mine.picks));
    set_picks(mine.n_picks - 1);
}

/*
 * Marks the object that a counter of a point is about to count for tracking. The earliest mark is
 * removed when there is no room.
 */
static void add_pick(uint32_t point, const struct alloc_counter *c, double weight, int64_t site)
{
    const struct alloc_point *p = alloc_point(point);
    if (mine.n_picks == PICKS)
        remove_pick(0);
    struct pick *new = &mine.picks[mine.n_picks];
    *new = (struct pick){.counter = c,
                         .count = c->count + 1,
                         .point = point,
                         .size = p->kind == ALLOC_NEW ? p->size : 0,
                         .round = sites_round(),
                         .site = site,
                         .weight = weight};
    if (new->size)
        sites_expect(site, weight, new->size, true);
    set_picks(mine.n_picks + 1);
}

/*
 * Called when an object of a point is finished, that is, its constructor has returned. If the
 * object is marked, removes the mark, stores it in *ret and returns true. It is the marked object
 * if as many others were finished since the mark as were counted since then: those are the objects
 * that arguments of constructors needed. If the constructor of the marked object has thrown, the
 * two numbers never agree, so no other object is mistaken for it.
 */
static bool take_pick(uint32_t point, const struct alloc_counter *c, struct pick *ret)
{
    bool taken = false;
    for (uint32_t i = mine.n_picks; i-- > 0;) {
        struct pick *p = &mine.picks[i];
        if (p->point != point)
            continue;
        bool is = !taken && p->counter == c && c->count - p->count == p->passed;
        if (is)
            *ret = *p;
        taken = taken || is;
        if (is || p->counter != c || p->passed++ == PASSED_MAX)
            remove_pick(i);
    }
    return taken;
}

/* Attributes the current stratum of a point's counter to a site. Requires the lock. */
static void take_sample(struct alloc_sampling *l, uint32_t point, struct alloc_counter *c,
                        int64_t site)
{
    double size = (double)alloc_size_of(point, c);
    if (l->weight > 0 && site != l->site) {
        sites_divide(l->site, l->weight, size);
        sites_divide(site, (double)l->gap, size);
    }
    l->several = l->several || (l->site >= 0 && site != l->site);
    l->site = site;
    l->weight = (double)l->gap;
    bool once = sites_depth() <= 1 && alloc_follow == FOLLOW_ALL;
    __atomic_store_n(&c->next, once ? NEVER : l->end, __ATOMIC_RELAXED);
    if (alloc_follow == FOLLOW_STACKS && alloc_point(point)->offered)
        add_pick(point, c, (double)l->gap, site);
    alloc_exact.stacks++;
}

/*
 * Acquires the lock for a sample. If that fails, the next object is sampled instead. If the counter
 * has no stratum yet, the object is counted as lost, because no stratum will include it.
 */
static bool lock_for_sample(uint32_t point, const struct alloc_counter *c)
{
    return sites_lock_patiently(c->next ? 0 : bytes_of_point(point));
}

/* Takes a stack sample for the object that a counter of a point has counted. */
static void sample(JNIEnv *jni, struct alloc_block *b, uint32_t point, struct alloc_counter *c,
                   jclass class, enum alloc_class_state state, const struct site_lookup *lookup)
{
    struct site_frame frames[SITE_DEPTH_MAX];
    struct walk_words words;
    int64_t site = -1;
    if (!lock_for_sample(point, c))
        return;
    struct alloc_sampling *l = alloc_sampling_of(b, point);
    bool now = l && alloc_sample_due(l, c);
    sites_unlock();
    uint32_t n = now ? sites_stack_words(jni, frames, NULL, &words) : 0;
    if (!sites_lock_patiently(0))
        return;
    l = now ? alloc_sampling_of(b, point) : NULL;
    if (l && l->end) {
        site = sites_find(alloc_point_class(point), threads_self(jni), frames, n);
        take_sample(l, point, c, site);
    }
    if (state != ALLOC_CLASS_READY) {
        alloc_begun(jni, b, point, class, state);
        __atomic_store_n(&c->next, 0, __ATOMIC_RELAXED);
    }
    sites_unlock();
    if (now && state == ALLOC_CLASS_READY)
        known_site_keep(lookup, &words, site);
}

/*
 * Samples an object whose stack is already known. The class is then initialized, because the `new`
 * has created an object before.
 */
static void sample_known(struct alloc_block *b, uint32_t point, struct alloc_counter *c,
                         const struct site_lookup *lookup)
{
    if (!lock_for_sample(point, c))
        return;
    struct alloc_sampling *l = alloc_sampling_of(b, point);
    if (l && alloc_sample_due(l, c) && lookup->round == sites_round())
        take_sample(l, point, c, lookup->site);
    sites_unlock();
}

/* The key of a known stack: a point, and whether its objects are tracked. */
static uint64_t key_of(jint point, bool followed)
{
    return (uint64_t)(uint32_t)point << 1 | followed;
}

NATIVE(jboolean, sampleStack)(JNIEnv *jni, jclass probe, jlong counter, jint point, jclass class)
{
    struct alloc_counter *c = (struct alloc_counter *)(uintptr_t)counter;
    struct alloc_block *b = c && mine.block ? block_for(jni, (uint32_t)point) : NULL;
    if (!b || c != alloc_counter_of(b, (uint32_t)point) || alloc_busy)
        return JNI_TRUE;
    struct site_lookup lookup = known_site(jni, key_of(point, false));
    if (lookup.site >= 0) {
        sample_known(b, (uint32_t)point, c, &lookup);
        return JNI_TRUE;
    }
    enum alloc_class_state s = alloc_class_state(jni, class);
    if (s == ALLOC_CLASS_FAILED)
        return JNI_FALSE;
    alloc_busy = true;
    if (s != ALLOC_CLASS_BEGINS)
        alloc_measure(jni, (uint32_t)point, class);
    sample(jni, b, (uint32_t)point, c, class, s, &lookup);
    alloc_busy = false;
    return JNI_TRUE;
}

/*
 * Returns the site of an object that was counted at a point and whose constructor has returned to
 * these frames. The last stack sample of the point may belong to another object: one that a
 * constructor's argument allocated at the same point, or an earlier one with another caller. Only
 * the line of the running method is taken from it, because the constructor's call may be on a later
 * line than `new`. Requires the lock.
 */
static int64_t site_of(JNIEnv *jni, uint32_t point, int64_t sampled, struct site_frame *frames,
                       uint32_t n)
{
    if (sites_depth() <= 1 || sampled < 0)
        return sampled;
    if (n)
        frames[0].bci = sites_line_of(sampled);
    return sites_find(alloc_point_class(point), threads_self(jni), frames, n);
}

/* Tracks an object that was counted at a point. pick: its mark, or NULL. */
static void follow(JNIEnv *jni, jobject o, jint point, const struct pick *pick)
{
    double weight = pick ? pick->weight : 1;
    struct site_frame frames[SITE_DEPTH_MAX];
    struct walk_words words;
    struct site_lookup lookup = {.site = -1};
    const struct alloc_point *p = alloc_point((uint32_t)point);
    jlong size = p->kind == ALLOC_NEW ? p->size : 0;
    uint32_t n = 0;
    if (alloc_busy || !o || !mine.block)
        return;
    alloc_busy = true;
    if (!size)
        (*vm.ti)->GetObjectSize(vm.ti, o, &size);
    jweak weak = (*jni)->NewWeakGlobalRef(jni, o);
    bool deep = sites_depth() > 1;
    if (deep)
        lookup = known_site(jni, key_of(point, true));
    bool known = lookup.site >= 0;
    if (deep && !known)
        n = sites_stack_words(jni, frames, NULL, &words);
    alloc_busy = false;
    if (!sites_lock_patiently(weight * (double)size)) {
        if (weak)
            (*jni)->DeleteWeakGlobalRef(jni, weak);
        return;
    }
    const struct alloc_sampling *l =
        alloc_sampling_of(block_for(jni, (uint32_t)point), (uint32_t)point);
    /* Without a stratum the object was counted before the recording began. */
    bool counted = alloc_exact.on && l && l->end && (!known || lookup.round == sites_round());
    if (counted && !known)
        lookup.site = site_of(jni, (uint32_t)point, l->site, frames, n);
    if (counted && pick && pick->size && pick->round == sites_round())
        sites_expect(pick->site, weight, pick->size, false);
    if (counted)
        sites_follow(jni, lookup.site, weak, weight, size);
    else if (weak)
        (*jni)->DeleteWeakGlobalRef(jni, weak);
    sites_unlock();
    if (counted && !known)
        known_site_keep(&lookup, &words, lookup.site);
}

NATIVE(void, pick)(JNIEnv *jni, jclass class, jobject o, jint point)
{
    struct alloc_block *b =
        point >= 0 && mine.n_picks && mine.block ? block_for(jni, (uint32_t)point) : NULL;
    struct pick pick;
    if (b && take_pick((uint32_t)point, alloc_counter_of(b, (uint32_t)point), &pick))
        follow(jni, o, point, &pick);
}

NATIVE(void, hold)(JNIEnv *jni, jclass class, jobject o, jint point)
{
    if (point >= 0)
        follow(jni, o, point, NULL);
}

/* ---- events ---- */

static void JNICALL on_vm_alloc(jvmtiEnv *ti, JNIEnv *jni, jthread thread, jobject object,
                                jclass class, jlong size)
{
    struct site_frame frames[SITE_DEPTH_MAX];
    enum site_top top;
    struct thread *self = threads_self(jni);
    char *signature =
        alloc_busy || !alloc_exact.on || !self || self->own ? NULL : shown_class_signature(class);
    if (!signature)
        return;
    alloc_busy = true;
    uint32_t n = sites_stack(jni, frames, &top);
    if (sites_is_ours(jni, frames, n) || !sites_lock_patiently((double)size)) {
        free(signature);
        alloc_busy = false;
        return;
    }
    alloc_exact.by_vm++;
    int64_t site = sites_find(signature, self, frames, n);
    settle_pending(jni, false);
    struct alloc_slot *slot = top != SITE_TOP_OTHER ? own_slot(jni) : NULL;
    if (slot && (mine.pending.object = (*jni)->NewWeakGlobalRef(jni, object))) {
        mine.pending.site = site;
        mine.pending.size = size;
        slot->key = alloc_slot_key(jni) + 1;
    } else {
        alloc_add(site, 1, (double)size);
        alloc_follow_counted(jni, site, object, size);
        if (top != SITE_TOP_OTHER)
            sites_without_probe(site);
    }
    sites_unlock();
    free(signature);
    alloc_busy = false;
}

static void on_thread_ended(struct thread *thread, JNIEnv *jni)
{
    struct alloc_block *b = mine.block;
    bool settled = true;
    known_sites_release();
    if (!mine.slot)
        return;
    /*
     * If each thread has its own rows, its counts are final now and are added to them below. The
     * classes of its objects have been initialized, so their sizes can be measured.
     */
    if (sites_by_thread() && alloc_exact.on && !alloc_busy) {
        alloc_busy = true;
        settled = alloc_settle_begun(jni, b);
        alloc_busy = false;
    }
    set_picks(0);
    b->pending = mine.pending;
    mine.pending.object = NULL;
    /* From now on another thread may use the slot. */
    __atomic_store_n(&mine.slot->key, ALLOC_GONE, __ATOMIC_RELEASE);
    mine.slot = NULL;
    mine.block = NULL;
    if (!settled || !sites_lock_patiently(0)) {
        alloc_block_release_later(b);
        return;
    }
    alloc_block_release(jni, b);
    sites_unlock();
}

const struct thread_listener alloc_exact_threads = {.ended = on_thread_ended};
const struct vm_callbacks alloc_exact_events = {.ti = {.VMObjectAlloc = on_vm_alloc}};

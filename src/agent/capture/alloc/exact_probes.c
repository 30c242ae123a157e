/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the probes of exact counts call: the natives of java/lang/JvmscopeSites, and the VM's events
 * of objects and threads.
 */
#include "agent/capture/alloc/exact_probes.h"

#include "agent/capture/alloc/alloc.h"
#include "agent/vm/dump.h"
#include "agent/vm/lambda.h"

#include <errno.h>
#include <string.h>

#define NEVER ((uint64_t)INT64_MAX)

enum { PICKS = 32 };

struct alloc_exact alloc_exact;
__thread bool alloc_busy;

/*
 * Number of threads with a point whose next object is to be tracked. The probe after a constructor
 * reads this first.
 */
static uint32_t n_picking;

/*
 * Owned by the thread: read and written on it, under the sites' lock where other threads read it.
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
        uint32_t point;
        double weight;
    } picks[PICKS];

    uint32_t n_picks;
} mine;

#define NATIVE(type, name)       EXPORT type JNICALL Java_java_lang_JvmscopeSites_##name
#define DECLARE(type, name, ...) NATIVE(type, name)(JNIEnv *, jclass, ##__VA_ARGS__)
DECLARE(jlong, constant, jint);
DECLARE(jlong, newSlot, jlong);
DECLARE(jlong, own, jint, jlong);
DECLARE(void, attend, jobject);
DECLARE(jboolean, sampleStack, jlong, jint, jclass);
DECLARE(void, other, jobject, jint);
DECLARE(jint, place, jobject, jclass, jint, jint);
DECLARE(void, arrays, jobject, jint, jint);
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

/* Drops or counts the object that the VM has reported, if there is one. Under the lock. */
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
static struct alloc_slot nowhere;

int alloc_exact_reserve(void)
{
    if (!nowhere.counters) {
        struct alloc_block *b = alloc_block_take();
        nowhere.counters = b ? b->counters : NULL;
    }
    return nowhere.counters ? 0 : -ENOMEM;
}

/*
 * The thread's slot, after the object that the VM reported has been counted. A thread for which
 * there is no slot gets one that is never read. Under the lock.
 */
static struct alloc_slot *slot_for_probe(JNIEnv *jni)
{
    settle_pending(jni, false);
    struct alloc_slot *s = own_slot(jni);
    alloc_no_room += !s;
    return s ? s : &nowhere;
}

/* The bytes of an object that a probe is about to count. */
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
        return (jlong)(uintptr_t)&nowhere;
    struct alloc_slot *s = slot_for_probe(jni);
    sites_unlock();
    return (jlong)(uintptr_t)s;
}

NATIVE(jlong, own)(JNIEnv *jni, jclass class, jint point, jlong eetop)
{
    if (!eetop)
        return 0;
    if (!sites_lock_patiently(bytes_of_point(point)))
        return (jlong)(uintptr_t)&nowhere.counters[point];
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

/* Makes the thread, which has a slot, the owner of the point's counters. */
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

/* How many objects this thread, which has a slot, still has to track. */
static void set_picks(uint32_t n)
{
    if (!mine.n_picks != !n)
        __atomic_fetch_add(&n_picking, n ? 1 : UINT32_MAX, __ATOMIC_RELAXED);
    mine.n_picks = n;
}

/*
 * Marks the next object of a point for tracking. An earlier mark that led to no object is replaced
 * when there is no room.
 */
static void add_pick(uint32_t point, double weight)
{
    if (mine.n_picks == PICKS)
        memmove(mine.picks, mine.picks + 1, --mine.n_picks * sizeof(*mine.picks));
    mine.picks[mine.n_picks] = (struct pick){point, weight};
    set_picks(mine.n_picks + 1);
}

/* Removes and returns the latest mark of a point; 0: there is none. */
static double take_pick(uint32_t point)
{
    for (uint32_t i = mine.n_picks; i-- > 0;)
        if (mine.picks[i].point == point) {
            double weight = mine.picks[i].weight;
            memmove(mine.picks + i, mine.picks + i + 1,
                    (mine.n_picks - i - 1) * sizeof(*mine.picks));
            set_picks(mine.n_picks - 1);
            return weight;
        }
    return 0;
}

static void take_sample(JNIEnv *jni, struct alloc_block *b, uint32_t point, struct alloc_counter *c,
                        const struct site_frame *frames, uint32_t n)
{
    struct alloc_sampling *l = alloc_sampling_of(b, point);
    if (!l || !l->end)
        return;
    int64_t site = sites_find(alloc_point_class(point), threads_self(jni), frames, n);
    l->several = l->several || (l->site >= 0 && site != l->site);
    l->site = site;
    bool once = sites_depth() <= 1 && alloc_follow == FOLLOW_ALL;
    __atomic_store_n(&c->next, once ? NEVER : l->end, __ATOMIC_RELAXED);
    if (alloc_follow == FOLLOW_STACKS)
        add_pick(point, (double)l->gap);
    alloc_exact.stacks++;
}

NATIVE(jboolean, sampleStack)(JNIEnv *jni, jclass probe, jlong counter, jint point, jclass class)
{
    struct site_frame frames[SITE_DEPTH_MAX];
    struct alloc_counter *c = (struct alloc_counter *)(uintptr_t)counter;
    struct alloc_block *b = c && mine.block ? block_for(jni, (uint32_t)point) : NULL;
    if (!b || c != alloc_counter_of(b, (uint32_t)point) || alloc_busy)
        return JNI_TRUE;
    enum alloc_class_state s = alloc_class_state(jni, class);
    if (s == ALLOC_CLASS_FAILED)
        return JNI_FALSE;
    alloc_busy = true;
    if (s != ALLOC_CLASS_BEGINS)
        alloc_measure(jni, (uint32_t)point, class);
    /*
     * Without the lock the stack is that of the next object. If the counter has no stratum yet, no
     * stratum will include this object.
     */
    if (!sites_lock_patiently(c->next ? 0 : bytes_of_point(point))) {
        alloc_busy = false;
        return JNI_TRUE;
    }
    struct alloc_sampling *l = alloc_sampling_of(b, (uint32_t)point);
    bool now = l && alloc_sample_due(l, c);
    sites_unlock();
    uint32_t n = now ? sites_stack(jni, frames, NULL) : 0;
    if (!sites_lock_patiently(0)) {
        alloc_busy = false;
        return JNI_TRUE;
    }
    if (now)
        take_sample(jni, b, (uint32_t)point, c, frames, n);
    if (s != ALLOC_CLASS_READY) {
        alloc_begun(jni, b, (uint32_t)point, class, s);
        __atomic_store_n(&c->next, 0, __ATOMIC_RELAXED);
    }
    sites_unlock();
    alloc_busy = false;
    return JNI_TRUE;
}

/*
 * The site of an object that was counted at a point and whose constructor has returned to these
 * frames. The last stack sample of the point may be of another object: of one that a constructor's
 * argument allocated at the same point, or of an earlier one with another caller. Only the line of
 * the running method is taken from it, because the constructor's call may be on a later line than
 * `new`. Under the lock.
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

/* Tracks an object that was counted at a point. */
static void follow(JNIEnv *jni, jobject o, jint point, double weight)
{
    struct site_frame frames[SITE_DEPTH_MAX];
    const struct alloc_point *p = alloc_point((uint32_t)point);
    jlong size = p->kind == ALLOC_NEW ? p->size : 0;
    if (alloc_busy || !o || !mine.block)
        return;
    alloc_busy = true;
    if (!size)
        (*vm.ti)->GetObjectSize(vm.ti, o, &size);
    jweak weak = (*jni)->NewWeakGlobalRef(jni, o);
    uint32_t n = sites_depth() > 1 ? sites_stack(jni, frames, NULL) : 0;
    alloc_busy = false;
    if (!sites_lock_patiently(weight * (double)size)) {
        if (weak)
            (*jni)->DeleteWeakGlobalRef(jni, weak);
        return;
    }
    const struct alloc_sampling *l =
        alloc_sampling_of(block_for(jni, (uint32_t)point), (uint32_t)point);
    /* Without a stratum the object was counted before the recording began. */
    if (alloc_exact.on && l && l->end)
        sites_follow(jni, site_of(jni, (uint32_t)point, l->site, frames, n), weak, weight, size);
    else if (weak)
        (*jni)->DeleteWeakGlobalRef(jni, weak);
    sites_unlock();
}

NATIVE(void, pick)(JNIEnv *jni, jclass class, jobject o, jint point)
{
    double weight = point >= 0 && mine.slot ? take_pick((uint32_t)point) : 0;
    if (weight > 0)
        follow(jni, o, point, weight);
}

NATIVE(void, hold)(JNIEnv *jni, jclass class, jobject o, jint point)
{
    if (point >= 0)
        follow(jni, o, point, 1);
}

/* Counts n objects of the same class and size, of which `o` is one taken at random. */
static void count_objects(JNIEnv *jni, jobject o, const struct site_frame *frames,
                          uint32_t n_frames, uint64_t n)
{
    jclass class = (*jni)->GetObjectClass(jni, o);
    _cleanup_free_ char *signature = class ? class_signature(class) : NULL;
    jlong size = 0;
    (*vm.ti)->GetObjectSize(vm.ti, o, &size);
    if (signature && sites_lock_patiently((double)size * (double)n)) {
        int64_t site = sites_find(signature, threads_self(jni), frames, n_frames);
        if (alloc_exact.on)
            alloc_add(site, (double)n, (double)size * (double)n);
        if (alloc_exact.on && n == 1)
            alloc_follow_counted(jni, site, o, size);
        else if (alloc_exact.on && site >= 0)
            sites_follow(jni, site, (*jni)->NewWeakGlobalRef(jni, o), (double)n, size);
        sites_unlock();
    }
    if (class)
        (*jni)->DeleteLocalRef(jni, class);
}

void alloc_count(JNIEnv *jni, jobject object)
{
    struct site_frame frames[SITE_DEPTH_MAX];
    if (!alloc_exact.on || alloc_busy || !object)
        return;
    alloc_busy = true;
    struct thread *self = threads_self(jni);
    if (self && !self->own) {
        uint32_t n = sites_stack(jni, frames, NULL);
        if (!sites_is_ours(jni, frames, n))
            count_objects(jni, object, frames, n, 1);
    }
    alloc_busy = false;
}

NATIVE(void, other)(JNIEnv *jni, jclass class, jobject o, jint point)
{
    alloc_count(jni, o);
}

/* The probe class's tables (JvmscopeSites.TYPES, PLACES). */
static struct {
    jobjectArray types;
    jlongArray places;
    jclass weak;
    jmethodID make;
    int size;
} tables;

static jobject static_field(JNIEnv *jni, const char *name, const char *descriptor)
{
    jfieldID f = (*jni)->GetStaticFieldID(jni, alloc_exact.probe, name, descriptor);
    jobject local = f ? (*jni)->GetStaticObjectField(jni, alloc_exact.probe, f) : NULL;
    jobject global = local ? (*jni)->NewGlobalRef(jni, local) : NULL;
    if (local)
        (*jni)->DeleteLocalRef(jni, local);
    return global;
}

int alloc_exact_learn_tables(JNIEnv *jni)
{
    if (tables.make)
        return 0;
    tables.types = static_field(jni, "TYPES", "[Ljava/lang/ref/WeakReference;");
    tables.places = static_field(jni, "PLACES", "[J");
    jclass weak = (*jni)->FindClass(jni, "java/lang/ref/WeakReference");
    tables.weak = weak ? (*jni)->NewGlobalRef(jni, weak) : NULL;
    if (!tables.types || !tables.places || !tables.weak)
        return -EPROTO;
    tables.size = (*jni)->GetArrayLength(jni, tables.types);
    tables.make = (*jni)->GetMethodID(jni, tables.weak, "<init>", "(Ljava/lang/Object;)V");
    (*jni)->DeleteLocalRef(jni, weak);
    return tables.make ? 0 : -EPROTO;
}

/*
 * A new entry, unless another thread has created one for the point meanwhile; in that case this
 * object is counted separately. Under the lock.
 */
static jint add_place(JNIEnv *jni, jobject weak, const char *signature, jint point, jint from)
{
    enum { PROBES = 8 };

    for (int i = 0; i < PROBES; i++) {
        jint at = (from + i) & (tables.size - 1);
        jlong there = 0;
        (*jni)->GetLongArrayRegion(jni, tables.places, at, 1, &there);
        if (there)
            continue;
        int64_t number = alloc_point_new(signature[0] == '[' ? ALLOC_ARRAY : ALLOC_NEW, signature);
        if (number < 0)
            return -1;
        jlong place = (jlong)(point + 1) << 32 | number;
        (*jni)->SetObjectArrayElement(jni, tables.types, at, weak);
        (*jni)->SetLongArrayRegion(jni, tables.places, at, 1, &place);
        return (jint)number;
    }
    return -1;
}

NATIVE(jint, place)(JNIEnv *jni, jclass class, jobject o, jclass type, jint point, jint from)
{
    jint number = -1;
    char *signature = !o || alloc_busy || !alloc_exact.on ? NULL : class_signature(type);
    if (!signature)
        return -1;
    alloc_busy = true;
    bool primitives = signature[0] == '[' && signature[1] != 'L' && signature[1] != '[';
    /* Not under the lock: the VM's allocation event would try to take it. */
    jobject weak = primitives ? NULL : (*jni)->NewObject(jni, tables.weak, tables.make, type);
    vm_clear_exception(jni);
    if (weak && sites_lock_patiently(0)) { /* without an entry the object is counted separately */
        number = add_place(jni, weak, signature, point, from);
        sites_unlock();
    }
    if (weak)
        (*jni)->DeleteLocalRef(jni, weak);
    free(signature);
    alloc_busy = false;
    return number;
}

/* Counts the arrays of a multidimensional array one by one. */
static void count_each(JNIEnv *jni, jobject o, jint dimensions, const struct site_frame *frames,
                       uint32_t n_frames)
{
    count_objects(jni, o, frames, n_frames, 1);
    jsize length = dimensions > 1 ? (*jni)->GetArrayLength(jni, o) : 0;
    for (jsize i = 0; i < length; i++) {
        jobject inner = (*jni)->GetObjectArrayElement(jni, o, i);
        if (inner)
            count_each(jni, inner, dimensions - 1, frames, n_frames);
        (*jni)->DeleteLocalRef(jni, inner);
    }
}

NATIVE(void, arrays)(JNIEnv *jni, jclass class, jobject o, jint point, jint dimensions)
{
    struct site_frame frames[SITE_DEPTH_MAX];
    if (!o || alloc_busy || !alloc_exact.on)
        return;
    alloc_busy = true;
    uint32_t n_frames = sites_stack(jni, frames, NULL);
    bool each = alloc_follow == FOLLOW_ALL || sites_follow_each(0);
    if (each)
        count_each(jni, o, dimensions, frames, n_frames);
    uint64_t n = 1;
    jobject at = each ? NULL : (*jni)->NewLocalRef(jni, o);
    for (jint d = 0; at; d++) {
        count_objects(jni, at, frames, n_frames, n);
        jsize length = (*jni)->GetArrayLength(jni, at);
        n *= (uint64_t)length;
        jsize any = length ? (jsize)alloc_random_below((uint64_t)length) : 0;
        jobject inner =
            d + 1 < dimensions && n ? (*jni)->GetObjectArrayElement(jni, at, any) : NULL;
        (*jni)->DeleteLocalRef(jni, at);
        at = inner;
    }
    alloc_busy = false;
}

/* ---- events ---- */

static void JNICALL on_vm_alloc(jvmtiEnv *ti, JNIEnv *jni, jthread thread, jobject object,
                                jclass class, jlong size)
{
    struct site_frame frames[SITE_DEPTH_MAX];
    bool at_call;
    struct thread *self = threads_self(jni);
    char *signature =
        alloc_busy || !alloc_exact.on || !self || self->own ? NULL : class_signature(class);
    if (!signature)
        return;
    alloc_busy = true;
    uint32_t n = sites_stack(jni, frames, &at_call);
    if (sites_is_ours(jni, frames, n) || !sites_lock_patiently((double)size)) {
        free(signature);
        alloc_busy = false;
        return;
    }
    alloc_exact.by_vm++;
    int64_t site = sites_find(signature, self, frames, n);
    settle_pending(jni, false);
    struct alloc_slot *slot = at_call ? own_slot(jni) : NULL;
    if (slot && (mine.pending.object = (*jni)->NewWeakGlobalRef(jni, object))) {
        mine.pending.site = site;
        mine.pending.size = size;
        slot->key = alloc_slot_key(jni) + 1;
    } else {
        alloc_add(site, 1, (double)size);
        alloc_follow_counted(jni, site, object, size);
    }
    sites_unlock();
    free(signature);
    alloc_busy = false;
}

static void on_thread_ended(struct thread *thread, JNIEnv *jni)
{
    struct alloc_block *b = mine.block;
    bool settled = true;
    if (!mine.slot)
        return;
    /*
     * If each thread has rows of its own, its counts are added to them below, for good: by now the
     * classes of its objects are initialized, and their sizes can be measured.
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
        alloc_block_hand_on(b);
        return;
    }
    alloc_block_release(jni, b);
    sites_unlock();
}

const struct thread_listener alloc_exact_threads = {.ended = on_thread_ended};
const struct vm_callbacks alloc_exact_events = {.ti = {.VMObjectAlloc = on_vm_alloc}};

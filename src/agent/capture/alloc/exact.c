/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exact allocation counts: each thread has its own counter at each place that allocates (edit.c),
 * and the VM's events report what the VM and JNI allocate (native.c). The counts and bytes of a
 * place are exact. Their division among stacks is estimated (strata.c); with depth=1, or where only
 * one path leads to a place, every row is exact.
 *
 * What is still alive after a collection is estimated from tracked objects: those that the VM
 * samples (JDK 11 and later), or one object for each stack sample, which then represents its
 * stratum. It is exact when all objects are tracked (live=exact, heap=all).
 */
#include "agent/capture/alloc/alloc.h"
#include "agent/instrument/probe_class.h"
#include "agent/instrument/running.h"
#include "agent/session/ending.h"
#include "agent/session/session.h"
#include "agent/vm/dump.h"
#include "agent/vm/lambda.h"

#include <errno.h>
#include <string.h>

#define PROBE "java/lang/JvmscopeSites"
#define NEVER ((uint64_t)INT64_MAX)

enum { PICKS = 32 };

enum alloc_follow alloc_follow;
__thread bool alloc_busy;

static struct {
    jclass probe;
    int64_t eetop;
    intptr_t env_offset; /* offset of the JNIEnv in its JavaThread */
    uint64_t stacks, by_vm;
    bool on;
} state;

/*
 * Number of threads with a point whose next object is to be tracked. The probe behind a constructor
 * reads this first.
 */
static uint32_t n_picking;

/*
 * Owned by the thread: read and written on it, under the sites' lock where other threads read it.
 */
static __thread struct {
    struct alloc_slot *slot;
    struct alloc_block *block;
    jweak pending; /* an object that the VM has reported and that a probe may be about to count */
    int64_t pending_site;
    jlong pending_size;

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
        state.eetop,
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

uint64_t alloc_slot_key(JNIEnv *jni)
{
    return (uint64_t)((intptr_t)jni - state.env_offset);
}

/* ---- the probes' native methods ---- */

/*
 * Tracks an object that belongs to no point: every such object, or on JDK 8 a selection such as the
 * VM's own sampling would make. Under the lock.
 */
static void follow_counted(JNIEnv *jni, int64_t site, jobject o, jlong size)
{
    bool stacks = alloc_follow == FOLLOW_STACKS;
    double chance = alloc_follow == FOLLOW_ALL || (stacks && sites_follow_each()) ? 1
                    : stacks ? sites_chance(size, SITES_INTERVAL)
                             : 0;
    if (site >= 0 && chance > 0 && (double)alloc_random_below(1 << 20) < chance * (1 << 20))
        sites_follow(jni, site, (*jni)->NewWeakGlobalRef(jni, o), 1 / chance, size);
}

/* Drops the object that the VM reported, or counts it. Under the lock. */
static void settle_pending(JNIEnv *jni, bool counted)
{
    if (!mine.pending)
        return;
    if (!counted) {
        jobject o = (*jni)->NewLocalRef(jni, mine.pending);
        alloc_add(mine.pending_site, 1, (double)mine.pending_size);
        if (o) {
            follow_counted(jni, mine.pending_site, o, mine.pending_size);
            (*jni)->DeleteLocalRef(jni, o);
        }
    }
    (*jni)->DeleteWeakGlobalRef(jni, mine.pending);
    mine.pending = NULL;
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

/* Counters whose contents are discarded, for threads beyond the limit. */
static struct alloc_slot nowhere;

/*
 * The thread's slot, after the object that the VM reported has been counted. A thread for which
 * there is no slot gets one that is never read. Under the lock.
 */
static struct alloc_slot *slot_for_probe(JNIEnv *jni)
{
    settle_pending(jni, false);
    struct alloc_slot *s = own_slot(jni);
    if (!s && !nowhere.counters) {
        struct alloc_block *b = alloc_block_take();
        nowhere.counters = b ? b->counters : NULL;
    }
    alloc_no_room += !s;
    return s ? s : &nowhere;
}

NATIVE(jlong, newSlot)(JNIEnv *jni, jclass class, jlong eetop)
{
    if (!eetop)
        return 0;
    sites_lock();
    struct alloc_slot *s = slot_for_probe(jni);
    sites_unlock();
    return (jlong)(uintptr_t)s;
}

NATIVE(jlong, own)(JNIEnv *jni, jclass class, jint point, jlong eetop)
{
    if (!eetop)
        return 0;
    sites_lock();
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
    if (!mine.pending)
        return;
    sites_lock();
    settle_pending(jni, (*jni)->IsSameObject(jni, o, mine.pending));
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
    bool once = sites_depth() <= 1 && alloc_follow != FOLLOW_STACKS;
    __atomic_store_n(&c->next, once ? NEVER : l->end, __ATOMIC_RELAXED);
    if (alloc_follow == FOLLOW_STACKS)
        add_pick(point, (double)l->gap);
    state.stacks++;
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
    sites_lock();
    struct alloc_sampling *l = alloc_sampling_of(b, (uint32_t)point);
    bool now = l && alloc_sample_due(l, c);
    sites_unlock();
    uint32_t n = now ? sites_stack(jni, frames, NULL) : 0;
    sites_lock();
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

/* Tracks an object that was counted at a point. */
static void follow(JNIEnv *jni, jobject o, jint point, double weight)
{
    const struct alloc_point *p = alloc_point((uint32_t)point);
    jlong size = p->kind == ALLOC_NEW ? p->size : 0;
    if (alloc_busy || !o || !mine.block)
        return;
    if (!size)
        (*vm.ti)->GetObjectSize(vm.ti, o, &size);
    jweak weak = (*jni)->NewWeakGlobalRef(jni, o);
    sites_lock();
    const struct alloc_sampling *l =
        alloc_sampling_of(block_for(jni, (uint32_t)point), (uint32_t)point);
    if (state.on && l && l->site >= 0)
        sites_follow(jni, l->site, weak, weight, size);
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

/* Counts n objects of the same class and size. */
static void count_objects(JNIEnv *jni, jobject o, const struct site_frame *frames,
                          uint32_t n_frames, uint64_t n)
{
    jclass class = (*jni)->GetObjectClass(jni, o);
    _cleanup_free_ char *signature = class ? class_signature(class) : NULL;
    jlong size = 0;
    (*vm.ti)->GetObjectSize(vm.ti, o, &size);
    if (signature) {
        sites_lock();
        int64_t site = sites_find(signature, threads_self(jni), frames, n_frames);
        if (state.on)
            alloc_add(site, (double)n, (double)size * (double)n);
        if (state.on && n == 1)
            follow_counted(jni, site, o, size);
        sites_unlock();
    }
    if (class)
        (*jni)->DeleteLocalRef(jni, class);
}

void alloc_count(JNIEnv *jni, jobject object)
{
    struct site_frame frames[SITE_DEPTH_MAX];
    if (!state.on || alloc_busy || !object)
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
    jfieldID f = (*jni)->GetStaticFieldID(jni, state.probe, name, descriptor);
    jobject local = f ? (*jni)->GetStaticObjectField(jni, state.probe, f) : NULL;
    jobject global = local ? (*jni)->NewGlobalRef(jni, local) : NULL;
    if (local)
        (*jni)->DeleteLocalRef(jni, local);
    return global;
}

/* Created once; like the probe class, they are never freed. */
static int learn_tables(JNIEnv *jni)
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
    char *signature = !o || alloc_busy || !state.on ? NULL : class_signature(type);
    if (!signature)
        return -1;
    alloc_busy = true;
    bool primitives = signature[0] == '[' && signature[1] != 'L' && signature[1] != '[';
    /* Not under the lock: the VM's allocation event would try to take it. */
    jobject weak = primitives ? NULL : (*jni)->NewObject(jni, tables.weak, tables.make, type);
    vm_clear_exception(jni);
    sites_lock();
    if (weak)
        number = add_place(jni, weak, signature, point, from);
    sites_unlock();
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
    if (!o || alloc_busy || !state.on)
        return;
    alloc_busy = true;
    uint32_t n_frames = sites_stack(jni, frames, NULL);
    if (alloc_follow == FOLLOW_ALL)
        count_each(jni, o, dimensions, frames, n_frames);
    uint64_t n = 1;
    jobject at = alloc_follow == FOLLOW_ALL ? NULL : (*jni)->NewLocalRef(jni, o);
    for (jint d = 0; at; d++) {
        count_objects(jni, at, frames, n_frames, n);
        jsize length = (*jni)->GetArrayLength(jni, at);
        n *= (uint64_t)length;
        jobject inner = d + 1 < dimensions && n ? (*jni)->GetObjectArrayElement(jni, at, 0) : NULL;
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
    char *signature = alloc_busy || !state.on || !self || self->own ? NULL : class_signature(class);
    if (!signature)
        return;
    alloc_busy = true;
    uint32_t n = sites_stack(jni, frames, &at_call);
    if (sites_is_ours(jni, frames, n)) {
        free(signature);
        alloc_busy = false;
        return;
    }
    sites_lock();
    state.by_vm++;
    int64_t site = sites_find(signature, self, frames, n);
    settle_pending(jni, false);
    struct alloc_slot *slot = at_call ? own_slot(jni) : NULL;
    if (slot && (mine.pending = (*jni)->NewWeakGlobalRef(jni, object))) {
        mine.pending_site = site;
        mine.pending_size = size;
        slot->key = alloc_slot_key(jni) + 1;
    } else {
        alloc_add(site, 1, (double)size);
        follow_counted(jni, site, object, size);
    }
    sites_unlock();
    free(signature);
    alloc_busy = false;
}

static void on_thread_ended(struct thread *thread, JNIEnv *jni)
{
    if (!mine.slot)
        return;
    sites_lock();
    settle_pending(jni, false);
    set_picks(0);
    mine.slot->key = ALLOC_GONE;
    /*
     * Without threads in traces, a stratum may continue in the next thread that uses the counters.
     */
    bool forget = sites_by_thread() && state.on;
    if (forget)
        alloc_forget(mine.block);
    alloc_disown(mine.block, forget);
    alloc_block_give(mine.block);
    mine.slot = NULL;
    mine.block = NULL;
    sites_unlock();
}

static const struct thread_listener listener = {.ended = on_thread_ended};
static const struct vm_callbacks events = {.ti = {.VMObjectAlloc = on_vm_alloc}};

static void JNICALL on_sample(jvmtiEnv *ti, JNIEnv *jni, jthread thread, jobject object,
                              jclass class, jlong size)
{
    if (state.on)
        alloc_on_sample(ti, jni, thread, object, class, size);
}

static const struct vm_callbacks sample_events = {.ti = {.SampledObjectAlloc = on_sample}};

/* ---- the capture ---- */

static const struct instrument_client client = {
    .name = "alloc=exact", .edit = alloc_edit, .intrinsics = true, .seldom = true};

static bool wanted(const struct options *o)
{
    bool sites = option_is(o, OPT_HEAP, "sites") || option_is(o, OPT_HEAP, "all");
    bool sampled = option_is(o, OPT_ALLOC, "sampled");
    return option_is(o, OPT_ALLOC, "exact") || o->v[OPT_LIVE].text || (sites && !sampled) ||
           (sampled && vm.version < 11);
}

static int load(struct session *s, struct buf *why)
{
    jvmtiCapabilities samples = {.can_generate_sampled_object_alloc_events = 1}, missing = {0};
    if (option_is(&s->options, OPT_ALLOC, "sampled"))
        session_message(s, "alloc=sampled: this VM does not sample allocations: all are counted, "
                           "as alloc=exact does");
    alloc_follow = s->options.v[OPT_LIVE].text || option_is(&s->options, OPT_HEAP, "all")
                       ? FOLLOW_ALL
                   : vm.version < 11 ? FOLLOW_STACKS
                                     : FOLLOW_SAMPLES;
    sites_begin(&s->options, true, alloc_follow == FOLLOW_ALL);
    if (alloc_follow != FOLLOW_SAMPLES)
        return 0;
    if (vm_need(&samples, &missing) < 0 || !vm_capabilities_empty(&missing)) {
        alloc_follow = FOLLOW_STACKS;
        return 0;
    }
    alloc_samples_begin();
    /* Before the first allocation buffers are handed to threads of a VM that is starting. */
    return vm.live ? 0 : vm_events_on(&sample_events);
}

/* Finds the offset of the JNIEnv in a JavaThread from the two addresses of the current thread. */
static int learn_offsets(JNIEnv *jni)
{
    jthread thread = NULL;
    state.eetop = probe_field_offset(jni, "java/lang/Thread", "eetop", "J");
    if (state.eetop <= 0 || sizeof(void *) != 8 ||
        (*vm.ti)->GetCurrentThread(vm.ti, &thread) != JVMTI_ERROR_NONE)
        return -ENOTSUP;
    jclass class = (*jni)->FindClass(jni, "java/lang/Thread");
    jfieldID field = class ? (*jni)->GetFieldID(jni, class, "eetop", "J") : NULL;
    jlong eetop = field ? (*jni)->GetLongField(jni, thread, field) : 0;
    state.env_offset = (intptr_t)jni - (intptr_t)eetop;
    vm_clear_exception(jni);
    if (class)
        (*jni)->DeleteLocalRef(jni, class);
    (*jni)->DeleteLocalRef(jni, thread);
    return eetop && state.env_offset >= 0 && state.env_offset < 65536 ? 0 : -ENOTSUP;
}

static int prepare(JNIEnv *jni, struct buf *why)
{
    (void)!vm_dump_prepare(jni); /* measures array sizes */
    int r = learn_offsets(jni);
    if (r < 0 || !vm_shapes()->alignment) {
        buf_printf(why, "exact allocation counts: only HotSpot on 64 bits");
        return -ENOTSUP;
    }
    r = alloc_points_init();
    if (r < 0)
        buf_printf(why, "exact allocation counts: no memory for counters");
    return r;
}

static int start(struct session *s, JNIEnv *jni, struct buf *why)
{
    int r = prepare(jni, why);
    if (r == 0)
        r = probe_define(jni, PROBE, &state.probe, why);
    if (r == 0 && (r = learn_tables(jni)) < 0)
        buf_printf(why, "exact allocation counts: the probe class is another's");
    if (r == 0)
        r = threads_listen(&listener);
    if (r == 0 && alloc_follow == FOLLOW_SAMPLES)
        r = threads_listen(&alloc_samples_threads);
    if (r == 0)
        r = instrument_choose(s->options.v[OPT_INCLUDE].text, s->options.v[OPT_EXCLUDE].text);
    if (r < 0)
        return r;
    alloc_forget_all();
    sites_lock();
    state.stacks = alloc_no_room = state.by_vm = 0;
    (void)alloc_no_size(true);
    state.on = true;
    sites_unlock();
    r = instrument_on(&client, jni, why);
    if (r == 0 && vm.late && s->out.jfr)
        jfr_lose(s->out.jfr, LOSS_ALLOC_RUNNING, instrument_running(jni));
    if (r == 0)
        r = vm_events_on(&events);
    if (r == 0 && alloc_follow == FOLLOW_SAMPLES && vm.attached)
        r = vm_events_on(&sample_events);
    /* JDK 11 has handed out allocation buffers without sampling; a collection retires them. */
    if (r == 0 && alloc_follow == FOLLOW_SAMPLES && !vm.attached && vm.version < 17)
        collect_if_possible(jni);
    return r < 0 ? r : alloc_native_on(jni, why);
}

static void stop(struct session *s, JNIEnv *jni)
{
    sites_lock();
    state.on = false;
    sites_unlock();
    alloc_native_off(jni);
    vm_events_off(&events);
    if (alloc_follow == FOLLOW_SAMPLES)
        vm_events_off(&sample_events);
    instrument_off(&client, jni);
    threads_unlisten(&listener);
    threads_unlisten(&alloc_samples_threads);
    alloc_forget_all();
}

static void release(struct session *s)
{
    sites_end();
}

static void flush(struct session *s, JNIEnv *jni)
{
    sites_flush(jni, s->out.jfr);
    jfr_lose_total(s->out.jfr, LOSS_ALLOC_SIZE, alloc_no_size(false));
}

static uint64_t save(struct session *s, JNIEnv *jni)
{
    alloc_busy = true;
    alloc_settle_begun(jni);
    uint64_t written = sites_save(s, jni, alloc_settle);
    alloc_busy = false;
    return written;
}

static void dump(struct session *s, JNIEnv *jni, enum dump_reason reason)
{
    alloc_busy = true;
    alloc_settle_begun(jni);
    sites_report(s, jni, 0, s->options.v[OPT_CUTOFF].fraction, alloc_settle);
    alloc_busy = false;
}

static void ending(struct session *s, JNIEnv *jni)
{
    alloc_busy = true;
    sites_ending(jni);
    alloc_busy = false;
}

static void request(struct session *s, JNIEnv *jni, const struct hprof_request *r)
{
    alloc_busy = true;
    alloc_settle_begun(jni);
    sites_request(s, jni, r, alloc_settle);
    alloc_busy = false;
    /* The request may have changed the depth of stacks. */
    if (r->command == HPROF_CMD_CONTROL)
        alloc_forget_all();
}

static void status(struct session *s, struct buf *out)
{
    sites_status(out);
    sites_lock();
    buf_printf(out,
               "alloc.places %u\nalloc.samples %llu\nalloc.by_vm %llu\nalloc.no_room "
               "%llu\nalloc.no_size %llu\n",
               alloc_points_count(), (unsigned long long)state.stacks,
               (unsigned long long)state.by_vm, (unsigned long long)alloc_no_room,
               (unsigned long long)alloc_no_size(false));
    sites_unlock();
}

const struct capture capture_alloc_exact = {
    .name = "alloc",
    .title = "allocation sites",
    .options = OPTION_BIT(OPT_HEAP) | OPTION_BIT(OPT_ALLOC) | OPTION_BIT(OPT_LIVE),
    .needs = {.can_retransform_classes = 1, .can_generate_vm_object_alloc_events = 1},
    .own_stacks = true,
    .wanted = wanted,
    .load = load,
    .start = start,
    .stop = stop,
    .release = release,
    .flush = flush,
    .save = save,
    .dump = dump,
    .ending = ending,
    .request = request,
    .status = status,
};

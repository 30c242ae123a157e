/* SPDX-License-Identifier: Apache-2.0 */
/*
 * locks= records when each thread held each monitor of some classes, contended or not. Probes are
 * inserted after monitorenter, before monitorexit, and at the beginning and the ends of
 * synchronized methods; locks_jni.c handles native code. The class of the object decides, so all
 * methods that lock have probes; JvmscopeLocks filters the requested classes without leaving Java.
 * A pattern also requests the object of the class itself, which static synchronized methods lock.
 *
 * When a thread gets a monitor while it is spinning, the VM does not consider that a wait and posts
 * no event. A probe in front of monitorenter therefore records the time as well, and if another
 * thread has released the monitor since then, we write a jdk.JavaMonitorEnter event of our own. The
 * VM's events start at the same point; it posts them when spinning has failed. (Synchronized
 * methods have no place for such a probe.)
 *
 * A method is not instrumented when a probe is not covered by a handler for all exceptions. Without
 * one the VM could not prove that the monitor is released, and would never compile the method.
 */
#include "agent/capture/threads/locks.h"

#include "agent/capture/threads/monitors.h"
#include "agent/capture/threads/natives.h"
#include "agent/capture/threads/objects.h"
#include "agent/capture/threads/threads.h"
#include "agent/capture/threads/waiters.h"
#include "agent/instrument/choice.h"
#include "agent/instrument/instrument.h"
#include "agent/instrument/probe_class.h"
#include "agent/vm/self.h"
#include "base/clock.h"
#include "base/mapped.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PROBE "java/lang/JvmscopeLocks"

/*
 * HELD_MAX: holds of a thread at a time. RATE_MAX: holds of a thread in a second. SITES_MAX: places
 * in the program.
 */
enum { HELD_MAX = 64, RATE_MAX = 2000000, SITES_MAX = 1 << 20 };

/*
 * The thread that last released a monitor, indexed by the monitor's identity hash; another object
 * with the same index replaces it. Written by the thread that holds the monitor.
 */
enum { RELEASED_BITS = 14 };

static struct released {
    _Atomic uint64_t time, thread; /* in ns of the recording; 0: being written */
    _Atomic uint32_t object;
} released[1 << RELEASED_BITS];

struct held {
    _Atomic uint64_t start; /* in ns; 0: released, by wait() or finally */
    uint64_t class, trace;
    uint32_t object, depth;
};

struct held_locks {
    struct held held[HELD_MAX];
    uint32_t n;
    uint32_t in_second;
    uint64_t second;
};

static char *patterns;
/* by site number: the stack of the place in the recording; 0: not known yet */
static _Atomic uint64_t *sites;
static atomic_uint n_sites;
static atomic_uint_fast64_t written, lost;

EXPORT jlong JNICALL Java_java_lang_JvmscopeLocks_constant(JNIEnv *jni, jclass self, jclass class,
                                                           jboolean object);
EXPORT void JNICALL Java_java_lang_JvmscopeLocks_arrive(JNIEnv *jni, jclass self, jint object);
EXPORT void JNICALL Java_java_lang_JvmscopeLocks_enter(JNIEnv *jni, jclass self, jlong class,
                                                       jint object, jint site);
EXPORT void JNICALL Java_java_lang_JvmscopeLocks_leave(JNIEnv *jni, jclass self, jlong class,
                                                       jint object);

/* ---- monitors that are held ---- */

static struct held *held_find(struct held_locks *l, uint64_t class, uint32_t object)
{
    for (uint32_t i = l->n; i-- > 0;)
        if (l->held[i].object == object && l->held[i].class == class)
            return &l->held[i];
    return NULL;
}

static void held_drop(struct held_locks *l, struct held *h)
{
    for (struct held *last = &l->held[--l->n]; h < last; h++) {
        h->class = h[1].class;
        h->trace = h[1].trace;
        h->object = h[1].object;
        h->depth = h[1].depth;
        atomic_store_explicit(&h->start, atomic_load_explicit(&h[1].start, memory_order_relaxed),
                              memory_order_relaxed);
    }
}

static bool rate_allows(struct held_locks *l, uint64_t now)
{
    if (now / NS_PER_SECOND != l->second) {
        l->second = now / NS_PER_SECOND;
        l->in_second = 0;
    }
    return l->in_second++ < RATE_MAX;
}

/* Counts a hold that is missing from the recording. */
static void lose(void)
{
    atomic_fetch_add_explicit(&lost, 1, memory_order_relaxed);
    jfr_lose(thread_capture.jfr, LOSS_HOLD_RATE, 1);
}

static struct released *released_of(uint32_t object)
{
    return &released[(object * 0x9e3779b9u) >> (32 - RELEASED_BITS)];
}

static void note_released(const struct waiter *w, uint32_t object, uint64_t now)
{
    struct released *l = released_of(object);
    atomic_store(&l->time, 0);
    atomic_store(&l->object, object);
    atomic_store(&l->thread, w->id);
    atomic_store(&l->time, now);
}

/*
 * Called by a thread that has acquired a monitor. Returns the thread that released it after a given
 * time, while the caller waited, or 0 if none is known.
 */
static uint64_t released_since(const struct waiter *w, uint32_t object, uint64_t since)
{
    struct released *l = released_of(object);
    uint64_t time = atomic_load(&l->time), thread = atomic_load(&l->thread);
    bool is = time > since && atomic_load(&l->object) == object && thread != w->id;
    return is && atomic_load(&l->time) == time ? thread : 0;
}

/*
 * Called by a thread that has acquired a monitor: records a wait if the thread was spinning.
 * monitors.c handles the VM's own events of contended monitors.
 */
static void put_spun(struct waiter *w, const struct held *h, uint64_t now)
{
    uint64_t arrived = locks_arrived(w, h->object);
    uint64_t owner = arrived > w->entered ? released_since(w, h->object, arrived) : 0;
    w->arrived = 0;
    if (!owner)
        return;
    struct wait spun = {.start = arrived,
                        .trace = h->trace,
                        .class = h->class,
                        .owner = owner,
                        .object = h->object};
    threads_put_monitor_enter(w->id, &spun, now - arrived);
}

static void put_hold(struct waiter *w, struct held *h, uint64_t now)
{
    uint64_t start = atomic_exchange_explicit(&h->start, 0, memory_order_relaxed);
    struct jfr_event e;
    if (!start)
        return;
    note_released(w, h->object, now);
    if (!rate_allows(w->locks, now)) {
        lose();
        return;
    }
    if (!jfr_begin(thread_capture.jfr, thread_capture.types[TYPE_HOLD], 0, &e)) {
        /* the recording knows the class */
        atomic_fetch_add_explicit(&lost, 1, memory_order_relaxed);
        return;
    }
    jfr_put_time(&e, start);
    jfr_put_long(&e, (int64_t)(now - start));
    jfr_put_long(&e, (int64_t)w->id);
    jfr_put_long(&e, (int64_t)h->trace);
    jfr_put_long(&e, (int64_t)h->class);
    jfr_put_long(&e, h->object);
    jfr_commit(&e);
    atomic_fetch_add_explicit(&written, 1, memory_order_relaxed);
}

void locks_wait(struct waiter *w, uint64_t class, uint32_t object, uint64_t now)
{
    struct held *h = held_find(w->locks, class, object);
    if (h)
        put_hold(w, h, now);
}

void locks_waited(struct waiter *w, uint64_t class, uint32_t object, uint64_t now)
{
    struct held *h = held_find(w->locks, class, object);
    if (h)
        atomic_store_explicit(&h->start, now, memory_order_relaxed);
}

/*
 * Returns the place of a probe as a stack of one frame. The stack is walked only once per place,
 * because the monitor is held meanwhile.
 */
static uint64_t site_trace(uint32_t site)
{
    if (site == 0 || site >= SITES_MAX)
        return 0;
    uint64_t trace = atomic_load_explicit(&sites[site], memory_order_relaxed);
    if (likely(trace) && jfr_trace_stays(thread_capture.jfr, trace))
        return trace;
    jvmtiFrameInfo frame;
    jint n = 0;
    /* The probe and its native method are above it. */
    if (self_frames(2, 1, &frame, &n) != JVMTI_ERROR_NONE || n != 1)
        return 0;
    struct jfr_frame out = {(uint64_t)(uintptr_t)frame.method, (int32_t)frame.location,
                            JFR_FRAME_JAVA};
    trace = jfr_trace(thread_capture.jfr, &out, 1, true);
    atomic_store_explicit(&sites[site], trace, memory_order_relaxed);
    return trace;
}

/* Notes the beginning of a hold. A trace of 0 stands for that of the site. */
static void hold_begins(struct waiter *w, uint64_t class, uint32_t object, uint64_t trace,
                        uint32_t site, uint64_t now)
{
    if (!w->locks && !(w->locks = calloc(1, sizeof(*w->locks)))) {
        lose();
        return;
    }
    struct held_locks *l = w->locks;
    struct held *h = held_find(l, class, object);
    if (h && h->depth) {
        h->depth++;
        return;
    }
    /* the releases of some were not seen, or the thread really holds that many */
    if (l->n == HELD_MAX) {
        lose();
        held_drop(l, &l->held[0]);
    }
    h = &l->held[l->n++];
    h->class = class;
    h->object = object;
    h->depth = 1;
    h->trace = trace ? trace : site_trace(site);
    put_spun(w, h, now);
    atomic_store_explicit(&h->start, now, memory_order_release);
}

void JNICALL Java_java_lang_JvmscopeLocks_arrive(JNIEnv *jni, jclass self, jint object)
{
    if (!object || !threads_natives_enter())
        return;
    struct waiter *w = native_self(jni);
    if (w)
        locks_arriving(w, (uint32_t)object, now_ns());
    threads_natives_leave();
}

void locks_arriving(struct waiter *w, uint32_t object, uint64_t now)
{
    w->arrived_object = object;
    w->arrived = now;
}

uint64_t locks_arrived(const struct waiter *w, uint32_t object)
{
    return w->arrived_object == object ? w->arrived : 0;
}

void JNICALL Java_java_lang_JvmscopeLocks_enter(JNIEnv *jni, jclass self, jlong class, jint object,
                                                jint site)
{
    uint64_t now = now_ns();
    if (!class || !threads_natives_enter())
        return;
    struct waiter *w = native_self(jni);
    if (w)
        hold_begins(w, (uint64_t) class, (uint32_t)object, 0, (uint32_t)site, now);
    threads_natives_leave();
}

void locks_entered(struct waiter *w, uint64_t class, uint32_t object, uint64_t trace, uint64_t now)
{
    hold_begins(w, class, object, trace, 0, now);
}

static void hold_ends(struct waiter *w, struct held *h, uint64_t now)
{
    if (h && --h->depth == 0) {
        put_hold(w, h, now);
        held_drop(w->locks, h);
    }
}

void locks_left(struct waiter *w, uint32_t object, uint64_t now)
{
    uint32_t i = w->locks->n;
    while (i > 0 && w->locks->held[i - 1].object != object)
        i--;
    hold_ends(w, i ? &w->locks->held[i - 1] : NULL, now);
}

void JNICALL Java_java_lang_JvmscopeLocks_leave(JNIEnv *jni, jclass self, jlong class, jint object)
{
    uint64_t now = now_ns();
    if (!class || !threads_natives_enter())
        return;
    struct waiter *w = native_self(jni);
    if (w && w->locks)
        hold_ends(w, held_find(w->locks, (uint64_t) class, (uint32_t)object), now);
    threads_natives_leave();
}

/* Returns whether a pattern names a class, or, for the object of a class, java.lang.Class. */
static bool is_wanted(jclass class, bool object)
{
    const struct str of_classes = {"java/lang/Class", strlen("java/lang/Class")};
    char *signature = NULL;
    if (!patterns ||
        (*vm.ti)->GetClassSignature(vm.ti, class, &signature, NULL) != JVMTI_ERROR_NONE)
        return false;
    size_t len = strlen(signature);
    bool plain = signature[0] == 'L' && len > 2;
    struct str name = {signature + plain, len - 2 * plain};
    bool wanted = choice_matches_class(patterns, name) ||
                  (object && choice_matches_class(patterns, of_classes));
    vm_free(signature);
    return wanted;
}

uint64_t locks_constant(JNIEnv *jni, jclass class, bool object)
{
    uint64_t constant = !is_wanted(class, object) ? 0
                        : object                  ? object_record_class_object(jni, class)
                                                  : object_record_class(jni, class);
    if (constant)
        jfr_class_stays(thread_capture.jfr, constant); /* the probes keep the constant */
    return constant;
}

jlong JNICALL Java_java_lang_JvmscopeLocks_constant(JNIEnv *jni, jclass self, jclass class,
                                                    jboolean object)
{
    if (!class || !threads_natives_enter_early())
        return 0;
    uint64_t constant = locks_constant(jni, class, object);
    threads_natives_leave();
    return (jlong)constant;
}

/* ---- the probes ---- */

/* Pushes the number of a new place and calls JvmscopeLocks.entered. */
static int call_entered(struct edit *e, struct buf *code)
{
    unsigned site = atomic_fetch_add(&n_sites, 1) + 1;
    int probe = rewrite_methodref(e->rewrite, PROBE, "entered", "(Ljava/lang/Object;I)V");
    int r = probe < 0 ? probe : code_int(e->rewrite, code, site < SITES_MAX ? (int32_t)site : 0);
    if (r == 0)
        code_invokestatic(code, probe);
    return r;
}

/*
 * Creates the local variable that keeps the object of a monitor instruction, which the instruction
 * itself pops.
 */
static int object_local(struct edit *e, int *object)
{
    if (*object >= 0)
        return 0;
    if ((*object = edit_local(e, 'A')) < 0)
        return *object;
    _cleanup_(buf_release) struct buf first = BUF(16);
    code_op(&first, OP_ACONST_NULL);
    code_store(&first, 'A', (unsigned)*object);
    return edit_insert(e, EDIT_ENTRY, 0, 0, &first, 1);
}

/* Inserts a probe in front of monitorenter. */
static int edit_arrival(struct edit *e, uint32_t pc)
{
    _cleanup_(buf_release) struct buf code = BUF(16);
    int probe = rewrite_methodref(e->rewrite, PROBE, "arriving", "(Ljava/lang/Object;)V");
    if (probe < 0)
        return probe;
    code_op(&code, OP_DUP);
    code_invokestatic(&code, probe);
    return edit_insert(e, EDIT_BEFORE, pc, 0, &code, 1);
}

/*
 * Saves the object of the monitor instruction at `pc`, and inserts `behind` after that instruction.
 */
static int edit_after(struct edit *e, uint32_t pc, int object, const struct buf *behind,
                      unsigned stack)
{
    _cleanup_(buf_release) struct buf code = BUF(16);
    code_op(&code, OP_DUP);
    code_store(&code, 'A', (unsigned)object);
    int r = edit_insert(e, EDIT_BEFORE, pc, 0, &code, 1);
    return r ? r : edit_insert(e, EDIT_AFTER, pc, 0, behind, stack);
}

/*
 * A release is reported at a point where a handler would release the monitor even if the probe
 * throws: before monitorexit, or after it where no such handler covers it (the exit in the handlers
 * that scalac generates).
 */
static int edit_blocks(struct edit *e, int leaving)
{
    _cleanup_(buf_release) struct buf code = BUF(64);
    int object = -1, r = 0;
    for (struct insn i = {0}; r == 0 && edit_next(e, &i);) {
        bool enter = i.op == OP_MONITORENTER;
        if (!enter && i.op != OP_MONITOREXIT)
            continue;
        bool guarded = edit_is_guarded(e, enter ? i.pc + i.len : i.pc);
        if (enter && !guarded)
            return -ENOTSUP;
        buf_clear(&code);
        if (!enter && guarded) {
            code_op(&code, OP_DUP);
            code_invokestatic(&code, leaving);
            r = edit_insert(e, EDIT_BEFORE, i.pc, 0, &code, 1);
            continue;
        }
        if ((r = object_local(e, &object)) < 0 || (enter && (r = edit_arrival(e, i.pc)) < 0))
            return r;
        code_load(&code, 'A', (unsigned)object);
        if (enter)
            r = call_entered(e, &code);
        else
            code_invokestatic(&code, leaving);
        r = r ? r : edit_after(e, i.pc, object, &code, 2);
    }
    return r;
}

/* Pushes a constant for the class itself, which class files can have since Java 5. */
static int push_class(const struct instrument_class *c, struct edit *e, struct buf *code)
{
    enum { JAVA_5 = 49 };

    if (c->file->major < JAVA_5)
        return -ENOTSUP;
    code_ref(code, OP_LDC_W, c->file->this_class);
    return 0;
}

static int edit_synchronized(const struct instrument_class *c, struct edit *e, int leaving)
{
    _cleanup_(buf_release) struct buf code = BUF(64);
    int object = edit_local(e, 'A');
    int r = object < 0 ? object : 0;
    if (r == 0 && e->method->access & ACC_STATIC)
        r = push_class(c, e, &code);
    else
        code_load(&code, 'A', 0);
    code_op(&code, OP_DUP);
    code_store(&code, 'A', (unsigned)object);
    r = r ? r : call_entered(e, &code);
    r = r ? r : edit_insert(e, EDIT_ENTRY, 0, 0, &code, 2);
    buf_clear(&code);
    code_load(&code, 'A', (unsigned)object);
    code_invokestatic(&code, leaving);
    for (struct insn i = {0}; r == 0 && edit_next(e, &i);)
        if (op_info[i.op] & OP_IS_RETURN)
            r = edit_insert(e, EDIT_BEFORE, i.pc, 0, &code, 1);
    code_op(&code, OP_ATHROW);
    return r ? r : edit_catch_all(e, &code, 1);
}

static int locks_edit(const struct instrument_class *c, struct edit *e)
{
    bool whole = e->method->access & ACC_SYNCHRONIZED, blocks = false;
    for (struct insn i = {0}; !blocks && edit_next(e, &i);)
        blocks = i.op == OP_MONITORENTER || i.op == OP_MONITOREXIT;
    if (!whole && !blocks)
        return 0;
    int leaving = rewrite_methodref(e->rewrite, PROBE, "leaving", "(Ljava/lang/Object;)V");
    int r = leaving < 0 ? leaving : 0;
    if (r == 0 && blocks)
        r = edit_blocks(e, leaving);
    if (r == 0 && whole)
        r = edit_synchronized(c, e, leaving);
    return r < 0 ? r : 1;
}

/*
 * Returns whether a class gets probes. Those of java.lang.ref do not, because in them the VM's own
 * threads hold locks for which garbage collectors wait.
 */
static bool locks_wants(struct str class_name)
{
    static const char ref[] = "java/lang/ref/";
    return class_name.len < sizeof(ref) - 1 || memcmp(class_name.data, ref, sizeof(ref) - 1) != 0;
}

static const struct instrument_client client = {
    .name = "locks", .edit = locks_edit, .wants = locks_wants, .seldom = true};
static bool on;

static void forget_classes(JNIEnv *jni, jclass probe)
{
    jmethodID forget = (*jni)->GetStaticMethodID(jni, probe, "forget", "()V");
    if (forget)
        (*jni)->CallStaticVoidMethod(jni, probe, forget);
    vm_clear_exception(jni);
}

int locks_on(const char *which, JNIEnv *jni, struct buf *why)
{
    static jclass probe;
    if (!sites) {
        void *p = mapped_new(SITES_MAX * sizeof(*sites));
        if (!p)
            return -ENOMEM;
        sites = p;
    }
    free(patterns);
    if (!(patterns = strdup(which)))
        return -ENOMEM;
    atomic_store(&written, 0);
    atomic_store(&lost, 0);
    for (unsigned i = 0; i < MIN(atomic_load(&n_sites) + 1, (unsigned)SITES_MAX); i++)
        atomic_store(&sites[i], 0); /* the constant belongs to another recording */
    int r = probe_define(jni, PROBE, &probe, why);
    if (r == 0) {
        forget_classes(jni, probe);
        r = locks_jni_on(why);
    }
    if (r == 0) {
        r = instrument_on(&client, jni, why);
        if (r < 0)
            locks_jni_off();
    }
    on = r == 0;
    return r;
}

static void put_open(struct waiter *w, jthread thread, void *now)
{
    for (uint32_t i = 0; w->locks && i < MIN(w->locks->n, (uint32_t)HELD_MAX); i++)
        put_hold(w, &w->locks->held[i], *(const uint64_t *)now);
}

void locks_off(JNIEnv *jni)
{
    uint64_t now = now_ns();
    if (!on)
        return;
    on = false;
    locks_jni_off();
    instrument_off(&client, jni);
    waiters_visit(NULL, put_open, &now);
}

uint64_t locks_count(void)
{
    return atomic_load(&written);
}

uint64_t locks_lost(void)
{
    return atomic_load(&lost);
}

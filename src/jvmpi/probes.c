/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instruments classes. In a constructor the entry is reported after this() or super(), because
 * before that `this` is not initialized and the verifier permits no handler around it. Native
 * methods have no code to instrument; see methods.c.
 */
#include "jvmpi/probes.h"
#include "jvmpi/classes.h"
#include "jvmpi/ids.h"
#include "jvmpi/layer.h"

#include "agent/instrument/choice.h"
#include "agent/instrument/instrument.h"
#include "agent/instrument/probe_class.h"
#include "base/vec.h"
#include "jvmpi/natives.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROBE "java/lang/JvmscopeJvmpi"

PROBE_NATIVE(jlong, constant)(JNIEnv *, jclass, jint);
PROBE_NATIVE(void, natives)(JNIEnv *, jclass, jint);

/*
 * The layout of the probe class's memory: bytes for entries, exits, instructions and allocations;
 * the number of contenders at offset 8.
 */
static struct {
    uint8_t entries, exits, instructions, allocations, unused[4];
    _Atomic int32_t contenders;
} flags __attribute__((aligned(8)));

static int64_t eetop;
static atomic_uint wanted; /* features */
static jclass _Atomic probe_class;

PROBE_NATIVE(jlong, constant)(JNIEnv *env, jclass class, jint which)
{
    return which == 0 ? (jlong)(uintptr_t)&flags : eetop;
}

void probes_flags(void)
{
    flags.entries =
        layer_enabled(JVMPI_EVENT_METHOD_ENTRY) || layer_enabled(JVMPI_EVENT_METHOD_ENTRY2);
    flags.exits = layer_enabled(JVMPI_EVENT_METHOD_EXIT);
    flags.instructions = layer_enabled(JVMPI_EVENT_INSTRUCTION_START);
    flags.allocations = layer_enabled(JVMPI_EVENT_OBJECT_ALLOC);
}

void probes_contenders(int change)
{
    atomic_fetch_add(&flags.contenders, change);
}

/*
 * ---- methods by number, which they get when instrumented; the id is looked up at the first call
 * ----
 */

enum { PAGE = 65536, PAGES = 1024 };

static _Atomic(_Atomic(jmethodID) *) pages[PAGES];
static _Atomic uint32_t numbers;

static jmethodID *_Atomic own_methods; /* of the probe class, ended by NULL */

bool probe_is_own(jmethodID method)
{
    const jmethodID *m = atomic_load_explicit(&own_methods, memory_order_acquire);
    while (m && *m && *m != method)
        m++;
    return m && *m;
}

static void read_own_methods(jclass class)
{
    jint n = 0;
    jmethodID *ids = NULL;
    if ((*vm.ti)->GetClassMethods(vm.ti, class, &n, &ids))
        return;
    jmethodID *own = calloc((size_t)n + 1, sizeof(jmethodID));
    if (own)
        memcpy(own, ids, (size_t)n * sizeof(jmethodID));
    atomic_store_explicit(&own_methods, own, memory_order_release);
    vm_free(ids);
}

static _Atomic(jmethodID) *place_of(uint32_t number)
{
    _Atomic(jmethodID) *page =
        number < (uint32_t)PAGE * PAGES
            ? atomic_load_explicit(&pages[number / PAGE], memory_order_acquire)
            : NULL;
    return page ? &page[number % PAGE] : NULL;
}

/*
 * Finds the method that has called the probe. This is a separate function, because most calls need
 * no frame.
 */
static __attribute__((noinline)) jmethodID find_method(uint32_t number)
{
    _Atomic(jmethodID) *place = place_of(number);
    /* The method is below the frames of the native method and of the probe. */
    jvmtiFrameInfo frames[6];
    jint n = 0, i = 1;
    if (!place || (*vm.ti)->GetStackTrace(vm.ti, NULL, 0, 6, frames, &n))
        return NULL;
    while (i < n && probe_is_own(frames[i].method))
        i++;
    jmethodID method = i < n ? frames[i].method : NULL;
    /*
     * The VM considers a class linked before its ClassPrepare event, so this thread may use a class
     * that another one is about to report. The running code may be older than the class's, which
     * may have been instrumented again since.
     */
    my.probe_inside++;
    if (method) {
        layer_report_class_of(vm_jni(), method);
        method = layer_current_method(method);
    }
    my.probe_inside--;
    /*
     * The callers must handle methods that another thread is still reporting, or that nobody
     * reports any longer.
     */
    if ((flight_may_wait() || !flights_any()) && atomic_load(&layer.stage) == STAGE_OPEN)
        atomic_store(place, method);
    return method;
}

jmethodID probe_method(uint32_t number)
{
    _Atomic(jmethodID) *place = place_of(number);
    jmethodID method = place ? atomic_load_explicit(place, memory_order_relaxed) : NULL;
    return likely(method != NULL) ? method : find_method(number);
}

static int new_number(uint32_t *ret)
{
    uint32_t number = atomic_fetch_add(&numbers, 1);
    if (number >= (uint32_t)PAGE * PAGES)
        return -ENOSPC;
    if (!atomic_load(&pages[number / PAGE])) {
        _Atomic(jmethodID) *none = NULL, *page = calloc(PAGE, sizeof(*page));
        if (!page)
            return -ENOMEM;
        if (!atomic_compare_exchange_strong(&pages[number / PAGE], &none, page))
            free(page);
    }
    *ret = number;
    return 0;
}

/* ---- switches by number ---- */

static pthread_mutex_t switches_mutex = PTHREAD_MUTEX_INITIALIZER;
static VEC(struct probe_switch) switches;

struct probe_switch probe_switch(jint number)
{
    struct probe_switch s = {0};
    pthread_mutex_lock(&switches_mutex);
    if (number >= 0 && (size_t)number < switches.len)
        s = switches.data[number];
    pthread_mutex_unlock(&switches_mutex);
    return s;
}

static int32_t code_int32(const uint8_t *p)
{
    return (int32_t)((uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]);
}

/*
 * Reads the switch at pc and returns its number. The rewriter has checked that offsets are within
 * the code.
 */
static int new_switch(const struct edit *e, const struct insn *i)
{
    const uint8_t *body = e->code + (i->pc & ~3u) + 4;
    struct probe_switch s = {0};
    if (i->op == OP_TABLESWITCH) {
        s.low = code_int32(body + 4);
        s.high = code_int32(body + 8);
    } else {
        s.n = code_int32(body + 4);
        jint *keys = calloc((size_t)s.n + 1, sizeof(*keys));
        for (jint k = 0; keys && k < s.n; k++)
            keys[k] = code_int32(body + 8 + 8 * (size_t)k);
        if (!keys)
            return -ENOMEM;
        s.keys = keys;
    }
    pthread_mutex_lock(&switches_mutex);
    int number = (int)switches.len, r = vec_push(&switches, s);
    pthread_mutex_unlock(&switches_mutex);
    return r < 0 ? r : number;
}

/* ---- what is inserted ---- */

struct insertion_site {
    const struct instrument_class *c;
    struct edit *e;
    uint32_t number;
    struct buf *s;
};

/* Appends a call of a probe to what s contains. */
static int put_call(struct insertion_site *at, const char *name, const char *descriptor)
{
    int method = rewrite_methodref(at->c->rewrite, PROBE, name, descriptor);
    if (method < 0)
        return method;
    code_invokestatic(at->s, method);
    return 0;
}

static int put_int(struct insertion_site *at, int32_t v)
{
    return code_int(at->c->rewrite, at->s, v);
}

static int insert(struct insertion_site *at, enum edit_where where, uint32_t pc, unsigned stack)
{
    int r = edit_insert(at->e, where, pc, 0, at->s, stack);
    buf_clear(at->s);
    return r;
}

/*
 * Copies the operands of a branch or switch and adds the kind of its condition. Stores the name and
 * descriptor of the probe. Returns 0 or a negative errno.
 */
static int put_operands(struct insertion_site *at, const struct insn *i, const char **ret_name,
                        const char **ret_descriptor)
{
    enum { FIRST_COMPARE = OP_IFEQ + 6, FIRST_SAME = OP_IFEQ + 12 };

    if (i->op >= OP_IFEQ && i->op < FIRST_COMPARE) {
        code_op(at->s, OP_DUP);
        *ret_name = "stepIf";
        *ret_descriptor = "(IIII)V";
        return put_int(at, i->op - OP_IFEQ);
    }
    if (i->op >= FIRST_COMPARE && i->op < FIRST_SAME) {
        code_op(at->s, OP_DUP2);
        *ret_name = "stepCompare";
        *ret_descriptor = "(IIIII)V";
        return put_int(at, i->op - FIRST_COMPARE);
    }
    if (i->op >= FIRST_SAME && i->op <= OP_IF_ACMPNE) {
        code_op(at->s, OP_DUP2);
        *ret_name = "stepSame";
        *ret_descriptor = "(Ljava/lang/Object;Ljava/lang/Object;III)V";
        return put_int(at, i->op - FIRST_SAME);
    }
    if (i->op == OP_IFNULL || i->op == OP_IFNONNULL) {
        code_op(at->s, OP_DUP);
        *ret_name = "stepNull";
        *ret_descriptor = "(Ljava/lang/Object;III)V";
        return put_int(at, i->op - OP_IFNULL);
    }
    if (i->op == OP_TABLESWITCH || i->op == OP_LOOKUPSWITCH) {
        int number = new_switch(at->e, i);
        code_op(at->s, OP_DUP);
        *ret_name = i->op == OP_TABLESWITCH ? "stepTable" : "stepLookup";
        *ret_descriptor = "(IIII)V";
        return number < 0 ? number : put_int(at, number);
    }
    *ret_name = "step";
    *ret_descriptor = "(II)V";
    return 0;
}

static int add_instructions(struct insertion_site *at)
{
    int r = 0;
    at->c->rewrite->huge = UINT32_MAX; /* code with such probes is slow anyway */
    for (struct insn i = {0}; r == 0 && edit_next(at->e, &i);) {
        const char *name, *descriptor;
        r = put_operands(at, &i, &name, &descriptor);
        r = r ? r : put_int(at, (int32_t)at->number);
        r = r ? r : put_int(at, (int32_t)i.pc);
        r = r ? r : put_call(at, name, descriptor);
        r = r ? r : insert(at, EDIT_BEFORE, i.pc, 5);
    }
    return r ? r : 1;
}

static void put_receiver(struct insertion_site *at)
{
    if (at->e->method->access & ACC_STATIC)
        code_op(at->s, OP_ACONST_NULL);
    else
        code_load(at->s, 'A', 0);
}

/*
 * Pushes the number and calls the probe. In a constructor a local records whether the entry was
 * passed.
 */
static int add_entry(struct insertion_site *at, int *ret_local)
{
    struct edit *e = at->e;
    int local = e->super_end ? edit_local(e, 'I') : 0;
    int r = local < 0 ? local : 0;
    if (r == 0 && local) {
        r = put_int(at, -1);
        code_store(at->s, 'I', (unsigned)local);
        r = r ? r : insert(at, EDIT_ENTRY, 0, 1);
    }
    r = r ? r : put_int(at, (int32_t)at->number);
    if (r == 0 && local) {
        code_store(at->s, 'I', (unsigned)local);
        code_load(at->s, 'I', (unsigned)local);
    }
    put_receiver(at);
    r = r ? r : put_call(at, "enter", "(ILjava/lang/Object;)V");
    *ret_local = local;
    return r ? r : insert(at, e->super_end ? EDIT_BEFORE : EDIT_ENTRY, e->super_end, 2);
}

static int put_exit(struct insertion_site *at, int local)
{
    int r = 0;
    if (local)
        code_load(at->s, 'I', (unsigned)local);
    else
        r = put_int(at, (int32_t)at->number);
    return r ? r : put_call(at, "exit", "(I)V");
}

static int put_monitor_exit(struct insertion_site *at, int receiver)
{
    if (receiver)
        code_load(at->s, 'A', (unsigned)receiver);
    else
        code_op(at->s, OP_ACONST_NULL);
    int r = put_int(at, (int32_t)at->number);
    return r ? r : put_call(at, "exitMonitor", "(Ljava/lang/Object;I)V");
}

/*
 * Inserts the probes at the ends of a method. In a synchronized method the exit of its monitor
 * follows the method's end.
 */
static int add_ends(struct insertion_site *at, bool exits, int local, bool monitor)
{
    struct edit *e = at->e;
    int receiver = 0, r = 0;
    if (monitor && !(e->method->access & ACC_STATIC)) {
        /* The method may assign local 0. */
        receiver = edit_local(e, 'A');
        code_load(at->s, 'A', 0);
        code_store(at->s, 'A', (unsigned)(receiver < 0 ? 0 : receiver));
        r = receiver < 0 ? receiver : insert(at, EDIT_ENTRY, 0, 1);
    }
    for (struct insn i = {0}; r == 0 && edit_next(e, &i);) {
        if (!(op_info[i.op] & OP_IS_RETURN))
            continue;
        r = exits ? put_exit(at, local) : 0;
        r = r || !monitor ? r : put_monitor_exit(at, receiver);
        r = r ? r : insert(at, EDIT_BEFORE, i.pc, 2);
    }
    /* That constructor throws nothing, and JDK 8's C2 crashes on a handler in it. */
    if (r || (at->c->object && e->constructor))
        return r ? r : 1;
    r = exits ? put_exit(at, local) : 0;
    r = r || !monitor ? r : put_monitor_exit(at, receiver);
    code_op(at->s, OP_ATHROW);
    r = r ? r : edit_catch_all(e, at->s, 2);
    buf_clear(at->s);
    return r ? r : 1;
}

static int add_monitor_exits(struct insertion_site *at)
{
    int r = 0, any = 0;
    for (struct insn i = {0}; r == 0 && edit_next(at->e, &i);) {
        if (i.op != OP_MONITOREXIT)
            continue;
        code_op(at->s, OP_DUP);
        r = put_int(at, -1);
        r = r ? r : put_call(at, "exitMonitor", "(Ljava/lang/Object;I)V");
        r = r ? r : insert(at, EDIT_BEFORE, i.pc, 2);
        any = 1;
    }
    return r ? r : any;
}

/* Reports arrays where they are created; the constructor of Object reports all other objects. */
static int add_allocations(struct insertion_site *at)
{
    int r = 0, any = 0;
    if (at->c->object && at->e->constructor) {
        code_load(at->s, 'A', 0);
        r = put_call(at, "create", "(Ljava/lang/Object;)V");
        r = r ? r : insert(at, EDIT_ENTRY, 0, 1);
        any = 1;
    }
    for (struct insn i = {0}; r == 0 && edit_next(at->e, &i);) {
        if (i.op != OP_NEWARRAY && i.op != OP_ANEWARRAY && i.op != OP_MULTIANEWARRAY)
            continue;
        code_op(at->s, OP_DUP);
        r = put_call(at, i.op == OP_MULTIANEWARRAY ? "createNested" : "create",
                     "(Ljava/lang/Object;)V");
        r = r ? r : insert(at, EDIT_AFTER, i.pc, 1);
        any = 1;
    }
    return r ? r : any;
}

static int edit_all(struct insertion_site *at, unsigned features)
{
    int r = 0, any = 0, local = 0;
    /*
     * On JDK 8 the reference handler thread calls Object.wait while holding a lock that collections
     * need, so no handler may run there.
     */
    bool waits = vm.version < 9 && at->c->object &&
                 str_is(class_utf8(at->c->file, at->e->method->name), "wait");
    bool methods = features & PROBE_METHODS && !waits;
    bool monitor = features & PROBE_MONITORS && at->e->method->access & ACC_SYNCHRONIZED;
    if (features & PROBE_ALLOCATIONS)
        r = add_allocations(at);
    any |= r > 0;
    if (r >= 0 && methods)
        r = add_entry(at, &local);
    if (r >= 0 && features & PROBE_INSTRUCTIONS)
        r = add_instructions(at);
    any |= r > 0;
    if (r >= 0 && features & PROBE_MONITORS)
        r = add_monitor_exits(at);
    any |= r > 0;
    if (r >= 0 && (methods || monitor))
        r = add_ends(at, methods, local, monitor);
    any |= r > 0;
    return r < 0 ? r : any;
}

static int edit_method(const struct instrument_class *c, struct edit *e)
{
    struct buf s = BUF(4096);
    struct insertion_site at = {c, e, 0, &s};
    if (c->virtual_thread || (c->thread && vm.version >= 21 &&
                              choice_thread_changes(class_utf8(c->file, e->method->name))))
        return 0;
    int r = new_number(&at.number);
    if (r == 0)
        r = edit_all(&at, atomic_load(&wanted));
    buf_release(&s);
    return r;
}

/* ---- on ---- */

static const struct instrument_client client = {.name = "jvmpi",
                                                .edit = edit_method,
                                                .object = true,
                                                .thread = true,
                                                .intrinsic = natives_intrinsic};
static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;

/* Requires the lock. */
static int define(JNIEnv *env, struct buf *why)
{
    if (atomic_load(&probe_class))
        return 0;
    eetop = probe_field_offset(env, "java/lang/Thread", "eetop", "J");
    jclass class = NULL;
    my.quiet++;
    int r = eetop < 0 ? (int)eetop : probe_define(env, PROBE, &class, why);
    my.quiet--;
    if (r == 0)
        read_own_methods(class);
    if (r == 0)
        atomic_store(&probe_class, class);
    return r;
}

/*
 * Returns the probe class once probes_enable or probes_class has succeeded, or NULL when the VM
 * refuses it.
 */
static jclass probes_class(JNIEnv *env)
{
    struct buf why = BUF(4096);
    if (!atomic_load(&probe_class)) {
        pthread_mutex_lock(&once);
        (void)!define(env, &why);
        pthread_mutex_unlock(&once);
    }
    buf_release(&why);
    return atomic_load(&probe_class);
}

void probes_bind(JNIEnv *env, enum probe_binding which)
{
    jclass class = probes_class(env);
    jmethodID bind = class ? (*env)->GetStaticMethodID(env, class, "bindNatives", "(I)V") : NULL;
    if (bind)
        (*env)->CallStaticVoidMethod(env, class, bind, (jint)which);
    vm_clear_exception(env);
}

PROBE_NATIVE(void, natives)(JNIEnv *env, jclass class, jint which)
{
    if (which == BIND_SLEEP)
        sleep_bind(env);
    else
        methods_bind(env);
}

void probes_expect(unsigned features)
{
    atomic_fetch_or(&wanted, features);
}

static atomic_uint applied; /* features */

/* Inserts the probes of the wanted features. Requires the lock. */
static int apply(JNIEnv *env)
{
    static bool on;
    struct buf why = BUF(4096);
    unsigned now = atomic_load(&wanted);
    int r = define(env, &why);
    if (r == 0 && on)
        r = instrument_change(&client, env);
    if (r == 0 && !on) {
        r = instrument_choose(NULL, NULL);
        r = r ? r : instrument_on(&client, env, &why);
        on = r == 0;
    }
    if (r == 0)
        atomic_store(&applied, now);
    else
        fprintf(stderr, "jvmpi: no events of code: %s\n",
                why.len ? buf_str(&why) : "the VM refuses the probe");
    buf_release(&why);
    return r;
}

jint probes_enable(JNIEnv *env, unsigned features)
{
    int r = 0;
    probes_expect(features);
    /*
     * The VM waits for monitors while it changes classes. A handler may run on a thread that holds
     * one; it leaves what it wants to the thread that is changing classes.
     */
    while (r == 0 && (atomic_load(&applied) & features) != features) {
        if (my.notifying || my.raw_held) {
            if (pthread_mutex_trylock(&once))
                break;
        } else {
            pthread_mutex_lock(&once);
        }
        while (r == 0 && atomic_load(&applied) != atomic_load(&wanted))
            r = apply(env);
        pthread_mutex_unlock(&once);
        /* features that were left to this thread just before the unlock */
        features = atomic_load(&wanted);
    }
    probes_flags();
    return r < 0 ? JVMPI_FAIL : JVMPI_SUCCESS;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Method events by instrumentation, and the events of compiled methods. In a constructor the entry is sent behind this() or
 * super(): before, `this` is nothing yet, and the verifier allows no handler around it. Native methods have no code to
 * instrument and are not told of.
 */
#include "agent/instrument.h"
#include "agent/probe_class.h"
#include "jvmpi/layer.h"

#include <stdio.h>
#include <stdlib.h>

#define PROBE "java/lang/JvmscopeJvmpi"

/* The VM finds them by name. */
#define NATIVE(type, name) EXPORT type JNICALL Java_java_lang_JvmscopeJvmpi_##name
NATIVE(jlong, constant)(JNIEnv *, jclass, jint);
NATIVE(void, entered)(JNIEnv *, jclass, jint, jobject);
NATIVE(void, exited)(JNIEnv *, jclass, jint);

static uint8_t flags[8];
static int64_t eetop;

/* Numbers of methods, given when they are instrumented; the id is asked for at the first call. */
enum { PAGE = 65536, PAGES = 1024 };

static _Atomic(_Atomic(jmethodID) *) pages[PAGES];
static _Atomic uint32_t numbers;
static __thread int inside; /* an agent's handler may call Java: that is not told of */

NATIVE(jlong, constant)(JNIEnv *env, jclass class, jint which)
{
    return which == 0 ? (jlong)(uintptr_t)flags : eetop;
}

static _Atomic(jmethodID) *place_of(uint32_t number)
{
    _Atomic(jmethodID) *page = number < (uint32_t)PAGE * PAGES ? atomic_load(&pages[number / PAGE]) : NULL;
    return page ? &page[number % PAGE] : NULL;
}

/* The method that called the probe: below the native method and the probe's own. */
static jmethodID caller(uint32_t number)
{
    _Atomic(jmethodID) *place = place_of(number);
    jmethodID method = place ? atomic_load_explicit(place, memory_order_relaxed) : NULL;
    jlocation location;
    if (unlikely(!method && place)) {
        if ((*vm.ti)->GetFrameLocation(vm.ti, NULL, 2, &method, &location))
            return NULL;
        atomic_store(place, method);
    }
    return method;
}

NATIVE(void, entered)(JNIEnv *env, jclass class, jint number, jobject receiver)
{
    jmethodID method = number >= 0 && !inside && !quiet && thread_known(env) ? caller((uint32_t)number) : NULL;
    if (!method)
        return;
    inside++;
    if (event_enabled(JVMPI_EVENT_METHOD_ENTRY)) {
        JVMPI_Event e = {.event_type = JVMPI_EVENT_METHOD_ENTRY, .u.method = {method}};
        notify(env, &e);
    }
    if (event_enabled(JVMPI_EVENT_METHOD_ENTRY2)) {
        JVMPI_Event e = {.event_type = JVMPI_EVENT_METHOD_ENTRY2, .u.method_entry2 = {method, id_of(receiver)}};
        notify(env, &e);
    }
    inside--;
}

NATIVE(void, exited)(JNIEnv *env, jclass class, jint number)
{
    jmethodID method = number >= 0 && !inside && !quiet && thread_known(env) ? caller((uint32_t)number) : NULL;
    if (!method || !event_enabled(JVMPI_EVENT_METHOD_EXIT))
        return;
    inside++;
    JVMPI_Event e = {.event_type = JVMPI_EVENT_METHOD_EXIT, .u.method = {method}};
    notify(env, &e);
    inside--;
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

/* The number on the stack, then the probe; in a constructor by way of a local that says whether the entry was passed. */
static int add_probes(const struct instrument_class *c, struct edit *e, uint32_t number, struct buf *s)
{
    int enter = rewrite_methodref(c->rewrite, PROBE, "enter", "(ILjava/lang/Object;)V");
    int leave = rewrite_methodref(c->rewrite, PROBE, "exit", "(I)V");
    int local = e->super_end ? edit_local(e, 'I') : 0;
    int r = enter < 0 ? enter : leave < 0 ? leave : local < 0 ? local : 0;
    if (r == 0 && local) {
        r = code_int(c->rewrite, s, -1);
        code_store(s, 'I', (unsigned)local);
        r = r ? r : edit_insert(e, EDIT_ENTRY, 0, 0, s, 1);
        buf_clear(s);
    }
    if (r == 0)
        r = code_int(c->rewrite, s, (int32_t)number);
    if (local) {
        code_store(s, 'I', (unsigned)local);
        code_load(s, 'I', (unsigned)local);
    }

    enum { STATIC = 8 };

    if (e->method->access & STATIC)
        code_op(s, OP_ACONST_NULL);
    else
        code_load(s, 'A', 0);
    code_invokestatic(s, enter);
    if (r == 0)
        r = e->super_end ? edit_insert(e, EDIT_BEFORE, e->super_end, 0, s, 2) : edit_insert(e, EDIT_ENTRY, 0, 0, s, 2);
    buf_clear(s);
    if (local)
        code_load(s, 'I', (unsigned)local);
    else if (r == 0)
        r = code_int(c->rewrite, s, (int32_t)number);
    code_invokestatic(s, leave);
    for (struct insn i = {0}; r == 0 && edit_next(e, &i);)
        if (op_info[i.op] & OP_IS_RETURN)
            r = edit_insert(e, EDIT_BEFORE, i.pc, 0, s, 1);
    code_op(s, OP_ATHROW);
    return r ? r : edit_catch_all(e, s, 1);
}

static int edit_method(const struct instrument_class *c, struct edit *e)
{
    struct buf s = BUF(4096);
    uint32_t number;
    if (c->virtual_thread)
        return 0;
    int r = new_number(&number);
    if (r == 0)
        r = add_probes(c, e, number, &s);
    buf_release(&s);
    return r ? r : 1;
}

static const struct instrument_client client = {.name = "jvmpi", .edit = edit_method};

jint methods_enable(JNIEnv *env)
{
    static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
    static bool on;
    struct buf why = BUF(4096);
    jclass class;
    int r = 0;
    pthread_mutex_lock(&once);
    if (!on) {
        eetop = probe_field_offset(env, "java/lang/Thread", "eetop", "J");
        r = eetop < 0 ? (int)eetop : probe_define(env, PROBE, &class, &why);
        if (r == 0)
            r = instrument_choose(NULL, NULL);
        if (r == 0)
            r = instrument_on(&client, env, &why);
        on = r == 0;
        if (r < 0)
            fprintf(stderr, "jvmpi: no method events: %s\n", why.len ? buf_str(&why) : "the VM refuses the probe");
    }
    pthread_mutex_unlock(&once);
    buf_release(&why);
    if (r < 0)
        return JVMPI_FAIL;
    methods_flags();
    return JVMPI_SUCCESS;
}

void methods_flags(void)
{
    flags[0] = event_enabled(JVMPI_EVENT_METHOD_ENTRY) || event_enabled(JVMPI_EVENT_METHOD_ENTRY2);
    flags[1] = event_enabled(JVMPI_EVENT_METHOD_EXIT);
}

/* ---- compiled methods ---- */

static void JNICALL on_compiled(jvmtiEnv *ti, jmethodID method, jint size, const void *address, jint n,
                                const jvmtiAddrLocationMap *map, const void *info)
{
    if (!event_enabled(JVMPI_EVENT_COMPILED_METHOD_LOAD))
        return;
    jint n_lines = 0, used = 0;
    jvmtiLineNumberEntry *lines = NULL;
    JVMPI_Lineno *table = n > 0 && map ? calloc((size_t)n, sizeof(*table)) : NULL;
    if (table && (*ti)->GetLineNumberTable(ti, method, &n_lines, &lines))
        n_lines = 0;
    for (jint i = 0; table && i < n; i++) {
        jlocation best = -1;
        jint line = -1;
        for (jint k = 0; k < n_lines; k++) {
            if (lines[k].start_location <= map[i].location && lines[k].start_location > best) {
                best = lines[k].start_location;
                line = lines[k].line_number;
            }
        }
        if (line >= 0)
            table[used++] = (JVMPI_Lineno){(jint)((const char *)map[i].start_address - (const char *)address), line};
    }
    vm_free(lines);
    JVMPI_Event e = {.event_type = JVMPI_EVENT_COMPILED_METHOD_LOAD,
                     .u.compiled_method_load = {method, (void *)(uintptr_t)address, size, used, table}};
    notify(vm_jni(), &e);
    free(table);
}

static void JNICALL on_uncompiled(jvmtiEnv *ti, jmethodID method, const void *address)
{
    JVMPI_Event e = {.event_type = JVMPI_EVENT_COMPILED_METHOD_UNLOAD, .u.compiled_method_unload = {method}};
    if (event_enabled(JVMPI_EVENT_COMPILED_METHOD_UNLOAD))
        notify(vm_jni(), &e);
}

const struct vm_callbacks compiled_load_events = {.ti = {.CompiledMethodLoad = on_compiled}};
const struct vm_callbacks compiled_unload_events = {.ti = {.CompiledMethodUnload = on_uncompiled}};

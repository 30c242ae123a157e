/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations on virtual threads that call no native method, so that calls of ours have to be
 * inserted: LockSupport.unpark, and VirtualThread's methods that give a thread to the scheduler.
 * threads=y instruments no others.
 */
#include "agent/capture/threads/unpark.h"

#include "agent/capture/threads/natives.h"
#include "agent/capture/threads/threads.h"
#include "agent/capture/threads/waiters.h"
#include "agent/instrument/instrument.h"
#include "agent/instrument/probe_class.h"
#include "agent/session/budget.h"

#define PROBE  "java/lang/JvmscopeThreads"
#define UNPARK "(Ljava/lang/Thread;)V"

EXPORT void JNICALL Java_java_lang_JvmscopeThreads_unpark(JNIEnv *jni, jclass class,
                                                          jobject thread);

void JNICALL Java_java_lang_JvmscopeThreads_unpark(JNIEnv *jni, jclass class, jobject thread)
{
    if (!budget_keeps(&budget_wakes_of)) {
        threads_interaction_left_out();
        return;
    }
    uint64_t cost = budget_begin();
    if (!thread || !threads_natives_enter())
        return;
    struct waiter *w = native_self(jni);
    if (w)
        threads_put_unpark(jni, w, thread, 0, 0);
    threads_natives_leave();
    budget_end(COST_WAITS, cost);
}

EXPORT void JNICALL Java_java_lang_JvmscopeThreads_ready(JNIEnv *jni, jclass class, jobject thread);

void JNICALL Java_java_lang_JvmscopeThreads_ready(JNIEnv *jni, jclass class, jobject thread)
{
    if (!thread || !threads_natives_enter())
        return;
    waiter_ready(jni, thread);
    threads_natives_leave();
}

static bool unpark_wants(struct str class_name)
{
    return str_is(class_name, "java/util/concurrent/locks/LockSupport");
}

/*
 * Instruments the methods of VirtualThread that give it to the scheduler. Their names are similar
 * in all versions: submitRunContinuation, lazySubmit..., externalSubmit... They may call each
 * other; only the outermost call counts.
 */
static int submit_edit(const struct instrument_class *c, struct edit *e)
{
    struct str name = class_utf8(c->file, e->method->name);
    if (!memmem(name.data, name.len, "ubmitRunContinuation", 20) || e->method->access & ACC_STATIC)
        return 0;
    _cleanup_(buf_release) struct buf code = BUF(16);
    int probe = rewrite_methodref(e->rewrite, PROBE, "ready", UNPARK);
    if (probe < 0)
        return probe;
    code_op(&code, OP_ALOAD_0);
    code_invokestatic(&code, probe);
    return edit_insert(e, EDIT_ENTRY, 0, 0, &code, 1) ?: 1;
}

/*
 * Instruments LockSupport.unpark(Thread), in which a virtual thread is passed to another method
 * with this descriptor, whose class depends on the version.
 */
static int unpark_edit(const struct instrument_class *c, struct edit *e)
{
    if (c->virtual_thread)
        return submit_edit(c, e);
    if (!str_is(class_utf8(c->file, e->method->name), "unpark") ||
        !str_is(class_utf8(c->file, e->method->descriptor), UNPARK))
        return 0;
    _cleanup_(buf_release) struct buf code = BUF(16);
    int probe = rewrite_methodref(e->rewrite, PROBE, "unpark", UNPARK);
    int r = probe < 0 ? probe : 0;
    int found = 0;
    code_op(&code, OP_DUP);
    code_invokestatic(&code, probe);
    for (struct insn i = {0}; r == 0 && edit_next(e, &i);) {
        struct class_member m;
        if ((i.op != OP_INVOKESTATIC && i.op != OP_INVOKEINTERFACE) ||
            !class_member(c->file, insn_constant(&i), &m) || !str_is(m.descriptor, UNPARK))
            continue;
        r = edit_insert(e, EDIT_BEFORE, i.pc, 0, &code, 1);
        found = 1;
    }
    return r < 0 ? r : found;
}

static const char *const unpark_classes[] = {"java/util/concurrent/locks/LockSupport",
                                             "java/lang/VirtualThread", NULL};

static const struct instrument_client client = {.name = "threads",
                                                .edit = unpark_edit,
                                                .wants = unpark_wants,
                                                .only = unpark_classes,
                                                .virtual_threads = true,
                                                .loaded_only = true,
                                                .when_linked = true};
static bool on;

int unparks_on(JNIEnv *jni, struct buf *why)
{
    static jclass probe;
    jvmtiCapabilities want = {.can_retransform_classes = 1}, missing = {0};
    if (vm_need(&want, &missing) < 0 || !vm_capabilities_empty(&missing))
        return 0; /* the cause of these parks is then unknown */
    int r = probe_define(jni, PROBE, &probe, why);
    if (r == 0)
        r = instrument_on(&client, jni, why);
    on = r == 0;
    return r;
}

void unparks_off(JNIEnv *jni)
{
    if (on)
        instrument_off(&client, jni);
    on = false;
}

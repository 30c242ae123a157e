/* SPDX-License-Identifier: Apache-2.0 */
/*
 * callNotify, callStart, callInterrupt, sleep, park and unpark: native methods, bound to ours. Thread and Unsafe bind their
 * natives by a method of theirs, registerNatives, through the JNI function table: with RegisterNatives of that table replaced
 * for the time of the call, what they bind is ours and calls what they had. Object.notify is bound by a class of our own on
 * the boot loader, which may do so silently. So nothing is instrumented, and it is the same at start-up and on attach.
 */
#include "agent/capture/threads.h"

#include "base/buf.h"
#include "base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef void(JNICALL *on_object)(JNIEnv *, jobject);
typedef void(JNICALL *on_time)(JNIEnv *, jclass, jlong);
typedef void(JNICALL *on_park)(JNIEnv *, jobject, jboolean, jlong);
typedef void(JNICALL *on_unpark)(JNIEnv *, jobject, jobject);
typedef jobject(JNICALL *current_thread)(JNIEnv *, jclass);

static struct {
    on_object notify, notify_all, start, interrupt;
    on_time sleep;
    on_park park;
    on_unpark unpark;
    current_thread current;
    bool sleep_ns;
    bool bound;
} real;

struct waiter *native_self(JNIEnv *jni)
{
    jobject thread = NULL;
    if (thread_capture.virtual_too && real.current)
        thread = real.current(jni, NULL);
    struct waiter *w = waiter_self(jni, thread);
    if (thread)
        (*jni)->DeleteLocalRef(jni, thread);
    return w;
}

static void interaction_on(JNIEnv *jni, jobject object, bool all)
{
    if (!natives_enter())
        return;
    struct waiter *w = native_self(jni);
    if (w)
        put_interaction(TYPE_NOTIFY, w, stack_here(jni), object_class(jni, object), object_identity(object), 0, all);
    natives_leave();
}

static void JNICALL our_notify(JNIEnv *jni, jobject object)
{
    interaction_on(jni, object, false);
    real.notify(jni, object);
}

static void JNICALL our_notify_all(JNIEnv *jni, jobject object)
{
    interaction_on(jni, object, true);
    real.notify_all(jni, object);
}

static uint64_t tid_of(JNIEnv *jni, jobject thread)
{
    return thread ? (uint64_t)(*jni)->GetLongField(jni, thread, thread_capture.tid) : 0;
}

static void JNICALL our_start(JNIEnv *jni, jobject thread)
{
    if (natives_enter()) {
        struct waiter *w = native_self(jni);
        if (w)
            put_interaction(TYPE_START, w, stack_here(jni), 0, object_identity(thread), tid_of(jni, thread), false);
        natives_leave();
    }
    real.start(jni, thread);
}

static void JNICALL our_interrupt(JNIEnv *jni, jobject thread)
{
    if (natives_enter()) {
        struct waiter *w = native_self(jni);
        jint state = 0;
        /* "target thread in waiting state (check via getState() == (WAITING | TIMED_WAITING))" */
        if (w && (*vm.ti)->GetThreadState(vm.ti, thread, &state) == JVMTI_ERROR_NONE && state & JVMTI_THREAD_STATE_WAITING)
            put_interaction(TYPE_INTERRUPT, w, stack_here(jni), 0, object_identity(thread), tid_of(jni, thread), false);
        natives_leave();
    }
    real.interrupt(jni, thread);
}

static void put_sleep(struct waiter *w, const struct wait *was, uint64_t ns)
{
    struct jfr_event e;
    if (!jfr_begin(thread_capture.jfr, JFR_THREAD_SLEEP, 0, &e))
        return;
    jfr_put_time(&e, was->start);
    jfr_put_long(&e, (int64_t)ns);
    jfr_put_long(&e, (int64_t)w->id);
    jfr_put_long(&e, (int64_t)was->trace);
    jfr_put_long(&e, was->timeout);
    jfr_commit(&e);
}

static void JNICALL our_sleep(JNIEnv *jni, jclass class, jlong time)
{
    struct wait how = {.timeout = real.sleep_ns ? (time + 999999) / 1000000 : time};
    struct waiter *w;
    uint64_t ns;
    if (natives_enter()) {
        w = native_self(jni);
        how.trace = w ? stack_here(jni) : 0;
        if (w)
            wait_begin(w, WAIT_SLEEP, &how);
        natives_leave();
    }
    real.sleep(jni, class, time);
    if (natives_enter()) {
        w = native_self(jni);
        if (w && wait_end(w, WAIT_SLEEP, &how, &ns))
            put_sleep(w, &how, ns);
        natives_leave();
    }
}

static void put_park(struct waiter *w, const struct wait *was, uint64_t ns, bool absolute, jlong time)
{
    struct jfr_event e;
    if (!jfr_begin(thread_capture.jfr, JFR_THREAD_PARK, 0, &e))
        return;
    jfr_put_time(&e, was->start);
    jfr_put_long(&e, (int64_t)ns);
    jfr_put_long(&e, (int64_t)w->id);
    jfr_put_long(&e, (int64_t)was->trace);
    jfr_put_long(&e, (int64_t)was->class);
    jfr_put_long(&e, absolute ? INT64_MIN : was->timeout ? was->timeout : INT64_MIN);
    jfr_put_long(&e, absolute ? time : INT64_MIN);
    jfr_put_long(&e, was->object);
    jfr_commit(&e);
}

static void park_begins(JNIEnv *jni, jthread thread, bool absolute, jlong time)
{
    struct waiter *w = waiter_self(jni, thread);
    if (!w)
        return;
    struct wait how = {.timeout = absolute ? 0 : time};
    jobject blocker = thread ? (*jni)->GetObjectField(jni, thread, thread_capture.park_blocker) : NULL;
    how.class = object_class(jni, blocker);
    how.object = object_identity(blocker);
    how.owned = blocker && thread_capture.watch && watch_owned(jni, blocker);
    how.trace = stack_here(jni);
    if (blocker)
        (*jni)->DeleteLocalRef(jni, blocker);
    if (absolute) {
        int64_t left = (int64_t)time * 1000000 - (int64_t)clock_ns(CLOCK_REALTIME);
        how.timeout = MAX(left, 1);
    }
    wait_begin(w, WAIT_PARK, &how);
}

static void JNICALL our_park(JNIEnv *jni, jobject unsafe, jboolean absolute, jlong time)
{
    jobject thread = real.current ? real.current(jni, NULL) : NULL;
    if (natives_enter()) {
        park_begins(jni, thread, absolute, time);
        natives_leave();
    }
    real.park(jni, unsafe, absolute, time);
    if (natives_enter()) {
        struct waiter *w = waiter_self(jni, thread);
        struct wait was;
        uint64_t ns;
        if (w && wait_end(w, WAIT_PARK, &was, &ns))
            put_park(w, &was, ns, absolute, time);
        natives_leave();
    }
    if (thread)
        (*jni)->DeleteLocalRef(jni, thread);
}

static void JNICALL our_unpark(JNIEnv *jni, jobject unsafe, jobject thread)
{
    if (natives_enter()) {
        struct waiter *w = native_self(jni);
        if (w && thread)
            put_interaction(TYPE_UNPARK, w, stack_here(jni), 0, 0, tid_of(jni, thread), false);
        natives_leave();
    }
    real.unpark(jni, unsafe, thread);
}

/* ---- binding ---- */

/* Natives by name, of Thread and Unsafe; the first class and name found in a call of registerNatives. */
static const struct native_row {
    const char *name;
    void *ours;
    void **real;
    bool needs_instrument;
} rows[] = {
    {"start0", (void *)our_start, (void **)&real.start, true},
    {"interrupt0", (void *)our_interrupt, (void **)&real.interrupt, true},
    {"sleep", (void *)our_sleep, (void **)&real.sleep, false},
    {"sleep0", (void *)our_sleep, (void **)&real.sleep, false},
    {"sleepNanos0", (void *)our_sleep, (void **)&real.sleep, false},
    {"park", (void *)our_park, (void **)&real.park, false},
    {"unpark", (void *)our_unpark, (void **)&real.unpark, false},
};

typedef jint(JNICALL *register_natives)(JNIEnv *, jclass, const JNINativeMethod *, jint);
static register_natives real_register;
static __thread bool rebinding;
static bool bind_ours; /* else to what they were */
static bool substitute_instrumented;
static int substituted;

/* What Thread and Unsafe bind otherwise is bound already and stays. */
static jint JNICALL our_register(JNIEnv *jni, jclass class, const JNINativeMethod *methods, jint n)
{
    if (!rebinding)
        return real_register(jni, class, methods, n);
    jint r = JNI_OK;
    for (jint i = 0; i < n && r == JNI_OK; i++) {
        for (size_t k = 0; k < ARRAY_SIZE(rows); k++) {
            if (strcmp(methods[i].name, rows[k].name) != 0 || (rows[k].needs_instrument && !substitute_instrumented))
                continue;
            JNINativeMethod one = methods[i];
            if (bind_ours) {
                memcpy(rows[k].real, &one.fnPtr, sizeof(void *));
                one.fnPtr = rows[k].ours;
            }
            r = real_register(jni, class, &one, 1);
            substituted++;
        }
    }
    return r;
}

static void register_again(JNIEnv *jni, const char *class_name)
{
    jclass c = (*jni)->FindClass(jni, class_name);
    jmethodID m = c ? (*jni)->GetStaticMethodID(jni, c, "registerNatives", "()V") : NULL;
    if (m)
        (*jni)->CallStaticVoidMethod(jni, c, m);
    vm_clear_exception(jni);
    if (c)
        (*jni)->DeleteLocalRef(jni, c);
}

/* Lets Thread and Unsafe bind their natives once more: to ours, or as they were. */
static int rebind(JNIEnv *jni)
{
    jniNativeInterface *table = NULL;
    if ((*vm.ti)->GetJNIFunctionTable(vm.ti, &table) != JVMTI_ERROR_NONE)
        return -EPROTO;
    real_register = table->RegisterNatives;
    table->RegisterNatives = our_register;
    int r = (*vm.ti)->SetJNIFunctionTable(vm.ti, table) == JVMTI_ERROR_NONE ? 0 : -EPROTO;
    if (r == 0) {
        rebinding = true;
        register_again(jni, "java/lang/Thread");
        register_again(jni, vm.version >= 9 ? "jdk/internal/misc/Unsafe" : "sun/misc/Unsafe");
        rebinding = false;
        table->RegisterNatives = real_register;
        r = (*vm.ti)->SetJNIFunctionTable(vm.ti, table) == JVMTI_ERROR_NONE ? 0 : -EPROTO;
    }
    vm_free(table);
    return r;
}

static void constant_utf8(struct buf *b, const char *s)
{
    buf_u8(b, 1);
    buf_be16(b, (uint16_t)strlen(s));
    buf_string(b, s);
}

/* class jvmscope.Binder { static native void bind(); static void call() { bind(); } } */
static void binder_class(struct buf *b)
{
    buf_be32(b, 0xcafebabe);
    buf_be32(b, 49); /* 5.0: no stack maps */
    buf_be16(b, 11);
    constant_utf8(b, "jvmscope/Binder"); /* 1 */
    buf_u8(b, 7);                        /* 2: class */
    buf_be16(b, 1);
    constant_utf8(b, "java/lang/Object"); /* 3 */
    buf_u8(b, 7);                         /* 4 */
    buf_be16(b, 3);
    constant_utf8(b, "bind"); /* 5 */
    constant_utf8(b, "()V");  /* 6 */
    buf_u8(b, 12);            /* 7: name and type */
    buf_be16(b, 5);
    buf_be16(b, 6);
    buf_u8(b, 10); /* 8: method */
    buf_be16(b, 2);
    buf_be16(b, 7);
    constant_utf8(b, "call"); /* 9 */
    constant_utf8(b, "Code"); /* 10 */
    buf_be16(b, 0x21);        /* public super */
    buf_be16(b, 2);
    buf_be16(b, 4);
    buf_be32(b, 0); /* no interfaces, no fields */
    buf_be16(b, 2);
    buf_be16(b, 0x109); /* public static native */
    buf_be16(b, 5);
    buf_be16(b, 6);
    buf_be16(b, 0);
    buf_be16(b, 0x9); /* public static */
    buf_be16(b, 9);
    buf_be16(b, 6);
    buf_be16(b, 1);
    buf_be16(b, 10);
    buf_be32(b, 16);
    buf_be32(b, 0); /* no stack, no locals */
    buf_be32(b, 4);
    buf_u8(b, 0xb8); /* invokestatic bind */
    buf_be16(b, 8);
    buf_u8(b, 0xb1); /* return */
    buf_be32(b, 0);  /* no handlers, no attributes */
    buf_be16(b, 0);
}

static int bind_result;

/*
 * jvmscope.Binder.bind. Natives of the boot loader's classes may be bound by code of that loader alone: of any other the VM
 * complains on standard output.
 */
static void JNICALL binder_bind(JNIEnv *jni, jclass binder)
{
    bind_result = rebind(jni);
    substituted += io_bind(jni, bind_ours);
    if (!substitute_instrumented || !real.notify || !real.notify_all)
        return;
    on_object notify = bind_ours ? our_notify : real.notify, all = bind_ours ? our_notify_all : real.notify_all;
    JNINativeMethod methods[] = {{(char *)"notify", (char *)"()V", (void *)notify},
                                 {(char *)"notifyAll", (char *)"()V", (void *)all}};
    jclass object = (*jni)->FindClass(jni, "java/lang/Object");
    if (object && (*jni)->RegisterNatives(jni, object, methods, 2) == JNI_OK)
        substituted += 2;
    vm_clear_exception(jni);
    if (object)
        (*jni)->DeleteLocalRef(jni, object);
}

static int call_binder(JNIEnv *jni, bool ours)
{
    jclass c = (*jni)->FindClass(jni, "jvmscope/Binder");
    vm_clear_exception(jni);
    if (!c) {
        struct buf b = BUF(1024);
        binder_class(&b);
        c = buf_error(&b) == 0 ? (*jni)->DefineClass(jni, "jvmscope/Binder", NULL, (const jbyte *)b.data, (jsize)b.len) : NULL;
        vm_clear_exception(jni);
        buf_release(&b);
    }
    JNINativeMethod bind = {(char *)"bind", (char *)"()V", (void *)binder_bind};
    jmethodID call = NULL;
    if (c && (*jni)->RegisterNatives(jni, c, &bind, 1) == JNI_OK)
        call = (*jni)->GetStaticMethodID(jni, c, "call", "()V");
    bind_ours = ours;
    bind_result = -EPROTO;
    if (call)
        (*jni)->CallStaticVoidMethod(jni, c, call);
    vm_clear_exception(jni);
    if (c)
        (*jni)->DeleteLocalRef(jni, c);
    return bind_result;
}

int natives_bind(JNIEnv *jni, bool instrument, struct buf *why)
{
    if (!vm.hotspot)
        return 0; /* JVM TI's own events alone */
    real.notify = (on_object)vm_libjvm_function("JVM_MonitorNotify");
    real.notify_all = (on_object)vm_libjvm_function("JVM_MonitorNotifyAll");
    real.current = (current_thread)vm_libjvm_function("JVM_CurrentThread");
    real.sleep_ns = vm.version >= 21;
    substituted = 0;
    substitute_instrumented = instrument;
    int r = call_binder(jni, true);
    real.bound = r == 0;
    if (r < 0)
        buf_printf(why, "threads=y: the VM refuses to bind native methods");
    return r < 0 ? r : substituted;
}

void natives_unbind(JNIEnv *jni)
{
    if (!real.bound)
        return;
    real.bound = false;
    (void)call_binder(jni, false);
}

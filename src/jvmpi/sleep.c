/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports Thread.sleep as MONITOR_WAIT and MONITOR_WAITED without an object. Its native method is
 * bound to a function of the layer, which calls the VM's function.
 */
#include "base/clock.h"
#include "jvmpi/boot_classes.h"
#include "jvmpi/layer.h"
#include "jvmpi/probes.h"
#include "jvmpi/sources.h"
#include "jvmpi/threads.h"

#include <string.h>

static void(JNICALL *vm_sleep)(JNIEnv *, jclass, jlong);
static bool in_ns;
static bool bound;

/* Returns true when the event may be sent. */
static bool report(JNIEnv *env, jint type, jlong ms)
{
    JVMPI_Event e = {.event_type = type, .u.monitor_wait = {NULL, ms}};
    bool may = layer_enabled(type) && !my.quiet && thread_known(env);
    if (may)
        layer_notify(env, &e);
    return may;
}

static void JNICALL our_sleep(JNIEnv *env, jclass thread, jlong time)
{
    uint64_t began = now_ns();
    bool reported =
        report(env, JVMPI_EVENT_MONITOR_WAIT, in_ns ? (time + NS_PER_MS - 1) / NS_PER_MS : time);
    vm_sleep(env, thread, time);
    jthrowable interrupted = (*env)->ExceptionOccurred(env);
    vm_clear_exception(env);                                  /* the agent may call JNI */
    if (reported || !layer_enabled(JVMPI_EVENT_MONITOR_WAIT)) /* see monitors.c */
        (void)report(env, JVMPI_EVENT_MONITOR_WAITED, (jlong)((now_ns() - began) / NS_PER_MS));
    if (interrupted)
        (*env)->Throw(env, interrupted);
}

void sleep_bind(JNIEnv *env)
{
    static const char *const names[] = {"sleep", "sleep0", "sleepNanos0"};
    jclass thread = boot_class(env, "java/lang/Thread");
    for (size_t i = 0; thread && !bound && i < ARRAY_SIZE(names); i++) {
        JNINativeMethod one = {(char *)(uintptr_t)names[i], (char *)"(J)V", (void *)our_sleep};
        jmethodID method = (*env)->GetStaticMethodID(env, thread, names[i], "(J)V");
        jboolean native = JNI_FALSE;
        vm_clear_exception(env);
        if (method && !(*vm.ti)->IsMethodNative(vm.ti, method, &native) && native)
            bound = (*env)->RegisterNatives(env, thread, &one, 1) == JNI_OK;
    }
    vm_clear_exception(env);
    (*env)->DeleteLocalRef(env, thread);
}

jint sleep_enable(JNIEnv *env)
{
    static atomic_flag once = ATOMIC_FLAG_INIT;
    if (atomic_flag_test_and_set(&once)) /* calls Java, so without a lock */
        return vm_sleep ? JVMPI_SUCCESS : JVMPI_FAIL;
    in_ns = vm.version >= 21;
    void *f = vm_libjvm_function("JVM_Sleep");
    f = f ? f : vm_libjvm_function("JVM_SleepNanos");
    memcpy(&vm_sleep, &f, sizeof(f));
    if (vm_sleep)
        probes_bind(env, BIND_SLEEP);
    return bound ? JVMPI_SUCCESS : JVMPI_FAIL;
}

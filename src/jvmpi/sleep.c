/* SPDX-License-Identifier: Apache-2.0 */
/* Thread.sleep, as MONITOR_WAIT and MONITOR_WAITED without an object: its native method is bound to ours, which calls the VM's.
 */
#include "base/clock.h"
#include "jvmpi/probes.h"

#include <string.h>

PROBE_NATIVE(void, natives)(JNIEnv *, jclass);

static void(JNICALL *vm_sleep)(JNIEnv *, jclass, jlong);
static bool in_ns;
static bool bound;

static void tell(JNIEnv *env, jint type, jlong ms)
{
    JVMPI_Event e = {.event_type = type, .u.monitor_wait = {NULL, ms}};
    if (event_enabled(type) && !quiet && thread_known(env))
        notify(env, &e);
}

static void JNICALL our_sleep(JNIEnv *env, jclass thread, jlong time)
{
    uint64_t began = now_ns();
    tell(env, JVMPI_EVENT_MONITOR_WAIT, in_ns ? (time + NS_PER_MS - 1) / NS_PER_MS : time);
    vm_sleep(env, thread, time);
    jthrowable interrupted = (*env)->ExceptionOccurred(env);
    vm_clear_exception(env); /* the agent may call JNI */
    tell(env, JVMPI_EVENT_MONITOR_WAITED, (jlong)((now_ns() - began) / NS_PER_MS));
    if (interrupted)
        (*env)->Throw(env, interrupted);
}

/* Called by the probe class, for the VM complains when another than a class of the boot loader binds Thread's natives. */
PROBE_NATIVE(void, natives)(JNIEnv *env, jclass class)
{
    static const char *const names[] = {"sleep", "sleep0", "sleepNanos0"};
    jclass thread = (*env)->FindClass(env, "java/lang/Thread");
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
    static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&once);
    in_ns = vm.version >= 21;
    void *f = vm_libjvm_function("JVM_Sleep");
    f = f ? f : vm_libjvm_function("JVM_SleepNanos");
    memcpy(&vm_sleep, &f, sizeof(f));
    jclass class = vm_sleep && !bound ? probes_class(env) : NULL;
    jmethodID bind = class ? (*env)->GetStaticMethodID(env, class, "bindNatives", "()V") : NULL;
    if (bind)
        (*env)->CallStaticVoidMethod(env, class, bind);
    vm_clear_exception(env);
    pthread_mutex_unlock(&once);
    return bound ? JVMPI_SUCCESS : JVMPI_FAIL;
}

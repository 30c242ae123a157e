/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uses 300 ms of CPU time on the main thread before it runs Java code: in the VMInit event, in a
 * function whose name the test knows.
 */
#include <jvmti.h>
#include <time.h>

volatile unsigned long bare_sink;

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

__attribute__((noinline, visibility("default"))) void computes_before_java(double seconds)
{
    for (double end = cpu_seconds() + seconds; cpu_seconds() < end;)
        for (int i = 0; i < 100000; i++)
            bare_sink = bare_sink * 31 + (unsigned long)i;
}

static void JNICALL on_init(jvmtiEnv *ti, JNIEnv *jni, jthread thread)
{
    computes_before_java(0.3);
    bare_sink++; /* keeps the call from becoming a tail call */
}

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *options, void *reserved)
{
    jvmtiEnv *ti;
    jvmtiEventCallbacks callbacks = {.VMInit = on_init};
    if ((*vm)->GetEnv(vm, (void **)&ti, JVMTI_VERSION_1_1) != JNI_OK)
        return JNI_ERR;
    (*ti)->SetEventCallbacks(ti, &callbacks, sizeof(callbacks));
    (*ti)->SetEventNotificationMode(ti, JVMTI_ENABLE, JVMTI_EVENT_VM_INIT, NULL);
    return JNI_OK;
}

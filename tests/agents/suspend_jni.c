/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The native half of tests/java/Suspended.java: stops threads wherever they are, as a debugger
 * does.
 */
#include <jvmti.h>

static jvmtiEnv *ti;

JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM *java, void *reserved)
{
    jvmtiCapabilities suspend = {.can_suspend = 1};
    if ((*java)->GetEnv(java, (void **)&ti, JVMTI_VERSION_1_2) != JNI_OK ||
        (*ti)->AddCapabilities(ti, &suspend) != JVMTI_ERROR_NONE)
        return JNI_ERR;
    return JNI_VERSION_1_6;
}

JNIEXPORT jint JNICALL Java_Suspended_suspend(JNIEnv *jni, jclass c, jobject thread)
{
    return (jint)(*ti)->SuspendThread(ti, thread);
}

JNIEXPORT jint JNICALL Java_Suspended_resume(JNIEnv *jni, jclass c, jobject thread)
{
    return (jint)(*ti)->ResumeThread(ti, thread);
}

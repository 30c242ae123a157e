/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The native half of tests/java/HeldLocks.java: native code holds a monitor while it runs
 * something.
 */
#include <jni.h>

JNIEXPORT void JNICALL Java_HeldLocks_held(JNIEnv *jni, jclass c, jobject lock, jobject inside);

JNIEXPORT void JNICALL Java_HeldLocks_held(JNIEnv *jni, jclass c, jobject lock, jobject inside)
{
    jclass runnable = (*jni)->FindClass(jni, "java/lang/Runnable");
    jmethodID run = (*jni)->GetMethodID(jni, runnable, "run", "()V");
    (*jni)->MonitorEnter(jni, lock);
    (*jni)->CallVoidMethod(jni, inside, run);
    (*jni)->MonitorExit(jni, lock); /* even with an exception pending */
}

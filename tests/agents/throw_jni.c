/* SPDX-License-Identifier: Apache-2.0 */
/* The native half of tests/java/ThrowsByNatives.java. */
#include <jni.h>

JNIEXPORT void JNICALL Java_ThrowsByNatives_created(JNIEnv *jni, jclass c);

JNIEXPORT void JNICALL Java_ThrowsByNatives_created(JNIEnv *jni, jclass c)
{
    (*jni)->ThrowNew(jni, (*jni)->FindClass(jni, "java/util/NoSuchElementException"), "native");
}

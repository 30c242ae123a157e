/* SPDX-License-Identifier: Apache-2.0 */
/* The native half of tests/java/ThrowsByNatives.java. */
#include <jni.h>

JNIEXPORT void JNICALL Java_ThrowsByNatives_created(JNIEnv *jni, jclass c);

JNIEXPORT jobject JNICALL Java_ThrowsByNatives_made(JNIEnv *jni, jclass c, jint number);

JNIEXPORT jobject JNICALL Java_ThrowsByNatives_made(JNIEnv *jni, jclass c, jint number)
{
    jclass made = (*jni)->FindClass(jni, "java/util/ConcurrentModificationException");
    return (*jni)->NewObject(jni, made, (*jni)->GetMethodID(jni, made, "<init>", "()V"));
}

JNIEXPORT void JNICALL Java_ThrowsByNatives_created(JNIEnv *jni, jclass c)
{
    (*jni)->ThrowNew(jni, (*jni)->FindClass(jni, "java/util/NoSuchElementException"), "native");
}

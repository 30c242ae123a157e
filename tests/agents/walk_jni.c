/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The native half of tests/java/WalkNative.java: Java calls C, C calls libc, libc calls C, C calls
 * Java.
 */
#include <jni.h>
#include <stdlib.h>

static __thread JNIEnv *env;
static __thread jobject task;

__attribute__((noinline)) static int walk_jni_compare(const void *a, const void *b)
{
    static __thread int calls;
    if (calls++ % 64 == 0) {
        jclass class = (*env)->GetObjectClass(env, task);
        jmethodID run = (*env)->GetMethodID(env, class, "run", "()V");
        (*env)->CallVoidMethod(env, task, run);
        (*env)->DeleteLocalRef(env, class);
    }
    return *(const int *)a - *(const int *)b;
}

__attribute__((noinline)) static int walk_jni_sort(int n)
{
    int numbers[64];
    for (int i = 0; i < 64; i++)
        numbers[i] = (i * 37 + n) % 64;
    qsort(numbers, 64, sizeof(int), walk_jni_compare);
    return numbers[n % 64];
}

__attribute__((noinline)) static long walk_jni_burn(long n)
{
    volatile long sum = 0;
    for (long i = 0; i < n; i++)
        sum += i ^ sum;
    return sum;
}

JNIEXPORT jint JNICALL Java_WalkNative_sort(JNIEnv *jni, jclass class, jobject runnable, jint n);

JNIEXPORT jint JNICALL Java_WalkNative_sort(JNIEnv *jni, jclass class, jobject runnable, jint n)
{
    env = jni;
    task = runnable;
    return walk_jni_sort(n);
}

JNIEXPORT jlong JNICALL Java_WalkNative_burn(JNIEnv *jni, jclass class, jlong n);

JNIEXPORT jlong JNICALL Java_WalkNative_burn(JNIEnv *jni, jclass class, jlong n)
{
    return walk_jni_burn(n);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Native methods of JvmpiWork. The layer's thunks must pass arguments, results and exceptions
 * unchanged.
 */
#include "jvmpi_agent.h"

JNIEXPORT jdouble JNICALL Java_JvmpiWork_many(JNIEnv *env, jobject self, jint a, jlong b, jdouble c,
                                              jfloat d, jbyte e, jobject f, jshort g, jdouble h,
                                              jboolean i, jchar j, jdouble k, jfloat l, jdouble m,
                                              jdouble n, jfloat o, jdouble p, jdouble q, jlong r);

JNIEXPORT jdouble JNICALL Java_JvmpiWork_many(JNIEnv *env, jobject self, jint a, jlong b, jdouble c,
                                              jfloat d, jbyte e, jobject f, jshort g, jdouble h,
                                              jboolean i, jchar j, jdouble k, jfloat l, jdouble m,
                                              jdouble n, jfloat o, jdouble p, jdouble q, jlong r)
{
    int same = (*env)->IsSameObject(env, self, f);
    return same + 2. * a + 3. * (double)b + 5 * c + 7 * d + 11 * e + 13 * g + 17 * h + 19 * i +
           23 * j + 29 * k + 31 * l + 37 * m + 41 * n + 43 * o + 47 * p + 53 * q + 59. * (double)r;
}

JNIEXPORT jlong JNICALL Java_JvmpiWork_thrown(JNIEnv *env, jclass class, jint i);

JNIEXPORT jlong JNICALL Java_JvmpiWork_thrown(JNIEnv *env, jclass class, jint i)
{
    (*env)->ThrowNew(env, (*env)->FindClass(env, "java/lang/IllegalStateException"),
                     i % 2 ? "odd" : "even");
    return 1;
}

JNIEXPORT jobject JNICALL Java_JvmpiWork_itself(JNIEnv *env, jclass class, jobject o);

JNIEXPORT jobject JNICALL Java_JvmpiWork_itself(JNIEnv *env, jclass class, jobject o)
{
    return o;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Native methods of tests/java/TracedNative.java. */
#include <jni.h>

#define NATIVE(type, name, ...)                                                            \
    JNIEXPORT type JNICALL Java_TracedNative_##name(JNIEnv *jni, jclass c, ##__VA_ARGS__); \
    JNIEXPORT type JNICALL Java_TracedNative_##name(JNIEnv *jni, jclass c, ##__VA_ARGS__)

NATIVE(jlong, many, jint a, jlong b, jfloat f, jdouble d, jbyte e, jshort s, jchar g, jboolean h,
       jobject i, jdouble j, jdouble k, jdouble l, jfloat m, jdouble n, jdouble o, jdouble p,
       jint q, jlong r, jfloat t, jstring u, jintArray v)
{
    jdouble sum = a + f + d + e + s + g + h + j + k + l + m + n + o + p + q + t;
    return (jlong)sum + r + b + (*jni)->GetArrayLength(jni, v) + (*jni)->GetStringLength(jni, u) +
           (i ? 1000 : 0);
}

NATIVE(jstring, hello, jstring s, jint n)
{
    return (*jni)->NewStringUTF(jni, "hello");
}

NATIVE(void, fails, jint n)
{
    (*jni)->ThrowNew(jni, (*jni)->FindClass(jni, "java/lang/IllegalStateException"), "native");
}

NATIVE(jboolean, no)
{
    return JNI_FALSE;
}

NATIVE(jbyte, bytes)
{
    return -7;
}

NATIVE(jchar, chars)
{
    return 0x263a;
}

NATIVE(jshort, shorts)
{
    return -300;
}

NATIVE(jfloat, floats, jfloat x)
{
    return x / 4;
}

NATIVE(jdouble, doubles, jdouble x)
{
    return x / 2;
}

NATIVE(jobject, same, jobject o)
{
    return o;
}

NATIVE(jint, locked, jint n)
{
    return n * 2;
}

NATIVE(jint, calls, jint n)
{
    return (*jni)->CallStaticIntMethod(jni, c, (*jni)->GetStaticMethodID(jni, c, "back", "(I)I"),
                                       n);
}

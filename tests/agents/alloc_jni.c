/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The native half of tests/java/AllocJni.java: creates objects with each function of JNI that does
 * so.
 */
#include <jni.h>
#include <stdarg.h>

static jobject with_list(JNIEnv *jni, jclass class, jmethodID constructor, ...)
{
    va_list arguments;
    va_start(arguments, constructor);
    jobject o = (*jni)->NewObjectV(jni, class, constructor, arguments);
    va_end(arguments);
    return o;
}

static void drop(JNIEnv *jni, jobject o)
{
    if ((*jni)->ExceptionCheck(jni))
        (*jni)->ExceptionClear(jni);
    if (o)
        (*jni)->DeleteLocalRef(jni, o);
}

JNIEXPORT void JNICALL Java_AllocJni_objects(JNIEnv *jni, jclass self, jclass plain, jclass throws,
                                             jint n);

JNIEXPORT void JNICALL Java_AllocJni_objects(JNIEnv *jni, jclass self, jclass plain, jclass throws,
                                             jint n)
{
    jmethodID make = (*jni)->GetMethodID(jni, plain, "<init>", "(I)V"),
              fail = (*jni)->GetMethodID(jni, throws, "<init>", "(I)V");
    for (jint i = 0; i < n; i++) {
        const jvalue argument = {.i = i};
        drop(jni, (*jni)->AllocObject(jni, plain));
        drop(jni, (*jni)->NewObject(jni, plain, make, i));
        drop(jni, with_list(jni, plain, make, i));
        drop(jni, (*jni)->NewObjectA(jni, plain, make, &argument));
        drop(jni, (*jni)->NewObject(jni, throws, fail, i));
    }
}

JNIEXPORT void JNICALL Java_AllocJni_arrays(JNIEnv *jni, jclass self, jclass plain, jint n);

JNIEXPORT void JNICALL Java_AllocJni_arrays(JNIEnv *jni, jclass self, jclass plain, jint n)
{
    for (jint i = 0; i < n; i++) {
        drop(jni, (*jni)->NewObjectArray(jni, i % 7, plain, NULL));
        drop(jni, (*jni)->NewBooleanArray(jni, i % 40));
        drop(jni, (*jni)->NewByteArray(jni, i % 50));
        drop(jni, (*jni)->NewCharArray(jni, 3));
        drop(jni, (*jni)->NewShortArray(jni, 4));
        drop(jni, (*jni)->NewIntArray(jni, 5));
        drop(jni, (*jni)->NewLongArray(jni, 6));
        drop(jni, (*jni)->NewFloatArray(jni, 7));
        drop(jni, (*jni)->NewDoubleArray(jni, 8));
    }
}

JNIEXPORT void JNICALL Java_AllocJni_strings(JNIEnv *jni, jclass self, jint n);

JNIEXPORT void JNICALL Java_AllocJni_strings(JNIEnv *jni, jclass self, jint n)
{
    const jchar wide[] = {0x20ac, 'x'};
    for (jint i = 0; i < n; i++) {
        drop(jni, (*jni)->NewStringUTF(jni, "text"));
        drop(jni, (*jni)->NewString(jni, wide, 2));
    }
}

/* Objects that the native method makes by calling back into Java belong to Java. */
JNIEXPORT void JNICALL Java_AllocJni_calls(JNIEnv *jni, jclass self, jint n);

JNIEXPORT void JNICALL Java_AllocJni_calls(JNIEnv *jni, jclass self, jint n)
{
    jmethodID made = (*jni)->GetStaticMethodID(jni, self, "made", "()Ljava/lang/Object;");
    for (jint i = 0; i < n; i++)
        drop(jni, (*jni)->CallStaticObjectMethod(jni, self, made));
}

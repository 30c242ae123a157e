/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/instrument/rebind.h"

#include "agent/common/fault.h"

#include <errno.h>
#include <string.h>

typedef jint(JNICALL *register_natives)(JNIEnv *, jclass, const JNINativeMethod *, jint);
static register_natives real_register;
static __thread bool rebinding;

/* The call in progress. */
static struct {
    const struct rebind_row *rows;
    size_t n;
    bool ours;
    int (*more)(JNIEnv *jni, bool ours);
    int bound, result;
} call;

/*
 * Replaces RegisterNatives. Other natives that Thread and Unsafe register are already bound and
 * remain so.
 */
static jint JNICALL our_register(JNIEnv *jni, jclass class, const JNINativeMethod *methods, jint n)
{
    if (!rebinding)
        return real_register(jni, class, methods, n);
    jint r = JNI_OK;
    for (jint i = 0; i < n && r == JNI_OK; i++) {
        for (size_t k = 0; k < call.n; k++) {
            if (strcmp(methods[i].name, call.rows[k].name) != 0)
                continue;
            JNINativeMethod one = methods[i];
            if (call.ours) {
                memcpy(call.rows[k].real, &one.fnPtr, sizeof(one.fnPtr));
                one.fnPtr = call.rows[k].ours;
            }
            r = real_register(jni, class, &one, 1);
            call.bound++;
        }
    }
    return r;
}

static void register_again(JNIEnv *jni, const char *class_name)
{
    jclass c = vm_find_class(jni, class_name);
    jmethodID m = c ? (*jni)->GetStaticMethodID(jni, c, "registerNatives", "()V") : NULL;
    if (m)
        (*jni)->CallStaticVoidMethod(jni, c, m);
    vm_clear_exception(jni);
    if (c)
        (*jni)->DeleteLocalRef(jni, c);
}

/*
 * Makes Thread and Unsafe register their natives again, either to our functions or to the
 * originals.
 */
static int rebind(JNIEnv *jni)
{
    jniNativeInterface *table = NULL;
    if ((*vm.ti)->GetJNIFunctionTable(vm.ti, &table) != JVMTI_ERROR_NONE)
        return -EPROTO;
    real_register = table->RegisterNatives;
    table->RegisterNatives = our_register;
    int r = (*vm.ti)->SetJNIFunctionTable(vm.ti, table) == JVMTI_ERROR_NONE ? 0 : -EPROTO;
    if (r == 0) {
        rebinding = true;
        register_again(jni, "java/lang/Thread");
        register_again(jni, vm.version >= 9 ? "jdk/internal/misc/Unsafe" : "sun/misc/Unsafe");
        rebinding = false;
        table->RegisterNatives = real_register;
        r = (*vm.ti)->SetJNIFunctionTable(vm.ti, table) == JVMTI_ERROR_NONE ? 0 : -EPROTO;
    }
    vm_free(table);
    return r;
}

static void constant_utf8(struct buf *b, const char *s)
{
    buf_u8(b, 1);
    buf_be16(b, (uint16_t)strlen(s));
    buf_string(b, s);
}

/* class jvmscope.Binder { static native void bind(); static void call() { bind(); } } */
static void binder_class(struct buf *b)
{
    buf_be32(b, 0xcafebabe);
    buf_be32(b, 49); /* 5.0: no stack maps */
    buf_be16(b, 11);
    constant_utf8(b, "jvmscope/Binder"); /* 1 */
    buf_u8(b, 7);                        /* 2: class */
    buf_be16(b, 1);
    constant_utf8(b, "java/lang/Object"); /* 3 */
    buf_u8(b, 7);                         /* 4 */
    buf_be16(b, 3);
    constant_utf8(b, "bind"); /* 5 */
    constant_utf8(b, "()V");  /* 6 */
    buf_u8(b, 12);            /* 7: name and type */
    buf_be16(b, 5);
    buf_be16(b, 6);
    buf_u8(b, 10); /* 8: method */
    buf_be16(b, 2);
    buf_be16(b, 7);
    constant_utf8(b, "call"); /* 9 */
    constant_utf8(b, "Code"); /* 10 */
    buf_be16(b, 0x21);        /* public super */
    buf_be16(b, 2);
    buf_be16(b, 4);
    buf_be32(b, 0); /* no interfaces, no fields */
    buf_be16(b, 2);
    buf_be16(b, 0x109); /* public static native */
    buf_be16(b, 5);
    buf_be16(b, 6);
    buf_be16(b, 0);
    buf_be16(b, 0x9); /* public static */
    buf_be16(b, 9);
    buf_be16(b, 6);
    buf_be16(b, 1);
    buf_be16(b, 10);
    buf_be32(b, 16);
    buf_be32(b, 0); /* no stack, no locals */
    buf_be32(b, 4);
    buf_u8(b, 0xb8); /* invokestatic bind */
    buf_be16(b, 8);
    buf_u8(b, 0xb1); /* return */
    buf_be32(b, 0);  /* no handlers, no attributes */
    buf_be16(b, 0);
}

/*
 * jvmscope.Binder.bind. Natives of the boot loader's classes may be bound only by code of that
 * loader; for any other code the VM prints a warning on standard output.
 */
static void JNICALL binder_bind(JNIEnv *jni, jclass binder)
{
    call.result = rebind(jni);
    if (call.more)
        call.bound += call.more(jni, call.ours);
}

static void call_binder(JNIEnv *jni)
{
    static jclass c; /* a global reference */
    if (!c) {
        struct buf b = BUF(1024);
        binder_class(&b);
        jclass made = buf_error(&b) == 0 ? (*jni)->DefineClass(jni, "jvmscope/Binder", NULL,
                                                               (const jbyte *)b.data, (jsize)b.len)
                                         : NULL;
        c = made ? (*jni)->NewGlobalRef(jni, made) : NULL;
        vm_clear_exception(jni);
        buf_release(&b);
        if (made)
            (*jni)->DeleteLocalRef(jni, made);
    }
    JNINativeMethod bind = {(char *)"bind", (char *)"()V", (void *)binder_bind};
    jmethodID method = NULL;
    if (c && (*jni)->RegisterNatives(jni, c, &bind, 1) == JNI_OK)
        method = (*jni)->GetStaticMethodID(jni, c, "call", "()V");
    if (method)
        (*jni)->CallStaticVoidMethod(jni, c, method);
    vm_clear_exception(jni);
}

int rebind_natives(JNIEnv *jni, const struct rebind_row *rows, size_t n, bool ours,
                   int (*more)(JNIEnv *jni, bool ours))
{
    if (fault_here())
        return -EPROTO;
    call.rows = rows;
    call.n = n;
    call.ours = ours;
    call.more = more;
    call.bound = 0;
    call.result = -EPROTO;
    call_binder(jni);
    return call.result < 0 ? call.result : call.bound;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/trace/natives.h"

#include "agent/vm/vm.h"
#include "classfile/classfile.h"

#include <errno.h>
#include <string.h>

/* The type in which a value is passed to a probe. */
enum { AS_INT, AS_LONG, AS_FLOAT, AS_DOUBLE, AS_OBJECT, AS_NOTHING, AS_COUNT };

static struct {
    jclass probe;
    jmethodID enter, entered, thrown, arg[AS_COUNT], exit[AS_COUNT];
} ids;

int trace_natives_open(JNIEnv *jni, jclass probe)
{
    static const char *const arg[AS_COUNT] = {
        "(JI)J", "(JJ)J", "(JF)J", "(JD)J", "(JLjava/lang/Object;)J", NULL};
    static const char *const exit[AS_COUNT] = {
        "(IJ)V", "(JJ)V", "(FJ)V", "(DJ)V", "(Ljava/lang/Object;J)V", "(J)V"};
    ids.probe = probe;
    ids.enter = (*jni)->GetStaticMethodID(jni, probe, "enter", "(II)J");
    ids.entered = (*jni)->GetStaticMethodID(jni, probe, "entered", "(J)J");
    ids.thrown = (*jni)->GetStaticMethodID(jni, probe, "thrown", "(Ljava/lang/Throwable;J)V");
    for (int i = 0; i < AS_COUNT; i++) {
        ids.arg[i] = arg[i] ? (*jni)->GetStaticMethodID(jni, probe, "arg", arg[i]) : NULL;
        ids.exit[i] = (*jni)->GetStaticMethodID(jni, probe, "exit", exit[i]);
    }
    return vm_clear_exception(jni) ? -EPROTO : 0;
}

static int kind_of(char type)
{
    switch (type) {
    case 'J':
        return AS_LONG;
    case 'F':
        return AS_FLOAT;
    case 'D':
        return AS_DOUBLE;
    case 'L':
    case '[':
        return AS_OBJECT;
    case 'V':
        return AS_NOTHING;
    default:
        return AS_INT;
    }
}

/* Converts a value to the type that the probe takes: types smaller than int become int. */
static jvalue widened(char type, jvalue v)
{
    switch (type) {
    case 'Z':
        return (jvalue){.i = v.z};
    case 'B':
        return (jvalue){.i = v.b};
    case 'C':
        return (jvalue){.i = v.c};
    case 'S':
        return (jvalue){.i = v.s};
    default:
        return v;
    }
}

static jlong put(JNIEnv *jni, jlong at, char type, jvalue v)
{
    const jvalue args[] = {{.j = at}, widened(type, v)};
    return (*jni)->CallStaticLongMethodA(jni, ids.probe, ids.arg[kind_of(type)], args);
}

void trace_native_enter(struct native_call *c)
{
    JNIEnv *jni = c->jni;
    unsigned slots;
    const jvalue *v = c->args;
    jlong at = (*jni)->CallStaticLongMethod(jni, ids.probe, ids.enter, (jint)1, (jint)c->number);
    if (!(*jni)->ExceptionCheck(jni) && !c->is_static)
        at = put(jni, at, 'L', (jvalue){.l = c->self});
    for (size_t p = 1, len;
         !(*jni)->ExceptionCheck(jni) && (len = class_descriptor_next(c->descriptor, p, &slots));
         p += len)
        at = put(jni, at, c->descriptor.data[p], *v++);
    if (!(*jni)->ExceptionCheck(jni))
        c->token = (uint64_t)(*jni)->CallStaticLongMethod(jni, ids.probe, ids.entered, at);
    if (vm_clear_exception(jni)) /* the stack is full, so the call is not recorded */
        c->token = 0;
}

void trace_native_exit(struct native_call *c)
{
    JNIEnv *jni = c->jni;
    char type = strchr(c->descriptor.data, ')')[1];
    int kind = kind_of(type);
    const jvalue call = {.j = (jlong)c->token};
    if (c->thrown) {
        const jvalue args[] = {{.l = c->thrown}, call};
        (*jni)->CallStaticVoidMethodA(jni, ids.probe, ids.thrown, args);
    } else {
        const jvalue args[] = {kind == AS_NOTHING ? call : widened(type, c->result), call};
        (*jni)->CallStaticVoidMethodA(jni, ids.probe, ids.exit[kind], args);
    }
    (void)vm_clear_exception(jni);
}

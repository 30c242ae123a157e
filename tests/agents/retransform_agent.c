/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the VM's share of the cost of inserting and removing probes: retransforms TimesServer,
 * first with some code in each method that does nothing, then back.
 */
#include "classfile/rewrite.h"

#include <jvmti.h>
#include <string.h>

static jvmtiEnv *ti;
static bool change;

static int edit_method(struct rewrite *w, size_t method)
{
    struct edit *e;
    struct buf code = BUF(64);
    int r = edit_begin(w, method, &e);
    if (r < 0)
        return r;
    int clock = rewrite_methodref(w, "java/lang/Math", "max", "(JJ)J"), local = edit_local(e, 'J');
    code_op(&code, OP_LCONST_0);
    code_op(&code, OP_LCONST_0);
    code_invokestatic(&code, clock);
    code_store(&code, 'J', (unsigned)local);
    r = clock < 0 || local < 0 ? -1 : edit_insert(e, EDIT_ENTRY, 0, 0, &code, 4);
    buf_clear(&code);
    code_load(&code, 'J', (unsigned)local);
    code_op(&code, OP_POP2);
    code_op(&code, OP_ATHROW);
    if (r == 0)
        r = edit_catch_all(e, &code, 2);
    buf_release(&code);
    return r < 0 ? r : edit_commit(e);
}

static void JNICALL on_class_file(jvmtiEnv *env, JNIEnv *jni, jclass redefined, jobject loader,
                                  const char *name, jobject domain, jint len,
                                  const unsigned char *data, jint *new_len,
                                  unsigned char **new_data)
{
    struct class_file class = {0};
    struct rewrite w = {0};
    struct buf out = BUF(1 << 20);
    if (!change || !name || strcmp(name, "TimesServer") != 0 ||
        class_parse(&class, data, (size_t)len) < 0 || rewrite_begin(&w, &class) < 0)
        return;
    for (size_t i = 0; i < class.methods.len; i++)
        (void)!edit_method(&w, i);
    if (rewrite_changed(&w) && rewrite_finish(&w, &out) == 0 &&
        (*env)->Allocate(env, (jlong)out.len, new_data) == JVMTI_ERROR_NONE) {
        memcpy(*new_data, out.data, out.len);
        *new_len = (jint)out.len;
    }
    buf_release(&out);
    rewrite_release(&w);
    class_release(&class);
}

EXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *options, void *reserved)
{
    const jvmtiCapabilities needs = {.can_retransform_classes = 1};
    const jvmtiEventCallbacks callbacks = {.ClassFileLoadHook = on_class_file};
    if ((*vm)->GetEnv(vm, (void **)&ti, JVMTI_VERSION_1_2) != JNI_OK ||
        (*ti)->AddCapabilities(ti, &needs) ||
        (*ti)->SetEventCallbacks(ti, &callbacks, sizeof(callbacks)))
        return JNI_ERR;
    return (*ti)->SetEventNotificationMode(ti, JVMTI_ENABLE, JVMTI_EVENT_CLASS_FILE_LOAD_HOOK, NULL)
               ? JNI_ERR
               : JNI_OK;
}

/* TimesServer.retransform: returns 0 or JVM TI's error. */
EXPORT jint JNICALL Java_TimesServer_retransform(JNIEnv *jni, jclass class, jboolean with)
{
    change = with;
    return (jint)(*ti)->RetransformClasses(ti, 1, &class);
}

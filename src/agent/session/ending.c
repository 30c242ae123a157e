/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/session/ending.h"

#include "agent/instrument/probe_class.h"
#include "agent/session/session.h"

#include <errno.h>

#define PROBE "java/lang/JvmscopeEnding"

/*
 * java.lang.Shutdown runs its hooks by slot. The JDK uses the first three; the last of them deletes
 * files.
 */
enum { SLOT_FIRST_FREE = 3, SLOT_LAST = 9 };

EXPORT void JNICALL Java_java_lang_JvmscopeEnding_ending(JNIEnv *jni, jclass class, jboolean now);

void JNICALL Java_java_lang_JvmscopeEnding_ending(JNIEnv *jni, jclass class, jboolean now)
{
    if (now)
        session_vm_ending(jni);
}

/*
 * Adds a hook in the last free slot. Returns 0, -EBUSY if all slots are taken, or -ENOTSUP if this
 * VM has no such hooks.
 */
static int add_hook(JNIEnv *jni, jobject hook)
{
    int r = -ENOTSUP;
    jclass shutdown = vm_find_class(jni, "java/lang/Shutdown");
    jmethodID add =
        shutdown ? (*jni)->GetStaticMethodID(jni, shutdown, "add", "(IZLjava/lang/Runnable;)V")
                 : NULL;
    for (int slot = SLOT_LAST; add && slot >= SLOT_FIRST_FREE && r < 0; slot--) {
        (*jni)->CallStaticVoidMethod(jni, shutdown, add, (jint)slot, JNI_FALSE, hook);
        r = vm_clear_exception(jni) ? -EBUSY : 0;
    }
    vm_clear_exception(jni);
    if (shutdown)
        (*jni)->DeleteLocalRef(jni, shutdown);
    return r;
}

int ending_watch(JNIEnv *jni)
{
    static bool watched;
    jclass class;
    struct buf why = BUF(4096);
    if (watched)
        return 0;
    int r = probe_define(jni, PROBE, &class, &why);
    buf_release(&why);
    jobject hook = r == 0 ? (*jni)->AllocObject(jni, class) : NULL;
    if (r == 0)
        r = hook ? add_hook(jni, hook) : -ENOMEM;
    vm_clear_exception(jni);
    if (hook)
        (*jni)->DeleteLocalRef(jni, hook);
    watched = r == 0;
    return r;
}

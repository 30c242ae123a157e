/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/vm/own_thread.h"

#include "agent/common/fault.h"
#include "agent/vm/thread_table.h"

#include <errno.h>

int own_thread_start(JNIEnv *jni, const char *text, jvmtiStartFunction run, void *context,
                     jobject *ret)
{
    int r;
    jclass class = vm_find_class(jni, "java/lang/Thread");
    jmethodID make =
        class ? (*jni)->GetMethodID(jni, class, "<init>", "(Ljava/lang/String;)V") : NULL;
    jstring name = make ? (*jni)->NewStringUTF(jni, text) : NULL;
    jthread thread = name ? (*jni)->NewObject(jni, class, make, name) : NULL;
    r = thread && !fault_here() ? threads_own(jni, thread) : -ENOMEM;
    if (r == 0 && (*vm.ti)->RunAgentThread(vm.ti, thread, run, context,
                                           JVMTI_THREAD_NORM_PRIORITY) != JVMTI_ERROR_NONE) {
        threads_disown(jni, thread);
        r = -ENOMEM;
    }
    vm_clear_exception(jni);
    if (ret)
        *ret = r == 0 ? (*jni)->NewGlobalRef(jni, thread) : NULL;
    if (thread)
        (*jni)->DeleteLocalRef(jni, thread);
    if (name)
        (*jni)->DeleteLocalRef(jni, name);
    if (class)
        (*jni)->DeleteLocalRef(jni, class);
    return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/vm/self.h"

/* Returns the calling thread as a local reference; NULL where JVM TI may be given NULL instead. */
static jthread reference(void)
{
    jthread self = NULL;
    if (vm.version >= 21 && (*vm.ti)->GetCurrentThread(vm.ti, &self) != JVMTI_ERROR_NONE)
        self = NULL;
    return self;
}

static void release(jthread self)
{
    JNIEnv *jni = self ? vm_jni() : NULL;
    if (jni)
        (*jni)->DeleteLocalRef(jni, self);
}

jvmtiError self_frames(jint from, jint max, jvmtiFrameInfo *frames, jint *ret_n)
{
    jthread self = reference();
    jvmtiError e = (*vm.ti)->GetStackTrace(vm.ti, self, from, max, frames, ret_n);
    release(self);
    return e;
}

jvmtiError self_info(jvmtiThreadInfo *ret)
{
    jthread self = reference();
    jvmtiError e = (*vm.ti)->GetThreadInfo(vm.ti, self, ret);
    release(self);
    return e;
}

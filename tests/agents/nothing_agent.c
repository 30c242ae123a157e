/* SPDX-License-Identifier: Apache-2.0 */
/* An agent that does nothing, attached beside ours: what the VM itself keeps of each one. */
#include <jni.h>

JNIEXPORT jint JNICALL Agent_OnAttach(JavaVM *vm, char *options, void *reserved)
{
    return 0;
}

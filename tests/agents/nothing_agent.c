/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An agent that does nothing and is attached in addition to ours, to show what the VM itself keeps
 * for each agent.
 */
#include <jni.h>

JNIEXPORT jint JNICALL Agent_OnAttach(JavaVM *vm, char *options, void *reserved)
{
    return 0;
}

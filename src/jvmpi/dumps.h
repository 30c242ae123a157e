/* SPDX-License-Identifier: Apache-2.0 */
/* Dumps that an agent requests. */
#pragma once

#include "jvmpi/layer.h"

jint request_monitor_dump(JNIEnv *env);
jint request_heap_dump(JNIEnv *env, jint level);
jint request_object_dump(JNIEnv *env, jobjectID id);

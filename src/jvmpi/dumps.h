/* SPDX-License-Identifier: Apache-2.0 */
/* Dumps that an agent requests. The functions return a JVMPI result code. */
#pragma once

#include "jvmpi/layer.h"

jint layer_request_monitor_dump(JNIEnv *env);
jint layer_request_heap_dump(JNIEnv *env, jint level);
jint layer_request_object_dump(JNIEnv *env, jobjectID id);

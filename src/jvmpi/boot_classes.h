/* SPDX-License-Identifier: Apache-2.0 */
/* Classes of the JDK that the layer uses. */
#pragma once

#include "jvmpi/layer.h"

/* Called at VMInit, before events. */
void boot_classes_find(JNIEnv *env);
/* Returns a local reference to one of these classes, or NULL before VMInit and for other names. */
jclass boot_class(JNIEnv *env, const char *name);
/* Returns an array class's component class as a local reference, or NULL on failure. */
jclass layer_component_class(JNIEnv *env, jclass array);

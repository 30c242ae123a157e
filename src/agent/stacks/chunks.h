/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "hotspot/image.h"
#include "hotspot/layout.h"
#include "unwind/walk.h"

#include <jni.h>

/*
 * Determines where a virtual thread's frames are in the heap (JDK 25 and later on x86-64). Returns
 * false when that is unknown, or when the collector moves objects while the program runs. Must be
 * called from a thread of the VM.
 */
bool chunks_find(JNIEnv *jni, const struct hotspot_layout *l, const struct hotspot_image *image,
                 struct walk_chunks *ret);

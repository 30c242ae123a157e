/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps JVM TI's sampler seeing every allocation before JDK 17. There, an object that the VM
 * allocates outside of the thread's allocation buffer leaves the buffer without a sampling point,
 * so that nothing that fits into the rest of it is reported.
 */
#pragma once

#include <jni.h>
#include <stdbool.h>

/*
 * Called with each object that SampledObjectAlloc reports, on the allocating thread, before
 * anything else is done with it. Ensures that the thread's next allocation is reported too. Returns
 * true for an object that this function itself has created, which is garbage.
 */
bool buffer_gap_closed(JNIEnv *env, jobject object, jlong size);

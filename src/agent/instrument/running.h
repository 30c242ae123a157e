/* SPDX-License-Identifier: Apache-2.0 */
/* Methods that go on in the code that they had before it was changed. */
#pragma once

#include <jni.h>
#include <stdint.h>

/*
 * How many of the chosen methods (instrument_choose) run in code that the VM has replaced, in any
 * platform thread: until they are called anew no probe is in them. To be called after
 * instrument_on() in a VM that runs already.
 */
uint64_t instrument_running(JNIEnv *jni);

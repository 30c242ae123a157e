/* SPDX-License-Identifier: Apache-2.0 */
/* Methods that still run the code that they had before they were instrumented. */
#pragma once

#include <jni.h>
#include <stdint.h>

/*
 * How many of the chosen methods (instrument_choose) run in any platform thread with code that the
 * VM has replaced since. Such a call contains no probe; the next call of the method does. To be
 * called after instrument_on() in a VM that was already running.
 */
uint64_t instrument_running(JNIEnv *jni);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exceptions=counts: hidden classes, in which no agent can place probes. Those of the program are
 * reported as losses.
 */
#pragma once

#include "base/macro.h"

#include <jni.h>

/*
 * Reports the hidden classes that exist already, in a VM that was running, and each one that is
 * created from now on. Returns 0, or the error of vm_events_on.
 */
int thrown_hidden_on(JNIEnv *jni) must_check;
void thrown_hidden_off(void);

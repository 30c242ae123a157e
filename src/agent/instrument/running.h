/* SPDX-License-Identifier: Apache-2.0 */
/* Methods that still run the code that they had before they were instrumented. */
#pragma once

#include "jfr/losses.h"

#include <jni.h>
#include <stdbool.h>

struct jfr_writer;
struct method;

/*
 * Counts as lost the methods that some platform thread still runs with code that the VM has since
 * replaced, and names them, those of the program first. Considers methods for which `is_meant`
 * returns true (NULL: those that instrument_choose has selected). The calls in progress contain no
 * probe; the next call of the method does. To be called after instrument_on() in a VM that was
 * already running.
 */
void instrument_lose_running(struct jfr_writer *w, JNIEnv *jni, enum jfr_loss loss,
                             bool (*is_meant)(const struct method *m));
/*
 * Counts the platform threads that have a method on their stacks for which `is_meant` returns true.
 */
uint64_t instrument_running_threads(JNIEnv *jni, bool (*is_meant)(const struct method *m));

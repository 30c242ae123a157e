/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JVM TI's ResourceExhausted events. From JDK 9 on HotSpot writes a line to its log, which is the
 * program's standard output, for each such event as soon as an agent listens to them. The line has
 * the tag jvmti, without others, and no other line of a released VM at this level has it. While an
 * agent listens, the outputs of the log therefore leave out this tag, except for those of which the
 * user has requested it (-Xlog:jvmti) or more than warnings.
 */
#pragma once

#include "agent/vm/vm.h"

/* The message about an option where the log cannot be changed. */
#define EXHAUSTION_LOGGED                                                                       \
    "the VM writes a line to its log, which may be standard output, at each OutOfMemoryError, " \
    "because the log cannot be configured here"

/*
 * Enables the events of the table, which has a callback for ResourceExhausted, in the live phase.
 * Returns 0 or a negative errno. *ret_logged (never NULL): the log could not be changed, so the VM
 * will write the lines.
 */
int exhaustion_on(const struct vm_callbacks *table, JNIEnv *jni, bool *ret_logged) must_check;
/*
 * Disables the events of a table that was passed to exhaustion_on, and restores the log when no
 * table is left.
 */
void exhaustion_off(const struct vm_callbacks *table, JNIEnv *jni);

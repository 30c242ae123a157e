/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remembers where the handlers of the agent's own probes begin in instrumented methods
 * (edit_catch_all of rewrite.h), so that the capture of exceptions can distinguish them from
 * handlers of the program. Our handlers rethrow what they catch.
 */
#pragma once

#include "classfile/rewrite.h"

#include <jni.h>
#include <jvmti.h>

/*
 * Remembers where the handlers begin in a method into which probes have been inserted. To be called
 * after edit_commit; any thread.
 */
void guards_add(struct str class_name, const struct edit *e);
/*
 * Returns whether a location of a method, in its current code, is in one of our handlers. Any
 * thread; takes a lock.
 */
bool guards_have(JNIEnv *jni, jmethodID method, jlocation at);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the handlers of the agent's own probes begin in methods that carry some (edit_catch_all of
 * rewrite.h), so that who watches exceptions can tell them from the program's. A handler of ours
 * throws on what it has caught.
 */
#pragma once

#include "classfile/rewrite.h"

#include <jni.h>
#include <jvmti.h>

/* A method was laid out with probes; any thread. */
void guards_add(struct str class_name, const struct edit *e);
/*
 * Whether a place of a method, in the code that it has, lies in a handler of ours. Any thread;
 * takes a lock.
 */
bool guards_have(JNIEnv *jni, jmethodID method, jlocation at);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is recorded of objects besides class and identity: the JDK's known classes (shapes.h), show=
 * and tostring=. The natives of the probes are in the .c file.
 */
#pragma once

#include "agent/capture/trace/shapes.h"
#include "agent/session.h"

/*
 * Takes the options; starts the thread that calls toString(). 0 or an error with a sentence in why.
 */
int trace_objects_begin(struct session *s, JNIEnv *jni, struct buf *why) must_check;
void trace_objects_end(JNIEnv *jni);
/* Now and then: replaces a thread that toString() keeps. */
void trace_objects_work(struct session *s, JNIEnv *jni);
/* What records hold of objects of a class number; NULL: nothing. */
const struct shown_class *trace_shown(uint32_t number);
/*
 * Whether java.lang.Thread's id is of a thread that calls toString(): what it does is not the
 * program's.
 */
bool trace_objects_is_own(int64_t java_id);

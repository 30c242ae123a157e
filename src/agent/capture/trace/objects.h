/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is recorded of objects besides class and identity: contents of the JDK's known classes
 * (shapes.h), show= and tostring=.
 */
#pragma once

#include "agent/capture/trace/shapes.h"
#include "agent/session/session.h"

/* Why a value has no text of toString(), as the length in its record (JvmscopeTrace.answer). */
enum text_missing { TEXT_NOT_CALLED = -4, TEXT_SLOW, TEXT_THREW };

/*
 * Takes the options and starts the thread that calls toString(). Returns 0, or an error with a
 * sentence in why.
 */
int trace_objects_begin(struct session *s, JNIEnv *jni, struct buf *why) must_check;
void trace_objects_end(JNIEnv *jni);
/* Replaces a thread that hangs in toString(). Called periodically. */
void trace_objects_work(struct session *s, JNIEnv *jni);
/*
 * Returns what probes write of the objects of a class with a number (shapes.h), as a new local
 * reference, or NULL if they write nothing.
 */
jlongArray trace_objects_shape(JNIEnv *jni, jclass c, jint number);
/*
 * Returns what records contain of the objects of a class, given its number, or NULL if they contain
 * nothing.
 */
const struct shown_class *trace_shown(uint32_t number);
/* Counts a value without text, which trace_objects_report() then reports to the recording. */
void trace_objects_without_text(enum text_missing why);
void trace_objects_report(struct jfr_writer *w);

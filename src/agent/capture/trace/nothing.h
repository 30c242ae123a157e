/* SPDX-License-Identifier: Apache-2.0 */
/* Why a pattern of trace= has traced no method so far. */
#pragma once

#include "agent/instrument/instrument.h"
#include "base/buf.h"

#include <jni.h>

/* Keeps why a method that matches was left alone, until trace_left_clear. Any thread. */
void trace_left_add(struct str class_name, struct str method, enum instrument_reason why);
void trace_left_clear(void);

/*
 * Appends half a sentence to why: whether no loaded class has such a name, or the class has no such
 * method, or what matches cannot be traced and why. `pattern` is one pattern, `exclude` that of the
 * option or NULL. Looks through all loaded classes.
 */
void trace_explain(JNIEnv *jni, const char *pattern, const char *exclude, struct buf *why);

/* Whether a class of this name, "pkg.Outer$Inner", is loaded. */
bool trace_class_is_loaded(JNIEnv *jni, const char *name);

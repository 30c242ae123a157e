/* SPDX-License-Identifier: Apache-2.0 */
/* Explains why a pattern of trace= has traced no method so far. */
#pragma once

#include "agent/instrument/instrument.h"
#include "base/buf.h"

#include <jni.h>

/*
 * Stores why a matching method was not instrumented, until trace_left_clear, and reports it as a
 * loss. Callable from any thread.
 */
void trace_left_add(struct str class_name, struct str method, struct str descriptor,
                    enum instrument_reason why);
void trace_left_clear(void);

enum trace_result { TRACED_NOTHING, TRACED_PARTLY, TRACED };

/*
 * Appends half a sentence to why about a pattern "implements TYPE": the type is not loaded, or no
 * class below it is, or some are those of lambdas or hidden classes, which cannot be traced.
 * Returns how much was traced. After TRACED, which means all, why must not be used. Searches all
 * loaded classes.
 */
enum trace_result trace_explain_type(JNIEnv *jni, const char *type, struct buf *why);
/*
 * For a pattern of methods that traces some of them: appends half a sentence to why about which
 * classes that it matches cannot be traced. Returns as trace_explain_type.
 */
enum trace_result trace_explain_hidden(JNIEnv *jni, const char *pattern, const char *exclude,
                                       struct buf *why);
/*
 * Appends half a sentence to why: no loaded class has such a name, or the class has no such method,
 * or the matching methods cannot be traced, and for what reason. `pattern` is a single pattern, not
 * of a type, `exclude` that of the option or NULL. Searches all loaded classes.
 */
void trace_explain(JNIEnv *jni, const char *pattern, const char *exclude, struct buf *why);

/*
 * Appends, after a colon, what a user can name instead of an abstract method of `type`, "pkg.Type":
 * a method of this name, if a loaded class implements it, and what lambdas run.
 */
void trace_explain_implemented(JNIEnv *jni, const char *type, const char *method, struct buf *why);

/*
 * Appends why no access to a field is recorded, as half a sentence: its class is not loaded, the
 * class declares no such field, or no loaded code uses it.
 */
void trace_explain_field(JNIEnv *jni, const char *class_name, const char *field, struct buf *why);

/* Returns whether a loaded class of this name declares the field itself. */
bool trace_field_is_declared(JNIEnv *jni, const char *class_name, const char *field);
/* Appends that no class of this name is loaded, and which loaded class may be meant. */
void trace_explain_class(JNIEnv *jni, const char *name, struct buf *why);
/* Returns whether no class of this name is loaded, but another one that may be meant. */
bool trace_class_has_similar(JNIEnv *jni, const char *name);
/* Returns whether a class of this name, "pkg.Outer$Inner", is loaded. */
bool trace_class_is_loaded(JNIEnv *jni, const char *name);

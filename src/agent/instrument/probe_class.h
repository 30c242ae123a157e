/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Java classes that instrumented code calls (src/agent/probe). They are compiled at build time,
 * embedded, and defined once per process in java.lang with the bootstrap loader, where every class
 * and module can access them. Names that depend on the JDK are inserted when they are defined. The
 * VM finds their native methods by name in the agent's library; each class has a static method
 * bind() that calls all of them once, so that the lookup does not happen in instrumented code.
 */
#pragma once

#include "base/buf.h"

#include <jni.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct probe_class {
    const char *name; /* java/lang/JvmscopeTimes */
    const uint8_t *bytes;
    size_t len;
};

/* Ends with a row whose name is NULL. */
extern const struct probe_class probe_classes[];

/* Returns whether this is the name of a probe class, with slashes or with dots. */
bool probe_is_class(const char *name);
/*
 * Defines a probe class and calls its bind(), unless that was done before. Only in the live phase.
 * *ret is a global reference that is never released. Returns 0, or a negative errno with a sentence
 * in why.
 */
int probe_define(JNIEnv *jni, const char *name, jclass *ret, struct buf *why) must_check;
/* Returns the offset of a field, given as a java.lang.reflect.Field, for Unsafe, or -ENOENT. */
int64_t probe_reflected_offset(JNIEnv *jni, jobject field, bool is_static);
/*
 * Returns the offset of an instance field for Unsafe, -ENOENT when the class or field does not
 * exist, or -ENOMEM. Links the class and initializes none.
 */
int64_t probe_field_offset(JNIEnv *jni, const char *class, const char *field,
                           const char *descriptor);
/*
 * Returns the offset of a field of a linked class or one of its superclasses, or -ENOENT.
 * Initializes no class. Leaves local references.
 */
int64_t probe_class_field_offset(JNIEnv *jni, jclass class, const char *field,
                                 const char *descriptor);

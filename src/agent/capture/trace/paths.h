/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fields to which conditions and log lines refer: this.f.g, arg1.f, pkg.Class.f. The probe reads
 * them by their offsets, which it requests once for each class, and runs no code of the program. In
 * a record each has eight bytes, id and type, followed by the value.
 */
#pragma once

#include "base/buf.h"
#include "classfile/rewrite.h"
#include "options/trace_condition.h"

#include <jni.h>

/*
 * Special types in a record: a reference on the way to the field was null; the object has no such
 * field.
 */
enum { PATH_NULL, PATH_NONE };

/*
 * Emits code that records the field at the end of a path. For trace_path the path is "f.g", and the
 * place in the record and the object where the path begins are on the stack; for trace_path_static
 * it is "pkg.Class.f.g", and only the place is on the stack. The next place replaces them. Returns
 * an error of the edit, or -ENOTSUP when there are too many names.
 */
int trace_path(struct edit *e, struct buf *code, const char *path, unsigned id) must_check;
int trace_path_static(struct edit *e, struct buf *code, const char *path, unsigned id) must_check;

/*
 * Registers a static field before any code needs it. Returns its number, or a negative errno;
 * -ENOTSUP when there are too many.
 */
int trace_path_name_static(const char *path) must_check;
/*
 * Look for the classes of static fields, among all loaded classes or in one, of this name. The
 * probe class must exist.
 */
void trace_paths_find(JNIEnv *jni);
void trace_paths_on_class(JNIEnv *jni, jclass class, struct str name);
void trace_paths_forget(void);

/*
 * Returns "pkg.Class.field" that may be meant by a path with a field that some class lacked, or
 * NULL. The path is as in a log line: "local.f.g" or "pkg.Class.f". The caller frees the result.
 */
char *trace_path_similar(const char *path, size_t len);

/*
 * Returns whether no object can pass a test, because neither the type nor a loaded subclass has the
 * field of its path, or because no such field can pass (impossible.h). A type that is not loaded
 * may have any field. late: classes that may still be loaded are not considered; otherwise only
 * what they cannot change counts.
 */
bool trace_path_is_missing(JNIEnv *jni, bool late, struct str type, const struct cond_test *t,
                           struct buf *why);

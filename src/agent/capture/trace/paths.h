/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fields that conditions and log lines reach: this.f.g, arg1.f, pkg.Class.f. The probe reads them
 * by their offsets, which it asks for once a class, and runs none of the program's code. A record
 * has each as eight bytes, id and type, and the value behind them.
 */
#pragma once

#include "base/buf.h"
#include "classfile/rewrite.h"

#include <jni.h>

/* Instead of a type in a record: null on the way to the field; no such field there. */
enum { PATH_NULL, PATH_NONE };

/*
 * Code that records the field at the end of "f.g"; on the stack are the place in the record and the
 * object to begin at, and the next place is left there. Or of "pkg.Class.f.g", with the place alone
 * on the stack. An error of the edit; -ENOTSUP when there are too many names.
 */
int trace_path(struct edit *e, struct buf *code, const char *path, unsigned id) must_check;
int trace_path_static(struct edit *e, struct buf *code, const char *path, unsigned id) must_check;

/* Takes a static field to look for before code asks for it; -ENOTSUP when there are too many. */
int trace_path_name_static(const char *path) must_check;
/* Looks for the classes of static fields: all that are loaded, or one. The probe class is there. */
void trace_paths_find(JNIEnv *jni);
void trace_paths_look(JNIEnv *jni, jclass class, struct str name);
void trace_paths_forget(void);

/*
 * Whether a path leads nowhere: no loaded class at or below the type has the field (never.h). A
 * type that is not loaded may have any. `late`: no further class is waited for.
 */
bool trace_path_leads_nowhere(JNIEnv *jni, bool late, struct str type, const char *path,
                              struct buf *why);

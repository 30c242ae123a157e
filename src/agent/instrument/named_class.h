/* SPDX-License-Identifier: Apache-2.0 */
/* Searches the loaded classes for a name that somebody wrote. */
#pragma once

#include <jni.h>

enum { NAMED_CLASS_SIZE = 256 };

/*
 * Returns a loaded class of this name, "pkg.Outer$Inner" or "pkg/Outer$Inner", as a local reference
 * or NULL if there is none. In that case ret_nested is a loaded class that has $ where the name has
 * dots, or "".
 */
jclass named_class(JNIEnv *jni, const char *name, char ret_nested[NAMED_CLASS_SIZE]);

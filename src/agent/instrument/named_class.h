/* SPDX-License-Identifier: Apache-2.0 */
/* Searches the loaded classes for a name that somebody wrote. */
#pragma once

#include "agent/instrument/choice.h"

#include <jni.h>

/*
 * Returns a loaded class of this name, "pkg.Outer$Inner" or "pkg/Outer$Inner", as a local reference
 * or NULL if there is none. In that case *ret_guess is the loaded class that the name may mean.
 */
jclass named_class(JNIEnv *jni, const char *name, struct choice_guess *ret_guess);

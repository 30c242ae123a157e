/* SPDX-License-Identifier: Apache-2.0 */
/* What the loaded classes say about a comparison: enum constants, and classes without a value. */
#pragma once

#include "base/buf.h"
#include "base/strpool.h"
#include "options/trace_condition.h"

#include <jni.h>
#include <stdbool.h>

/*
 * Returns whether a test that compares a value of a type (a descriptor) with a text can never hold:
 * because the type is a loaded enum class without a constant of this name, or a class that extends
 * only java.lang.Object and so has no value to compare. If so, *why receives the second half of a
 * message: "is a shop.Color, which has no constant ...".
 */
bool trace_no_constant(JNIEnv *jni, const struct cond_test *t, struct str type, struct buf *why);

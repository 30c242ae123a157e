/* SPDX-License-Identifier: Apache-2.0 */
/* Classes below a type, of which those of lambdas and hidden classes cannot be traced. */
#pragma once

#include "agent/instrument/choice.h"
#include "base/buf.h"

#include <jni.h>
#include <stdbool.h>

struct trace_below {
    bool loaded; /* the type itself */
    bool traced; /* a method of a class below it */
    unsigned unchangeable;
    /* Methods of the program, as patterns: what a lambda and a method reference run; or "". */
    char lambda[256], reference[256];
    struct choice_guess guess; /* the type that may be meant */
};

/* Searches the loaded classes for those of the program below a type, "pkg.Type". */
void trace_below_find(JNIEnv *jni, const char *type, struct trace_below *ret);
/* Appends how the code of the lambdas and method references found can be traced, if there are any.
 */
void trace_below_put_hint(const struct trace_below *b, struct buf *why);

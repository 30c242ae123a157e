/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Classes below a type, of which those of lambdas and hidden classes cannot be traced; and what is
 * traced instead of a lambda's class.
 */
#pragma once

#include "agent/capture/trace/hidden.h"
#include "agent/instrument/choice.h"
#include "base/buf.h"

#include <jni.h>
#include <stdbool.h>

struct trace_below {
    bool loaded;     /* the type itself */
    bool traced;     /* a method of a class below it */
    bool changeable; /* some class below it, so that its methods could be traced */
    char first[256]; /* the name of one that implements the method, "pkg.Type", or "" */
    struct trace_hidden hidden;
    struct choice_guess guess; /* a loaded type that the user may have meant */
};

/*
 * Searches the loaded classes for those of the program below a type, "pkg.Type", and for one of
 * them that implements a method of this name, unless the name is NULL.
 */
void trace_below_find(JNIEnv *jni, const char *type, const char *method, struct trace_below *ret);

/*
 * Appends the method that a loaded lambda or method reference runs, as half a sentence. shown: its
 * class as tables have it, "X$$Lambda[Class::method]", with a dot for the colons. Returns false,
 * having appended nothing, if there is none.
 */
bool trace_below_put_lambda(JNIEnv *jni, const char *shown, struct buf *why);

/* SPDX-License-Identifier: Apache-2.0 */
/* Searches the loaded classes for a name that somebody wrote. */
#pragma once

#include "agent/instrument/choice.h"
#include "base/buf.h"

#include <jni.h>

/* The member that is wanted of a class; NULL or "" for none. */
struct wanted_member {
    const char *field;
    const char *method; /* "f" or "f(int)" */
};

/* Returns the method of a pattern: what follows its last dot outside parentheses, or NULL. */
const char *named_class_method(const char *pattern);

/*
 * Considers class c, whose name is not the user's, as the one that the user means, by
 * choice_guess_see (`means`) and, unless `wanted` is NULL, by choice_guess_spelling. Prefers a
 * class that declares `member`.
 */
void named_class_guess(struct choice_guess *g, jclass c, struct str name,
                       bool (*means)(void *context, struct str name), void *context,
                       const char *wanted, const struct wanted_member *member);

/*
 * Returns a loaded class of this name, "pkg.Outer$Inner" or "pkg/Outer$Inner", as a local
 * reference, or NULL if there is none; *ret_guess is then the loaded class that the name may mean.
 * member: what is wanted of the class.
 */
jclass named_class(JNIEnv *jni, const char *name, const struct wanted_member *member,
                   struct choice_guess *ret_guess);

/*
 * Appends the method with code, "pkg.Base.f(int)", that a class inherits from a superclass or an
 * interface under the wanted name. Returns whether there is one.
 */
bool named_class_inherits(JNIEnv *jni, jclass c, const char *method, struct buf *ret);

/*
 * Appends the method that the class declares under the most similar name, like
 * named_class_inherits. Returns whether there is one.
 */
bool named_class_similar(jclass c, const char *method, struct buf *ret);

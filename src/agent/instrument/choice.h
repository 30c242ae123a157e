/* SPDX-License-Identifier: Apache-2.0 */
/* Which classes and methods are instrumented. Knows no JVM. */
#pragma once

#include "base/strpool.h"

#include <stdbool.h>

/*
 * True when one of the patterns (separated by ':') matches, see instrument_choose. method may be
 * empty.
 */
bool choice_matches(const char *patterns, struct str class_name, struct str method);
/*
 * The same, but also true when a method of the class may match, so that the class has to be parsed.
 */
bool choice_may_match(const char *patterns, struct str class_name);
/* True for classes that may never be instrumented. */
bool choice_never(struct str class_name);
/*
 * For java.lang.Thread since JDK 21: true for methods that run while a carrier switches between its
 * own identity and that of a virtual thread.
 */
bool choice_thread_changes(struct str method);
/* True for methods that JDK 8's JIT replaces as a whole; JDK 8 has no annotation for these. */
bool choice_intrinsic_8(struct str class_name, struct str method);
/*
 * True if this is the class's name, "pkg.Outer$Inner" or "pkg/Outer$Inner"; class_name is as in
 * class files.
 */
bool choice_is_class(struct str class_name, const char *name);
/* True if this is the name of a nested class, except that dots stand where the class has $. */
bool choice_is_nested(struct str class_name, const char *name);
/*
 * The class name "pkg/Outer$Inner" as people may write it, "pkg/Outer/Inner", into to[size]; empty
 * if it has no $.
 */
struct str choice_unnested(struct str class_name, char *to, size_t size);

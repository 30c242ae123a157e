/* SPDX-License-Identifier: Apache-2.0 */
/* Which classes and methods are instrumented. Knows no JVM. */
#pragma once

#include "base/strpool.h"

#include <stdbool.h>

/*
 * True when one of the patterns (separated by ':') matches; see instrument_choose. method may be
 * empty.
 */
bool choice_matches(const char *patterns, struct str class_name, struct str method);
/* The same, or true when a method of the class may match: whether to look into the class. */
bool choice_may_match(const char *patterns, struct str class_name);
/* True for classes that may never be instrumented. */
bool choice_never(struct str class_name);
/*
 * Of java.lang.Thread since JDK 21, true for methods that run while a carrier takes a virtual
 * thread's identity or its own.
 */
bool choice_thread_changes(struct str method);
/* True for methods that the JIT of JDK 8, which has no annotation for it, replaces as a whole. */
bool choice_intrinsic_8(struct str class_name, struct str method);
/* True when that is the class's name, "pkg.Outer$Inner"; class_name is as in class files. */
bool choice_is_class(struct str class_name, const char *dotted);

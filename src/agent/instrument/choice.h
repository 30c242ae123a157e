/* SPDX-License-Identifier: Apache-2.0 */
/* Which classes and methods are instrumented. Knows no JVM. */
#pragma once

#include "base/strpool.h"

#include <stdbool.h>

/*
 * Returns whether one of the patterns (separated by ':') matches a method, see instrument_choose. A
 * pattern may end with the method's parameters (options/signature.h).
 */
bool choice_matches(const char *patterns, struct str class_name, struct str method,
                    struct str descriptor);
/* Returns whether the first pattern of a list matches a method. */
bool choice_matches_first(const char *pattern, struct str class_name, struct str method,
                          struct str descriptor);
/*
 * Returns whether the first pattern of a list names parameters, other than any (..), so that the
 * pattern may mean a bridge (class_method_is_bridge).
 */
bool choice_names_parameters(const char *pattern);
/* Returns whether one of the patterns matches a class as a whole. */
bool choice_matches_class(const char *patterns, struct str class_name);
/*
 * Returns whether one of the patterns matches a class or may match a method of it, so that the
 * class has to be parsed.
 */
bool choice_may_match(const char *patterns, struct str class_name);
/*
 * Returns whether a class is in one of the JDK's packages java, jdk and sun, whose methods are not
 * requests, because the probes call some of them.
 */
bool choice_is_core(struct str class_name);
/* Returns whether a class may never be instrumented. */
bool choice_is_excluded(struct str class_name);
/*
 * Returns whether a method of java.lang.Thread, since JDK 21, runs while a carrier switches between
 * its own identity and that of a virtual thread.
 */
bool choice_thread_changes(struct str method);
/*
 * Returns whether JDK 8's JIT replaces a method as a whole; JDK 8 has no annotation for these.
 * Other methods of the same name, with other parameters, are ordinary ones.
 */
bool choice_intrinsic_8(struct str class_name, struct str method, struct str descriptor);
/*
 * Returns whether `name` is the name of a class, as "pkg.Outer$Inner" or "pkg/Outer$Inner";
 * class_name is as in class files.
 */
bool choice_is_class(struct str class_name, const char *name);

/*
 * The class that a name which matches none probably means: one with $ where the name has dots, one
 * whose package, or outer class, the name leaves out, one of a similar name in the same package, or
 * one of the same name in another package.
 * All zeros is not a class.
 */
struct choice_guess {
    char name[256]; /* with dots; "" for none */
    unsigned rank;
    unsigned distance; /* of a similar name, as in struct nearest */
    bool has_member;   /* the class declares the field or method that is wanted of it */
};

/*
 * Considers a class as a guess. means: returns whether the user's name would match a class with the
 * name that it receives.
 */
void choice_guess_see(struct choice_guess *g, struct str class_name,
                      bool (*means)(void *context, struct str name), void *context);
/*
 * Considers a class whose name is spelt like the wanted one: it differs only in upper and lower
 * case or, within the same package, in a few letters, or only in its package.
 */
void choice_guess_spelling(struct choice_guess *g, struct str class_name, const char *wanted);
/* Replaces a guess with another one that is better: a class with the wanted member is first. */
void choice_guess_prefer(struct choice_guess *g, const struct choice_guess *other);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conditions of trace: "arg1 > 100 && time > 5ms || return == null". Knows no JVM.
 *
 * A test of the grammar in base/logic.h is: what [ op literal ]
 *
 * what: value [ ".length" ] | time | depth | thrown | thread (its name)
 *
 * value: argN (from 1) | return | this | this.f.g | argN.f.g | pkg.Class.f.g (static)
 *
 * op: == != < <= > >=
 *
 * literal: number, 'text', "text" (also for a char; with the escapes of Java), true, false, null, a
 * duration for time
 *
 * Whole numbers compare exactly, others with the literal rounded to their type (base/number.h).
 *
 * != is the opposite of ==: an object that is not a number is unequal to every number, and a number
 * to true and false.
 *
 * The comparison of a value that does not exist (argument 3 of a method with two) is false.
 *
 * Its functions begin with condition_.
 */
#pragma once

#include "base/buf.h"
#include "base/logic.h"
#include "base/number.h"

#include <stdbool.h>
#include <stdint.h>

enum cond_what {
    COND_ARG,
    COND_RETURN,
    COND_THIS,
    COND_TIME,
    COND_DEPTH,
    COND_THROWN,
    COND_THREAD,
    COND_STATIC
};

enum cond_kind { COND_NUMBER, COND_TEXT, COND_NULL };

struct cond_test {
    enum cond_what what;
    unsigned arg; /* of COND_ARG, from 1 */
    /* test the length of a string or an array, or the size of a collection, instead of the value */
    bool length;
    const char *path; /* "f.g" of `this` or an argument, "pkg.Class.f.g" when static; else NULL */
    /* of a path, the id under which records store its value; see condition_number */
    unsigned id;
    enum logic_op op;
    enum cond_kind kind;
    struct literal number;
    bool boolean;     /* the number was written as true or false */
    const char *text; /* of a number, what was written */
};

struct condition;

/*
 * Parses a condition. The caller frees *ret. Returns 0; -EINVAL with a sentence in why that shows
 * the position; -ENOMEM.
 */
int condition_parse(struct condition **ret, const char *text, struct buf *why) must_check;
void condition_free(struct condition *c);

enum { CONDITION_IDS = 64 };

/* Gives each test an id of its own, from `first` to first + CONDITION_IDS - 1. */
void condition_number(struct condition *c, unsigned first);
/* Returns the i-th test with a path; NULL after the last. */
const struct cond_test *condition_path(const struct condition *c, unsigned i);

/* Returns whether a test of the condition compares the depth. */
bool condition_tests_depth(const struct condition *c);

/* A value as seen by a test. */
struct cond_value {
    bool present, null;
    bool boolean; /* a boolean: `number` is 1 or 0 */
    bool object;  /* neither a number nor a text: only null compares with it */
    struct number number;
    const char *text; /* NULL: not a string */
};

/*
 * Returns whether the condition holds; the callback `value` supplies the values to compare. NULL
 * always holds.
 */
bool condition_holds(const struct condition *c,
                     void (*value)(void *context, const struct cond_test *t,
                                   struct cond_value *ret),
                     void *context);

/*
 * Returns whether the condition cannot hold if the tests for which the callback returns true never
 * hold. A negated test is assumed to be satisfiable.
 */
bool condition_is_unsatisfiable(const struct condition *c,
                                bool (*is_impossible)(void *context, const struct cond_test *t),
                                void *context);

/*
 * Returns the tests that are required (joined by && at the top level), one after the other; they
 * can be evaluated before the rest. NULL after the last.
 */
const struct cond_test *condition_required(const struct condition *c, unsigned i);

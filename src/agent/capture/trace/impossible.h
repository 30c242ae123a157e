/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds conditions that no call of a method can meet: an argument that the method does not have, or
 * a text compared with a number. Knows no JVM.
 */
#pragma once

#include "agent/capture/trace/methods.h"
#include "options/trace_condition.h"

/* What the loaded classes say about a test. */
struct trace_classes {
    /*
     * Returns whether no object can pass the test, because none has the fields of its path or no
     * value of the last field passes. `type` is the descriptor of the object where the path begins;
     * it is empty for a static field. If so, *why receives the second half of a message, such as
     * "the field size is an int, which has no length".
     */
    bool (*no_field)(void *context, struct str type, const struct cond_test *t, struct buf *why);
    /*
     * Returns whether the type is an enum class without the constant that the test asks for; *why
     * is as in constants.h.
     */
    bool (*no_constant)(void *context, struct str type, const struct cond_test *t, struct buf *why);
    void *context;
};

/*
 * Returns whether no value of a field of this type passes the test. If so, *why receives the second
 * half of a message.
 */
bool trace_is_impossible_of_field(const struct cond_test *t, const char *name, struct str type,
                                  struct buf *why);

/*
 * Returns whether the condition holds for no call of the method, whatever its arguments are; *why
 * receives half a sentence about the first test that fails. Tests that depend on the runtime class
 * of a value are assumed to be satisfiable. `classes` may be NULL: then every field and every enum
 * constant is assumed to exist.
 */
bool trace_is_impossible(const struct condition *c, const struct traced_method *m,
                         const struct trace_classes *classes, struct buf *why);

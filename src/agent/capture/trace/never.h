/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds conditions that no call of a method can meet: an argument that the method does not have, or
 * a text compared with a number. Knows no JVM.
 */
#pragma once

#include "agent/capture/trace/methods.h"
#include "options/trace_condition.h"

/*
 * Whether no object has the fields of the test's path, or no field at its end passes the test;
 * `type` is the descriptor of the object where the path begins, empty for a static one. Then *why
 * receives half a sentence.
 */
typedef bool no_field_fn(void *context, struct str type, const struct cond_test *t,
                         struct buf *why);
/* Whether no value of a field of this type passes the test; then *why receives half a sentence. */
bool trace_never_of_field(const struct cond_test *t, const char *name, struct str type,
                          struct buf *why);

/*
 * Whether the condition holds for no call of the method, whatever its arguments are; *why receives
 * half a sentence about the first test that fails. Tests that depend on the runtime class of a
 * value are assumed to be satisfiable. no_field may be NULL: then every field is assumed to exist.
 */
bool trace_never_holds(const struct condition *c, const struct traced_method *m,
                       no_field_fn *no_field, void *context, struct buf *why);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conditions that no call of a method can meet: an argument that it does not have, a text where
 * there is a number. Knows no JVM.
 */
#pragma once

#include "agent/capture/trace/condition.h"
#include "agent/capture/trace/methods.h"

/*
 * Whether no object has the fields of a path: `type` is the descriptor of what it begins at, empty
 * for a static one. Then *why gets half a sentence.
 */
typedef bool no_field_fn(void *context, struct str type, const char *path, struct buf *why);

/*
 * Whether the condition holds for no call of the method, whatever is passed to it; *why gets half a
 * sentence about the first test that fails. What depends on the class that a value has when it is
 * passed may hold. no_field may be NULL: any field may be there.
 */
bool trace_never_holds(const struct condition *c, const struct traced_method *m,
                       no_field_fn *no_field, void *context, struct buf *why);

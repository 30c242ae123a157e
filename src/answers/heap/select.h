/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The objects to which a verb applies: an address, instances of a class, of a package's classes, or
 * of a loader's classes.
 */
#pragma once

#include "answers/heap/heap.h"
#include "answers/heap/value.h"

struct heap_selection {
    uint64_t *bits; /* one for each object */
    uint64_t count;
    char what[300];
};

/*
 * Evaluates --class, --object, --package, --loader or the operand after the file. Returns 0, or the
 * exit status after answer_refuse.
 */
int heap_select(const struct heap_call *c, struct heap_selection *ret);
void heap_selection_release(struct heap_selection *s);

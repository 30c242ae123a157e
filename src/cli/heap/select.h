/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which objects a verb is about: an address, instances of a class, of a package's classes, of a
 * loader's classes.
 */
#pragma once

#include "cli/heap/heap.h"
#include "cli/heap/value.h"

struct heap_selection {
    uint64_t *bits; /* one an object */
    uint64_t count;
    char what[300];
};

/*
 * From --class, --object, --package, --loader or the operand behind the file. The exit status after
 * a complaint.
 */
int heap_select(const struct heap_call *c, struct heap_selection *ret);
void heap_selection_release(struct heap_selection *s);
/* Whether a class is meant by the pattern: its binary name, with '*' for any characters. */
bool heap_class_matches(const struct heap_class *c, const char *pattern);

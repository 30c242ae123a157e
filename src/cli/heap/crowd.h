/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What piles up below an object: where the way down from it parts, and what most of the parts are.
 */
#pragma once

#include "heap/heap.h"

struct crowd {
    uint64_t place;                  /* the object that they lie in, or the first of a chain */
    uint64_t links;                  /* of a chain of objects of one class; 0: no chain */
    int32_t class;                   /* of what piles up; HEAP_NO_CLASS */
    uint64_t loaders;                /* so many class loaders have each loaded that class */
    uint64_t count, bytes, children; /* children: of the place, of all classes */
};

/*
 * Whether a class is neither the JDK's nor an array of primitive values: something of the
 * program's.
 */
bool heap_is_program_class(const struct heap_class *c);
struct crowd heap_crowd(const struct heap *h, uint64_t i);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds what accumulates below an object: the place where the dominator tree branches out, and the
 * class of most branches.
 */
#pragma once

#include "heap/heap.h"

struct accumulation {
    uint64_t place; /* the object in which they lie, or the first one of a chain */
    uint64_t links; /* links in a chain of objects of one class; 0: no chain */
    int32_t class;  /* the class of what accumulates, or HEAP_NO_CLASS */
    bool versions;  /* the class itself accumulates, loaded again and again, not instances of it */
    int32_t loaded; /* of accumulating loaders: the class that most have loaded, or HEAP_NO_CLASS */
    /* the number of class loaders that have each loaded `loaded` or, without that, `class` */
    uint64_t loaders;
    uint64_t count, bytes, children; /* children: of the place, of all classes */
};

/*
 * Returns whether a class belongs to the program: it is neither the JDK's nor an array of primitive
 * values.
 */
bool heap_is_program_class(const struct heap_class *c);
/*
 * Finds what accumulates below object i. The class is HEAP_NO_CLASS when nothing does, or memory
 * runs out.
 */
struct accumulation heap_accumulation(const struct heap *h, uint64_t i);

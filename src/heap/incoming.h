/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who refers to an object. The index has no answer: the dump is searched, for one object; for one after the other a table is
 * made of all references, by target, in the arrays of heap_memory.h.
 */
#pragma once

#include "base/vec.h"
#include "heap/heap.h"

struct heap_sources {
    VEC(uint64_t) list; /* numbers of objects, ascending, each once */
};

struct heap_incoming;

/* The table for a heap, which must outlive it; it is made when a second object is asked for. NULL: no memory. */
struct heap_incoming *heap_incoming_new(const struct heap *h) must_check;
void heap_incoming_free(struct heap_incoming *in);
/* Those that refer to an object, in place of what is in the list. 0 or -ENOMEM. */
int heap_incoming_of(struct heap_incoming *in, uint64_t target, struct heap_sources *out) must_check;

/* The same by one search of the dump. */
int heap_incoming_search(const struct heap *h, uint64_t target, struct heap_sources *out) must_check;

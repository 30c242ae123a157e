/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the objects that refer to an object. The index does not contain them. For one object the
 * dump is searched. For several, a table of all references by target is built in arrays of
 * heap/memory.h.
 */
#pragma once

#include "base/vec.h"
#include "heap/heap.h"

struct heap_sources {
    VEC(uint64_t) list; /* object numbers in ascending order, without duplicates */
};

struct heap_incoming;

/*
 * Prepares the table for a heap, which must exist as long as the table. The table is built when the
 * sources of a second object are requested. Returns NULL when out of memory.
 */
struct heap_incoming *heap_incoming_new(const struct heap *h) must_check;
void heap_incoming_free(struct heap_incoming *in);
/* Replaces the list by the objects that refer to `target`. Returns 0 or -ENOMEM. */
int heap_incoming_of(struct heap_incoming *in, uint64_t target,
                     struct heap_sources *out) must_check;

/* Replaces the list like heap_incoming_of, with one search of the dump and without a table. */
int heap_incoming_search(const struct heap *h, uint64_t target,
                         struct heap_sources *out) must_check;

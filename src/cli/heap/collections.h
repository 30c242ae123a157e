/* SPDX-License-Identifier: Apache-2.0 */
/* The JDK's collections: where each keeps its size and its slots. */
#pragma once

#include "heap/heap.h"

struct heap_collection {
    const char *class; /* as the JDK has it; its subclasses too */
    uint64_t size;
    /* the object that has its slots; HEAP_NONE when there is none, or it is not made yet */
    uint64_t array;
    /* hashed: slots are found by hash; pairs: a key and a value take two slots */
    bool hashed, pairs;
};

/* False when the object is none that is known. */
bool heap_collection_of(const struct heap *h, uint64_t i, struct heap_collection *ret);
/* Whether instances of a class are collections, by its number. */
bool heap_class_is_collection(const struct heap *h, int32_t class);

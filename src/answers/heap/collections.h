/* SPDX-License-Identifier: Apache-2.0 */
/* The JDK's collections: where each of them stores its size and its slots. */
#pragma once

#include "heap/heap.h"

struct heap_collection {
    const char *class; /* the JDK's class; subclasses are included */
    uint64_t size;
    /* the object that holds the slots; HEAP_NONE when there is none, or not yet */
    uint64_t array;
    /* hashed: slots are found by hash; pairs: a key and a value take two slots */
    bool hashed, pairs;
};

/*
 * Stores the size of one of the JDK's collections or maps. Returns false when the object is none,
 * or cannot be read.
 */
bool heap_collection_size(const struct heap *h, uint64_t i, uint64_t *ret);

/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the characters of java.lang.String in the dump. */
#pragma once

#include "heap/heap.h"

enum heap_coder { HEAP_LATIN1, HEAP_UTF16_BE, HEAP_UTF16_LE };

struct heap_text {
    const uint8_t *bytes; /* of the file */
    uint64_t len;         /* characters */
    uint64_t array;       /* the array that holds them, shared or not */
    enum heap_coder coder;
};

/* Sets h->strings: where a String keeps its characters. */
void heap_text_prepare(struct heap *h);
/* Finds the characters of object i. Returns false when the object is not a string or has none. */
bool heap_text_of(const struct heap *h, uint64_t i, struct heap_text *ret);

/*
 * Returns whether an object would name a class of the agent in a list of objects: such a class, an
 * instance of one, a string that is its name, or the array with the characters.
 */
bool heap_is_agents(const struct heap *h, uint64_t i);

static inline uint64_t heap_text_bytes(const struct heap_text *t)
{
    return t->coder == HEAP_LATIN1 ? t->len : t->len * 2;
}

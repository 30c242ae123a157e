/* SPDX-License-Identifier: Apache-2.0 */
/* The number and the sizes of the heap's objects, for GC_FINISH. */
#pragma once

#include <jni.h>
#include <stdbool.h>

struct heap_counts {
    jlong objects, bytes;
};

/*
 * Returns whether a walk through the heap keeps the classes of all objects that it meets until the
 * next collection: up to JDK 20 with the collectors that mark concurrently.
 */
bool heap_count_keeps_classes(void);
/* Counts the objects by a walk through the heap. */
void heap_count(void);
/*
 * Returns the counts after a collection. With collectors for which counting keeps classes loaded,
 * they are those of the last count, which is at most 16 calls old.
 */
struct heap_counts heap_counts_after_collection(void);

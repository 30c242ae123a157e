/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How large objects are in the VM that wrote a dump. A dump states the values of an object, not its header, padding or the
 * width of a reference in memory; but ids are addresses, so the distance of neighbours bounds the size of the first from above,
 * and in a heap after a collection it mostly is the size. The shape that agrees best with these distances is taken.
 */
#pragma once

#include "heap/dump.h"

/* An object and the distance to the next one in memory. */
struct heap_gap {
    uint64_t class_id; /* 0 for a primitive array */
    uint32_t count, gap;
    uint8_t tag, type;
};

/* Fills d->shape from the gaps; the classes must be finished. */
int heap_shape_infer(struct heap_dump *d, const struct heap_gap *gaps, size_t n) must_check;
/* Sets the sizes of all classes by d->shape. */
void heap_shape_apply(struct heap_dump *d);
/* Notes which classes have fields that only the VM knows. */
void heap_shape_mark_injected(struct heap_dump *d);
/* Bytes that an instance has behind its fields (a stack chunk's frames), in a class that says how many. */
uint64_t heap_behind_fields(const struct heap_dump *d, const struct heap_class *c, const struct hprof_item *item);

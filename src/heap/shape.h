/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Infers the sizes of objects in the VM that wrote a dump. A dump has the values of an object but
 * not its header, padding or the width of references in memory. Ids, however, are addresses, so the
 * distance between neighbours is an upper bound for the size of the first, and in a heap after a
 * collection it mostly equals the size. The shape that matches most distances is chosen.
 */
#pragma once

#include "heap/dump.h"

/* An object and its distance to the next one in memory. */
struct heap_gap {
    uint64_t id;
    uint64_t class_id; /* 0 for a primitive array */
    uint32_t count, gap;
    uint8_t tag, type;
};

/*
 * Sets d->shape from n gaps. alignment: the highest possible alignment of the objects, or less than
 * 8 if ids are not addresses. Requires heap_dump_finish_classes. Returns 0 or -ENOMEM.
 */
int heap_shape_infer(struct heap_dump *d, uint32_t alignment, const struct heap_gap *gaps,
                     size_t n) must_check;
/* Sets the sizes of all classes according to d->shape. */
void heap_shape_apply(struct heap_dump *d);
/*
 * Sets `injected`, `refs_first` and `words_at` of the JDK's classes whose layout has what only the
 * VM knows.
 */
void heap_shape_mark_injected(struct heap_dump *d);

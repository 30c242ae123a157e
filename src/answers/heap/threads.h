/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of a dump: the object of each, its stack, and the objects that its frames hold. */
#pragma once

#include "base/buf.h"
#include "heap/heap.h"

struct heap_thread {
    uint32_t serial, trace; /* serial numbers of the thread and its stack; 0: none */
    uint64_t object;        /* HEAP_NONE when the object is not in the dump */
};

/*
 * Appends " of thread main in Shop.sell (Shop.java:12)" to the name of a root that a stack holds;
 * appends nothing for other roots.
 */
void heap_root_place(const struct heap *h, const struct heap_root *root, struct buf *b);

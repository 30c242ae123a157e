/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of a dump: which object each is, its stack, the objects that its frames hold. */
#pragma once

#include "base/buf.h"
#include "heap/heap.h"

struct heap_thread {
    uint32_t serial, trace; /* serial numbers of the thread and of its stack; 0: none */
    uint64_t object;        /* HEAP_NONE when the dump does not have it */
};

/* The thread of a serial number; false when there is none. */
bool heap_thread_of(const struct heap *h, uint32_t serial, struct heap_thread *ret);
/* Frames of a stack by its serial number. */
unsigned heap_frames(const struct heap *h, uint32_t trace);
/* "Shop.sell (Shop.java:12)"; false when there is no such frame. */
bool heap_frame_text(const struct heap *h, uint32_t trace, unsigned frame, struct buf *b);
/*
 * " of thread main in Shop.sell (Shop.java:12)": behind the name of a root that a stack holds;
 * nothing for others.
 */
void heap_root_place(const struct heap *h, const struct heap_root *root, struct buf *b);

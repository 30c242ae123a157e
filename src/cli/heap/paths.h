/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/buf.h"
#include "heap/heap.h"

/* Returns the meaning of a root's tag: "system class", "local variable" and so on. */
const char *heap_root_name(uint8_t tag);
/*
 * Appends all the ways in which an object is a root, "thread, JNI global"; nothing when it is none.
 */
void heap_root_kinds(const struct heap *h, uint64_t i, struct buf *b);

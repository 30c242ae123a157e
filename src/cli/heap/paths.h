/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/buf.h"
#include "heap/heap.h"

/* "system class", "local variable" ...: what a root's tag means. */
const char *heap_root_name(uint8_t tag);
/* All that an object is a root as, "thread, JNI global"; nothing when it is none. */
void heap_root_kinds(const struct heap *h, uint64_t i, struct buf *b);

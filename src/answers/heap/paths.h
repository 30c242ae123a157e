/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/buf.h"
#include "heap/heap.h"

enum { HEAP_ROOT_KINDS = 8 };

/* The kinds of roots, in the order in which they are listed. */
extern const struct heap_root_name {
    uint8_t tag;
    const char *name;
} heap_root_names[HEAP_ROOT_KINDS];

/* Returns the row of a root's tag, or HEAP_ROOT_KINDS if it has none. */
size_t heap_root_kind(uint8_t tag);
/* Returns the meaning of a root's tag: "system class", "local variable" and so on. */
const char *heap_root_name(uint8_t tag);
/*
 * Appends all the ways in which an object is a root, "thread, JNI global"; nothing when it is none.
 */
void heap_root_kinds(const struct heap *h, uint64_t i, struct buf *b);

/* Returns whether an object is the java.lang.Class of one of the program's classes. */
bool heap_is_class_of_program(const struct heap *h, uint64_t i);

/* What heap_path_start looks for in a heap, by class number. */
struct heap_path_starts {
    const struct heap *h;
    int32_t thread, loader;
};

struct heap_path_starts heap_path_starts_of(const struct heap *h);
/*
 * Returns the index in `way` (which leads from an object to its root, n > 0) at which the path that
 * is shown to the user begins: at the program's first class when only the VM's own bookkeeping (a
 * class loader, its table of classes) leads to that class, otherwise at the root.
 */
size_t heap_path_start(const struct heap_path_starts *s, const uint64_t *way, size_t n);

/* SPDX-License-Identifier: Apache-2.0 */
/* The children in the dominator tree, which the build writes last. */
#pragma once

#include "heap/index.h"

/*
 * Writes the section of children, grouped by their dominator in the order of the dominators and
 * sorted by retained size, the largest first, and the size that the instances of each class retain
 * together. The sections of dominators, retained sizes and classes must be complete. Reuses the
 * memory of *spare and *other (heap_memory_again) and sets each pointer whose memory it has taken
 * to NULL. Returns 0 or -ENOMEM.
 */
int heap_children_write(const struct heap_index_file *f, struct heap_dump *d, void **spare,
                        void **other) must_check;

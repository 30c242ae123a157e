/* SPDX-License-Identifier: Apache-2.0 */
/* What a page without a server shows of a heap dump. */
#pragma once

#include "base/json.h"
#include "heap/heap.h"

/*
 * Writes the object {"answers": {question: answer}}: summary, classes, suspects and, for the
 * largest objects, the tree of dominators, what they hold and why they are alive; some megabytes at
 * most. Returns 0 or -ENOMEM.
 */
int page_heap(const struct heap *h, struct json *j) must_check;

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions of the page about a heap dump, which the verbs of `jvmscope heap` answer with their
 * --json output.
 */
#pragma once

#include "base/json.h"
#include "heap/heap.h"

struct heap_options;

/*
 * Writes the JSON of a verb to `out`. Returns 0; -ENOENT when there is no such verb; -EINVAL with a
 * line of text in `out` when the question is wrong; or -ENOMEM.
 */
int heap_verb_answer(const struct heap *h, const char *verb, const struct heap_options *o,
                     const char *operand, struct buf *out) must_check;

enum { HEAP_EMBED_BYTES = 6 << 20, HEAP_EMBED_OBJECTS = 160 };

/*
 * Writes the object {"answers": {question: answer}} for a page without a server: summary, classes,
 * suspects and, for the largest objects, the tree of dominators, what they hold and why they are
 * alive; at most HEAP_EMBED_BYTES. Returns 0 or -ENOMEM.
 */
int heap_embed_json(const struct heap *h, struct json *j) must_check;

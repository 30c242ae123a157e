/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions of the page to a heap dump: answered by the verbs of `jvmscope heap`, as their --json.
 */
#pragma once

#include "base/json.h"
#include "heap/heap.h"

struct heap_options;

/*
 * The JSON of a verb, into `out`. 0; -ENOENT for no such verb; -EINVAL with a line of text in `out`
 * when the question is wrong; -ENOMEM.
 */
int heap_ask(const struct heap *h, const char *verb, const struct heap_options *o,
             const char *operand, struct buf *out) must_check;

enum { HEAP_EMBED_BYTES = 6 << 20, HEAP_EMBED_OBJECTS = 160 };

/*
 * The object {"answers": {question: answer}} for a page that has no server: summary, classes,
 * suspects, and of the largest objects the tree of dominators, what they hold and why they live; at
 * most HEAP_EMBED_BYTES. 0 or -ENOMEM.
 */
int heap_embed_json(const struct heap *h, struct json *j) must_check;

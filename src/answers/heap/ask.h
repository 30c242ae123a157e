/* SPDX-License-Identifier: Apache-2.0 */
/* The answers of the verbs of `jvmscope heap` as JSON, for the page. */
#pragma once

#include "base/json.h"
#include "heap/heap.h"

struct heap_options;

/*
 * Writes the JSON of a verb to `out`. Returns 0; -ENOENT when there is no such verb; -EINVAL with a
 * line of text in `out` when the question is wrong; or -ENOMEM.
 */
int heap_ask_json(const struct heap *h, const char *verb, const struct heap_options *o,
                  const char *operand, struct buf *out) must_check;

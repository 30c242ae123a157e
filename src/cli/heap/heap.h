/* SPDX-License-Identifier: Apache-2.0 */
/* Running the verbs of `jvmscope heap`: opening a dump, asking, and showing the answer. */
#pragma once

#include "answers/heap/heap.h"
#include "cli/args.h"

extern const struct command heap_verb_dump, heap_verb_diff;

/*
 * Opens the index of a dump. If the dump has none, builds it and displays the progress. Returns 0,
 * or the exit status after a complaint.
 */
int heap_open_index(struct heap **ret, const char *path, const struct heap_options *o);
/* Shows the answer as the options request. Returns the exit status. */
int heap_show(const struct answer *a, const struct heap_options *o);

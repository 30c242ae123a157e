/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verbs of `jvmscope heap`: one row for each, and one file for each verb or for a few similar
 * ones.
 */
#pragma once

#include "cli/commands.h"
#include "cli/heap/heap.h"

/*
 * Ends with NULL. A verb's file defines its row, `const struct command heap_verb_NAME`, and
 * verb_list.h lists it.
 */
extern const struct command *const heap_verbs[];
#define VERB(name) extern const struct command heap_verb_##name;
#include "cli/heap/verb_list.h"
#undef VERB

/* The function of a verb with an answer: opens the index, asks, and shows the answer's page. */
int heap_run_verb(const struct command *self, int argc, char **argv);
#define HEAP_ONE_FILE .operands = "FILE", .min_operands = 1, .max_operands = 1

/*
 * Asks the verb, which adds its answer to the call's page. Returns 0, the exit status after
 * page_refuse, or -ENOENT when it is not a verb that answers with a page.
 */
int heap_answer_verb(const char *verb, const struct heap_call *c);
/* Adds what a report contains in addition to the summary. */
void heap_report_sections(const struct heap_call *c);

extern const struct arg_set *const heap_paths_sets[], *const heap_select_sets[], *const heap_sets[];

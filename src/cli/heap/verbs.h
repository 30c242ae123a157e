/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verbs of `jvmscope heap`: one row for each, and one file for each verb or for a few similar
 * ones.
 */
#pragma once

#include "cli/commands.h"
#include "cli/heap/heap.h"

extern const struct command heap_verbs[];

int cmd_heap_diff(const struct command *self, int argc, char **argv);
int cmd_heap_dump(const struct command *self, int argc, char **argv);
int cmd_heap_histogram(const struct command *self, int argc, char **argv);

/* Each adds to the call's page and returns 0, or the exit status after a complaint. */
/* Adds what a report contains in addition to the summary. */
void heap_report_sections(const struct heap_call *c);
int heap_answer_arrays(const struct heap_call *c);
int heap_answer_classes(const struct heap_call *c);
int heap_answer_collections(const struct heap_call *c);
int heap_answer_components(const struct heap_call *c);
int heap_answer_dominators(const struct heap_call *c);
int heap_answer_histogram(const struct heap_call *c);
int heap_answer_leaks(const struct heap_call *c);
int heap_answer_objects(const struct heap_call *c);
int heap_answer_paths(const struct heap_call *c);
int heap_answer_query(const struct heap_call *c);
int heap_answer_references(const struct heap_call *c);
int heap_answer_retained(const struct heap_call *c);
int heap_answer_strings(const struct heap_call *c);
int heap_answer_summary(const struct heap_call *c);
int heap_answer_threads(const struct heap_call *c);
int heap_answer_unreachable(const struct heap_call *c);

/*
 * Runs the verb. Returns 0, the exit status after a complaint, or -ENOENT when it is not a verb
 * that answers with a page.
 */
int heap_answer_verb(const char *verb, const struct heap_call *c);

/* clang-format off */
extern const struct arg_set *const heap_dominators_sets[];
extern const struct arg_set *const heap_histogram_sets[];
extern const struct arg_set *const heap_paths_sets[];
extern const struct arg_set *const heap_query_sets[];
extern const struct arg_set *const heap_select_sets[];
extern const struct arg_set *const heap_sets[];
extern const struct arg_set *const heap_strings_sets[];
extern const struct arg_set *const heap_take_sets[];
/* clang-format on */

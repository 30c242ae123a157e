/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of `jvmscope heap`: one row each, one file for each or for a few that are alike. */
#pragma once

#include "cli/commands.h"
#include "cli/heap/heap.h"

extern const struct command heap_verbs[];

int cmd_heap_diff(const struct command *self, int argc, char **argv);
int cmd_heap_dump(const struct command *self, int argc, char **argv);
int cmd_heap_histogram(const struct command *self, int argc, char **argv);

/* Each adds to the call's page; 0 or the exit status after a complaint. */
/* What a report has beyond the summary. */
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
 * Asks the verb: 0 or the exit status after a complaint, -ENOENT when it is none that answers by a
 * page.
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

/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of `jvmscope heap`: one row each, one file for each or for a few that are alike. */
#pragma once

#include "cli/commands.h"

extern const struct command heap_verbs[];

int cmd_heap_dominators(const struct command *self, int argc, char **argv);
int cmd_heap_histogram(const struct command *self, int argc, char **argv);
int cmd_heap_summary(const struct command *self, int argc, char **argv);

/* clang-format off */
extern const struct arg_set *const heap_dominators_sets[];
extern const struct arg_set *const heap_histogram_sets[];
extern const struct arg_set *const heap_summary_sets[];
/* clang-format on */

/* SPDX-License-Identifier: Apache-2.0 */
/* Each command's function and options, from the file of its name. */
#pragma once

#include "cli/commands.h"

int cmd_convert(const struct command *self, int argc, char **argv);
int cmd_diff(const struct command *self, int argc, char **argv);
int cmd_report(const struct command *self, int argc, char **argv);

extern const struct arg_set *const convert_sets[], *const diff_sets[], *const report_sets[];

/* SPDX-License-Identifier: Apache-2.0 */
/* Each command's function and options, from the file of its name. */
#pragma once

#include "cli/commands.h"

int cmd_attach(const struct command *self, int argc, char **argv);
int cmd_convert(const struct command *self, int argc, char **argv);
int cmd_diff(const struct command *self, int argc, char **argv);
int cmd_dump(const struct command *self, int argc, char **argv);
int cmd_list(const struct command *self, int argc, char **argv);
int cmd_report(const struct command *self, int argc, char **argv);
int cmd_run(const struct command *self, int argc, char **argv);
int cmd_status(const struct command *self, int argc, char **argv);
int cmd_stop(const struct command *self, int argc, char **argv);

extern const struct arg_set *const attach_sets[],
    *const convert_sets[], *const diff_sets[], *const list_sets[], *const report_sets[], *const run_sets[],
                                                                                             *const status_sets[],
                                                                                                 *const stop_sets[];

/* SPDX-License-Identifier: Apache-2.0 */
/* The function and the options of each command; the files have the commands' names. */
#pragma once

#include "cli/commands.h"

int cmd_attach(const struct command *self, int argc, char **argv);
int cmd_check(const struct command *self, int argc, char **argv);
int cmd_collect(const struct command *self, int argc, char **argv);
int cmd_completion(const struct command *self, int argc, char **argv);
int cmd_control(const struct command *self, int argc, char **argv);
int cmd_convert(const struct command *self, int argc, char **argv);
int cmd_coverage(const struct command *self, int argc, char **argv);
int cmd_diff(const struct command *self, int argc, char **argv);
int cmd_dump(const struct command *self, int argc, char **argv);
int cmd_host(const struct command *self, int argc, char **argv);
int cmd_inspect(const struct command *self, int argc, char **argv);
int cmd_list(const struct command *self, int argc, char **argv);
int cmd_manual(const struct command *self, int argc, char **argv);
int cmd_requests(const struct command *self, int argc, char **argv);
int cmd_report(const struct command *self, int argc, char **argv);
int cmd_run(const struct command *self, int argc, char **argv);
int cmd_serve(const struct command *self, int argc, char **argv);
int cmd_slow(const struct command *self, int argc, char **argv);
int cmd_status(const struct command *self, int argc, char **argv);
int cmd_stop(const struct command *self, int argc, char **argv);
int cmd_top(const struct command *self, int argc, char **argv);
int cmd_trace(const struct command *self, int argc, char **argv);
int cmd_vm(const struct command *self, int argc, char **argv);

/* clang-format off */
extern const struct arg_set *const attach_sets[];
extern const struct arg_set *const check_sets[];
extern const struct arg_set *const collect_sets[];
extern const struct arg_set *const control_sets[];
extern const struct arg_set *const convert_sets[];
extern const struct arg_set *const coverage_sets[];
extern const struct arg_set *const diff_sets[];
extern const struct arg_set *const dump_sets[];
extern const struct arg_set *const host_sets[];
extern const struct arg_set *const inspect_sets[];
extern const struct arg_set *const list_sets[];
extern const struct arg_set *const report_sets[];
extern const struct arg_set *const requests_sets[];
extern const struct arg_set *const run_sets[];
extern const struct arg_set *const serve_sets[];
extern const struct arg_set *const slow_now_sets[];
extern const struct arg_set *const status_sets[];
extern const struct arg_set *const stop_sets[];
extern const struct arg_set *const top_sets[];
extern const struct arg_set *const trace_sets[];
extern const struct arg_set *const vm_sets[];
/* clang-format on */

extern const struct command fleet_verbs[];
extern const struct command requests_verbs[];
extern const struct command threads_verbs[];

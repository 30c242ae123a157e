/* SPDX-License-Identifier: Apache-2.0 */
/* Its functions begin with command_ or complain_. */
#pragma once

#include "base/buf.h"
#include "cli/args.h"

/*
 * All commands, in the order of help; ends with NULL. A command's file defines its
 * row, `const struct command command_NAME`, and command_list.h lists it.
 */
extern const struct command *const commands[];
#define COMMAND(name) extern const struct command command_##name;
#include "cli/command_list.h"
#undef COMMAND

/* Declares c, which takes the value of each command of a table in turn; the table may be NULL. */
#define COMMAND_EACH(c, table) \
    for (const struct command *const *c##_at = (table), *c; c##_at && (c = *c##_at); c##_at++)

/* Runs the command of `table` that argv[0] names. Returns the exit status. */
int command_dispatch(const struct command *const *table, int argc, char **argv);
/* Prints a line for each row, with its name and its summary. */
void command_summaries(const struct command *const *table, FILE *to);
/* Returns the last word of a command's name. */
const char *command_word(const struct command *c);

/*
 * Prints `jvmscope: WHERE: WHAT: WHY` on standard error, without the parts that are NULL, and
 * returns 1.
 */
int complain(const char *where, const char *what, const char *why);
/*
 * Complains like complain about options, with those of n options that are not NULL as the reason:
 * "--thread --from". Returns 1.
 */
int complain_of_options(const char *where, const char *what, const char *const *options, size_t n);
/*
 * Makes complaints about `path` mention `shown` instead; with NULL, NULL they no longer do. The
 * strings are not copied. For convert_copy alone: otherwise the name that the user knows would have
 * to pass through every reader of a recording, which only complain about the file that they read.
 */
void complain_as(const char *path, const char *shown);
/* Returns whether complaints about a file mention another name, which no command could read. */
bool complain_renames(const char *path);
/*
 * Returns true after a complaint when `output` is one of the n files that are read for it, and
 * would replace that file.
 */
bool complain_of_input(const char *output, char *const *inputs, int n);
/*
 * Complains like complain; the reason is that of `error`, a negative errno (file_map_why). Returns
 * 1.
 */
int complain_errno(const char *where, const char *what, int error);

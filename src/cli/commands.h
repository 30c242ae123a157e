/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/buf.h"
#include "cli/args.h"

struct heap_call;

/*
 * A command: help, manual page and shell completion are made from this. It has either `run`, which
 * returns the exit status (0 done, 1 failed, 2 usage), or `verbs`, commands whose names have two
 * words ("heap dump"), or both; then an operand that is not a verb is passed to `run`.
 */
struct command {
    const char *name;
    /* argv[0] is the last word of the name */
    int (*run)(const struct command *self, int argc, char **argv);
    /* ends with NULL */
    const struct command *const *verbs;
    /* "FILE", "[PID]", for the usage line */
    const char *operands;
    int min_operands, max_operands; /* max -1: any number */
    /* what follows the first operand belongs to it, options included */
    bool operands_end_options;
    /* one line, lower case, no full stop */
    const char *summary;
    /* paragraphs of the manual page, in scdoc's markup */
    const char *description;
    /* the commands that its manual page refers to, separated by spaces; NULL: none */
    const char *related;
    /* lines "command # what it does" */
    const char *examples;
    /* its options; ends with NULL; may be NULL */
    const struct arg_set *const *sets;
    /*
     * For a verb of `heap` that returns a page, which `run` prints and the page's server sends;
     * returns 0 or an exit status (cli/heap/verbs.h).
     */
    int (*heap_answer)(const struct heap_call *c);
};

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

/* Runs the row of `table` that argv[0] names. */
int command_dispatch(const struct command *const *table, int argc, char **argv);
/* A line for each row: its name and its summary. */
void command_summaries(const struct command *const *table, FILE *to);
/* Returns the last word of a command's name. */
const char *command_word(const struct command *c);

/*
 * Prints `jvmscope: WHERE: WHAT: WHY` on standard error, without the parts that are NULL, and
 * returns 1.
 */
int complain(const char *where, const char *what, const char *why);
/*
 * Makes complaints about `path`, a descriptor's name, mention `shown` instead; NULL, NULL ends
 * that. Neither is copied.
 */
void complain_as(const char *path, const char *shown);
/* The same with strerror(-error) as the reason. */
int complain_errno(const char *where, const char *what, int error);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/buf.h"
#include "cli/args.h"

/*
 * One command: its row is all that help, manual page and shell completion know of it. Either `run`, which answers the exit
 * status (0 done, 1 failed, 2 usage), or `verbs`, commands of its own whose names have two words ("heap dump").
 */
struct command {
    const char *name;
    int (*run)(const struct command *self, int argc, char **argv); /* argv[0] is the last word of the name */
    const struct command *verbs;                                   /* ends with a row without a name */
    const char *operands;                                          /* "FILE", "[PID]", for the usage line */
    int min_operands, max_operands;                                /* max -1: any number */
    bool operands_end_options;                                     /* what follows the first operand is the operand's own */
    const char *summary;                                           /* one line, lower case, no full stop */
    const char *description;                                       /* paragraphs of the manual page, in scdoc's markup */
    const char *examples;                                          /* lines "command # what it does" */
    const struct arg_set *const *sets;                             /* its options; ends with NULL; may be NULL */
};

/* Ends with a row without a name. */
extern const struct command commands[];

/* Runs the row of `table` that argv[0] names. */
int command_dispatch(const struct command *table, int argc, char **argv);
/* The last word of a command's name. */
const char *command_word(const struct command *c);

/* Prints `jvmscope: WHERE: WHAT: WHY` on standard error, leaving out what is NULL, and answers 1. */
int complain(const char *where, const char *what, const char *why);
/* Complaints go there, as one line each, instead of to standard error; NULL: to standard error again. */
void complain_to(struct buf *b);
/* The same with strerror(-error) as the reason. */
int complain_errno(const char *where, const char *what, int error);

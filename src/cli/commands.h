/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/buf.h"
#include "cli/args.h"

/*
 * One command: its row is all that help, manual page and shell completion know of it. Either `run`,
 * which answers the exit status (0 done, 1 failed, 2 usage), or `verbs`, commands of its own whose
 * names have two words ("heap dump"); or both: then what is no verb is an operand of its own.
 */
struct command {
    const char *name;
    /* argv[0] is the last word of the name */
    int (*run)(const struct command *self, int argc, char **argv);
    /* ends with a row without a name */
    const struct command *verbs;
    /* "FILE", "[PID]", for the usage line */
    const char *operands;
    int min_operands, max_operands; /* max -1: any number */
    /* what follows the first operand is the operand's own */
    bool operands_end_options;
    /* one line, lower case, no full stop */
    const char *summary;
    /* paragraphs of the manual page, in scdoc's markup */
    const char *description;
    /* lines "command # what it does" */
    const char *examples;
    /* its options; ends with NULL; may be NULL */
    const struct arg_set *const *sets;
};

/* Ends with a row without a name. */
extern const struct command commands[];

/* Runs the row of `table` that argv[0] names. */
int command_dispatch(const struct command *table, int argc, char **argv);
/* A line for each row: its name and its summary. */
void command_list(const struct command *table, FILE *to);
/* The last word of a command's name. */
const char *command_word(const struct command *c);

/*
 * Prints `jvmscope: WHERE: WHAT: WHY` on standard error, leaving out what is NULL, and answers 1.
 */
int complain(const char *where, const char *what, const char *why);
/*
 * Complaints go there, as one line each, instead of to standard error; NULL: to standard error
 * again.
 */
void complain_to(struct buf *b);
/*
 * Complaints about `path`, a descriptor's, name `shown` instead; NULL, NULL ends that. Both are
 * kept by the caller.
 */
void complain_as(const char *path, const char *shown);
/* The same with strerror(-error) as the reason. */
int complain_errno(const char *where, const char *what, int error);

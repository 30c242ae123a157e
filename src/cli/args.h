/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command-line options from tables, which also provide --help, manual pages and completion.
 * Accepted are `--name VALUE`, `--name=VALUE`, `-l VALUE` and `-lVALUE`; `--` ends the options.
 */
#pragma once

#include "options/command.h"

#include <stdbool.h>
#include <stdio.h>

/* An option in the form for help, whichever table it comes from. */
struct arg_shown {
    const char *name, *value, *help;
    char letter;
    bool value_optional;
    const char *standard; /* the default; NULL: there is none, or `help` gives it */
    const char *unit;     /* the unit of the default, or "" */
};

/* Stores the i-th option of a set. Returns false after the last one. */
bool arg_at(const struct arg_set *set, size_t i, struct arg_shown *ret);

struct operands {
    int count;
    char **list; /* in argv, which is reordered */
};

/*
 * The struct that receives the values of a set. set NULL: of every set that no other element names.
 */
struct arg_values {
    const struct arg_set *set;
    void *values;
};

/* A list of such elements: ARGS({&report_set, &options}, {&selection_set, &selection}). */
#define ARGS(...) ((const struct arg_values[]){__VA_ARGS__, {0}})

/*
 * Parses the command line. Fills the structs of the command's sets, and the operands. `values` is
 * NULL for a command without options. Returns false when the command has nothing more to do, after
 * `--help` or a complaint on standard error; *ret_status is its exit status then.
 */
bool args_parse(const struct command *c, const struct arg_values *values, int argc, char **argv,
                struct operands *ret, int *ret_status);

/* The options of a command that has only --json. */
struct json_only {
    bool json;
};

extern const struct arg_set *const json_only_sets[];

/*
 * Takes the word after the option at argv[*i], whose long name is `name`, as its value and sets *i
 * to that word. Returns NULL after a complaint when no word follows, or when the word is another
 * option of the command.
 */
const char *args_next_value(const struct command *c, const char *name, int argc, char **argv,
                            int *i);

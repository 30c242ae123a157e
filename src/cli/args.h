/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command-line options from tables, which also provide --help, manual pages and completion.
 * Accepted are `--name VALUE`, `--name=VALUE`, `-l VALUE` and `-lVALUE`; `--` ends the options.
 */
#pragma once

#include "base/macro.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct command;

enum arg_kind {
    ARG_FLAG, /* bool */
    ARG_TEXT, /* const char *, as given */
    /*
     * const char *, which lives until the process ends: the values, given once or several times,
     * joined by commas
     */
    ARG_LIST,
    ARG_NUMBER,   /* uint64_t */
    ARG_COUNT,    /* uint64_t, 1 or more; 0 when the option is not given */
    ARG_DURATION, /* uint64_t, nanoseconds; the unit is required except for 0 */
    ARG_SPAN,     /* the same, above 0; 0 when the option is not given */
    ARG_SIZE,     /* uint64_t, bytes */
    ARG_SHARE,    /* double, above 0 and at most 1; given in per cent: "0.1%" */
};

struct arg {
    const char *name; /* "--json" */
    char letter;      /* 'o', 0 when none */
    enum arg_kind kind;
    size_t offset; /* of the value in the set's struct */
    /* as shown by help: "FILE"; "a|b" lists all allowed values; NULL for a flag */
    const char *value;
    const char *help; /* one line without a period */
};

/*
 * Options that share a struct of values. The capture set's options come from the agent's table, see
 * cli/capture.h.
 */
struct arg_set {
    const char *title;
    const struct arg *args; /* ends with a row without a name; NULL: the capture set */
};

/* An option as help shows it, whichever table it comes from. */
struct arg_shown {
    const char *name, *value, *help;
    char letter;
    bool value_optional;
    const char *standard; /* the value without the option; NULL: none, or help says it */
    const char *unit;     /* of that value, "" for none */
};

/* Returns the i-th option of a set, or false after the last one. */
bool arg_at(const struct arg_set *set, size_t i, struct arg_shown *ret);

struct operands {
    int count;
    char **list; /* in argv, which is reordered */
};

/* Where the values of a set go. set NULL: of every set that no other element names. */
struct arg_values {
    const struct arg_set *set;
    void *values;
};

/* A list of them: ARGS({&report_set, &options}, {&selection_set, &selection}). */
#define ARGS(...) ((const struct arg_values[]){__VA_ARGS__, {0}})

/*
 * Parses the command line. Fills the structs of the command's sets, and the operands. `values` is
 * NULL for a command without options. Returns false when the command has nothing more to do, after
 * `--help` or a complaint on standard error; *ret_status is its exit status then.
 */
bool args_parse(const struct command *c, const struct arg_values *values, int argc, char **argv,
                struct operands *ret, int *ret_status);

/*
 * Takes the word after the option at argv[*i], whose long name is `name`, as its value and sets *i
 * to it. Returns NULL after a complaint when there is none, or when it is another option of the
 * command.
 */
const char *args_next_value(const struct command *c, const char *name, int argc, char **argv,
                            int *i);

void args_help(const struct command *c, FILE *to);

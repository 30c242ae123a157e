/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of the command line by tables: parsing, --help, manual pages and completion all come from
 * them. `--name VALUE`,
 * `--name=VALUE`, `-l VALUE`, `-lVALUE`; `--` ends the options.
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
     * const char *, to the end of the process: what was given, once or several times, joined by
     * commas
     */
    ARG_LIST,
    ARG_NUMBER,   /* uint64_t */
    ARG_DURATION, /* uint64_t, nanoseconds; given with its unit, but for 0 */
    ARG_SIZE,     /* uint64_t, bytes */
    ARG_SHARE,    /* double, above 0 and at most 1; given in per cent: "0.1%" */
};

struct arg {
    const char *name; /* "--json" */
    char letter;      /* 'o', 0 when none */
    enum arg_kind kind;
    size_t offset; /* of the value in the set's struct */
    /* what help shows: "FILE"; "a|b" lists all that is allowed; NULL for a flag */
    const char *value;
    const char *help; /* one line without a full stop */
};

/*
 * Options that share a struct of values. Those of the capture set come from the agent's table, see
 * cli/capture.h.
 */
struct arg_set {
    const char *title;
    const struct arg *args; /* ends with a row without a name; NULL: the capture set */
};

/* An option as help shows it, whatever table it comes from. */
struct arg_shown {
    const char *name, *value, *help;
    char letter;
    bool value_optional;
};

/* The i-th option of a set; false beyond the last. */
bool arg_at(const struct arg_set *set, size_t i, struct arg_shown *ret);

struct operands {
    int count;
    char **list; /* in argv, which is reordered */
};

/*
 * Fills values[i], the struct of the command's i-th set, and the operands. True: go on. False: the
 * command is done with *ret_status, after `--help` or a complaint on standard error.
 */
bool args_parse(const struct command *c, void *const *values, int argc, char **argv,
                struct operands *ret, int *ret_status);

void args_help(const struct command *c, FILE *to);

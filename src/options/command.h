/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a command and its options are described. Help, manual pages and completion are made from
 * these descriptions; cli/args.h parses command lines by them.
 */
#pragma once

#include "base/macro.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heap_call;

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
    ARG_SPAN,     /* uint64_t, nanoseconds above 0; 0 when the option is not given */
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
    /* of a number, a duration (ns) or a size; max 0: those of its kind */
    uint64_t min, max;
};

/*
 * Options that share a struct of values. The capture set's options come from the agent's table, see
 * cli/capture.h.
 */
struct arg_set {
    const char *title;
    const struct arg *args; /* ends with a row without a name; NULL: the capture set */
};

/* An allowed word of an operand, with the operands that follow it. */
struct operand_word {
    const char *usage;   /* "step THREAD [into|over|out]" */
    const char *summary; /* one line, lower case, no full stop */
};

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
    /* runs those of its verbs whose `run` is NULL; NULL: none is */
    int (*run_verb)(const struct command *verb, int argc, char **argv);
    /* "FILE", "[PID]", for the usage line */
    const char *operands;
    int min_operands, max_operands; /* max -1: any number */
    /*
     * the allowed words of an operand, which help lists under this title; ends with {0}; may be
     * NULL
     */
    const char *words_title;
    const struct operand_word *words;
    /* gives the i-th extension and format of the output, false after the last; may be NULL */
    bool (*format)(size_t i, struct operand_word *ret);
    /* everything after the first operand belongs to that operand, including options */
    bool operands_end_options;
    /*
     * after the first operand, a word such as -5 that is not one of the command's options is an
     * operand
     */
    bool operands_may_begin_with_dash;
    /* one line, lower case, no full stop */
    const char *summary;
    /* paragraphs of the manual page, in scdoc's markup */
    const char *description;
    /*
     * what its results do not show, and what it costs the program: paragraphs of the manual page,
     * likewise; NULL for a command that measures nothing
     */
    const char *caveats;
    /* the commands that its manual page refers to, separated by spaces; NULL: none */
    const char *related;
    /* lines "command # what it does" */
    const char *examples;
    /* its options; ends with NULL; may be NULL */
    const struct arg_set *const *sets;
    /*
     * For a verb of `heap` that both the command and the page's server answer
     * (answers/heap/heap.h). It adds its answer to the call's and returns 0 or an exit status.
     * `run` is NULL then.
     */
    int (*heap_answer)(const struct heap_call *c);
    bool heap_survey; /* it can answer from the dump alone when there is no index */
};

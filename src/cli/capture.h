/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What to record: the flags of the agent's option table (options/options.h), translated into the
 * agent's option string.
 */
#pragma once

#include "base/buf.h"
#include "cli/args.h"
#include "options/options.h"

struct capture_options {
    /* the agent's words so far, "cpu=samples,interval=10ms"; zero-initialized when empty */
    struct buf options;
    uint64_t given;     /* the options that were given, by enum option, as bits */
    const char *output; /* -o; not part of `options` */
    uint64_t time_ns;   /* -t, in ns; not part of `options`; 0: none */
    bool always_off;    /* --always=n */
};

extern const struct arg_set capture_set; /* its struct is struct capture_options */

/* Returns whether --always was given: the recording is a ring and has no end. */
bool capture_always(const struct capture_options *c);
/* Returns true for --on without --always: triggers for a recording that is always on already. */
bool capture_adds_triggers(const struct capture_options *c);
void capture_release(struct capture_options *c);
/*
 * Parses the word at argv[*i] and its value if it is one of these flags, and sets *i to the last
 * word parsed. Returns 1 for one of these flags, 0 for any other word, and -EINVAL after a
 * complaint.
 */
int capture_parse(struct capture_options *c, const struct command *command, int argc, char **argv,
                  int *i);
/*
 * Adds an option as if it had been given. value: a valid one; NULL for an option without a value.
 */
void capture_add(struct capture_options *c, enum option which, const char *value);
/* Stores the i-th of these flags for help. Returns false after the last one. */
bool capture_arg_at(size_t i, struct arg_shown *ret);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conditions of triggers: "cpu > 90% for 30s || rss > 90%". Knows no JVM. The grammar is that of
 * base/logic.h; a test is one of these:
 *
 * request[(NAME)] OP DURATION | pN[(NAME)] OP DURATION | pause OP DURATION | safepoint OP DURATION
 *
 * cpu OP N% | rss OP (N% | SIZE) | fd OP (N% | N) | threads OP N, each with [for DURATION]
 *
 * rss grows SIZE/UNIT | exception CLASS [OP N/UNIT] | every DURATION | deadlock | oom
 *
 * OP is > or >= or < or <=, UNIT is s, min, m or h. NAME may contain * for any characters.
 */
#pragma once

#include "base/logic.h"

#include <stdint.h>

enum measure {
    MEASURE_REQUEST,
    MEASURE_PERCENTILE,
    MEASURE_PAUSE,
    MEASURE_SAFEPOINT,
    MEASURE_CPU,
    MEASURE_RSS,
    MEASURE_GROWTH, /* of the resident memory */
    MEASURE_THREADS,
    MEASURE_FD,
    MEASURE_EXCEPTION,
    MEASURE_EVERY,
    MEASURE_DEADLOCK,
    MEASURE_OOM,
    MEASURES
};

/* Stands in place of a condition and removes all triggers. */
#define TRIGGERS_NONE "none"
#define ACTION_EXEC   "exec:"

/*
 * Returns 0 if a pattern of file names ends in .jfr, contains %t, which makes the names unique, and
 * of other letters after % only r, p and %; else -EINVAL with a sentence in `message`.
 */
int trigger_file_check(const char *pattern, struct buf *message) must_check;

/* Returns the measure's name for file names: "rss-grows". */
const char *measure_reason(enum measure m);

enum { TRIGGER_NAME_SIZE = 256 };

struct trigger_test {
    enum measure measure;
    enum logic_op op;
    /* ns, percent (share), bytes, or a number; bytes or a number in each unit_ns (rates) */
    double limit;
    bool share;
    double percentile;            /* of 100 */
    uint64_t unit_ns;             /* of a rate */
    uint64_t for_ns;              /* for how long it has to hold */
    char name[TRIGGER_NAME_SIZE]; /* of requests, or a class; "" means all */
};

/*
 * Returns whether a test holds only for an instant. A rate of exceptions does not: it is a state.
 */
bool trigger_is_momentary(const struct trigger_test *t);

struct trigger_condition {
    struct logic logic;
    struct trigger_test tests[LOGIC_NODES]; /* by the numbers of their nodes */
};

/*
 * Parses the condition of a trigger. The caller frees *ret with free(). Returns 0; -EINVAL with a
 * sentence in `why` that shows the place and says what is understood; -ENOMEM.
 */
int trigger_condition_parse(struct trigger_condition **ret, const char *text,
                            struct buf *why) must_check;
/* Returns whether any test of the condition has this measure. */
bool trigger_condition_has(const struct trigger_condition *c, enum measure m);
/*
 * Writes the value that a test has measured into `text`, as people read it, and returns `text`:
 * "612 ms", "93 %", "1.20 GiB".
 */
const char *trigger_measured(char text[64], const struct trigger_test *t, double value);

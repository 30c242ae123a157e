/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is traced: patterns, each with a condition. A call is recorded when one of the patterns that
 * its method matches has no condition, or a condition that holds. Patterns that were given together
 * share a rule, which has their condition; rule 0 has none. Rules are kept until the end, because
 * calls in progress may still need theirs. Knows no JVM; not thread-safe.
 */
#pragma once

#include "base/macro.h"
#include "options/options.h"
#include "options/trace_condition.h"

/* A set of rules is a word in which rule n is bit n. */
enum { TRACE_RULES_MAX = 1 + TRACES_MAX };

struct trace_rule {
    char *text; /* the condition as given */
    struct condition *condition;
    bool fits;        /* a method was found whose calls may meet the condition */
    char *impossible; /* why calls of the first method found cannot meet it; NULL: none was found */
    bool reported;    /* as a condition that can never hold */
};

/* Patterns separated by ':', and the rule of each. All zeros is empty. */
struct trace_patterns {
    char *list;
    uint8_t *rules;
    bool *reported; /* as patterns for whose methods the condition can never hold */
    unsigned n;
};

struct trace_rules {
    struct trace_rule of[TRACE_RULES_MAX];
    unsigned n;
    struct trace_patterns patterns;
};

/* Parses the options. Returns 0, -EINVAL with a sentence in why, or -ENOMEM. */
int trace_rules_set(struct trace_rules *r, const struct options *o, struct buf *why) must_check;
void trace_rules_release(struct trace_rules *r);
/*
 * Adds a rule; a NULL condition is rule 0. Returns its number, -EINVAL with a sentence in why, or
 * -ENOMEM.
 */
int trace_rule_add(struct trace_rules *r, const char *condition, struct buf *why) must_check;
/* Returns the rules of a pattern, as a set. */
uint64_t trace_rules_used(const struct trace_rules *r);
/*
 * Returns whether a call is recorded: whether a condition of this set of rules holds for the values
 * of the call, which the callback provides.
 */
bool trace_rules_hold(const struct trace_rules *r, uint64_t set,
                      void (*value)(void *context, const struct cond_test *t,
                                    struct cond_value *ret),
                      void *context);
/*
 * Returns the condition that a call must meet for its probe to record anything. NULL: the probe
 * records every call, because the set has a rule without a condition or several conditions, or
 * because some rule compares the depth, to which calls that meet no condition contribute.
 */
const struct condition *trace_rules_only(const struct trace_rules *r, uint64_t set);

/*
 * Append a pattern to the list, or remove it. Return 0, or -ENOMEM. *ret_had: whether it was
 * present before.
 */
int trace_patterns_with(struct trace_patterns *ret, const struct trace_patterns *p,
                        const char *pattern, unsigned rule) must_check;
int trace_patterns_without(struct trace_patterns *ret, const struct trace_patterns *p,
                           const char *pattern, bool *ret_had) must_check;
void trace_patterns_release(struct trace_patterns *p);

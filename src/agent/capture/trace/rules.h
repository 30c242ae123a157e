/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is traced: patterns, and the condition that each has. A call is recorded when one of the
 * patterns that its method matches has no condition, or one that holds. Patterns that were given
 * together share a rule, which has their condition; rule 0 has none. Rules stay to the end, because
 * calls that have begun may still ask for theirs. Knows no JVM; not for two threads at once.
 */
#pragma once

#include "agent/capture/trace/condition.h"
#include "agent/options.h"
#include "base/macro.h"

/* A set of rules is a word, rule n its bit n. */
enum { TRACE_RULES_MAX = 64 };

struct trace_rule {
    char *text; /* the condition as given */
    struct condition *condition;
    bool fits;   /* a method was found of which calls may meet it */
    char *never; /* why those of the first method that was found do not; NULL: none was found */
};

/* Patterns with ':' between them, and the rule of each. Zeroed is empty. */
struct trace_patterns {
    char *list;
    uint8_t *rules;
    unsigned n;
};

struct trace_rules {
    struct trace_rule of[TRACE_RULES_MAX];
    unsigned n;
    struct trace_patterns patterns;
};

/* Reads what the options ask for: 0, -EINVAL with a sentence in why, or -ENOMEM. */
int trace_rules_set(struct trace_rules *r, const struct options *o, struct buf *why) must_check;
void trace_rules_release(struct trace_rules *r);
/*
 * A new rule; condition NULL is rule 0. Its number; -EINVAL with a sentence in why; -ENOMEM.
 */
int trace_rule_add(struct trace_rules *r, const char *condition, struct buf *why) must_check;
/* The rules that one of the patterns has, as a set. */
uint64_t trace_rules_used(const struct trace_rules *r);
/* Whether a call is recorded that the conditions of a set of rules see so. */
bool trace_rules_hold(const struct trace_rules *r, uint64_t set,
                      void (*value)(void *context, const struct cond_test *t,
                                    struct cond_value *ret),
                      void *context);
/* The one condition of a set; NULL: some calls need none, or there are several. */
const struct condition *trace_rules_only(const struct trace_rules *r, uint64_t set);

/* The list with a pattern at its end, or without it; -ENOMEM. *ret_had: it was there before. */
int trace_patterns_with(struct trace_patterns *ret, const struct trace_patterns *p,
                        const char *pattern, unsigned rule) must_check;
int trace_patterns_without(struct trace_patterns *ret, const struct trace_patterns *p,
                           const char *pattern, bool *ret_had) must_check;
void trace_patterns_release(struct trace_patterns *p);

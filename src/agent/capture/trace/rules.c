/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/trace/rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Appends one pattern of n bytes, or several separated by ':'. */
static int append(struct trace_patterns *p, const char *list, size_t n, unsigned rule)
{
    size_t before = p->n ? strlen(p->list) + 1 : 0;
    unsigned more = 1;
    for (size_t i = 0; i < n; i++)
        more += list[i] == ':';
    uint8_t *rules = realloc(p->rules, p->n + more);
    if (!rules)
        return -ENOMEM;
    p->rules = rules;
    bool *reported = realloc(p->reported, (p->n + more) * sizeof(*reported));
    if (!reported)
        return -ENOMEM;
    p->reported = reported;
    char *text = realloc(p->list, before + n + 1);
    if (!text)
        return -ENOMEM;
    if (before)
        text[before - 1] = ':';
    memcpy(text + before, list, n);
    text[before + n] = 0;
    p->list = text;
    memset(rules + p->n, (int)rule, more);
    memset(reported + p->n, 0, more * sizeof(*reported));
    p->n += more;
    return 0;
}

void trace_patterns_release(struct trace_patterns *p)
{
    free(p->list);
    free(p->rules);
    free(p->reported);
    *p = (struct trace_patterns){0};
}

int trace_patterns_without(struct trace_patterns *ret, const struct trace_patterns *p,
                           const char *pattern, bool *ret_had)
{
    struct trace_patterns rest = {.list = strdup("")};
    int r = rest.list ? 0 : -ENOMEM;
    *ret_had = false;
    const char *at = p->list;
    for (unsigned i = 0; r == 0 && i < p->n; i++) {
        size_t n = strcspn(at, ":");
        bool is = n == strlen(pattern) && strncmp(at, pattern, n) == 0;
        *ret_had |= is;
        if (!is)
            r = append(&rest, at, n, p->rules[i]);
        if (!is && r == 0)
            rest.reported[rest.n - 1] = p->reported[i];
        at += n + (at[n] == ':');
    }
    if (r < 0)
        trace_patterns_release(&rest);
    else
        *ret = rest;
    return r;
}

int trace_patterns_with(struct trace_patterns *ret, const struct trace_patterns *p,
                        const char *pattern, unsigned rule)
{
    struct trace_patterns all;
    bool had;
    int r = trace_patterns_without(&all, p, pattern, &had);
    if (r < 0)
        return r;
    r = append(&all, pattern, strlen(pattern), rule);
    if (r < 0)
        trace_patterns_release(&all);
    else
        *ret = all;
    return r;
}

int trace_rule_add(struct trace_rules *r, const char *condition, struct buf *why)
{
    if (!condition)
        return 0;
    if (r->n == TRACE_RULES_MAX) {
        buf_printf(why, "no more than %d conditions in one recording", TRACE_RULES_MAX - 1);
        return -EINVAL;
    }
    struct trace_rule *new = &r->of[r->n];
    *new = (struct trace_rule){0};
    int e = condition_parse(&new->condition, condition, why);
    if (e < 0)
        return e;
    new->text = strdup(condition);
    if (!new->text) {
        condition_free(new->condition);
        return -ENOMEM;
    }
    condition_number(new->condition, r->n * CONDITION_IDS);
    return (int)r->n++;
}

int trace_rules_set(struct trace_rules *r, const struct options *o, struct buf *why)
{
    int rule = 0;
    *r = (struct trace_rules){.n = 1};
    for (unsigned i = 0; rule >= 0 && i < o->n_traces; i++) {
        const struct option_trace *t = &o->traces[i];
        rule = trace_rule_add(r, t->condition, why);
        if (rule >= 0 && append(&r->patterns, t->patterns, strlen(t->patterns), (unsigned)rule) < 0)
            rule = -ENOMEM;
    }
    if (rule < 0)
        trace_rules_release(r);
    return MIN(rule, 0);
}

void trace_rules_release(struct trace_rules *r)
{
    for (unsigned i = 1; i < r->n; i++) {
        condition_free(r->of[i].condition);
        free(r->of[i].text);
        free(r->of[i].impossible);
    }
    trace_patterns_release(&r->patterns);
    *r = (struct trace_rules){0};
}

uint64_t trace_rules_used(const struct trace_rules *r)
{
    uint64_t set = 0;
    for (unsigned i = 0; i < r->patterns.n; i++)
        set |= UINT64_C(1) << r->patterns.rules[i];
    return set;
}

bool trace_rules_hold(const struct trace_rules *r, uint64_t set,
                      void (*value)(void *context, const struct cond_test *t,
                                    struct cond_value *ret),
                      void *context)
{
    bool holds = set & 1;
    for (unsigned i = 1; !holds && i < r->n; i++)
        holds = set >> i & 1 && condition_holds(r->of[i].condition, value, context);
    return holds;
}

const struct condition *trace_rules_only(const struct trace_rules *r, uint64_t set)
{
    bool one = set > 1 && (set & (set - 1)) == 0;
    for (unsigned i = 1; one && i < r->n; i++)
        one = !condition_tests_depth(r->of[i].condition);
    return one ? r->of[__builtin_ctzll(set)].condition : NULL;
}

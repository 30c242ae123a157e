/* SPDX-License-Identifier: Apache-2.0 */
/* Tests whether the top method of one stack is on another one. */
#pragma once

#include "timeline/timeline.h"

struct stack_tops {
    const struct timeline *t;
    /*
     * For each stack has_words words, with one bit for each method that is the top of any stack:
     * whether this stack contains the method. NULL: there are too many such methods.
     */
    uint64_t *has;
    uint32_t *top; /* for each stack, the number of the bit of its own top method */
    size_t has_words;
};

/*
 * Determines which top methods are on which stacks. If these are very many, or memory runs out,
 * `has` is NULL and stack_tops_has searches the stacks.
 */
struct stack_tops stack_tops_find(const struct timeline *t);
/* Returns whether a method is on a stack. */
bool stack_tops_scan(const struct timeline *t, uint32_t stack, uint32_t method);
/*
 * Returns whether the call that was the top of the stack `of`, which has one, may go on in another
 * stack: its callers are the same, at the same lines.
 */
bool stack_tops_may_continue(const struct timeline *t, uint32_t stack, uint32_t of);

/* Returns whether the top method of the stack `of`, which has one, is on a stack. */
static inline bool stack_tops_has(const struct stack_tops *s, uint32_t stack, uint32_t of)
{
    if (unlikely(!s->has))
        return stack_tops_scan(s->t, stack, s->t->frames[s->t->stacks[of].first].method);
    return s->has[stack * s->has_words + s->top[of] / 64] >> s->top[of] % 64 & 1;
}

void stack_tops_release(struct stack_tops *s);

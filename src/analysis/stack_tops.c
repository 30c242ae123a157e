/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/stack_tops.h"

#include <stdlib.h>

enum { HAS_WORDS_MAX = 1 << 22 };

bool stack_tops_scan(const struct timeline *t, uint32_t stack, uint32_t method)
{
    for (uint32_t k = 0; k < t->stacks[stack].len; k++)
        if (t->frames[t->stacks[stack].first + k].method == method)
            return true;
    return false;
}

bool stack_tops_may_continue(const struct timeline *t, uint32_t stack, uint32_t of)
{
    const struct tl_stack s = t->stacks[stack], call = t->stacks[of];
    const struct tl_frame *in = t->frames + s.first, *from = t->frames + call.first;
    for (uint32_t k = 0; k < s.len; k++) {
        /* the outermost frames of a stack may be missing */
        uint32_t n = MIN(s.len - k, call.len), i = 1;
        if (in[k].method != from[0].method)
            continue;
        while (i < n && in[k + i].method == from[i].method && in[k + i].line == from[i].line)
            i++;
        if (i == n)
            return true;
    }
    return false;
}

/* Numbers the top methods of all stacks in s->top. Returns how many there are. */
static size_t number_tops(struct stack_tops *s, uint32_t *number)
{
    const struct timeline *t = s->t;
    uint32_t n = 0;
    for (size_t i = 0; i < t->n_stacks; i++) {
        uint32_t method = t->stacks[i].len ? t->frames[t->stacks[i].first].method : TL_NONE;
        if (method >= t->n_strings)
            continue; /* the stack is empty, or the index is damaged */
        if (!number[method])
            number[method] = ++n;
        s->top[i] = number[method] - 1;
    }
    return n;
}

struct stack_tops stack_tops_find(const struct timeline *t)
{
    struct stack_tops s = {.t = t, .top = calloc(t->n_stacks + 1, sizeof(*s.top))};
    uint32_t *number = calloc(t->n_strings + 1, sizeof(*number)); /* of a method, plus 1 */
    s.has_words = number && s.top ? number_tops(&s, number) / 64 + 1 : SIZE_MAX;
    if (s.has_words < HAS_WORDS_MAX / (t->n_stacks + 1))
        s.has = calloc((t->n_stacks + 1) * s.has_words, sizeof(*s.has));
    for (size_t i = 0; s.has && i < t->n_stacks; i++) {
        for (uint32_t k = 0; k < t->stacks[i].len; k++) {
            uint32_t method = t->frames[t->stacks[i].first + k].method;
            uint32_t bit = method < t->n_strings ? number[method] : 0;
            if (bit)
                s.has[i * s.has_words + (bit - 1) / 64] |= UINT64_C(1) << (bit - 1) % 64;
        }
    }
    free(number);
    return s;
}

void stack_tops_release(struct stack_tops *s)
{
    free(s->has);
    free(s->top);
    *s = (struct stack_tops){0};
}

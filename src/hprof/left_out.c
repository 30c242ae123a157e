/* SPDX-License-Identifier: Apache-2.0 */
#include "hprof/left_out.h"

#include <errno.h>

int left_out_add(struct left_out *l, uint32_t trace, uint32_t frames, uint32_t at)
{
    bool added;
    uint64_t *index = map_at(&l->stacks, trace, l->of.len, &added);
    if (!index)
        return -ENOMEM;
    struct left_out_stack stack = {.first = (uint32_t)l->positions.len, .frames = frames};
    if (added && vec_push(&l->of, stack) < 0)
        return -ENOMEM;
    if (vec_push(&l->positions, at) < 0)
        return -ENOMEM;
    l->of.data[*index].n++;
    return 0;
}

void left_out_release(struct left_out *l)
{
    map_release(&l->stacks);
    vec_release(&l->of);
    vec_release(&l->positions);
}

static const struct left_out_stack *stack_of(const struct left_out *l, uint32_t trace)
{
    const uint64_t *index = map_get(&l->stacks, trace);
    return index && *index < l->of.len ? &l->of.data[*index] : NULL;
}

uint32_t left_out_count(const struct left_out *l, uint32_t trace)
{
    const struct left_out_stack *s = stack_of(l, trace);
    return s ? s->n : 0;
}

uint32_t left_out_recorded(const struct left_out *l, uint32_t trace, uint32_t shown)
{
    const struct left_out_stack *s = stack_of(l, trace);
    for (uint32_t i = 0; s && i < s->n && l->positions.data[s->first + i] <= shown; i++)
        shown++;
    return shown;
}

uint32_t left_out_shown(const struct left_out *l, uint32_t trace, uint32_t recorded)
{
    const struct left_out_stack *s = recorded == UINT32_MAX ? NULL : stack_of(l, trace);
    uint32_t before = 0;
    if (!s)
        return recorded;
    while (before < s->n && l->positions.data[s->first + before] < recorded)
        before++;
    /* If nothing called the agent, its locals belong to the last frame that is shown. */
    return MIN(recorded - before, MAX(s->frames - s->n, 1u) - 1);
}

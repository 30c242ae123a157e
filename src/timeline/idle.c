/* SPDX-License-Identifier: Apache-2.0 */
#include "timeline/idle.h"

#include <stdlib.h>

uint8_t *idle_frame_roles(const struct timeline *t)
{
    uint8_t *kinds = calloc(t->n_strings + 1, 1);
    for (size_t i = 0; kinds && i < t->n_strings; i++)
        kinds[i] = (uint8_t)frame_role(tl_string(t, (uint32_t)i));
    return kinds;
}

enum frame_role idle_role_of_frame(const struct timeline *t, const uint8_t *kinds, uint32_t frame)
{
    uint32_t method = t->frames[frame].method;
    return method < t->n_strings ? kinds[method] : ROLE_PROGRAM;
}

static enum frame_role kind_at(const struct timeline *t, const uint8_t *kinds, uint32_t stack,
                               uint32_t k)
{
    return idle_role_of_frame(t, kinds, t->stacks[stack].first + k);
}

bool idle_is_idle_stack(const struct timeline *t, const uint8_t *kinds, uint32_t stack)
{
    for (uint32_t k = 0; stack != TL_NONE && k < t->stacks[stack].len; k++) {
        enum frame_role kind = kind_at(t, kinds, stack, k);
        const struct tl_frame *f = &t->frames[t->stacks[stack].first + k];
        if (kind == ROLE_IDLE || (k > 0 && frame_role_is_idle_worker(tl_string(t, f[-1].method),
                                                                     tl_string(t, f->method))))
            return true;
        /* A server socket or queue in the program's own code may have any purpose. */
        if (kind == ROLE_PROGRAM)
            return false;
    }
    return false;
}

uint32_t idle_waiting_frame(const struct timeline *t, const uint8_t *kinds, uint32_t stack)
{
    uint32_t jdks = TL_NONE;
    uint32_t n = stack == TL_NONE ? 0 : t->stacks[stack].len;
    uint32_t first = n ? t->stacks[stack].first : 0;
    for (uint32_t k = 0; k < n; k++) {
        enum frame_role kind = kind_at(t, kinds, stack, k);
        if (kind == ROLE_PROGRAM || kind == ROLE_IDLE)
            return first + k;
        if (kind == ROLE_JDK && jdks == TL_NONE)
            jdks = first + k;
    }
    return jdks != TL_NONE ? jdks : n ? first : TL_NONE;
}
